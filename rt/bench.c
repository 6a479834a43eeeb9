/* bench.c: the benches and kernels of this binary, which the linker collects in two sections, and their parameters. */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "misuse.h"
#include "text/base.h"
#include "text/diag.h"

/* The linker gives the ends of sections whose names are C identifiers; weak, for there may be none. */
extern const struct kb_bench *const __start_kb_benches[] __attribute__((weak));
extern const struct kb_bench *const __stop_kb_benches[] __attribute__((weak));
extern const struct kb_kernel *const __start_kb_kernels[] __attribute__((weak));
extern const struct kb_kernel *const __stop_kb_kernels[] __attribute__((weak));

const struct kb_bench *bench_current;
struct kb_value *bench_values;

/* ---- all of them */

static int by_name(const void *x, const void *y)
{
    const struct kb_bench *a = *(const struct kb_bench *const *)x, *b = *(const struct kb_bench *const *)y;
    return strcmp(a->name, b->name);
}

static int kernels_by_name(const void *x, const void *y)
{
    const struct kb_kernel *a = *(const struct kb_kernel *const *)x, *b = *(const struct kb_kernel *const *)y;
    return strcmp(a->name, b->name);
}

/* In the order of their names. Two of one name cannot be told apart on the command line. */
static size_t benches(const struct kb_bench ***out)
{
    size_t count = (size_t)(__stop_kb_benches - __start_kb_benches);
    const struct kb_bench **all = arena_alloc(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = __start_kb_benches[i];
    qsort(all, count, sizeof *all, by_name);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(all[i]->name, all[i - 1]->name))
            misuse(all[i]->file, all[i]->line, "there is another bench '%s', at %s:%u", all[i]->name, all[i - 1]->file,
                   (unsigned)all[i - 1]->line);
    *out = all;
    return count;
}

const struct kb_bench *bench_find(const char *name)
{
    const struct kb_bench **all;
    size_t count = benches(&all);
    const char **names = arena_alloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(all[i]->name, name))
            return all[i];
        names[i] = all[i]->name;
    }
    const char *near = nearest_name(name, names, count);
    if (near)
        usage_error("no bench '%s'; did you mean '%s'?", name, near);
    usage_error("no bench '%s'; `%s list` shows them", name, program_name);
}

/* ---- parameters */

/* "1024", "0x400": NULL, or why it is none. */
static const char *parse_whole(const char *text, uint64_t *out)
{
    bool hexadecimal = text[0] == '0' && text[1] == 'x';
    const char *digits = hexadecimal ? text + 2 : text;
    const char *allowed = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
    if (!*digits || digits[strspn(digits, allowed)] || (!hexadecimal && digits[0] == '0' && digits[1]))
        return "is no whole number";
    errno = 0;
    *out = strtoull(digits, NULL, hexadecimal ? 16 : 10);
    return errno ? "does not fit into 64 bits" : NULL;
}

const char *bench_word(const char *words, const char *text)
{
    while (*words) {
        size_t length = strcspn(words, " ");
        if (!text || (strlen(text) == length && !strncmp(words, text, length)))
            return arena_text(words, length);
        words += length + strspn(words + length, " ");
    }
    return NULL;
}

/* The default of a word, the first one, or of a text, all of it. */
static const char *initial_word(const struct kb_param *p)
{
    return p->type == KB_PARAM_WORD ? bench_word(p->words, NULL) : p->type == KB_PARAM_TEXT ? p->words : NULL;
}

static const char *parse_value(const struct kb_param *p, const char *text, struct kb_value *out)
{
    if (p->type == KB_PARAM_BOOL) {
        out->number = !strcmp(text, "true");
        return out->number || !strcmp(text, "false") ? NULL : "is neither true nor false";
    }
    if (p->type == KB_PARAM_TEXT) {
        out->word = text;
        return NULL;
    }
    if (p->type == KB_PARAM_WORD) {
        out->word = bench_word(p->words, text);
        return out->word ? NULL : arena_printf("is none of: %s", p->words);
    }
    const char *wrong = parse_whole(text, &out->number);
    if (!wrong && (out->number < p->least || out->number > p->most))
        wrong = arena_printf("is out of bounds: %" PRIu64 " to %" PRIu64, p->least, p->most);
    return wrong;
}

/* Reports what is wrong with an argument and returns false. */
static bool take(const struct kb_bench *bench, const char *argument, bool *given)
{
    const char *equals = strchr(argument, '=');
    const char *name = arena_text(argument, equals ? (size_t)(equals - argument) : strlen(argument));
    const char **names = arena_alloc(bench->count, sizeof *names);
    for (uint32_t i = 0; i < bench->count; i++) {
        names[i] = bench->params[i].name;
        if (strcmp(names[i], name))
            continue;
        const char *wrong = !equals ? "needs a value: NAME=VALUE" : given[i] ? "is given twice"
                            : parse_value(&bench->params[i], equals + 1, &bench_values[i]);
        given[i] = true;
        if (wrong)
            fprintf(stderr, "%s: error: %s: %s %s\n", program_name, bench->name, argument, wrong);
        return !wrong;
    }
    const char *near = nearest_name(name, names, bench->count);
    fprintf(stderr, "%s: error: %s has no parameter '%s'", program_name, bench->name, name);
    fprintf(stderr, near ? "; did you mean '%s'?\n" : "; `list` shows them\n", near);
    return false;
}

void bench_take(const struct kb_bench *bench, int count, char *const *arguments)
{
    bench_current = bench;
    bench_values = arena_alloc(bench->count, sizeof *bench_values);
    bool *given = arena_alloc(bench->count, sizeof *given), good = true;
    for (uint32_t i = 0; i < bench->count; i++) {
        bench_values[i].number = bench->params[i].initial;
        bench_values[i].word = initial_word(&bench->params[i]);
    }
    for (int i = 0; i < count; i++)
        good &= take(bench, arguments[i], given);
    if (!good)
        exit(2);
}

const struct kb_value *kb_param_at(const char *name, enum kb_param_type type, const char *file, uint32_t line)
{
    for (uint32_t i = 0; i < bench_current->count; i++)
        if (!strcmp(bench_current->params[i].name, name) && bench_current->params[i].type == type)
            return &bench_values[i];
    misuse(file, line, "bench %s has no parameter '%s' of this type", bench_current->name, name);
}

void bench_write_params(struct json *json, const char *key)
{
    json_object(json, key);
    for (uint32_t i = 0; i < bench_current->count; i++) {
        const struct kb_param *p = &bench_current->params[i];
        if (p->type == KB_PARAM_WORD || p->type == KB_PARAM_TEXT)
            json_string(json, p->name, bench_values[i].word);
        else if (p->type == KB_PARAM_BOOL)
            json_bool(json, p->name, bench_values[i].number);
        else
            json_u64(json, p->name, bench_values[i].number);
    }
    json_object_end(json);
}

void bench_run(const struct kb_bench *bench)
{
    bench->body();
}

/* ---- list */

static void list_param(FILE *out, const struct kb_param *p)
{
    const char *value = p->initial ? "true" : "false";
    if (p->type == KB_PARAM_INT)
        value = arena_printf("%" PRIu64, p->initial);
    if (initial_word(p))
        value = initial_word(p);
    fprintf(out, "  %-10s = %-10s %s", p->name, value, p->help);
    if (p->type == KB_PARAM_INT)
        fprintf(out, " (%" PRIu64 " to %" PRIu64 ")", p->least, p->most);
    else if (p->type != KB_PARAM_TEXT)
        fprintf(out, " (%s)", p->type == KB_PARAM_WORD ? p->words : "true false");
    fputc('\n', out);
}

void bench_list(FILE *out)
{
    const struct kb_bench **all;
    size_t count = benches(&all);
    fprintf(out, "benches:%s\n", count ? "" : " none");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s: %s (%s)\n", all[i]->name, all[i]->what, all[i]->file);
        for (uint32_t j = 0; j < all[i]->count; j++)
            list_param(out, &all[i]->params[j]);
    }
    count = (size_t)(__stop_kb_kernels - __start_kb_kernels);
    const struct kb_kernel **kernels = arena_alloc(count, sizeof *kernels);
    if (count)
        memcpy(kernels, __start_kb_kernels, count * sizeof *kernels);
    qsort(kernels, count, sizeof *kernels, kernels_by_name);
    fprintf(out, "kernels:%s\n", count ? "" : " none");
    for (size_t i = 0; i < count; i++)
        fprintf(out, "  %-10s %s:%u\n", kernels[i]->name, kernels[i]->file, (unsigned)kernels[i]->line);
}
