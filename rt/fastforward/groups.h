/* groups.h: groups of PEs with all that their composites use: nodes, links, memories. */
#ifndef KB_ALIKE_GROUP_H
#define KB_ALIKE_GROUP_H

#include "fingerprint.h"

/* Groups of equal size, group by group in rank order. What corresponds has the same position in each group. */
struct groups {
    uint32_t count, pes, nodes, links;                  /* how many groups; in each */
    struct pe **pe;                                     /* count * pes */
    uint32_t *node, *link;                              /* ranks, count * nodes; numbers, count * links */
};

/* Groups of these PEs, by rank, whose composites use no virtual addresses. False: there are not several, or they are of
 * unlike build. Holds until the next call. */
bool groups_find(struct pe *const *pes, uint32_t count, struct groups *groups);

/* Labels of nodes, by rank: their positions in their groups. */
const uint32_t *groups_labels(void);

/* Whether a node is in one of the groups but the first. */
bool groups_follows(uint32_t rank);

#endif
