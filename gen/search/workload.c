/* workload.c: the runs of a point, and its hash.
 *
 * A value counts as what the bench gets: a default given is the default, and 64 KiB are 65536. */
#include "workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"
#include "../../rt/common/hash.h"
#include "../../rt/common/json.h"
#include "../../rt/common/read.h"
#include "../../rt/common/yaml.h"
#include "../replace.h"

struct workloads {
    struct space *space;
    struct param *params;
    size_t count;
    struct sql_value **levels;                          /* by parameter: the values of its axis, if that is listed */
    const char **streams;                               /* by workload: a hash of the stream's file; NULL: a bench */
};

/* ---- values */

static struct sql_value whole(uint64_t n)
{
    return (struct sql_value){.type = SQL_INTEGER, .integer = (int64_t)n};
}

/* A bound of the listing. */
static const struct node *bound(const struct param *p, const char *name)
{
    return node_get(p->row, name);
}

static uint64_t whole_bound(const struct param *p, const char *name)
{
    return strtoull(bound(p, name)->text, NULL, 10);
}

static bool read_size(const struct node *node, const struct param *p, struct sql_value *out)
{
    mpq_t value;
    uint64_t bytes = 0, least = whole_bound(p, "least"), most = whole_bound(p, "most");
    mpq_init(value);
    const char *why = node_number(node, DIMENSION_size, NULL, value);
    bool good = !why && quantity_whole(value, &bytes) && bytes >= least && bytes <= most;
    mpq_clear(value);
    if (!good)
        error_expected(node, p->name, arena_printf("a size from %" PRIu64 " to %" PRIu64 " bytes", least, most), why);
    *out = whole(bytes);
    return good;
}

/* strtod alone would also accept hexadecimal numbers, infinities and blanks. */
static bool read_real(const struct node *node, const struct param *p, struct sql_value *out)
{
    double least = strtod(bound(p, "least")->text, NULL), most = strtod(bound(p, "most")->text, NULL), value = NAN;
    char *end = NULL;
    if (node->type == NODE_SCALAR && node->plain && *node->text && !node->text[strspn(node->text, "0123456789+-.eE")])
        value = strtod(node->text, &end);
    bool good = end && !*end && *node->text != '+' && value >= least && value <= most;
    if (!good)
        error_expected(node, p->name, arena_printf("a number from %g to %g", least, most), NULL);
    *out = (struct sql_value){.type = SQL_REAL, .real = value};
    return good;
}

/* A word may look like a number. */
static bool read_word(const struct node *node, const struct param *p, struct sql_value *out)
{
    const struct node *list = node_get(p->row, "words");
    const char **words = arena_alloc(list->count, sizeof *words), *all = "";
    bool is_word = node->type == NODE_SCALAR && !node->broken;
    for (size_t i = 0; i < list->count; i++) {
        words[i] = list->items[i]->text;
        *out = (struct sql_value){.type = SQL_TEXT, .text = words[i]};
        if (is_word && !strcmp(node->text, words[i]))
            return true;
        all = arena_printf("%s%s%s", all, i ? ", " : "", words[i]);
    }
    error_expected(node, p->name, arena_printf("one of %s", all), NULL);
    const char *nearest = is_word ? nearest_name(node->text, words, list->count) : NULL;
    if (nearest)
        note_at(node->where, "did you mean '%s'?", nearest);
    return false;
}

/* Reads a value as a simulator does; reports what is wrong with it. */
static bool read_value(const struct node *node, const struct param *p, struct sql_value *out)
{
    uint64_t number = 0;
    bool flag = false, good = true;
    switch (p->kind) {
    case PARAM_int:
        good = node_u64(node, p->name, whole_bound(p, "least"), whole_bound(p, "most"), &number);
        *out = whole(number);
        break;
    case PARAM_bool:
        good = node_bool(node, p->name, &flag);
        *out = whole(flag);
        break;
    case PARAM_size: good = read_size(node, p, out); break;
    case PARAM_real: good = read_real(node, p, out); break;
    case PARAM_word: good = read_word(node, p, out); break;
    case PARAM_text:
        *out = (struct sql_value){.type = SQL_TEXT};
        good = node_string(node, p->name, &out->text);
    }
    return good;
}

/* ---- parameters */

static struct param *add_param(struct workloads *all, unsigned workload, const struct node *row)
{
    static const char *const kinds[] = {"int", "size", "real", "bool", "word", "text"};
    const char *type = node_get(row, "type")->text;
    all->params = arena_grow(all->params, all->count, sizeof *all->params);
    struct param *p = &all->params[all->count++];
    *p = (struct param){.name = node_get(row, "name")->text, .workload = workload, .axis = -1, .row = row};
    while (p->kind < PARAM_text && strcmp(kinds[p->kind], type))
        p->kind++;
    if (p->kind == PARAM_text)                          /* which may be a text that looks like a number */
        p->value = (struct sql_value){.type = SQL_TEXT, .text = node_get(row, "default")->text};
    else
        read_value(node_get(row, "default"), p, &p->value);
    return p;
}

static const struct node *find_bench(const struct node *listing, const struct workload *workload)
{
    const struct node *list = node_get(listing, "benches");
    const char **names = arena_alloc(list->count + 1, sizeof *names);
    for (size_t i = 0; i < list->count; i++) {
        names[i] = node_get(list->items[i], "name")->text;
        if (!strcmp(names[i], workload->bench))
            return list->items[i];
    }
    error_at(workload->where, "there is no bench '%s'", workload->bench);
    const char *nearest = nearest_name(workload->bench, names, list->count);
    if (nearest)
        note_at(workload->where, "did you mean '%s'?", nearest);
    return NULL;
}

/* Reads the parameters of a workload: the bench's defaults, then the values of the file. */
static void add_workload(struct workloads *all, unsigned number, const struct node *listing)
{
    const struct workload *workload = &all->space->workloads[number];
    const struct node *bench = workload->bench ? find_bench(listing, workload) : NULL;
    if (!bench)
        return;
    const struct node *rows = node_get(bench, "params");
    const char **names = arena_alloc(rows->count + 1, sizeof *names);
    for (size_t i = 0; i < rows->count; i++) {
        struct param *p = add_param(all, number, rows->items[i]);
        names[i] = p->name;
        p->given = workload->params ? node_get(workload->params, p->name) : NULL;
        if (p->given)
            read_value(p->given, p, &p->value);
    }
    if (workload->params)
        node_check_keys(workload->params, arena_printf("the parameters of %s", workload->bench), names, rows->count);
}

/* ---- axes */

static void check_levels(struct workloads *all, size_t i, const struct axis *axis)
{
    struct param *p = &all->params[i];
    struct sql_value value;
    if (axis->list) {
        all->levels[i] = arena_alloc(axis->count, sizeof **all->levels);
        unsigned errors = error_count();
        for (uint64_t level = 0; level < axis->count && (!axis->range || error_count() == errors); level++)
            read_value(axis->list[level], p, &all->levels[i][level]);
        return;
    }
    const uint64_t levels[] = {0, axis->count - 1, 1};  /* of a range: they tell of all others */
    for (size_t j = 0; j < COUNT_OF(levels) && read_value(axis_node(axis, levels[j]), p, &value); j++)
        continue;
}

static void take_axis(struct workloads *all, size_t i, size_t number)
{
    struct param *p = &all->params[i];
    struct axis *axis = &all->space->axes[number];
    if (p->given || p->axis >= 0) {
        error_at(axis->where, "%s is given by %s as well", axis->name,
                 p->axis >= 0 ? all->space->axes[p->axis].name : "'params'");
        return;
    }
    p->axis = (int)number;
    if (p->kind == PARAM_int || p->kind == PARAM_size)
        axis_make_whole(axis);
    check_levels(all, i, axis);
}

static void error_unknown_param(const struct workloads *all, const struct axis *axis)
{
    const char **names = arena_alloc(all->count + 1, sizeof *names);
    for (size_t i = 0; i < all->count; i++)
        names[i] = all->params[i].name;
    error_at(axis->where, "no workload%s%s has a parameter '%s'", axis->workload ? " " : "",
             axis->workload ? axis->workload : "", axis->param);
    const char *nearest = nearest_name(axis->param, names, all->count);
    if (nearest)
        note_at(axis->where, "did you mean '%s'?", nearest);
}

static void take_axes(struct workloads *all)
{
    const struct space *space = all->space;
    all->levels = arena_alloc(all->count + 1, sizeof *all->levels);
    for (size_t axis = 0; axis < space->axis_count; axis++) {
        const struct axis *of = &space->axes[axis];
        bool known = !of->param || !of->count;
        for (size_t i = 0; of->param && of->count && i < all->count; i++) {
            const struct param *p = &all->params[i];
            if (strcmp(p->name, of->param) || (of->workload && strcmp(of->workload, space->workloads[p->workload].name)))
                continue;
            known = true;
            take_axis(all, i, axis);
        }
        if (!known)
            error_unknown_param(all, of);
    }
}

static const char *hash_of_content(const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    if (!text)
        die("read %s:", path);
    struct hash *hash = hash_begin();
    hash_add(hash, text, length);
    return hash_end(hash);
}

struct workloads *workloads_begin(struct space *space, const char *listing, size_t length)
{
    struct workloads *all = arena_alloc(1, sizeof *all);
    struct source *source = arena_alloc(1, sizeof *source);
    all->space = space;
    *source = (struct source){"list --json", listing, length, 0};
    const struct node *read = yaml_document(source);
    if (!read || !node_get(read, "benches"))
        die("a simulator gives no list of its benches");
    all->streams = arena_alloc(space->workload_count, sizeof *all->streams);
    for (unsigned i = 0; i < space->workload_count; i++) {
        add_workload(all, i, read);
        if (space->workloads[i].stream)
            all->streams[i] = hash_of_content(space->workloads[i].stream);
    }
    take_axes(all);
    return all;
}

const struct param *workloads_params(const struct workloads *all, size_t *count)
{
    *count = all->count;
    return all->params;
}

/* ---- a point */

struct sql_value *workload_values(const struct workloads *all, const uint32_t *levels)
{
    struct sql_value *values = arena_alloc(all->count + 1, sizeof *values);
    for (size_t i = 0; i < all->count; i++) {
        const struct param *p = &all->params[i];
        if (p->axis < 0)
            values[i] = p->value;
        else if (all->levels[i])
            values[i] = all->levels[i][levels[p->axis]];
        else
            read_value(axis_node(&all->space->axes[p->axis], levels[p->axis]), p, &values[i]);
    }
    return values;
}

void workload_use(const struct workloads *all, unsigned workload, const char *name, uint64_t used, struct sql_value *values)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->params[i].workload == workload && !strcmp(all->params[i].name, name))
            values[i] = whole(used);
}

char **workload_arguments(const struct workloads *all, unsigned workload, size_t *count)
{
    char **arguments = arena_alloc(all->count + 1, sizeof *arguments);
    *count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->params[i].workload == workload && all->params[i].given)
            arguments[(*count)++] = arena_printf("%s=%s", all->params[i].name, all->params[i].given->text);
    return arguments;
}

const char *workload_line(const struct workloads *all, unsigned workload, const uint32_t *levels, const struct machine *machine)
{
    const char *line = "{";
    for (size_t i = 0; i < all->count; i++) {
        const struct param *p = &all->params[i];
        if (p->workload == workload && p->axis >= 0)
            line = arena_printf("%s\"%s\": %s, ", line, p->name, axis_text(&all->space->axes[p->axis], levels[p->axis]));
    }
    return arena_printf("%s\"--set\": %s}", line, machine->numbers);
}

const char *workload_stream(const struct workloads *all, unsigned workload)
{
    return all->streams[workload];
}

static void hash_value(struct hash *hash, struct sql_value value)
{
    hash_number(hash, value.type);
    switch (value.type) {
    case SQL_NULL: break;
    case SQL_INTEGER: hash_number(hash, (uint64_t)value.integer); break;
    case SQL_REAL: hash_add(hash, &value.real, sizeof value.real); break;
    case SQL_TEXT: hash_text(hash, value.text); break;
    }
}

enum { HASH_FORMAT = 1 };

const char *point_hash(const struct workloads *all, const struct machine *machine, const struct sql_value *values)
{
    const struct space *space = all->space;
    struct hash *hash = hash_begin();
    hash_number(hash, HASH_FORMAT);
    hash_text(hash, machine->structure ? machine->structure->name : "");
    hash_text(hash, machine->hash);
    for (unsigned w = 0; w < space->workload_count; w++) {
        const struct workload *workload = &space->workloads[w];
        if (space->workload_count > 1)
            hash_text(hash, workload->name);            /* of its columns in a store */
        hash_number(hash, workload->weight);
        hash_text(hash, workload->bench ? workload->bench : "");
        if (all->streams[w])
            hash_text(hash, all->streams[w]);
        for (size_t i = 0; i < all->count; i++)
            if (all->params[i].workload == w) {
                hash_text(hash, all->params[i].name);
                hash_value(hash, values[i]);
            }
    }
    return hash_end(hash);
}
