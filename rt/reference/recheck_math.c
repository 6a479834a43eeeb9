/* recheck_math.c: a math op in f64 or in whole numbers, as a reference for what the data pass made of it. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "recheck.h"
#include "recheck_ops.h"
#include "common/diag.h"

/* The i-th element of a shape in row-major order. */
static void index_of(const uint64_t shape[VIEW_RANK], uint64_t i, uint64_t index[VIEW_RANK])
{
    for (unsigned axis = VIEW_RANK; axis-- > 0; i /= shape[axis])
        index[axis] = i % shape[axis];
}

static double element(const struct view *view, const uint64_t index[VIEW_RANK])
{
    uint64_t at = 0;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        at += index[axis] * view->stride[axis];
    return dtype_value(view->dtype, store_at(IMAGE_BASE, view->memory, view->offset + at * dtype_bytes[view->dtype]));
}

/* Where x is an integer, as is what an op of it gives; but for casts, and for what quantisation is about. */
static bool is_whole(const struct math *math)
{
    const struct view *x = &math->operand[math->op == OP_where ? 1 : 0];
    return !dtype_is_float(x->dtype) && math->op != OP_cast && math->op != OP_quant && math->op != OP_dequant;
}

static double expect_one(const struct math *math, const uint64_t index[VIEW_RANK])
{
    double x[MATH_OPERANDS] = {0};
    for (unsigned i = 0; i < math->operands; i++)
        x[i] = math->has_scalar && i + 1 == math->operands ? math->scalar : element(&math->operand[i], index);
    if (!is_whole(math))
        return recheck_float(math->op, math->relation, x);
    double value = recheck_whole(math->op, math->relation, x);
    return math->op == OP_cmp ? value : dtype_wrapped(math->to.dtype, (int64_t)value);
}

/* A sum is off by what its terms are rounded by: `scale` becomes the s of the tolerance, without bound if f32 may not
 * hold a partial sum. */
static double expect_reduced(const struct math *math, uint64_t index[VIEW_RANK], double *scale)
{
    uint64_t depth = math->operand[0].shape[math->axis];
    bool adds = math->op == OP_sum || math->op == OP_mean, whole = is_whole(math);
    double value = 0, sizes = 0, most = 0;
    for (uint64_t k = 0; k < depth; k++) {
        index[math->axis] = k;
        double x = element(&math->operand[0], index), both[MATH_OPERANDS] = {value, x};
        uint16_t op = adds ? OP_add : math->op;
        value = k == 0 ? x : whole ? recheck_whole(op, 0, both) : recheck_float(op, 0, both);
        sizes += fabs(x);
        most = fmax(most, fabs(x));
    }
    index[math->axis] = 0;
    if (adds && !whole)
        *scale = fmax(*scale, sizes > FLT_MAX ? (double)INFINITY : sqrt((double)depth) * most);
    if (math->op == OP_mean)
        value = whole ? trunc(value / (double)depth) : value / (double)depth;
    return whole ? dtype_wrapped(math->to.dtype, (int64_t)value) : value;
}

double *recheck_math_expect(const struct math *math)
{
    uint64_t count = view_elements(&math->to), index[VIEW_RANK];
    double *expected = malloc((count + 1) * sizeof *expected);
    if (!expected)
        die("no memory to check a math op:");
    for (unsigned i = 0; i < math_views(math); i++)
        view_reach(IMAGE_BASE, &math->operand[i]);
    expected[count] = 1;
    for (uint64_t i = 0; i < count; i++) {
        index_of(math->to.shape, i, index);
        expected[i] = math->axis == NO_AXIS ? expect_one(math, index) : expect_reduced(math, index, &expected[count]);
    }
    return expected;
}

struct difference recheck_math(const struct op *op, double *expected)
{
    const struct view *to = &op->math.to;
    uint64_t count = view_elements(to), index[VIEW_RANK];
    double tolerance = dtype_tolerance(to->dtype), scale = expected[count];
    struct difference found = {0};
    for (uint64_t i = 0; i < count && !found.op && isfinite(scale); i++) {
        index_of(to->shape, i, index);
        double want = dtype_in_range(to->dtype, expected[i]), got = element(to, index);
        double allowed = tolerance * (scale + fabs(expected[i]));
        if (dtype_close(to->dtype, got, expected[i], allowed))
            continue;
        found = (struct difference){.op = op, .got = got, .expected = want, .allowed = allowed,
                                    .index = {index[0], index[1], index[2], index[3]}};
    }
    free(expected);
    return found;
}
