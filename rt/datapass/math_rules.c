/* math_rules.c: which math op is defined on which dtypes. */
#include <math.h>
#include <stdio.h>

#include "base/dtype.h"
#include "math_ops.h"
#include "base/ops.h"
#include "machine/tiling.h"
#include "machine/runs.h"

static const struct form {
    uint8_t operands;
    bool reduces, whole;
} forms[] = {
#define OP(name, operands, reduces, whole) {operands, reduces, whole},
#include "kb/ops.def"
#undef OP
};

unsigned math_operands(uint16_t op)
{
    return op < KNOWN_OPS ? forms[op].operands : 0;
}

bool math_reduces(uint16_t op)
{
    return op < KNOWN_OPS && forms[op].reduces;
}

static bool refused(char why[MATH_WHY], const char *format, const char *op, const char *a, const char *b)
{
    snprintf(why, MATH_WHY, format, op, a, b);
    return false;
}

/* Casts are from anything to anything; quant is to integers, dequant to floats, with a scale that is a float. */
static bool conversion_defined(const struct math *math, char why[MATH_WHY])
{
    const char *name = op_name(math->op), *to = dtype_words[math->to.dtype];
    if (math->op == OP_cast)
        return true;
    if (dtype_is_float(math->to.dtype) != (math->op == OP_dequant))
        return refused(why, "%s does not give %s, but %s", name, to, math->op == OP_quant ? "integers" : "floats");
    if (!math->has_scalar && !dtype_is_float(math->operand[1].dtype))
        return refused(why, "the scale of %s is %s; %s", name, dtype_words[math->operand[1].dtype], "floats are");
    return true;
}

/* All that is computed with, and the result if it is no truth value, are floats, or all are integers. */
static bool classes_agree(const struct math *math, char why[MATH_WHY])
{
    const char *name = op_name(math->op);
    enum dtype first = math_subject(math)->dtype;
    bool floats = dtype_is_float(first);
    unsigned views = math_views(math);
    for (unsigned i = math->op == OP_where ? 2 : 1; i < views; i++)
        if (dtype_is_float(math->operand[i].dtype) != floats)
            return refused(why, "%s of %s and %s is not defined: cast one of them first", name, dtype_words[first],
                           dtype_words[math->operand[i].dtype]);
    if (math->op != OP_cmp && dtype_is_float(math->to.dtype) != floats)
        return refused(why, "%s of %s does not give %s: cast it", name, dtype_words[first],
                       dtype_words[math->to.dtype]);
    return true;
}

bool math_defined(const struct math *math, char why[MATH_WHY])
{
    const char *name = op_name(math->op);
    const struct view *x = math_subject(math);
    if (math->op == OP_cast || math->op == OP_quant || math->op == OP_dequant)
        return conversion_defined(math, why);
    if (!forms[math->op].whole && !dtype_is_float(x->dtype))
        return refused(why, "%s of %s is not defined: cast or dequant it first%s", name, dtype_words[x->dtype], "");
    if (math->op == OP_cmp && math->to.dtype != DTYPE_u8)
        return refused(why, "%s gives u8, not %s%s", name, dtype_words[math->to.dtype], "");
    if (math->op == OP_where && math->operand[0].dtype != DTYPE_u8)
        return refused(why, "the condition of %s is u8, not %s%s", name, dtype_words[math->operand[0].dtype], "");
    if (!classes_agree(math, why))
        return false;
    if (math->has_scalar && !dtype_is_float(x->dtype) &&
        !(math->scalar == nearbyint(math->scalar) && math->scalar >= INT32_MIN && math->scalar <= INT32_MAX))
        return refused(why, "%s of %s and a number that is no i32 is not defined%s", name, dtype_words[x->dtype], "");
    return true;
}

bool math_overlaps(const struct math *math)
{
    const struct view *to = &math->to;
    for (unsigned i = 0; i < math_views(math); i++) {
        const struct view *x = &math->operand[i];
        bool same = to->offset == x->offset && view_size(to) == view_size(x) && math->axis == NO_AXIS;
        for (unsigned axis = 0; same && axis < to->rank; axis++)
            same = to->shape[axis] == 1 || to->stride[axis] == x->stride[axis];
        if (!same && view_overlap(to, x))
            return true;
    }
    return false;
}
