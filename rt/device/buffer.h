/* buffer.h: buffers that a kernel allocates in its TCM. */
#ifndef KB_BUFFER_H
#define KB_BUFFER_H

#include "call.h"

/* Allocates bytes of this PE's TCM, until tl_free or the end of the kernel. KERNEL_ERROR if no gap is large enough: it
 * lists what holds the TCM. */
uint64_t buffer_alloc(const struct call *call, uint64_t bytes);

/* The kernel looks at the elements of a view of this PE's TCM: a fault if it may not. To be called before the two below. */
void buffer_look(const struct call *call, const struct view *view);

/* Copies the elements, as they are now, to `to`. PENDING_RESULT if some are not known yet. */
void buffer_read(const struct call *call, const struct view *view, void *to);

/* Whether all the elements are known to be 0 without being read. */
bool buffer_known_zero(const struct view *view);

/* Frees all buffers of a kernel, and what tl_data returned. */
void buffer_free_all(struct tl *tl);

#endif
