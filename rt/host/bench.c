/* bench.c: benches and kernels, which the linker collects in two sections, and the parameters of the selected bench. */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/diag.h"
#include "param.h"

/* The linker defines the ends of sections whose names are C identifiers. Weak: a section may be missing. */
extern const struct kb_bench *const __start_kb_benches[] __attribute__((weak));
extern const struct kb_bench *const __stop_kb_benches[] __attribute__((weak));
extern const struct kb_kernel *const __start_kb_kernels[] __attribute__((weak));
extern const struct kb_kernel *const __stop_kb_kernels[] __attribute__((weak));

const struct kb_bench *bench_current;
struct kb_value *bench_values;

/* What the bench has said of a parameter (kb_param_used). */
struct used {
    const char *name;
    uint64_t asked, used;
    bool differs;                                       /* from call to call */
};
static struct ARRAY(struct used) used;

/* ---- benches */

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

/* Misuse if two have one name: the command line could not tell them apart. */
size_t bench_all(const struct kb_bench ***out)
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

const char *bench_list_name;

static const char *list_name(void)
{
    return bench_list_name ? bench_list_name : arena_printf("`%s list`", program_name);
}

const struct kb_bench *bench_find(const char *name)
{
    const struct kb_bench **all;
    size_t count = bench_all(&all);
    const char **names = arena_alloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(all[i]->name, name))
            return all[i];
        names[i] = all[i]->name;
    }
    const char *near = nearest_name(name, names, count);
    if (near)
        usage_error("no bench '%s'; did you mean '%s'?", name, near);
    usage_error("no bench '%s'; %s shows them", name, list_name());
}

const struct kb_kernel *kernel_find(const char *name)
{
    size_t count = (size_t)(__stop_kb_kernels - __start_kb_kernels);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(__start_kb_kernels[i]->name, name))
            return __start_kb_kernels[i];
    return NULL;
}

/* ---- parameters */

/* Sets the parameter of a NAME=VALUE argument. Reports what is wrong with it and returns false. */
static bool set_parameter(const struct kb_bench *bench, const char *argument, bool *given)
{
    const char *equals = strchr(argument, '=');
    const char *name = arena_text(argument, equals ? (size_t)(equals - argument) : strlen(argument));
    const char **names = arena_alloc(bench->count, sizeof *names);
    for (uint32_t i = 0; i < bench->count; i++) {
        names[i] = bench->params[i].name;
        if (strcmp(names[i], name))
            continue;
        const char *wrong = !equals ? "needs a value: NAME=VALUE" : given[i] ? "is given twice"
                            : param_parse(&bench->params[i], equals + 1, &bench_values[i]);
        given[i] = true;
        if (wrong)
            message("%s: error: %s: %s %s\n", program_name, bench->name, printable(argument), wrong);
        return !wrong;
    }
    const char *near = nearest_name(name, names, bench->count);
    message("%s: error: %s has no parameter '%s'", program_name, bench->name, printable(name));
    if (near)
        message("; did you mean '%s'?\n", near);
    else
        message("; %s shows them\n", list_name());
    return false;
}

static struct kb_value default_value(const struct kb_bench *bench, uint32_t i)
{
    const struct kb_param *p = &bench->params[i];
    struct kb_value value = param_default(p);
    if (!param_within(p, &value))
        misuse(bench->file, bench->line, "the default of parameter '%s' has to be %s", p->name, param_domain(p));
    for (uint32_t j = 0; j < i; j++)
        if (!strcmp(p->name, bench->params[j].name))
            misuse(bench->file, bench->line, "there are two parameters '%s'", p->name);
    return value;
}

void bench_select(const struct kb_bench *bench, int count, char *const *arguments)
{
    bench_current = bench;
    bench_values = arena_alloc(bench->count, sizeof *bench_values);
    bool *given = arena_alloc(bench->count, sizeof *given), good = true;
    for (uint32_t i = 0; i < bench->count; i++)
        bench_values[i] = default_value(bench, i);
    for (int i = 0; i < count; i++)
        good &= set_parameter(bench, arguments[i], given);
    if (!good)
        fail_exit(STATUS_WRONG_USE);
}

const struct kb_value *kb_param_at(const char *name, enum kb_param_type type, const char *file, uint32_t line)
{
    for (uint32_t i = 0; i < bench_current->count; i++)
        if (!strcmp(bench_current->params[i].name, name) && bench_current->params[i].type == type)
            return &bench_values[i];
    misuse(file, line, "bench %s has no parameter '%s' of this type", bench_current->name, name);
}

void kb_refuse_at(const char *file, uint32_t line, const char *format, ...)
{
    char why[512];                                      /* a longer one is cut */
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    misuse(file, line, "%s: %s", bench_current->name, why);
}

void bench_write_params(struct json *json, const char *key)
{
    json_object(json, key);
    for (uint32_t i = 0; i < bench_current->count; i++)
        param_write(json, &bench_current->params[i], &bench_values[i]);
    json_object_end(json);
}

/* ---- parameters that count as another value */

void kb_param_used(const char *name, uint64_t asked, uint64_t value)
{
    for (size_t i = 0; i < used.count; i++)
        if (!strcmp(used.at[i].name, name)) {
            used.at[i].differs |= used.at[i].used != value || used.at[i].asked != asked;
            return;
        }
    *array_add(&used) = (struct used){name, asked, value, false};
}

void bench_write_used(struct json *json, const char *key)
{
    bool open = false;
    for (size_t i = 0; i < used.count; i++) {
        if (used.at[i].differs || used.at[i].used == used.at[i].asked)
            continue;
        if (!open)
            json_object(json, key);
        open = true;
        json_u64(json, used.at[i].name, used.at[i].used);
    }
    if (open)
        json_object_end(json);
}

void bench_used_reset(void)
{
    used.count = 0;
}

/* ---- list */

/* All kernels, by name. Returns how many there are. */
static size_t kernel_all(const struct kb_kernel ***out)
{
    size_t count = (size_t)(__stop_kb_kernels - __start_kb_kernels);
    const struct kb_kernel **all = arena_alloc(count, sizeof *all);
    if (count)
        memcpy(all, __start_kb_kernels, count * sizeof *all);
    qsort(all, count, sizeof *all, kernels_by_name);
    *out = all;
    return count;
}

void bench_list(FILE *out)
{
    const struct kb_bench **all;
    size_t count = bench_all(&all);
    fprintf(out, "benches:%s\n", count ? "" : " none");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s: %s (%s)\n", all[i]->name, printable(all[i]->what), all[i]->file);
        for (uint32_t j = 0; j < all[i]->count; j++)
            param_list(out, &all[i]->params[j]);
    }
    const struct kb_kernel **kernels;
    count = kernel_all(&kernels);
    fprintf(out, "kernels:%s\n", count ? "" : " none");
    for (size_t i = 0; i < count; i++)
        fprintf(out, "  %-10s %s:%u\n", kernels[i]->name, kernels[i]->file, (unsigned)kernels[i]->line);
}

void bench_list_write(struct json *json)
{
    const struct kb_bench **all;
    const struct kb_kernel **kernels;
    size_t count = bench_all(&all);
    json_array(json, "benches");
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "name", all[i]->name);
        json_string(json, "what", all[i]->what);
        json_string(json, "file", all[i]->file);
        json_array(json, "params");
        for (uint32_t j = 0; j < all[i]->count; j++)
            param_describe(json, &all[i]->params[j]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
    count = kernel_all(&kernels);
    json_array(json, "kernels");
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "name", kernels[i]->name);
        json_string(json, "file", kernels[i]->file);
        json_u64(json, "line", kernels[i]->line);
        json_u64(json, "arg_bytes", kernels[i]->arg_bytes);
        json_object_end(json);
    }
    json_array_end(json);
}

void bench_list_json(FILE *out)
{
    struct json json;
    json_open(&json, out);
    json_object(&json, NULL);
    bench_list_write(&json);
    json_object_end(&json);
    json_close(&json);
}
