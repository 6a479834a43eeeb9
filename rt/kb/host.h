/* host.h: the host library: benches, which set up tensors, launch kernels and check what they computed.
 *
 * A bench is a plain function that runs on the host from time 0. Only kb_wait, kb_write, kb_read, kb_map and kb_unmap
 * take simulated time. A failure on the machine (a fault, a timeout, a deadlock) ends the bench at the call that waits
 * for it, and the run with status 1. Wrong use of a call, or a machine that is too small, ends the run with status 2
 * and the place of the call.
 *
 * A sweep (`run --points`) runs a bench many times in one process. Everything that belongs to the host library and the
 * machine is reset before each run; static variables of a bench keep their values, and memory of malloc is not
 * freed. */
#ifndef KB_HOST_H
#define KB_HOST_H

#include <kb/tl.h>

/* ---- benches */

/* Defines a bench: `KB_BENCH(add, "what it shows", KB_INT(n, 1024, 1, 65536, "elements")) { ... }`. `run add n=2048`
 * runs it. It reads its parameters by name, with kb_int, kb_size and so on, by the type of their definition. */
#define KB_BENCH(name, what, ...) KB_BENCH_OF(name, what, false, ##__VA_ARGS__)

/* Defines a bench whose body runs once per SIP. The rank of a body is the SIP that its calls act on. All bodies begin
 * at time 0; in one instant they act in rank order. The first failure ends all of them. */
#define KB_BENCH_PER_SIP(name, what, ...) KB_BENCH_OF(name, what, true, ##__VA_ARGS__)

/* The rank of the calling body, and the number of bodies; 0 and 1 in a KB_BENCH. */
uint32_t kb_rank(void);
uint32_t kb_ranks(void);

/* Waits until all bodies have called it. The barrier itself takes no time. */
#define kb_barrier() kb_barrier_at(__FILE__, __LINE__)

/* A whole number in [least_, most_], not negative; decimal or 0x hexadecimal on the command line. */
#define KB_INT(name_, default_, least_, most_, help_)                                                                  \
    {.name = #name_, .type = KB_PARAM_INT, .initial = default_, .least = least_, .most = most_, .help = help_}
/* A size in bytes; on the command line 4096, "4 KiB" or 1.5MiB. */
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
/* One of the words of a list that is separated by spaces; the first is the default. */
#define KB_WORD(name_, words_, help_) {.name = #name_, .type = KB_PARAM_WORD, .words = words_, .help = help_}

#define kb_int(name) (kb_param_at(#name, KB_PARAM_INT, __FILE__, __LINE__)->number)
#define kb_size(name) (kb_param_at(#name, KB_PARAM_SIZE, __FILE__, __LINE__)->number)
#define kb_real(name) (kb_param_at(#name, KB_PARAM_REAL, __FILE__, __LINE__)->real)
#define kb_bool(name) (kb_param_at(#name, KB_PARAM_BOOL, __FILE__, __LINE__)->number != 0)
#define kb_text(name) (kb_param_at(#name, KB_PARAM_TEXT, __FILE__, __LINE__)->word)
#define kb_word(name) (kb_param_at(#name, KB_PARAM_WORD, __FILE__, __LINE__)->word)

/* The dtype with a name such as "f16". */
#define kb_dtype(name) kb_dtype_at(name, __FILE__, __LINE__)

/* Adds a line to the summary, and a text to "notes" in the result: what the user should know of this run, such as a
 * parameter that the bench could not take as it was given. Kernels may call it too. Of notes that are equal up to the
 * first colon, or to the end, the first one stays: "tile_m=4096: 512 is used, the rows of a PE". It has at most 511
 * bytes. */
void kb_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the run with status 2, as wrong use of a call does: with these parameters the bench cannot run on this machine. The
 * message names the bench; it says what is missing, how much of it there is, and what to change. It has at most 511
 * bytes. */
#define kb_refuse(...) kb_refuse_at(__FILE__, __LINE__, __VA_ARGS__)

/* Says that a parameter was given as `asked` and counts as `used`, which a run that is given `used` would use as well.
 * Answers of --metrics have it: a search knows by it that two runs are the same. If the calls for one parameter differ,
 * it is not in the answer. */
void kb_param_used(const char *name, uint64_t asked, uint64_t used);

/* ---- sets of PEs: in rank order, no PE twice */

struct kb_pes {
    const uint32_t *pe;                                 /* their numbers over the machine */
    uint32_t count;
};

/* The PEs whose id, such as sip0.cube3.pe5, matches a pattern: * matches any characters, ? any one character. It is
 * wrong use if none matches. In a KB_BENCH_PER_SIP, kb_pes gives PEs of the body's own SIP; kb_machine_pes gives those
 * of all SIPs, for arguments of kernels. */
#define kb_pes(glob) kb_pes_at(glob, false, __FILE__, __LINE__)
#define kb_machine_pes(glob) kb_pes_at(glob, true, __FILE__, __LINE__)

/* ---- tensors: no call takes time */

enum kb_space { KB_HBM, KB_TCM, KB_SRAM };

/* Whether the machine has memories of this kind. It always has TCMs. */
bool kb_has_space(enum kb_space space);

/* The memories that hold what is large: the HBM; the srams of a machine that has srams alone. */
enum kb_space kb_main_memory(void);

/* The placement of a tensor: the memories, and the split over PEs. A split is as even as possible: shard i of p has the
 * indices [i * n / p, (i + 1) * n / p), rounded down. */
enum kb_split { KB_WHOLE, KB_ROWS, KB_COLS, KB_BLOCKS, KB_COPIES };

struct kb_place {
    enum kb_space space;                                /* each PE's own HBM slice, TCM, or its cube's sram */
    enum kb_split split;
    struct kb_pes pes;
    uint32_t rows, cols;                                /* the grid of KB_BLOCKS */
};

/* The whole tensor with one PE. */
#define kb_on(space, pes) ((struct kb_place){space, KB_WHOLE, pes, 0, 0})
/* The first axis, or the last, split over the PEs: one shard each, some empty if there are more PEs than indices. */
#define kb_rows(space, pes) ((struct kb_place){space, KB_ROWS, pes, 0, 0})
#define kb_cols(space, pes) ((struct kb_place){space, KB_COLS, pes, 0, 0})
/* The first and the last axis split over a grid of rows x cols PEs, row-major; the tensor has two axes or more. */
#define kb_blocks(space, pes, rows, cols) ((struct kb_place){space, KB_BLOCKS, pes, rows, cols})
/* A copy of the whole tensor with each PE. */
#define kb_copies(space, pes) ((struct kb_place){space, KB_COPIES, pes, 0, 0})

struct kb_dims {
    uint32_t rank;
    uint64_t size[KB_RANK];
};

#define kb_1d(n) ((struct kb_dims){1, {n}})
#define kb_2d(rows, cols) ((struct kb_dims){2, {rows, cols}})
#define kb_3d(x, y, z) ((struct kb_dims){3, {x, y, z}})
#define kb_4d(x, y, z, w) ((struct kb_dims){4, {x, y, z, w}})

/* Makes a tensor of zeros with 1 to 4 axes, none of size 0. Every shard is dense, row-major, and begins at the next
 * 64-byte boundary of its memory, from address 0 on or, in a TCM, from the end of the reserved region on. PEs can share a
 * memory: an sram, or a slice of which there are fewer than PEs. The name is for messages and results. If a shard does
 * not fit, or the machine has no such memory, the run ends with status 2 and says so, and how much room is left. */
#define kb_tensor_new(name, dtype, dims, place) kb_tensor_new_at(name, dtype, dims, place, __FILE__, __LINE__)

/* Sets every element to a value; to random values that are uniform in [low, high), whole numbers for an integer dtype;
 * or to random values of a normal distribution. Random values depend on the run's --seed, on the number of tensors made
 * before this one, and on the index of the element, not on its placement. Values are rounded to nearest even; those of
 * an integer dtype saturate. The numbers given must be finite, in a float dtype also once they are rounded to it. */
#define kb_fill(tensor, value) kb_fill_at(tensor, KB_CONSTANT, value, 0, __FILE__, __LINE__)
#define kb_fill_uniform(tensor, low, high) kb_fill_at(tensor, KB_UNIFORM, low, high, __FILE__, __LINE__)
#define kb_fill_normal(tensor, mean, deviation) kb_fill_at(tensor, KB_NORMAL, mean, deviation, __FILE__, __LINE__)

/* One element, by its row-major position; of copies, that of the first one. If it is pending, the data pass runs first;
 * with --data off that is wrong use. */
#define kb_peek(tensor, position) kb_peek_at(tensor, position, __FILE__, __LINE__)
/* Copies `count` elements from a position on to `values`, an array of double; much faster than kb_peek for each. */
#define kb_peek_many(tensor, position, count, values)                                                                  \
    kb_peek_many_at(tensor, position, count, values, __FILE__, __LINE__)

/* Sets every element from a NumPy file: format 1.0 to 3.0, either byte order, C or Fortran order. The file must have
 * the tensor's shape and dtype: f4 for f32, f2 for f16, i4, i2, i1, and u1 or b1 (bool) for u8; nothing is converted.
 * NumPy has no bf16: V2, as ml_dtypes writes it, or u2 are taken as its bits. The path is relative to the current
 * folder. A file that is missing, malformed or does not fit ends the run with status 2 and the byte of the error. */
#define kb_load_npy(tensor, path) kb_load_npy_at(tensor, path, __FILE__, __LINE__)

/* Writes a tensor, of copies the first one, to a NumPy file: format 1.0, little-endian, C order; bf16 as V2, which
 * numpy.load(path).view(ml_dtypes.bfloat16) reads. The file appears complete or not at all. If elements are pending,
 * the data pass runs first; with --data off that is wrong use. */
#define kb_save_npy(tensor, path) kb_save_npy_at(tensor, path, __FILE__, __LINE__)

/* Returns whether results will be computed: false with --data off. */
bool kb_has_data(void);

/* Allocates host memory for `count` elements of a C type, set to 0 and freed when the run ends:
 * double *x = kb_array(double, n). If there is not enough memory, the run ends with status 3. */
#define kb_array(type, count) ((type *)kb_array_at(count, sizeof(type), __FILE__, __LINE__))

/* ---- memory requests: kb_write and kb_read block until the host has the answer */

/* Writes a tensor, every copy of it, over the fabric, with one request for all shards of the same size. `data` has its
 * elements, row-major, in its dtype, and is copied at the call. NULL: the contents stay and only time passes. */
#define kb_write(tensor, data) kb_write_at(tensor, data, __FILE__, __LINE__)

/* Reads a tensor, of copies the first one, over the fabric: `data` gets its elements as they are at the call,
 * row-major, in its dtype. NULL: only time passes. If elements are pending, the data pass runs first; with --data off
 * that is wrong use. */
#define kb_read(tensor, data) kb_read_at(tensor, data, __FILE__, __LINE__)

/* A write or read that may still be under way. */
typedef struct kb_request *kb_request;

/* The same, but the bench goes on at once; kb_wait waits for the answer. `data` is copied, or set, at the call. An m_cpu
 * has one write and one read in flight; others of the same kind wait there. */
#define kb_write_async(tensor, data) kb_write_async_at(tensor, data, __FILE__, __LINE__)
#define kb_read_async(tensor, data) kb_read_async_at(tensor, data, __FILE__, __LINE__)

/* ---- virtual addresses: each call blocks until all MMUs are done. With the MMUs off the calls take the same time and
 * have no effect: a virtual address is then the physical one. */

/* Maps, for each PE of a set, the virtual address `va` to the shard that is placed with the PE; or to the one shard of
 * a tensor placed by kb_on. Every PE gets the same number of pages, those of the largest of these shards. `va` is a
 * multiple of the page size. Kernels use tl_virtual. */
#define kb_map(pes, va, tensor) kb_map_at(pes, va, tensor, __FILE__, __LINE__)

/* Unmaps `bytes` bytes from va on, at least one, rounded up to pages, for each PE of a set. */
#define kb_unmap(pes, va, bytes) kb_unmap_at(pes, va, bytes, __FILE__, __LINE__)

/* ---- launches */

/* A launch, running or ended. */
typedef struct launch *kb_future;

/* When a PE of a launch fails, the others run to their end (KB_DRAIN), or the host gets the answer at once. */
enum kb_on_failure { KB_DRAIN, KB_FAIL_FAST };

/* When the kernels of a launch begin: all at one time; those of a cube at one time, which its m_cpu sets, the io_cpu
 * taking no part; or each when the launch reaches its PE. */
enum kb_start { KB_START_BARRIER, KB_START_CUBE, KB_START_FREE };

struct kb_options {
    uint64_t timeout_ns;                                /* from the submission; 0: none */
    enum kb_on_failure on_failure;
    enum kb_start start;
};

#define kb_options(...) ((struct kb_options){__VA_ARGS__})

/* Launches a kernel on a set of PEs: kb_launch(gemm, pes, &(struct gemm_args){a, b, c}). The arguments are copied. The
 * launch is submitted at this instant; the call does not block. It is wrong use if a PE still runs an earlier launch.
 * After a launch that failed, the bench ends here. */
#define kb_launch(kernel, pes, ...) kb_launch_with(kernel, pes, kb_options(0), __VA_ARGS__)

/* Launches with options: kb_launch_with(gemm, pes, kb_options(.timeout_ns = 1000), &(struct gemm_args){a, b, c}). */
#define kb_launch_with(kernel, pes, options, ...) kb_launch_parts(options, kb_part(kernel, pes, __VA_ARGS__))

/* Launches several kernels that begin at the same time, as one launch. No PE may be in two parts:
 *     kb_launch_parts(kb_options(0), kb_part(source, left, &(struct source_args){a}),
 *                     kb_part(sink, right, &(struct sink_args){b})) */
#define kb_launch_parts(options, ...)                                                                                  \
    kb_launch_at((const struct kb_part[]){__VA_ARGS__, {0}}, options, __FILE__, __LINE__)

struct kb_part {
    const struct kb_kernel *kernel;
    struct kb_pes pes;
    const void *arg;
};

#define kb_part(kernel, pes, ...) ((struct kb_part){&kernel##_kb_kernel, pes, kernel##_kb_arg(__VA_ARGS__)})

/* Blocks until the host has the last answer of a launch, or of kb_write_async or kb_read_async; takes no time if it has
 * it already. If the request failed, the bench ends here. */
#define kb_wait(request)                                                                                               \
    _Generic((request), kb_future: kb_wait_at, kb_request: kb_wait_request_at)(request, __FILE__, __LINE__)

/* References and expectations: kb_ref_gemm, kb_expect_close and so on. */
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
_Noreturn void kb_refuse_at(const char *file, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void kb_write_at(kb_tensor tensor, const void *data, const char *file, uint32_t line);
void kb_read_at(kb_tensor tensor, void *data, const char *file, uint32_t line);
kb_request kb_write_async_at(kb_tensor tensor, const void *data, const char *file, uint32_t line);
kb_request kb_read_async_at(kb_tensor tensor, void *data, const char *file, uint32_t line);
void kb_wait_request_at(kb_request request, const char *file, uint32_t line);
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
