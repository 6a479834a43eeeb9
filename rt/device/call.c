/* call.c: what the calls of the device library share. */
#include "call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "base/dtype.h"
#include "machine/emitted.h"
#include "flight.h"
#include "freed.h"
#include "oplog/log.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "races/race.h"
#include "common/arena.h"
#include "common/diag.h"

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
    struct address_run physical = {address, bytes};
    struct translation t = {.runs = &physical, .count = 1};
    if (call_translates(is_virtual))
        t = mmu_look(call->tl->pe, address, bytes);
    static struct range *room;                          /* as much as any call has needed */
    static size_t rooms;
    if (t.count > rooms) {
        rooms = 2 * t.count;
        room = realloc(room, rooms * sizeof *room);
        if (!room)
            die("no memory for %zu ranges of a shard:", rooms);
    }
    struct reach reach = {room, t.unmapped ? 0 : t.count};
    for (size_t i = 0; i < reach.count; i++)
        if (address_decode(t.runs[i].address, t.runs[i].bytes, &reach.range[i]))
            return (struct reach){NULL, 0};
    return reach;
}

bool call_owns(const struct call *call, const struct range *range)
{
    return range->space == SPACE_TCM && range->pe == pe_number(call->tl->pe);
}

/* Elements from the first to the last, and how many there are: each less than a memory can hold. */
static void check_size(const struct call *call, const char *what, const struct tl_shard *shard)
{
    uint64_t count = 1, last = 0, reach;
    for (uint32_t axis = 0; axis < shard->rank; axis++) {
        if (shard->shape[axis] == 0)
            call_error(call, "%s is empty", what);
        if (__builtin_mul_overflow(count, shard->shape[axis], &count) || count >> OFFSET_BITS)
            call_error(call, "%s has more elements than any memory", what);
        if (__builtin_mul_overflow(shard->shape[axis] - 1, shard->stride[axis], &reach)
            || (last += reach) >> OFFSET_BITS || reach >> OFFSET_BITS)
            call_error(call, "the elements of %s reach further than any memory", what);
    }
}

struct view call_shape(const struct call *call, const char *what, const struct tl_shard *shard)
{
    if (shard->rank < 1 || shard->rank > KB_RANK || shard->dtype >= DTYPES)
        call_error(call, "%s: a shard of %u axes and dtype number %u is none", what, shard->rank, shard->dtype);
    check_size(call, what, shard);
    struct view view = {.dtype = shard->dtype, .rank = shard->rank, .shape = {1, 1, 1, 1}};
    for (uint32_t axis = 0; axis < shard->rank; axis++) {
        view.shape[axis] = shard->shape[axis];
        view.stride[axis] = shard->shape[axis] > 1 ? shard->stride[axis] : 0;
    }
    if (shard->addr % dtype_bytes[shard->dtype])
        call_fault(call, FAULT_BAD_ADDRESS, "%s at %s is not aligned to %s", what, address_name(shard->addr),
                   dtype_words[shard->dtype]);
    return view;
}

struct view call_view(const struct call *call, const char *what, const struct tl_shard *shard)
{
    struct view view = call_shape(call, what, shard);
    struct range range = call_range(call, what, shard->addr, view_span(&view));
    view.memory = range.memory;
    view.offset = range.offset;
    return view;
}

void call_check_use(const struct call *call, const struct view *view)
{
    freed_check(call, view);
    flights_check_use(call, view);
}

struct view call_buffer(const struct call *call, const char *what, const struct tl_shard *shard)
{
    if (shard->is_virtual)
        call_error(call, "%s is at a virtual address, not at a physical one", what);
    struct view view = call_view(call, what, shard);
    if (view.memory != memory_tcm(pe_number(call->tl->pe)))
        call_error(call, "%s at %s is not in this PE's TCM", what, address_name(shard->addr));
    call_check_use(call, &view);
    return view;
}

void call_same_shape(const struct call *call, const struct tl_shard *a, const struct tl_shard *b)
{
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t axis = 0; same && axis < a->rank; axis++)
        same = a->shape[axis] == b->shape[axis];
    if (!same)
        call_error(call, "the buffer and where it goes differ in shape or dtype");
}

void call_gemm_dtypes(const struct call *call, uint8_t a, uint8_t b)
{
    if (a != b)
        call_error(call, "a is %s and b is %s; they have to be the same", dtype_words[a], dtype_words[b]);
    if (!dtype_is_float(a) && a != DTYPE_i8)
        call_error(call, "a gemm of %s is not supported; f32, f16, bf16 and i8 are", dtype_words[a]);
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
    uint32_t number = call_number(call, handle);
    kernel_wait(call->tl, number);
    if (races_on)
        racer_waited(pe_number(call->tl->pe), number);
}

static void called(const struct call *call, struct op *op)
{
    const struct device_state *state = call->tl->data;
    op->pe = pe_number(call->tl->pe);
    op->serial = call->tl->serial;
    op->command = call->tl->commands;
    op->kernel = call->tl->name;
    op->file = call->file;
    op->line = call->line;
    op->after = state->after;
    op->afters = state->afters;
}

/* ---- what the next command depends on */

void call_after(const struct call *call, tl_handle handle)
{
    struct device_state *state = call->tl->data;
    uint32_t number = call_number(call, handle);
    if (races_on)
        racer_after(pe_number(call->tl->pe), number);
    if (state->afters == state->after_room) {
        state->after_room = state->after_room ? 2 * state->after_room : 4;
        state->after = realloc(state->after, state->after_room * sizeof *state->after);
        if (!state->after)
            die("no memory for what a command depends on:");
    }
    state->after[state->afters++] = number;
}

/* ---- the command */

/* What the race check is told of a record; one of a receive has no effect yet. */
static struct origin *noted(const struct call *call, struct origin *record, const struct op *op, bool receives)
{
    if (races_on)
        race_called(pe_number(call->tl->pe), op->command, record, op, receives);
    return record;
}

struct origin *call_record(const struct call *call, struct op *op)
{
    called(call, op);
    return noted(call, oplog_add(op), op, false);
}

static struct origin *call_receive(const struct call *call, struct op *op)
{
    called(call, op);
    return noted(call, oplog_call(op), op, true);
}

tl_handle call_submit(const struct call *call, struct request *ask, struct op *op)
{
    struct origin *record = NULL;
    if (op)
        record = ask->kind == COMMAND_recv ? call_receive(call, op) : call_record(call, op);
    return call_submit_recorded(call, ask, record);
}

tl_handle call_submit_recorded(const struct call *call, struct request *ask, struct origin *record)
{
    ((struct device_state *)call->tl->data)->afters = 0;
    if (races_on)
        racer_submitted(pe_number(call->tl->pe));
    ask->file = call->file;
    ask->line = call->line;
    ask->data = origin_hold(record);
    ask->counted = log_filed;
    const struct command *command = kernel_submit(call->tl, ask);
    return (tl_handle)(uintptr_t)((uint64_t)call->tl->serial << 32 | command->number);
}
