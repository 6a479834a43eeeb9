/* fill.h: values that the host writes into a tensor. */
#ifndef KB_FILL_H
#define KB_FILL_H

#include "tensor.h"

struct fill {
    struct tensor *tensor;
    enum kb_fill_kind kind;
    double x, y;                                        /* the value; low and high; mean and deviation */
    const void *given;                                  /* of KB_GIVEN: all elements, row-major */
};

/* The run's seed: every random value depends on it. */
extern uint64_t fill_seed;

/* Writes all values of a fill into the store, to every copy, on all threads: not for one of them. The values are the same
 * each time. */
void fill_write(const struct fill *fill);

/* Writes bytes [offset, offset + bytes) of a shard as the fill makes them; NULL: of the whole tensor. */
void fill_read(const struct fill *fill, const struct shard *shard, uint64_t offset, uint64_t bytes, void *to);

#endif
