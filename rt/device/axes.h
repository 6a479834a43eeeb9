/* axes.h: operands of composites with axes of their own (tl_in_axes), as the data pass sees them.
 *
 * Where the rows are at one distance and the columns at another one, the operand is a view. Other operands are brought
 * together in a staging area ahead of the command, in copies of as many axes as views have. */
#ifndef KB_AXES_H
#define KB_AXES_H

#include "kb/tl.h"
#include "store/operation.h"

/* The axes of more than one index, the outermost first, and their distances in the matrix without gaps. */
struct axes {
    uint32_t count, rows;                               /* rows: those of the rows */
    uint64_t size[2 * TL_AXES], stride[2 * TL_AXES], packed[2 * TL_AXES];
};

/* The rows or the columns of an operand: the product of the sizes; UINT64_MAX if that is more. */
uint64_t axes_product(const struct tl_axis *axis);

/* How far the last element is behind the first, in elements; UINT64_MAX at most. */
uint64_t axes_reach(const struct tl_axes *axes);

/* The axes, with those joined that are one: axes of rows, and axes of columns. */
struct axes axes_of(const struct tl_axes *axes);

/* Sets a view of the matrix, of which memory, dtype and offset are given. Returns false if it takes more axes. */
bool axes_view(const struct axes *axes, struct view *view);

/* Calls f for copies of all elements from where `from` begins to where `to` begins. */
void axes_each_copy(const struct axes *axes, const struct view *from, const struct view *to,
                    void (*f)(const struct view *from, const struct view *to, void *arg), void *arg);

#endif
