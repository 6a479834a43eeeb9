/* look.h: what the host sees of tensors, without simulated time. */
#ifndef KB_LOOK_H
#define KB_LOOK_H

#include "store/tensor.h"

/* All elements as they are now, row-major, of copies the first one's. If some are the pending results of computes, the
 * data pass runs first; with --data off that is misuse. */
void look(const struct tensor *tensor, void *to, const char *call, const char *file, uint32_t line);

#endif
