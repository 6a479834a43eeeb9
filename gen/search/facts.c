/* facts.c: what expressions can name of a point. */
#include "facts.h"

#include <string.h>
#include <strings.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/read.h"
#include "../../rt/common/yaml.h"
#include "../plan.h"

/* ---- names */

/* Returns the last name of the first `length` bytes of a path, and its length. */
static const char *last_name(const char *path, size_t length, size_t *out)
{
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '.')
        begin--;
    *out = length - begin;
    return path + begin;
}

static bool is_name(const char *name, size_t length, const char *text)
{
    return strlen(text) == length && !memcmp(name, text, length);
}

const char *fact_short_name(const char *path)
{
    size_t length = strlen(path), column_length, table_length;
    const char *column = last_name(path, length, &column_length), *table = column;
    do {
        if (table == path)
            return path;
        table = last_name(path, (size_t)(table - path) - 1, &table_length);
    } while (is_name(table, table_length, "attrs") || is_name(table, table_length, "components"));
    size_t prefix = strncmp(table, "pe_", 3) || table_length == 3 ? 0 : 3;
    return arena_printf("%.*s.%s", (int)(table_length - prefix), table + prefix, column);
}

const char *fact_name(const struct fact *fact)
{
    return fact->table ? arena_printf("%s.%s", fact->table, fact->column) : fact->column;
}

/* ---- the list */

enum count_of { COUNT_sips, COUNT_cubes, COUNT_pes, COUNT_routers, COUNT_hbm_slices, COUNTS };

static const char *const count_names[COUNTS] = {
    [COUNT_sips] = "sips", [COUNT_cubes] = "cubes", [COUNT_pes] = "pes", [COUNT_routers] = "routers",
    [COUNT_hbm_slices] = "hbm_slices",
};

static const char *const op_names[] = {
#define OP(name, ...) #name,
#include "../../rt/kb/ops.def"
};

static void add(struct facts *facts, struct fact fact)
{
    facts->list = arena_grow(facts->list, facts->count, sizeof *facts->list);
    facts->list[facts->count++] = fact;
}

/* Adds a fact by its path. */
static void add_path(struct facts *facts, struct fact fact, const char *path)
{
    const char *name = fact_short_name(path), *dot = strchr(name, '.');
    fact.table = dot ? arena_text(name, (size_t)(dot - name)) : NULL;
    fact.column = dot ? dot + 1 : name;
    fact.path = path;
    add(facts, fact);
}

static void add_keys(struct facts *facts, const struct key *of)
{
    for (size_t i = 0; i < of->count; i++) {
        const struct key *key = &of->keys[i];
        struct fact fact = {.of = FACT_KEY, .key = key};
        switch (key->kind) {
        case KIND_mapping: add_keys(facts, key); break;
        case KIND_dtypes:
            for (fact.index = 0; fact.index < DTYPES; fact.index++)
                add_path(facts, fact, arena_printf("%s.%s", key->path, dtype_names[fact.index]));
            break;
        case KIND_ops:
            for (fact.index = 0; fact.index < COUNT_OF(op_names); fact.index++)
                add_path(facts, fact, arena_printf("%s.%s", key->path, op_names[fact.index]));
            break;
        case KIND_attachments: case KIND_planes: case KIND_chip_links: case KIND_either: case KIND_path: case KIND_constant: case KIND_params: case KIND_router:
        case KIND_routers:
            break;
        default: add_path(facts, fact, key->path);
        }
    }
}

static void add_params(struct facts *facts, const struct space *space, const struct workloads *workloads)
{
    size_t count;
    const struct param *params = workloads_params(workloads, &count);
    bool several = space->workload_count > 1;
    for (size_t i = 0; i < count; i++) {
        const struct param *p = &params[i];
        struct fact fact = {.of = FACT_PARAM, .index = i};
        const char *workload = space->workloads[p->workload].name;
        add_path(facts, fact, several ? arena_printf("params.%s.%s", workload, p->name) : arena_printf("params.%s", p->name));
    }
    /* An axis that several workloads share: all have its value. */
    for (size_t axis = 0; several && axis < space->axis_count; axis++)
        for (size_t i = 0; space->axes[axis].param && !space->axes[axis].workload && i < count; i++)
            if (params[i].axis == (int)axis) {
                add_path(facts, (struct fact){.of = FACT_PARAM, .index = i}, space->axes[axis].name);
                break;
            }
}

/* Columns of a store's table of points, and SQLite's names of its row numbers. */
static const char *const reserved[] = {"hash", "structure", "status", "why", "exit", "host_us", "rowid", "oid", "_rowid_"};

static const char *taken_by(const struct facts *facts, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(reserved); i++)
        if (!strcasecmp(name, reserved[i]))
            return "a column of every store";
    for (size_t i = 0; i < facts->count; i++)
        if (!facts->list[i].table && !strcasecmp(name, facts->list[i].column))
            return facts->list[i].of == FACT_METRIC ? "a metric" : "a count of the machine";
    return NULL;
}

static void check_derived(const struct facts *facts, const struct space *space)
{
    for (size_t i = 0; i < space->derive_count; i++) {
        const struct expression_text *derived = &space->derive[i];
        const char *taken = taken_by(facts, derived->name);
        if (taken)
            error_at(derived->name_where, "derive: '%s' is %s; give it another name", derived->name, taken);
        for (size_t j = 0; j < i; j++)
            if (!strcasecmp(derived->name, space->derive[j].name)) {
                error_at(derived->name_where, "derive: '%s' is given twice: case does not distinguish names", derived->name);
                note_at(space->derive[j].name_where, "it is first given here");
            }
    }
}

/* Reports facts of a workload that have the name of another fact. */
static void check_workloads(const struct facts *facts, const struct space *space)
{
    for (size_t i = 0; i < facts->count; i++)
        for (size_t j = i + 1; facts->list[i].table && j < facts->count; j++) {
            const struct fact *a = &facts->list[i], *b = &facts->list[j];
            if (!b->table || strcasecmp(a->table, b->table) || strcasecmp(a->column, b->column))
                continue;
            for (size_t w = 0; w < space->workload_count; w++)
                if (!strcasecmp(space->workloads[w].name, b->table))
                    error_at(space->workloads[w].where, "%s.%s would mean two things in expressions: give this workload "
                             "another name", b->table, b->column);
        }
}

struct facts *facts_of(const struct space *space, const struct workloads *workloads, const struct metric_fact *metrics,
                       size_t metric_count)
{
    struct facts *facts = arena_alloc(1, sizeof *facts);
    for (size_t i = 0; i < COUNTS; i++)
        add(facts, (struct fact){.of = FACT_COUNT, .column = count_names[i], .index = i});
    add_keys(facts, schema());
    for (size_t i = 0; i < metric_count; i++)
        add(facts, (struct fact){.of = FACT_METRIC, .table = metrics[i].workload, .column = metrics[i].name, .index = i});
    if (workloads)
        add_params(facts, space, workloads);
    check_derived(facts, space);
    if (space->workload_count > 1)
        check_workloads(facts, space);
    return facts;
}

/* ---- values */

static struct sql_value integer(uint64_t n)
{
    return n <= INT64_MAX ? (struct sql_value){.type = SQL_INTEGER, .integer = (int64_t)n}
                          : (struct sql_value){.type = SQL_REAL, .real = (double)n};
}

static struct sql_value real(double x)
{
    return (struct sql_value){.type = SQL_REAL, .real = x};
}

static struct sql_value text(const char *text)
{
    return (struct sql_value){.type = text ? SQL_TEXT : SQL_NULL, .text = text};
}

static struct sql_value count_value(const struct model *model, enum count_of which)
{
    uint64_t sips = model->sips.n, cubes = sips * model->cube_rows.n * model->cube_cols.n;
    switch (which) {
    case COUNT_sips: return integer(sips);
    case COUNT_cubes: return integer(cubes);
    case COUNT_routers: return integer(cubes * model->plane_count * model->noc_rows.n * model->noc_cols.n);
    case COUNT_pes: return integer(cubes * model->pes.n);
    default: return integer(cubes * model->slices.n);
    }
}

/* The value of a number that the model has only as part of another one: it is read again. */
static struct sql_value written_value(const struct model *model, const struct key *key)
{
    const struct node *node = model->top;
    for (const char *at = key->path; node && *at; ) {
        size_t length = strcspn(at, ".");
        node = node_get(node, arena_text(at, length));
        at += length + (at[length] == '.');
    }
    if (!node) {
        struct source *source = arena_alloc(1, sizeof *source);
        *source = (struct source){key->path, key->standard, strlen(key->standard), 0};
        node = yaml_value(source, 0);
    }
    mpq_t value;
    mpq_init(value);
    const struct unit *unit = schema_unit(key);
    node_number(node, schema_dimension(key), unit, value);
    double number = mpq_get_d(value);
    mpq_clear(value);
    return real(unit ? number * (double)unit->down / (double)unit->up : number);
}

static struct sql_value key_value(const struct model *model, const struct key *key, size_t index)
{
    const char *words[8];
    const void *target = (const char *)model + key->target;
    const struct value *value = target;
    const struct unit *unit = schema_unit(key);
    switch (key->kind) {
    case KIND_length: case KIND_ratio: return written_value(model, key);
    case KIND_name: case KIND_resource: case KIND_impl: return text(((const struct text *)target)->text);
    case KIND_choice: return text(schema_words(key, words, COUNT_OF(words)) > value->n ? words[value->n] : NULL);
    case KIND_dtypes: return integer(value[index].n);
    case KIND_ops: return integer(model->ops[index].cost.n);
    case KIND_bandwidth: case KIND_size_limit: case KIND_count_limit:
        if (value->n == 0)
            return (struct sql_value){.type = SQL_NULL};       /* no limit */
        break;
    default: break;
    }
    return unit ? real((double)value->n * (double)unit->down / (double)unit->up) : integer(value->n);
}

struct sql_value fact_value(const struct fact *fact, const struct facts_of_point *point)
{
    switch (fact->of) {
    case FACT_COUNT: return count_value(point->machine->model, fact->index);
    case FACT_KEY: return key_value(point->machine->model, fact->key, fact->index);
    case FACT_PARAM: return point->params[fact->index];
    default: return (struct sql_value){.type = SQL_INTEGER, .integer = point->metrics[fact->index]};
    }
}
