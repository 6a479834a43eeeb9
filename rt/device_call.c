/* device_call.c: what the calls of the device library share. */
#include "device_call.h"

#include <stdarg.h>
#include <stdio.h>

#include "emitted.h"
#include "flight.h"
#include "mmu.h"
#include "pe.h"
#include "text/base.h"

void call_fault(const struct call *call, enum fault code, const char *format, ...)
{
    char message[800];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    kernel_fault(call->tl, code, call->file, call->line, "%s: %s", call->name, message);
}

struct range call_range(const struct call *call, const char *what, uint64_t address, uint64_t bytes)
{
    struct range range;
    const char *wrong = address_decode(address, bytes, &range);
    if (wrong)
        call_fault(call, FAULT_BAD_ADDRESS, "%s, %llu bytes at %s: %s", what, (unsigned long long)bytes,
                   address_name(address), wrong);
    return range;
}

bool call_translates(bool is_virtual)
{
    return is_virtual && kb_attrs.pe_mmu_enabled;
}

struct reach call_reach(const struct call *call, uint64_t address, bool is_virtual, uint64_t bytes)
{
    struct physical_run physical = {address, bytes};
    struct translation t = {.runs = &physical, .count = 1};
    if (call_translates(is_virtual))
        t = mmu_look(call->tl->pe, address, bytes);
    struct reach reach = {arena_alloc(t.count, sizeof *reach.range), t.unmapped ? 0 : t.count};
    for (size_t i = 0; i < reach.count; i++)
        if (address_decode(t.runs[i].address, t.runs[i].bytes, &reach.range[i]))
            return (struct reach){NULL, 0};
    return reach;
}

bool call_owns(const struct call *call, const struct range *range)
{
    return range->space == SPACE_TCM && range->pe == pe_number(call->tl->pe);
}

uint64_t call_bytes(const struct call *call, const struct tl_shard *shard)
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

struct range call_buffer(const struct call *call, const struct tl_shard *shard)
{
    struct range range = call_range(call, "the buffer", shard->addr, call_bytes(call, shard));
    if (shard->is_virtual)
        call_error(call, "a buffer is at a physical address, not at a virtual one");
    if (!call_owns(call, &range))
        call_error(call, "the buffer at %s is not in this PE's TCM", address_name(shard->addr));
    flights_check_use(call, &range);
    return range;
}

void call_same_shape(const struct call *call, const struct tl_shard *a, const struct tl_shard *b)
{
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t axis = 0; same && axis < a->rank; axis++)
        same = a->shape[axis] == b->shape[axis];
    if (!same)
        call_error(call, "the buffer and where it goes differ in shape or dtype");
}

uint32_t call_number(const struct call *call, tl_handle handle)
{
    uint64_t value = (uintptr_t)handle;
    if (value >> 32 != call->tl->serial || (uint32_t)value >= call->tl->commands)
        call_error(call, "the handle is none of this kernel's");
    return (uint32_t)value;
}

struct command *call_command(const struct call *call, tl_handle handle)
{
    return kernel_command(call->tl, call_number(call, handle));
}

void call_wait(const struct call *call, tl_handle handle)
{
    kernel_wait(call->tl, call_number(call, handle));
}

static struct op *called(const struct call *call, struct op *op)
{
    op->pe = pe_number(call->tl->pe);
    op->command = call->tl->commands;
    op->kernel = call->tl->name;
    op->file = call->file;
    op->line = call->line;
    return op;
}

struct origin *call_record(const struct call *call, struct op *op)
{
    return oplog_add(called(call, op));
}

tl_handle call_submit(const struct call *call, struct request *ask, struct op *op)
{
    struct origin *record = NULL;
    ask->file = call->file;
    ask->line = call->line;
    if (op)
        record = ask->kind == COMMAND_recv ? oplog_call(called(call, op)) : call_record(call, op);
    ask->data = record;
    ask->counted = oplog_on;
    const struct command *command = kernel_submit(call->tl, ask);
    return (tl_handle)(uintptr_t)((uint64_t)call->tl->serial << 32 | command->number);
}
