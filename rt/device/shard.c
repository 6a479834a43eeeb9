/* shard.c: calls that find the shards of tensors, and that make other shards of the same elements. None takes time. */
#include <inttypes.h>
#include <string.h>

#include "call.h"
#include "device.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "store/tensor.h"

/* ---- shards of a tensor */

uint32_t tl_shards_at(kb_tensor tensor, const char *file, uint32_t line)
{
    struct call call = {all_kernels.running, {"tl_shards", file, line}};
    if (!call.tl)                                       /* called by the host */
        tensor_check(call.site, tensor);
    else if (!tensor)
        call_error(&call, "there is no tensor");
    return tensor->shards;
}

struct tl_shard tl_shard_at(struct tl *tl, kb_tensor tensor, uint64_t i, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_shard", file, line);
    if (!tensor)
        call_error(&call, "there is no tensor");
    if (i >= tensor->shards)
        call_error(&call, "tensor '%s' has %u shards, there is no %" PRIu64, tensor->name, tensor->shards, i);
    return tensor->shard[i].view;
}

const struct tl_shard *shard_with(kb_tensor tensor, uint32_t pe)
{
    uint32_t low = 0, high = tensor->shards;
    while (low < high) {                                /* shards are sorted by PE */
        uint32_t middle = low + (high - low) / 2;
        if (tensor->shard[middle].pe < pe)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tensor->shards && tensor->shard[low].pe == pe ? &tensor->shard[low].view : NULL;
}

struct tl_shard tl_my_shard_at(struct tl *tl, kb_tensor tensor, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_my_shard", file, line);
    if (!tensor)
        call_error(&call, "there is no tensor");
    const struct tl_shard *shard = shard_with(tensor, device_state(tl)->pe);
    if (!shard)
        call_error(&call, "tensor '%s' is not placed with this PE", tensor->name);
    return *shard;
}

/* ---- other shards of the same elements */

static void check_axis(const struct call *call, const struct tl_shard *shard, uint32_t axis)
{
    if (axis >= shard->rank || shard->rank > KB_RANK || shard->dtype >= DTYPES)
        call_error(call, "a shard of %u axes has no axis %u", shard->rank, axis);
}

/* Makes a shard `count` indices of an axis, from `first` on. */
static void slice(const struct call *call, struct tl_shard *shard, uint32_t axis, uint64_t first, uint64_t count)
{
    check_axis(call, shard, axis);
    if (first > shard->shape[axis] || count > shard->shape[axis] - first)
        call_error(call, "%" PRIu64 " indices from %" PRIu64 " on, but axis %u has %" PRIu64, count, first, axis,
                   shard->shape[axis]);
    uint64_t bytes = first * shard->stride[axis] * dtype_bytes[shard->dtype];
    shard->addr = shard->is_virtual ? shard->addr + bytes : address_add(shard->addr, bytes);
    shard->first[axis] += first;
    shard->shape[axis] = count;
}

struct tl_shard tl_part_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t count,
                           const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_part", file, line);
    slice(&call, &shard, axis, first, count);
    return shard;
}

struct tl_shard tl_every_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t step,
                            const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_every", file, line);
    check_axis(&call, &shard, axis);
    if (step == 0)
        call_error(&call, "the step is 0");
    if (first >= shard.shape[axis])
        call_error(&call, "the first index is %" PRIu64 ", but axis %u has %" PRIu64, first, axis, shard.shape[axis]);
    slice(&call, &shard, axis, first, shard.shape[axis] - first);
    shard.shape[axis] = (shard.shape[axis] - 1) / step + 1;
    if (shard.shape[axis] > 1)                          /* then the step was shorter than the axis: no overflow */
        shard.stride[axis] *= step;
    return shard;
}

struct tl_shard tl_transposed_at(struct tl *tl, struct tl_shard shard, uint32_t x, uint32_t y, const char *file,
                                 uint32_t line)
{
    struct call call = call_of(tl, "tl_transposed", file, line);
    struct tl_shard other = shard;
    check_axis(&call, &shard, x);
    check_axis(&call, &shard, y);
    other.shape[x] = shard.shape[y];
    other.shape[y] = shard.shape[x];
    other.stride[x] = shard.stride[y];
    other.stride[y] = shard.stride[x];
    other.first[x] = shard.first[y];
    other.first[y] = shard.first[x];
    return other;
}

/* Takes the fewest axes of `from`, from *old on, and of `to`, from *new on, that have equally many elements, and gives
 * those of `to` their strides. Returns false if the elements of those of `from` are not at equal distances. */
static bool regroup(const struct tl_shard *from, uint32_t *old, struct tl_shard *to, uint32_t *new)
{
    uint32_t i = *old, j = *new;
    uint64_t in = from->shape[i], out = to->shape[j];
    for (; in != out; in < out ? (in *= from->shape[++i]) : (out *= to->shape[++j]))
        if (in < out ? i + 1 == from->rank : j + 1 == to->rank)
            return false;                               /* not reached: both have equally many elements */
    for (uint32_t axis = *old; axis < i; axis++)
        if (from->stride[axis] != from->shape[axis + 1] * from->stride[axis + 1])
            return false;
    uint64_t stride = from->stride[i];
    *old = i + 1;
    uint32_t first = *new;
    *new = j + 1;
    for (;; j--) {
        to->stride[j] = stride;
        stride *= to->shape[j];
        if (j == first)
            return true;
    }
}

/* The shard without its axes of one index. */
static struct tl_shard squeezed(const struct tl_shard *shard)
{
    struct tl_shard out = *shard;
    out.rank = 0;
    for (uint32_t axis = 0; axis < shard->rank; axis++)
        if (shard->shape[axis] > 1) {
            out.shape[out.rank] = shard->shape[axis];
            out.stride[out.rank++] = shard->stride[axis];
        }
    return out;
}

struct tl_shard tl_reshape_at(struct tl *tl, struct tl_shard shard, const uint64_t *shape, uint64_t rank,
                              const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_reshape", file, line);
    struct view view;
    call_shape(&call, "the shard", &shard, &view);
    if (rank < 1 || rank > KB_RANK)
        call_error(&call, "a shape cannot have %" PRIu64 " axes", rank);
    struct tl_shard made = {.addr = shard.addr, .dtype = shard.dtype, .rank = (uint8_t)rank, .shape = {1, 1, 1, 1},
                            .is_virtual = shard.is_virtual};
    memcpy(made.shape, shape, rank * sizeof *shape);
    shard_make_dense(&made);
    struct view other;
    call_shape(&call, "the result", &made, &other);
    if (view_elements(&view) != view_elements(&other))
        call_error(&call, "%" PRIu64 " elements cannot have a shape of %" PRIu64, view_elements(&view),
                   view_elements(&other));
    struct tl_shard from = squeezed(&shard), to = squeezed(&made);
    for (uint32_t old = 0, new = 0; old < from.rank;)
        if (!regroup(&from, &old, &to, &new))
            call_error(&call, "the elements of an axis would be at unequal distances: copy them first");
    for (uint32_t axis = 0, next = 0; axis < made.rank; axis++)
        if (made.shape[axis] > 1)
            made.stride[axis] = to.stride[next++];
    return made;
}

struct tl_shard tl_view_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_view", file, line);
    bool strided = false;
    for (uint32_t axis = 0; axis < KB_RANK; axis++)
        strided |= shard.stride[axis];
    if (!strided)
        shard_make_dense(&shard);
    for (uint32_t axis = shard.rank; axis < KB_RANK; axis++)
        shard.shape[axis] = 1;
    struct view view;
    call_shape(&call, "the view", &shard, &view);
    if (!call_translates(shard.is_virtual))
        call_range(&call, "the view", shard.addr, view_span(&view));
    return shard;
}
