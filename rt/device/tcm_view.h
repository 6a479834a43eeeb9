/* tcm_view.h: tensors in the TCM that an engine writes, and how shapes are called. */
#ifndef KB_TCM_VIEW_H
#define KB_TCM_VIEW_H

#include "call.h"

/* A shard in the TCM of the PE that calls, for what an engine writes: as call_buffer, and each element has a place of
 * its own, else KERNEL_ERROR. */
struct view tcm_result(const struct call *call, const struct tl_shard *shard);

enum { VIEW_SHAPE = 100 };

/* "3 x 5", for messages. */
const char *view_shape_name(const struct view *view, char name[VIEW_SHAPE]);

#endif
