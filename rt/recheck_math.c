/* recheck_math.c: a math op in f64 or i64, as a reference for what the data pass made of it. */
#include <math.h>
#include <stdlib.h>

#include "dtype.h"
#include "plan.h"
#include "recheck.h"
#include "text/diag.h"

static double element(const struct view *m, uint64_t i)
{
    return dtype_value(m->dtype, view_at(IMAGE_BASE, m, i / m->shape[1], i % m->shape[1]));
}

/* What is left of a whole number in an integer dtype, which wraps. */
static double wrapped(enum dtype dtype, int64_t x)
{
    switch (dtype) {
    case DTYPE_i32: return (int32_t)(uint32_t)(uint64_t)x;
    case DTYPE_i16: return (int16_t)(uint16_t)(uint64_t)x;
    case DTYPE_i8: return (int8_t)(uint8_t)(uint64_t)x;
    default: return (uint8_t)(uint64_t)x;
    }
}

static double expect(const struct math *math, double x, double y)
{
    bool whole = !dtype_is_float(math->to.dtype);
    switch (math->op) {
    case OP_add: return whole ? wrapped(math->to.dtype, (int64_t)x + (int64_t)y) : x + y;
    case OP_mul: return whole ? wrapped(math->to.dtype, (int64_t)x * (int64_t)y) : x * y;
    case OP_min: return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
    default: return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
    }
}

double *recheck_math_expect(const struct math *math)
{
    uint64_t count = view_elements(&math->to);
    double *expected = malloc(count * sizeof *expected);
    if (!expected)
        die("no memory to check a math op:");
    for (uint32_t i = 0; i < math->operands; i++)
        view_reach(IMAGE_BASE, &math->operand[i]);
    for (uint64_t i = 0; i < count; i++)
        expected[i] = expect(math, element(&math->operand[0], i), element(&math->operand[1], i));
    return expected;
}

struct difference recheck_math(const struct op *op, double *expected)
{
    const struct view *to = &op->math.to;
    double tolerance = dtype_tolerance(to->dtype);
    struct difference found = {0};
    for (uint64_t i = 0; i < view_elements(to) && !found.op; i++) {
        double want = dtype_in_range(to->dtype, expected[i]), got = element(to, i);
        double allowed = tolerance * (1 + fabs(want));
        if (got != want && !(isnan(got) && isnan(want)) && !(fabs(got - want) <= allowed))
            found = (struct difference){op, i / to->shape[1], i % to->shape[1], got, want, allowed};
    }
    free(expected);
    return found;
}
