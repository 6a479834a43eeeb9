/* sweep.c: run after run in one process, each on a simulator that was reset.
 *
 * A point is a JSON object such as {"rows": 4096, "--seed": 7, "--set": {"cube.noc.link_bw_gbs": 512}}. YAML's flow style
 * is a superset of JSON, so the reader of topologies reads it and gives the places of errors. Names and texts need no
 * quotes. */
#include "sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/read.h"
#include "common/yaml.h"
#include "host/bench.h"
#include "host/param.h"
#include "launch/watchdog.h"
#include "limits.h"
#include "replay.h"
#include "report/metrics.h"
#include "report/result.h"
#include "session/numbers.h"
#include "session/reset.h"
#include "session/simulation.h"
#include "session/stream.h"
#include "sim/loop.h"
#include "store/fill.h"

bool sweep_metrics;

static const struct source *swept_stream;              /* NULL: the selected bench is swept */

struct sweep_point {
    struct kb_value *values;                            /* in the order of the bench's parameters */
    uint64_t seed;
    const struct numbers *numbers;                      /* NULL: those of the command line */
};

/* ---- reading a point */

/* No parameter has these names: theirs are identifiers. */
static const char seed_key[] = "--seed", set_key[] = "--set";

/* Reads a value: a number without quotes, a text or size with or without them: 4096, "4 KiB". */
static bool read_value(const struct node *node, const struct kb_param *p, struct kb_value *out)
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

/* Reads a mapping of keys of the topology, such as {"cube.noc.link_bw_gbs": 512}. */
static bool read_numbers(const struct node *node, const struct numbers **out)
{
    const struct node *keys = NULL;
    unsigned before = error_count();
    if (!node_is(node, NODE_MAPPING, set_key))
        return false;
    for (size_t i = 0; i < node->count; i++)
        keys = renumber_both(keys, renumber_key(node->entries[i].key, node->entries[i].value));
    if (error_count() == before && keys)
        *out = numbers_of_keys(keys);
    return error_count() == before;
}

static bool read_entry(const struct node_entry *entry, struct sweep_point *point)
{
    const struct kb_bench *bench = bench_current;
    const char *key = entry->key->text;
    if (!strcmp(key, set_key))
        return read_numbers(entry->value, &point->numbers);
    if (swept_stream) {
        error_unknown_key(entry->key, "a point of a stream", (const char *[]){set_key}, 1);
        return false;
    }
    const char **names = arena_alloc(bench->count + 2, sizeof *names);
    for (uint32_t i = 0; i < bench->count; i++) {
        names[i] = bench->params[i].name;
        if (!strcmp(key, names[i]))
            return read_value(entry->value, &bench->params[i], &point->values[i]);
    }
    if (!strcmp(key, seed_key))
        return node_u64(entry->value, seed_key, 0, UINT64_MAX, &point->seed);
    names[bench->count] = seed_key;
    names[bench->count + 1] = set_key;
    error_unknown_key(entry->key, arena_printf("a point of %s", bench->name), names, bench->count + 2);
    return false;
}

/* Returns whether a line begins as a JSON object does: other YAML is not a point. */
static bool is_object(const struct source *line)
{
    size_t blanks = strspn(line->text, " \t\r");
    if (line->text[blanks] == '{')
        return true;
    error_at((struct where){line, line->lines_before + 1, (unsigned)blanks + 1},
             "a point must be a JSON object: { \"name\": value, ... }");
    return false;
}

/* Reads a line, which must live as long as the point. What it does not give is as in `defaults`. Reports errors at
 * their places, and returns false if there is one. */
static bool read_point(const struct source *line, const struct sweep_point *defaults, struct sweep_point *point)
{
    unsigned before = error_count();
    const struct node *node = is_object(line) ? yaml_document(line) : NULL;
    point->seed = defaults->seed;
    point->numbers = NULL;
    uint32_t params = swept_stream ? 0 : bench_current->count;
    point->values = arena_alloc(params, sizeof *point->values);
    if (params)
        memcpy(point->values, defaults->values, params * sizeof *point->values);
    bool good = node;
    for (size_t i = 0; node && i < node->count; i++)
        good &= read_entry(&node->entries[i], point);
    return good && error_count() == before;
}

static struct source line_source(const char *path, const char *text, size_t length, unsigned lines_before)
{
    return (struct source){path, arena_text(text, length), length, lines_before};
}

static bool is_blank(const struct source *line)
{
    return strspn(line->text, " \t\r") == line->length;
}

/* ---- running points */

enum { STATUS_SIGNALLED = 128 };                        /* a status from here on: a signal ends the sweep */

/* A short answer: metrics alone. */
struct answer {
    uint64_t point, end_ps;
    double seconds;                                     /* of the host */
    int status;
    const char *error;
};

static void metrics_answer(struct json *json, void *arg)
{
    const struct answer *answer = arg;
    json_u64(json, "point", answer->point);
    metrics_write(json, answer->end_ps);
    json_u64(json, "host_us", (uint64_t)(answer->seconds * 1e6));
    bench_write_used(json, "used");
    metrics_write_end(json, answer->status, answer->error);
}

struct refusal {
    uint64_t point;
    const char *why;
};

static void refusal_write(struct json *json, void *arg)
{
    const struct refusal *refusal = arg;
    json_u64(json, "point", refusal->point);
    if (sweep_metrics)
        metrics_write_end(json, STATUS_WRONG_USE, refusal->why);
    else
        json_string(json, "error", refusal->why);
}

/* Replays the stream, which is read again: what it says may depend on the numbers. */
static int replay_point(uint64_t number, const struct output *out)
{
    struct answer answer = {.point = number};
    double began = clock_seconds();
    const struct command_stream *stream = stream_of(swept_stream);
    if (!stream) {
        json_write_line(out, refusal_write, &(struct refusal){number, errors_forget()});
        return STATUS_WRONG_USE;
    }
    answer.status = replay_run(stream, &answer.end_ps);
    answer.error = replay_error();
    answer.seconds = clock_seconds() - began;
    json_write_line(out, metrics_answer, &answer);
    simulator_reset();
    return answer.status;
}

/* Runs a point and answers it. Returns the exit status of the run. */
static int run_point(const struct sweep_point *point, uint64_t number, const struct output *out)
{
    numbers_put(point->numbers);
    if (swept_stream)
        return replay_point(number, out);
    struct host_times times = {0};
    double began = clock_seconds();
    bench_values = point->values;
    fill_seed = point->seed;
    int status = simulation_run(began, &limits, &times);
    if (sweep_metrics)
        json_write_line(out, metrics_answer, &(struct answer){number, sim_now_ps(), times.total, status, simulation_error()});
    else
        json_write_line(out, simulation_write, &times);
    simulator_reset();
    return status;
}

static int sweep_file(const char *path, const char *to, const struct sweep_point *defaults)
{
    const struct source *file = source_given(path);
    struct sweep_point *points = NULL;
    size_t count = 0;
    const char *at = file->text, *end = file->text + file->length;
    for (unsigned number = 0; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        struct source *line = arena_alloc(1, sizeof *line);
        *line = line_source(file->path, at, (size_t)(stop - at), number);
        at = stop + 1;
        if (is_blank(line))
            continue;
        points = arena_grow(points, count, sizeof *points);
        read_point(line, defaults, &points[count++]);
    }
    errors_end();
    struct output out = output_open_lines(to);
    int status = STATUS_GOOD;
    char prefix[64];
    struct arena_mark start = arena_mark();
    for (size_t i = 0; i < count && status < STATUS_SIGNALLED; i++) {
        snprintf(prefix, sizeof prefix, "point %zu of %zu: ", i + 1, count);
        watchdog_prefix = prefix;
        int of_point = run_point(&points[i], i + 1, &out);
        status = of_point > status ? of_point : status;
        arena_release(start);
    }
    output_close(&out);
    return status;
}

/* Answers each line of standard input before it reads the next one. */
static int sweep_standard_input(const char *to, const struct sweep_point *defaults)
{
    struct output out = output_open_lines(to);
    struct arena_mark start = arena_mark();
    char *text = NULL, prefix[64];
    size_t room = 0;
    uint64_t points = 0;
    int status = STATUS_GOOD;
    ssize_t length;
    for (unsigned number = 0; status < STATUS_SIGNALLED && (length = getline(&text, &room, stdin)) >= 0; number++) {
        size_t kept = (size_t)length - (text[length - 1] == '\n');
        struct source line = line_source(STANDARD_INPUT, text, kept, number);
        struct sweep_point point;
        int of_line = STATUS_GOOD;
        if (!is_blank(&line)) {
            points++;
            snprintf(prefix, sizeof prefix, "point %" PRIu64 ": ", points);
            watchdog_prefix = prefix;
            if (!read_point(&line, defaults, &point)) {
                json_write_line(&out, refusal_write, &(struct refusal){points, errors_forget()});
                of_line = STATUS_WRONG_USE;
            } else {
                of_line = run_point(&point, points, &out);
            }
        }
        status = of_line > status ? of_line : status;
        arena_release(start);
    }
    free(text);
    if (ferror(stdin))
        die("cannot read standard input:");
    output_close(&out);
    return status;
}

int sweep_run(const struct source *stream, const char *from, const char *to)
{
    swept_stream = stream;
    const struct sweep_point defaults = {bench_values, fill_seed, NULL};
    simulation_in_points();
    return strcmp(from, "-") ? sweep_file(from, to, &defaults) : sweep_standard_input(to, &defaults);
}
