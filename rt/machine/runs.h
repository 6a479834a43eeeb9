/* runs.h: the bytes of a strided view, as runs of one length at regular distances: what a DMA asks memories for. */
#ifndef KB_RUNS_H
#define KB_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

struct view;

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

/* Finds bytes that follow one another and that two views have in common, [first, end) of their memory, from the lowest
 * on; false: there are none. */
bool views_meet(const struct view *x, const struct view *y, uint64_t *first, uint64_t *end);

/* Whether there are any. */
bool view_overlap(const struct view *x, const struct view *y);

/* Whether a view with elements has each byte from its first to its last once, in whatever order. */
bool view_is_dense(const struct view *view);

#endif
