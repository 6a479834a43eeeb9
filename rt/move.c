/* move.c: loads and stores, sends and receives: what a kernel moves, as one command each.
 *
 * Every call is checked before it takes time. What it does to data is recorded at the call, so bytes move in data
 * order, whatever the timing of the command is; a receive's at its completion (ring.c). */
#include <inttypes.h>

#include "buffer.h"
#include "device.h"
#include "emitted.h"
#include "flight.h"
#include "launch.h"
#include "pe.h"

/* A command between a buffer in this PE's TCM and elsewhere, with its copy. */
struct move {
    struct request ask;
    struct range buffer;
    struct op op;
    struct reach memory;                                /* of a load or store: what it reads or writes */
};

static struct copy bytes_copied(uint32_t from, uint64_t from_offset, uint32_t to, uint64_t to_offset, uint64_t bytes)
{
    return (struct copy){view_bytes(from, from_offset, bytes), view_bytes(to, to_offset, bytes)};
}

/* A load or store: one copy for each range of the memory. */
static tl_handle transfer(const struct call *call, struct move *move)
{
    uint64_t offset = move->buffer.offset;
    for (size_t i = 0; i < move->memory.count; i++) {
        const struct range *r = &move->memory.range[i];
        move->op.copy = move->ask.kind == COMMAND_load
                            ? bytes_copied(r->memory, r->offset, move->buffer.memory, offset, r->bytes)
                            : bytes_copied(move->buffer.memory, offset, r->memory, r->offset, r->bytes);
        offset += r->bytes;
        if (i + 1 < move->memory.count)
            call_record(call, &move->op);
    }
    return call_submit(call, &move->ask, move->memory.count ? &move->op : NULL);
}

static tl_handle submit(const struct call *call, struct move *move)
{
    if (move->ask.kind == COMMAND_load || move->ask.kind == COMMAND_store)
        return transfer(call, move);
    return call_submit(call, &move->ask, &move->op);
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

static struct move between(const struct call *call, enum command_kind kind, const struct tl_shard *buffer,
                           const struct tl_shard *memory)
{
    uint64_t bytes = call_bytes(call, memory);
    struct move move = {.ask = {.kind = kind, .address = {memory->addr}, .bytes = bytes},
                        .op = {.kind = OPKIND_memory, .name = kind == COMMAND_load ? "dma_read" : "dma_write"}};
    call_bytes(call, buffer);
    call_same_shape(call, buffer, memory);
    move.buffer = call_buffer(call, buffer);
    move.ask.tcm = move.buffer.offset;
    move.ask.virtual_address[OPERAND_A] = call_translates(memory->is_virtual);
    move.memory = call_reach(call, memory->addr, memory->is_virtual, bytes);
    for (size_t i = 0; i < move.memory.count; i++)
        flights_check_use(call, &move.memory.range[i]);
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
    uint64_t bytes = call_bytes(&call, &shard);
    buffer.addr = buffer_take(&call, bytes);
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

static struct move send(const struct call *call, uint32_t peer, const struct tl_shard *shard)
{
    uint32_t number = peer_number(call, peer);
    struct range buffer = call_buffer(call, shard);
    uint64_t slot = kb_attrs.pe_ipcq_slot_bytes, kept = buffer.bytes < slot ? buffer.bytes : slot;
    return (struct move){                               /* one that is too long is refused when it is submitted */
        .ask = {.kind = COMMAND_send, .peer = number, .tcm = buffer.offset, .bytes = buffer.bytes}, .buffer = buffer,
        .op = {.kind = OPKIND_memory, .name = "send",
               .copy = bytes_copied(buffer.memory, buffer.offset, store_messages(), 0, kept)}};
}

static struct move receive(const struct call *call, uint32_t peer, const struct tl_shard *shard)
{
    uint32_t number = peer_number(call, peer);
    struct range buffer = call_buffer(call, shard);
    return (struct move){
        .ask = {.kind = COMMAND_recv, .peer = number, .tcm = buffer.offset, .bytes = buffer.bytes}, .buffer = buffer,
        .op = {.kind = OPKIND_memory, .name = "recv",
               .copy = bytes_copied(store_messages(), 0, buffer.memory, buffer.offset, buffer.bytes)}};
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
