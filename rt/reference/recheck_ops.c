/* recheck_ops.c: the math ops by their definition. */
#include "recheck_ops.h"

#include <math.h>

#include "base/dtype.h"

static double compared(enum relation relation, double x, double y)
{
    switch (relation) {
    case RELATION_eq: return x == y;
    case RELATION_ne: return x != y;
    case RELATION_lt: return x < y;
    case RELATION_le: return x <= y;
    case RELATION_gt: return x > y;
    default: return x >= y;
    }
}

static double unary(uint16_t op, double x)
{
    switch (op) {
    case OP_neg: return -x;
    case OP_abs: return fabs(x);
    case OP_relu: return x < 0 ? 0 : x;
    case OP_exp: return exp(x);
    case OP_log: return log(x);
    case OP_sqrt: return sqrt(x);
    case OP_rsqrt: return 1 / sqrt(x);
    case OP_recip: return 1 / x;
    case OP_tanh: return tanh(x);
    case OP_sigmoid: return 1 / (1 + exp(-x));
    case OP_gelu: return x / 2 * (1 + erf(x / sqrt(2)));
    case OP_silu: return x * (1 / (1 + exp(-x)));
    default: return x;                                  /* copy, cast */
    }
}

double recheck_float(uint16_t op, enum relation relation, const double operand[MATH_OPERANDS])
{
    double x = operand[0], y = operand[1];
    switch (op) {
    case OP_add:
    case OP_bias:
    case OP_bias_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul:
    case OP_scale:
    case OP_dequant: return x * y;
    case OP_div: return x / y;
    case OP_quant: return nearbyint((double)((float)x / (float)y));     /* near a half the digits decide */
    case OP_max: return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
    case OP_min: return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
    case OP_cmp: return compared(relation, x, y);
    case OP_where: return x != 0 ? y : operand[2];
    default: return unary(op, x);
    }
}

static int64_t whole(uint16_t op, int64_t x, int64_t y)
{
    switch (op) {
    case OP_neg: return -x;
    case OP_abs: return x < 0 ? -x : x;
    case OP_relu: return x < 0 ? 0 : x;
    case OP_add:
    case OP_bias:
    case OP_bias_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul:
    case OP_scale: return x * y;
    case OP_div: return y == 0 ? 0 : x / y;
    case OP_max: return x > y ? x : y;
    case OP_min: return x < y ? x : y;
    default: return x;
    }
}

double recheck_whole(uint16_t op, enum relation relation, const double operand[MATH_OPERANDS])
{
    if (op == OP_cmp)
        return compared(relation, operand[0], operand[1]);
    if (op == OP_where)
        return operand[0] != 0 ? operand[1] : operand[2];
    return dtype_wrapped(DTYPE_i32, whole(op, (int64_t)operand[0], (int64_t)operand[1]));
}
