/* evaluator.c: the math ops of kb/ops.def by their definition: their expressions in f64 and in integers. */
#include "evaluator.h"

#include <math.h>

#include "datapass/math.h"
#include "error.h"

static double smaller(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
}

static double larger(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
}

#define WRAP(x, operator, y) ((x) operator (y))

#define EVALUATOR(name, f64, i32, along_x, along_y)                                                                    \
    static double name##_value(double x, double y, double z)                                                           \
    {                                                                                                                  \
        (void)x, (void)y, (void)z;                                                                                     \
        return f64;                                                                                                    \
    }                                                                                                                  \
    static int64_t name##_whole(int64_t x, int64_t y, int64_t z)                                                       \
    {                                                                                                                  \
        (void)x, (void)y, (void)z;                                                                                     \
        return i32;                                                                                                    \
    }                                                                                                                  \
    static double name##_slope_x(double x, double y, double f)                                                         \
    {                                                                                                                  \
        (void)x, (void)y, (void)f;                                                                                     \
        return fabs((double)(along_x));                                                                                \
    }                                                                                                                  \
    static double name##_slope_y(double x, double y, double f)                                                         \
    {                                                                                                                  \
        (void)x, (void)y, (void)f;                                                                                     \
        return fabs((double)(along_y));                                                                                \
    }
#define OP(name, operands, reduces, domain, second, result, formula, note, f32, i32, f64, slope_x, slope_y)            \
    EVALUATOR(name, f64, i32, slope_x, slope_y)
#define RELATION(name, operator) EVALUATOR(name, x operator y, x operator y, 0, 0)
#include "kb/ops.def"

#define ROW(name) {name##_value, name##_whole, name##_slope_x, name##_slope_y},

static const struct evaluator evaluators[KNOWN_OPS] = {
#define OP(name, ...) ROW(name)
#include "kb/ops.def"
};

static const struct evaluator relations[RELATIONS] = {
#define RELATION(name, operator) ROW(name)
#include "kb/ops.def"
};

const struct evaluator *evaluator_of(uint16_t op, enum relation relation)
{
    return op == OP_cmp ? &relations[relation] : &evaluators[op];
}

/* The least normal number of f32: a function that goes by way of a number above the largest one may be off by it. */
#define LEAST_F32 0x1p-126

/* A function is computed in f32 to a few units in the last place, of an operand that was rounded on the way; the others
 * are rounded once. */
double evaluator_power(uint16_t op, double x, double y, double f)
{
    struct op_traits traits = op_traits(op);
    double rounded = rounding_power(DTYPE_f32, f);
    if (traits.exact)
        return 0;
    if (traits.domain == DOMAIN_FLOATS)
        rounded = 8 * rounded + error_power(LEAST_F32 * (1 + fabs(x)))
                  + error_power(error_root(rounding_power(DTYPE_f32, x)) * evaluators[op].slope_x(x, y, f));
    return traits.domain == DOMAIN_DEQUANT ? 2 * rounded : rounded;
}

double reduction_power(uint16_t op, double count, double value, double powers)
{
    bool mean = op_traits(op).reduction == REDUCTION_MEAN;
    double divisor = mean ? count : 1, power = accumulation_power(DTYPE_f32, count, value * divisor, powers);
    if (op_traits(op).exact)
        return 0;
    return error_power(error_root(power) / divisor) + (mean ? rounding_power(DTYPE_f32, value) : 0);
}

double evaluate_reduction(uint16_t op, bool whole, struct line line)
{
    const struct evaluator *join = evaluator_of(op, RELATION_eq);
    bool mean = op_traits(op).reduction == REDUCTION_MEAN;
    if (whole) {
        int32_t found = (int32_t)line.at[0];
        for (uint64_t i = 1; i < line.count; i++)
            found = (int32_t)(uint32_t)join->whole(found, (int64_t)line.at[i * line.stride], 0);
        return mean ? trunc((double)found / (double)line.count) : found;
    }
    double found = line.at[0];
    for (uint64_t i = 1; i < line.count; i++)
        found = join->value(found, line.at[i * line.stride], 0);
    return mean ? found / (double)line.count : found;
}
