/* points.c: a sweep: run after run in one process, each on the simulator as new. */
#include "points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/bench.h"
#include "base/stopwatch.h"
#include "store/fill.h"
#include "one_run.h"
#include "point.h"
#include "reset.h"
#include "report/result.h"
#include "common/arena.h"
#include "common/yaml.h"

/* What the command line says of all points. */
static struct point given;

static struct source line_source(const char *path, const char *text, size_t length, unsigned lines_before)
{
    return (struct source){path, arena_text(text, length), length, lines_before};
}

static bool is_blank(const struct source *line)
{
    return strspn(line->text, " \t\r") == line->length;
}

/* Runs a point and answers it. */
static bool answer(const struct point *point, const struct output *out)
{
    struct host_times times;
    double began = clock_seconds();
    bench_values = point->values;
    fill_seed = point->seed;
    bool good = one_run(began, &times);
    json_write_line(out, one_run_write, &times);
    simulator_reset();
    return good;
}

/* ---- from a file */

static struct point *points_read(const struct source *file, size_t *count)
{
    struct point *points = NULL;
    const char *at = file->text, *end = file->text + file->length;
    *count = 0;
    for (unsigned number = 0; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        struct source *line = arena_alloc(1, sizeof *line);
        *line = line_source(file->path, at, (size_t)(stop - at), number);
        at = stop + 1;
        if (is_blank(line))
            continue;
        points = arena_grow(points, *count, sizeof *points);
        points[*count] = given;
        point_read(line, &points[(*count)++]);
    }
    errors_end();
    return points;
}

static int run_file(const char *path, const char *to)
{
    const struct source *file = source_read(path);
    if (!file)
        usage_error("cannot open %s:", path);
    size_t count;
    const struct point *points = points_read(file, &count);
    struct output out = output_open(to);
    int status = 0;
    struct arena_mark start = arena_mark();
    for (size_t i = 0; i < count; i++) {
        if (!answer(&points[i], &out))
            status = 1;
        arena_release(start);
    }
    output_close(&out);
    return status;
}

/* ---- from whoever waits for each answer */

struct refusal {
    uint64_t point;
    const char *why;
};

static void refusal_write(struct json *json, void *arg)
{
    const struct refusal *refusal = arg;
    json_u64(json, "point", refusal->point);
    json_string(json, "error", refusal->why);
}

/* Returns the status of one line. */
static int line_run(const struct source *line, uint64_t number, const struct output *out)
{
    struct point point = given;
    if (point_read(line, &point))
        return answer(&point, out) ? 0 : 1;
    json_write_line(out, refusal_write, &(struct refusal){number, errors_forget()});
    return 2;
}

static int run_stream(const char *to)
{
    struct output out = output_open(to);
    struct arena_mark start = arena_mark();
    char *text = NULL;
    size_t room = 0;
    uint64_t point = 0;
    int status = 0;
    ssize_t length;
    for (unsigned number = 0; (length = getline(&text, &room, stdin)) >= 0; number++) {
        size_t kept = (size_t)length - (text[length - 1] == '\n');
        struct source line = line_source("standard input", text, kept, number);
        int ended = is_blank(&line) ? 0 : line_run(&line, ++point, &out);
        status = ended > status ? ended : status;
        arena_release(start);
    }
    free(text);
    if (ferror(stdin))
        die("cannot read standard input:");
    output_close(&out);
    return status;
}

int points_run(const char *from, const char *to)
{
    given = (struct point){bench_values, fill_seed};
    return strcmp(from, "-") ? run_file(from, to) : run_stream(to);
}
