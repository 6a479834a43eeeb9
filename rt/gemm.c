/* gemm.c: what a gemm composite computes: blocks of C, each with all of k, then the epilogues, then rounding.
 *
 * f32, f16 and bf16 accumulate in f32. i8 is exact: products of a block's k fit f32's 24 bits, so sgemm gives whole
 * numbers, which add up in i32 and wrap there. The blocks depend on the shape alone, so the bits of a result do too. */
#include "blas.h"
#include "command.h"
#include "dtype.h"
#include "exec.h"
#include "plan.h"

enum { BLOCK = 1024, PART = BLOCK * BLOCK };            /* most rows, columns, k: 1024 * 2^7 * 2^7 = 2^24 */

const uint64_t exec_gemm_scratch_bytes = 4 * PART * sizeof(float);

/* A block of C under way. */
struct block {
    const struct gemm *gemm;
    uint64_t row, column, rows, columns;
    bool exact;
    float *a, *b;                                       /* packed, BLOCK x BLOCK at most */
    float *sum;                                         /* tight; what has been accumulated, or one product if exact */
    int32_t *exact_sum;
};

/* The part of a matrix as tight f32. */
static void pack(const struct view *m, uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, float *to)
{
    for (uint64_t i = 0; i < rows; i++)
        dtype_to_f32(m->dtype, view_at(IMAGE_BASE, m, row + i, column), to + i * columns, columns);
}

/* Adds the product of k indices [k, end). */
static void multiply(struct block *block, uint64_t k, uint64_t end)
{
    const struct gemm *g = block->gemm;
    uint64_t depth = end - k, m = block->rows, n = block->columns;
    pack(&g->a, block->row, m, k, depth, block->a);
    pack(&g->b, k, depth, block->column, n, block->b);
    blas_sgemm(m, n, depth, block->a, depth, block->b, n, block->exact || k == 0 ? 0 : 1, block->sum, n);
    if (!block->exact)
        return;
    for (uint64_t i = 0; i < m * n; i++) {
        uint32_t before = k == 0 ? 0 : (uint32_t)block->exact_sum[i];
        block->exact_sum[i] = (int32_t)(before + (uint32_t)(int32_t)block->sum[i]);
    }
}

/* ---- epilogues, on rows [row, rows) and columns [column, columns) of a block */

static void relu(struct block *block, uint64_t row, uint64_t column)
{
    for (uint64_t i = row; i < block->rows; i++)
        for (uint64_t j = column; j < block->columns; j++) {
            uint64_t at = i * block->columns + j;
            if (block->exact)
                block->exact_sum[at] = block->exact_sum[at] < 0 ? 0 : block->exact_sum[at];
            else
                block->sum[at] = block->sum[at] < 0 ? 0 : block->sum[at];
        }
}

static void bias(struct block *block, const struct view *row_of_n, uint64_t row, uint64_t column)
{
    for (uint64_t j = column; j < block->columns; j++) {
        double x = dtype_value(row_of_n->dtype, view_at(IMAGE_BASE, row_of_n, 0, block->column + j));
        for (uint64_t i = row; i < block->rows; i++) {
            uint64_t at = i * block->columns + j;
            if (block->exact)
                block->exact_sum[at] = (int32_t)((uint32_t)block->exact_sum[at] + (uint32_t)(int32_t)x);
            else
                block->sum[at] += (float)x;
        }
    }
}

static void epilogues(struct block *block, enum scope scope)
{
    const struct gemm *g = block->gemm;
    uint64_t row = 0, column = 0;
    if (scope == SCOPE_ONCE) {                          /* the last tile alone */
        uint64_t last_row = (g->c.shape[0] - 1) / g->tile_m * g->tile_m;
        uint64_t last_column = (g->c.shape[1] - 1) / g->tile_n * g->tile_n;
        row = last_row > block->row ? last_row - block->row : 0;
        column = last_column > block->column ? last_column - block->column : 0;
    }
    for (uint32_t i = 0; i < g->epilogues; i++) {
        const struct gemm_epilogue *e = &g->epilogue[i];
        if (e->scope != scope)
            continue;
        if (e->op == OP_relu)
            relu(block, row, column);
        else
            bias(block, &e->operand, row, column);
    }
}

/* ---- a block, and all of them */

static bool has_k_tile(const struct gemm *g)
{
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].scope == SCOPE_K_TILE)
            return true;
    return false;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void compute(struct block *block)
{
    const struct gemm *g = block->gemm;
    uint64_t depth = g->a.shape[1], tile = has_k_tile(g) ? g->tile_k : depth;
    for (uint64_t k = 0, end; k < depth; k = end) {
        uint64_t tile_end = least(depth - k, tile - k % tile) + k;
        end = least(tile_end, k + BLOCK);
        multiply(block, k, end);
        if (end == tile_end)
            epilogues(block, SCOPE_K_TILE);
    }
    epilogues(block, SCOPE_OUTPUT_TILE);
    epilogues(block, SCOPE_ONCE);
    for (uint64_t i = 0; i < block->rows; i++) {
        void *to = view_at(IMAGE_BASE, &g->c, block->row + i, block->column);
        if (block->exact)
            dtype_from_i32(g->c.dtype, block->exact_sum + i * block->columns, to, block->columns);
        else
            dtype_from_f32(g->c.dtype, block->sum + i * block->columns, to, block->columns);
    }
}

void exec_gemm_reach(const struct gemm *g)
{
    view_reach(IMAGE_BASE, &g->a);
    view_reach(IMAGE_BASE, &g->b);
    view_reach(IMAGE_BASE, &g->c);
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].has_operand)
            view_reach(IMAGE_BASE, &g->epilogue[i].operand);
}

static uint64_t blocks_across(const struct gemm *g)
{
    return (g->c.shape[1] + BLOCK - 1) / BLOCK;
}

uint64_t exec_gemm_blocks(const struct gemm *g)
{
    return (g->c.shape[0] + BLOCK - 1) / BLOCK * blocks_across(g);
}

void exec_gemm_block(const struct gemm *g, uint64_t i, void *scratch)
{
    float *part = scratch;
    uint64_t row = i / blocks_across(g) * BLOCK, column = i % blocks_across(g) * BLOCK;
    struct block block = {.gemm = g, .row = row, .column = column, .rows = least(BLOCK, g->c.shape[0] - row),
                          .columns = least(BLOCK, g->c.shape[1] - column), .exact = !dtype_is_float(g->a.dtype),
                          .a = part, .b = part + PART, .sum = part + 2 * PART,
                          .exact_sum = (int32_t *)(part + 3 * PART)};
    compute(&block);
}

void exec_gemm(const struct gemm *g, void *scratch)
{
    exec_gemm_reach(g);
    for (uint64_t i = 0; i < exec_gemm_blocks(g); i++)
        exec_gemm_block(g, i, scratch);
}
