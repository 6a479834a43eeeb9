/* call.c: what the calls of the device library share: faults, checks of shards, submission. */
#include "call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/dtype.h"
#include "device.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "oplog/log.h"
#include "races/race.h"

void call_fault(const struct call *call, enum fault code, const char *format, ...)
{
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kernel_fault(call->tl, code, call->site.file, call->site.line, "%s: %s", call->site.name, text);
}

/* ---- addresses, shards and PEs */

bool call_translates(bool is_virtual)
{
    return is_virtual && kb_attrs.pe_mmu_enabled;
}

struct range call_range(const struct call *call, const char *what, uint64_t address, uint64_t bytes)
{
    struct range range;
    const char *wrong = address_decode(address, bytes, &range);
    if (wrong)
        call_fault(call, FAULT_BAD_ADDRESS, "%s, %" PRIu64 " bytes at %s: %s", what, bytes, address_name(address),
                   wrong);
    return range;
}

/* Says what is wrong with the size or the stride of an axis; `before`: elements of the axes before. */
static _Noreturn void axis_fault(const struct call *call, const char *what, uint64_t size, uint64_t before)
{
    uint64_t elements;
    if (size == 0)
        call_error(call, "%s is empty", what);
    if (__builtin_mul_overflow(before, size, &elements) || elements >> OFFSET_BITS)
        call_error(call, "%s has more elements than any memory", what);
    call_error(call, "the elements of %s reach further than any memory", what);
}

void call_shape(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view)
{
    if (shard->rank < 1 || shard->rank > KB_RANK || shard->dtype >= DTYPES)
        call_error(call, "%s is not a valid shard: rank %u, dtype number %u", what, shard->rank, shard->dtype);
    _Static_assert(KB_RANK == 4, "axes that a shard lacks have one index");
    *view = (struct view){.dtype = shard->dtype, .rank = shard->rank, .shape = {1, 1, 1, 1}};
    uint64_t elements = 1, last = 0, reach;             /* each stays below the size of the largest memory */
    for (uint32_t axis = 0; axis < shard->rank; axis++) {
        uint64_t size = shard->shape[axis], stride = size > 1 ? shard->stride[axis] : 0, before = elements;
        if (size == 0 || __builtin_mul_overflow(before, size, &elements) || elements >> OFFSET_BITS
            || __builtin_mul_overflow(size - 1, stride, &reach) || (reach | (last += reach)) >> OFFSET_BITS)
            axis_fault(call, what, size, before);
        view->shape[axis] = size;
        view->stride[axis] = stride;
    }
    if (shard->addr & (uint64_t)(dtype_bytes[shard->dtype] - 1))            /* a power of two */
        call_fault(call, FAULT_BAD_ADDRESS, "%s at %s is not aligned to %s", what, address_name(shard->addr),
                   dtype_words[shard->dtype]);
}

/* Gives a shard's view its memory. */
static void call_place(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view)
{
    struct range range = call_range(call, what, shard->addr, view_span(view));
    view->memory = range.memory;
    view->offset = range.offset;
}

void call_view(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view)
{
    call_shape(call, what, shard, view);
    call_place(call, what, shard, view);
}

static void check_physical(const struct call *call, const char *what, const struct tl_shard *shard)
{
    if (shard->is_virtual)
        call_error(call, "%s is at a virtual address, not at a physical one", what);
}

void call_place_buffer(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view)
{
    check_physical(call, what, shard);
    const struct device_state *state = device_state(call->tl);
    uint64_t offset = shard->addr - state->tcm_address, span = view_span(view), bytes = kb_attrs.pe_tcm_size_bytes;
    if (offset < bytes && span <= bytes - offset && offset >= kb_attrs.pe_tcm_reserved_bytes) {
        view->memory = state->tcm;                      /* as call_place finds, without taking the address apart */
        view->offset = offset;
    } else {
        call_place(call, what, shard, view);
    }
    if (view->memory != state->tcm)
        call_error(call, "%s at %s is not in this PE's TCM", what, address_name(shard->addr));
    hazards_check_use(call, view);
}

void call_buffer(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view)
{
    check_physical(call, what, shard);
    call_shape(call, what, shard, view);
    call_place_buffer(call, what, shard, view);
}

void call_runs(const struct call *call, const char *what, const struct view *view, struct runs *runs)
{
    if (!runs_of(runs, view->shape, view->stride, dtype_bytes[view->dtype]))
        call_error(call, "elements of %s overlap", what);
}

void call_buffer_distinct(const struct call *call, const char *what, const struct tl_shard *shard, struct view *view)
{
    struct runs runs;
    call_buffer(call, what, shard, view);
    call_runs(call, what, view, &runs);
}

void call_gemm_dtypes(const struct call *call, uint8_t a, uint8_t b)
{
    if (a != b)
        call_error(call, "a is %s and b is %s; they have to be the same", dtype_words[a], dtype_words[b]);
    if (!dtype_is_float(a) && a != DTYPE_i8)
        call_error(call, "a gemm of %s is not supported; floats and i8 are", dtype_words[a]);
}

uint32_t call_peer(const struct call *call, uint32_t peer)
{
    uint32_t all = pe_count(), number = peer & ~TL_NUMBER(0);
    if (peer != number) {
        if (number >= all)
            call_error(call, "the machine has %" PRIu32 " PEs, there is no number %" PRIu32, all, number);
        return number;
    }
    if (peer >= call->tl->count)
        call_error(call, "the launch has %" PRIu32 " PEs, there is no position %" PRIu32, call->tl->count, peer);
    return pe_number(call->tl->launch->runs[peer].tl.pe);
}

void shard_make_dense(struct tl_shard *shard)
{
    uint64_t stride = 1;
    for (uint32_t axis = KB_RANK; axis-- > 0;) {
        shard->stride[axis] = stride;
        stride *= axis < shard->rank ? shard->shape[axis] : 1;
    }
}

/* ---- commands */

uint32_t call_number(const struct call *call, tl_handle handle)
{
    uint64_t value = (uintptr_t)handle;
    if (value >> 32 != call->tl->serial || (uint32_t)value >= call->tl->commands)
        call_error(call, "the handle does not belong to this kernel");
    return (uint32_t)value;
}

void call_after(const struct call *call, tl_handle handle)
{
    struct device_state *state = device_state(call->tl);
    uint32_t number = call_number(call, handle);
    if (races_on)
        hb_after(device_state(call->tl)->pe, number);
    *array_add(&state->after) = number;
}

void call_wait(const struct call *call, tl_handle handle)
{
    uint32_t number = call_number(call, handle);
    kernel_wait(call->tl, number);
    if (races_on)
        hb_waited(device_state(call->tl)->pe, number);
}

/* Records an effect of the next command; of a receive only the call, for it has no effect before its completion. Returns
 * NULL if the kernel keeps the command out of the op log. */
static struct op_ref *record(const struct call *call, struct op *op, bool receives)
{
    const struct device_state *state = device_state(call->tl);
    bool is_message = receives || (op->kind == OPKIND_memory && op->copy.to.memory == store_messages());
    if (state->keeps_next_out && !is_message)
        return NULL;
    op->pe = state->pe;
    op->serial = call->tl->serial;
    op->request = call->tl->request;
    op->command = call->tl->commands;
    op->kernel = call->tl->name;
    op->file = call->site.file;
    op->line = call->site.line;
    op->after = state->after.at;
    op->afters = state->after.count;
    struct op_ref *recorded = receives ? oplog_call(op) : oplog_add(op);
    if (races_on)
        race_called(state->pe, op->command, recorded, op, receives);
    else
        race_not_called();
    return recorded;
}

struct op_ref *call_record(const struct call *call, struct op *op)
{
    return record(call, op, false);
}

tl_handle call_submit(const struct call *call, struct request *ask, struct op *op)
{
    return call_submit_recorded(call, ask, op ? record(call, op, ask->kind == COMMAND_recv) : NULL);
}

tl_handle call_submit_recorded(const struct call *call, struct request *ask, struct op_ref *recorded)
{
    struct device_state *state = device_state(call->tl);
    state->after.count = 0;
    if (state->keeps_next_out && !recorded && oplog_on && kept_out.commands++ == 0) {
        kept_out.kernel = call->tl->name;
        kept_out.first = call->site;
    }
    state->keeps_next_out = state->keeps_out;
    if (races_on)
        hb_submitted(state->pe);
    ask->file = call->site.file;
    ask->line = call->site.line;
    ask->record = op_ref_hold(recorded);
    const struct command *command = kernel_submit(call->tl, ask);
    return (tl_handle)(uintptr_t)((uint64_t)call->tl->serial << 32 | command->number);
}
