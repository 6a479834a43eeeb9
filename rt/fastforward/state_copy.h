/* state_copy.h: brings a PE, and parts of the fabric, into the state of others that they correspond to. */
#ifndef KB_ALIKE_COPY_H
#define KB_ALIKE_COPY_H

#include "groups.h"

/* Copies go from the first group of some to another one. */
struct copies {
    const struct groups *groups;
    uint32_t to;                                        /* the group */
};

/* What corresponds to a node of the first group; `copies` is a struct copies. */
uint32_t copies_node(uint32_t rank, const void *copies);

/* Puts away the tiles that are under way on a PE, whose events do not wait any more. */
void copy_clear(struct pe *pe);

/* Tiles and their transfers under way, queues, engines, feeder. `composite` is that of `from`, and corresponds to the
 * one that `to` feeds; NULL: both are complete. */
void copy_pe(const struct copies *copies, struct pe *to, const struct pe *from, const struct command *composite);

#endif
