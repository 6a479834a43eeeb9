/* tl.h: the device library: what a kernel asks of the PE that it runs on.
 *
 * A kernel is a plain function that every PE of a launch runs, in simulated time. Calls that submit a command take
 * pe_cpu's overhead; some then block until the command is complete; all other calls take no time. Sizes count elements
 * unless their name says bytes. Addresses are physical. Static variables are shared by all PEs and keep their values
 * between the runs of a sweep.
 *
 * A fault ends the kernel of its PE and fails the launch; other PEs continue. The simulator prints the fault's code,
 * the PE, and the file and line of the call. "KERNEL_ERROR: ..." below lists what gives that fault. */
#ifndef KB_TL_H
#define KB_TL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The context of a running kernel: the first argument of nearly every call. */
struct tl;

/* A tensor of the host: a shape, a dtype, and shards in memories. A kernel gets it among its arguments. */
typedef struct tensor *kb_tensor;

enum kb_dtype {
#define DTYPE(name, bytes, is_float) KB_##name,
#include <kb/dtypes.def>
#undef DTYPE
    KB_DTYPES
};

/* The bytes of an element; 0 if it is not a dtype. */
static inline uint64_t kb_dtype_bytes(enum kb_dtype dtype)
{
    static const uint8_t bytes_of[] = {
#define DTYPE(name, bytes, is_float) bytes,
#include <kb/dtypes.def>
#undef DTYPE
    };
    return (unsigned)dtype < KB_DTYPES ? bytes_of[dtype] : 0;
}

enum { KB_RANK = 4 };                                   /* the most axes of a tensor */

/* A rectangular part of a tensor in one memory, or another view of those elements. The axes beyond `rank` have shape 1.
 * Element (i, j) lies i * stride[0] + j * stride[1] elements after addr, which is a multiple of the element's bytes. */
struct tl_shard {
    uint64_t addr;
    uint8_t dtype, rank;
    uint64_t shape[KB_RANK], stride[KB_RANK];
    uint64_t first[KB_RANK];                            /* index of its first element in the tensor */
    bool is_virtual;                                    /* the PE's MMU translates addr */
};

/* A command of this kernel, in flight or complete. A handle stays valid until the kernel ends. */
typedef struct tl_command *tl_handle;

/* ---- kernels */

/* Defines a kernel: `KB_KERNEL(add, struct add_args) { ... }` is the body of
 *     static void add(struct tl *tl, const struct add_args *arg)
 * and registers it for kb_launch and `list`. Arguments hold tensors and scalars, at most KB_ARG_BYTES_MOST bytes: a launch
 * is a control message, and data are moved by tensors. */
enum { KB_ARG_BYTES_MOST = 4096 };

#define KB_KERNEL(name, type)                                                                                          \
    _Static_assert(sizeof(type) <= KB_ARG_BYTES_MOST, "arguments of a kernel are at most 4096 bytes: data are tensors"); \
    static void name(struct tl *tl, const type *arg);                                                                  \
    static void name##_kb_body(struct tl *tl, const void *arg) { name(tl, arg); }                                      \
    __attribute__((unused)) static const void *name##_kb_arg(const type *arg) { return arg; }                          \
    static const struct kb_kernel name##_kb_kernel = {#name, __FILE__, __LINE__, sizeof(type), name##_kb_body};        \
    static const struct kb_kernel *const name##_kb_entry                                                               \
        __attribute__((used, section("kb_kernels"))) = &name##_kb_kernel;                                              \
    static void name(struct tl *tl __attribute__((unused)), const type *arg __attribute__((unused)))

struct kb_kernel {
    const char *name, *file;
    uint32_t line;
    uint64_t arg_bytes;
    void (*body)(struct tl *tl, const void *arg);
};

/* ---- place and time: no call takes time */

/* The position of this PE among the PEs of its launch, in rank order, and their number. */
uint32_t tl_pe(const struct tl *tl);
uint32_t tl_num_pes(const struct tl *tl);

/* The number of this PE's SIP, and of its cube within the SIP, row-major. */
uint32_t tl_sip(const struct tl *tl);
uint32_t tl_cube(const struct tl *tl);

/* The simulated time in ps. */
uint64_t tl_now(const struct tl *tl);

/* A peer is named by its position in the launch, as tl_pe counts, in whichever part of the launch it is; or, if it may
 * be in another launch, by TL_NUMBER of its number over the machine, as in struct kb_pes. */
#define TL_NUMBER(pe) ((uint32_t)(pe) | UINT32_C(1) << 31)

/* A PE's number over the machine, and its place. */
struct tl_place {
    uint32_t number, sip, cube, pe;                     /* cube within the SIP, PE within the cube */
    uint32_t cube_row, cube_col;                        /* the cube's position in the SIP's grid */
};

/* The place of a peer. KERNEL_ERROR: there is no such PE. */
#define tl_place(tl, peer) tl_place_at(tl, peer, __FILE__, __LINE__)

/* The number of a tensor's shards. KERNEL_ERROR: the tensor is NULL; at the host this ends the run with status 2. */
#define tl_shards(tensor) tl_shards_at(tensor, __FILE__, __LINE__)

/* Shard i of a tensor, in the order of the PEs of its placement. KERNEL_ERROR: there is no such tensor or shard. */
#define tl_shard(tl, tensor, i) tl_shard_at(tl, tensor, i, __FILE__, __LINE__)

/* The shard that is placed with this PE. It is empty (a shape of 0) where a split has more PEs than indices.
 * KERNEL_ERROR: the tensor is NULL, or its placement does not name this PE. */
#define tl_my_shard(tl, tensor) tl_my_shard_at(tl, tensor, __FILE__, __LINE__)

/* ---- views: shards of the same elements, which can be used wherever a shard can. No call takes time */

/* The part of a shard that has `count` indices of an axis, beginning with the shard's index `first`.
 * KERNEL_ERROR: there is no such axis; the part is outside the shard. */
#define tl_part(tl, shard, axis, first, count) tl_part_at(tl, shard, axis, first, count, __FILE__, __LINE__)

/* Every step-th index of an axis, beginning with `first`.
 * KERNEL_ERROR: there is no such axis; a step of 0; `first` is outside the shard. */
#define tl_every(tl, shard, axis, first, step) tl_every_at(tl, shard, axis, first, step, __FILE__, __LINE__)

/* The shard with two axes exchanged. KERNEL_ERROR: there is no such axis. */
#define tl_transposed(tl, shard, axis, other) tl_transposed_at(tl, shard, axis, other, __FILE__, __LINE__)

/* The same elements, in row-major order, as another shape of one to four axes: tl_reshape(tl, shard, rows, columns).
 * The result's first[] is 0. KERNEL_ERROR: the shard is empty; the shape has a different number of elements; the
 * elements of an axis would not be at equal distances. BAD_ADDRESS: not aligned to the dtype. */
#define tl_reshape(tl, shard, ...)                                                                                     \
    tl_reshape_at(tl, shard, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, __FILE__,   \
                  __LINE__)

/* Checks and completes a shard that the kernel itself has made. Strides that are all 0 become those of consecutive
 * elements:
 *     tl_view(tl, (struct tl_shard){.addr = x.addr, .dtype = KB_f16, .rank = 2, .shape = {8, 8}, .stride = {9, 1}})
 * KERNEL_ERROR: not one to four axes; no dtype; empty. BAD_ADDRESS: not aligned to the dtype; outside a memory, which
 * is not checked where the MMU translates. */
#define tl_view(tl, ...) tl_view_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* The shard at a virtual address, where the host has mapped it (kb_map). Loads, stores and composites then go through
 * the MMU. With the MMU off a virtual address is the physical one. */
static inline struct tl_shard tl_virtual(struct tl_shard shard, uint64_t va)
{
    shard.addr = va;
    shard.is_virtual = true;
    return shard;
}

/* ---- memory */

/* A buffer is a shard in this PE's TCM. Calls take effect on data in the order of the calls: a load, store, send or
 * compute uses its input as it is at the call, even though its time is still to pass; a receive writes its buffer when
 * it completes. The result of a compute is pending until the data pass: it can be copied, sent and computed with, but
 * not read by the kernel.
 *
 * Each call that blocks has a form with _async, which returns a handle for tl_wait instead. Every call that submits a
 * command takes pe_cpu's overhead and has these faults besides those that it lists:
 * KERNEL_ERROR: a shard is empty; shapes or dtypes differ; elements of a shard that is moved or written overlap; a
 * buffer is not in this PE's TCM, has a virtual address, was freed by tl_free, or will be written by a receive that the
 * kernel has not waited for. BAD_ADDRESS: outside a memory; in the region that the scheduler reserves; not aligned to
 * the dtype. */

/* The largest number of consecutive bytes that tl_alloc or tl_load can still allocate in this PE's TCM. No time. */
uint64_t tl_room_bytes(struct tl *tl);

/* Allocates a buffer with a shape of one to four axes: tl_alloc(tl, KB_f16, rows, columns). It is dense, row-major,
 * 64-byte aligned and not initialised, and lives until tl_free or the end of the kernel. No time.
 * KERNEL_ERROR: a size of 0; no dtype; no room, with a list of what holds the TCM, by size and line. */
#define tl_alloc(tl, dtype, ...)                                                                                       \
    tl_alloc_at(tl, dtype, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, __FILE__,     \
                __LINE__)

/* Frees the whole buffer that tl_alloc or tl_load returned. No time. KERNEL_ERROR: no such buffer of these bytes begins
 * here; a load, store, send or receive of it is in flight. */
#define tl_free(tl, buffer) tl_free_at(tl, buffer, __FILE__, __LINE__)

enum { TL_RUNS_MOST = 4096 };                           /* runs of a load or store, which is one command */

/* Loads a shard into a buffer of the same shape and dtype, which it allocates as tl_alloc does. One DMA command; blocks
 * until the bytes are there. Returns the buffer.
 *
 * Both sides of a load or store may have any strides for which no elements overlap. The DMA sends one request for each
 * longest run of consecutive bytes on the memory side, all at the same time; the TCM side takes the time of its bytes.
 * KERNEL_ERROR: more than TL_RUNS_MOST runs; both sides have bytes in common, unless both are dense. PAGE_FAULT, when the DMA
 * translates the address: a page is not mapped. BAD_ADDRESS, likewise: it is mapped to no memory. */
#define tl_load(tl, shard) tl_load_at(tl, shard, __FILE__, __LINE__)

/* Loads a shard into an existing buffer. With _async the kernel cannot read the bytes (tl_data) before tl_wait. */
#define tl_load_into(tl, to, from) tl_load_into_at(tl, to, from, __FILE__, __LINE__)
#define tl_load_async(tl, to, from) tl_load_async_at(tl, to, from, __FILE__, __LINE__)

/* Stores a buffer into a shard of the same shape and dtype in any memory. One DMA command; blocks until the bytes are
 * written. Faults as tl_load. */
#define tl_store(tl, to, from) tl_store_at(tl, to, from, __FILE__, __LINE__)
#define tl_store_async(tl, to, from) tl_store_async_at(tl, to, from, __FILE__, __LINE__)

/* Loads rows of a tensor or of a shard into a buffer of n rows, its first axis: its row i becomes row row[i] of `from`.
 * `row` is an array of n int32_t, which the kernel computes or has from tl_data; it is read at the call. A row of a tensor
 * comes from the shard that has it, of copies this PE's own; the other axes are as in the buffer. One DMA command: its
 * runs are those of the rows, in this order, where runs that follow each other in the list and in memory are joined; the
 * list itself takes no time. tl_store_rows stores a buffer's rows to such rows.
 * KERNEL_ERROR, besides those of tl_load: a null pointer; there is no such row; the rows of the tensor are split; a row is
 * stored twice. */
#define tl_load_rows(tl, to, from, row) tl_load_rows_at(tl, to, TL_ROWS(from), row, __FILE__, __LINE__)
#define tl_load_rows_async(tl, to, from, row) tl_load_rows_async_at(tl, to, TL_ROWS(from), row, __FILE__, __LINE__)
#define tl_store_rows(tl, to, row, from) tl_store_rows_at(tl, TL_ROWS(to), row, from, __FILE__, __LINE__)
#define tl_store_rows_async(tl, to, row, from) tl_store_rows_async_at(tl, TL_ROWS(to), row, from, __FILE__, __LINE__)

struct tl_rows {
    kb_tensor tensor;                                   /* if of_tensor */
    struct tl_shard shard;
    uint64_t first, cols;                               /* of the last axis of a tensor; cols 0: all */
    bool of_tensor;
};

#define TL_ROWS(x)                                                                                                     \
    _Generic((x), kb_tensor: tl_rows_of_tensor, struct tl_shard: tl_rows_of_shard, struct tl_rows: tl_rows_as_given)(x)

/* The rows of a tensor, of whose last axis only `cols` indices from `first` on. */
static inline struct tl_rows tl_rows_part(kb_tensor tensor, uint64_t first, uint64_t cols)
{
    return (struct tl_rows){.tensor = tensor, .first = first, .cols = cols, .of_tensor = true};
}

static inline struct tl_rows tl_rows_of_tensor(kb_tensor tensor)
{
    return (struct tl_rows){.tensor = tensor, .of_tensor = true};
}

static inline struct tl_rows tl_rows_of_shard(struct tl_shard shard)
{
    return (struct tl_rows){.shard = shard};
}

static inline struct tl_rows tl_rows_as_given(struct tl_rows rows)
{
    return rows;
}

/* A buffer's elements as they are now, row-major and dense, in its dtype. They stay so until the kernel ends, and must not
 * be written to: other PEs may be shown the same bytes. No time. KERNEL_ERROR: the buffer is not in this PE's TCM, or was
 * freed. PENDING_RESULT, with the operation and its line: some bytes are the result of a compute, or a copy of such a
 * result; or the load or receive that writes them was not waited for. */
#define tl_data(tl, shard) tl_data_at(tl, shard, __FILE__, __LINE__)

/* Copies them to the kernel's own memory instead, such as an array on its stack, which has room for all of them. tl_data
 * keeps what it copies until the kernel ends; this call keeps nothing. Faults as tl_data; KERNEL_ERROR: a null pointer. */
#define tl_data_into(tl, to, shard) tl_data_into_at(tl, to, shard, __FILE__, __LINE__)

/* ---- messages: every ordered pair of PEs has a ring of slots; a message takes one slot */

/* The bytes of a slot, which is the longest message, and the slots of a ring. No time. */
uint64_t tl_slot_bytes(const struct tl *tl);
uint64_t tl_slots(const struct tl *tl);

/* Sends a buffer's bytes to a peer. Waits for a free slot of the ring, then blocks until the bytes have left; it does
 * not wait for the receiver to take the message. Pending bytes may be sent and arrive pending.
 * KERNEL_ERROR: there is no such PE; the peer is this PE; the message is longer than a slot; the ring does not fit into
 * its memory. */
#define tl_send(tl, peer, buffer) tl_send_at(tl, peer, buffer, __FILE__, __LINE__)
#define tl_send_async(tl, peer, buffer) tl_send_async_at(tl, peer, buffer, __FILE__, __LINE__)

/* Sends a buffer's bytes to each of some peers: tl_multicast(tl, peers, count, buffer), with an array of uint32_t. It is one
 * command and one message, which takes each link of its ways once. Each peer receives it with a tl_recv of its own. Waits
 * for a free slot of every ring, then blocks until the bytes have left. To one peer it is tl_send.
 * KERNEL_ERROR: as tl_send, for any of the peers; a null pointer; a count of 0, or above the machine's PEs; a peer
 * is there twice. */
#define tl_multicast(tl, ...) tl_multicast_at(tl, __VA_ARGS__, __FILE__, __LINE__)
#define tl_multicast_async(tl, ...) tl_multicast_async_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* Receives the next message from a peer, in the order of sending, into a buffer of the same number of bytes. Blocks
 * until the bytes are there. With _async the buffer keeps its contents until the receive completes, and no call may
 * read or write it before tl_wait. KERNEL_ERROR: there is no such PE; the peer is this PE; on completion: the message
 * and the buffer differ in length. */
#define tl_recv(tl, peer, buffer) tl_recv_at(tl, peer, buffer, __FILE__, __LINE__)
#define tl_recv_async(tl, peer, buffer) tl_recv_async_at(tl, peer, buffer, __FILE__, __LINE__)

/* ---- compute */

/* One op on shards in the TCM: tl_add, tl_exp, tl_sum, tl_dot and so on. */
#include <kb/math.h>

/* Composites, whose tiles flow through the PE's engines: tl_composite. */
#include <kb/composite.h>

/* ---- order */

/* Blocks until the command is complete; takes no time if it is. KERNEL_ERROR: the handle is not one of this kernel. */
#define tl_wait(tl, handle) tl_wait_at(tl, handle, __FILE__, __LINE__)

/* Makes the next command depend on the command of a handle: the op log records it, and the data pass and the race check
 * follow it. No time: nothing waits. A receive still writes only when it completes, so a receive in flight is not
 * ordered before what follows; use tl_wait. Several calls before one command add up. KERNEL_ERROR: the handle is not
 * one of this kernel. */
#define tl_after(tl, handle) tl_after_at(tl, handle, __FILE__, __LINE__)

/* Whether the next command is a data operation: the op log records it, and it has an effect on data. A command that is
 * none only takes its time: it is in no op log, moves and computes nothing, and no race is looked for; the summary says
 * how many there were. A send or a receive always is one, because a receive names its send. No time. */
void tl_data_op(struct tl *tl, bool is_data_op);

/* The same for all later commands of this kernel, except those after a tl_data_op. At first they are data operations. */
void tl_data_op_default(struct tl *tl, bool is_data_op);

/* Blocks for `ps` picoseconds. */
#define tl_delay(tl, ps) tl_delay_at(tl, ps, __FILE__, __LINE__)

/* ---- messages for people */

/* Ends the kernel with a KERNEL_ERROR that has the kernel's own number and a message as for printf. */
#define tl_fail(tl, code, ...) tl_fail_at(tl, code, __FILE__, __LINE__, __VA_ARGS__)

/* Prints a line as printf does, at most 599 bytes, to standard error, after the time, the PE and the kernel. No
 * time. */
void tl_log(struct tl *tl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- what the macros call */

uint32_t tl_shards_at(kb_tensor tensor, const char *file, uint32_t line);
struct tl_shard tl_shard_at(struct tl *tl, kb_tensor tensor, uint64_t i, const char *file, uint32_t line);
struct tl_shard tl_my_shard_at(struct tl *tl, kb_tensor tensor, const char *file, uint32_t line);
struct tl_shard tl_part_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t count,
                           const char *file, uint32_t line);
struct tl_shard tl_every_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t step,
                            const char *file, uint32_t line);
struct tl_shard tl_transposed_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint32_t other, const char *file,
                                 uint32_t line);
struct tl_shard tl_reshape_at(struct tl *tl, struct tl_shard shard, const uint64_t *shape, uint64_t rank,
                              const char *file, uint32_t line);
struct tl_shard tl_view_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line);
struct tl_place tl_place_at(struct tl *tl, uint32_t peer, const char *file, uint32_t line);
struct tl_shard tl_alloc_at(struct tl *tl, enum kb_dtype dtype, const uint64_t *shape, uint64_t rank, const char *file,
                            uint32_t line);
void tl_free_at(struct tl *tl, struct tl_shard buffer, const char *file, uint32_t line);
struct tl_shard tl_load_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line);
void tl_load_into_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line);
tl_handle tl_load_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line);
void tl_store_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line);
tl_handle tl_store_async_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line);
void tl_load_rows_at(struct tl *tl, struct tl_shard to, struct tl_rows from, const int32_t *row, const char *file,
                     uint32_t line);
tl_handle tl_load_rows_async_at(struct tl *tl, struct tl_shard to, struct tl_rows from, const int32_t *row,
                                const char *file, uint32_t line);
void tl_store_rows_at(struct tl *tl, struct tl_rows to, const int32_t *row, struct tl_shard from, const char *file,
                      uint32_t line);
tl_handle tl_store_rows_async_at(struct tl *tl, struct tl_rows to, const int32_t *row, struct tl_shard from,
                                 const char *file, uint32_t line);
void tl_send_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
tl_handle tl_send_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
void tl_multicast_at(struct tl *tl, const uint32_t *peers, uint32_t count, struct tl_shard buffer, const char *file,
                     uint32_t line);
tl_handle tl_multicast_async_at(struct tl *tl, const uint32_t *peers, uint32_t count, struct tl_shard buffer,
                                const char *file, uint32_t line);
void tl_recv_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
tl_handle tl_recv_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
_Noreturn void tl_fail_at(struct tl *tl, int code, const char *file, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line);
void tl_data_into_at(struct tl *tl, void *to, struct tl_shard shard, const char *file, uint32_t line);
void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line);
void tl_delay_at(struct tl *tl, uint64_t ps, const char *file, uint32_t line);
void tl_after_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line);

#endif
