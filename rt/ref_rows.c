/* ref_rows.c: references of what moves or joins whole rows: copies, reductions over rows, exchanges of blocks.
 *
 * A float is what f64 makes of it; integers wrap to their dtype. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dtype.h"
#include "exec.h"
#include "misuse.h"
#include "plan.h"
#include "reference.h"
#include "stopwatch.h"
#include "text/diag.h"

enum reduction { REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX, REDUCTIONS };

/* ---- values of a matrix, exactly */

struct values {
    const struct tensor *tensor;
    double *at;
};

static void take_row(struct run run, void *arg)
{
    const struct values *values = arg;
    enum dtype dtype = values->tensor->dtype;
    store_reach(IMAGE_NOW, run.memory, run.offset + run.count * dtype_bytes[dtype]);
    const uint8_t *from = store_at(IMAGE_NOW, run.memory, run.offset);
    for (uint64_t i = 0; i < run.count; i++)
        values->at[run.position + i] = dtype_value(dtype, from + i * dtype_bytes[dtype]);
}

static double *room(uint64_t count)
{
    double *at = calloc(count, sizeof *at);
    if (!at)
        die("no memory for a reference of %" PRIu64 " elements:", count);
    return at;
}

/* The elements of a matrix, and the host's time after the data pass; NULL: there is none. */
static double *values_of(kb_tensor tensor, const char *call, double *began, const char *file, uint32_t line)
{
    tensor_check(tensor, call, file, line);
    if (tensor->dims.rank != 2)
        misuse(file, line, "%s: '%s' is to be a matrix", call, tensor->name);
    if (!oplog_on)
        return NULL;
    exec_data_pass();
    phase_enter(PHASE_reference);
    *began = clock_seconds();
    struct values values = {tensor, room(tensor->elements)};
    tensor_each_row(tensor, false, take_row, &values);
    return values.at;
}

static kb_ref made(uint64_t rows, uint64_t columns, double *values, double began)
{
    struct reference *ref = reference_new(rows, columns);
    ref->f64 = values;
    ref->exact = true;
    reference_seconds += clock_seconds() - began;
    phase_enter(PHASE_host);                            /* only host programs make references */
    return ref;
}

/* ---- copies and exchanges */

kb_ref kb_ref_copy_at(kb_tensor tensor, const char *file, uint32_t line)
{
    double began, *values = values_of(tensor, "kb_ref_copy", &began, file, line);
    return values ? made(tensor->dims.size[0], tensor->dims.size[1], values, began) : NULL;
}

kb_ref kb_ref_exchange_at(kb_tensor tensor, const char *file, uint32_t line)
{
    double began, *from = values_of(tensor, "kb_ref_exchange", &began, file, line);
    uint64_t rows = tensor->dims.size[0], columns = tensor->dims.size[1], block = columns / rows;
    if (block * rows != columns)
        misuse(file, line, "kb_ref_exchange: the %" PRIu64 " columns of '%s' are no blocks for its %" PRIu64 " rows",
               columns, tensor->name, rows);
    if (!from)
        return NULL;
    double *to = room(rows * columns);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < rows; j++)
            memcpy(to + i * columns + j * block, from + j * columns + i * block, block * sizeof *to);
    free(from);
    return made(rows, columns, to, began);
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

/* Modulo 2^32 first, then as the dtype's lowest bits: the same as wrapping at every step. */
static double join_wholes(enum dtype dtype, enum reduction op, double x, double y)
{
    uint32_t a = (uint32_t)(int64_t)x, b = (uint32_t)(int64_t)y, c = op == REDUCE_ADD ? a + b : a * b;
    if (op == REDUCE_MIN || op == REDUCE_MAX)
        return join_floats(op, x, y);
    switch (dtype) {
    case DTYPE_i8: return (int8_t)c;
    case DTYPE_u8: return (uint8_t)c;
    case DTYPE_i16: return (int16_t)c;
    default: return (int32_t)c;
    }
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
        most = fabs(values[i]) > most ? fabs(values[i]) : most;
    return most;
}

kb_ref kb_ref_reduce_at(kb_tensor tensor, const char *op, const char *file, uint32_t line)
{
    enum reduction reduction = reduction_of(op, file, line);
    double began, *from = values_of(tensor, "kb_ref_reduce", &began, file, line);
    if (!from)
        return NULL;
    uint64_t rows = tensor->dims.size[0], columns = tensor->dims.size[1];
    bool floats = dtype_is_float(tensor->dtype);
    double *to = room(columns);
    memcpy(to, from, columns * sizeof *to);
    for (uint64_t row = 1; row < rows; row++)
        for (uint64_t i = 0; i < columns; i++) {
            double y = from[row * columns + i];
            to[i] = floats ? join_floats(reduction, to[i], y) : join_wholes(tensor->dtype, reduction, to[i], y);
        }
    struct reference *ref = made(1, columns, to, began);
    if (floats && (reduction == REDUCE_ADD || reduction == REDUCE_MUL)) {
        ref->exact = false;
        ref->scale = (double)rows * (reduction == REDUCE_ADD ? largest(from, rows * columns) : largest(to, columns));
    }
    free(from);
    return ref;
}
