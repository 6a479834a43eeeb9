/* page.c: writes the report page: its markup with the data in place of a marker. */
#include "page.h"

#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/json.h"
#include "json_copy.h"

/* The page as the Makefile joins it. */
__asm__(".pushsection .rodata\n"
        "page_html: .incbin \"" PAGE "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char page_html[] __attribute__((visibility("hidden")));

static const char marker[] = "@DATA@";
static bool has_run;                                    /* the page that is being written has one */

static const char *data_place(void)
{
    return strstr(page_html, marker);
}

void page_begin(FILE *out)
{
    fwrite(page_html, 1, (size_t)(data_place() - page_html), out);
    fputs("{\"runs\":[", out);
    has_run = false;
}

/* Long lists of rows that the page does not show. */
static bool is_left_out(const char *path)
{
    return !strcmp(path, "launches.commands") || !strcmp(path, "launches.pes") || !strcmp(path, "launches.responses")
           || !strcmp(path, "memory.responses") || !strcmp(path, "host.profile") || !strcmp(path, "hbm_slices");
}

static unsigned line_of(const char *text, const char *at)
{
    unsigned line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

const char *page_add(FILE *out, const char *name, const char *text, size_t length)
{
    const char *at = json_skip_space(text, text + length), *end = text + length, *wrong;
    do {
        if (at == end || *at != '{')
            return arena_printf("line %u: a result begins with {", line_of(text, at));
        fprintf(out, "%s{\"file\":", has_run ? "," : "");
        has_run = true;
        const char *quoted = name ? json_quoted(name) : "null";
        json_copy(out, &quoted, quoted + strlen(quoted), is_left_out);
        fputs(",\"result\":", out);
        if ((wrong = json_copy(out, &at, end, is_left_out)))
            return arena_printf("line %u: %s", line_of(text, at), wrong);
        fputc('}', out);
        at = json_skip_space(at, end);
    } while (at < end);
    return NULL;
}

void page_end(FILE *out)
{
    fputs("]}", out);
    fputs(data_place() + strlen(marker), out);
}
