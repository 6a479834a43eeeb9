/* softmax.h: a softmax of one row, with the errors of its elements (axis.c). */
#ifndef KB_SOFTMAX_H
#define KB_SOFTMAX_H

#include "base/dtype.h"

/* Turns a row of at least one element into its weights, where ops round to a dtype, and the powers (error.h) of the
 * elements' errors into those of the weights: a weight is p = e / (sum of e), and its power that of its e, over the sum.
 * The errors of all e reach p through the sum; the error of p's own e reaches it there with the opposite sign. Returns the
 * power of the errors that all weights share, relative to the sum. */
double softmax_row(enum dtype dtype, double *value, double *power, uint64_t columns);

#endif
