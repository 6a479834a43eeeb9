/* pending.h: the bytes of a memory that are results of gemms and math ops which only the data pass will compute, and
 * the operations that make them.
 *
 * An interval map from offsets to operations. Its size grows with the number of ranges, not with the number of
 * operations. */
#ifndef KB_PENDING_H
#define KB_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/interval_map.h"

struct op_ref;
struct view;

/* Of one memory; all 0: nothing is pending. */
struct pending {
    struct interval_map map;
    struct pending_view *views;                         /* results that are not in the map yet, in order */
    uint32_t count;
    uint64_t begin, end;                                /* range that holds these */
};

/* Makes the elements of a view of this memory the results of `maker`, and holds it. */
void pending_set_view(struct pending *pending, const struct view *view, struct op_ref *maker);

/* Makes bytes the results of `maker`, and holds it; NULL: they are not pending. */
void pending_set(struct pending *pending, uint64_t offset, uint64_t bytes, struct op_ref *maker);

/* Makes bytes as pending as those that they are copied from. The two ranges may overlap. */
void pending_copy(struct pending *to, uint64_t to_offset, struct pending *from, uint64_t from_offset, uint64_t bytes);

/* Returns the maker of the first pending byte of a range, and which byte that is; NULL if none is pending. */
struct op_ref *pending_find(struct pending *pending, uint64_t offset, uint64_t bytes, uint64_t *first);

/* Nothing is pending any more. */
void pending_clear(struct pending *pending);

/* Frees what all memories' maps took; they have been cleared. */
void pending_reset(void);

#endif
