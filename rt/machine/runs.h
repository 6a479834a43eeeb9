/* runs.h: the bytes of a strided view, as runs of one length at regular distances: what a DMA asks memories for. */
#ifndef KB_RUNS_H
#define KB_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

enum { RUN_AXES = 4 };

/* Piece (i, j, ...) begins i * distance[0] + j * distance[1] + ... bytes after the first. Axes are sorted by distance,
 * the shortest first, and each is longer than all before it together, so the pieces in the order of their indices, the
 * last axis slowest, are in the order of addresses. Pieces that touch make one run: mostly there is one. */
struct runs {
    uint64_t bytes;                                     /* of each piece */
    uint32_t axes;                                      /* 0: one run */
    uint64_t count[RUN_AXES], distance[RUN_AXES];
};

/* The runs of elements of a size, by shape and strides: RUN_AXES of each, no size 0. Returns false if elements overlap
 * or interleave with those of another index: then there is one run, from the first to the end of the last. */
bool runs_of(struct runs *runs, const uint64_t *shape, const uint64_t *stride, uint64_t element_bytes);

/* How many runs there are, UINT64_MAX at most. */
uint64_t runs_number(const struct runs *runs);

/* Bytes from the first run to the end of the last. */
uint64_t runs_span(const struct runs *runs);

/* Writes all runs, the first one at an address, in the order of addresses. A physical address wraps at the end of its
 * offset. */
void runs_list(const struct runs *runs, uint64_t address, bool is_virtual, struct address_run *out);

/* Runs at their place in a memory, prepared for comparisons with others of the same memory. */
struct placed_runs {
    struct runs runs;
    uint64_t begin, end;                                /* from the first byte to behind the last */
    uint64_t column;                                    /* of one axis: where its rows begin, modulo their distance */
};

struct placed_runs runs_placed(const struct runs *runs, uint64_t offset);

/* Finds the lowest contiguous bytes [first, end) that two have in common. Returns false if there are none. */
bool runs_meet(const struct placed_runs *x, const struct placed_runs *y, uint64_t *first, uint64_t *end);

#endif
