/* math.h: the device library: simple compute, one op on shards in this PE's TCM. Part of <kb/tl.h>.
 *
 * A call is one command of pe_math. Its time is that of the elements of the result, or of the operand of a reduction,
 * in the lanes of the larger of the two dtypes. All operands and the result are shards in this PE's TCM, with any
 * strides.
 *
 * Shapes: operands are broadcast to the shape of the result as in NumPy. Axes are aligned at the last one; an operand
 * may have fewer axes, or axes of size 1, and is repeated along them. For a result of m x n an operand is m x n, a row
 * of n, a column of m x 1, or one element. The last operand of an op may also be a number: tl_number(0.5). The result
 * may be the same shard as an operand, but must not overlap one otherwise.
 *
 * dtypes: floats are computed in f32 and rounded to the result's dtype, to nearest even; integers are computed in i32
 * and wrap to the result's dtype. Operands and result may have different float dtypes, or different integer dtypes, but
 * not both kinds. NaN propagates, also through min and max, for which -0 is less than 0.
 *
 * The calls block until the command is complete; those that end in _async return a handle at once. Results are pending
 * until the data pass. Faults, besides those of every command (tl.h): KERNEL_ERROR: an unknown op, or one that is not
 * defined on these dtypes; too many or too few operands; shapes that do not fit; a result that overlaps part of an
 * operand; pe_math has no lanes for the dtype. */
#ifndef KB_MATH_H
#define KB_MATH_H

/* ---- the gemm of one command, and the general call */

/* to = a b, for matrices of m x k and k x n, in one command of pe_gemm. For a transposed matrix use tl_transposed. a
 * and b have the same dtype: f32, f16 or bf16, accumulated in f32, or i8, accumulated in i32. `to` has any dtype; it is
 * rounded to nearest even and saturated. KERNEL_ERROR: not matrices, or sizes that do not fit; other dtypes; `to`
 * overlaps a or b; pe_gemm has no k_per_cycle for the dtype. */
#define tl_dot(tl, to, a, b) tl_dot_at(tl, to, a, b, __FILE__, __LINE__)
#define tl_dot_async(tl, to, a, b) tl_dot_async_at(tl, to, a, b, __FILE__, __LINE__)

enum tl_relation { TL_EQ, TL_NE, TL_LT, TL_LE, TL_GT, TL_GE };

/* An op with its operands, in the order of the calls below. Operands that the op does not have are left out. */
struct tl_compute {
    const char *op;
    struct tl_shard to, x, y, z;
    enum tl_relation relation;                          /* of cmp */
    int axis;                                           /* of a reduction; -1: the last axis */
};

/* Any op by its name: tl_compute(tl, &(struct tl_compute){.op = "exp", .to = y, .x = x}). */
#define tl_compute(tl, ...) tl_compute_at(tl, __VA_ARGS__, __FILE__, __LINE__)
#define tl_compute_async(tl, ...) tl_compute_async_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* A number as an operand: it is rounded to f32 for floats; for integers it must be a whole number in the range of
 * i32. */
static inline struct tl_shard tl_number(double number)
{
    struct tl_shard shard = {.dtype = KB_DTYPES};
    __builtin_memcpy(&shard.addr, &number, sizeof number);
    return shard;
}

/* ---- elementwise ops of one operand: to = op(x)
 *
 * <kb/ops.def> has their formulas. copy, neg, abs and relu are defined on floats and integers, the others on floats.
 * tl_ln is the op "log". */
#define tl_copy(tl, to, x) KB_UNARY(, tl, "copy", to, x)
#define tl_neg(tl, to, x) KB_UNARY(, tl, "neg", to, x)
#define tl_abs(tl, to, x) KB_UNARY(, tl, "abs", to, x)
#define tl_relu(tl, to, x) KB_UNARY(, tl, "relu", to, x)
#define tl_exp(tl, to, x) KB_UNARY(, tl, "exp", to, x)
#define tl_ln(tl, to, x) KB_UNARY(, tl, "log", to, x)
#define tl_sqrt(tl, to, x) KB_UNARY(, tl, "sqrt", to, x)
#define tl_rsqrt(tl, to, x) KB_UNARY(, tl, "rsqrt", to, x)
#define tl_recip(tl, to, x) KB_UNARY(, tl, "recip", to, x)
#define tl_tanh(tl, to, x) KB_UNARY(, tl, "tanh", to, x)
#define tl_sigmoid(tl, to, x) KB_UNARY(, tl, "sigmoid", to, x)
#define tl_gelu(tl, to, x) KB_UNARY(, tl, "gelu", to, x)
#define tl_silu(tl, to, x) KB_UNARY(, tl, "silu", to, x)
#define tl_copy_async(tl, to, x) KB_UNARY(_async, tl, "copy", to, x)
#define tl_neg_async(tl, to, x) KB_UNARY(_async, tl, "neg", to, x)
#define tl_abs_async(tl, to, x) KB_UNARY(_async, tl, "abs", to, x)
#define tl_relu_async(tl, to, x) KB_UNARY(_async, tl, "relu", to, x)
#define tl_exp_async(tl, to, x) KB_UNARY(_async, tl, "exp", to, x)
#define tl_ln_async(tl, to, x) KB_UNARY(_async, tl, "log", to, x)
#define tl_sqrt_async(tl, to, x) KB_UNARY(_async, tl, "sqrt", to, x)
#define tl_rsqrt_async(tl, to, x) KB_UNARY(_async, tl, "rsqrt", to, x)
#define tl_recip_async(tl, to, x) KB_UNARY(_async, tl, "recip", to, x)
#define tl_tanh_async(tl, to, x) KB_UNARY(_async, tl, "tanh", to, x)
#define tl_sigmoid_async(tl, to, x) KB_UNARY(_async, tl, "sigmoid", to, x)
#define tl_gelu_async(tl, to, x) KB_UNARY(_async, tl, "gelu", to, x)
#define tl_silu_async(tl, to, x) KB_UNARY(_async, tl, "silu", to, x)

/* ---- elementwise ops of two operands: to = op(x, y)
 *
 * An integer quotient is rounded towards 0, and is 0 where y is 0. */
#define tl_add(tl, to, x, y) KB_BINARY(, tl, "add", to, x, y)
#define tl_sub(tl, to, x, y) KB_BINARY(, tl, "sub", to, x, y)
#define tl_mul(tl, to, x, y) KB_BINARY(, tl, "mul", to, x, y)
#define tl_div(tl, to, x, y) KB_BINARY(, tl, "div", to, x, y)
#define tl_max(tl, to, x, y) KB_BINARY(, tl, "max", to, x, y)
#define tl_min(tl, to, x, y) KB_BINARY(, tl, "min", to, x, y)
#define tl_add_async(tl, to, x, y) KB_BINARY(_async, tl, "add", to, x, y)
#define tl_sub_async(tl, to, x, y) KB_BINARY(_async, tl, "sub", to, x, y)
#define tl_mul_async(tl, to, x, y) KB_BINARY(_async, tl, "mul", to, x, y)
#define tl_div_async(tl, to, x, y) KB_BINARY(_async, tl, "div", to, x, y)
#define tl_max_async(tl, to, x, y) KB_BINARY(_async, tl, "max", to, x, y)
#define tl_min_async(tl, to, x, y) KB_BINARY(_async, tl, "min", to, x, y)

/* to = x + row; to = x * factor. The row and the factor are a row of n; the factor may also be one element or a
 * number. */
#define tl_bias(tl, to, x, row) KB_BINARY(, tl, "bias", to, x, row)
#define tl_scale(tl, to, x, factor) KB_BINARY(, tl, "scale", to, x, factor)
#define tl_bias_async(tl, to, x, row) KB_BINARY(_async, tl, "bias", to, x, row)
#define tl_scale_async(tl, to, x, factor) KB_BINARY(_async, tl, "scale", to, x, factor)

/* Any op of two operands by its name. */
#define tl_math(tl, op, to, x, y) KB_BINARY(, tl, op, to, x, y)
#define tl_math_async(tl, op, to, x, y) KB_BINARY(_async, tl, op, to, x, y)

/* to = 1 where the relation holds between x and y, else 0; `to` is u8: tl_cmp(tl, mask, x, TL_LT, y). Comparisons with
 * a NaN give 0, except TL_NE, which gives 1. */
#define tl_cmp(tl, to, x, is, y) KB_COMPARE(, tl, to, x, is, y)
#define tl_cmp_async(tl, to, x, is, y) KB_COMPARE(_async, tl, to, x, is, y)

/* to = x where c is not 0, else y; c is u8. */
#define tl_where(tl, to, c, x, y) KB_TERNARY(, tl, "where", to, c, x, y)
#define tl_where_async(tl, to, c, x, y) KB_TERNARY(_async, tl, "where", to, c, x, y)

/* to = x[y], element by element: x is a buffer of one axis, of the dtype of `to`, and y has positions in it, integers that
 * are broadcast to the shape of `to`. It takes the time of an op on the elements of `to`, in the lanes of the larger dtype,
 * of `to` or of y; a machine whose pe_math looks up fewer elements in a cycle says so by pe_math's `cost` of gather. The
 * positions are checked at the call, so they are data that tl_data could return then: PENDING_RESULT otherwise.
 * KERNEL_ERROR: a position below 0 or beyond x. */
#define tl_gather(tl, to, x, y) KB_BINARY(, tl, "gather", to, x, y)
#define tl_gather_async(tl, to, x, y) KB_BINARY(_async, tl, "gather", to, x, y)

/* to = x in the dtype of `to`, from any dtype to any dtype: rounded to nearest even; integers saturate, and a NaN
 * becomes the integer 0. */
#define tl_cast(tl, to, x) KB_UNARY(, tl, "cast", to, x)
#define tl_cast_async(tl, to, x) KB_UNARY(_async, tl, "cast", to, x)

/* quant: to = x / scale, in f32, rounded to nearest even and saturated to an integer dtype. dequant: to = x * scale, in
 * f32, rounded to a float dtype. x has any dtype; the scale is a float: a row of n, one element or a number. */
#define tl_quant(tl, to, x, scale) KB_BINARY(, tl, "quant", to, x, scale)
#define tl_dequant(tl, to, x, scale) KB_BINARY(, tl, "dequant", to, x, scale)
#define tl_quant_async(tl, to, x, scale) KB_BINARY(_async, tl, "quant", to, x, scale)
#define tl_dequant_async(tl, to, x, scale) KB_BINARY(_async, tl, "dequant", to, x, scale)

/* ---- reductions of x along an axis; -1 is the last axis
 *
 * `to` has x's shape with size 1 along that axis, or without that axis; for an x of one axis it has one element. Floats
 * are added pairwise in f32. Integers are added in i32, and their mean is rounded towards 0. */
#define tl_sum(tl, to, x, along) KB_REDUCE(, tl, "sum", to, x, along)
#define tl_mean(tl, to, x, along) KB_REDUCE(, tl, "mean", to, x, along)
#define tl_reduce_max(tl, to, x, along) KB_REDUCE(, tl, "max", to, x, along)
#define tl_reduce_min(tl, to, x, along) KB_REDUCE(, tl, "min", to, x, along)
#define tl_sum_async(tl, to, x, along) KB_REDUCE(_async, tl, "sum", to, x, along)
#define tl_mean_async(tl, to, x, along) KB_REDUCE(_async, tl, "mean", to, x, along)
#define tl_reduce_max_async(tl, to, x, along) KB_REDUCE(_async, tl, "max", to, x, along)
#define tl_reduce_min_async(tl, to, x, along) KB_REDUCE(_async, tl, "min", to, x, along)

/* ---- what the macros call */

#define KB_COMPUTE(async, tl, ...)                                                                                     \
    tl_compute##async##_at(tl, &(struct tl_compute){__VA_ARGS__}, __FILE__, __LINE__)
#define KB_UNARY(async, tl, op_, to_, x_) KB_COMPUTE(async, tl, .op = op_, .to = to_, .x = x_)
#define KB_BINARY(async, tl, op_, to_, x_, y_) KB_COMPUTE(async, tl, .op = op_, .to = to_, .x = x_, .y = y_)
#define KB_TERNARY(async, tl, op_, to_, x_, y_, z_)                                                                    \
    KB_COMPUTE(async, tl, .op = op_, .to = to_, .x = x_, .y = y_, .z = z_)
#define KB_COMPARE(async, tl, to_, x_, is_, y_)                                                                        \
    KB_COMPUTE(async, tl, .op = "cmp", .to = to_, .x = x_, .y = y_, .relation = is_)
#define KB_REDUCE(async, tl, op_, to_, x_, axis_)                                                                      \
    KB_COMPUTE(async, tl, .op = op_, .to = to_, .x = x_, .axis = axis_)

void tl_compute_at(struct tl *tl, const struct tl_compute *ask, const char *file, uint32_t line);
tl_handle tl_compute_async_at(struct tl *tl, const struct tl_compute *ask, const char *file, uint32_t line);
void tl_dot_at(struct tl *tl, struct tl_shard to, struct tl_shard a, struct tl_shard b, const char *file,
               uint32_t line);
tl_handle tl_dot_async_at(struct tl *tl, struct tl_shard to, struct tl_shard a, struct tl_shard b, const char *file,
                          uint32_t line);

#endif
