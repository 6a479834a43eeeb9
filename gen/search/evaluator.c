/* evaluator.c: from a vector of levels to a stored result.
 *
 * A point's machine and expressions are computed twice, before its runs and after them: that takes less than to keep them
 * for all points under way. Finished trials are written in one transaction every now and then, so that two searches can
 * share a store. */
#include "evaluator.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"
#include "../../rt/common/hash.h"
#include "../../rt/common/json.h"
#include "../../rt/common/key_table.h"
#include "../build/build_key.h"
#include "../build/process.h"
#include "../build/timing.h"
#include "../emit.h"
#include "../replace.h"
#include "facts.h"

enum { HASH_CHARS = 32, BUCKETS = 4096, FLUSH_MS = 100, FLUSH_MOST = 2000, FIRST_TRIED = 1000 };

struct trial {
    struct trial *next;
    uint64_t number;
    uint32_t levels[];
};

/* A point under way, or a trial without one; and the trials that ask for it. */
struct point {
    char hash[HASH_CHARS + 1];                          /* "": conditions are not met */
    char stored[HASH_CHARS + 1];                        /* its hash in the store, once it is complete */
    bool is_known;                                      /* in the store */
    unsigned left;                                      /* runs without an answer */
    struct structure *structure;                        /* NULL: the machine is refused */
    char *status, *why;                                 /* once it is complete; malloc */
    char *used;                                         /* "0.tile_m=64,": what workload 0 has used instead of a parameter of the
                                                           first trial; NULL: what was asked for; malloc */
    int exit;
    uint64_t host_us;
    int64_t *metrics;                                   /* of a good one: all; of one of the store: those that it has */
    struct run *runs;                                   /* by workload; NULL: none */
    char **lines;
    struct trial *trials;
    struct point *next;                                 /* in its bucket */
    struct point *next_done;
};

struct evaluator {
    struct evaluator_options options;
    struct space *space;
    struct machines *machines;
    struct workloads *workloads;
    struct facts *facts;
    struct expressions *expressions;
    struct simulators_options simulators_options;
    struct simulators *simulators;
    struct store *store;
    int64_t search;
    struct metric_fact *metrics;                        /* of all workloads together, then of each if there are several */
    size_t metric_count;
    size_t *kept;                                       /* metrics that the store has */
    size_t kept_count;
    const char **columns;                               /* values, then kept metrics */
    size_t value_count;
    size_t *extra;                                      /* objectives that are neither metrics nor derived */
    size_t extra_count;
    struct point *buckets[BUCKETS];
    struct point *done, **done_end;
    size_t done_count, pending;
    struct key_table prepared;                          /* combinations of levels whose simulator is, or is being, built */
    double flushed_ms;
};

static void *or_die(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

/* ---- what a search is */

static const char *metric_name(const struct metric_fact *metric)
{
    return metric->workload ? arena_printf("%s.%s", metric->workload, metric->name) : metric->name;
}

static void list_metrics(struct evaluator *e)
{
    size_t several = e->space->workload_count > 1 ? e->space->workload_count : 0;
    e->metric_count = METRICS * (1 + several);
    e->metrics = arena_alloc(e->metric_count, sizeof *e->metrics);
    for (size_t i = 0; i < e->metric_count; i++)
        e->metrics[i] = (struct metric_fact){i < METRICS ? NULL : e->space->workloads[i / METRICS - 1].name,
                                             metric_names[i % METRICS]};
}

static bool is_kept(const struct evaluator *e, size_t metric)
{
    for (size_t i = 0; i < e->kept_count; i++)
        if (e->kept[i] == metric)
            return true;
    return false;
}

static void keep(struct evaluator *e, size_t metric)
{
    if (is_kept(e, metric))
        return;
    e->kept = arena_grow(e->kept, e->kept_count, sizeof *e->kept);
    e->kept[e->kept_count++] = metric;
}

/* The store has the metrics that expressions and objectives name, and a few more. */
static void choose_metrics(struct evaluator *e)
{
    static const enum metric always[] = {METRIC_end_ps, METRIC_gemm_flop, METRIC_peak_ppm, METRIC_events};
    for (size_t i = 0; i < COUNT_OF(always); i++)
        keep(e, always[i]);
    for (size_t i = METRICS; i < e->metric_count; i++)
        if (i % METRICS == METRIC_end_ps)
            keep(e, i);
    size_t count;
    const size_t *named = expressions_metrics(e->expressions, &count);
    for (size_t i = 0; i < count; i++)
        keep(e, e->facts->list[named[i]].index);
}

static bool is_column(const struct evaluator *e, const char *name, size_t columns)
{
    for (size_t i = 0; i < columns; i++)
        if (!strcmp(e->columns[i], name))
            return true;
    for (size_t i = 0; i < e->kept_count; i++)
        if (!strcmp(metric_name(&e->metrics[e->kept[i]]), name))
            return true;
    return false;
}

static void name_columns(struct evaluator *e)
{
    const struct space *space = e->space;
    size_t count = 0;
    e->columns = arena_alloc(space->axis_count + space->derive_count + space->objective_count + e->kept_count,
                             sizeof *e->columns);
    for (size_t i = 0; i < space->axis_count; i++)
        e->columns[count++] = space->axes[i].name;
    for (size_t i = 0; i < space->derive_count; i++)
        e->columns[count++] = space->derive[i].name;
    for (size_t i = 0; i < space->objective_count; i++)
        if (!is_column(e, space->objectives[i].name, count)) {
            e->extra = arena_grow(e->extra, e->extra_count, sizeof *e->extra);
            e->extra[e->extra_count++] = i;
            e->columns[count++] = space->objectives[i].name;
        }
    e->value_count = count;
    for (size_t i = 0; i < e->kept_count; i++)
        e->columns[count++] = metric_name(&e->metrics[e->kept[i]]);
}

/* The axes that a workload takes as parameters. */
static void write_workload_axes(struct json *json, const struct evaluator *e, size_t workload)
{
    size_t count;
    const struct param *params = workloads_params(e->workloads, &count);
    json_array(json, "axes");
    for (size_t i = 0; i < count; i++)
        if (params[i].workload == workload && params[i].axis >= 0)
            json_string(json, NULL, e->space->axes[params[i].axis].name);
    json_array_end(json);
}

static void write_workloads(struct json *json, const struct evaluator *e)
{
    const struct space *space = e->space;
    json_array(json, "workloads");
    for (size_t i = 0; i < space->workload_count; i++) {
        const struct workload *workload = &space->workloads[i];
        json_object(json, NULL);
        json_string(json, "name", workload->name);
        json_string(json, "bench", workload->bench);
        json_string(json, "replay", workload->stream);
        json_object(json, "params");
        for (size_t p = 0; workload->params && p < workload->params->count; p++)
            json_string(json, workload->params->entries[p].key->text, flow_text(workload->params->entries[p].value));
        json_object_end(json);
        json_u64(json, "weight", workload->weight);
        write_workload_axes(json, e, i);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_paths(struct json *json, const char *key, char *const *paths, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_string(json, NULL, paths[i]);
    json_array_end(json);
}

/* All levels; of a range too long to list, some that no other range has in common with it. */
static void write_levels(struct json *json, const struct axis *axis)
{
    const uint64_t some[] = {0, 1, axis->count / 2, axis->count - 1};
    json_array(json, "values");
    for (uint64_t i = 0; i < (axis->list ? axis->count : COUNT_OF(some)); i++)
        json_string(json, NULL, axis_text(axis, axis->list ? i : some[i]));
    json_array_end(json);
}

/* What a search is, as JSON. `levels`: with all levels of all axes, as the hash of the search takes it. */
static void write_about(struct json *json, const struct evaluator *e, bool levels)
{
    const struct space *space = e->space;
    json_array(json, "axes");
    for (size_t i = 0; i < space->axis_count; i++) {
        const struct axis *axis = &space->axes[i];
        json_object(json, NULL);
        json_string(json, "name", axis->name);
        json_u64(json, "levels", axis->count);
        json_bool(json, "ordered", axis->ordered);
        if (levels)
            write_levels(json, axis);
        json_object_end(json);
    }
    json_array_end(json);
    json_array(json, "derive");
    for (size_t i = 0; i < space->derive_count; i++) {
        json_object(json, NULL);
        json_string(json, "name", space->derive[i].name);
        json_string(json, "expression", space->derive[i].text);
        json_object_end(json);
    }
    json_array_end(json);
    json_array(json, "where");
    for (size_t i = 0; i < space->condition_count; i++)
        json_string(json, NULL, space->conditions[i].text);
    json_array_end(json);
    json_array(json, "objectives");
    for (size_t i = 0; i < space->objective_count; i++) {
        json_object(json, NULL);
        json_string(json, "name", space->objectives[i].name);
        json_string(json, "goal", space->objectives[i].largest ? "max" : "min");
        json_object_end(json);
    }
    json_array_end(json);
    write_workloads(json, e);
    json_string(json, "method", method_names[space->method.name]);
    json_u64(json, "seed", space->seed);
    if (levels) {
        for (size_t i = 0; i < METHOD_OPTIONS; i++)
            json_double(json, "option", space->method.number[i]);
        if (e->options.exact_points)
            json_u64(json, "points", space->budget_points);
        return;
    }
    if (space->method.name == METHOD_halving) {
        const struct axis *fidelity = &space->axes[(size_t)space->method.number[OPTION_halving_fidelity]];
        json_object(json, "fidelity");
        json_string(json, "name", fidelity->name);
        json_string(json, "value", axis_text(fidelity, fidelity->count - 1));
        json_object_end(json);
    }
    json_string(json, "path", space->source->path);
    json_array(json, "metrics");
    for (size_t i = 0; i < e->kept_count; i++)
        json_string(json, NULL, metric_name(&e->metrics[e->kept[i]]));
    json_array_end(json);
    write_paths(json, "kernels", space->kernels, space->kernel_count);
    write_paths(json, "impls", space->impls, space->impl_count);
}

static const char *about_text(const struct evaluator *e, bool levels)
{
    char *text;
    size_t length;
    struct json json;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        die("out of memory");
    json_open(&json, out);
    json.one_line = true;
    json_object(&json, NULL);
    write_about(&json, e, levels);
    json_object_end(&json);
    if (fclose(out))
        die("out of memory");
    const char *kept = arena_text(text, length);
    free(text);
    return kept;
}

/* The topology as one text: between its files there is a record separator, which no YAML text has. */
static const char *topology_text(const struct evaluator *e)
{
    enum { RECORD_SEPARATOR = 0x1e };
    struct number topology = machines_topology(e->machines);
    char *text = arena_alloc(topology.length + 1, 1);
    memcpy(text, topology.bytes, topology.length);
    for (size_t i = 0; i + 1 < topology.length; i++)
        if (!text[i])
            text[i] = RECORD_SEPARATOR;
    return text;
}

static void open_store(struct evaluator *e)
{
    const struct space *space = e->space;
    const char *topology = topology_text(e), *identity = about_text(e, true);
    struct hash *hash = hash_begin();
    hash_text(hash, identity);
    hash_text(hash, topology);
    hash_text(hash, fingerprint_of_home());
    for (size_t i = 0; i < space->kernel_count; i++)
        hash_file(hash, space->kernels[i]);
    for (size_t i = 0; i < space->impl_count; i++)
        hash_file(hash, space->impls[i]);
    for (size_t i = 0; i < METHOD_OPTIONS; i++)
        if (space->method.file[i])
            hash_file(hash, space->method.file[i]);
    for (size_t i = 0; i < space->workload_count; i++)
        if (space->workloads[i].stream)
            hash_file(hash, space->workloads[i].stream);
    const struct store_search search = {hash_end(hash), arena_text(space->source->text, space->source->length), topology,
                                        about_text(e, false), KBGEN_VERSION};
    e->store = store_open(e->options.store, e->options.is_shard);
    for (size_t i = 0; i < space->derive_count; i++) {
        const char *other = store_derived(e->store, space->derive[i].name, space->derive[i].text);
        if (other)
            error_at(space->derive[i].where, "%s has %s as another expression: %s", e->options.store,
                     space->derive[i].name, other);
    }
    errors_end();
    store_columns(e->store, e->columns, e->value_count, e->kept_count);
    e->search = store_search(e->store, &search);
    store_commit(e->store);
}

/* Finds a machine that is not refused, and asks its simulator for its benches. */
static void read_listing(struct evaluator *e)
{
    struct machine machine = {.refused = "it has no machine"};
    uint32_t *levels = arena_alloc(e->space->axis_count + 1, sizeof *levels);
    for (uint64_t i = 0; i < FIRST_TRIED && machine.refused; i++) {
        uint64_t rest = i;
        for (size_t a = e->space->axis_count; a-- > 0; rest /= e->space->axes[a].count)
            levels[a] = (uint32_t)(rest % e->space->axes[a].count);
        if (i && rest)
            break;
        machine = machine_of(e->machines, levels);
    }
    if (machine.refused)
        usage_error("%s: its first machines are all refused: %s", e->space->source->path, machine.refused);
    struct process list = {.what = "list"};
    size_t length;
    words_add(&list.words, simulators_program(e->simulators, machine.structure));
    words_add(&list.words, "list");
    words_add(&list.words, "--json");
    const char *text = process_output(&list, &length);
    if (list.status)
        die("%s list --json has ended with status %d", list.words.word[0], list.status);
    e->workloads = workloads_begin(e->space, text, length);
    e->simulators_options.workloads = e->workloads;
}

struct evaluator *evaluator_begin(const struct evaluator_options *options)
{
    struct evaluator *e = arena_alloc(1, sizeof *e);
    e->options = *options;
    e->space = options->space;
    e->done_end = &e->done;
    store_check(options->store);
    e->machines = machines_begin(e->space);
    errors_end();
    e->simulators_options = (struct simulators_options){
        .machines = e->machines, .space = e->space, .folder = options->folder, .jobs = options->jobs,
        .copies = options->copies, .time_limit = options->time_limit, .memory_limit = options->memory_limit, .patience_s = options->patience_s};
    e->simulators = simulators_begin(&e->simulators_options);
    read_listing(e);
    errors_end();
    list_metrics(e);
    e->facts = facts_of(e->space, e->workloads, e->metrics, e->metric_count);
    errors_end();
    e->expressions = expressions_begin(e->space, e->facts);
    errors_end();
    choose_metrics(e);
    name_columns(e);
    open_store(e);
    e->flushed_ms = now_ms();
    return e;
}

/* ---- points under way */

static struct point **bucket(struct evaluator *e, const char *hash)
{
    char digits[] = {hash[0], hash[1], hash[2], 0};
    return &e->buckets[strtoul(digits, NULL, 16) % BUCKETS];
}

static struct point *under_way(struct evaluator *e, const char *hash)
{
    struct point *point = *bucket(e, hash);
    while (point && strcmp(point->hash, hash))
        point = point->next;
    return point;
}

static void add_trial(struct evaluator *e, struct point *point, uint64_t number, const uint32_t *levels)
{
    size_t bytes = e->space->axis_count * sizeof *levels;
    struct trial *trial = or_die(malloc(sizeof *trial + bytes));
    trial->number = number;
    memcpy(trial->levels, levels, bytes);
    struct trial **end = &point->trials;
    while (*end)
        end = &(*end)->next;
    trial->next = NULL;
    *end = trial;
    e->pending++;
}

static void complete(struct evaluator *e, struct point *point)
{
    point->next_done = NULL;
    *e->done_end = point;
    e->done_end = &point->next_done;
    e->done_count++;
}

static char *kept_text(const char *text)
{
    return text ? or_die(strdup(text)) : NULL;
}

static struct point *new_point(struct evaluator *e, const char *hash)
{
    struct point *point = or_die(calloc(1, sizeof *point));
    point->exit = -1;
    if (!hash)
        return point;
    strcpy(point->hash, hash);
    point->next = *bucket(e, hash);
    *bucket(e, hash) = point;
    return point;
}

static void free_point(struct evaluator *e, struct point *point)
{
    if (*point->hash) {
        struct point **at = bucket(e, point->hash);
        while (*at != point)
            at = &(*at)->next;
        *at = point->next;
    }
    for (size_t i = 0; point->runs && i < e->space->workload_count; i++) {
        free(point->runs[i].status);
        free(point->runs[i].why);
        free(point->runs[i].used);
        free(point->lines[i]);
    }
    for (struct trial *trial = point->trials, *next; trial; trial = next) {
        next = trial->next;
        free(trial);
        e->pending--;
    }
    free(point->runs);
    free(point->lines);
    free(point->metrics);
    free(point->status);
    free(point->why);
    free(point->used);
    free(point);
}

/* Takes a point from the store. Returns false if it is not there. */
static bool find_stored(struct evaluator *e, struct point *point)
{
    int64_t *kept = arena_alloc(e->kept_count, sizeof *kept);
    struct store_point stored = {.metrics = kept};
    if (!store_point(e->store, point->hash, &stored))
        return false;
    point->is_known = true;
    point->status = kept_text(stored.status);
    point->why = kept_text(stored.why);
    if (strcmp(stored.status, "ok"))
        return true;
    point->metrics = or_die(calloc(e->metric_count, sizeof *point->metrics));
    for (size_t i = 0; i < e->kept_count; i++)
        point->metrics[e->kept[i]] = kept[i];
    return true;
}

static void begin_runs(struct evaluator *e, struct point *point, const struct machine *machine, const uint32_t *levels)
{
    unsigned count = (unsigned)e->space->workload_count;
    point->structure = machine->structure;
    point->runs = or_die(calloc(count, sizeof *point->runs));
    point->lines = or_die(calloc(count, sizeof *point->lines));
    point->left = count;
    for (unsigned i = 0; i < count; i++) {
        point->lines[i] = kept_text(workload_line(e->workloads, i, levels, machine));
        point->runs[i].line = point->lines[i];
        point->runs[i].owner = point;
        simulators_add(e->simulators, machine->structure, i, &point->runs[i]);
    }
}

/* Whether the conditions that need no metrics are met. */
static bool may_run(struct evaluator *e, const struct machine *machine, const struct sql_value *params)
{
    struct judgement judgement = expressions_before(e->expressions, &(struct facts_of_point){machine, params, NULL});
    return !judgement.violated && !judgement.failed;
}

void evaluator_prepare(struct evaluator *e, const uint32_t *levels)
{
    uint64_t combination = machines_combination(e->machines, levels);
    if (key_table_find(&e->prepared, combination))
        return;
    struct arena_mark mark = arena_mark();
    struct machine machine = machine_of(e->machines, levels);
    bool needed = !machine.refused && may_run(e, &machine, workload_values(e->workloads, levels));
    if (needed)
        simulators_prepare(e->simulators, machine.structure);
    arena_release(mark);
    if (needed)
        key_table_add(&e->prepared, arena_alloc(1, sizeof(struct key_link)), combination);
}

void evaluator_add(struct evaluator *e, uint64_t number, const uint32_t *levels)
{
    struct arena_mark mark = arena_mark();
    struct machine machine = machine_of(e->machines, levels);
    const struct sql_value *params = workload_values(e->workloads, levels);
    bool runs = machine.refused || may_run(e, &machine, params);
    const char *hash = runs ? point_hash(e->workloads, &machine, params) : NULL, *same = NULL, *used = NULL;
    if (hash && (same = store_alias(e->store, hash, &used)))
        hash = same;
    struct point *point = hash ? under_way(e, hash) : NULL;
    if (!point) {
        point = new_point(e, hash);
        point->used = kept_text(used);
        if (!hash || find_stored(e, point)) {
            complete(e, point);
        } else if (machine.refused) {
            point->status = kept_text("refused");
            point->why = kept_text(machine.refused);
            complete(e, point);
        } else {
            begin_runs(e, point, &machine, levels);
        }
    }
    add_trial(e, point, number, levels);
    arena_release(mark);
}

/* ---- results */

/* Sums over workloads, by their weights; then the metrics of each workload. */
static void sum_metrics(const struct evaluator *e, struct point *point)
{
    point->metrics = or_die(calloc(e->metric_count, sizeof *point->metrics));
    for (size_t w = 0; w < e->space->workload_count; w++)
        for (size_t m = 0; m < METRICS; m++) {
            int64_t metric = point->runs[w].metrics[m];
            point->metrics[m] += metric * (int64_t)e->space->workloads[w].weight;
            if (e->metric_count > METRICS)
                point->metrics[(w + 1) * METRICS + m] = metric;
        }
}

static void note_used(const struct evaluator *e, struct point *point)
{
    const char *all = "";
    for (size_t w = 0; w < e->space->workload_count; w++)
        for (const char *at = point->runs[w].used, *next; at && *at; at = next) {
            next = strchr(at, ',') + 1;
            all = arena_printf("%s%zu.%.*s", all, w, (int)(next - at), at);
        }
    if (*all)
        point->used = kept_text(all);
}

/* A point fails as the first of its workloads does. */
static void runs_ended(struct evaluator *e, struct point *point)
{
    note_used(e, point);
    for (size_t w = 0; w < e->space->workload_count; w++)
        point->host_us += point->runs[w].host_us;
    for (size_t w = 0; w < e->space->workload_count; w++) {
        const struct run *run = &point->runs[w];
        point->exit = run->exit;
        if (!strcmp(run->status, "ok"))
            continue;
        point->status = kept_text(run->status);
        const char *why = run->why ? run->why : run->status;
        point->why = kept_text(e->space->workload_count > 1 ? arena_printf("%s: %s", e->space->workloads[w].name, why) : why);
        return;
    }
    point->status = kept_text("ok");
    sum_metrics(e, point);
}

/* A level as a value of a column: a number if it is one. */
static struct sql_value level_value(const struct axis *axis, uint32_t level)
{
    const char *text = axis_text(axis, level);
    char *end;
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (*text && !*end && !errno)
        return (struct sql_value){SQL_INTEGER, integer, 0, NULL};
    double real = strtod(text, &end);
    if (*text && !*end && strspn(text, "0123456789+-.eE") == strlen(text))
        return (struct sql_value){SQL_REAL, 0, real, NULL};
    return (struct sql_value){SQL_TEXT, 0, 0, text};
}

/* Of trials that are one point, whichever comes first writes the columns: a parameter that is a number is in them as the
 * first workload that takes it has used it. */
static const struct sql_value *values_of(const struct evaluator *e, const uint32_t *levels, const struct sql_value *used,
                                         const struct judgement *judgement)
{
    const struct space *space = e->space;
    struct sql_value *values = arena_alloc(e->value_count, sizeof *values);
    size_t count = 0, param_count;
    const struct param *params = workloads_params(e->workloads, &param_count);
    for (size_t i = 0; i < space->axis_count; i++)
        values[count++] = level_value(&space->axes[i], levels[i]);
    for (size_t i = param_count; i-- > 0;)
        if (params[i].axis >= 0 && space->axes[params[i].axis].ordered && used[i].type == SQL_INTEGER)
            values[params[i].axis] = used[i];
    for (size_t i = 0; i < space->derive_count; i++, count++)
        if (judgement)
            values[count] = judgement->derived[i];
    for (size_t i = 0; i < e->extra_count; i++, count++)
        if (judgement && !judgement->failed) {
            const struct objective *objective = &space->objectives[e->extra[i]];
            double number = judgement->objectives[e->extra[i]];
            values[count] = (struct sql_value){SQL_REAL, 0, objective->largest ? -number : number, NULL};
        }
    return values;
}

/* The values of all parameters as the benches have used them: larger tiles than a matrix are all the same. */
static struct sql_value *values_used(const struct evaluator *e, const struct point *point)
{
    struct sql_value *values = workload_values(e->workloads, point->trials->levels);
    for (const char *at = point->used; at && *at; at = strchr(at, ',') + 1) {
        char *name;
        unsigned workload = (unsigned)strtoul(at, &name, 10);
        const char *equals = strchr(++name, '=');
        workload_use(e->workloads, workload, arena_text(name, (size_t)(equals - name)), strtoull(equals + 1, NULL, 10), values);
    }
    return values;
}

/* Returns the hash of the runs with the parameters that were used. The hash that was asked for becomes another name of it. */
static const char *hash_as_used(struct evaluator *e, const struct point *point, const struct sql_value *used)
{
    if (!point->used || point->is_known)
        return point->hash;
    struct machine machine = machine_of(e->machines, point->trials->levels);
    const char *hash = point_hash(e->workloads, &machine, used);
    store_put_alias(e->store, point->hash, hash, point->used);
    return hash;
}

static void judge(struct evaluator *e, const struct point *point, const uint32_t *levels, const struct sql_value *params,
                  struct judgement *judgement)
{
    struct machine machine = machine_of(e->machines, levels);
    struct facts_of_point facts = {&machine, params, NULL};
    *judgement = expressions_before(e->expressions, &facts);
    facts.metrics = point->metrics;
    if (point->metrics)
        expressions_after(e->expressions, &facts, judgement);
}

static void put_point(struct evaluator *e, const struct point *point, const struct sql_value *used, const struct judgement *judgement)
{
    int64_t *kept = arena_alloc(e->kept_count, sizeof *kept);
    for (size_t i = 0; point->metrics && i < e->kept_count; i++)
        kept[i] = point->metrics[e->kept[i]];
    store_put_point(e->store, &(struct store_point){
        point->stored, point->structure ? point->structure->name : NULL, point->status, point->why, point->exit, point->host_us,
        values_of(e, point->trials->levels, used, judgement), kept});
}

/* Stores a trial, with its point the first time, and hands its result on. All trials of a point are judged by the parameters
 * that its runs have used, which are what the store has. */
static void end_trial(struct evaluator *e, const struct point *point, const struct trial *trial, const struct sql_value *used)
{
    struct arena_mark mark = arena_mark();
    bool first = trial == point->trials;
    struct result result = {.number = trial->number, .levels = trial->levels, .hash = *point->hash ? point->stored : NULL,
                            .is_known = point->is_known || !first, .metrics = point->metrics};
    struct judgement judgement = {0};
    if (!*point->hash || point->metrics) {
        judge(e, point, trial->levels, used, &judgement);
        result.judgement = &judgement;
    }
    bool is_infeasible = result.judgement && (judgement.violated || judgement.failed);
    result.status = is_infeasible ? "infeasible" : point->status;
    result.why = is_infeasible ? judgement.why : point->why;
    if (*point->hash && first && !point->is_known)
        put_point(e, point, used, result.judgement);
    store_put_trial(e->store, &(struct store_trial){
        e->search, trial->number, result.hash, is_infeasible ? result.status : NULL, is_infeasible ? result.why : NULL,
        trial->levels, e->space->axis_count});
    if (e->options.ended)
        e->options.ended(&result, e->options.arg);
    arena_release(mark);
}

void evaluator_flush(struct evaluator *e)
{
    struct point *first = e->done;
    if (!first)
        return;
    store_begin(e->store);
    for (struct point *point = first; point; point = point->next_done) {
        struct arena_mark mark = arena_mark();
        const struct sql_value *used = values_used(e, point);
        strcpy(point->stored, hash_as_used(e, point, used));
        for (const struct trial *trial = point->trials; trial; trial = trial->next)
            end_trial(e, point, trial, used);
        arena_release(mark);
    }
    store_commit(e->store);
    e->done = NULL;
    e->done_end = &e->done;
    e->done_count = 0;
    e->flushed_ms = now_ms();
    for (struct point *next; first; first = next) {
        next = first->next_done;
        free_point(e, first);
    }
}

void evaluator_turn(struct evaluator *e, int other, int wait_ms)
{
    struct run_list done = {0};
    struct arena_mark mark = arena_mark();
    if (e->done && wait_ms > FLUSH_MS)
        wait_ms = FLUSH_MS;
    simulators_turn(e->simulators, other, wait_ms, &done);
    for (struct run *run; (run = run_list_take(&done));) {
        struct point *point = run->owner;
        if (--point->left == 0) {
            runs_ended(e, point);
            complete(e, point);
        }
    }
    struct simulators_load load = simulators_load(e->simulators);
    bool is_idle = !load.waiting && !load.running && !load.builds;
    if (is_idle || e->done_count >= FLUSH_MOST || now_ms() - e->flushed_ms > FLUSH_MS)
        evaluator_flush(e);
    arena_release(mark);
}

size_t evaluator_pending(const struct evaluator *e)
{
    return e->pending;
}

bool evaluator_drains(struct evaluator *e)
{
    simulators_drain(e->simulators);
    return simulators_load(e->simulators).running;
}

struct simulators_load evaluator_load(const struct evaluator *e)
{
    return simulators_load(e->simulators);
}

struct evaluator_store evaluator_store(const struct evaluator *e)
{
    return (struct evaluator_store){e->store, e->search};
}

const size_t *evaluator_kept(const struct evaluator *e, size_t *count)
{
    *count = e->kept_count;
    return e->kept;
}

const char *evaluator_metric(const struct evaluator *e, size_t metric)
{
    return metric < e->metric_count ? metric_name(&e->metrics[metric]) : NULL;
}

/* Runs a point once more, verified, until it is complete. */
static void run_verified(struct evaluator *e, struct point *point, const uint32_t *levels)
{
    size_t count = e->space->workload_count;
    struct simulators_options *options = arena_alloc(1, sizeof *options);
    *options = e->simulators_options;
    options->verifies = true;
    struct machine machine = machine_of(e->machines, levels);
    struct simulators *simulators = simulators_begin(options);
    point->runs = or_die(calloc(count, sizeof *point->runs));
    point->lines = or_die(calloc(count, sizeof *point->lines));
    for (unsigned i = 0; i < count; i++) {
        point->runs[i].line = point->lines[i] = kept_text(workload_line(e->workloads, i, levels, &machine));
        simulators_add(simulators, machine.structure, i, &point->runs[i]);
    }
    for (struct run_list done = {0}; done.count < count;)
        simulators_turn(simulators, -1, 1000, &done);
    simulators_end(simulators);
    runs_ended(e, point);
}

/* Whether a point has the metrics that the store has. */
static bool has_stored_metrics(const struct evaluator *e, const struct point *point, const struct point *stored)
{
    for (size_t i = 0; i < e->kept_count; i++)
        if (point->metrics[e->kept[i]] != stored->metrics[e->kept[i]])
            return false;
    return true;
}

bool evaluator_verify(struct evaluator *e, const char *hash)
{
    uint32_t *levels = arena_alloc(e->space->axis_count + 1, sizeof *levels);
    struct point *point = new_point(e, NULL), *stored = new_point(e, hash);
    if (!store_levels(e->store, e->search, hash, levels, e->space->axis_count) || !find_stored(e, stored))
        die("store %s: it has no trial of point %s", e->options.store, hash);
    run_verified(e, point, levels);
    struct store_verified verified = {.hash = hash, .status = point->status, .why = point->why, .max_err = NAN};
    for (size_t i = 0; i < e->space->workload_count; i++)
        verified.max_err = fmax(verified.max_err, point->runs[i].max_err);
    if (point->metrics && !has_stored_metrics(e, point, stored)) {
        verified.status = "different";
        verified.why = "the metrics are not those of the run before";
    }
    store_put_verified(e->store, &verified);
    store_commit(e->store);
    bool is_right = !strcmp(verified.status, "ok");
    free_point(e, point);
    free_point(e, stored);
    return is_right;
}

void evaluator_end(struct evaluator *e)
{
    simulators_end(e->simulators);
    evaluator_flush(e);
    store_close(e->store);
    expressions_end(e->expressions);
}
