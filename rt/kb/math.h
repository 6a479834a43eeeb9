/* math.h: the device side: simple compute, one op on tensors in this PE's TCM. Part of <kb/tl.h>.
 *
 * A call is one command of pe_math, for as many elements as the result has, or the operand of a reduction, with the
 * lanes of the larger one of both dtypes. All operands and the result are shards in this PE's TCM, with any strides.
 *
 * Shapes: an operand has the result's shape, or one of fewer axes or of sizes of 1 that is repeated along them, counted
 * from the last axis: of a result of m x n that is a row of n, a column of m x 1, one element, or a number,
 * tl_number(0.5), which only the last operand can be. A result may be one of its operands, but not overlap them
 * otherwise.
 *
 * dtypes: floats are computed in f32 and rounded to the result's dtype, to nearest even; integers in i32, and wrap to
 * the result's dtype. Operands and result may be of several float dtypes, or of several integer dtypes, but not of
 * both. NaN is kept; min and max of a NaN and anything are NaN, and -0 is below 0.
 *
 * The calls block until the command is done; those of tl_compute_async give a handle at once. Results are pending until
 * the data pass. KERNEL_ERROR: an op that is unknown or not defined on these dtypes, an operand too many or too few, a
 * shape that does not fit, a buffer that is not in this PE's TCM, a result over a part of an operand, a dtype that
 * pe_math has no lanes for; BAD_ADDRESS: outside the TCM, in its reserved region, or not aligned to the dtype. */
#ifndef KB_MATH_H
#define KB_MATH_H

/* ---- the gemm of one command, and any op */

/* to = a b, of matrices m x k and k x n, in one command of pe_gemm; one that is transposed is a shard with its strides
 * exchanged. a and b have one dtype: f32, f16, bf16 (accumulated in f32) or i8 (in i32); `to` is of any dtype, rounded
 * to nearest even and saturated. Faults as those of the ops; `to` does not overlap a or b at all. */
#define tl_dot(tl, to, a, b) tl_dot_at(tl, to, a, b, __FILE__, __LINE__)
#define tl_dot_async(tl, to, a, b) tl_dot_async_at(tl, to, a, b, __FILE__, __LINE__)

enum tl_relation { TL_EQ, TL_NE, TL_LT, TL_LE, TL_GT, TL_GE };

/* An op with its operands in the order in which they are listed below; those that it does not have are left out. */
struct tl_compute {
    const char *op;
    struct tl_shard to, x, y, z;
    enum tl_relation relation;                          /* of cmp */
    int axis;                                           /* of a reduction; -1 is the last */
};

/* tl_compute(tl, &(struct tl_compute){.op = "exp", .to = y, .x = x}): any op. */
#define tl_compute(tl, ...) tl_compute_at(tl, __VA_ARGS__, __FILE__, __LINE__)
#define tl_compute_async(tl, ...) tl_compute_async_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* A number as an operand: in f32 for floats; of integers it has to be a whole number of i32. */
static inline struct tl_shard tl_number(double number)
{
    struct tl_shard shard = {.dtype = KB_DTYPES};
    __builtin_memcpy(&shard.addr, &number, sizeof number);
    return shard;
}

/* to = op(x), element by element. Of floats and integers: copy, neg, abs, relu. Of floats: gelu is x/2 (1 + erf(x /
 * sqrt 2)), silu is x sigmoid(x), tl_ln is op "log". */
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

/* to = op(x, y), element by element. An integer quotient is rounded towards 0, and 0 where y is. */
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

/* x + row; x * factor, which is a row, one element or a number. */
#define tl_bias(tl, to, x, row) KB_BINARY(, tl, "bias", to, x, row)
#define tl_scale(tl, to, x, factor) KB_BINARY(, tl, "scale", to, x, factor)
#define tl_bias_async(tl, to, x, row) KB_BINARY(_async, tl, "bias", to, x, row)
#define tl_scale_async(tl, to, x, factor) KB_BINARY(_async, tl, "scale", to, x, factor)

/* An op of two operands by its name. */
#define tl_math(tl, op, to, x, y) KB_BINARY(, tl, op, to, x, y)
#define tl_math_async(tl, op, to, x, y) KB_BINARY(_async, tl, op, to, x, y)

/* to, which is u8, is 1 where x and y stand in a relation, else 0: tl_cmp(tl, mask, x, TL_LT, y). With a NaN it is 0,
 * but for TL_NE. */
#define tl_cmp(tl, to, x, is, y) KB_COMPARE(, tl, to, x, is, y)
#define tl_cmp_async(tl, to, x, is, y) KB_COMPARE(_async, tl, to, x, is, y)

/* to = x where c, which is u8, is not 0, else y. */
#define tl_where(tl, to, c, x, y) KB_TERNARY(, tl, "where", to, c, x, y)
#define tl_where_async(tl, to, c, x, y) KB_TERNARY(_async, tl, "where", to, c, x, y)

/* x in the dtype of `to`, whatever both are: to a float rounded to nearest even, to an integer likewise, and saturated;
 * NaN becomes 0. */
#define tl_cast(tl, to, x) KB_UNARY(, tl, "cast", to, x)
#define tl_cast_async(tl, to, x) KB_UNARY(_async, tl, "cast", to, x)

/* x / scale in f32, rounded to nearest even and saturated, in an integer dtype; x * scale in f32, in a float dtype. x
 * is of any dtype; the scale is a float: a row, one element or a number. */
#define tl_quant(tl, to, x, scale) KB_BINARY(, tl, "quant", to, x, scale)
#define tl_dequant(tl, to, x, scale) KB_BINARY(, tl, "dequant", to, x, scale)
#define tl_quant_async(tl, to, x, scale) KB_BINARY(_async, tl, "quant", to, x, scale)
#define tl_dequant_async(tl, to, x, scale) KB_BINARY(_async, tl, "dequant", to, x, scale)

/* One element of `to` for all of x along an axis: `to` has x's shape with a size of 1 there, or without that axis; of a
 * single axis, one element. Floats are added in pairs, then pairs of pairs, in f32; integers in i32, and their mean is
 * rounded towards 0. */
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
