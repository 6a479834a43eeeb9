/* point.h: a point of a sweep: values for the parameters of the bench that was taken. */
#ifndef KB_POINT_H
#define KB_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/diag.h"

struct point {
    struct kb_value *values;                            /* in the order of the bench's parameters */
    uint64_t seed;
};

/* Reads a line, such as {"rows": 4096, "op": "max", "--seed": 7}, over the values and the seed that `point` has, into
 * values of its own. What is wrong is reported at its place; false: something was. The line is to stay. */
bool point_read(const struct source *line, struct point *point);

#endif
