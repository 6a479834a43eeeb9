/* tl.h: the device side: what a kernel asks of the PE that it runs on.
 *
 * A kernel is a plain function that every targeted PE runs, in simulated time. Calls that submit a command take
 * pe_cpu's overhead; some then block until the command is done; all others take no time. A fault ends the kernel of
 * its PE, other PEs go on, and the launch fails; its code, the PE, and the file and line of the call are printed. Sizes
 * count elements unless their name says bytes; addresses are physical. Static variables are one for all PEs, and keep
 * their values between the runs of a sweep. */
#ifndef KB_TL_H
#define KB_TL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The running kernel's own context, the first argument of every call. */
struct tl;

/* A tensor of the host: a shape, a dtype, and shards that lie in memories. Kernels get it among their arguments. */
typedef struct tensor *kb_tensor;

enum kb_dtype {
#define DTYPE(name, bytes, is_float) KB_##name,
#include <kb/dtypes.def>
#undef DTYPE
    KB_DTYPES
};

/* Bytes of an element; 0 of what is no dtype. */
static inline uint64_t kb_dtype_bytes(enum kb_dtype dtype)
{
    static const uint8_t bytes_of[] = {
#define DTYPE(name, bytes, is_float) bytes,
#include <kb/dtypes.def>
#undef DTYPE
    };
    return (unsigned)dtype < KB_DTYPES ? bytes_of[dtype] : 0;
}

enum { KB_RANK = 4 };                                   /* most axes of a tensor */

/* A rectangular part of a tensor, all in one memory, or another view of it. The axes beyond `rank` have shape 1.
 * Element (i, j) lies i * stride[0] + j * stride[1] elements after addr, which is a multiple of an element's bytes. */
struct tl_shard {
    uint64_t addr;
    uint8_t dtype, rank;
    uint64_t shape[KB_RANK], stride[KB_RANK];
    uint64_t first[KB_RANK];                            /* index of its first element in the tensor */
    bool is_virtual;                                    /* the PE's MMU translates addr */
};

/* A command of this kernel, under way or long complete. */
typedef struct tl_command *tl_handle;

/* ---- kernels */

/* Defines a kernel: `KB_KERNEL(add, struct add_args) { ... }` is the body of
 *     static void add(struct tl *tl, const struct add_args *arg)
 * with a record of it that kb_launch and `list` find. Arguments hold tensors and scalars, never data. */
#define KB_KERNEL(name, type)                                                                                          \
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

/* ---- where am I: no time */

/* Position of this PE in the launch's targets, in rank order, and their number. */
uint32_t tl_pe(const struct tl *tl);
uint32_t tl_num_pes(const struct tl *tl);

/* The SIP it is on, and its cube among those of the SIP, row-major. */
uint32_t tl_sip(const struct tl *tl);
uint32_t tl_cube(const struct tl *tl);

/* The time now, in ps. */
uint64_t tl_now(const struct tl *tl);

/* Other PEs are named by their position in the launch's targets, as tl_pe counts, whatever part of the launch they
 * are in; or, if they may be of another launch, by TL_NUMBER of their number over the machine, as in struct kb_pes. */
#define TL_NUMBER(pe) ((uint32_t)(pe) | UINT32_C(1) << 31)

/* Where a PE is: its number over the machine, and its place. */
struct tl_place {
    uint32_t number, sip, cube, pe;                     /* cube of the SIP, PE of the cube */
    uint32_t cube_row, cube_col;                        /* of its cube in the SIP's grid */
};

/* KERNEL_ERROR: there is no such PE. */
#define tl_place(tl, peer) tl_place_at(tl, peer, __FILE__, __LINE__)

/* How many shards a tensor has. KERNEL_ERROR: there is no tensor. */
#define tl_shards(tensor) tl_shards_at(tensor, __FILE__, __LINE__)

/* Shard i of a tensor, in the order of its placement. KERNEL_ERROR: there is no such shard. */
#define tl_shard(tl, tensor, i) tl_shard_at(tl, tensor, i, __FILE__, __LINE__)

/* The shard that was placed with this PE; it may be empty (a shape of 0) where there are more PEs than rows.
 * KERNEL_ERROR: the tensor's placement does not name this PE. */
#define tl_my_shard(tl, tensor) tl_my_shard_at(tl, tensor, __FILE__, __LINE__)

/* Views of a shard, of the same elements; they are shards wherever one is asked for. No time. */

/* The part of a shard with `count` indices of an axis, from `first` on, counted in the shard. KERNEL_ERROR: outside. */
#define tl_part(tl, shard, axis, first, count) tl_part_at(tl, shard, axis, first, count, __FILE__, __LINE__)

/* Every step-th index of an axis, from `first` on. KERNEL_ERROR: a step of 0, outside. */
#define tl_every(tl, shard, axis, first, step) tl_every_at(tl, shard, axis, first, step, __FILE__, __LINE__)

/* With two axes exchanged. KERNEL_ERROR: there is no such axis. */
#define tl_transposed(tl, shard, axis, other) tl_transposed_at(tl, shard, axis, other, __FILE__, __LINE__)

/* The same elements in row-major order as another shape of one to four axes: tl_reshape(tl, shard, rows, columns); its
 * first[] are 0. KERNEL_ERROR: another number of elements, or elements of one axis would lie at unequal distances. */
#define tl_reshape(tl, shard, ...)                                                                                     \
    tl_reshape_at(tl, shard, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, __FILE__,   \
                  __LINE__)

/* A shard that the kernel made by itself, checked; without strides (all 0) its elements follow one another:
 *     tl_view(tl, (struct tl_shard){.addr = x.addr, .dtype = KB_f16, .rank = 2, .shape = {8, 8}, .stride = {9, 1}})
 * KERNEL_ERROR: no axes, no dtype, empty; BAD_ADDRESS: outside a memory, not aligned to the dtype. */
#define tl_view(tl, ...) tl_view_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* The same elements at a virtual address, where the host has mapped them (kb_map): loads, stores and composites go
 * through the MMU. With the MMU off it is the physical address itself. */
static inline struct tl_shard tl_virtual(struct tl_shard shard, uint64_t va)
{
    shard.addr = va;
    shard.is_virtual = true;
    return shard;
}

/* ---- memory */

/* A buffer is a shard in this PE's TCM. Whatever a call does to data happens in the order of calls: a load, a store, a
 * send or a compute takes its input as it is at the call, though its time runs on; a receive writes its buffer when it
 * completes. Bytes that a compute will make are pending: they can be copied, sent and computed with, not looked at.
 *
 * The calls that block have a form with _async, which gives a handle for tl_wait instead. Every call that submits a
 * command takes pe_cpu's overhead, and gives these faults (and those that it names itself):
 * KERNEL_ERROR: a shard that is empty, shapes or dtypes that differ, a buffer that is not in this PE's TCM, that was
 * given back (tl_free), or that a receive which was not waited for will write; BAD_ADDRESS: outside a memory, in the
 * region that the scheduler reserves, not aligned to the dtype. */

/* Bytes that tl_alloc and tl_load can still give out in this PE's TCM, in one piece. No time. */
uint64_t tl_room_bytes(struct tl *tl);

/* A buffer of a shape of one to four axes: tl_alloc(tl, KB_f16, rows, columns). It holds what was there before, and
 * lives until tl_free or the end of the kernel. 64-byte aligned, in the Allocatable region. No time.
 * KERNEL_ERROR: a size of 0, no dtype, or no room: lists what holds the TCM, by size and line. */
#define tl_alloc(tl, dtype, ...)                                                                                       \
    tl_alloc_at(tl, dtype, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8, __FILE__,     \
                __LINE__)

/* Gives back what tl_alloc or tl_load gave, all of it. No time. KERNEL_ERROR: it begins no such buffer; a load, store,
 * send or receive of it is under way. */
#define tl_free(tl, buffer) tl_free_at(tl, buffer, __FILE__, __LINE__)

/* Loads a shard into the TCM, into a buffer of the same shape and dtype that it allocates as tl_alloc does: one DMA
 * command. Gives the buffer, whose elements follow one another; blocks until the bytes are there.
 *
 * Both sides of a load or store may have any strides that leave no element over another. The DMA sends one request for
 * each longest run of bytes that follow one another on the memory side, all at once; the TCM's side takes the time of
 * its bytes. KERNEL_ERROR: more than 4,096 runs, elements over one another, a side in pieces that has bytes of the
 * other one. */
#define tl_load(tl, shard) tl_load_at(tl, shard, __FILE__, __LINE__)

/* The same into a buffer that there is. Its bytes cannot be looked at until tl_wait was called for the handle. */
#define tl_load_into(tl, to, from) tl_load_into_at(tl, to, from, __FILE__, __LINE__)
#define tl_load_async(tl, to, from) tl_load_async_at(tl, to, from, __FILE__, __LINE__)

/* Stores a buffer into a shard elsewhere, of the same shape and dtype: one DMA command. Blocks until it is written. */
#define tl_store(tl, to, from) tl_store_at(tl, to, from, __FILE__, __LINE__)
#define tl_store_async(tl, to, from) tl_store_async_at(tl, to, from, __FILE__, __LINE__)

/* The elements of a buffer, row-major, without gaps: a copy as of now, that lives until the kernel ends. No time.
 * PENDING_RESULT: some of them are the result of a compute, wherever they were copied since, or will be written by a
 * load or receive that was not waited for; names that operation and its line. */
#define tl_data(tl, shard) tl_data_at(tl, shard, __FILE__, __LINE__)

/* ---- messages: between every ordered pair of PEs there is a ring of slots; a message takes one */

/* Bytes of a slot, which is the longest message, and slots of a ring. No time. */
uint64_t tl_slot_bytes(const struct tl *tl);
uint64_t tl_slots(const struct tl *tl);

/* Sends a buffer's bytes to a PE. Blocks until they have left: first for a free slot of the ring, but not for the
 * receiver to take the message. Pending bytes may be sent, and arrive pending.
 * KERNEL_ERROR: no such PE, this PE itself, more bytes than a slot's, a ring below the start of its memory. */
#define tl_send(tl, peer, buffer) tl_send_at(tl, peer, buffer, __FILE__, __LINE__)
#define tl_send_async(tl, peer, buffer) tl_send_async_at(tl, peer, buffer, __FILE__, __LINE__)

/* Receives the next message of a PE, in the order of sending, into a buffer of as many bytes. Blocks until they are
 * there. With _async the buffer keeps what it holds until the receive completes, and its bytes cannot be looked at
 * until tl_wait was called; it is not to be read or written by anything else until then.
 * KERNEL_ERROR: no such PE, this PE itself; at its completion: the message has another length than the buffer. */
#define tl_recv(tl, peer, buffer) tl_recv_at(tl, peer, buffer, __FILE__, __LINE__)
#define tl_recv_async(tl, peer, buffer) tl_recv_async_at(tl, peer, buffer, __FILE__, __LINE__)

/* Simple compute, on tensors in the TCM: tl_add, tl_exp, tl_sum, tl_dot and so on. */
#include <kb/math.h>

/* Composites, whose tiles flow through the PE's engines: tl_composite. */
#include <kb/composite.h>

/* Blocks until the command is complete; no time if it is. KERNEL_ERROR: a handle that is none of this kernel's. */
#define tl_wait(tl, handle) tl_wait_at(tl, handle, __FILE__, __LINE__)

/* The next command depends on that of a handle: the op log says so, the data pass and the race check go by it. No time:
 * it does not wait, and a receive writes when it completes as ever: one that is under way is in no order with what
 * comes after it, and has to be waited for. Several calls before one command add up. KERNEL_ERROR: a handle that is
 * none of this kernel's. */
#define tl_after(tl, handle) tl_after_at(tl, handle, __FILE__, __LINE__)

/* Blocks for a time. */
void tl_delay(struct tl *tl, uint64_t ps);

/* ---- words */

/* Ends the kernel with a KERNEL_ERROR of its own: a number that says which, and a message as of printf. */
#define tl_fail(tl, code, ...) tl_fail_at(tl, code, __FILE__, __LINE__, __VA_ARGS__)

/* Prints a line (its first 599 bytes), as of printf, to standard error, behind the time, the PE and the kernel.
 * No time. */
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
void tl_send_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
tl_handle tl_send_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
void tl_recv_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
tl_handle tl_recv_async_at(struct tl *tl, uint32_t peer, struct tl_shard buffer, const char *file, uint32_t line);
_Noreturn void tl_fail_at(struct tl *tl, int code, const char *file, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line);
void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line);
void tl_after_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line);

#endif
