/* evaluator.c: the math ops of kb/ops.def by their definition: their expressions in f64 and in integers. */
#include "evaluator.h"

#include <math.h>

#include "base/vector.h"
#include "datapass/math.h"
#include "error.h"
#include "exponential.h"

static double smaller(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
}

static double larger(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
}

#define WRAP(x, operator, y) ((x) operator (y))

/* Loops of functions, which have much to compute, are compiled for larger vectors as well. */
#define LOOP_FLOATS VECTOR_FUNCTION
#define LOOP_ALL(name, parameters, arguments)                                                                          \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }
#define LOOP_COMPARE LOOP_ALL
#define LOOP_CHOICE LOOP_ALL
#define LOOP_CAST LOOP_ALL
#define LOOP_QUANT LOOP_ALL
#define LOOP_DEQUANT LOOP_ALL
#define LOOP_LOOKUP LOOP_ALL

#define EVALUATOR(name, function, f64, i32, along_x, along_y)                                                          \
    VECTOR_BODY double name##_value(double x, double y, double z)                                                      \
    {                                                                                                                  \
        (void)x, (void)y, (void)z;                                                                                     \
        return f64;                                                                                                    \
    }                                                                                                                  \
    static int64_t name##_whole(int64_t x, int64_t y, int64_t z)                                                       \
    {                                                                                                                  \
        (void)x, (void)y, (void)z;                                                                                     \
        return i32;                                                                                                    \
    }                                                                                                                  \
    VECTOR_BODY double name##_slope_x(double x, double y, double f)                                                    \
    {                                                                                                                  \
        (void)x, (void)y, (void)f;                                                                                     \
        return fabs((double)(along_x));                                                                                \
    }                                                                                                                  \
    static double name##_slope_y(double x, double y, double f)                                                         \
    {                                                                                                                  \
        (void)x, (void)y, (void)f;                                                                                     \
        return fabs((double)(along_y));                                                                                \
    }                                                                                                                  \
    VECTOR_BODY void name##_values_body(const double *restrict x, const double *restrict y, double *restrict f,        \
                                        uint64_t count)                                                                \
    {                                                                                                                  \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            f[i] = name##_value(x[i], y[i], 0);                                                                        \
    }                                                                                                                  \
    VECTOR_BODY void name##_slopes_x_body(const double *restrict x, const double *restrict y,                          \
                                          const double *restrict f, double *restrict slope, uint64_t count)            \
    {                                                                                                                  \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            slope[i] = name##_slope_x(x[i], y[i], f[i]);                                                               \
    }                                                                                                                  \
    static void name##_slopes_y(const double *restrict x, const double *restrict y, const double *restrict f,          \
                                double *restrict slope, uint64_t count)                                                \
    {                                                                                                                  \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            slope[i] = name##_slope_y(x[i], y[i], f[i]);                                                               \
    }                                                                                                                  \
    function(name##_values, (const double *x, const double *y, double *f, uint64_t count), (x, y, f, count))           \
    function(name##_slopes_x, (const double *x, const double *y, const double *f, double *slope, uint64_t count),      \
             (x, y, f, slope, count))
#define OP(name, operands, reduces, domain, second, result, formula, note, f32, i32, f64, slope_x, slope_y)            \
    EVALUATOR(name, LOOP_##domain, f64, i32, slope_x, slope_y)
#define RELATION(name, operator) EVALUATOR(name, LOOP_ALL, x operator y, x operator y, 0, 0)
#include "kb/ops.def"

#define ROW(name)                                                                                                      \
    {name##_value, name##_whole, name##_slope_x, name##_slope_y, name##_values, name##_slopes_x, name##_slopes_y},

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
VECTOR_BODY double function_power(enum error_mode mode, double x, double slope_x, double f)
{
    return 8 * rounding_power_in(mode, DTYPE_f32, f) + error_power_in(mode, LEAST_F32 * (1 + fabs(x))) +
           rounding_power_in(mode, DTYPE_f32, x) * error_power_in(mode, slope_x);
}

double evaluator_power(uint16_t op, double x, double y, double f)
{
    struct op_traits traits = op_traits(op);
    double rounded = rounding_power(DTYPE_f32, f);
    if (traits.exact)
        return 0;
    if (traits.domain == DOMAIN_FLOATS)
        return function_power(error_mode, x, evaluators[op].slope_x(x, y, f), f);
    return traits.domain == DOMAIN_DEQUANT ? 2 * rounded : rounded;
}

VECTOR_BODY void function_powers_in(enum error_mode mode, const double *restrict x, const double *restrict slope_x,
                                    const double *restrict f, double *restrict power, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        power[i] = function_power(mode, x[i], slope_x[i], f[i]);
}
ERROR_FUNCTION(function_powers, (const double *x, const double *slope_x, const double *f, double *power, uint64_t count),
                (x, slope_x, f, power, count))

VECTOR_BODY void rounding_powers_in(enum error_mode mode, double times, const double *restrict f, double *restrict power,
                                    uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        power[i] = times * rounding_power_in(mode, DTYPE_f32, f[i]);
}
ERROR_FUNCTION(rounding_powers, (double times, const double *f, double *power, uint64_t count), (times, f, power, count))

void evaluator_powers(uint16_t op, const double *x, const double *slope_x, const double *f, double *power, uint64_t count)
{
    struct op_traits traits = op_traits(op);
    if (!traits.exact && traits.domain == DOMAIN_FLOATS)
        function_powers(x, slope_x, f, power, count);
    else
        rounding_powers(traits.exact ? 0 : traits.domain == DOMAIN_DEQUANT ? 2 : 1, f, power, count);
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
