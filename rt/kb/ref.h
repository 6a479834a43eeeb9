/* ref.h: the host library: references, which are the values that tensors should hold, and expectations, which compare.
 * Part of <kb/host.h>.
 *
 * No call takes simulated time. With --data off only shapes and dtypes are checked. Operands whose shapes or dtypes do
 * not fit are wrong use, which ends the run with status 2. */
#ifndef KB_REF_H
#define KB_REF_H

/* The values that a tensor should hold, computed on the host by code that the data pass does not use. */
typedef struct reference *kb_ref;

/* An operand of a reference: a tensor as it is now (the data pass runs first), another reference, or a number. Every x,
 * y, a, b and so on below can be any of these. Floats are computed in f64 by libm and OpenBLAS, integers exactly.
 *
 * A tensor that was filled by the host or verified, and that kernels have overwritten since, is no input any more: a
 * reference that is made of it verifies nothing. Make it before the launch, or after that tensor is verified.
 *
 * Each element of a reference has the error that it may have in a right kernel, by an analysis of rounding errors
 * (docs/data.md, "Bounds"): of the f32 arithmetic of the op, and of its operands. A reference as an operand is taken to
 * be rounded to its dtype, as a kernel does that stores it; tensors are exact. Integers are compared exactly: round a
 * float reference with kb_ref_cast or kb_ref_quant first. */
struct kb_values {
    kb_tensor tensor;
    kb_ref ref;
    double number;
    bool is_number;
};

#define kb_values(x) _Generic((x), kb_tensor: kb_values_of_tensor, kb_ref: kb_values_of_ref,                           \
                              default: kb_values_of_number)(x)

/* The product of m x k and k x n matrices, of floats, or of i8 with a result of i32.
 * Operands with more than two axes, of equal sizes except the last two, are batches of matrices. */
#define kb_ref_gemm(a, b) kb_ref_gemm_at(kb_values(a), kb_values(b), __FILE__, __LINE__)
/* The convolution of tensors of floats, or of i8 with a result of i32. x is (images * height) x width x channels (NHWC, the
 * rows of all images one above the other), w is filters x (kernel_h * kernel_w * channels) (OHWI), and the result is
 * (images * out_h) x out_w x filters, where out_h = (height + 2 pad - kernel_h) / stride + 1, rounded down:
 *     kb_ref_conv2d(x, w, .height = 56, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad = 1) */
struct kb_conv2d {
    uint64_t height, kernel_h, kernel_w, stride, pad;
};

#define kb_ref_conv2d(x, w, ...) kb_ref_conv2d_at(x, w, (struct kb_conv2d){__VA_ARGS__}, __FILE__, __LINE__)

/* In place, as epilogues do it before the result is rounded: adds a row of n to each row; replaces
 * negative elements by 0 (NaN stays). */
#define kb_ref_bias(ref, row) kb_ref_bias_at(ref, kb_values(row), __FILE__, __LINE__)
#define kb_ref_relu(ref) kb_ref_relu_at(ref, __FILE__, __LINE__)
/* In place: what is made from the reference takes its values as they are in an accumulator of f32. Without this call they
 * are taken to be rounded to its dtype first, as a kernel does that stores them. */
#define kb_ref_unrounded(ref) kb_ref_unrounded_at(ref, __FILE__, __LINE__)

/* A copy; a copy with the last two axes exchanged; the result of an all-to-all: a matrix in which blocks (i, j) and
 * (j, i) are exchanged, where a block is columns / rows columns of a row. Exact if the operand is exact. */
#define kb_ref_copy(x) kb_ref_copy_at(kb_values(x), __FILE__, __LINE__)
#define kb_ref_transpose(x) kb_ref_transpose_at(kb_values(x), __FILE__, __LINE__)
#define kb_ref_exchange(x) kb_ref_exchange_at(kb_values(x), __FILE__, __LINE__)

/* Elementwise ops by their names in <kb/ops.def>, of one operand or of two (not cmp, cast and quant); eq, ne, lt, le, gt
 * and ge are ops of two operands that give 0 or 1 of u8. Operands are broadcast as in NumPy: axes are aligned at the
 * last one, and an axis of size 1 is repeated. They are all floats or all integers, except for dequant. Integers wrap to
 * their common dtype, or to i32 if they have different ones; their quotient is rounded towards 0, and is 0 if the
 * divisor is 0. */
#define kb_ref_unary(op, x) kb_ref_unary_at(op, kb_values(x), __FILE__, __LINE__)
#define kb_ref_binary(op, x, y) kb_ref_binary_at(op, kb_values(x), kb_values(y), __FILE__, __LINE__)
/* x where c is not 0, else y. */
#define kb_ref_where(c, x, y) kb_ref_where_at(kb_values(c), kb_values(x), kb_values(y), __FILE__, __LINE__)

/* Reductions along an axis, which then has size 1. Floats are added up in f32, integers in i32. */
#define kb_ref_sum(x, axis) kb_ref_along_at("sum", kb_values(x), axis, __FILE__, __LINE__)
#define kb_ref_mean(x, axis) kb_ref_along_at("mean", kb_values(x), axis, __FILE__, __LINE__)
#define kb_ref_max(x, axis) kb_ref_along_at("max", kb_values(x), axis, __FILE__, __LINE__)
#define kb_ref_min(x, axis) kb_ref_along_at("min", kb_values(x), axis, __FILE__, __LINE__)

/* Along the last axis, for floats: exp(x) / sum(exp(x)); (x - mean) / sqrt(variance + eps) * gain + bias; x /
 * sqrt(mean(x^2) + eps) * gain. Gain and bias are rows of n, or numbers. Each step may be rounded to the dtype of x. */
#define kb_ref_softmax(x) kb_ref_softmax_at(kb_values(x), __FILE__, __LINE__)
#define kb_ref_layernorm(x, gain, bias, eps)                                                                           \
    kb_ref_layernorm_at(kb_values(x), kb_values(gain), kb_values(bias), eps, __FILE__, __LINE__)
#define kb_ref_rmsnorm(x, gain, eps) kb_ref_rmsnorm_at(kb_values(x), kb_values(gain), eps, __FILE__, __LINE__)

/* softmax(Q K^T / sqrt(d)) V of floats, head by head: kb_ref_attention(q, k, v, .heads = 32, .kv_heads = 8). A group is
 * the g = heads / kv_heads heads of Q that share a head of K and V; they lie side by side, d columns each. The rows of
 * a group follow those of the previous group or, if side_by_side, all groups lie side by side too; K and V likewise.
 * With n queries and m keys, Q and the result are (kv_heads n) x (g d), and K and V are (kv_heads m) x d; side by side
 * they are n x (heads d) and m x (kv_heads d). If causal, the last query sees all keys, each query before it one key
 * fewer, and n <= m. */
struct kb_attention {
    uint64_t heads, kv_heads;                           /* of Q and the result; of K and V, a divisor of heads */
    bool causal, side_by_side;
};

#define kb_ref_attention(q, k, v, ...)                                                                                 \
    kb_ref_attention_at(kb_values(q), kb_values(k), kb_values(v), (struct kb_attention){__VA_ARGS__}, __FILE__,        \
                        __LINE__)

/* x rounded to a dtype, to nearest even; integers saturate. x / scale rounded to an integer dtype in the same way; the
 * scale is a number or a row of n. */
#define kb_ref_cast(x, dtype) kb_ref_cast_at(kb_values(x), dtype, __FILE__, __LINE__)
#define kb_ref_quant(x, scale, dtype) kb_ref_quant_at(kb_values(x), kb_values(scale), dtype, __FILE__, __LINE__)

/* A copy that counts as exact, as a tensor does: references made from it have the errors of their own operations only,
 * and a tensor of its dtype has to hold just these values. */
#define kb_ref_exact(x) kb_ref_exact_at(kb_values(x), __FILE__, __LINE__)

/* Given values: an array of double, row-major, which is copied (with --data off it may be NULL); or a NumPy file of any
 * numbers with 1 to 4 axes. A file that is missing or malformed ends the run with status 2. How the values were computed
 * is not known: a tensor may be off by 1e-5, 1e-3 or 1e-2 (f32, f16, bf16) of their RMS, and of the element. */
#define kb_ref_given(values, dims) kb_ref_given_at(values, dims, __FILE__, __LINE__)
#define kb_ref_npy(path) kb_ref_npy_at(path, __FILE__, __LINE__)

/* The reduction of the r rows of a matrix to one row: "add", "mul", "min" or "max". Floats are reduced in f64; integers
 * wrap to their dtype. The result is exact if the operand is, except for sums and products of floats, which a kernel
 * rounds to the dtype after every row, in some order. */
#define kb_ref_reduce(x, op) kb_ref_reduce_at(kb_values(x), op, __FILE__, __LINE__)

/* Runs the data pass and compares the elements of every copy with a reference of the same shape, apart from axes of size
 * 1. The run ends with status 1, after the bench, if an element is off by more than its bound: the rounding to the
 * tensor's dtype and five standard deviations of its error (`run --tolerance` has others); if the bounds are too large
 * against the data for the comparison to mean anything; or if the reference was made of what kernels had overwritten.
 * Integers must be equal, and so must exact references of the tensor's dtype: copies, signs and choices of what tensors
 * hold. NaN is right where NaN is expected. The summary has the largest error, and the first wrong element with its
 * index. */
#define kb_expect_close(tensor, ref) kb_expect_close_at(tensor, ref, __FILE__, __LINE__)

/* ---- what the macros call */

static inline struct kb_values kb_values_of_tensor(kb_tensor tensor)
{
    return (struct kb_values){.tensor = tensor};
}
static inline struct kb_values kb_values_of_ref(kb_ref ref)
{
    return (struct kb_values){.ref = ref};
}
static inline struct kb_values kb_values_of_number(double number)
{
    return (struct kb_values){.number = number, .is_number = true};
}

kb_ref kb_ref_gemm_at(struct kb_values a, struct kb_values b, const char *file, uint32_t line);
kb_ref kb_ref_conv2d_at(kb_tensor x, kb_tensor w, struct kb_conv2d how, const char *file, uint32_t line);
void kb_ref_bias_at(kb_ref ref, struct kb_values row, const char *file, uint32_t line);
void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line);
void kb_ref_unrounded_at(kb_ref ref, const char *file, uint32_t line);
kb_ref kb_ref_copy_at(struct kb_values x, const char *file, uint32_t line);
kb_ref kb_ref_exact_at(struct kb_values x, const char *file, uint32_t line);
kb_ref kb_ref_transpose_at(struct kb_values x, const char *file, uint32_t line);
kb_ref kb_ref_exchange_at(struct kb_values x, const char *file, uint32_t line);
kb_ref kb_ref_unary_at(const char *op, struct kb_values x, const char *file, uint32_t line);
kb_ref kb_ref_binary_at(const char *op, struct kb_values x, struct kb_values y, const char *file, uint32_t line);
kb_ref kb_ref_where_at(struct kb_values c, struct kb_values x, struct kb_values y, const char *file, uint32_t line);
kb_ref kb_ref_along_at(const char *op, struct kb_values x, uint32_t axis, const char *file, uint32_t line);
kb_ref kb_ref_softmax_at(struct kb_values x, const char *file, uint32_t line);
kb_ref kb_ref_layernorm_at(struct kb_values x, struct kb_values gain, struct kb_values bias, double eps,
                           const char *file, uint32_t line);
kb_ref kb_ref_rmsnorm_at(struct kb_values x, struct kb_values gain, double eps, const char *file, uint32_t line);
kb_ref kb_ref_attention_at(struct kb_values q, struct kb_values k, struct kb_values v, struct kb_attention how,
                           const char *file, uint32_t line);
kb_ref kb_ref_cast_at(struct kb_values x, enum kb_dtype dtype, const char *file, uint32_t line);
kb_ref kb_ref_quant_at(struct kb_values x, struct kb_values scale, enum kb_dtype dtype, const char *file,
                       uint32_t line);
kb_ref kb_ref_given_at(const double *values, struct kb_dims dims, const char *file, uint32_t line);
kb_ref kb_ref_npy_at(const char *path, const char *file, uint32_t line);
kb_ref kb_ref_reduce_at(struct kb_values x, const char *op, const char *file, uint32_t line);
void kb_expect_close_at(kb_tensor tensor, kb_ref ref, const char *file, uint32_t line);

#endif
