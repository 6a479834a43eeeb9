/* composite.h: the device library: composites, whose tiles flow through the PE's engines. Part of <kb/tl.h>. */
#ifndef KB_COMPOSITE_H
#define KB_COMPOSITE_H

/* The axes over which the rows of a matrix run, and its columns, the last axis fastest. Axes of size 0 are left out.
 * Strides count elements. An element may be in several rows and columns. */
enum { TL_AXES = 3 };

struct tl_axis {
    uint64_t size, stride;
};

struct tl_axes {
    struct tl_axis row[TL_AXES], col[TL_AXES];
};

/* A matrix that a composite reads or writes: row-major, with `ld` elements from row to row. If transposed, element (i,
 * j) lies at element i of row j. Only a and b of a gemm can be transposed; it changes their data, not their time. */
struct tl_operand {
    uint64_t addr, ld;                                  /* ld 0: no gaps between rows */
    uint64_t rows, cols;                                /* the shape; at least what the composite needs; 0: that */
    double number;                                      /* if is_number */
    const struct tl_axes *axes;                         /* tl_in_axes; else NULL */
    uint64_t span;                                      /* with axes: the elements from addr on that they may reach */
    uint8_t dtype;
    bool transposed, is_virtual, is_number;
    bool unfit;                                         /* made of a shard that is not such a matrix: KERNEL_ERROR */
};

/* An operand from a shard: a row, for a shard of one axis; a matrix whose rows or columns have consecutive elements; or
 * a number (tl_number), where one is allowed. */
static inline struct tl_operand tl_in(struct tl_shard shard)
{
    struct tl_operand operand = {.addr = shard.addr, .dtype = shard.dtype, .is_virtual = shard.is_virtual};
    bool matrix = shard.rank == 2;
    if (shard.rank == 0 && shard.dtype == KB_DTYPES) {
        operand.is_number = true;
        __builtin_memcpy(&operand.number, &shard.addr, sizeof operand.number);
        return operand;
    }
    operand.rows = matrix ? shard.shape[0] : 1;
    operand.cols = matrix ? shard.shape[1] : shard.shape[0];
    operand.transposed = matrix && shard.stride[1] != 1 && shard.stride[0] == 1 && operand.cols > 1;
    operand.ld = !matrix ? 0 : shard.stride[operand.transposed ? 1 : 0];
    operand.unfit = shard.rank < 1 || shard.rank > 2;
    if (!operand.transposed && operand.cols > 1)
        operand.unfit |= shard.stride[matrix ? 1 : 0] != 1;
    if (matrix && (operand.transposed ? operand.cols : operand.rows) == 1)
        operand.ld = 0;                                 /* the stride of a single row does not matter */
    return operand;
}

static inline struct tl_operand tl_out(struct tl_shard shard)
{
    return tl_in(shard);
}

/* An operand of elements of a shard, from its first one on, with axes of its own, as the patches of a convolution are:
 *     struct tl_axes patches = {.row = {{oh, stride * w * c}, {ow, stride * c}}, .col = {{kh, w * c}, {kw * c, 1}}};
 *     .a = tl_in_axes(x, &patches), .pin_a = true
 * Only a and b of a gemm can have axes; they lie in this PE's TCM and are pinned. Their time is that of any pinned
 * operand: an element is fetched once for each place of a tile that it is in. */
static inline struct tl_operand tl_in_axes(struct tl_shard shard, const struct tl_axes *axes)
{
    struct tl_operand operand = {.addr = shard.addr, .dtype = shard.dtype, .is_virtual = shard.is_virtual, .axes = axes,
                                 .span = 1};
    operand.unfit = shard.rank < 1 || shard.rank > KB_RANK;
    for (uint32_t axis = 0; axis < KB_RANK && axis < shard.rank; axis++) {
        operand.span += (shard.shape[axis] - 1) * shard.stride[axis];
        operand.unfit |= shard.shape[axis] == 0;
    }
    return operand;
}

enum tl_op { TL_GEMM, TL_MATH };

/* When an epilogue is applied: to each finished output tile, before it is rounded and stored, which is also what an
 * epilogue without a scope means; to the accumulator after each k tile; to the last output tile only. */
enum tl_scope { TL_OUTPUT_TILE, TL_K_TILE, TL_ONCE };

/* An op on the accumulator x of a gemm, which is f32, or i32 for i8. Its name is one of
 *   an op of one operand in <kb/ops.def>, such as relu or gelu: no operand; some are only for floats;
 *   one of two operands, such as add or max: an operand of m x n, a row of n, a column of m, one element or a number;
 *   bias (bias_add): a row of n;  scale: a row of n, one element or a number;
 *   quant: x / scale, rounded to even and saturated to c's dtype, an integer;  dequant: x * scale in f32; both take a
 *     row of n, one element or a number;
 *   cast: x rounded to c's dtype.
 * quant, dequant and a cast to a float turn the i32 of an i8 gemm into f32, for all of c, so their scope must be
 * TL_OUTPUT_TILE. */
struct tl_epilogue {
    const char *op;
    enum tl_scope scope;
    struct tl_operand operand;                          /* not all zero; it takes no time to move */
};

enum { TL_EPILOGUES = 8 };

/* A gemm: c = a b, for matrices of m x k and k x n, then the epilogues: first those of TL_K_TILE, then of TL_OUTPUT_TILE,
 * then of TL_ONCE, in the order of the list. a and b have the same dtype: f32, f16 or bf16, accumulated in f32, or i8,
 * accumulated exactly in i32. c has any dtype; it is rounded to nearest even and saturated.
 *
 * Math: dst = math(src) or math(src, src2) on m x n elements, with the names and dtypes of <kb/math.h>: the elementwise
 * ops of one or two operands. src2 is m x n, a row of n, a column of m, one element or a number, and takes no time to
 * move. Set k, tile[2] and the epilogues to 0. */
struct tl_composite {
    enum tl_op op;
    uint64_t m, k, n;                                   /* math: m and n */
    uint64_t tile[3];                                   /* m, k, n; math: m, n */
    struct tl_operand a, b, c;
    bool pin_a, pin_b;                                  /* the operand lies in this PE's TCM: no DMA */
    struct tl_epilogue epilogue[TL_EPILOGUES];
    uint32_t epilogues;
    const char *math;
    enum tl_relation relation;                          /* if math is "cmp" */
    struct tl_operand src, src2, dst;
};

/* Submits a composite and returns its handle; does not block until it is complete. The result is pending until the data
 * pass.
 *
 * Data are where the leading dimension says. The timing moves the tiles of an operand as consecutive blocks from its
 * address on: the same number of bytes, within those that the rows span.
 *
 * KERNEL_ERROR: a size or tile that is 0 or above 2^40 - 1; a leading dimension below the length of a row; a shard that
 * is smaller than the matrix; axes whose sizes are not those of the matrix, or that reach beyond their shard; axes of an
 * operand that is not a or b of a gemm, not pinned, at a virtual address, transposed or with a leading dimension; a dtype,
 * op, scope or operand that is not defined; more than TL_EPILOGUES epilogues, or any for math; a pinned operand that is not
 * in this PE's TCM; a result that overlaps an operand (math: unless it is the same matrix); an engine that lacks the dtype
 * or the op. BAD_ADDRESS: outside a memory, or not aligned to the dtype. PAGE_FAULT: a page that is not mapped: of an operand that the DMA does not
 * move, or that has gaps, at the call, of others when the DMA translates it. TILE_TOO_LARGE: the buffers of a tile do not
 * fit into the region of the TCM that the scheduler reserves. */
#define tl_composite(tl, ...) tl_composite_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* ---- what the macros call */

tl_handle tl_composite_at(struct tl *tl, const struct tl_composite *ask, const char *file, uint32_t line);

#endif
