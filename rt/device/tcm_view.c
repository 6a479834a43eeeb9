/* tcm_view.c: tensors in the TCM that an engine writes, and how shapes are called. */
#include "tcm_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "machine/tiling.h"

struct view tcm_result(const struct call *call, const struct tl_shard *shard)
{
    struct view view = call_buffer(call, "the result", shard);
    struct runs runs;
    if (!runs_of(&runs, view.shape, view.stride, dtype_bytes[view.dtype]))
        call_error(call, "elements of the result lie over one another");
    return view;
}

const char *view_shape_name(const struct view *view, char name[VIEW_SHAPE])
{
    int used = 0;
    for (uint32_t axis = 0; axis < view->rank; axis++)
        used += snprintf(name + used, VIEW_SHAPE - (size_t)used, "%s%" PRIu64, axis ? " x " : "", view->shape[axis]);
    return name;
}
