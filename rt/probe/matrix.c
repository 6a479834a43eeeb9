/* matrix.c: the transfers of all pairs of ends. */
#include "matrix.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/progress.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "host/npy.h"

/* ---- the two sides */

static const char cube_word[] = "cube";

/* A side of cubes is one of their first PEs if it begins transfers, else of memories. */
static struct matrix_side side_of_cubes(bool begins)
{
    enum end_kind kind = begins ? END_PE : end_of_cube(0).kind;
    return (struct matrix_side){cube_word, kind, cube_count(), end_count(kind) / cube_count()};
}

static struct matrix_side side_read(const char *pairs, const char *word, bool begins)
{
    const char *words[END_KINDS + 1];
    for (unsigned kind = 0; kind < END_KINDS; kind++) {
        words[kind] = end_words[kind];
        if (!strcmp(word, words[kind]) && !end_count(kind))
            usage_error("matrix %s: %s has no %s", pairs, kb_machine_name, word);
        if (!strcmp(word, words[kind]))
            return (struct matrix_side){words[kind], kind, end_count(kind), 1};
    }
    if (!strcmp(word, cube_word))
        return side_of_cubes(begins);
    words[END_KINDS] = cube_word;
    const char *near = nearest_name(word, words, COUNT_OF(words));
    if (near)
        usage_error("matrix %s: '%s' is no kind of end; did you mean '%s'?", pairs, word, near);
    usage_error("matrix %s: '%s' is no kind of end; they are pe, hbm, sram, tcm, m_cpu, io_cpu, host and cube", pairs, word);
}

static struct end side_end(const struct matrix_side *side, uint32_t i)
{
    return end_make(side->kind, i * side->each);
}

const char *matrix_name(const struct matrix_side *side, uint32_t i)
{
    if (side->word != cube_word)
        return end_name(side_end(side, i));
    return arena_printf("sip%" PRIu32 ".cube%" PRIu32, i / kb_shape.cubes, i % kb_shape.cubes);
}

/* ---- simulation */

static bool measure(struct probe *probe, void (*reset)(void))
{
    struct arena_mark mark = arena_mark();
    bool exists = !probe_plan(probe);
    if (exists) {
        probe_run(probe, false);
        reset();
        account_reset();
    }
    arena_release(mark);
    return exists;
}

const struct matrix *matrix_measure(const char *pairs, const struct probe *asked, void (*reset)(void))
{
    const char *colon = strchr(pairs, ':');
    if (!colon)
        usage_error("matrix %s: two kinds of ends are needed, such as pe:hbm", pairs);
    struct matrix *matrix = arena_alloc(1, sizeof *matrix);
    matrix->from = side_read(pairs, arena_text(pairs, (size_t)(colon - pairs)), true);
    matrix->to = side_read(pairs, colon + 1, false);
    uint64_t at = 0, all = (uint64_t)matrix->from.count * matrix->to.count;
    matrix->ps = arena_alloc(all, sizeof *matrix->ps);
    matrix->probe = *asked;
    bool any = false;
    for (uint32_t row = 0; row < matrix->from.count; row++)
        for (uint32_t column = 0; column < matrix->to.count; column++, at++) {
            struct probe probe = *asked;
            probe.from = side_end(&matrix->from, row);
            probe.to = side_end(&matrix->to, column);
            bool exists = measure(&probe, reset);
            matrix->ps[at] = exists ? probe.ps : UINT64_MAX;
            if (exists && !any)
                matrix->probe = probe;
            any |= exists;
            progress("matrix", at + 1, all);
        }
    progress_end();
    if (any)
        return matrix;
    struct probe first = *asked;
    first.from = side_end(&matrix->from, 0);
    first.to = side_end(&matrix->to, 0);
    usage_error("matrix %s: no pair has a transfer: %s", pairs, probe_plan(&first));
}

double matrix_bps(const struct matrix *matrix, uint32_t row, uint32_t column)
{
    struct probe probe = matrix->probe;
    probe.ps = matrix_ps(matrix, row, column);
    return probe.ps == UINT64_MAX ? 0 : probe_bps(&probe);
}

/* ---- JSON and NumPy */

static void write_names(struct json *json, const char *key, const struct matrix_side *side)
{
    json_array(json, key);
    for (uint32_t i = 0; i < side->count; i++)
        json_string(json, NULL, matrix_name(side, i));
    json_array_end(json);
}

/* Writes a value of each pair, an array for each row; null where there is no transfer. */
static void write_rows(struct json *json, const char *key, const struct matrix *matrix, bool bandwidths)
{
    json_array(json, key);
    for (uint32_t row = 0; row < matrix->from.count; row++) {
        json_array(json, NULL);
        for (uint32_t column = 0; column < matrix->to.count; column++) {
            uint64_t ps = matrix_ps(matrix, row, column);
            if (ps == UINT64_MAX)
                json_null(json, NULL);
            else if (bandwidths)
                json_double(json, NULL, matrix_bps(matrix, row, column));
            else
                json_u64(json, NULL, ps);
        }
        json_array_end(json);
    }
    json_array_end(json);
}

void matrix_write(struct json *json, const char *key, const struct matrix *matrix, bool with_bandwidths)
{
    json_object(json, key);
    json_string(json, "pairs", arena_printf("%s:%s", matrix->from.word, matrix->to.word));
    json_string(json, "transfer", transfer_words[matrix->probe.kind]);
    json_u64(json, "bytes", matrix->probe.bytes);
    json_u64(json, "load", matrix->probe.load);
    json_bool(json, "virtual", matrix->probe.is_virtual);
    write_names(json, "from", &matrix->from);
    write_names(json, "to", &matrix->to);
    write_rows(json, "ps", matrix, false);
    if (with_bandwidths)
        write_rows(json, "bandwidth_bps", matrix, true);
    json_object_end(json);
}

void matrix_write_npy(FILE *out, const struct matrix *matrix)
{
    npy_write_header(out, "<f8", 3, (uint64_t[]){2, matrix->from.count, matrix->to.count});
    for (unsigned of_bandwidths = 0; of_bandwidths < 2; of_bandwidths++)
        for (uint32_t row = 0; row < matrix->from.count; row++)
            for (uint32_t column = 0; column < matrix->to.count; column++) {
                uint64_t ps = matrix_ps(matrix, row, column);
                double value = ps == UINT64_MAX ? NAN : of_bandwidths ? matrix_bps(matrix, row, column) : (double)ps;
                fwrite(&value, sizeof value, 1, out);
            }
}
