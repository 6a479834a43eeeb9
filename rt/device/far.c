/* far.c: where the data of a load or store lie in memory. */
#include "far.h"

#include <stdlib.h>

#include "machine/mmu.h"
#include "machine/tiling.h"
#include "machine/runs.h"
#include "common/diag.h"

static struct far_copy *found;
static size_t count, room;

static void copy_add(struct far_copy copy)
{
    if (count == room) {
        room = room ? 2 * room : 16;
        found = realloc(found, room * sizeof *found);
        if (!found)
            die("no memory for the copies of a transfer:");
    }
    found[count++] = copy;
}

enum mapping { IN_ONE, IN_PARTS, NOWHERE };

/* Where runs of virtual addresses begin in memory, if all of them lie there as they do here. */
static enum mapping mapped(const struct call *call, const struct runs *runs, uint64_t *address)
{
    static struct address_run list[RUNS_MOST];
    uint64_t first = 0, runs_count = runs_number(runs);
    runs_list(runs, *address, true, list);
    for (uint64_t i = 0; i < runs_count; i++) {
        struct translation t = mmu_look(call->tl->pe, list[i].address, list[i].bytes);
        if (t.unmapped)
            return NOWHERE;
        if (t.count > 1 || (i && t.runs->address - first != list[i].address - list[0].address))
            return IN_PARTS;
        first = i ? first : t.runs->address;
    }
    *address = first;
    return IN_ONE;
}

static enum mapping located(const struct call *call, const struct tl_shard *shard, struct view *view)
{
    struct runs runs;
    struct range range;
    uint64_t address = shard->addr;
    *view = call_shape(call, "the shard", shard);
    runs_of(&runs, view->shape, view->stride, dtype_bytes[view->dtype]);
    enum mapping where = call_translates(shard->is_virtual) ? mapped(call, &runs, &address) : IN_ONE;
    if (where == IN_ONE && address_decode(address, runs_span(&runs), &range))
        where = NOWHERE;
    if (where == IN_ONE) {
        view->memory = range.memory;
        view->offset = range.offset;
    }
    return where;
}

/* Half of a shard along an axis. */
static struct tl_shard half(const struct tl_shard *shard, uint32_t axis, bool second)
{
    struct tl_shard part = *shard;
    uint64_t size = shard->shape[axis], first = second ? size / 2 : 0;
    part.addr += first * shard->stride[axis] * dtype_bytes[shard->dtype];
    part.shape[axis] = second ? size - first : size / 2;
    return part;
}

/* Adds the copies; what does not lie in one part is halved along its longest axis, down to one element, which always
 * does. False: some of it is nowhere. */
static bool split(const struct call *call, const struct tl_shard *near, const struct tl_shard *far)
{
    struct view view;
    uint32_t longest = 0;
    enum mapping where = located(call, far, &view);
    if (where == IN_ONE)
        copy_add((struct far_copy){call_view(call, "the buffer", near), view});
    if (where != IN_PARTS)
        return where == IN_ONE;
    for (uint32_t axis = 1; axis < far->rank; axis++)
        if (far->shape[axis] > far->shape[longest])
            longest = axis;
    for (int second = 0; second < 2; second++) {
        struct tl_shard near_part = half(near, longest, second), far_part = half(far, longest, second);
        if (!split(call, &near_part, &far_part))
            return false;
    }
    return true;
}

size_t far_copies(const struct call *call, const struct tl_shard *near, const struct tl_shard *far,
                  struct far_copy **copies)
{
    count = 0;
    if (!split(call, near, far))
        count = 0;
    *copies = found;
    return count;
}
