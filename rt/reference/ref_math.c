/* ref_math.c: references of math ops, element by element, with broadcasting: floats in f64, integers wrap.
 *
 * An op is a row of the table: what it gives, and how steep it is. An operand that may be off by d has a result that
 * may be off by d times the slope: so tolerances add up along a chain of references. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/fail.h"
#include "machine/tiling.h"
#include "base/threads.h"
#include "reference.h"
#include "common/arena.h"

enum { MOST_OPERANDS = 3 };

/* NaN wins. */
static double least(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
}

static double most(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ROUNDED: computed. EXACT: what an operand is, or whether something holds. */
enum precision { ROUNDED, EXACT };
/* What it is defined on: floats alone, integers too; SCALED: of integers and a float it makes floats; HOLDS: u8. */
enum domain { REAL, WHOLE, SCALED, HOLDS };

/* OP(name, operands, precision, domain, result f of x and y, slopes along x and y) */
#define RELATION(name, holds) OP(name, 2, EXACT, HOLDS, holds, 0, 0)
#define OPS                                                                                                            \
    OP(copy, 1, EXACT, WHOLE, x, 1, 0)                                                                                 \
    OP(neg, 1, EXACT, WHOLE, -x, 1, 0)                                                                                 \
    OP(abs, 1, EXACT, WHOLE, fabs(x), 1, 0)                                                                            \
    OP(relu, 1, EXACT, WHOLE, x < 0 ? 0 : x, 1, 0)                                                                     \
    OP(exp, 1, ROUNDED, REAL, exp(x), f, 0)                                                                            \
    OP(log, 1, ROUNDED, REAL, log(x), 1 / x, 0)                                                                        \
    OP(sqrt, 1, ROUNDED, REAL, sqrt(x), 1 / (2 * f), 0)                                                                \
    OP(rsqrt, 1, ROUNDED, REAL, 1 / sqrt(x), f * f * f / 2, 0)                                                         \
    OP(recip, 1, ROUNDED, REAL, 1 / x, f * f, 0)                                                                       \
    OP(tanh, 1, ROUNDED, REAL, tanh(x), 1 - f * f, 0)                                                                  \
    OP(sigmoid, 1, ROUNDED, REAL, sigmoid(x), f * (1 - f), 0)                                                          \
    OP(gelu, 1, ROUNDED, REAL, x / 2 * (1 + erf(x / sqrt(2))), 1.13, 0)                                                \
    OP(silu, 1, ROUNDED, REAL, x * sigmoid(x), 1.1, 0)                                                                 \
    OP(add, 2, ROUNDED, WHOLE, x + y, 1, 1)                                                                            \
    OP(bias, 2, ROUNDED, WHOLE, x + y, 1, 1)                                                                           \
    OP(bias_add, 2, ROUNDED, WHOLE, x + y, 1, 1)                                                                       \
    OP(sub, 2, ROUNDED, WHOLE, x - y, 1, 1)                                                                            \
    OP(mul, 2, ROUNDED, WHOLE, x * y, y, x)                                                                            \
    OP(scale, 2, ROUNDED, WHOLE, x * y, y, x)                                                                          \
    OP(dequant, 2, ROUNDED, SCALED, x * y, y, x)                                                                       \
    OP(div, 2, ROUNDED, WHOLE, x / y, 1 / y, f / y)                                                                    \
    OP(max, 2, EXACT, WHOLE, most(x, y), 1, 1)                                                                         \
    OP(min, 2, EXACT, WHOLE, least(x, y), 1, 1)                                                                        \
    RELATION(eq, x == y)                                                                                               \
    RELATION(ne, x != y)                                                                                               \
    RELATION(lt, x < y)                                                                                                \
    RELATION(le, x <= y)                                                                                               \
    RELATION(gt, x > y)                                                                                                \
    RELATION(ge, x >= y)

#define OP(name, operands, precision, domain, result, along_x, along_y)                                                \
    static double name##_value(double x, double y)                                                                     \
    {                                                                                                                  \
        (void)x, (void)y;                                                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    static double name##_slope(double x, double y, double f, bool second)                                              \
    {                                                                                                                  \
        (void)x, (void)y, (void)f;                                                                                     \
        return fabs(second ? (double)(along_y) : (double)(along_x));                                                   \
    }
OPS
#undef OP

static const struct row {
    const char *name;
    unsigned operands;
    enum precision precision;
    enum domain domain;
    double (*value)(double x, double y);
    double (*slope)(double x, double y, double f, bool second);
} rows[] = {
#define OP(name, operands, precision, domain, result, along_x, along_y)                                                \
    {#name, operands, precision, domain, name##_value, name##_slope},
    OPS
#undef OP
};

static const struct row *row_of(const struct ref_call *call, const char *op, unsigned operands)
{
    for (size_t i = 0; op && i < COUNT_OF(rows); i++)
        if (rows[i].operands == operands && !strcmp(rows[i].name, op))
            return &rows[i];
    misuse(call->file, call->line, "%s: there is no op '%s' of %s", call->name, op ? op : "",
           operands == 1 ? "one operand" : "two operands");
}

/* ---- broadcasting: axes are aligned at the last one; one of size 1 is as long as the others' */

struct operands {
    unsigned count;
    struct gathered from[MOST_OPERANDS];
    uint64_t stride[MOST_OPERANDS][KB_RANK];                 /* by the axes of the result */
    struct kb_dims dims;                                /* of the result */
};

/* The size of an axis, counted from the last one. */
static uint64_t size_of(const struct kb_dims *dims, uint32_t from_last)
{
    return from_last < dims->rank ? dims->size[dims->rank - 1 - from_last] : 1;
}

static void take_dims(const struct ref_call *call, struct operands *all, const struct gathered *g)
{
    struct kb_dims joined = {.rank = g->dims.rank > all->dims.rank ? g->dims.rank : all->dims.rank};
    for (uint32_t i = 0; i < joined.rank; i++) {
        uint64_t a = size_of(&all->dims, i), b = size_of(&g->dims, i);
        if (a != b && a != 1 && b != 1)
            misuse(call->file, call->line, "%s: the shape of '%s' does not go with the others", call->name, g->name);
        joined.size[joined.rank - 1 - i] = a == 1 ? b : a;
    }
    all->dims = joined;
}

static void take_strides(struct operands *all)
{
    for (unsigned k = 0; k < all->count; k++) {
        uint64_t stride = 1;
        for (uint32_t i = 0; i < all->dims.rank; i++) {
            uint64_t size = size_of(&all->from[k].dims, i);
            all->stride[k][all->dims.rank - 1 - i] = size == 1 ? 0 : stride;
            stride *= size;
        }
    }
}

static struct operands operands_gather(const struct ref_call *call, const struct kb_values *values, unsigned count)
{
    struct operands all = {.count = count, .dims = {.rank = 1, .size = {1}}};
    for (unsigned k = 0; k < count; k++) {
        all.from[k] = gather(call, values[k], true);
        take_dims(call, &all, &all.from[k]);
    }
    take_strides(&all);
    return all;
}

static void operands_free(struct operands *all)
{
    for (unsigned k = 0; k < all->count; k++)
        gathered_free(&all->from[k]);
}

static uint64_t columns_of(const struct operands *all)
{
    return all->dims.size[all->dims.rank - 1];
}

/* A row of the result, along its last axis: where the operands' values for it begin, and how far apart they are. */
struct line {
    const double *at[MOST_OPERANDS];
    uint64_t stride[MOST_OPERANDS];
};

static struct line line_of(const struct operands *all, uint64_t row)
{
    uint32_t last = all->dims.rank - 1;
    struct line line = {0};
    for (unsigned k = 0; k < all->count; k++) {
        uint64_t rest = row, at = 0;
        for (uint32_t axis = last; axis-- > 0; rest /= all->dims.size[axis])
            at += rest % all->dims.size[axis] * all->stride[k][axis];
        line.at[k] = all->from[k].f64 + at;
        line.stride[k] = all->stride[k][last];
    }
    return line;
}

/* ---- dtypes: all floats or all integers; a number is of whatever the others are */

/* The dtype of the operands from the first one on that are no numbers: i32 of several integer ones. */
static enum dtype common(const struct ref_call *call, const struct operands *all, unsigned first)
{
    enum dtype dtype = DTYPES;
    for (unsigned k = first; k < all->count; k++) {
        const struct gathered *g = &all->from[k];
        if (g->is_number)
            continue;
        if (dtype != DTYPES && dtype_is_float(dtype) != dtype_is_float(g->dtype))
            misuse(call->file, call->line, "%s: integers and floats do not go together: cast '%s' of %s", call->name,
                   g->name, dtype_words[g->dtype]);
        dtype = dtype == DTYPES || dtype == g->dtype || dtype_is_float(dtype) ? g->dtype : DTYPE_i32;
    }
    return dtype == DTYPES ? DTYPE_f32 : dtype;
}

static enum dtype dtype_of(const struct ref_call *call, const struct row *row, const struct operands *all)
{
    if (row->domain == SCALED)
        return DTYPE_f32;
    enum dtype dtype = common(call, all, 0);
    if (row->domain == REAL && !dtype_is_float(dtype))
        misuse(call->file, call->line, "%s: '%s' of %s is not defined: cast or dequant it", call->name, row->name,
               dtype_words[dtype]);
    return dtype;
}

/* f64 is exact but for products. */
static double whole_result(const struct row *row, enum dtype dtype, double x, double y)
{
    if (row->value == mul_value || row->value == scale_value)
        return dtype_wrapped(dtype, (int64_t)x * (int64_t)y);
    if (row->value == div_value)
        return dtype_wrapped(dtype, y == 0 ? 0 : (int64_t)(x / y));
    return dtype_wrapped(dtype, (int64_t)row->value(x, y));
}

/* ---- the calls */

/* An op on all elements, in batches of rows for the threads. */
struct work {
    const struct row *row;
    const struct operands *all;
    enum dtype dtype;
    bool floats;
    double *to;
    uint64_t rows, batch_rows;
    double *scales;                                     /* by batch */
};

enum { BATCH_ELEMENTS = 1 << 16 };

/* Returns how far off its elements may be. */
static double work_row(const struct work *w, uint64_t row)
{
    struct line line = line_of(w->all, row);
    uint64_t columns = columns_of(w->all);
    double *to = w->to + row * columns, scale = 0, ex = w->all->from[0].error, ey = w->all->from[1].error;
    for (uint64_t i = 0; i < columns; i++) {
        double x = line.at[0][i * line.stride[0]], y = line.at[1] ? line.at[1][i * line.stride[1]] : 0;
        to[i] = w->floats ? w->row->value(x, y) : whole_result(w->row, w->dtype, x, y);
        double off = (ex > 0 ? ex * w->row->slope(x, y, to[i], false) : 0) +
                     (ey > 0 ? ey * w->row->slope(x, y, to[i], true) : 0);
        if (off > scale && off < (double)INFINITY)
            scale = off;
    }
    return scale;
}

static void work_batch(uint64_t batch, unsigned thread, void *arg)
{
    (void)thread;
    const struct work *w = arg;
    double scale = 0;
    for (uint64_t i = 0; i < w->batch_rows && batch * w->batch_rows + i < w->rows; i++)
        scale = fmax(scale, work_row(w, batch * w->batch_rows + i));
    w->scales[batch] = scale;
}

/* Computes all of them; returns how far off one may be. */
static double work_all(struct work *w, uint64_t elements)
{
    if (elements == 0)
        return 0;
    uint64_t columns = columns_of(w->all);
    w->rows = elements / columns;
    w->batch_rows = columns < BATCH_ELEMENTS ? BATCH_ELEMENTS / columns : 1;
    uint64_t batches = (w->rows + w->batch_rows - 1) / w->batch_rows;
    w->scales = reference_room(batches, sizeof *w->scales);
    threads_run(batches, work_batch, w);
    double scale = 0;
    for (uint64_t i = 0; i < batches; i++)
        scale = fmax(scale, w->scales[i]);
    free(w->scales);
    return scale;
}

static kb_ref elementwise(const struct ref_call *call, const char *op, const struct kb_values *values, unsigned count)
{
    const struct row *row = row_of(call, op, count);
    ref_begin(call);
    struct operands all = operands_gather(call, values, count);
    enum dtype dtype = dtype_of(call, row, &all);
    bool floats = dtype_is_float(dtype) || row->domain == HOLDS;
    uint64_t elements = reference_elements(&all.dims);
    double *to = reference_room(elements, sizeof *to);
    double scale = work_all(&(struct work){row, &all, dtype, floats, to, 0, 0, NULL}, elements);
    struct reference *ref = reference_computed(all.dims, row->domain == HOLDS ? DTYPE_u8 : dtype, to, scale);
    ref->exact = (row->precision == EXACT || !floats) && all.from[0].error == 0 && all.from[1].error == 0;
    ref->wraps = !floats;
    operands_free(&all);
    return ref_end(ref);
}

kb_ref kb_ref_unary_at(const char *op, struct kb_values x, const char *file, uint32_t line)
{
    return elementwise(&(struct ref_call){"kb_ref_unary", file, line}, op, &x, 1);
}

kb_ref kb_ref_binary_at(const char *op, struct kb_values x, struct kb_values y, const char *file, uint32_t line)
{
    return elementwise(&(struct ref_call){"kb_ref_binary", file, line}, op, (struct kb_values[]){x, y}, 2);
}

kb_ref kb_ref_where_at(struct kb_values c, struct kb_values x, struct kb_values y, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_where", file, line};
    ref_begin(&call);
    struct operands all = operands_gather(&call, (struct kb_values[]){c, x, y}, 3);
    uint64_t elements = reference_elements(&all.dims);
    double *to = reference_room(elements, sizeof *to), error = fmax(all.from[1].error, all.from[2].error);
    uint64_t columns = columns_of(&all);
    for (uint64_t row = 0; row < (columns ? elements / columns : 0); row++) {
        struct line line = line_of(&all, row);
        for (uint64_t i = 0; i < columns; i++) {
            unsigned k = line.at[0][i * line.stride[0]] != 0 ? 1 : 2;
            to[row * columns + i] = line.at[k][i * line.stride[k]];
        }
    }
    struct reference *ref = reference_computed(all.dims, common(&call, &all, 1), to, error);
    ref->exact = error == 0;
    operands_free(&all);
    return ref_end(ref);
}
