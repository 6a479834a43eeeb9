/* page.c: writes the report page: its markup with the data in place of a marker. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "base/packed.h"
#include "common/arena.h"
#include "common/json.h"
#include "json_copy.h"

PACKED_FILE(page_packed, PAGE);                        /* as the Makefile joins it */

static const char *page_html(void)
{
    static char *html;                                  /* it outlives requests, whose memory is in the arena */
    if (!html)
        html = unpack(page_packed, page_packed_end, "the report page");
    return html;
}

/* Marks in it, in their order: whom it may ask for more, and where its data are. */
static const char connect_mark[] = "@CONNECT@", data_mark[] = "@DATA@";
static bool has_run;                                    /* the page that is being written has one */

/* Writes the page from a place to a mark. Returns the place behind the mark. */
static const char *write_to(FILE *out, const char *from, const char *mark)
{
    const char *at = strstr(from, mark);
    fwrite(from, 1, (size_t)(at - from), out);
    return at + strlen(mark);
}

void page_begin(FILE *out, bool served)
{
    const char *rest = write_to(out, page_html(), connect_mark);
    fputs(served ? "'self'" : "'none'", out);
    write_to(out, rest, data_mark);
    fputs("{\"runs\":[", out);
    has_run = false;
}

/* Long lists of rows that the page does not show, or not all of. */
static size_t shown(const char *path)
{
    static const struct {
        const char *path;
        size_t shown;
    } lists[] = {{"launches.commands", 0}, {"launches.pes", 0}, {"launches.responses", 0}, {"memory.responses", 0},
                 {"host.profile", 0}, {"hbm_slices", 0}, {"why.path.segments", 0}, {"why.account.kernels", 0},
                 {"why.path.by_resource", 100}};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        if (!strcmp(path, lists[i].path))
            return lists[i].shown;
    return ALL_ELEMENTS;
}

/* The keys that every result has: of runs `launches`, of what-ifs `changes`. */
static struct {
    bool system, end_ps, rows;
} found;

static void find(const char *path, const char *value, size_t length)
{
    if (!strcmp(path, "system"))
        found.system = *value == '"';
    else if (!strcmp(path, "end_ps"))
        found.end_ps = strspn(value, "0123456789") >= length;
    else if (!strcmp(path, "launches") || !strcmp(path, "changes"))
        found.rows = *value == '[';
}

static const char *missing(void)
{
    return !found.system ? "'system', the name of a machine, is missing or no text"
           : !found.end_ps ? "'end_ps' is missing or no whole number of picoseconds"
           : !found.rows ? "'launches' or 'changes' is missing or no list" : NULL;
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
        json_copy(out, &quoted, quoted + strlen(quoted), shown, NULL);
        fputs(",\"result\":", out);
        found.system = found.end_ps = found.rows = false;
        const char *begin = at;
        if ((wrong = json_copy(out, &at, end, shown, find)))
            return arena_printf("line %u: %s", line_of(text, at), wrong);
        if ((wrong = missing()))
            return arena_printf("line %u: %s", line_of(text, begin), wrong);
        fputc('}', out);
        at = json_skip_space(at, end);
    } while (at < end);
    return NULL;
}

void page_end(FILE *out, const char *members)
{
    fprintf(out, "]%s%s}", members ? "," : "", members ? members : "");
    fputs(strstr(page_html(), data_mark) + strlen(data_mark), out);
}

char *page_object(const char *text, size_t length)
{
    char *copy;
    size_t copied;
    const char *at = json_skip_space(text, text + length);
    FILE *memory = open_memstream(&copy, &copied);
    if (!memory)
        return NULL;
    bool good = at < text + length && *at == '{' && !json_copy(memory, &at, text + length, shown, NULL);
    if (!fclose(memory) && good)
        return copy;
    free(copy);
    return NULL;
}

char *page_result(const char *page)
{
    static const char before[] = "{\"runs\":[{\"file\":null,\"result\":", after[] = "}]}</script>";
    const char *begin = strstr(page, before);
    const char *end = begin ? strstr(begin, after) : NULL;  /* no text of a result has a '<' */
    return end ? strndup(begin + strlen(before), (size_t)(end - begin) - strlen(before)) : NULL;
}
