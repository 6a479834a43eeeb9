/* move.c: loads and stores, sends and receives: what a kernel moves, as one command each.
 *
 * Every call is checked before it takes time. What it does to data is recorded at the call, so bytes move in data
 * order, whatever the timing of the command is; a receive's at its completion (ring.c). */
#include <inttypes.h>
#include <string.h>

#include "buffer.h"
#include "device.h"
#include "machine/emitted.h"
#include "far.h"
#include "flight.h"
#include "freed.h"
#include "launch/launch.h"
#include "machine/pe.h"
#include "machine/tiling.h"

/* A command between a buffer in this PE's TCM and elsewhere. */
struct move {
    struct request ask;
    struct view buffer;
    struct op op;                                       /* of a load or store without its copies */
    bool moves_nothing;                                 /* a send that will be refused */
    struct tl_shard near, far;                          /* of a load or store: the buffer, the memory side */
};

/* A load or store: mostly one copy. */
static tl_handle transfer(const struct call *call, struct move *move)
{
    struct far_copy *copy;
    size_t count = far_copies(call, &move->near, &move->far, &copy);
    for (size_t i = 0; i < count; i++) {
        bool loads = move->ask.kind == COMMAND_load;
        move->op.copy = loads ? (struct copy){copy[i].far, copy[i].near} : (struct copy){copy[i].near, copy[i].far};
        if (i + 1 < count)
            call_record(call, &move->op);
    }
    return call_submit(call, &move->ask, count ? &move->op : NULL);
}

static tl_handle submit(const struct call *call, struct move *move)
{
    if (move->ask.kind == COMMAND_load || move->ask.kind == COMMAND_store)
        return transfer(call, move);
    return call_submit(call, &move->ask, move->moves_nothing ? NULL : &move->op);
}

static void block(const struct call *call, struct move move)
{
    call_wait(call, submit(call, &move));
}

static tl_handle go_on(const struct call *call, struct move move)
{
    tl_handle handle = submit(call, &move);
    flights_add(call->tl, call_command(call, handle), &move.buffer);
    return handle;
}

/* ---- between a memory and the TCM */

/* The memory side: as many runs as one command may have, apart from the buffer if that is elsewhere in the TCM. */
static void check_far(const struct call *call, struct move *move)
{
    struct view far = call_shape(call, "the shard", &move->far);
    struct runs *runs = &move->ask.runs;
    if (!runs_of(runs, far.shape, far.stride, dtype_bytes[far.dtype]))
        call_error(call, "elements of the shard lie over one another");
    if (runs_number(runs) > RUNS_MOST)
        call_error(call, "the shard has %" PRIu64 " runs of bytes that follow one another; a command has %d at most",
                   runs_number(runs), RUNS_MOST);
    if (!call_translates(move->far.is_virtual) && (move->far.addr & OFFSET_MASK) + runs_span(runs) > OFFSET_MASK + 1)
        call_fault(call, FAULT_BAD_ADDRESS, "the shard at %s: it runs past the end of the memory",
                   address_name(move->far.addr));
    move->ask.bytes = view_bytes_of(&far);
}

/* A view of the same shape whose elements follow one another, row-major. */
static struct view without_gaps(const struct view *like)
{
    struct view view = *like;
    uint64_t elements = 1;
    for (uint32_t axis = VIEW_RANK; axis-- > 0; elements *= view.shape[axis])
        view.stride[axis] = view.shape[axis] > 1 ? elements : 0;
    return view;
}

static bool has_gaps(const struct view *view)
{
    struct view dense = without_gaps(view);
    return memcmp(view->stride, dense.stride, sizeof dense.stride);
}

/* What is read and what is written in one TCM is one range each, which may overlap, or they are apart. */
static void check_apart(const struct call *call, const struct view *buffer, const struct view *far)
{
    uint64_t first, end;
    call_check_use(call, far);
    if ((has_gaps(buffer) || has_gaps(far)) && views_meet(buffer, far, &first, &end))
        call_error(call, "the buffer and the shard have the bytes at %s in common",
                   address_name(memory_address(far->memory, first)));
}

static struct move between(const struct call *call, enum command_kind kind, const struct tl_shard *near,
                           const struct tl_shard *far)
{
    struct move move = {.ask = {.kind = kind, .address = {far->addr}}, .near = *near, .far = *far,
                        .op = {.kind = OPKIND_memory, .name = kind == COMMAND_load ? "dma_read" : "dma_write"}};
    struct far_copy *copy;
    struct runs own;
    check_far(call, &move);
    call_shape(call, "the buffer", near);
    call_same_shape(call, near, far);
    move.buffer = call_buffer(call, "the buffer", near);
    if (!runs_of(&own, move.buffer.shape, move.buffer.stride, dtype_bytes[near->dtype]))
        call_error(call, "elements of the buffer lie over one another");
    move.ask.tcm = move.buffer.offset;
    move.ask.virtual_address[OPERAND_A] = call_translates(far->is_virtual);
    for (size_t i = far_copies(call, near, far, &copy); i-- > 0;)
        check_apart(call, &copy[i].near, &copy[i].far);
    return move;
}

static struct move load(const struct call *call, const struct tl_shard *to, const struct tl_shard *from)
{
    return between(call, COMMAND_load, to, from);
}

static struct move store(const struct call *call, const struct tl_shard *to, const struct tl_shard *from)
{
    return between(call, COMMAND_store, from, to);
}

struct tl_shard tl_load_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_load", file, line};
    struct tl_shard buffer = shard;
    struct view view = call_shape(&call, "the shard", &shard);
    struct range range;
    if (!call_translates(shard.is_virtual) && !address_decode(shard.addr, view_span(&view), &range)) {
        view.memory = range.memory;
        view.offset = range.offset;
        freed_check(&call, &view);                      /* before it may be given out again */
    }
    shard_tight(&buffer);
    buffer.addr = buffer_take(&call, view_bytes_of(&view));
    buffer.is_virtual = false;
    block(&call, load(&call, &buffer, &shard));
    return buffer;
}

void tl_load_into_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_load_into", file, line};
    block(&call, load(&call, &to, &from));
}

tl_handle tl_load_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_load_async", file, line};
    return go_on(&call, load(&call, &to, &from));
}

void tl_store_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_store", file, line};
    block(&call, store(&call, &to, &from));
}

tl_handle tl_store_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_store_async", file, line};
    return go_on(&call, store(&call, &to, &from));
}

/* ---- between two PEs */

static uint32_t peer_number(const struct call *call, uint32_t peer)
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

struct tl_place tl_place_at(struct tl *tl, uint32_t peer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_place", file, line};
    uint32_t number = peer_number(&call, peer), cube = number / kb_shape.pes % kb_shape.cubes;
    return (struct tl_place){.number = number, .sip = number / kb_shape.pes / kb_shape.cubes, .cube = cube,
                             .pe = number % kb_shape.pes, .cube_row = cube / kb_shape.cube_cols,
                             .cube_col = cube % kb_shape.cube_cols};
}

uint64_t tl_slot_bytes(const struct tl *tl)
{
    (void)tl;                                           /* all PEs have the same */
    return kb_attrs.pe_ipcq_slot_bytes;
}

uint64_t tl_slots(const struct tl *tl)
{
    (void)tl;
    return kb_attrs.pe_ipcq_slots;
}

static struct view message_like(const struct view *buffer)
{
    struct view message = without_gaps(buffer);
    message.memory = store_messages();
    message.offset = 0;
    return message;
}

static struct move message(const struct call *call, enum command_kind kind, uint32_t peer, const struct tl_shard *shard)
{
    uint32_t number = peer_number(call, peer);
    struct view buffer = call_buffer(call, "the buffer", shard);
    struct runs runs;
    if (!runs_of(&runs, buffer.shape, buffer.stride, dtype_bytes[buffer.dtype]))
        call_error(call, "elements of the buffer lie over one another");
    struct move move = {.ask = {.kind = kind, .peer = number, .tcm = buffer.offset, .bytes = view_bytes_of(&buffer)},
                        .op = {.kind = OPKIND_memory, .name = kind == COMMAND_send ? "send" : "recv"},
                        .buffer = buffer};
    move.op.copy = kind == COMMAND_send ? (struct copy){buffer, message_like(&buffer)}
                                        : (struct copy){message_like(&buffer), buffer};
    return move;
}

/* One that is too long is refused when it is submitted, and moves nothing. */
static struct move send(const struct call *call, uint32_t peer, const struct tl_shard *shard)
{
    struct move move = message(call, COMMAND_send, peer, shard);
    move.moves_nothing = move.ask.bytes > kb_attrs.pe_ipcq_slot_bytes;
    return move;
}

static struct move receive(const struct call *call, uint32_t peer, const struct tl_shard *shard)
{
    return message(call, COMMAND_recv, peer, shard);
}

void tl_send_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_send", file, line};
    block(&call, send(&call, peer, &buffer));
}

tl_handle tl_send_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_send_async", file, line};
    return go_on(&call, send(&call, peer, &buffer));
}

void tl_recv_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_recv", file, line};
    block(&call, receive(&call, peer, &buffer));
}

tl_handle tl_recv_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_recv_async", file, line};
    return go_on(&call, receive(&call, peer, &buffer));
}
