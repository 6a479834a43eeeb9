/* error.h: the analysis of rounding errors that gives each element of a reference its own bound (docs/data.md, "Bounds").
 *
 * An `error` says how far a computed value may be from the exact one. It is a standard deviation, of errors that are taken
 * as independent; with --tolerance worst it is a bound. Independent errors are joined by the sum of their powers: the sum
 * of squares, or of magnitudes. */
#ifndef KB_ERROR_H
#define KB_ERROR_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/dtype.h"
#include "base/vector.h"

enum error_mode {
    ERRORS_STATISTICAL,                                 /* bound: rounding of the result + ERROR_MARGIN deviations */
    ERRORS_WORST,                                       /* bound: rounding of the result + all errors, added up */
    ERRORS_PLAIN,                                       /* bound: dtype_tolerance as atol and as rtol */
};

extern enum error_mode error_mode;

/* Sets it by the option --tolerance; a wrong word is a usage error. */
void error_mode_option(const char *text);

/* How many standard deviations an error may be. Sums of a few roundings reach three or four of them; the rest is for
 * errors that are not quite independent, and for the orders in which kernels add up (docs/data.md). */
#define ERROR_MARGIN 5.0

/* The relative error of a rounding to nearest: 2^-24 for f32, 2^-11 for f16, 2^-8 for bf16, 2^-4 for f8e4m3, 2^-3 for
 * f8e5m2; 0 for integers. And its
 * largest error among denormals: half of the smallest. */
extern const double error_unit[DTYPES], error_least[DTYPES];

/* The largest error of rounding a value to a dtype: half of the distance between its neighbours, which is the same from a
 * power of two to the next. `unit` and `least` are those of the dtype. */
static inline double rounding_bound_by(double unit, double least, double value)
{
    union {
        double value;
        uint64_t bits;
    } power_of_two = {value};
    power_of_two.bits &= UINT64_C(0x7ff) << 52;
    double half = unit * power_of_two.value;
    return half > least ? half : least;
}

static inline double rounding_bound(enum dtype dtype, double value)
{
    return rounding_bound_by(error_unit[dtype], error_least[dtype], value);
}

/* The functions with a mode are for loops that are compiled for a mode, without a branch on it. */
static inline double error_power_in(enum error_mode mode, double error)
{
    return mode == ERRORS_WORST ? fabs(error) : error * error;
}

static inline double error_power(double error)
{
    return error_power_in(error_mode, error);
}

static inline double error_root_in(enum error_mode mode, double power)
{
    return mode == ERRORS_WORST ? power : sqrt(power);
}

static inline double error_root(double power)
{
    return error_root_in(error_mode, power);
}

/* The power of the error of one rounding, which is uniform within the bound: its deviation is 1 / sqrt(3) of that. */
static inline double rounding_power_in(enum error_mode mode, enum dtype dtype, double value)
{
    double most = rounding_bound(dtype, value);
    return mode == ERRORS_WORST ? most : most * most / 3;
}

static inline double rounding_power(enum dtype dtype, double value)
{
    return rounding_power_in(error_mode, dtype, value);
}

/* The power of the error of a sum of `count` terms that is rounded to a dtype after each of them, in any order. `powers`
 * is the sum of the powers of the terms. Taken in random order, the sum of the first j terms has the mean sum j / count,
 * and about j / count of the variance of all. */
static inline double accumulation_power_in(enum error_mode mode, enum dtype dtype, double count, double sum,
                                           double powers)
{
    double unit = error_unit[dtype];
    if (mode == ERRORS_WORST)
        return unit * count * powers;
    return unit * unit * count * (sum * sum / 9 + powers / 6);
}

static inline double accumulation_power(enum dtype dtype, double count, double sum, double powers)
{
    return accumulation_power_in(error_mode, dtype, count, sum, powers);
}

/* Defines a function that does what NAME_in does, which has the mode before these parameters. The version for deviations is fast, as
 * that of a VECTOR_FUNCTION is; the one for bounds is small, since nobody asks for its speed. */
#define ERROR_FUNCTION(name, parameters, arguments)                                                                    \
    VECTOR_AVX2 static void name##_statistical parameters                                                              \
    {                                                                                                                  \
        name##_in(ERRORS_STATISTICAL, ERROR_ARGUMENTS arguments);                                                      \
    }                                                                                                                  \
    VECTOR_SMALL static void name##_any parameters                                                                     \
    {                                                                                                                  \
        name##_in(error_mode, ERROR_ARGUMENTS arguments);                                                              \
    }                                                                                                                  \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        if (error_mode != ERRORS_WORST && vector_has_avx2())                                                           \
            name##_statistical arguments;                                                                              \
        else                                                                                                           \
            name##_any arguments;                                                                                      \
    }
#define ERROR_ARGUMENTS(...) __VA_ARGS__

/* How far a value of an error may be from the exact one, before it is rounded to be stored. */
static inline double error_allowance(double error)
{
    return error_mode == ERRORS_WORST ? error : ERROR_MARGIN * error;
}

#endif
