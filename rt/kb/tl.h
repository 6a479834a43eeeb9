/* tl.h: the device side: what a kernel asks of the PE that it runs on.
 *
 * A kernel is a plain function that every targeted PE runs, in simulated time. Calls that submit a command take
 * pe_cpu's overhead; some then block until the command is done; all others take no time. A fault stops the run with
 * its code, the PE, and the file and line of the call. Sizes count elements unless their name says bytes; addresses
 * are physical. */
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

/* Bytes of an element. */
static inline uint64_t kb_dtype_bytes(enum kb_dtype dtype)
{
    static const uint8_t bytes_of[] = {
#define DTYPE(name, bytes, is_float) bytes,
#include <kb/dtypes.def>
#undef DTYPE
    };
    return bytes_of[dtype];
}

enum { KB_RANK = 4 };                                   /* most axes of a tensor */

/* A rectangular part of a tensor, all in one memory. The axes beyond `rank` have shape 1. Element (i, j) lies
 * i * stride[0] + j * stride[1] elements after addr. */
struct tl_shard {
    uint64_t addr;
    uint8_t dtype, rank;
    uint64_t shape[KB_RANK], stride[KB_RANK];
    uint64_t first[KB_RANK];                            /* index of its first element in the tensor */
};

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

/* How many shards a tensor has. */
uint32_t tl_shards(kb_tensor tensor);

/* Shard i of a tensor, in the order of its placement. KERNEL_ERROR: there is no such shard. */
#define tl_shard(tl, tensor, i) tl_shard_at(tl, tensor, i, __FILE__, __LINE__)

/* The shard that was placed with this PE; it may be empty (a shape of 0) where there are more PEs than rows.
 * KERNEL_ERROR: the tensor's placement does not name this PE. */
#define tl_my_shard(tl, tensor) tl_my_shard_at(tl, tensor, __FILE__, __LINE__)

/* The part of a shard with `count` indices of an axis, from `first` on, counted in the shard. KERNEL_ERROR: outside. */
#define tl_part(tl, shard, axis, first, count) tl_part_at(tl, shard, axis, first, count, __FILE__, __LINE__)

/* ---- memory */

/* Bytes that tl_load can still allocate in this PE's TCM, in one piece. No time. */
uint64_t tl_room_bytes(struct tl *tl);

/* Loads a shard into the TCM, into a buffer that it allocates from the Allocatable region and that lives until the
 * kernel ends: one DMA command. Gives the buffer, of the same shape and dtype. Blocks until the bytes are there.
 * KERNEL_ERROR: an empty shard, one whose elements are not contiguous, or no room (says what holds the TCM);
 * BAD_ADDRESS: outside its memory. */
#define tl_load(tl, shard) tl_load_at(tl, shard, __FILE__, __LINE__)

/* Stores a TCM buffer into a shard elsewhere, of the same shape and dtype: one DMA command. Blocks until it is written.
 * The bytes may be the pending result of a compute; the destination's are then pending as well.
 * KERNEL_ERROR: shapes or dtypes that differ, not contiguous, empty, a source that is not in this PE's TCM;
 * BAD_ADDRESS: outside a memory, or in the region that the scheduler reserves. */
#define tl_store(tl, to, from) tl_store_at(tl, to, from, __FILE__, __LINE__)

/* The bytes of a buffer in this PE's TCM, row-major: a copy as of now, that lives until the kernel ends. No time.
 * PENDING_RESULT: some of them are the result of a compute, which this pass does not know; names that operation. */
#define tl_data(tl, shard) tl_data_at(tl, shard, __FILE__, __LINE__)

/* ---- composites */

/* A matrix as a composite reads or writes it: row-major, `ld` elements from row to row (0: tight). */
struct tl_operand {
    uint64_t addr, ld;
    uint8_t dtype;
    bool transposed;                                    /* not supported: KERNEL_ERROR */
    bool unfit;                                         /* made of a shard that is no such matrix: KERNEL_ERROR */
};

/* A shard of one or two axes as an operand; its leading dimension is the stride of its rows. */
static inline struct tl_operand tl_in(struct tl_shard shard)
{
    struct tl_operand operand = {.addr = shard.addr, .dtype = shard.dtype};
    operand.ld = shard.rank == 2 ? shard.stride[0] : 0;
    operand.unfit = shard.rank < 1 || shard.rank > 2 || shard.stride[shard.rank - 1] != 1;
    return operand;
}

static inline struct tl_operand tl_out(struct tl_shard shard)
{
    return tl_in(shard);
}

enum tl_op { TL_GEMM };

/* When an epilogue works: on the accumulator after each k tile; on each finished output tile, before it is rounded and
 * stored; on the last tile only. */
enum tl_scope { TL_K_TILE, TL_OUTPUT_TILE, TL_ONCE };

struct tl_epilogue {
    const char *op;                                     /* "relu"; "bias" or "bias_add": x + row */
    enum tl_scope scope;
    struct tl_operand row;                              /* of a bias: n elements; the timing does not move them */
};

enum { TL_EPILOGUES = 8 };

/* C[m, n] = A[m, k] B[k, n], then the epilogues, in tiles that flow through the PE's engines.
 *
 * a and b have one dtype, f32, f16, bf16 (accumulated in f32) or i8 (exactly, in i32); c may have another one. */
struct tl_composite {
    enum tl_op op;
    uint64_t m, k, n;
    uint64_t tile[3];                                   /* m, k, n */
    struct tl_operand a, b, c;
    bool pin_a, pin_b;                                  /* the operand lies in this PE's TCM and stays: no DMA for it */
    struct tl_epilogue epilogue[TL_EPILOGUES];
    uint32_t epilogues;
};

/* A command under way. */
typedef struct command *tl_handle;

/* Submits a composite; never blocks for it. Its result is pending until the data pass.
 * The data are where the leading dimension puts them. The timing moves an operand's tiles as blocks that lie one after
 * the other, without gaps, from its address on: as many bytes, within those that the rows span.
 * KERNEL_ERROR: a size or tile of 0, a leading dimension below the row, a dtype or op that is not supported, a pinned
 * operand outside the TCM, a c that lies where an input does; BAD_ADDRESS: outside a memory, or not aligned to the
 * dtype; TILE_TOO_LARGE. */
#define tl_composite(tl, ...) tl_composite_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* Blocks until the command is complete; no time if it is. KERNEL_ERROR: a handle that is none of this kernel's. */
#define tl_wait(tl, handle) tl_wait_at(tl, handle, __FILE__, __LINE__)

/* Blocks for a time. */
void tl_delay(struct tl *tl, uint64_t ps);

/* ---- what the macros call */

struct tl_shard tl_shard_at(struct tl *tl, kb_tensor tensor, uint64_t i, const char *file, uint32_t line);
struct tl_shard tl_my_shard_at(struct tl *tl, kb_tensor tensor, const char *file, uint32_t line);
struct tl_shard tl_part_at(struct tl *tl, struct tl_shard shard, uint32_t axis, uint64_t first, uint64_t count,
                           const char *file, uint32_t line);
struct tl_shard tl_load_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line);
void tl_store_at(struct tl *tl, struct tl_shard to, struct tl_shard from, const char *file, uint32_t line);
const void *tl_data_at(struct tl *tl, struct tl_shard shard, const char *file, uint32_t line);
tl_handle tl_composite_at(struct tl *tl, const struct tl_composite *ask, const char *file, uint32_t line);
void tl_wait_at(struct tl *tl, tl_handle handle, const char *file, uint32_t line);

#endif
