/* written.h: which bytes kernels have written so far, in the data pass. A view with gaps counts from its first byte to its
 * last, so it may look as if more was written, never less. */
#ifndef KB_WRITTEN_H
#define KB_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

struct view;

void written_add(const struct view *view);

/* Whether a byte of [offset, offset + bytes) of a memory was written. */
bool written_any(uint32_t memory, uint64_t offset, uint64_t bytes);

void written_reset(void);

#endif
