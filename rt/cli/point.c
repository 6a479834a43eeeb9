/* point.c: a line of JSON as values of a bench's parameters.
 *
 * YAML's flow style is a superset of JSON, so the reader of topologies and streams reads it, places of errors included;
 * the names and texts of a line may stand without quotes. */
#include "point.h"

#include <string.h>

#include "host/bench.h"
#include "host/param.h"
#include "common/arena.h"
#include "common/read.h"
#include "common/yaml.h"

/* No parameter is named so: their names are identifiers. */
static const char seed_key[] = "--seed";

/* A number stands without quotes, a text with them or without, a size either way: 4096, "4 KiB". */
static bool value_read(const struct node *node, const struct kb_param *p, struct kb_value *out)
{
    bool flag = false, good;
    switch (p->type) {
    case KB_PARAM_INT:
        return node_u64(node, p->name, p->least, p->most, &out->number);
    case KB_PARAM_BOOL:
        good = node_bool(node, p->name, &flag);
        out->number = flag;
        return good;
    case KB_PARAM_TEXT:
        return node_string(node, p->name, &out->word);
    default:
        good = node->type == NODE_SCALAR && (p->type != KB_PARAM_REAL || node->plain) &&
               !param_parse(p, node->text, out);
        if (!good)
            error_expected(node, p->name, param_domain(p), NULL);
        return good;
    }
}

/* The parameter's number; as many as there are: the seed; one more: there is none of the name, which is reported. */
static uint32_t key_find(const struct node *key)
{
    const struct kb_bench *bench = bench_current;
    const char **names = arena_alloc(bench->count + 1, sizeof *names);
    uint32_t i = 0;
    for (; i < bench->count; i++)
        names[i] = bench->params[i].name;
    names[i] = seed_key;
    for (i = 0; i <= bench->count; i++)
        if (!strcmp(key->text, names[i]))
            return i;
    error_unknown_key(key, arena_printf("a point of %s", bench->name), names, bench->count + 1);
    return i;
}

static bool entry_read(const struct node_entry *entry, struct point *point)
{
    uint32_t i = key_find(entry->key);
    if (i < bench_current->count)
        return value_read(entry->value, &bench_current->params[i], &point->values[i]);
    return i == bench_current->count && node_u64(entry->value, seed_key, 0, UINT64_MAX, &point->seed);
}

/* Whether a line begins as a JSON object does: what else is YAML is no point. */
static bool is_object(const struct source *line)
{
    size_t blanks = strspn(line->text, " \t\r");
    if (line->text[blanks] == '{')
        return true;
    error_at((struct where){line, line->lines_before + 1, (unsigned)blanks + 1},
             "a point must be a JSON object: { \"name\": value, ... }");
    return false;
}

bool point_read(const struct source *line, struct point *point)
{
    unsigned before = error_count();
    const struct node *node = is_object(line) ? yaml_document(line) : NULL;
    struct kb_value *values = arena_alloc(bench_current->count, sizeof *values);
    if (bench_current->count)
        memcpy(values, point->values, bench_current->count * sizeof *values);
    point->values = values;
    bool good = node;
    for (size_t i = 0; node && i < node->count; i++)
        good &= entry_read(&node->entries[i], point);
    return good && error_count() == before;
}
