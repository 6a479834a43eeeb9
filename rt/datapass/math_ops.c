/* math_ops.c: the math ops on arrays: in f32 with the host's libm, or in i32, which wraps. */
#include "math_ops.h"

#include <math.h>

#include "base/dtype.h"

/* Sums and products wrap: an i32 of unsigned arithmetic. */
#define WRAPPED(x, operator, y) (int32_t)((uint32_t)(x) operator (uint32_t)(y))

/* The bits of floats as integers that are in the same order, -0 below 0. What min, max and relu ask of floats is asked
 * of integers: compilers then make it wide. */
static int32_t ordered(int32_t bits)
{
    return bits ^ (bits >> 31 & INT32_MAX);
}

/* NaN wins, whichever it is. */
static int32_t unless_nan(int32_t chosen, int32_t x, int32_t y)
{
    chosen = (y & INT32_MAX) > 0x7f800000 ? y : chosen;
    return (x & INT32_MAX) > 0x7f800000 ? x : chosen;
}

static float min_float(float x, float y)
{
    union lane a = {x}, b = {y};
    int32_t least = ordered(a.i) < ordered(b.i) ? a.i : b.i;
    return (union lane){.i = unless_nan(least, a.i, b.i)}.f;
}

static float max_float(float x, float y)
{
    union lane a = {x}, b = {y};
    int32_t most = ordered(a.i) > ordered(b.i) ? a.i : b.i;
    return (union lane){.i = unless_nan(most, a.i, b.i)}.f;
}

static float relu_float(float x)
{
    union lane a = {x};
    return (union lane){.i = unless_nan(a.i & ~(a.i >> 31), a.i, 0)}.f;
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Rounded towards 0; by 0 it is 0; the one quotient that is too large wraps. */
static int32_t div_whole(int32_t x, int32_t y)
{
    if (y == 0)
        return 0;
    return y == -1 ? WRAPPED(0, -, x) : x / y;
}

/* FLOATS(name, result of f32 x and y), WHOLES(name, result of i32 x and y). */
#define FLOATS(name, result)                                                                                           \
    static void name##_floats(union lane *to, const union lane *with, size_t count)                                    \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            float x = to[i].f, y = with ? with[i].f : 0;                                                               \
            (void)y;                                                                                                   \
            to[i].f = result;                                                                                          \
        }                                                                                                              \
    }
#define WHOLES(name, result)                                                                                           \
    static void name##_wholes(union lane *to, const union lane *with, size_t count)                                    \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            int32_t x = to[i].i, y = with ? with[i].i : 0;                                                             \
            (void)y;                                                                                                   \
            to[i].i = result;                                                                                          \
        }                                                                                                              \
    }
#define BOTH(name, of_floats, of_wholes) FLOATS(name, of_floats) WHOLES(name, of_wholes)

BOTH(neg, -x, WRAPPED(0, -, x))
BOTH(abs, fabsf(x), x < 0 ? WRAPPED(0, -, x) : x)
BOTH(relu, relu_float(x), x < 0 ? 0 : x)
FLOATS(exp, expf(x))
FLOATS(log, logf(x))
FLOATS(sqrt, sqrtf(x))
FLOATS(rsqrt, 1 / sqrtf(x))
FLOATS(recip, 1 / x)
FLOATS(tanh, tanhf(x))
FLOATS(sigmoid, sigmoid(x))
FLOATS(gelu, x / 2 * erfcf(-x * (float)M_SQRT1_2))     /* 1 + erf(x) loses digits near 0, erfc(-x) none */
FLOATS(silu, x * sigmoid(x))
BOTH(add, x + y, WRAPPED(x, +, y))
BOTH(sub, x - y, WRAPPED(x, -, y))
BOTH(mul, x * y, WRAPPED(x, *, y))
BOTH(div, x / y, div_whole(x, y))
BOTH(max, max_float(x, y), x > y ? x : y)
BOTH(min, min_float(x, y), x < y ? x : y)
BOTH(eq, x == y, x == y)
BOTH(ne, x != y, x != y)
BOTH(lt, x < y, x < y)
BOTH(le, x <= y, x <= y)
BOTH(gt, x > y, x > y)
BOTH(ge, x >= y, x >= y)

void math_where(const union lane *c, union lane *x, const union lane *y, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = c[i].i ? x[i] : y[i];
}

math_loop *math_loop_of(uint16_t op, enum relation relation, bool floats)
{
#define BOTH_OF(name) [OP_##name] = {name##_wholes, name##_floats}
#define FLOATS_OF(name) [OP_##name] = {NULL, name##_floats}
#define AS(name, other) [OP_##name] = {other##_wholes, other##_floats}
    static math_loop *const loops[KNOWN_OPS][2] = {
        BOTH_OF(neg), BOTH_OF(abs), BOTH_OF(relu), FLOATS_OF(exp), FLOATS_OF(log), FLOATS_OF(sqrt), FLOATS_OF(rsqrt),
        FLOATS_OF(recip), FLOATS_OF(tanh), FLOATS_OF(sigmoid), FLOATS_OF(gelu), FLOATS_OF(silu), BOTH_OF(add),
        BOTH_OF(sub), BOTH_OF(mul), BOTH_OF(div), BOTH_OF(max), BOTH_OF(min), AS(sum, add), AS(mean, add),
        AS(bias, add), AS(bias_add, add), AS(scale, mul), AS(quant, div), AS(dequant, mul),
    };
#define RELATION(name) [RELATION_##name] = {name##_wholes, name##_floats}
    static math_loop *const relations[RELATIONS][2] = {
        RELATION(eq), RELATION(ne), RELATION(lt), RELATION(le), RELATION(gt), RELATION(ge),
    };
    return op == OP_cmp ? relations[relation][floats] : loops[op][floats];
}

bool math_in_f32(const struct math *math)
{
    if (math->op == OP_quant || math->op == OP_dequant)
        return true;
    return dtype_is_float(math_subject(math)->dtype) || (math->op == OP_cast && dtype_is_float(math->to.dtype));
}
