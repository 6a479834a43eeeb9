/* written.h: which bytes kernels have written so far, in the data pass, and which of them since they were last known: put
 * there by the host, or verified. A view with gaps counts from its first byte to its last, so it may look as if more was
 * written, never less. */
#ifndef KB_WRITTEN_H
#define KB_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

struct tensor;
struct view;

void written_add(const struct view *view);

/* What a tensor holds is known now. */
void written_known(struct tensor *tensor);

/* Whether a byte of a tensor was written. */
bool written_any(const struct tensor *tensor);

struct written_byte {
    uint32_t memory;
    uint64_t offset;
};

/* Whether a tensor that was known was overwritten since; of copies, the first one, which the host looks at. Then `at`, if
 * not NULL, becomes one such byte. */
bool written_over(const struct tensor *tensor, struct written_byte *at);

void written_reset(void);

#endif
