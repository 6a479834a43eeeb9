/* ref_rows.c: references of what moves or joins whole rows: copies, reductions over rows, exchanges of blocks.
 *
 * A float is what f64 makes of it; integers wrap to their dtype. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/fail.h"
#include "machine/tiling.h"
#include "reference.h"

enum reduction { REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX, REDUCTIONS };

/* Values that tensors hold, moved. */
static kb_ref moved(struct kb_dims dims, const struct gathered *from, double *values)
{
    struct reference *ref = reference_new(dims, from->dtype);
    ref->f64 = values;
    ref->exact = from->exact;
    ref->scale = fmax(1, from->error);
    return ref_end(ref);
}

static void check_matrix(const struct ref_call *call, const struct gathered *g)
{
    if (g->dims.rank != 2)
        misuse(call->file, call->line, "%s: '%s' is to be a matrix", call->name, g->name);
}

/* ---- copies, exchanges, transpositions */

kb_ref kb_ref_copy_at(struct kb_values from, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_copy", file, line};
    ref_begin(&call);
    struct gathered g = gather(&call, from, true);
    return moved(g.dims, &g, g.f64);
}

kb_ref kb_ref_exact_at(struct kb_values from, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_exact", file, line};
    ref_begin(&call);
    struct gathered g = gather(&call, from, true);
    g.exact = true;
    g.error = 0;
    return moved(g.dims, &g, g.f64);
}

kb_ref kb_ref_exchange_at(struct kb_values matrix, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_exchange", file, line};
    ref_begin(&call);
    struct gathered from = gather(&call, matrix, true);
    check_matrix(&call, &from);
    uint64_t rows = from.dims.size[0], columns = from.dims.size[1], block = columns / rows;
    if (block * rows != columns)
        misuse(file, line, "kb_ref_exchange: the %" PRIu64 " columns of '%s' are no blocks for its %" PRIu64 " rows",
               columns, from.name, rows);
    double *to = reference_room(from.elements, sizeof *to);
    for (uint64_t i = 0; i < from.elements / columns; i++)
        for (uint64_t j = 0; j < rows; j++)
            memcpy(to + i * columns + j * block, from.f64 + j * columns + i * block, block * sizeof *to);
    gathered_free(&from);
    return moved(from.dims, &from, to);
}

kb_ref kb_ref_transpose_at(struct kb_values from, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_transpose", file, line};
    ref_begin(&call);
    struct gathered g = gather(&call, from, true);
    struct kb_dims dims = g.dims;
    if (dims.rank < 2)
        misuse(file, line, "kb_ref_transpose: '%s' has one axis", g.name);
    uint64_t rows = dims.size[dims.rank - 2], columns = dims.size[dims.rank - 1];
    dims.size[dims.rank - 2] = columns;
    dims.size[dims.rank - 1] = rows;
    double *to = reference_room(g.elements, sizeof *to);
    for (uint64_t i = 0; i < g.elements; i++) {
        uint64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
        to[matrix * rows * columns + column * rows + row] = g.f64[i];
    }
    gathered_free(&g);
    return moved(dims, &g, to);
}

/* ---- reductions */

static double join_floats(enum reduction op, double x, double y)
{
    switch (op) {
    case REDUCE_ADD: return x + y;
    case REDUCE_MUL: return x * y;
    case REDUCE_MIN: return x < y || isnan(x) ? x : y;
    default: return x > y || isnan(x) ? x : y;
    }
}

static double join_wholes(enum dtype dtype, enum reduction op, double x, double y)
{
    int64_t a = (int64_t)x, b = (int64_t)y;
    if (op == REDUCE_MIN || op == REDUCE_MAX)
        return join_floats(op, x, y);
    return dtype_wrapped(dtype, op == REDUCE_ADD ? a + b : a * b);
}

static enum reduction reduction_of(const char *op, const char *file, uint32_t line)
{
    static const char *const names[REDUCTIONS] = {"add", "mul", "min", "max"};
    for (unsigned i = 0; i < REDUCTIONS; i++)
        if (!strcmp(op, names[i]))
            return (enum reduction)i;
    misuse(file, line, "kb_ref_reduce: there is no reduction '%s'; add, mul, min and max are", op);
}

/* A partial sum of k random values is about sqrt(k) times one of them, and r such sums are rounded by half a unit each,
 * up or down: r times the largest value is well above what comes of that, and far below an error in one element of a
 * few rows. What rounds less often, as halving does, stays further below. */
static double largest(const double *values, uint64_t count)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        most = fabs(values[i]) > most && isfinite(values[i]) ? fabs(values[i]) : most;
    return most;
}

kb_ref kb_ref_reduce_at(struct kb_values matrix, const char *op, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_reduce", file, line};
    enum reduction reduction = reduction_of(op, file, line);
    ref_begin(&call);
    struct gathered from = gather(&call, matrix, true);
    check_matrix(&call, &from);
    uint64_t rows = from.dims.size[0], columns = from.dims.size[1];
    bool floats = dtype_is_float(from.dtype);
    struct reference *ref = reference_new(kb_2d(1, columns), from.dtype);
    double *to = ref->f64 = reference_room(ref->elements, sizeof *to);
    for (uint64_t i = 0; i < ref->elements; i++)
        to[i] = from.f64[i];
    for (uint64_t row = 1; row < from.elements / columns; row++)
        for (uint64_t i = 0; i < columns; i++) {
            double y = from.f64[row * columns + i];
            to[i] = floats ? join_floats(reduction, to[i], y) : join_wholes(from.dtype, reduction, to[i], y);
        }
    ref->exact = from.exact;
    ref->scale = fmax(1, from.error);
    if (floats && (reduction == REDUCE_ADD || reduction == REDUCE_MUL)) {
        ref->exact = false;
        ref->scale = (double)rows * (reduction == REDUCE_ADD ? from.max : largest(to, ref->elements));
    }
    gathered_free(&from);
    return ref_end(ref);
}
