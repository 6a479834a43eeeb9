/* softmax.h: a softmax of one row, with the errors of its elements (axis.c). */
#ifndef KB_SOFTMAX_H
#define KB_SOFTMAX_H

#include "base/dtype.h"

/* Elements of a row and their errors; NULL: 0. */
struct softmax_line {
    const double *value;
    const float *error;
};

/* The weights of a row whose ops round to a dtype; they may take the place of the row. A weight is p = e / (sum of e):
 * `error` is that of its e, divided by the sum. Errors of all e reach p through the sum, that of its own e with the other
 * sign. Returns the power of the sum's other errors, relative to it: each weight has them in common. */
double softmax_row(enum dtype dtype, struct softmax_line x, uint64_t columns, double *value, float *error);

#endif
