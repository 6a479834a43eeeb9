/* fill.h: values that the host writes into a tensor. */
#ifndef KB_FILL_H
#define KB_FILL_H

#include "store.h"
#include "tensor.h"

struct fill {
    struct tensor *tensor;
    enum kb_fill_kind kind;
    double x, y;                                        /* the value; low and high; mean and deviation */
    const void *given;                                  /* of KB_GIVEN: all elements, row-major */
};

/* The run's seed: every random value depends on it. */
extern uint64_t fill_seed;

/* Writes all values of a fill, to every copy. The values are the same each time. */
void fill_write(const struct fill *fill, enum image image);

#endif
