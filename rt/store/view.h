/* view.h: elements of one dtype in a memory, by shape and strides: what operations read and write. */
#ifndef KB_VIEW_H
#define KB_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "machine/runs.h"
#include "store.h"

enum { VIEW_RANK = 4 };

/* Element (i, j, ...) lies i * stride[0] + j * stride[1] + ... elements behind the first. A stride of 0 repeats an
 * element: an operand that is broadcast. Axes beyond the rank have shape 1 and stride 0. */
struct view {
    uint32_t memory;
    enum dtype dtype;
    uint32_t rank;                                      /* 1 to VIEW_RANK */
    uint64_t offset;                                    /* of the first element, in bytes */
    uint64_t shape[VIEW_RANK], stride[VIEW_RANK];
};

/* Bytes, as elements of u8. */
struct view view_bytes(uint32_t memory, uint64_t offset, uint64_t bytes);

/* The first `columns` elements of rows of `ld`. */
struct view view_matrix(uint32_t memory, enum dtype dtype, uint64_t offset, uint64_t rows, uint64_t columns,
                        uint64_t ld);

/* A view of the same shape with consecutive elements, row-major. */
struct view view_without_gaps(const struct view *like);

static inline uint64_t view_elements(const struct view *view)
{
    return view->shape[0] * view->shape[1] * view->shape[2] * view->shape[3];
}

/* Bytes of its elements; an element that is repeated counts each time. */
static inline uint64_t view_bytes_of(const struct view *view)
{
    return view_elements(view) * dtype_bytes[view->dtype];
}

/* Bytes from the first element to the end of the last; 0 for a view without elements. */
static inline uint64_t view_span(const struct view *view)
{
    uint64_t last = 0;
    if (view_elements(view) == 0)
        return 0;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        last += (view->shape[axis] - 1) * view->stride[axis];
    return (last + 1) * dtype_bytes[view->dtype];
}

/* Calls f for each longest run of consecutive bytes, in the order of elements. */
void view_each_run(const struct view *view, void (*f)(uint64_t offset, uint64_t bytes, void *arg), void *arg);

/* The number of longest runs of bytes that are consecutive in both of two views of one shape and one size of elements. */
uint64_t view_runs_of_two(const struct view *to, const struct view *from);

/* Calls f for each of these runs, in the order of elements. */
void view_each_run_of_two(const struct view *to, const struct view *from,
                          void (*f)(uint64_t to_offset, uint64_t from_offset, uint64_t bytes, void *arg), void *arg);

/* Copies the bytes of the store between such views. */
void view_copy(const struct view *to, const struct view *from);

/* Makes all elements addressable in the store. */
void view_reach(const struct view *view);

/* The bytes of a view with elements, for runs_meet with views of the same memory. */
struct placed_runs view_placed(const struct view *view);

/* Finds consecutive bytes that two views have in common: [*first, *end) of their memory, the lowest ones. Returns false
 * if there are none. */
bool views_meet(const struct view *x, const struct view *y, uint64_t *first, uint64_t *end);

/* Whether two views have a byte in common. */
bool view_overlap(const struct view *x, const struct view *y);

/* Whether a view with elements has each byte from its first to its last once, in any order. */
bool view_is_dense(const struct view *view);

/* Element (i, j) of a view of at most two axes, within reach in the store. */
static inline void *view_at(const struct view *view, uint64_t i, uint64_t j)
{
    uint64_t element = i * view->stride[0] + j * view->stride[1];
    return store_at(view->memory, view->offset + element * dtype_bytes[view->dtype]);
}

#endif
