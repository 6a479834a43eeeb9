/* buffer.h: buffers that calls of the device library allocate. */
#ifndef KB_BUFFER_H
#define KB_BUFFER_H

#include "call.h"

/* The address of so many bytes in the TCM of the PE that calls, until tl_free or the end of the kernel. No room is a
 * KERNEL_ERROR that lists what holds the TCM. */
uint64_t buffer_take(const struct call *call, uint64_t bytes);

#endif
