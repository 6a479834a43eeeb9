/* tcm_view.h: tensors in the TCM that an engine computes on. */
#ifndef KB_TCM_VIEW_H
#define KB_TCM_VIEW_H

#include "device_call.h"

/* A shard in the TCM of the PE that calls, with any strides, as a view; faults name the call and the operand:
 * KERNEL_ERROR: it is none, empty, virtual, elsewhere, or a receive will write it; BAD_ADDRESS: outside, unaligned. */
struct view tcm_view(const struct call *call, const char *name, const struct tl_shard *shard);

/* The same for what an engine writes: each element has a place of its own, else KERNEL_ERROR. */
struct view tcm_result(const struct call *call, const struct tl_shard *shard);

enum { VIEW_SHAPE = 100 };

/* "3 x 5", for messages. */
const char *view_shape_name(const struct view *view, char name[VIEW_SHAPE]);

#endif
