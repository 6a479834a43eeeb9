/* host.h: the host side: benches, which set up tensors, launch kernels and check what they computed.
 *
 * A bench is a plain function that runs at the host from time 0. Only kb_wait takes simulated time. Wrong
 * use, and a machine that is too small for what is asked, end the run with status 2 and the place of the call. */
#ifndef KB_HOST_H
#define KB_HOST_H

#include <kb/tl.h>

/* ---- benches */

/* Defines a bench: `KB_BENCH(add, "what it shows", KB_INT(n, 1024, 1, 65536, "elements")) { ... }`. It is run by
 * `run add n=2048`. Parameters are read with kb_int and its like, by name. */
#define KB_BENCH(name, what, ...)                                                                                      \
    static void name##_kb_bench_body(void);                                                                            \
    static const struct kb_param name##_kb_params[] = {{0}, ##__VA_ARGS__};                                            \
    static const struct kb_bench name##_kb_bench = {#name, what, __FILE__, __LINE__, name##_kb_params + 1,             \
        sizeof(name##_kb_params) / sizeof(name##_kb_params[0]) - 1, name##_kb_bench_body};                             \
    static const struct kb_bench *const name##_kb_bench_entry                                                          \
        __attribute__((used, section("kb_benches"))) = &name##_kb_bench;                                               \
    static void name##_kb_bench_body(void)

/* A whole number, both bounds included; decimal or 0x hexadecimal on the command line. */
#define KB_INT(name_, default_, least_, most_, help_)                                                                  \
    {.name = #name_, .type = KB_PARAM_INT, .initial = default_, .least = least_, .most = most_, .help = help_}
/* true or false. */
#define KB_BOOL(name_, default_, help_)                                                                                \
    {.name = #name_, .type = KB_PARAM_BOOL, .initial = default_, .help = help_}
/* One of some words, which are separated by spaces; the first is the default. */
#define KB_WORD(name_, words_, help_) {.name = #name_, .type = KB_PARAM_WORD, .words = words_, .help = help_}

#define kb_int(name) (kb_param_at(#name, KB_PARAM_INT, __FILE__, __LINE__)->number)
#define kb_bool(name) (kb_param_at(#name, KB_PARAM_BOOL, __FILE__, __LINE__)->number != 0)
#define kb_word(name) (kb_param_at(#name, KB_PARAM_WORD, __FILE__, __LINE__)->word)

/* The dtype of a name such as "f16". */
#define kb_dtype(name) kb_dtype_at(name, __FILE__, __LINE__)

/* ---- sets of PEs: in rank order, none twice */

struct kb_pes {
    const uint32_t *pe;                                 /* numbers over the machine */
    uint32_t count;
};

/* Those whose id, such as sip0.cube3.pe5, matches: * is any run of characters, ? any one. None at all is wrong. */
#define kb_pes(glob) kb_pes_at(glob, __FILE__, __LINE__)

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
/* Both axes of a matrix split, over a grid of rows x cols PEs, row-major. */
#define kb_blocks(space, pes, rows, cols) ((struct kb_place){space, KB_BLOCKS, pes, rows, cols})
/* All of it with each PE. */
#define kb_copies(space, pes) ((struct kb_place){space, KB_COPIES, pes, 0, 0})

struct kb_dims {
    uint32_t rank;
    uint64_t size[KB_RANK];
};

#define kb_1d(n) ((struct kb_dims){1, {n}})
#define kb_2d(rows, cols) ((struct kb_dims){2, {rows, cols}})

/* A tensor of zeros. Every shard is dense and row-major, at the next 64-byte boundary of its memory: upwards from 0,
 * in a TCM from the end of the reserved region. The name is for messages and results. */
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

/* ---- launches */

/* A launch under way. */
typedef struct launch *kb_future;

/* Launches a kernel on a set of PEs: kb_launch(gemm, pes, &(struct gemm_args){a, b, c}). The arguments are copied.
 * Submitted at this instant; does not block. It is wrong to use a PE that still runs an earlier launch. */
#define kb_launch(kernel, pes, ...)                                                                                    \
    kb_launch_at(&kernel##_kb_kernel, pes, kernel##_kb_arg(__VA_ARGS__), __FILE__, __LINE__)

/* Blocks until the host has the launch's last answer; no time if it has. */
#define kb_wait(future) kb_wait_at(future, __FILE__, __LINE__)

/* ---- references and expectations: no time; nothing at all with --data off */

/* What a tensor should hold: computed on the host from the inputs as they are now, apart from the data pass, in f32 (of
 * f16 and bf16), f64 (of f32) or exactly (of i8, in i32). */
typedef struct reference *kb_ref;

/* A B, of matrices m x k and k x n of one dtype. */
#define kb_ref_gemm(a, b) kb_ref_gemm_at(a, b, __FILE__, __LINE__)
/* Adds a row of n to each row of the reference; takes the larger of 0 and each element (NaN stays). In place. */
#define kb_ref_bias(ref, row) kb_ref_bias_at(ref, row, __FILE__, __LINE__)
#define kb_ref_relu(ref) kb_ref_relu_at(ref, __FILE__, __LINE__)

/* Runs the data pass and compares every element, of every copy. The run ends with status 1 if one is off by more than
 *     atol * s + rtol * |expected|
 * with s = sqrt(k) max|A| max|B| of a gemm, and both 1e-5 for a tensor of f32, 1e-3 for f16, 1e-2 for bf16; integers
 * are to be equal. NaN is as expected where NaN is expected. The summary has the largest error, and the first wrong
 * element with its index. */
#define kb_expect_close(tensor, ref) kb_expect_close_at(tensor, ref, __FILE__, __LINE__)

/* ---- what the macros call */

enum kb_param_type { KB_PARAM_INT, KB_PARAM_BOOL, KB_PARAM_WORD };

struct kb_param {
    const char *name;
    enum kb_param_type type;
    uint64_t initial, least, most;
    const char *words, *help;
};

struct kb_bench {
    const char *name, *what, *file;
    uint32_t line;
    const struct kb_param *params;
    uint32_t count;
    void (*body)(void);
};

struct kb_value {
    uint64_t number;
    const char *word;
};

enum kb_fill_kind { KB_CONSTANT, KB_UNIFORM, KB_NORMAL };

const struct kb_value *kb_param_at(const char *name, enum kb_param_type type, const char *file, uint32_t line);
enum kb_dtype kb_dtype_at(const char *name, const char *file, uint32_t line);
struct kb_pes kb_pes_at(const char *glob, const char *file, uint32_t line);
kb_tensor kb_tensor_new_at(const char *name, enum kb_dtype dtype, struct kb_dims dims, struct kb_place place,
                           const char *file, uint32_t line);
void kb_fill_at(kb_tensor tensor, enum kb_fill_kind kind, double x, double y, const char *file, uint32_t line);
double kb_peek_at(kb_tensor tensor, uint64_t position, const char *file, uint32_t line);
kb_future kb_launch_at(const struct kb_kernel *kernel, struct kb_pes pes, const void *arg, const char *file,
                       uint32_t line);
void kb_wait_at(kb_future future, const char *file, uint32_t line);
kb_ref kb_ref_gemm_at(kb_tensor a, kb_tensor b, const char *file, uint32_t line);
void kb_ref_bias_at(kb_ref ref, kb_tensor row, const char *file, uint32_t line);
void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line);
void kb_expect_close_at(kb_tensor tensor, kb_ref ref, const char *file, uint32_t line);

#endif
