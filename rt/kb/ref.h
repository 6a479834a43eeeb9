/* ref.h: the host side: references, which say what tensors should hold, and expectations. Part of <kb/host.h>.
 *
 * None of it takes simulated time. With --data off shapes and dtypes are checked, and that is all. */
#ifndef KB_REF_H
#define KB_REF_H


/* What a tensor should hold: computed on the host, apart from the data pass. */
typedef struct reference *kb_ref;

/* What a reference is computed from: a tensor, as it is now (the data pass runs first), another reference, or a number.
 * Where a call below takes values, it takes any of these. Floats are computed in f64 by libm and OpenBLAS, gemms of f16
 * and bf16 tensors in f32; integers exactly.
 *
 * Each reference has an s for the tolerance of kb_expect_close. It is at least 1, or what the call says. What a tensor
 * holds is as it is, but an element x of a reference may be off by s + max|x| tolerances itself: that times the slope
 * of what is computed from it is added up, and is s where it is larger. So an s holds for a chain of operations whose
 * results are stored one after the other. Integers are compared exactly: round to them what tensors hold. */
struct kb_values {
    kb_tensor tensor;
    kb_ref ref;
    double number;
    bool is_number;
};

#define kb_values(x) _Generic((x), kb_tensor: kb_values_of_tensor, kb_ref: kb_values_of_ref,                           \
                              default: kb_values_of_number)(x)

/* The product of a matrix of m x k and one of k x n, of floats or of i8; s = sqrt(k) max|A| max|B|. Of operands with
 * more axes, alike but for the last two, each matrix times its counterpart. */
#define kb_ref_gemm(a, b) kb_ref_gemm_at(kb_values(a), kb_values(b), __FILE__, __LINE__)
/* Adds a row of n to each row of the reference; takes the larger of 0 and each element (NaN stays). In place, with the
 * same s, as epilogues that work on what was not rounded yet. */
#define kb_ref_bias(ref, row) kb_ref_bias_at(ref, kb_values(row), __FILE__, __LINE__)
#define kb_ref_relu(ref) kb_ref_relu_at(ref, __FILE__, __LINE__)

/* As it is; with the last two axes exchanged; of a matrix, with element (i, j) exchanged for (j, i), where an element
 * is a block of columns / rows columns. Exact if the values are. */
#define kb_ref_copy(x) kb_ref_copy_at(kb_values(x), __FILE__, __LINE__)
#define kb_ref_transpose(x) kb_ref_transpose_at(kb_values(x), __FILE__, __LINE__)
#define kb_ref_exchange(x) kb_ref_exchange_at(kb_values(x), __FILE__, __LINE__)

/* Element by element, by the op's name: copy, neg, abs, relu, exp, log, sqrt, rsqrt, recip, tanh, sigmoid, gelu, silu;
 * add, sub, mul, div, max, min, bias, bias_add, scale, dequant; eq, ne, lt, le, gt, ge give 0 or 1 of u8. Operands are
 * broadcast as in NumPy: axes are aligned at the last one, and one of size 1 is as long as the other's. Integers wrap
 * to their common dtype (else i32); their quotient is rounded towards 0, and 0 if the divisor is. */
#define kb_ref_unary(op, x) kb_ref_unary_at(op, kb_values(x), __FILE__, __LINE__)
#define kb_ref_binary(op, x, y) kb_ref_binary_at(op, kb_values(x), kb_values(y), __FILE__, __LINE__)
/* x where c is not 0, else y. */
#define kb_ref_where(c, x, y) kb_ref_where_at(kb_values(c), kb_values(x), kb_values(y), __FILE__, __LINE__)

/* Joins the elements along an axis, which then has size 1. Of integers in i32. s = sqrt(n) max|x| of a sum of n, and an
 * n-th of that of a mean. */
#define kb_ref_sum(x, axis) kb_ref_along_at("sum", kb_values(x), axis, __FILE__, __LINE__)
#define kb_ref_mean(x, axis) kb_ref_along_at("mean", kb_values(x), axis, __FILE__, __LINE__)
#define kb_ref_max(x, axis) kb_ref_along_at("max", kb_values(x), axis, __FILE__, __LINE__)
#define kb_ref_min(x, axis) kb_ref_along_at("min", kb_values(x), axis, __FILE__, __LINE__)

/* Along the last axis, of floats: exp(x) / sum(exp(x)); (x - mean) / sqrt(variance + eps) * gain + bias;
 * x / sqrt(mean(x^2) + eps) * gain. Gain and bias are rows of n, or numbers. Of the norms s is max|x| / the root, times
 * max|gain|: for the differences and quotients of what was rounded. */
#define kb_ref_softmax(x) kb_ref_softmax_at(kb_values(x), __FILE__, __LINE__)
#define kb_ref_layernorm(x, gain, bias, eps)                                                                           \
    kb_ref_layernorm_at(kb_values(x), kb_values(gain), kb_values(bias), eps, __FILE__, __LINE__)
#define kb_ref_rmsnorm(x, gain, eps) kb_ref_rmsnorm_at(kb_values(x), kb_values(gain), eps, __FILE__, __LINE__)

/* softmax(Q K^T / sqrt(d)) V of floats, head by head: kb_ref_attention(q, k, v, .heads = 32, .kv_heads = 8). The heads
 * of Q that share a head of K and V, g = heads / kv_heads of them, lie side by side, d columns each; the rows of such a
 * group follow those of the one before it, or groups, too, are side by side; K and V likewise. So of n queries and m
 * keys Q and the result are (kv_heads n) x (g d), K and V (kv_heads m) x d; side by side n x (heads d) and
 * m x (kv_heads d). If causal, the last query sees all keys, each one before it one fewer, and n <= m. s = max|V|. */
struct kb_attention {
    uint64_t heads, kv_heads;                           /* of Q and the result; of K and V */
    bool causal, side_by_side;
};

#define kb_ref_attention(q, k, v, ...)                                                                                 \
    kb_ref_attention_at(kb_values(q), kb_values(k), kb_values(v), (struct kb_attention){__VA_ARGS__}, __FILE__,        \
                        __LINE__)

/* As a dtype has it, rounded to even; integers saturate. x / scale, the same; the scale is a number or a row of n. */
#define kb_ref_cast(x, dtype) kb_ref_cast_at(kb_values(x), dtype, __FILE__, __LINE__)
#define kb_ref_quant(x, scale, dtype) kb_ref_quant_at(kb_values(x), kb_values(scale), dtype, __FILE__, __LINE__)

/* As it is, but exact, as what a tensor holds: what is computed from it has the s of those operations alone. For chains
 * of many operations, whose errors hardly ever add up as their bounds do, to where they would allow anything. */
#define kb_ref_exact(x) kb_ref_exact_at(kb_values(x), __FILE__, __LINE__)

/* Values of the host's own, row-major, which are copied (with --data off they may be NULL); those of a file of NumPy's,
 * of any numbers and 1 to 4 axes. A file that is missing or malformed ends the run with status 2. */
#define kb_ref_given(values, dims) kb_ref_given_at(values, dims, __FILE__, __LINE__)
#define kb_ref_npy(path) kb_ref_npy_at(path, __FILE__, __LINE__)

/* One row: all rows of a matrix added, multiplied, or their minimum or maximum: "add", "mul", "min", "max". Floats in
 * f64; integers wrap to their dtype. Exact but for the sum and product of floats, which are rounded in some order after
 * every one of r rows: there s of the tolerance is r max|x|, and r max|product|. */
#define kb_ref_reduce(x, op) kb_ref_reduce_at(kb_values(x), op, __FILE__, __LINE__)

/* Runs the data pass and compares every element, of every copy; the shapes are the same, axes of size 1 aside. The run
 * ends with status 1 if one is off by more than
 *     atol * s + rtol * |expected|
 * with both 1e-5 for a tensor of f32, 1e-3 for f16, 1e-2 for bf16; integers are to be equal, and so is what is exact:
 * copies, signs, choices of what tensors hold. NaN is as expected where NaN is expected. The summary has the largest
 * error, and the first wrong element with its index. */
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
void kb_ref_bias_at(kb_ref ref, struct kb_values row, const char *file, uint32_t line);
void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line);
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
