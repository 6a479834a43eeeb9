/* extents.h: a set of ranges that may overlap, in which those that overlap a range are found: a treap. */
#ifndef KB_EXTENTS_H
#define KB_EXTENTS_H

#include <stdint.h>

/* Stands within what it is the range of. */
struct extent {
    uint64_t begin, end;                                /* end > begin */
    uint64_t last_end;                                  /* the greatest of it and those below it */
    uint32_t priority;                                  /* at least those below it */
    struct extent *left, *right;                        /* that begin no later, or no earlier */
};

void extents_add(struct extent **root, struct extent *extent);
void extents_remove(struct extent **root, struct extent *extent);

/* Calls f for every one that overlaps [begin, end); the set stays as it is meanwhile. */
void extents_each(struct extent *root, uint64_t begin, uint64_t end, void (*f)(struct extent *extent, void *arg),
                  void *arg);

#endif
