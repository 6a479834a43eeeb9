/* evaluator.c: the math ops of kb/ops.def by their definition: their expressions in f64 and in integers. */
#include "evaluator.h"

#include <math.h>

#include "datapass/math.h"

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
