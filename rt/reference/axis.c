/* axis.c: references of what joins or moves elements along an axis: reductions, softmax, norms; copies, exchanges and
 * transpositions. In f64; integers wrap.
 *
 * A sum of n elements is a dot product with ones: its s is sqrt(n) times the largest of them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/arena.h"
#include "common/diag.h"
#include "datapass/math.h"
#include "evaluator.h"
#include "machine/tiling.h"
#include "reference.h"

/* ---- reductions along an axis */

static uint16_t reduction_of(const char *name)
{
    static const char *const names[KNOWN_OPS] = {
#define OP(name, ...) #name,
#include "kb/ops.def"
    };
    uint16_t op = 0;
    while (strcmp(names[op], name))
        op++;
    return op;
}

kb_ref kb_ref_along_at(const char *name, struct kb_values x, uint32_t axis, const char *file, uint32_t line)
{
    uint16_t op = reduction_of(name);
    struct op_traits traits = op_traits(op);
    struct call_site call = {arena_printf("kb_ref_%s", name), file, line};
    reference_begin(call);
    struct gathered g = gather(call, x, true);
    if (axis >= g.dims.rank)
        misuse_of(call, "'%s' has %u axes, there is no axis %u", g.name, (unsigned)g.dims.rank, (unsigned)axis);
    bool floats = dtype_is_float(g.dtype);
    uint64_t count = g.dims.size[axis], stride = 1, lines = g.elements / count;
    for (uint32_t i = axis + 1; i < g.dims.rank; i++)
        stride *= g.dims.size[i];
    double *to = reference_alloc(lines, sizeof *to);
    for (uint64_t i = 0; i < lines; i++) {
        const double *first = g.f64 + i / stride * stride * count + i % stride;
        to[i] = evaluate_reduction(op, !floats, (struct line){first, count, stride});
    }
    double scale = traits.exact ? g.error : sqrt((double)count) * (g.max + g.error);
    if (traits.reduction == REDUCTION_MEAN)
        scale /= (double)count;
    struct kb_dims dims = g.dims;
    dims.size[axis] = 1;
    struct reference *ref = reference_computed(dims, floats ? g.dtype : DTYPE_i32, to, scale);
    ref->exact = !floats || (traits.exact && g.exact);
    ref->wraps = !floats;
    gathered_free(&g);
    return reference_end(ref);
}

/* ---- along the last axis: softmax, norms */

/* No element of the result is steeper than 1 along any of x. */
kb_ref kb_ref_softmax_at(struct kb_values x, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_softmax", file, line};
    reference_begin(call);
    struct gathered g = gather_floats(call, x);
    uint64_t columns = g.dims.size[g.dims.rank - 1];
    double *to = reference_alloc(g.elements, sizeof *to);
    for (uint64_t row = 0; row < g.elements; row += columns) {
        const double *from = g.f64 + row;
        double largest = evaluate_reduction(OP_max, false, (struct line){from, columns, 1}), total = 0;
        for (uint64_t i = 0; i < columns; i++)
            total += to[row + i] = exp(from[i] - largest);
        for (uint64_t i = 0; i < columns; i++)
            to[row + i] /= total;
    }
    struct reference *ref = reference_computed(g.dims, g.dtype, to, g.error);
    gathered_free(&g);
    return reference_end(ref);
}

/* Of one row: (x - centre) / size * gain + bias. Differences and quotients keep what x is off by, in units of `size`. */
struct norm {
    struct gathered x, gain, bias;                      /* gain and bias: a row, or a number */
    double eps, scale;
    bool centred;
};

static double norm_row_value(const struct gathered *g, uint64_t i)
{
    return g->f64[g->elements == 1 ? 0 : i];
}

static void norm_row(struct norm *norm, const double *from, double *to, uint64_t columns)
{
    double centre = norm->centred ? evaluate_reduction(OP_mean, false, (struct line){from, columns, 1}) : 0;
    double squares = 0, largest = 0;
    for (uint64_t i = 0; i < columns; i++) {
        squares += (from[i] - centre) * (from[i] - centre);
        largest = fmax(largest, fabs(from[i]));
    }
    double size = sqrt(squares / (double)columns + norm->eps);
    for (uint64_t i = 0; i < columns; i++)
        to[i] = (from[i] - centre) / size * norm_row_value(&norm->gain, i) + norm_row_value(&norm->bias, i);
    double off = (largest + 2 * norm->x.error) / size * norm->gain.max;
    if (off > norm->scale && off < (double)INFINITY)
        norm->scale = off;
}

static kb_ref normed(struct call_site call, struct norm *norm, struct kb_values x, struct kb_values gain,
                     struct kb_values bias)
{
    reference_begin(call);
    norm->x = gather_floats(call, x);
    uint64_t columns = norm->x.dims.size[norm->x.dims.rank - 1];
    norm->gain = gather_floats(call, gain);
    gathered_check_row(call, &norm->gain, columns, true);
    norm->bias = gather_floats(call, bias);
    gathered_check_row(call, &norm->bias, columns, true);
    double *to = reference_alloc(norm->x.elements, sizeof *to);
    for (uint64_t row = 0; row < norm->x.elements; row += columns)
        norm_row(norm, norm->x.f64 + row, to + row, columns);
    struct reference *ref = reference_computed(norm->x.dims, norm->x.dtype, to, norm->scale);
    gathered_free(&norm->x);
    gathered_free(&norm->gain);
    gathered_free(&norm->bias);
    return reference_end(ref);
}

kb_ref kb_ref_layernorm_at(struct kb_values x, struct kb_values gain, struct kb_values bias, double eps,
                           const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_layernorm", file, line};
    return normed(call, &(struct norm){.eps = eps, .centred = true}, x, gain, bias);
}

kb_ref kb_ref_rmsnorm_at(struct kb_values x, struct kb_values gain, double eps, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_rmsnorm", file, line};
    struct kb_values none = {.is_number = true};
    return normed(call, &(struct norm){.eps = eps}, x, gain, none);
}

/* ---- copies, exchanges, transpositions */

/* A reference of the operand's elements, moved. */
static kb_ref moved(struct kb_dims dims, const struct gathered *from, double *values)
{
    struct reference *ref = reference_computed(dims, from->dtype, values, from->error);
    ref->exact = from->exact;
    return reference_end(ref);
}

static void check_matrix(struct call_site call, const struct gathered *g)
{
    if (g->dims.rank != 2)
        misuse_of(call, "'%s' is to be a matrix", g->name);
}

kb_ref kb_ref_copy_at(struct kb_values from, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_copy", file, line};
    reference_begin(call);
    struct gathered g = gather(call, from, true);
    return moved(g.dims, &g, g.f64);
}

kb_ref kb_ref_exact_at(struct kb_values from, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_exact", file, line};
    reference_begin(call);
    struct gathered g = gather(call, from, true);
    g.exact = true;
    g.error = 0;
    return moved(g.dims, &g, g.f64);
}

kb_ref kb_ref_exchange_at(struct kb_values matrix, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_exchange", file, line};
    reference_begin(call);
    struct gathered from = gather(call, matrix, true);
    check_matrix(call, &from);
    uint64_t rows = from.dims.size[0], columns = from.dims.size[1], block = columns / rows;
    if (block * rows != columns)
        misuse_of(call, "the %" PRIu64 " columns of '%s' are no blocks for its %" PRIu64 " rows", columns, from.name,
                  rows);
    double *to = reference_alloc(from.elements, sizeof *to);
    for (uint64_t i = 0; i < from.elements / columns; i++)
        for (uint64_t j = 0; j < rows; j++)
            memcpy(to + i * columns + j * block, from.f64 + j * columns + i * block, block * sizeof *to);
    gathered_free(&from);
    return moved(from.dims, &from, to);
}

kb_ref kb_ref_transpose_at(struct kb_values from, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_transpose", file, line};
    reference_begin(call);
    struct gathered g = gather(call, from, true);
    struct kb_dims dims = g.dims;
    if (dims.rank < 2)
        misuse_of(call, "'%s' has one axis", g.name);
    uint64_t rows = dims.size[dims.rank - 2], columns = dims.size[dims.rank - 1];
    dims.size[dims.rank - 2] = columns;
    dims.size[dims.rank - 1] = rows;
    double *to = reference_alloc(g.elements, sizeof *to);
    for (uint64_t i = 0; i < g.elements; i++) {
        uint64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
        to[matrix * rows * columns + column * rows + row] = g.f64[i];
    }
    gathered_free(&g);
    return moved(dims, &g, to);
}

/* ---- reductions of the rows of a matrix */

static uint16_t row_reduction_of(struct call_site call, const char *name)
{
    static const struct {
        const char *name;
        uint16_t op;
    } reductions[] = {{"add", OP_add}, {"mul", OP_mul}, {"min", OP_min}, {"max", OP_max}};
    for (unsigned i = 0; i < COUNT_OF(reductions); i++)
        if (!strcmp(name, reductions[i].name))
            return reductions[i].op;
    misuse_of(call, "there is no reduction '%s'; add, mul, min and max are", name);
}

static double largest(const double *values, uint64_t count)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        most = fabs(values[i]) > most && isfinite(values[i]) ? fabs(values[i]) : most;
    return most;
}

/* A partial sum of k random values is about sqrt(k) times one of them, and r such sums are rounded by half a unit each,
 * up or down: r times the largest value is well above the sum of these errors, and far below an error in one element of
 * a few rows. Kernels that round less often, as in recursive halving, stay further below. */
kb_ref kb_ref_reduce_at(struct kb_values matrix, const char *name, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_reduce", file, line};
    uint16_t op = row_reduction_of(call, name);
    const struct evaluator *join = evaluator_of(op, RELATION_eq);
    reference_begin(call);
    struct gathered from = gather(call, matrix, true);
    check_matrix(call, &from);
    uint64_t rows = from.dims.size[0], columns = from.dims.size[1];
    bool floats = dtype_is_float(from.dtype);
    struct reference *ref = reference_new(kb_2d(1, columns), from.dtype);
    double *to = ref->f64 = reference_alloc(ref->elements, sizeof *to);
    for (uint64_t i = 0; i < ref->elements; i++)
        to[i] = from.f64[i];
    for (uint64_t row = 1; row < from.elements / columns; row++)
        for (uint64_t i = 0; i < columns; i++) {
            double y = from.f64[row * columns + i];
            to[i] = floats ? join->value(to[i], y, 0)
                           : dtype_wrapped(from.dtype, join->whole((int64_t)to[i], (int64_t)y, 0));
        }
    ref->exact = from.exact;
    ref->scale = fmax(1, from.error);
    if (floats && !op_traits(op).exact) {
        ref->exact = false;
        ref->scale = (double)rows * (op == OP_add ? from.max : largest(to, ref->elements));
    }
    gathered_free(&from);
    return reference_end(ref);
}
