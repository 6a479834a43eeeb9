/* tcm_view.c: tensors in the TCM that an engine computes on. */
#include "tcm_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "flight.h"
#include "plan.h"

enum { SIZE_BITS = 40 };                                /* more than any memory holds */

/* Bytes from the first element to the end of the last. */
static uint64_t span_of(const struct call *call, const char *name, const struct tl_shard *shard)
{
    uint64_t last = 0;
    for (uint32_t axis = 0; axis < shard->rank; axis++) {
        uint64_t reach;
        if (shard->shape[axis] == 0)
            call_error(call, "%s is empty", name);
        if (__builtin_mul_overflow(shard->shape[axis] - 1, shard->stride[axis], &reach) || reach >> SIZE_BITS ||
            shard->shape[axis] >> SIZE_BITS)
            call_error(call, "%s reaches further than any memory", name);
        last += reach;
    }
    return (last + 1) * dtype_bytes[shard->dtype];
}

struct view tcm_view(const struct call *call, const char *name, const struct tl_shard *shard)
{
    if (shard->rank < 1 || shard->rank > KB_RANK || shard->dtype >= DTYPES)
        call_error(call, "%s has %u axes and dtype number %u, which is no shard", name, shard->rank, shard->dtype);
    uint64_t bytes = span_of(call, name, shard), size = dtype_bytes[shard->dtype];
    if (shard->is_virtual)
        call_error(call, "%s is at a virtual address; an engine computes on the TCM", name);
    struct range range = call_range(call, name, shard->addr, bytes);
    if (!call_owns(call, &range))
        call_error(call, "%s at %s is not in this PE's TCM", name, address_name(shard->addr));
    flights_check_use(call, &range);
    if (range.offset % size)
        call_fault(call, FAULT_BAD_ADDRESS, "%s at %s is not aligned to %s", name, address_name(shard->addr),
                   dtype_words[shard->dtype]);
    struct view view = {.memory = range.memory, .dtype = shard->dtype, .rank = shard->rank, .offset = range.offset,
                        .shape = {1, 1, 1, 1}};
    for (uint32_t axis = 0; axis < shard->rank; axis++) {
        view.shape[axis] = shard->shape[axis];
        view.stride[axis] = shard->shape[axis] > 1 ? shard->stride[axis] : 0;
    }
    return view;
}

/* From the shortest stride on, an axis goes further than all that lie within it. */
static bool lies_over_itself(const struct view *view)
{
    uint64_t within = 0;                                /* from the first element to the last of the axes done */
    bool done[VIEW_RANK] = {false};
    for (uint32_t i = 0; i < view->rank; i++) {
        uint32_t next = VIEW_RANK;
        for (uint32_t axis = 0; axis < view->rank; axis++)
            if (!done[axis] && (next == VIEW_RANK || view->stride[axis] < view->stride[next]))
                next = axis;
        done[next] = true;
        if (view->shape[next] > 1 && view->stride[next] <= within)
            return true;
        within += (view->shape[next] - 1) * view->stride[next];
    }
    return false;
}

struct view tcm_result(const struct call *call, const struct tl_shard *shard)
{
    struct view view = tcm_view(call, "the result", shard);
    if (lies_over_itself(&view))
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
