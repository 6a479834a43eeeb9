/* evaluator.h: the math ops of kb/ops.def by their definition: in f64 and in integers, one element at a time. */
#ifndef KB_EVALUATOR_H
#define KB_EVALUATOR_H

#include <stdbool.h>

#include "store/operation.h"

/* What references and --data debug evaluate an op with. Operands that it does not have are not used. */
struct evaluator {
    double (*value)(double x, double y, double z);
    /* Of operands in the range of i32: the exact result, which the caller wraps to an integer dtype. */
    int64_t (*whole)(int64_t x, int64_t y, int64_t z);
    /* Bounds of |d value / dx| and |d value / dy|, where f is the value. */
    double (*slope_x)(double x, double y, double f);
    double (*slope_y)(double x, double y, double f);
    /* The same of many elements. */
    void (*values)(const double *x, const double *y, double *f, uint64_t count);
    void (*slopes_x)(const double *x, const double *y, const double *f, double *slope, uint64_t count);
    void (*slopes_y)(const double *x, const double *y, const double *f, double *slope, uint64_t count);
};

/* A relation is only for cmp. */
const struct evaluator *evaluator_of(uint16_t op, enum relation relation);

/* The power of the error (error.h) of an op that the data pass computes of exact operands, before its result f is
 * stored. */
double evaluator_power(uint16_t op, double x, double y, double f);

/* The same of many elements, from their slopes along x. */
void evaluator_powers(uint16_t op, const double *x, const double *slope_x, const double *f, double *power,
                      uint64_t count);

/* The power of the error of a reduction to a value, of `count` exact terms with the power `powers` in all. */
double reduction_power(uint16_t op, double count, double value, double powers);

/* Elements at equal distances. */
struct line {
    const double *at;
    uint64_t count, stride;
};

/* Reduces a line, in the order of its elements: in f64, or, if `whole`, as integers that wrap in i32. */
double evaluate_reduction(uint16_t op, bool whole, struct line line);

#endif
