/* deferred.h: references that are computed when their values are needed: in panels of rows as they are compared with a tensor, so
 * that a large one takes the memory of what it is made from, or whole when another reference needs its values. */
#ifndef KB_DEFERRED_H
#define KB_DEFERRED_H

#include "reference.h"

struct row_panel {
    uint64_t row, rows;
};

/* Defers a reference without values, until it is computed from `from`, which is released then, or dropped. */
void reference_defer(struct reference *ref, compute_panel *compute, void (*release)(void *from), void *from);

/* The rows that are computed at once, which never cross matrices of a batch. */
uint64_t deferred_panels(const struct reference *ref);
struct row_panel deferred_panel(const struct reference *ref, uint64_t i);

/* Computes the values and errors of a reference that is deferred, or converts its raw elements; does nothing to others. */
void deferred_evaluate(struct reference *ref);

/* Frees what a reference is deferred with. */
void deferred_drop(struct reference *ref);

#endif
