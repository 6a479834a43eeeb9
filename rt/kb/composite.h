/* composite.h: the device side: composites, whose tiles flow through the PE's engines. Part of <kb/tl.h>. */
#ifndef KB_COMPOSITE_H
#define KB_COMPOSITE_H

/* A matrix as a composite reads or writes it: row-major, `ld` elements from row to row (0: tight). Transposed: element
 * (i, j) lies where row j has its element i; for a and b of a gemm alone, and their data alone: time is as without. */
struct tl_operand {
    uint64_t addr, ld;
    uint64_t rows, cols;                                /* at most what the composite needs; 0: as much as it does */
    double number;                                      /* if it is a number */
    uint8_t dtype;
    bool transposed, is_virtual, is_number;
    bool unfit;                                         /* made of a shard that is no such matrix: KERNEL_ERROR */
};

/* A shard of one axis, which is a row, or of two, whose rows or columns have no gaps between elements; or a number. */
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
        operand.ld = 0;                                 /* of a single row no stride matters */
    return operand;
}

static inline struct tl_operand tl_out(struct tl_shard shard)
{
    return tl_in(shard);
}

enum tl_op { TL_GEMM, TL_MATH };

/* When an epilogue works: on the accumulator after each k tile; on each finished output tile, before it is rounded and
 * stored; on the last tile only. */
enum tl_scope { TL_K_TILE, TL_OUTPUT_TILE, TL_ONCE };

/* An op on what a gemm has summed up, x: in f32, or of i8 in i32. Of one operand: copy, neg, abs, relu, and on floats
 * exp, log, sqrt, rsqrt, recip, tanh, sigmoid, gelu, silu. Of two: add, sub, mul, div, max, min with m x n, with a row
 * of n, a column of m or one element; bias (bias_add) with a row; scale with a row or one element. quant and dequant
 * with a row or one element: x / scale, rounded to even and saturated in c's dtype, which is an integer; x * scale in
 * f32. cast: x as c's dtype holds it. quant, dequant and a cast to a float make f32 of an i8 gemm's i32; they, before
 * others, are of the scope TL_OUTPUT_TILE. */
struct tl_epilogue {
    const char *op;
    enum tl_scope scope;
    struct tl_operand operand;                          /* the second one, not all zero; the timing does not move it */
};

enum { TL_EPILOGUES = 8 };

/* A gemm: C[m, n] = A[m, k] B[k, n], then the epilogues. a and b have one dtype, f32, f16, bf16 (accumulated in f32) or
 * i8 (exactly, in i32); c may have another one: rounded to nearest even, saturated.
 * Math: dst = math(src) or math(src, src2), element by element, with the dtypes and names of <kb/math.h>: all ops but
 * where. src2 is of m x n, a row, a column, one element or a number, as there, not all zero, and moves no bytes in the
 * timing. */
struct tl_composite {
    enum tl_op op;
    uint64_t m, k, n;                                   /* of math: m, n */
    uint64_t tile[3];                                   /* m, k, n; of math: m, n */
    struct tl_operand a, b, c;
    bool pin_a, pin_b;                                  /* the operand lies in this PE's TCM and stays: no DMA for it */
    struct tl_epilogue epilogue[TL_EPILOGUES];
    uint32_t epilogues;
    const char *math;
    enum tl_relation relation;                          /* of cmp */
    struct tl_operand src, src2, dst;
};

/* Submits a composite; never blocks for it. Its result is pending until the data pass.
 * The data are where the leading dimension puts them. The timing moves an operand's tiles as blocks that lie one after
 * the other, without gaps, from its address on: as many bytes, within those that the rows span.
 * KERNEL_ERROR: a size or tile of 0, a leading dimension below the row, a shard smaller than what is computed, a dtype
 * or op that is not defined, epilogues of math, a pinned operand outside the TCM, a result that lies where an operand
 * does (of math: but for being just that); BAD_ADDRESS: outside a memory, or not aligned to the dtype; PAGE_FAULT: a
 * second operand on pages that are not mapped; TILE_TOO_LARGE. */
#define tl_composite(tl, ...) tl_composite_at(tl, __VA_ARGS__, __FILE__, __LINE__)

/* ---- what the macros call */

tl_handle tl_composite_at(struct tl *tl, const struct tl_composite *ask, const char *file, uint32_t line);

#endif
