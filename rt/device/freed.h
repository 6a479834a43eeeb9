/* freed.h: the parts of its TCM that a kernel gave back and did not get again: whoever still uses one is told where it
 * was given back. */
#ifndef KB_FREED_H
#define KB_FREED_H

#include "call.h"

/* A tl_free gave these bytes back. */
void freed_add(const struct call *call, uint64_t offset, uint64_t bytes);

/* They are given out again. */
void freed_taken(const struct tl *tl, uint64_t offset, uint64_t bytes);

/* What a call uses must not have been given back: KERNEL_ERROR. */
void freed_check(const struct call *call, const struct view *used);

/* The kernel has ended. */
void freed_end(const struct tl *tl);

#endif
