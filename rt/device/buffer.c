/* buffer.c: buffers of a kernel in its TCM: allocated, freed, looked at. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "device.h"
#include "machine/emitted.h"
#include "flight.h"
#include "freed.h"
#include "machine/pe.h"
#include "store/allocator.h"
#include "common/diag.h"

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
    freed_end(tl);
    free(state->after);
    state->after = NULL;
    state->after_room = 0;
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
    if (room_kernel_take(tcm, bytes, (struct room_call){call->name, call->file, call->line}, &offset)) {
        freed_taken(call->tl, offset, bytes);
        return memory_address(tcm, offset);
    }
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
    shard_tight(&buffer);
    struct view view = call_shape(&call, "the buffer", &buffer);
    buffer.addr = buffer_take(&call, view_bytes_of(&view));
    return buffer;
}

void tl_free_at(struct tl *tl, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_free", file, line};
    struct view view = call_view(&call, "the buffer", &buffer);
    uint64_t bytes = view_bytes_of(&view);
    if (view.memory == own_tcm(tl))
        freed_check(&call, &view);
    flights_check_free(&call, &view);
    if (view.memory != own_tcm(tl) || !room_kernel_free(view.memory, view.offset, bytes))
        call_error(&call, "no buffer of %" PRIu64 " bytes was given out at %s", bytes, address_name(buffer.addr));
    freed_add(&call, view.offset, bytes);
}

/* ---- data */

/* Bytes that are being copied for a kernel to look at, in the order of elements. */
struct look {
    const struct call *call;
    uint32_t memory;
    char *to;
};

static void check_known(const struct look *look, uint64_t offset, uint64_t bytes)
{
    uint64_t at;
    if (!store_pending(look->memory, offset, bytes, &at))
        return;
    const struct origin *maker = store_maker(look->memory, at);
    call_fault(look->call, FAULT_PENDING_RESULT,
               "the bytes at %s are the pending result of %s, operation %" PRIu64 " of kernel %s, called at %s:%u",
               address_name(memory_address(look->memory, at)), maker->name, maker->id, maker->kernel, maker->file,
               (unsigned)maker->line);
}

static void look_at_run(uint64_t offset, uint64_t bytes, void *arg)
{
    struct look *look = arg;
    check_known(look, offset, bytes);
    memcpy(look->to, store_at(IMAGE_NOW, look->memory, offset), bytes);
    look->to += bytes;
}

const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_data", file, line};
    struct device_state *state = tl->data;
    struct view view = call_view(&call, "the buffer", &shard);
    if (view.memory != own_tcm(tl))
        call_error(&call, "the buffer at %s is not in this PE's TCM: load it first", address_name(shard.addr));
    freed_check(&call, &view);
    flights_check_look(&call, &view);
    oplog_settle(false, pe_number(tl->pe));
    uint64_t bytes = view_bytes_of(&view);
    struct held *held = malloc(sizeof *held + bytes);
    if (!held)
        die("no memory for %" PRIu64 " bytes of data:", bytes);
    held->next = state->held;
    state->held = held;
    view_reach(IMAGE_NOW, &view);
    view_each_run(&view, look_at_run, &(struct look){&call, view.memory, (char *)held->bytes});
    return held->bytes;
}

void device_reset(void)
{
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++)
        if (pe->kernel && pe->kernel->data)
            buffers_end(pe->kernel);
}
