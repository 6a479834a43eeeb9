/* space.c: a space file, read and checked as far as no topology and no simulator is needed.
 *
 * Every function reports all errors that it finds and goes on. */
#include "space.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/path_error.h"
#include "../../rt/common/read.h"
#include "../../rt/common/yaml.h"
#include "../words.h"

enum { AXES_MOST = 1000, EXPRESSIONS_MOST = 200, OBJECTIVES_MOST = 16, WORKLOADS_MOST = 64, WEIGHT_MOST = 1000000 };

static const char topology_key[] = "topology", impls_key[] = "impls", kernels_key[] = "kernels", bench_key[] = "bench",
    params_key[] = "params", replay_key[] = "replay", workloads_key[] = "workloads", space_key[] = "space",
    derive_key[] = "derive", where_key[] = "where", objectives_key[] = "objectives", method_key[] = "method",
    budget_key[] = "budget", seed_key[] = "seed", name_key[] = "name", weight_key[] = "weight", points_key[] = "points",
    hours_key[] = "hours";

/* Reports more entries than there may be. */
static bool is_few(const struct node *node, const char *what, size_t most)
{
    if (node->count > most)
        error_at(node->where, "%s has %zu entries; at most %zu are searched", what, node->count, most);
    return node->count <= most;
}

/* ---- files */

/* A path of the space file as this process opens it. */
static const char *resolve(const struct space *space, const char *path)
{
    const char *slash = strrchr(space->source->path, '/');
    if (*path == '/' || !slash)
        return path;
    return arena_printf("%.*s/%s", (int)(slash - space->source->path), space->source->path, path);
}

/* Reads the path of a file, which must be there. Returns NULL after an error. */
static const char *read_path(const struct space *space, const struct node *node, const char *what)
{
    const char *text;
    if (!node_string(node, what, &text))
        return NULL;
    const char *path = resolve(space, text);
    if (access(path, R_OK) == 0)
        return path;
    error_at(node->where, "cannot read '%s': %s", path, path_error(path));
    return NULL;
}

static void read_paths(const struct space *space, const struct node *node, const char *what, char ***paths, size_t *count)
{
    if (!node || !node_is(node, NODE_SEQUENCE, what))
        return;
    for (size_t i = 0; i < node->count; i++) {
        const char *path = read_path(space, node->items[i], what);
        *paths = arena_grow(*paths, *count, sizeof **paths);
        if (path)
            (*paths)[(*count)++] = (char *)path;
    }
}

/* ---- workloads */

/* The name of a file without its folder and its ending, as an identifier. */
static const char *stem(const char *path)
{
    const char *base = base_name(path);
    char *name = arena_text(base, strcspn(base, "."));
    for (char *at = name; *at; at++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", *at))
            *at = '_';
    return is_identifier(name) ? name : arena_printf("_%s", name);
}

/* Reads a workload from a mapping, which may be the whole file. */
static void read_workload(struct space *space, const struct node *node, struct workload *workload)
{
    const struct node *bench = node_get(node, bench_key), *replay = node_get(node, replay_key);
    *workload = (struct workload){.weight = 1, .where = node->where, .params = node_get(node, params_key)};
    if (!bench == !replay) {
        error_at(bench ? replay->where : node->where, "a workload is a 'bench' or a stream to 'replay'%s",
                 bench ? ", not both" : "; one of these keys must be given");
        return;
    }
    workload->where = bench ? bench->where : replay->where;
    if (bench && node_string(bench, bench_key, &workload->bench))
        workload->name = workload->bench;
    if (replay && (workload->stream = read_path(space, replay, replay_key)))
        workload->name = stem(workload->stream);
    if (workload->params && !node_is(workload->params, NODE_MAPPING, params_key))
        workload->params = NULL;
    if (workload->params && replay)
        error_at(workload->params->where, "a stream has no parameters");
}

static void read_workload_entry(struct space *space, const struct node *node, struct workload *workload)
{
    static const char *const names[] = {name_key, bench_key, replay_key, params_key, weight_key};
    const struct node *name = node_get(node, name_key), *weight = node_get(node, weight_key);
    node_check_keys(node, "a workload", names, COUNT_OF(names));
    read_workload(space, node, workload);
    if (name)
        node_identifier(name, name_key, &workload->name);
    if (weight)
        node_u64(weight, weight_key, 1, WEIGHT_MOST, &workload->weight);
}

static void check_workload_names(const struct space *space)
{
    for (size_t i = 0; i < space->workload_count; i++)
        for (size_t j = 0; j < i && space->workloads[i].name; j++)
            if (space->workloads[j].name && !strcmp(space->workloads[i].name, space->workloads[j].name)) {
                error_at(space->workloads[i].where, "another workload has the name '%s'", space->workloads[i].name);
                note_at(space->workloads[i].where, "give it one: { name: prefill, bench: ..., ... }");
                break;
            }
}

static void read_workloads(struct space *space, const struct node *top)
{
    const struct node *list = node_get(top, workloads_key);
    if (!list) {
        space->workloads = arena_alloc(1, sizeof *space->workloads);
        space->workload_count = 1;
        read_workload(space, top, space->workloads);
        return;
    }
    for (size_t i = 0; i < top->count; i++) {
        const struct node *key = top->entries[i].key;
        if (!strcmp(key->text, bench_key) || !strcmp(key->text, params_key) || !strcmp(key->text, replay_key))
            error_at(key->where, "'%s' belongs into each of the workloads", key->text);
    }
    if (!node_is(list, NODE_SEQUENCE, workloads_key) || !is_few(list, workloads_key, WORKLOADS_MOST))
        return;
    if (list->count == 0)
        error_at(list->where, "workloads is empty");
    space->workloads = arena_alloc(list->count, sizeof *space->workloads);
    for (size_t i = 0; i < list->count; i++)
        if (node_is(list->items[i], NODE_MAPPING, "a workload"))
            read_workload_entry(space, list->items[i], &space->workloads[space->workload_count++]);
    check_workload_names(space);
}

/* ---- the space */

/* Reports two keys of which one is within the other one. */
static void check_overlap(const struct space *space)
{
    for (size_t i = 0; i < space->axis_count; i++)
        for (size_t j = 0; j < space->axis_count; j++) {
            const struct axis *outer = &space->axes[i], *inner = &space->axes[j];
            size_t length = strlen(outer->name);
            if (strncmp(inner->name, outer->name, length) || inner->name[length] != '.' || outer->param)
                continue;
            error_at(inner->where, "%s is part of another key of the space", inner->name);
            note_at(outer->where, "this one");
        }
}

static void read_axes(struct space *space, const struct node *top)
{
    const struct node *node = node_get(top, space_key);
    space->size = 1;
    if (!node) {
        error_at(top->where, "space must be given: the keys that differ from point to point, with their values");
        return;
    }
    if (!node_is(node, NODE_MAPPING, space_key) || !is_few(node, space_key, AXES_MOST))
        return;
    if (node->count == 0)
        error_at(node->where, "space has no keys");
    space->axes = arena_alloc(node->count, sizeof *space->axes);
    for (size_t i = 0; i < node->count; i++) {
        struct axis *axis = &space->axes[space->axis_count++];
        if (axis_read(axis, node->entries[i].key, node->entries[i].value)
            && (__builtin_mul_overflow(space->size, axis->count, &space->size) || space->size > SPACE_HUGE))
            space->size = SPACE_HUGE;
    }
    check_overlap(space);
}

/* ---- expressions */

static bool read_expression(const struct node *node, const char *what, struct expression_text *out)
{
    bool good = node_is(node, NODE_SCALAR, what) && !node->broken;
    if (good && (node_is_nothing(node) || node_is_null(node))) {
        error_expected(node, what, "an expression", NULL);
        good = false;
    }
    *out = (struct expression_text){.text = good ? node->text : NULL, .where = node->where};
    return good;
}

static void read_derive(struct space *space, const struct node *node)
{
    if (!node || !node_is(node, NODE_MAPPING, derive_key) || !is_few(node, derive_key, EXPRESSIONS_MOST))
        return;
    space->derive = arena_alloc(node->count, sizeof *space->derive);
    for (size_t i = 0; i < node->count; i++) {
        const struct node *key = node->entries[i].key;
        struct expression_text *out = &space->derive[space->derive_count];
        const char *name;
        bool good = node_identifier(key, "the name of a derived value", &name);
        if (!read_expression(node->entries[i].value, arena_printf("derive: %s", key->text), out) || !good)
            continue;
        out->name = name;
        out->name_where = key->where;
        space->derive_count++;
    }
}

static void read_conditions(struct space *space, const struct node *node)
{
    if (!node || !is_few(node, where_key, EXPRESSIONS_MOST))
        return;
    bool is_list = node->type == NODE_SEQUENCE;
    size_t count = is_list ? node->count : 1;
    space->conditions = arena_alloc(count, sizeof *space->conditions);
    for (size_t i = 0; i < count; i++)
        if (read_expression(is_list ? node->items[i] : node, where_key, &space->conditions[space->condition_count]))
            space->condition_count++;
}

static void read_objectives(struct space *space, const struct node *top)
{
    static const char *const goals[] = {"min", "max"};
    const struct node *node = node_get(top, objectives_key);
    if (!node) {
        error_at(top->where, "objectives must be given: { end_ps: min }");
        return;
    }
    if (!node_is(node, NODE_MAPPING, objectives_key) || !is_few(node, objectives_key, OBJECTIVES_MOST))
        return;
    if (node->count == 0)
        error_at(node->where, "objectives is empty: { end_ps: min }");
    space->objectives = arena_alloc(node->count, sizeof *space->objectives);
    for (size_t i = 0; i < node->count; i++) {
        const struct node *key = node->entries[i].key;
        unsigned goal = 0;
        node_choice(node->entries[i].value, arena_printf("objectives: %s", key->text), goals, COUNT_OF(goals), &goal);
        space->objectives[space->objective_count++] = (struct objective){key->text, goal == 1, key->where};
    }
}

/* ---- method */

const char *const method_names[METHODS] = {
#define METHOD(name, order, budget, doc) #name,
#include "methods.def"
};

const enum method_order method_orders[METHODS] = {
#define METHOD(name, order, budget, doc) ORDER_##order,
#include "methods.def"
};

const enum method_budget method_budgets[METHODS] = {
#define METHOD(name, order, budget, doc) BUDGET_##budget,
#include "methods.def"
};

static const char all_methods[] =
#define METHOD(name, order, budget, doc) ", " #name
#include "methods.def"
;

const struct method_option_row method_options[METHOD_OPTIONS] = {
#define OPTION(method, name, kind, least, most, standard, doc)                                                         \
    {METHOD_##method, #name, OPTION_KIND_##kind, least, most, standard},
#include "methods.def"
};

/* Reads a number that may be a fraction. */
static bool read_real(const struct node *node, const char *what, double least, double most, double *out)
{
    mpq_t value;
    mpq_init(value);
    const char *why = node_number(node, DIMENSION_none, NULL, value);
    *out = mpq_get_d(value);
    mpq_clear(value);
    bool good = !why && *out >= least && *out <= most;
    if (!good)
        error_expected(node, what, arena_printf("a number from %.9g to %.9g", least, most), why);
    return good;
}

static void read_axis_name(const struct space *space, const struct node *node, const char *what, double *out)
{
    const char *name, **names = arena_alloc(space->axis_count + 1, sizeof *names);
    if (!node_string(node, what, &name))
        return;
    for (size_t i = 0; i < space->axis_count; i++) {
        names[i] = space->axes[i].name;
        *out = (double)i;
        if (!strcmp(name, names[i]))
            return;
    }
    error_at(node->where, "%s must be a key of the space, not '%s'", what, name);
    const char *nearest = nearest_name(name, names, space->axis_count);
    if (nearest)
        note_at(node->where, "did you mean '%s'?", nearest);
}

static void read_method_option(struct space *space, enum method_option i, const struct node *node)
{
    const struct method_option_row *row = &method_options[i];
    struct method_choice *choice = &space->method;
    uint64_t count = 0;
    choice->number[i] = row->standard;
    if (!node) {
        if (row->kind == OPTION_KIND_file || row->kind == OPTION_KIND_axis)
            error_at(choice->where, "the method %s needs '%s'", method_names[row->method], row->name);
        return;
    }
    switch (row->kind) {
    case OPTION_KIND_count:
        if (node_u64(node, row->name, (uint64_t)row->least, (uint64_t)row->most, &count))
            choice->number[i] = (double)count;
        break;
    case OPTION_KIND_real: read_real(node, row->name, row->least, row->most, &choice->number[i]); break;
    case OPTION_KIND_file: choice->file[i] = read_path(space, node, row->name); break;
    case OPTION_KIND_axis: read_axis_name(space, node, row->name, &choice->number[i]); break;
    }
}

static void read_method_options(struct space *space, const struct node *node)
{
    const char *names[METHOD_OPTIONS + 1] = {name_key};
    size_t count = 1;
    for (enum method_option i = 0; i < METHOD_OPTIONS; i++)
        if (method_options[i].method == space->method.name) {
            names[count++] = method_options[i].name;
            read_method_option(space, i, node_get(node, method_options[i].name));
        }
    node_check_keys(node, arena_printf("the method %s", method_names[space->method.name]), names, count);
}

static void read_method(struct space *space, const struct node *top, const struct node *node)
{
    unsigned name;
    if (!node) {
        error_at(top->where, "method must be given: one of %s", all_methods + strlen(", "));
        return;
    }
    const struct node *word = node->type == NODE_MAPPING ? node_get(node, name_key) : node;
    if (!word)
        error_at(node->where, "the method has no name: { name: nsga2, population: 64 }");
    if (!word || !node_choice(word, method_key, method_names, METHODS, &name))
        return;
    space->method.name = name;
    space->method.where = word->where;
    read_method_options(space, node);
}

static void read_budget(struct space *space, const struct node *node)
{
    static const char *const names[] = {points_key, hours_key};
    if (!node || !node_is(node, NODE_MAPPING, budget_key))
        return;
    const struct node *points = node_get(node, points_key), *hours = node_get(node, hours_key);
    node_check_keys(node, budget_key, names, COUNT_OF(names));
    if (points)
        node_u64(points, points_key, 1, SPACE_HUGE, &space->budget_points);
    if (hours)
        read_real(hours, hours_key, 1e-6, 1e6, &space->budget_hours);
}

void space_check_budget(const struct space *space)
{
    enum method_budget needs = method_budgets[space->method.name];
    if (!space->method.where.file || needs == BUDGET_NONE || space->budget_points)
        return;
    if (needs == BUDGET_POINTS || space->budget_hours == 0)
        error_at(space->method.where, "the method %s needs a budget: { points: 1000 }%s", method_names[space->method.name],
                 needs == BUDGET_POINTS ? "" : " or { hours: 2 }");
}

/* ---- the file */

static void read_top(struct space *space, const struct node *top, const char *method)
{
    static const char *const names[] = {topology_key, impls_key, kernels_key, bench_key, params_key, replay_key,
                                        workloads_key, space_key, derive_key, where_key, objectives_key, method_key,
                                        budget_key, seed_key};
    const struct node *topology = node_get(top, topology_key), *seed = node_get(top, seed_key);
    node_check_keys(top, "a space", names, COUNT_OF(names));
    if (topology) {
        space->topology_where = topology->where;
        space->topology = read_path(space, topology, topology_key);
    } else {
        error_at(top->where, "topology must be given");
    }
    if (node_get(top, impls_key))
        read_paths(space, node_get(top, impls_key), impls_key, &space->impls, &space->impl_count);
    if (node_get(top, kernels_key))
        read_paths(space, node_get(top, kernels_key), kernels_key, &space->kernels, &space->kernel_count);
    read_workloads(space, top);
    read_axes(space, top);
    read_derive(space, node_get(top, derive_key));
    read_conditions(space, node_get(top, where_key));
    read_objectives(space, top);
    if (method) {
        struct source *option = arena_alloc(1, sizeof *option);
        *option = (struct source){"--method", method, strlen(method), 0};
        read_method(space, top, yaml_value(option, 0));
    } else {
        read_method(space, top, node_get(top, method_key));
    }
    read_budget(space, node_get(top, budget_key));
    if (seed)
        node_u64(seed, seed_key, 0, UINT64_MAX, &space->seed);
}

struct space *space_read(const char *path, const char *method)
{
    struct space *space = arena_alloc(1, sizeof *space);
    *space = (struct space){.source = source_given(path), .seed = 1};
    const struct node *top = yaml_document(space->source);
    if (!top || !node_is(top, NODE_MAPPING, "a space"))
        return NULL;
    read_top(space, top, method);
    return space;
}
