/* buffer.h: buffers that a kernel allocates in its TCM. */
#ifndef KB_BUFFER_H
#define KB_BUFFER_H

#include "call.h"

/* Allocates bytes of this PE's TCM, until tl_free or the end of the kernel. KERNEL_ERROR if no gap is large enough: it
 * lists what holds the TCM. */
uint64_t buffer_alloc(const struct call *call, uint64_t bytes);

/* Frees all buffers of a kernel, and what tl_data returned. */
void buffer_free_all(struct tl *tl);

#endif
