/* view.h: elements of one dtype in a memory, by shape and strides: what operations read and write. */
#ifndef KB_VIEW_H
#define KB_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tables.h"
#include "store.h"

enum { VIEW_RANK = 4 };

/* Element (i, j, ...) lies i * stride[0] + j * stride[1] + ... elements behind the first. A stride of 0 gives the same
 * element again and again: an operand that is broadcast. Axes beyond the rank have shape 1 and stride 0. */
struct view {
    uint32_t memory;
    enum dtype dtype;
    uint32_t rank;                                      /* 1 to VIEW_RANK */
    uint64_t offset;                                    /* of the first element, in bytes */
    uint64_t shape[VIEW_RANK], stride[VIEW_RANK];
};

/* So many bytes, as elements of u8. */
struct view view_bytes(uint32_t memory, uint64_t offset, uint64_t bytes);

/* Rows of `ld` elements, of which `columns` are meant. */
struct view view_matrix(uint32_t memory, enum dtype dtype, uint64_t offset, uint64_t rows, uint64_t columns,
                        uint64_t ld);

uint64_t view_elements(const struct view *view);

/* The bytes of its elements; of those that it repeats, each time. */
uint64_t view_bytes_of(const struct view *view);

/* Bytes from the first element to the end of the last; 0 of a view without elements. */
uint64_t view_span(const struct view *view);

/* Calls f for each longest run of bytes that follow one another, in the order of elements: its offset, its length. */
void view_each_run(const struct view *view, void (*f)(uint64_t offset, uint64_t bytes, void *arg), void *arg);

/* Copies element by element between views of one shape and size of elements; in `now` with their being pending. */
void view_copy(enum image image, const struct view *to, const struct view *from);

/* Finds bytes that follow one another and that two views have in common, [first, end) of their memory, from the lowest
 * on. Returns false if there are none. */
bool views_meet(const struct view *x, const struct view *y, uint64_t *first, uint64_t *end);

/* Whether there are any. */
bool view_overlap(const struct view *x, const struct view *y);

/* Whether a view with elements has each byte from its first to its last once, in whatever order. */
bool view_is_dense(const struct view *view);

/* Makes all elements addressable. */
void view_reach(enum image image, const struct view *view);

/* Bytes of an element. */
static inline uint64_t view_size(const struct view *view)
{
    static const uint8_t sizes[] = {
#define DTYPE(name, bytes, is_float) bytes,
#include "kb/dtypes.def"
#undef DTYPE
    };
    return sizes[view->dtype];
}

/* Where element (i, j) of a view of at most two axes is; it is within reach. */
static inline void *view_at(enum image image, const struct view *view, uint64_t i, uint64_t j)
{
    uint64_t element = i * view->stride[0] + j * view->stride[1];
    return store_at(image, view->memory, view->offset + element * view_size(view));
}

#endif
