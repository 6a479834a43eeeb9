/* move.c: loads and stores, sends and receives: each is one command that moves a buffer of this PE's TCM.
 *
 * A call is checked before it takes time. Its effect on data is recorded at the call, of a receive at its completion
 * (machine/ipcq.c): so bytes move in data order, independent of the timing of commands. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "common/array.h"
#include "device.h"
#include "machine/emitted.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "machine/peers.h"
#include "machine/tiling.h"
#include "store/tensor.h"

/* ---- where the memory side of a load or store lies */

/* A load, a store, or a part of one: its buffer, and the memory side, which has no place yet. */
struct sides {
    struct tl_shard buffer, memory;
    struct view near, far;
    struct runs runs;                                   /* of the memory side */
};

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
    static struct address_run list[TL_RUNS_MOST];
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

/* Finds the place of the memory side, if that is one. */
static enum mapping locate(const struct call *call, const struct sides *sides, struct view *memory)
{
    struct range range;
    uint64_t address = sides->memory.addr;
    enum mapping mapping =
        call_translates(sides->memory.is_virtual) ? translate(call, &sides->runs, &address) : IN_ONE;
    if (mapping != IN_ONE)
        return mapping;
    if (address_decode(address, runs_span(&sides->runs), &range))
        return UNMAPPED;
    *memory = sides->far;
    memory->memory = range.memory;
    memory->offset = range.offset;
    return IN_ONE;
}

/* Makes a shard its lower or upper half along an axis. */
static void halve(struct tl_shard *shard, uint32_t axis, bool upper)
{
    uint64_t size = shard->shape[axis], first = upper ? size / 2 : 0;
    shard->addr += first * shard->stride[axis] * dtype_bytes[shard->dtype];
    shard->shape[axis] = upper ? size - first : size / 2;
}

/* Adds the pieces of a transfer. A shard whose pages lie apart is halved along its longest axis, again and again, down
 * to one element if necessary. Returns false if some of it is unmapped. */
static bool add_pieces(const struct call *call, const struct sides *sides)
{
    struct view memory;
    enum mapping mapping = locate(call, sides, &memory);
    if (mapping == IN_ONE)
        *array_add(&pieces) = (struct piece){sides->near, memory};
    if (mapping != IN_PARTS)
        return mapping == IN_ONE;
    uint32_t longest = 0;
    for (uint32_t axis = 1; axis < sides->memory.rank; axis++)
        if (sides->memory.shape[axis] > sides->memory.shape[longest])
            longest = axis;
    for (int upper = 0; upper < 2; upper++) {
        struct sides half = {.buffer = sides->buffer, .memory = sides->memory};
        halve(&half.buffer, longest, upper);
        halve(&half.memory, longest, upper);
        call_view(call, "the buffer", &half.buffer, &half.near);
        call_shape(call, "the shard", &half.memory, &half.far);
        runs_of(&half.runs, half.far.shape, half.far.stride, dtype_bytes[half.far.dtype]);
        if (!add_pieces(call, &half))
            return false;
    }
    return true;
}

/* Finds the pieces of a transfer as pages are mapped now: one, or several if consecutive pages lie apart. None if a
 * page is unmapped or an address bad: the DMA will fault, and no data move. */
static void find_pieces(const struct call *call, const struct sides *sides)
{
    pieces.count = 0;
    if (!add_pieces(call, sides))
        pieces.count = 0;
}

/* ---- submission */

const char *const move_names[COMMANDS] = {[COMMAND_load] = "dma_read", [COMMAND_store] = "dma_write",
                                          [COMMAND_send] = "send", [COMMAND_recv] = "recv"};

/* The command that is made, until it is submitted. What makes one sets of `op` what moves use: what begin_op sets, and its copy;
 * no copy for a load or store: each of the pieces is one. */
static struct move {
    struct request ask;
    struct runs buffer;                                 /* of the buffer */
    struct op op;
    bool moves_nothing;                                 /* a send that will be refused */
} move;

static void begin_op(enum command_kind kind, uint32_t receivers)
{
    move.op.kind = OPKIND_memory;
    move.op.name = move_names[kind];
    move.op.receivers = receivers;
}

static tl_handle submit(const struct call *call)
{
    bool loads = move.ask.kind == COMMAND_load;
    if (!loads && move.ask.kind != COMMAND_store)
        return call_submit(call, &move.ask, move.moves_nothing ? NULL : &move.op);
    for (size_t i = 0; i < pieces.count; i++) {
        const struct piece *piece = &pieces.at[i];
        move.op.copy = (struct copy){loads ? piece->memory : piece->buffer, loads ? piece->buffer : piece->memory};
        if (i + 1 < pieces.count)
            call_record(call, &move.op);
    }
    return call_submit(call, &move.ask, pieces.count ? &move.op : NULL);
}

static void submit_and_wait(const struct call *call)
{
    call_wait(call, submit(call));
}

static tl_handle submit_async(const struct call *call)
{
    hazards_submitted(call, call->tl->commands, (enum command_kind)move.ask.kind, &move.buffer, move.ask.tcm);
    return submit(call);
}

/* ---- between a memory and the TCM */

/* Finds the runs of the memory side; KERNEL_ERROR if these are more than a command may have. */
static void find_runs(const struct call *call, struct sides *sides)
{
    const struct view *far = &sides->far;
    struct runs *runs = &sides->runs;
    if (!runs_of(runs, far->shape, far->stride, dtype_bytes[far->dtype]))
        call_error(call, "elements of the shard overlap");
    if (runs_number(runs) > TL_RUNS_MOST)
        call_error(call, "the shard has %" PRIu64 " runs of consecutive bytes; a command has at most %d",
                   runs_number(runs), TL_RUNS_MOST);
    const struct tl_shard *memory = &sides->memory;
    if (!call_translates(memory->is_virtual) && (memory->addr & OFFSET_MASK) + runs_span(runs) > OFFSET_MASK + 1)
        call_fault(call, FAULT_BAD_ADDRESS, "the shard at %s: it runs past the end of the memory",
                   address_name(memory->addr));
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
    if (views_meet(&piece->buffer, &piece->memory, &first, &end)
        && (has_gaps(&piece->buffer) || has_gaps(&piece->memory)))
        call_error(call, "the buffer and the shard have the bytes at %s in common",
                   address_name(memory_address(piece->memory.memory, first)));
}

static void transfer(const struct call *call, enum command_kind kind, const struct tl_shard *near,
                     const struct tl_shard *far)
{
    static struct sides sides;                          /* as `move` */
    bool same = near->rank == far->rank && near->dtype == far->dtype, translates = call_translates(far->is_virtual);
    sides.buffer = *near;
    sides.memory = *far;
    call_shape(call, "the shard", far, &sides.far);
    find_runs(call, &sides);
    call_shape(call, "the buffer", near, &sides.near);
    for (uint32_t axis = 0; same && axis < near->rank; axis++)
        same = near->shape[axis] == far->shape[axis];
    if (!same)
        call_error(call, "the buffer and the shard differ in shape or dtype");
    call_place_buffer(call, "the buffer", near, &sides.near);
    call_runs(call, "the buffer", &sides.near, &move.buffer);
    find_pieces(call, &sides);
    for (size_t i = pieces.count; i-- > 0;)
        check_piece(call, &pieces.at[i]);
    move.ask = (struct request){.kind = kind, .address = {far->addr}, .virtual_address = {translates},
                                .tcm = sides.near.offset, .bytes = view_bytes_of(&sides.near),
                                .runs = sides.runs.axes ? &sides.runs : NULL};
    begin_op(kind, 0);
}

static void load(const struct call *call, const struct tl_shard *to, const struct tl_shard *from)
{
    transfer(call, COMMAND_load, to, from);
}

static void store(const struct call *call, const struct tl_shard *to, const struct tl_shard *from)
{
    transfer(call, COMMAND_store, from, to);
}

struct tl_shard tl_load_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load", file, line);
    struct tl_shard buffer = shard;
    struct view view;
    call_shape(&call, "the shard", &shard, &view);
    struct range range;
    if (!call_translates(shard.is_virtual) && !address_decode(shard.addr, view_span(&view), &range)) {
        view.memory = range.memory;
        view.offset = range.offset;
        hazards_check_freed(&call, &view);              /* before the allocation below takes the same bytes */
    }
    shard_make_dense(&buffer);
    buffer.addr = buffer_alloc(&call, view_bytes_of(&view));
    buffer.is_virtual = false;
    load(&call, &buffer, &shard);
    submit_and_wait(&call);
    return buffer;
}

void tl_load_into_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load_into", file, line);
    load(&call, &to, &from);
    submit_and_wait(&call);
}

tl_handle tl_load_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load_async", file, line);
    load(&call, &to, &from);
    return submit_async(&call);
}

void tl_store_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_store", file, line);
    store(&call, &to, &from);
    submit_and_wait(&call);
}

tl_handle tl_store_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_store_async", file, line);
    store(&call, &to, &from);
    return submit_async(&call);
}

/* ---- rows by their numbers */

/* A transfer of listed rows: the buffer, and where rows lie. */
struct row_list {
    const int32_t *row;
    struct tl_shard buffer;
    struct tl_rows rows;
    struct view near;                                   /* of the buffer */
};

/* The runs of the transfer under way. */
static struct ARRAY(struct address_run) listed;

/* The columns of a tensor's shard that the rows have. */
static struct tl_shard with_columns(const struct call *call, const struct tl_rows *rows, struct tl_shard shard)
{
    uint32_t last = shard.rank - 1u;
    if (rows->cols == 0)
        return shard;
    if (shard.rank < 2 || rows->first > shard.shape[last] || rows->cols > shard.shape[last] - rows->first)
        call_error(call, "%" PRIu64 " columns from %" PRIu64 " on, but the rows have %" PRIu64, rows->cols, rows->first,
                   shard.rank < 2 ? 1 : shard.shape[last]);
    shard.addr = address_add(shard.addr, rows->first * dtype_bytes[shard.dtype]);
    shard.shape[last] = rows->cols;
    return shard;
}

/* The shard of a tensor that has a row. Shards are in the order of their rows. */
static struct tl_shard shard_of_row(const struct call *call, kb_tensor tensor, uint64_t row)
{
    const struct tl_shard *copy = NULL;
    if (tensor->place.split == KB_COPIES) {
        copy = shard_with(tensor, device_state(call->tl)->pe);
        if (!copy)
            call_error(call, "tensor '%s' is not placed with this PE", tensor->name);
        return *copy;
    }
    uint32_t low = 0, high = tensor->shards;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tl_shard *shard = &tensor->shard[middle].view;
        if (shard->first[0] + shard->shape[0] <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return tensor->shard[low].view;
}

/* The rows from row i of the list on that follow each other in one shard: *count of them. */
static struct tl_shard rows_from(const struct call *call, const struct row_list *list, uint64_t i, uint64_t *count)
{
    kb_tensor tensor = list->rows.tensor;
    bool of_tensor = list->rows.of_tensor;
    uint64_t all = of_tensor ? tensor->dims.size[0] : list->rows.shard.shape[0], left = list->buffer.shape[0] - i;
    int64_t first = list->row[i];
    if (first < 0 || (uint64_t)first >= all)
        call_error(call, "row %" PRIu64 " of the list is %" PRId64 ", there are %" PRIu64 " rows", i, first, all);
    struct tl_shard shard = list->rows.shard;
    if (of_tensor)
        shard = with_columns(call, &list->rows, shard_of_row(call, tensor, (uint64_t)first));
    uint64_t row = (uint64_t)first - (of_tensor ? shard.first[0] : 0);
    for (*count = 1; *count < left && row + *count < shard.shape[0]; ++*count)
        if (list->row[i + *count] != first + (int64_t)*count)
            break;
    uint64_t bytes = row * shard.stride[0] * dtype_bytes[shard.dtype];
    shard.addr = shard.is_virtual ? shard.addr + bytes : address_add(shard.addr, bytes);
    shard.shape[0] = *count;
    return shard;
}

/* KERNEL_ERROR: the rows are not those of the buffer. */
static void check_rows(const struct call *call, const struct row_list *list)
{
    kb_tensor tensor = list->rows.tensor;
    if (!list->row)
        call_error(call, "the list of rows is a null pointer");
    if (list->rows.of_tensor && !tensor)
        call_error(call, "there is no tensor");
    struct tl_shard all = list->rows.of_tensor ? with_columns(call, &list->rows, tensor->shard[0].view) : list->rows.shard;
    const struct tl_shard *buffer = &list->buffer;
    if (list->rows.of_tensor && (tensor->place.split == KB_COLS || tensor->place.split == KB_BLOCKS) && tensor->shards > 1)
        call_error(call, "tensor '%s' has its rows split over shards", tensor->name);
    struct view whole;
    bool same = all.rank == buffer->rank && all.dtype == buffer->dtype;
    for (uint32_t axis = 1; same && axis < buffer->rank; axis++)
        same = all.shape[axis] == buffer->shape[axis];
    if (!same)
        call_error(call, "the buffer and the rows differ in shape or dtype");
    if (!list->rows.of_tensor)
        call_shape(call, "the shard", &all, &whole);    /* so no row's address wraps around */
}

static int in_order(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* KERNEL_ERROR: two rows of the buffer go to the same bytes. */
static void check_stored_once(const struct call *call, const struct row_list *list)
{
    static struct ARRAY(int32_t) sorted;
    uint64_t rows = list->buffer.shape[0];
    array_reserve(&sorted, rows);
    memcpy(sorted.at, list->row, rows * sizeof *sorted.at);
    qsort(sorted.at, rows, sizeof *sorted.at, in_order);
    for (uint64_t i = 1; i < rows; i++)
        if (sorted.at[i - 1] == sorted.at[i])
            call_error(call, "row %" PRId32 " is stored twice", sorted.at[i]);
    if (!list->rows.of_tensor) {
        struct view whole;
        call_shape(call, "the shard", &list->rows.shard, &whole);
        call_runs(call, "the shard", &whole, &(struct runs){0});
    }
}

/* Adds the runs of some rows, and their pieces. Returns false if some of them are unmapped. */
static bool add_rows(const struct call *call, const struct row_list *list, uint64_t i, uint64_t count,
                     const struct tl_shard *rows)
{
    struct sides sides = {.buffer = list->buffer, .memory = *rows, .near = list->near};
    call_shape(call, "the shard", rows, &sides.far);
    find_runs(call, &sides);
    uint64_t bytes = i * list->buffer.stride[0] * dtype_bytes[list->buffer.dtype], number = runs_number(&sides.runs);
    sides.buffer.addr += bytes;
    sides.buffer.shape[0] = count;
    sides.near.offset += bytes;
    sides.near.shape[0] = count;
    if (listed.count + number > TL_RUNS_MOST)
        call_error(call, "the rows have more than %d runs of consecutive bytes, the most of a command", TL_RUNS_MOST);
    array_reserve(&listed, listed.count + number);
    struct address_run *next = &listed.at[listed.count], *last = listed.count ? next - 1 : NULL;
    runs_list(&sides.runs, rows->addr, call_translates(rows->is_virtual), next);
    bool joined = last && last->address + last->bytes == next->address
                  && last->address >> OFFSET_BITS == next->address >> OFFSET_BITS;
    listed.count += number - joined;
    if (joined) {
        last->bytes += next->bytes;
        memmove(next, next + 1, (number - 1) * sizeof *next);
    }
    return add_pieces(call, &sides);
}

/* A row that lies in the buffer itself would be read after it is written. */
static void check_rows_apart(const struct call *call, const struct row_list *list)
{
    uint64_t first, end;
    for (size_t i = pieces.count; i-- > 0;) {
        hazards_check_use(call, &pieces.at[i].memory);
        if (views_meet(&list->near, &pieces.at[i].memory, &first, &end))
            call_error(call, "the buffer and the rows have the bytes at %s in common",
                       address_name(memory_address(pieces.at[i].memory.memory, first)));
    }
}

static void transfer_rows(const struct call *call, enum command_kind kind, const struct tl_shard *buffer,
                          struct tl_rows rows, const int32_t *row)
{
    struct row_list list = {.row = row, .buffer = *buffer, .rows = rows};
    call_buffer(call, "the buffer", buffer, &list.near);
    bool mapped = true;
    check_rows(call, &list);
    call_runs(call, "the buffer", &list.near, &move.buffer);
    listed.count = pieces.count = 0;
    for (uint64_t i = 0, count; i < buffer->shape[0]; i += count) {
        struct tl_shard some = rows_from(call, &list, i, &count);
        mapped &= add_rows(call, &list, i, count, &some);
    }
    if (kind == COMMAND_store)
        check_stored_once(call, &list);
    check_rows_apart(call, &list);
    if (!mapped)
        pieces.count = 0;
    bool translates = call_translates(!rows.of_tensor && rows.shard.is_virtual);
    move.ask = (struct request){.kind = kind, .address = {listed.at[0].address}, .virtual_address = {translates},
                                .tcm = list.near.offset, .bytes = view_bytes_of(&list.near), .list = listed.at,
                                .listed = (uint32_t)listed.count};
    begin_op(kind, 0);
}

void tl_load_rows_at(struct tl *tl, struct tl_shard to, struct tl_rows from, const int32_t *row, const char *file,
                     uint32_t line)
{
    struct call call = call_of(tl, "tl_load_rows", file, line);
    transfer_rows(&call, COMMAND_load, &to, from, row);
    submit_and_wait(&call);
}

tl_handle tl_load_rows_async_at(struct tl *tl, struct tl_shard to, struct tl_rows from, const int32_t *row,
                                const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_load_rows_async", file, line);
    transfer_rows(&call, COMMAND_load, &to, from, row);
    return submit_async(&call);
}

void tl_store_rows_at(struct tl *tl, struct tl_rows to, const int32_t *row, struct tl_shard from, const char *file,
                      uint32_t line)
{
    struct call call = call_of(tl, "tl_store_rows", file, line);
    transfer_rows(&call, COMMAND_store, &from, to, row);
    submit_and_wait(&call);
}

tl_handle tl_store_rows_async_at(struct tl *tl, struct tl_rows to, const int32_t *row, struct tl_shard from,
                                 const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_store_rows_async", file, line);
    transfer_rows(&call, COMMAND_store, &from, to, row);
    return submit_async(&call);
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

/* Sets the PEs that a send goes to, or the PE that a receive is from. */
static void find_peers(const struct call *call, const uint32_t *peers, uint32_t count)
{
    static struct ARRAY(uint32_t) numbers;
    if (count == 0)
        call_error(call, "it names no PE to send to");
    if (!peers)
        call_error(call, "the array of PEs is a null pointer");
    if (count > pe_count())
        call_error(call, "%" PRIu32 " PEs are more than the machine has, which are %" PRIu32, count, pe_count());
    if (count == 1) {
        move.ask.peer = call_peer(call, *peers);
        return;
    }
    array_reserve(&numbers, count);
    for (uint32_t i = 0; i < count; i++)
        numbers.at[i] = call_peer(call, peers[i]);
    peers_set(&move.ask, numbers.at, count);
}

static void exchange(const struct call *call, enum command_kind kind, const uint32_t *peers, uint32_t count,
                     const struct tl_shard *shard)
{
    bool sends = kind == COMMAND_send;
    struct view *buffer = sends ? &move.op.copy.from : &move.op.copy.to;
    struct view *under_way = sends ? &move.op.copy.to : &move.op.copy.from;
    call_buffer(call, "the buffer", shard, buffer);
    call_runs(call, "the buffer", buffer, &move.buffer);
    uint64_t bytes = view_bytes_of(buffer);
    move.ask = (struct request){.kind = kind, .tcm = buffer->offset, .bytes = bytes};
    find_peers(call, peers, count);
    *under_way = view_without_gaps(buffer);
    under_way->memory = store_messages();
    under_way->offset = 0;
    begin_op(kind, sends ? count : 0);
    move.moves_nothing = sends && bytes > kb_attrs.pe_ipcq_slot_bytes;
}

void tl_send_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_send", file, line);
    exchange(&call, COMMAND_send, &peer, 1, &buffer);
    submit_and_wait(&call);
}

tl_handle tl_send_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_send_async", file, line);
    exchange(&call, COMMAND_send, &peer, 1, &buffer);
    return submit_async(&call);
}

void tl_multicast_at(struct tl *tl, const uint32_t *peers, uint32_t count, struct tl_shard buffer, const char *file,
                     uint32_t line)
{
    struct call call = call_of(tl, "tl_multicast", file, line);
    exchange(&call, COMMAND_send, peers, count, &buffer);
    submit_and_wait(&call);
}

tl_handle tl_multicast_async_at(struct tl *tl, const uint32_t *peers, uint32_t count, struct tl_shard buffer,
                                const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_multicast_async", file, line);
    exchange(&call, COMMAND_send, peers, count, &buffer);
    return submit_async(&call);
}

void tl_recv_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_recv", file, line);
    exchange(&call, COMMAND_recv, &peer, 1, &buffer);
    submit_and_wait(&call);
}

tl_handle tl_recv_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_recv_async", file, line);
    exchange(&call, COMMAND_recv, &peer, 1, &buffer);
    return submit_async(&call);
}
