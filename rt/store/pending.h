/* pending.h: which bytes of a memory are the results of computes that only the data pass will do, and whose.
 *
 * Ranges of offsets, each with the call of the compute that makes it. What there is to keep grows with how the bytes
 * that are pending lie, not with how many operations there were; finding a byte takes the logarithm of that. */
#ifndef KB_PENDING_H
#define KB_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "origin.h"

struct mark;
struct span;
struct view;

/* Of one memory; all 0: nothing is pending. */
struct pending {
    struct span *root;
    struct mark *marks;                                 /* whole results that nobody has looked at since, in order */
    uint32_t count;
    uint64_t begin, end;                                /* where these lie */
};

/* From here on the elements of a view of this memory are what `maker` makes, which is then held. */
void pending_mark(struct pending *pending, const struct view *view, struct origin *maker);

/* From here on these bytes are what `maker` makes, which is then held; NULL: they are not pending. */
void pending_set(struct pending *pending, uint64_t offset, uint64_t bytes, struct origin *maker);

/* The same for bytes that are copied from elsewhere, as these are there. The two may overlap. */
void pending_copy(struct pending *to, uint64_t to_offset, struct pending *from, uint64_t from_offset, uint64_t bytes);

/* The maker of the first pending byte of a range, and which that is; NULL: there is none. */
struct origin *pending_find(struct pending *pending, uint64_t offset, uint64_t bytes, uint64_t *first);

/* Nothing is pending any more. */
void pending_clear(struct pending *pending);

/* All that there was is gone, with the arena that held it. */
void pendings_reset(void);

#endif
