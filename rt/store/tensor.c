/* tensor.c: tensors of the host: placement over memories, addresses, rows. */
#include "tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "base/address.h"
#include "base/dtype.h"
#include "common/arena.h"
#include "common/fail.h"
#include "machine/fabric.h"

static uint32_t tensors;
static struct tensors_bytes bytes_of_tensors;

static enum space space_of(enum kb_space space)
{
    static const enum space spaces[] = {[KB_HBM] = SPACE_HBM, [KB_TCM] = SPACE_TCM, [KB_SRAM] = SPACE_SRAM};
    return spaces[space];
}

/* ---- checks */

static uint64_t elements_of(const char *name, struct kb_dims dims, struct call_site call)
{
    if (dims.rank < 1 || dims.rank > KB_RANK)
        misuse_of(call, "tensor '%s' has %u axes; 1 to %d are possible", name, dims.rank, KB_RANK);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dims.rank; i++) {
        if (dims.size[i] == 0)
            misuse_of(call, "axis %u of tensor '%s' has no elements", i, name);
        if (__builtin_mul_overflow(elements, dims.size[i], &elements) || elements >> 60)
            misuse_of(call, "tensor '%s' has 2^60 elements or more", name);
    }
    return elements;
}

static void check_pes(const char *name, const struct kb_place *place, struct call_site call)
{
    uint32_t all = kb_shape.sips * kb_shape.cubes * kb_shape.pes;
    if (place->pes.count == 0)
        misuse_of(call, "tensor '%s' is placed on no PE", name);
    for (uint32_t i = 1; i < place->pes.count; i++)     /* kernels find theirs by binary search */
        if (place->pes.pe[i - 1] >= place->pes.pe[i])
            misuse_of(call, "the PEs of tensor '%s' must be in rank order, each once: %u comes before %u", name,
                      (unsigned)place->pes.pe[i - 1], (unsigned)place->pes.pe[i]);
    uint32_t last = place->pes.pe[place->pes.count - 1];
    if (last >= all)
        misuse_of(call, "tensor '%s': the machine has %u PEs, there is no number %u", name, (unsigned)all,
                  (unsigned)last);
}

static void check_place(const char *name, struct kb_dims dims, const struct kb_place *place, struct call_site call)
{
    check_pes(name, place, call);
    if ((unsigned)place->space > KB_SRAM || (unsigned)place->split > KB_COPIES)
        misuse_of(call, "tensor '%s': there is no placement in space number %u, split number %u", name,
                  (unsigned)place->space, (unsigned)place->split);
    if (!kb_has_space(place->space))
        misuse_of(call, "tensor '%s': the machine has no %s", name, place->space == KB_HBM ? "HBM" : "sram");
    if (place->split == KB_WHOLE && place->pes.count != 1)
        misuse_of(call, "tensor '%s' is placed with one PE, but %u are named: use kb_copies or a split", name,
                  place->pes.count);
    if (place->split != KB_BLOCKS)
        return;
    if (dims.rank < 2)
        misuse_of(call, "kb_blocks splits two axes; tensor '%s' has one", name);
    if ((uint64_t)place->rows * place->cols != place->pes.count)
        misuse_of(call, "a grid of %u x %u for tensor '%s' is not the %u PEs of its placement", place->rows,
                  place->cols, name, place->pes.count);
}

bool kb_has_space(enum kb_space space)
{
    return (unsigned)space <= KB_SRAM && space_exists(space_of(space));
}

enum kb_space kb_main_memory(void)
{
    return !kb_has_space(KB_HBM) && kb_has_space(KB_SRAM) ? KB_SRAM : KB_HBM;
}

/* ---- placement */

/* Narrows a view to part i of p of an axis. */
static void split(struct tl_shard *view, uint32_t axis, uint64_t i, uint64_t p)
{
    uint64_t n = view->shape[axis];
    uint64_t first = (uint64_t)((unsigned __int128)n * i / p), end = (uint64_t)((unsigned __int128)n * (i + 1) / p);
    view->first[axis] = first;
    view->shape[axis] = end - first;
}

static struct tl_shard shard_view(const struct tensor *t, uint32_t i)
{
    struct tl_shard view = {.dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->dims.rank};
    const struct kb_place *place = &t->place;
    for (uint32_t axis = 0; axis < KB_RANK; axis++)
        view.shape[axis] = axis < t->dims.rank ? t->dims.size[axis] : 1;
    if (place->split == KB_ROWS)
        split(&view, 0, i, place->pes.count);
    if (place->split == KB_COLS)
        split(&view, t->dims.rank - 1, i, place->pes.count);
    if (place->split == KB_BLOCKS) {
        split(&view, 0, i / place->cols, place->rows);
        split(&view, t->dims.rank - 1, i % place->cols, place->cols);
    }
    uint64_t stride = 1;
    for (uint32_t axis = t->dims.rank; axis-- > 0;) {
        view.stride[axis] = stride;
        stride *= view.shape[axis];
    }
    return view;
}

static void shard_place(struct tensor *t, uint32_t i, struct call_site call)
{
    struct shard *shard = &t->shard[i];
    shard->pe = t->place.pes.pe[i];
    shard->memory = own_memory(space_of(t->place.space), shard->pe);
    shard->view = shard_view(t, i);
    shard->elements = shard->view.shape[0] * shard->view.shape[1] * shard->view.shape[2] * shard->view.shape[3];
    uint64_t bytes = shard->elements * dtype_bytes[t->dtype];
    if (!allocator_host_take(shard->memory, bytes, &shard->offset)) {
        uint64_t left = allocator_host_left(shard->memory), held = allocator_host_bytes(shard->memory);
        while (i-- > 0)                                 /* a library goes on without the tensor */
            allocator_host_take_back(t->shard[i].memory, t->shard[i].offset,
                                     t->shard[i].elements * dtype_bytes[t->dtype]);
        misuse_of(call, "no room for tensor '%s' at %s: %" PRIu64 " bytes asked for, %" PRIu64 " left, %" PRIu64
                  " held by tensors and %" PRIu64 " by a kernel", t->name, address_name(memory_address(shard->memory, 0)),
                  bytes, left, held, allocator_kernel_bytes(shard->memory));
    }
    shard->view.addr = memory_address(shard->memory, shard->offset);
}

/* What a tensor takes of HBM or srams. */
static uint64_t shared_bytes(const struct tensor *t)
{
    uint64_t elements = 0;
    for (uint32_t i = 0; i < t->shards && t->place.space != KB_TCM; i++)
        elements += t->shard[i].elements;
    return elements * dtype_bytes[t->dtype];
}

kb_tensor kb_tensor_new_at(const char *name, enum kb_dtype dtype, struct kb_dims dims, struct kb_place place,
                           const char *file, uint32_t line)
{
    struct call_site call = {"kb_tensor_new", file, line};
    if (!name)
        misuse_of(call, "a tensor needs a name");
    if ((unsigned)dtype >= KB_DTYPES)
        misuse_of(call, "tensor '%s' has no dtype", name);
    struct tensor *t = arena_alloc(1, sizeof *t);
    t->elements = elements_of(name, dims, call);
    check_place(name, dims, &place, call);
    t->name = arena_printf("%s", name);
    t->dtype = (enum dtype)dtype;
    t->dims = dims;
    t->place = place;
    t->number = tensors++;
    t->shards = place.pes.count;
    t->shard = arena_alloc(t->shards, sizeof *t->shard);
    for (uint32_t i = 0; i < t->shards; i++)
        shard_place(t, i, call);
    bytes_of_tensors.all += shared_bytes(t);
    return t;
}

void tensor_check(struct call_site call, const struct tensor *tensor)
{
    if (!tensor)
        misuse_of(call, "there is no tensor");
}

/* ---- rows */

uint64_t tensor_rows(const struct shard *shard)
{
    const struct tl_shard *v = &shard->view;
    return shard->elements ? shard->elements / v->shape[v->rank - 1] : 0;
}

struct tensor_row tensor_row(const struct tensor *t, const struct shard *shard, uint64_t row)
{
    const struct tl_shard *v = &shard->view;
    uint32_t last = t->dims.rank - 1;
    uint64_t rest = row, position = v->first[last], weight = t->dims.size[last];
    for (uint32_t axis = last; axis-- > 0;) {
        position += (v->first[axis] + rest % v->shape[axis]) * weight;
        rest /= v->shape[axis];
        weight *= t->dims.size[axis];
    }
    uint64_t offset = shard->offset + row * v->shape[last] * dtype_bytes[t->dtype];
    return (struct tensor_row){shard->memory, offset, position, v->shape[last]};
}

bool tensor_shard_is_dense(const struct tensor *t, const struct shard *shard)
{
    uint64_t rows = tensor_rows(shard);
    if (shard->elements == 0)
        return true;
    struct tensor_row first = tensor_row(t, shard, 0), last = tensor_row(t, shard, rows - 1);
    return last.position + last.count - first.position == shard->elements;
}

void tensor_each_row(const struct tensor *t, bool all_copies, void (*f)(struct tensor_row run, void *arg), void *arg)
{
    uint32_t shards = t->place.split == KB_COPIES && !all_copies ? 1 : t->shards;
    for (uint32_t i = 0; i < shards; i++)
        for (uint64_t row = 0; row < tensor_rows(&t->shard[i]); row++)
            f(tensor_row(t, &t->shard[i], row), arg);
}

void tensor_index(const struct tensor *t, uint64_t position, uint64_t index[KB_RANK])
{
    memset(index, 0, KB_RANK * sizeof *index);
    for (uint32_t axis = t->dims.rank; axis-- > 0;) {
        index[axis] = position % t->dims.size[axis];
        position /= t->dims.size[axis];
    }
}

void tensor_index_name(const struct tensor *t, uint64_t position, char *name)
{
    uint64_t index[KB_RANK];
    tensor_index(t, position, index);
    int used = 0;
    for (uint32_t axis = 0; axis < t->dims.rank; axis++)
        used += sprintf(name + used, "%s%" PRIu64, axis ? ", " : "[", index[axis]);
    sprintf(name + used, "]");
}

void tensor_filled(const struct tensor *t)
{
    bytes_of_tensors.filled += shared_bytes(t);
}

struct tensors_bytes tensors_bytes(void)
{
    return bytes_of_tensors;
}

void tensors_reset(void)
{
    tensors = 0;
    bytes_of_tensors = (struct tensors_bytes){0};
}
