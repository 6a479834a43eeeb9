/* far.h: where the data of a load or store lie in memory. */
#ifndef KB_FAR_H
#define KB_FAR_H

#include "call.h"

/* Elements of the memory side and those of the buffer that belong to them. */
struct far_copy {
    struct view near, far;
};

/* The whole of a transfer between a buffer at a physical address and a shard of the same shape: one copy, or several
 * where pages that follow one another lie apart, as pages are mapped now. None: some are unmapped or no memory, so that
 * the DMA will fault and no data move. They stand until the next call. */
size_t far_copies(const struct call *call, const struct tl_shard *near, const struct tl_shard *far,
                  struct far_copy **copies);

#endif
