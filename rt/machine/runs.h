/* runs.h: the bytes of a strided view, as runs of one length at regular distances: what a DMA asks memories for. */
#ifndef KB_RUNS_H
#define KB_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

enum { RUN_AXES = 4, RUNS_MOST = 4096 };                /* RUNS_MOST: of one command */

/* Piece (i, j, ...) begins i * distance[0] + j * distance[1] + ... bytes behind the first. The first axis is the one of
 * the shortest distance; each reaches beyond all before it, so the pieces of the last axis in order are in order of
 * address. A run is what pieces that follow one another without a gap make up: mostly one. */
struct runs {
    uint64_t bytes;                                     /* of each piece */
    uint32_t axes;                                      /* none: it is one run */
    uint64_t count[RUN_AXES], distance[RUN_AXES];
};

/* Of elements of a size by shape and strides; a shape has RUN_AXES sizes, none of them 0. Returns false if elements lie
 * over one another, or between those of another index: then it is one run from the first to the end of the last. */
bool runs_of(struct runs *runs, const uint64_t *shape, const uint64_t *stride, uint64_t element_bytes);

/* How many runs; at most UINT64_MAX. */
uint64_t runs_number(const struct runs *runs);

/* Bytes from the first run to the end of the last. */
uint64_t runs_span(const struct runs *runs);

/* Writes all runs, from an address on, in order of address. A physical address wraps at the end of its offset. */
void runs_list(const struct runs *runs, uint64_t address, bool is_virtual, struct address_run *out);

/* Finds the lowest bytes [first, end) that follow one another and that runs from an offset on and others from another
 * offset have in common. Returns false if there are none. */
bool runs_meet(const struct runs *x, uint64_t x_offset, const struct runs *y, uint64_t y_offset, uint64_t *first,
               uint64_t *end);

#endif
