/* host.h: the host side: benches, which set up tensors, launch kernels and check what they computed.
 *
 * A bench is a plain function that runs at the host from time 0. Only kb_wait, kb_write, kb_read, kb_map and kb_unmap
 * take simulated time. What does not end well on the machine, a fault, a timeout, a deadlock, ends the bench at the
 * call that waits for it, and the run with status 1. Wrong use, and a machine that is too small for what is asked, end
 * the run with status 2 and the place of the call.
 *
 * A sweep (`run --points`) runs a bench again and again in one process. All that belongs to the host library and to the
 * machine is then as new; what a bench keeps in static variables, or has of malloc and does not free, stays. */
#ifndef KB_HOST_H
#define KB_HOST_H

#include <kb/tl.h>

/* ---- benches */

/* Defines a bench: `KB_BENCH(add, "what it shows", KB_INT(n, 1024, 1, 65536, "elements")) { ... }`. It is run by
 * `run add n=2048`. Parameters are read with kb_int and its like, by name. */
#define KB_BENCH(name, what, ...) KB_BENCH_OF(name, what, false, ##__VA_ARGS__)

/* The same for a body that runs once per SIP, each with a rank of its own: the SIP that its calls act on. They all
 * begin at time 0; in one instant they act in rank order. The first failure ends all of them. */
#define KB_BENCH_PER_SIP(name, what, ...) KB_BENCH_OF(name, what, true, ##__VA_ARGS__)

/* The rank of the body that calls, and how many there are; of a KB_BENCH 0 and 1. */
uint32_t kb_rank(void);
uint32_t kb_ranks(void);

/* Waits until all bodies are here. Takes no time of its own. */
#define kb_barrier() kb_barrier_at(__FILE__, __LINE__)

/* A whole number from 0 on, both bounds included; decimal or 0x hexadecimal on the command line. */
#define KB_INT(name_, default_, least_, most_, help_)                                                                  \
    {.name = #name_, .type = KB_PARAM_INT, .initial = default_, .least = least_, .most = most_, .help = help_}
/* A size in bytes; on the command line 4096, "4 KiB", 1.5MiB. */
#define KB_SIZE(name_, default_, least_, most_, help_)                                                                 \
    {.name = #name_, .type = KB_PARAM_SIZE, .initial = default_, .least = least_, .most = most_, .help = help_}
/* A decimal number such as 0.5 or -1e-3. */
#define KB_REAL(name_, default_, least_, most_, help_)                                                                 \
    {.name = #name_, .type = KB_PARAM_REAL, .initial_real = default_, .least_real = least_, .most_real = most_,        \
     .help = help_}
/* true or false. */
#define KB_BOOL(name_, default_, help_)                                                                                \
    {.name = #name_, .type = KB_PARAM_BOOL, .initial = default_, .help = help_}
/* Any text. */
#define KB_TEXT(name_, default_, help_) {.name = #name_, .type = KB_PARAM_TEXT, .words = default_, .help = help_}
/* One of some words, which are separated by spaces; the first is the default. */
#define KB_WORD(name_, words_, help_) {.name = #name_, .type = KB_PARAM_WORD, .words = words_, .help = help_}

#define kb_int(name) (kb_param_at(#name, KB_PARAM_INT, __FILE__, __LINE__)->number)
#define kb_size(name) (kb_param_at(#name, KB_PARAM_SIZE, __FILE__, __LINE__)->number)
#define kb_real(name) (kb_param_at(#name, KB_PARAM_REAL, __FILE__, __LINE__)->real)
#define kb_bool(name) (kb_param_at(#name, KB_PARAM_BOOL, __FILE__, __LINE__)->number != 0)
#define kb_text(name) (kb_param_at(#name, KB_PARAM_TEXT, __FILE__, __LINE__)->word)
#define kb_word(name) (kb_param_at(#name, KB_PARAM_WORD, __FILE__, __LINE__)->word)

/* The dtype of a name such as "f16". */
#define kb_dtype(name) kb_dtype_at(name, __FILE__, __LINE__)

/* ---- sets of PEs: in rank order, none twice */

struct kb_pes {
    const uint32_t *pe;                                 /* numbers over the machine */
    uint32_t count;
};

/* Those whose id, such as sip0.cube3.pe5, matches: * is any run of characters, ? any one. None at all is wrong. A
 * KB_BENCH_PER_SIP's body sees those of its own SIP; kb_machine_pes gives it those of the others too, for arguments. */
#define kb_pes(glob) kb_pes_at(glob, false, __FILE__, __LINE__)
#define kb_machine_pes(glob) kb_pes_at(glob, true, __FILE__, __LINE__)

/* ---- tensors: no time */

/* Where a tensor's elements lie: in which memories, and how they are split over PEs. A split is as even as can be:
 * shard i of p has the indices from i * n / p up to (i + 1) * n / p, rounded down. */
enum kb_space { KB_HBM, KB_TCM, KB_SRAM };
enum kb_split { KB_WHOLE, KB_ROWS, KB_COLS, KB_BLOCKS, KB_COPIES };

struct kb_place {
    enum kb_space space;                                /* of each PE: its HBM slice, its TCM, its cube's sram */
    enum kb_split split;
    struct kb_pes pes;
    uint32_t rows, cols;                                /* of the grid of KB_BLOCKS */
};

/* All of it with one PE. */
#define kb_on(space, pes) ((struct kb_place){space, KB_WHOLE, pes, 0, 0})
/* The first axis, or the last, split over the PEs: one shard each, empty ones where there are more PEs than indices. */
#define kb_rows(space, pes) ((struct kb_place){space, KB_ROWS, pes, 0, 0})
#define kb_cols(space, pes) ((struct kb_place){space, KB_COLS, pes, 0, 0})
/* The first and the last axis split, over a grid of rows x cols PEs, row-major. */
#define kb_blocks(space, pes, rows, cols) ((struct kb_place){space, KB_BLOCKS, pes, rows, cols})
/* All of it with each PE. */
#define kb_copies(space, pes) ((struct kb_place){space, KB_COPIES, pes, 0, 0})

struct kb_dims {
    uint32_t rank;
    uint64_t size[KB_RANK];
};

#define kb_1d(n) ((struct kb_dims){1, {n}})
#define kb_2d(rows, cols) ((struct kb_dims){2, {rows, cols}})
#define kb_3d(x, y, z) ((struct kb_dims){3, {x, y, z}})
#define kb_4d(x, y, z, w) ((struct kb_dims){4, {x, y, z, w}})

/* A tensor of zeros. Every shard is dense and row-major, at the next 64-byte boundary of its memory: upwards from 0,
 * in a TCM from the end of the reserved region. The name is for messages and results. Too large for a memory: the run
 * ends with status 2, what was asked for and what is left. */
#define kb_tensor_new(name, dtype, dims, place) kb_tensor_new_at(name, dtype, dims, place, __FILE__, __LINE__)

/* Sets every element: to one value; to values that are uniform in [low, high), whole ones for an integer dtype; to a
 * normal distribution. Random values depend on the run's --seed, on how many tensors were made before this one, and on
 * the element's index, not on where it lies. All are rounded to the dtype, to even, and saturate. */
#define kb_fill(tensor, value) kb_fill_at(tensor, KB_CONSTANT, value, 0, __FILE__, __LINE__)
#define kb_fill_uniform(tensor, low, high) kb_fill_at(tensor, KB_UNIFORM, low, high, __FILE__, __LINE__)
#define kb_fill_normal(tensor, mean, deviation) kb_fill_at(tensor, KB_NORMAL, mean, deviation, __FILE__, __LINE__)

/* One element, by its row-major position in the tensor; of copies, the first one's. If it is the pending result of a
 * compute, the data pass runs first; with --data off that is wrong. */
#define kb_peek(tensor, position) kb_peek_at(tensor, position, __FILE__, __LINE__)
/* So many elements from a position on, into `values`, which are doubles; at a fraction of kb_peek's time for each. */
#define kb_peek_many(tensor, position, count, values)                                                                  \
    kb_peek_many_at(tensor, position, count, values, __FILE__, __LINE__)

/* Sets every element to those of a file of NumPy's: format 1.0 to 3.0, either byte order, C or Fortran order. Its shape
 * has to be the tensor's, and its dtype: f4 for f32, f2 for f16, i4, i2, i1, u1 or b1 (bool) for u8; nothing is
 * converted. NumPy has no bf16: V2, as ml_dtypes writes it, or u2 give its bits as they are. A path is relative to the
 * current folder. A file that is missing, malformed or does not fit ends the run with status 2, and the byte where. */
#define kb_load_npy(tensor, path) kb_load_npy_at(tensor, path, __FILE__, __LINE__)

/* Writes a tensor to such a file, of copies the first one: format 1.0, little-endian, C order; bf16 as V2, which
 * numpy.load(path).view(ml_dtypes.bfloat16) reads. It appears whole or not at all. Of pending results, the
 * data pass runs first; with --data off that is wrong. */
#define kb_save_npy(tensor, path) kb_save_npy_at(tensor, path, __FILE__, __LINE__)

/* Whether there will be results to look at: false with --data off. */
bool kb_has_data(void);

/* Memory of the host's for so many elements of a C type, all 0, until the run ends: double *x = kb_array(double, n).
 * If there is not so much, the run ends with status 3. */
#define kb_array(type, count) ((type *)kb_array_at(count, sizeof(type), __FILE__, __LINE__))

/* ---- memory requests: each blocks until the host has the answer */

/* Writes a tensor over the fabric: `data` holds its elements, row-major, in its dtype, and is taken at the call; every
 * copy is written. NULL: what the tensor holds already, so that only time goes by. One request for all shards of one
 * size. */
#define kb_write(tensor, data) kb_write_at(tensor, data, __FILE__, __LINE__)

/* Reads a tensor over the fabric, of copies the first one: into `data`, all its elements as they are at the call,
 * row-major; NULL: only time goes by. Of pending results, the data pass runs first; with --data off that is wrong. */
#define kb_read(tensor, data) kb_read_at(tensor, data, __FILE__, __LINE__)

/* ---- virtual addresses: each blocks until all MMUs are done. They take their time with the MMUs off too, and then
 * have no effect: a virtual address is the physical one itself. */

/* Has each PE of a set find at virtual address `va`, a multiple of the page, the shard that was placed with it; of a
 * tensor that lies with one PE, that. Bytes are rounded up to pages. Kernels reach it by tl_virtual. */
#define kb_map(pes, va, tensor) kb_map_at(pes, va, tensor, __FILE__, __LINE__)

/* Unmaps bytes from va on, rounded up to pages, on each PE of a set. */
#define kb_unmap(pes, va, bytes) kb_unmap_at(pes, va, bytes, __FILE__, __LINE__)

/* ---- launches */

/* A launch under way. */
typedef struct launch *kb_future;

/* What happens when a PE of a launch fails: the others run to their end, or the host has its answer at once. */
enum kb_on_failure { KB_DRAIN, KB_FAIL_FAST };

struct kb_options {
    uint64_t timeout_ns;                                /* from the submission on; 0: none */
    enum kb_on_failure on_failure;
};

#define kb_options(...) ((struct kb_options){__VA_ARGS__})

/* Launches a kernel on a set of PEs: kb_launch(gemm, pes, &(struct gemm_args){a, b, c}). The arguments are copied.
 * Submitted at this instant; does not block. It is wrong to use a PE that still runs an earlier launch. After a launch
 * that did not end well there is no other one: the bench ends here. */
#define kb_launch(kernel, pes, ...) kb_launch_with(kernel, pes, kb_options(0), __VA_ARGS__)

/* The same with options: kb_launch_with(gemm, pes, kb_options(.timeout_ns = 1000), &(struct gemm_args){a, b, c}). */
#define kb_launch_with(kernel, pes, options, ...) kb_launch_parts(options, kb_part(kernel, pes, __VA_ARGS__))

/* One launch of several kernels, which begin at the same time; no PE is in two parts: kb_launch_parts(kb_options(0),
 * kb_part(source, left, &(struct source_args){a}), kb_part(sink, right, &(struct sink_args){b})). */
#define kb_launch_parts(options, ...)                                                                                  \
    kb_launch_at((const struct kb_part[]){__VA_ARGS__, {0}}, options, __FILE__, __LINE__)

struct kb_part {
    const struct kb_kernel *kernel;
    struct kb_pes pes;
    const void *arg;
};

#define kb_part(kernel, pes, ...) ((struct kb_part){&kernel##_kb_kernel, pes, kernel##_kb_arg(__VA_ARGS__)})

/* Blocks until the host has the launch's last answer; no time if it has. If that is no good one, the bench ends here.
 */
#define kb_wait(future) kb_wait_at(future, __FILE__, __LINE__)

/* What tensors should hold, and whether they do: kb_ref_gemm, kb_expect_close and so on. */
#include <kb/ref.h>

/* ---- what the macros call */

enum kb_param_type { KB_PARAM_INT, KB_PARAM_SIZE, KB_PARAM_REAL, KB_PARAM_BOOL, KB_PARAM_WORD, KB_PARAM_TEXT };

struct kb_param {
    const char *name;
    enum kb_param_type type;
    uint64_t initial, least, most;
    double initial_real, least_real, most_real;
    const char *words, *help;
};

struct kb_bench {
    const char *name, *what, *file;
    uint32_t line;
    const struct kb_param *params;
    uint32_t count;
    void (*body)(void);
    bool per_sip;
};

#define KB_BENCH_OF(name, what, per_sip, ...)                                                                          \
    static void name##_kb_bench_body(void);                                                                            \
    static const struct kb_param name##_kb_params[] = {{0}, ##__VA_ARGS__};                                            \
    static const struct kb_bench name##_kb_bench = {#name, what, __FILE__, __LINE__, name##_kb_params + 1,             \
        sizeof(name##_kb_params) / sizeof(name##_kb_params[0]) - 1, name##_kb_bench_body, per_sip};                    \
    static const struct kb_bench *const name##_kb_bench_entry                                                          \
        __attribute__((used, section("kb_benches"))) = &name##_kb_bench;                                               \
    static void name##_kb_bench_body(void)

struct kb_value {
    uint64_t number;
    double real;
    const char *word;
};

enum kb_fill_kind { KB_CONSTANT, KB_UNIFORM, KB_NORMAL, KB_GIVEN };

const struct kb_value *kb_param_at(const char *name, enum kb_param_type type, const char *file, uint32_t line);
enum kb_dtype kb_dtype_at(const char *name, const char *file, uint32_t line);
struct kb_pes kb_pes_at(const char *glob, bool machine, const char *file, uint32_t line);
void kb_barrier_at(const char *file, uint32_t line);
void kb_write_at(kb_tensor tensor, const void *data, const char *file, uint32_t line);
void kb_read_at(kb_tensor tensor, void *data, const char *file, uint32_t line);
void kb_map_at(struct kb_pes pes, uint64_t va, kb_tensor tensor, const char *file, uint32_t line);
void kb_unmap_at(struct kb_pes pes, uint64_t va, uint64_t bytes, const char *file, uint32_t line);
kb_tensor kb_tensor_new_at(const char *name, enum kb_dtype dtype, struct kb_dims dims, struct kb_place place,
                           const char *file, uint32_t line);
void kb_fill_at(kb_tensor tensor, enum kb_fill_kind kind, double x, double y, const char *file, uint32_t line);
double kb_peek_at(kb_tensor tensor, uint64_t position, const char *file, uint32_t line);
void kb_peek_many_at(kb_tensor tensor, uint64_t position, uint64_t count, double *values, const char *file,
                     uint32_t line);
void *kb_array_at(uint64_t count, size_t size, const char *file, uint32_t line);
void kb_load_npy_at(kb_tensor tensor, const char *path, const char *file, uint32_t line);
void kb_save_npy_at(kb_tensor tensor, const char *path, const char *file, uint32_t line);
kb_future kb_launch_at(const struct kb_part *parts, struct kb_options options, const char *file, uint32_t line);
void kb_wait_at(kb_future future, const char *file, uint32_t line);

#endif
