/* squares.h: the sum of squares of f64 values, in four partial sums. */
#ifndef KB_SQUARES_H
#define KB_SQUARES_H

#include <stdint.h>

#include "base/vector.h"

/* Sets *sum to the sum of values[i]^2 over `count` values. */
VECTOR_BODY void sum_squares_body(const double *values, uint64_t count, double *sum)
{
    enum { LANES = 4 };
    double some[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (unsigned lane = 0; lane < LANES; lane++)
            some[lane] += values[i + lane] * values[i + lane];
    for (; i < count; i++)
        some[0] += values[i] * values[i];
    *sum = some[0] + some[1] + (some[2] + some[3]);
}
VECTOR_FUNCTION(sum_squares, (const double *values, uint64_t count, double *sum), (values, count, sum))

#endif
