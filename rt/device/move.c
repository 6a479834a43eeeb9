/* move.c: loads and stores, sends and receives: each is one command that moves a buffer of this PE's TCM.
 *
 * A call is checked before it takes time. Its effect on data is recorded at the call, of a receive at its completion
 * (machine/ipcq.c): so bytes move in data order, independent of the timing of commands. */
#include <inttypes.h>
#include <string.h>

#include "buffer.h"
#include "common/array.h"
#include "device.h"
#include "machine/emitted.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "machine/tiling.h"

/* ---- where the memory side of a load or store lies */

/* A part of a transfer: elements of the buffer, and the same elements in memory. */
struct piece {
    struct view buffer, memory;
};

/* The pieces of the transfer that find_pieces was called for last. */
static struct piece_list ARRAY(struct piece) pieces;

enum mapping { IN_ONE, IN_PARTS, UNMAPPED };

/* Translates runs of virtual addresses. IN_ONE: in memory they have the same distances, and begin at *address. */
static enum mapping translate(const struct call *call, const struct runs *runs, uint64_t *address)
{
    static struct address_run list[RUNS_MOST];
    uint64_t first = 0, count = runs_number(runs);
    runs_list(runs, *address, true, list);
    for (uint64_t i = 0; i < count; i++) {
        struct translation t = mmu_look(call->tl->pe, list[i].address, list[i].bytes);
        if (t.unmapped)
            return UNMAPPED;
        if (t.count > 1 || (i && t.runs->address - first != list[i].address - list[0].address))
            return IN_PARTS;
        first = i ? first : t.runs->address;
    }
    *address = first;
    return IN_ONE;
}

static enum mapping locate(const struct call *call, const struct tl_shard *shard, struct view *view)
{
    struct runs runs;
    struct range range;
    uint64_t address = shard->addr;
    *view = call_shape(call, "the shard", shard);
    runs_of(&runs, view->shape, view->stride, dtype_bytes[view->dtype]);
    enum mapping mapping = call_translates(shard->is_virtual) ? translate(call, &runs, &address) : IN_ONE;
    if (mapping != IN_ONE)
        return mapping;
    if (address_decode(address, runs_span(&runs), &range))
        return UNMAPPED;
    view->memory = range.memory;
    view->offset = range.offset;
    return IN_ONE;
}

/* The lower or upper half of a shard along an axis. */
static struct tl_shard half(const struct tl_shard *shard, uint32_t axis, bool upper)
{
    struct tl_shard part = *shard;
    uint64_t size = shard->shape[axis], first = upper ? size / 2 : 0;
    part.addr += first * shard->stride[axis] * dtype_bytes[shard->dtype];
    part.shape[axis] = upper ? size - first : size / 2;
    return part;
}

/* Adds the pieces of a transfer. A shard whose pages lie apart is halved along its longest axis, again and again, down
 * to one element if necessary. Returns false if some of it is unmapped. */
static bool add_pieces(const struct call *call, const struct tl_shard *buffer, const struct tl_shard *memory)
{
    struct view view;
    enum mapping mapping = locate(call, memory, &view);
    if (mapping == IN_ONE) {
        struct view near = call_view(call, "the buffer", buffer);
        *array_add(&pieces) = (struct piece){near, view};
    }
    if (mapping != IN_PARTS)
        return mapping == IN_ONE;
    uint32_t longest = 0;
    for (uint32_t axis = 1; axis < memory->rank; axis++)
        if (memory->shape[axis] > memory->shape[longest])
            longest = axis;
    for (int upper = 0; upper < 2; upper++) {
        struct tl_shard buffer_half = half(buffer, longest, upper), memory_half = half(memory, longest, upper);
        if (!add_pieces(call, &buffer_half, &memory_half))
            return false;
    }
    return true;
}

/* Finds the pieces of a transfer as pages are mapped now: one, or several if consecutive pages lie apart. None if a
 * page is unmapped or an address bad: the DMA will fault, and no data move. */
static const struct piece_list *find_pieces(const struct call *call, const struct tl_shard *buffer,
                                            const struct tl_shard *memory)
{
    pieces.count = 0;
    if (!add_pieces(call, buffer, memory))
        pieces.count = 0;
    return &pieces;
}

/* ---- submission */

struct move_call {
    struct request ask;
    struct view buffer;
    struct op op;                                       /* of a load or store: without its views */
    bool moves_nothing;                                 /* a send that will be refused */
    struct tl_shard near, far;                          /* load, store: the buffer and the memory side */
};

static tl_handle submit(const struct call *call, struct move_call *move)
{
    bool loads = move->ask.kind == COMMAND_load;
    if (!loads && move->ask.kind != COMMAND_store)
        return call_submit(call, &move->ask, move->moves_nothing ? NULL : &move->op);
    const struct piece_list *found = find_pieces(call, &move->near, &move->far);
    for (size_t i = 0; i < found->count; i++) {
        const struct piece *piece = &found->at[i];
        move->op.copy = (struct copy){loads ? piece->memory : piece->buffer, loads ? piece->buffer : piece->memory};
        if (i + 1 < found->count)
            call_record(call, &move->op);
    }
    return call_submit(call, &move->ask, found->count ? &move->op : NULL);
}

static void submit_and_wait(const struct call *call, struct move_call move)
{
    call_wait(call, submit(call, &move));
}

static tl_handle submit_async(const struct call *call, struct move_call move)
{
    tl_handle handle = submit(call, &move);
    hazards_submitted(call->tl, kernel_command(call->tl, call_number(call, handle)), &move.buffer);
    return handle;
}

/* ---- between a memory and the TCM */

/* Sets the bytes of the memory side and their runs; KERNEL_ERROR if these are more than a command may have. */
static void set_runs(const struct call *call, struct move_call *move)
{
    struct view far = call_shape(call, "the shard", &move->far);
    struct runs *runs = &move->ask.runs;
    if (!runs_of(runs, far.shape, far.stride, dtype_bytes[far.dtype]))
        call_error(call, "elements of the shard overlap");
    if (runs_number(runs) > RUNS_MOST)
        call_error(call, "the shard has %" PRIu64 " runs of consecutive bytes; a command has at most %d",
                   runs_number(runs), RUNS_MOST);
    if (!call_translates(move->far.is_virtual) && (move->far.addr & OFFSET_MASK) + runs_span(runs) > OFFSET_MASK + 1)
        call_fault(call, FAULT_BAD_ADDRESS, "the shard at %s: it runs past the end of the memory",
                   address_name(move->far.addr));
    move->ask.bytes = view_bytes_of(&far);
}

static bool has_gaps(const struct view *view)
{
    struct view dense = view_without_gaps(view);
    return memcmp(view->stride, dense.stride, sizeof dense.stride);
}

/* The two sides may overlap in one TCM if neither has gaps. */
static void check_piece(const struct call *call, const struct piece *piece)
{
    uint64_t first, end;
    hazards_check_use(call, &piece->memory);
    if ((has_gaps(&piece->buffer) || has_gaps(&piece->memory))
        && views_meet(&piece->buffer, &piece->memory, &first, &end))
        call_error(call, "the buffer and the shard have the bytes at %s in common",
                   address_name(memory_address(piece->memory.memory, first)));
}

static struct move_call transfer(const struct call *call, enum command_kind kind, const struct tl_shard *near,
                                 const struct tl_shard *far)
{
    struct move_call move = {.ask = {.kind = kind, .address = {far->addr}}, .near = *near, .far = *far,
                             .op = {.kind = OPKIND_memory, .name = kind == COMMAND_load ? "dma_read" : "dma_write"}};
    set_runs(call, &move);
    call_shape(call, "the buffer", near);
    bool same = near->rank == far->rank && near->dtype == far->dtype;
    for (uint32_t axis = 0; same && axis < near->rank; axis++)
        same = near->shape[axis] == far->shape[axis];
    if (!same)
        call_error(call, "the buffer and the shard differ in shape or dtype");
    move.buffer = call_buffer_distinct(call, "the buffer", near);
    move.ask.tcm = move.buffer.offset;
    move.ask.virtual_address[OPERAND_A] = call_translates(far->is_virtual);
    const struct piece_list *found = find_pieces(call, near, far);
    for (size_t i = found->count; i-- > 0;)
        check_piece(call, &found->at[i]);
    return move;
}

static struct move_call load(const struct call *call, const struct tl_shard *to, const struct tl_shard *from)
{
    return transfer(call, COMMAND_load, to, from);
}

static struct move_call store(const struct call *call, const struct tl_shard *to, const struct tl_shard *from)
{
    return transfer(call, COMMAND_store, from, to);
}

struct tl_shard tl_load_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load", file, line);
    struct tl_shard buffer = shard;
    struct view view = call_shape(&call, "the shard", &shard);
    struct range range;
    if (!call_translates(shard.is_virtual) && !address_decode(shard.addr, view_span(&view), &range)) {
        view.memory = range.memory;
        view.offset = range.offset;
        hazards_check_freed(&call, &view);              /* before the allocation below takes the same bytes */
    }
    shard_make_dense(&buffer);
    buffer.addr = buffer_alloc(&call, view_bytes_of(&view));
    buffer.is_virtual = false;
    submit_and_wait(&call, load(&call, &buffer, &shard));
    return buffer;
}

void tl_load_into_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load_into", file, line);
    submit_and_wait(&call, load(&call, &to, &from));
}

tl_handle tl_load_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load_async", file, line);
    return submit_async(&call, load(&call, &to, &from));
}

void tl_store_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_store", file, line);
    submit_and_wait(&call, store(&call, &to, &from));
}

tl_handle tl_store_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_store_async", file, line);
    return submit_async(&call, store(&call, &to, &from));
}

/* ---- between two PEs */

uint64_t tl_slot_bytes(const struct tl *tl)
{
    (void)tl;                                           /* the same on all PEs */
    return kb_attrs.pe_ipcq_slot_bytes;
}

uint64_t tl_slots(const struct tl *tl)
{
    (void)tl;
    return kb_attrs.pe_ipcq_slots;
}

static struct move_call exchange(const struct call *call, enum command_kind kind, uint32_t peer,
                                 const struct tl_shard *shard)
{
    uint32_t number = call_peer(call, peer);
    struct view buffer = call_buffer_distinct(call, "the buffer", shard), under_way = view_without_gaps(&buffer);
    under_way.memory = store_messages();
    under_way.offset = 0;
    bool sends = kind == COMMAND_send;
    uint64_t bytes = view_bytes_of(&buffer);
    return (struct move_call){
        .ask = {.kind = kind, .peer = number, .tcm = buffer.offset, .bytes = bytes}, .buffer = buffer,
        .op = {.kind = OPKIND_memory, .name = sends ? "send" : "recv",
               .copy = sends ? (struct copy){buffer, under_way} : (struct copy){under_way, buffer}},
        .moves_nothing = sends && bytes > kb_attrs.pe_ipcq_slot_bytes};
}

void tl_send_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_send", file, line);
    submit_and_wait(&call, exchange(&call, COMMAND_send, peer, &buffer));
}

tl_handle tl_send_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_send_async", file, line);
    return submit_async(&call, exchange(&call, COMMAND_send, peer, &buffer));
}

void tl_recv_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_recv", file, line);
    submit_and_wait(&call, exchange(&call, COMMAND_recv, peer, &buffer));
}

tl_handle tl_recv_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_recv_async", file, line);
    return submit_async(&call, exchange(&call, COMMAND_recv, peer, &buffer));
}
