/* tl.c: the device library, but for composites (composite.c): where a kernel is, shards, loads, stores, data.
 *
 * Every call is checked before it takes time. What it does to data is recorded at the call, so bytes move in data
 * order, whatever the timing of the command is. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "device_call.h"
#include "pe.h"
#include "plan.h"
#include "room.h"
#include "tensor.h"
#include "text/diag.h"

/* What tl_data hands out; it goes when the kernel ends. */
struct held {
    struct held *next;
    max_align_t bytes[];
};

void device_run(struct tl *tl, const void *arg)
{
    const struct device_program *program = arg;
    program->kernel->body(tl, program->arg);
    room_kernel_ended(memory_tcm(pe_number(tl->pe)));
    for (struct held *held = tl->data, *next; held; held = next) {
        next = held->next;
        free(held);
    }
    tl->data = NULL;
}

uint32_t tl_pe(const struct tl *tl)
{
    return tl->index;
}

uint32_t tl_num_pes(const struct tl *tl)
{
    return tl->count;
}

void tl_delay(struct tl *tl, uint64_t ps)
{
    kernel_delay(tl, ps);
}

void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_wait", file, line};
    if (!handle || handle->pe != tl->pe)
        call_error(&call, "the handle is none of this kernel's");
    kernel_wait(tl, handle);
}

/* ---- shards */

uint32_t tl_shards(kb_tensor tensor)
{
    return tensor->shards;
}

struct tl_shard tl_shard_at(struct tl *tl, kb_tensor tensor, uint64_t i, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_shard", file, line};
    if (!tensor)
        call_error(&call, "there is no tensor");
    if (i >= tensor->shards)
        call_error(&call, "tensor '%s' has %u shards, there is no %" PRIu64, tensor->name, tensor->shards, i);
    return tensor->shard[i].view;
}

struct tl_shard tl_my_shard_at(struct tl *tl, kb_tensor tensor, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_my_shard", file, line};
    if (!tensor)
        call_error(&call, "there is no tensor");
    uint32_t pe = pe_number(tl->pe), low = 0, high = tensor->shards;
    while (low < high) {                                /* shards are in the order of their PEs */
        uint32_t middle = low + (high - low) / 2;
        if (tensor->shard[middle].pe < pe)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == tensor->shards || tensor->shard[low].pe != pe)
        call_error(&call, "tensor '%s' is not placed with this PE", tensor->name);
    return tensor->shard[low].view;
}

struct tl_shard tl_part_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t count,
                           const char *file, uint32_t line)
{
    struct call call = {tl, "tl_part", file, line};
    if (axis >= shard.rank || shard.rank > KB_RANK || shard.dtype >= DTYPES)
        call_error(&call, "a shard of %u axes has no axis %u", shard.rank, axis);
    if (first > shard.shape[axis] || count > shard.shape[axis] - first)
        call_error(&call, "%" PRIu64 " indices from %" PRIu64 " on, but axis %u has %" PRIu64, count, first, axis,
                   shard.shape[axis]);
    shard.addr = address_add(shard.addr, first * shard.stride[axis] * dtype_bytes[shard.dtype]);
    shard.first[axis] += first;
    shard.shape[axis] = count;
    return shard;
}

/* The bytes of a shard as one piece; anything else is a fault. */
static uint64_t dense_bytes(const struct call *call, const struct tl_shard *shard)
{
    if (shard->rank < 1 || shard->rank > KB_RANK || shard->dtype >= DTYPES)
        call_error(call, "a shard of %u axes and dtype number %u is none", shard->rank, shard->dtype);
    uint64_t count = 1;
    for (uint32_t axis = shard->rank; axis-- > 0;) {
        if (shard->shape[axis] == 0)
            call_error(call, "the shard is empty");
        if (shard->shape[axis] > 1 && shard->stride[axis] != count)
            call_error(call, "the elements of the shard do not follow one another without gaps (axis %u)", axis);
        if (__builtin_mul_overflow(count, shard->shape[axis], &count) || count >> OFFSET_BITS)
            call_error(call, "the shard has more elements than any memory");
    }
    return count * dtype_bytes[shard->dtype];
}

/* ---- loads and stores */

uint64_t tl_room_bytes(struct tl *tl)
{
    return room_left(memory_tcm(pe_number(tl->pe)));
}

/* A DMA command between a memory, at `address`, and a buffer in this PE's TCM; blocks until it is done. */
static void move(const struct call *call, enum command_kind kind, uint64_t address, const struct range *from,
                 const struct range *to)
{
    const struct range *buffer = kind == COMMAND_load ? to : from;
    struct request ask = {.kind = kind, .address = {address}, .tcm = buffer->offset, .bytes = buffer->bytes};
    struct op op = {.kind = OPKIND_memory, .name = kind == COMMAND_load ? "dma_read" : "dma_write",
                    .copy = {from->memory, to->memory, from->offset, to->offset, from->bytes}};
    kernel_wait(call->tl, call_submit(call, &ask, &op));
}

struct tl_shard tl_load_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_load", file, line};
    uint64_t bytes = dense_bytes(&call, &shard), offset;
    uint32_t tcm = memory_tcm(pe_number(tl->pe));
    if (bytes > room_left(tcm))
        call_error(&call,
                   "no room for %" PRIu64 " bytes in the TCM: %" PRIu64 " left; tensors hold %" PRIu64
                   ", buffers of this kernel %" PRIu64,
                   bytes, room_left(tcm), room_host_bytes(tcm), room_kernel_bytes(tcm));
    struct range from = call_range(&call, "the source", shard.addr, bytes);
    room_take(tcm, bytes, true, &offset);
    struct tl_shard buffer = shard;
    buffer.addr = memory_address(tcm, offset);
    struct range to = call_range(&call, "the buffer", buffer.addr, bytes);
    move(&call, COMMAND_load, shard.addr, &from, &to);
    return buffer;
}

static bool same_shape(const struct tl_shard *a, const struct tl_shard *b)
{
    if (a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (uint32_t axis = 0; axis < a->rank; axis++)
        if (a->shape[axis] != b->shape[axis])
            return false;
    return true;
}

void tl_store_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_store", file, line};
    uint64_t bytes = dense_bytes(&call, &from);
    dense_bytes(&call, &to);
    if (!same_shape(&to, &from))
        call_error(&call, "the buffer and where it goes differ in shape or dtype");
    struct range source = call_range(&call, "the buffer", from.addr, bytes);
    if (!call_owns(&call, &source))
        call_error(&call, "the buffer at %s is not in this PE's TCM", address_name(from.addr));
    struct range target = call_range(&call, "the target", to.addr, bytes);
    move(&call, COMMAND_store, to.addr, &source, &target);
}

/* ---- data */

static void check_known(const struct call *call, const struct range *range)
{
    uint64_t at;
    if (!store_pending(range->memory, range->offset, range->bytes, &at))
        return;
    const struct op *maker = oplog_maker(range->memory, at);
    if (!maker)
        call_fault(call, FAULT_PENDING_RESULT, "the bytes at %s are the pending result of a compute",
                   address_name(memory_address(range->memory, at)));
    call_fault(call, FAULT_PENDING_RESULT,
               "the bytes at %s are the pending result of %s, operation %" PRIu64 " of kernel %s, called at %s:%u",
               address_name(memory_address(range->memory, at)), maker->name, maker->id, maker->kernel, maker->file,
               (unsigned)maker->line);
}

const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_data", file, line};
    uint64_t bytes = dense_bytes(&call, &shard);
    struct range range = call_range(&call, "the buffer", shard.addr, bytes);
    if (!call_owns(&call, &range))
        call_error(&call, "the buffer at %s is not in this PE's TCM: load it first", address_name(shard.addr));
    oplog_settle(false, pe_number(tl->pe));
    check_known(&call, &range);
    struct held *held = malloc(sizeof *held + bytes);
    if (!held)
        die("no memory for %" PRIu64 " bytes of data:", bytes);
    held->next = tl->data;
    tl->data = held;
    store_reach(VIEW_NOW, range.memory, range.offset + bytes);
    return memcpy(held->bytes, store_at(VIEW_NOW, range.memory, range.offset), bytes);
}
