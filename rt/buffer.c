/* buffer.c: buffers of a kernel in its TCM: allocated, freed, looked at. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "device.h"
#include "emitted.h"
#include "flight.h"
#include "pe.h"
#include "room.h"
#include "text/diag.h"

/* What tl_data hands out; it goes when the kernel ends. */
struct held {
    struct held *next;
    max_align_t bytes[];
};

static uint32_t own_tcm(const struct tl *tl)
{
    return memory_tcm(pe_number(tl->pe));
}

void buffers_end(struct tl *tl)
{
    struct device_state *state = tl->data;
    room_kernel_ended(own_tcm(tl));
    for (struct held *held = state->held, *next; held; held = next) {
        next = held->next;
        free(held);
    }
    state->held = NULL;
    flights_end(tl);
}

/* ---- room */

uint64_t tl_room_bytes(struct tl *tl)
{
    return room_kernel_left(own_tcm(tl));
}

uint64_t buffer_take(const struct call *call, uint64_t bytes)
{
    uint32_t tcm = own_tcm(call->tl);
    uint64_t offset;
    if (room_kernel_take(tcm, bytes, (struct room_call){call->name, call->file, call->line}, &offset))
        return memory_address(tcm, offset);
    char holders[600];
    room_describe(tcm, holders, sizeof holders);
    call_error(call, "no room for %" PRIu64 " bytes in the TCM: %" PRIu64 " left in one piece; %s", bytes,
               room_kernel_left(tcm), holders);
}

struct tl_shard tl_alloc_at(struct tl *tl, enum kb_dtype dtype, const uint64_t *shape, uint64_t rank, const char *file,
                            uint32_t line)
{
    struct call call = {tl, "tl_alloc", file, line};
    if ((unsigned)dtype >= DTYPES || rank < 1 || rank > KB_RANK)
        call_error(&call, "a buffer of %" PRIu64 " axes and dtype number %u is none", rank, (unsigned)dtype);
    struct tl_shard buffer = {.dtype = dtype, .rank = rank, .shape = {1, 1, 1, 1}, .stride = {1, 1, 1, 1}};
    memcpy(buffer.shape, shape, rank * sizeof *shape);
    for (uint64_t axis = rank - 1; axis-- > 0;)         /* what overflows is too large for call_bytes as well */
        buffer.stride[axis] = buffer.stride[axis + 1] * buffer.shape[axis + 1];
    buffer.addr = buffer_take(&call, call_bytes(&call, &buffer));
    return buffer;
}

void tl_free_at(struct tl *tl, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_free", file, line};
    uint64_t bytes = call_bytes(&call, &buffer);
    struct range range = call_range(&call, "the buffer", buffer.addr, bytes);
    flights_check_free(&call, &range);
    if (!call_owns(&call, &range) || !room_kernel_free(range.memory, range.offset, bytes))
        call_error(&call, "no buffer of %" PRIu64 " bytes was given out at %s", bytes, address_name(buffer.addr));
}

/* ---- data */

static void check_known(const struct call *call, const struct range *range)
{
    uint64_t at;
    if (!store_pending(range->memory, range->offset, range->bytes, &at))
        return;
    const struct origin *maker = store_maker(range->memory, at);
    call_fault(call, FAULT_PENDING_RESULT,
               "the bytes at %s are the pending result of %s, operation %" PRIu64 " of kernel %s, called at %s:%u",
               address_name(memory_address(range->memory, at)), maker->name, maker->id, maker->kernel, maker->file,
               (unsigned)maker->line);
}

const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_data", file, line};
    struct device_state *state = tl->data;
    uint64_t bytes = call_bytes(&call, &shard);
    struct range range = call_range(&call, "the buffer", shard.addr, bytes);
    if (!call_owns(&call, &range))
        call_error(&call, "the buffer at %s is not in this PE's TCM: load it first", address_name(shard.addr));
    flights_check_look(&call, &range);
    oplog_settle(false, pe_number(tl->pe));
    check_known(&call, &range);
    struct held *held = malloc(sizeof *held + bytes);
    if (!held)
        die("no memory for %" PRIu64 " bytes of data:", bytes);
    held->next = state->held;
    state->held = held;
    store_reach(IMAGE_NOW, range.memory, range.offset + bytes);
    return memcpy(held->bytes, store_at(IMAGE_NOW, range.memory, range.offset), bytes);
}

void buffers_reset(void)
{
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++)
        if (pe->kernel && pe->kernel->data)
            buffers_end(pe->kernel);
}
