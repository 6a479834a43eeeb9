/* gemm_blocks.c: the blocks of a grid of gemms: operands are packed as f32, multiplied in slices of k, and added up. Small
 * gemms of f32 by themselves are multiplied where they lie.
 *
 * f32, f16 and bf16 accumulate in f32. i8 is exact: the sums of a slice fit f32's 24 bits, so sgemm's results are
 * integers, which are added up in i32 and wrap there. */
#include "gemm_blocks.h"

#include "base/dtype.h"
#include "blas.h"
#include "gemm.h"
#include "kb/arith.h"
#include "machine/tiling.h"

enum { ROWS = GEMM_BLOCK_ROWS, COLUMNS = 2048 };              /* of a block */
enum { DEPTH = 384 };                                   /* of a slice: DEPTH * 2^7 * 2^7 < 2^24 */
enum { PAD = 16, PITCH = COLUMNS + PAD };               /* rows a power of two apart would share cache sets */

const uint64_t gemm_scratch_bytes = (ROWS * DEPTH + DEPTH * PITCH + 2 * ROWS * PITCH) * sizeof(float);

/* A block under way. Rows are counted over all A, one above the other; columns over all B, side by side. */
struct gemm_block {
    const struct gemm_grid *grid;
    uint64_t row, rows, column, columns;
    uint64_t pitch;                                     /* of a row of b and of sum */
    bool exact, in_c;                                   /* in_c: the sum is C itself */
    float *a, *b;                                       /* packed: at most rows x DEPTH, DEPTH x columns; of B that lies
                                                           column after column, columns x DEPTH */
    float *sum;                                         /* what has been accumulated; of integers, one slice's product */
    int32_t *exact_sum;                                 /* of integers: what has been accumulated */
};

static const struct view *a_of(const struct gemm_grid *grid, uint32_t row)
{
    return &grid->gemm[(uint64_t)row * grid->columns]->a;
}

static const struct view *b_of(const struct gemm_grid *grid, uint32_t column)
{
    return &grid->gemm[column]->b;
}

/* ---- which part of an operand is in a block */

struct overlap {
    uint64_t first, count;                              /* in the operand */
    uint64_t at;                                        /* in the block */
};

/* Of an operand at [start, start + count) of the grid: the part in [from, from + limit). */
static struct overlap overlap_of(uint64_t start, uint64_t count, uint64_t from, uint64_t limit)
{
    uint64_t first = from > start ? from - start : 0, end = from + limit < start ? 0 : from + limit - start;
    end = kb_min(end, count);
    return (struct overlap){first, end > first ? end - first : 0, start + first - from};
}

static struct overlap rows_of(const struct gemm_block *block, uint64_t start, const struct view *a)
{
    return overlap_of(start, a->shape[0], block->row, block->rows);
}

static struct overlap columns_of(const struct gemm_block *block, uint64_t start, const struct view *b)
{
    return overlap_of(start, b->shape[1], block->column, block->columns);
}

/* ---- the sum */

enum { SQUARE = 64 };                                   /* elements that are transposed at a time */

/* Packs part of a matrix whose rows are not contiguous; its columns may be. */
static void pack_square(const struct view *m, uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, float *to,
                        uint64_t pitch)
{
    float piece[SQUARE];
    for (uint64_t j = 0; j < columns; j++) {
        if (m->stride[0] == 1)
            dtype_to_f32(m->dtype, view_at(m, row, column + j), piece, rows);
        for (uint64_t i = 0; i < rows; i++) {
            if (m->stride[0] != 1)
                dtype_to_f32(m->dtype, view_at(m, row + i, column + j), piece + i, 1);
            to[i * pitch + j] = piece[i];
        }
    }
}

static void pack(const struct view *m, uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, float *to,
                 uint64_t pitch)
{
    if (rows > 0 && columns > 0 && (m->stride[1] == 1 || columns == 1)) {
        const uint8_t *from = view_at(m, row, column);
        uint64_t step = m->stride[0] * dtype_bytes[m->dtype];
        for (uint64_t i = 0; i < rows; i++)
            dtype_to_f32(m->dtype, from + i * step, to + i * pitch, columns);
        return;
    }
    for (uint64_t i = 0; i < rows; i += SQUARE)
        for (uint64_t j = 0; j < columns; j += SQUARE)
            pack_square(m, row + i, kb_min(SQUARE, rows - i), column + j, kb_min(SQUARE, columns - j),
                        to + i * pitch + j, pitch);
}

/* Packs all B side by side, a few rows of each in turn, so that the writes are contiguous. */
static void pack_b(const struct gemm_block *block, uint64_t k, uint64_t depth)
{
    const struct gemm_grid *grid = block->grid;
    uint64_t step = b_of(grid, 0)->stride[1] == 1 ? 8 : SQUARE;
    for (uint64_t done = 0; done < depth; done += step) {
        uint64_t start = 0, rows = kb_min(step, depth - done);
        for (uint32_t i = 0; i < grid->columns; start += b_of(grid, i++)->shape[1]) {
            struct overlap part = columns_of(block, start, b_of(grid, i));
            pack(b_of(grid, i), k + done, rows, part.first, part.count, block->b + done * block->pitch + part.at,
                 block->pitch);
        }
    }
}

/* Whether all B lie column after column, as the weights of a layer are kept. */
static bool has_columns(const struct gemm_grid *grid)
{
    bool all = true;
    for (uint32_t i = 0; i < grid->columns; i++)
        all &= b_of(grid, i)->stride[0] == 1 && b_of(grid, i)->stride[1] != 1;
    return all;
}

/* Packs them column after column. */
static void pack_columns(const struct gemm_block *block, uint64_t k, uint64_t depth)
{
    const struct gemm_grid *grid = block->grid;
    uint64_t start = 0;
    for (uint32_t i = 0; i < grid->columns; start += b_of(grid, i++)->shape[1]) {
        const struct view *b = b_of(grid, i);
        struct overlap part = columns_of(block, start, b);
        for (uint64_t j = 0; j < part.count; j++)
            dtype_to_f32(b->dtype, view_at(b, k, part.first + j), block->b + (part.at + j) * depth, depth);
    }
}

static void pack_a(const struct gemm_block *block, uint64_t k, uint64_t depth)
{
    const struct gemm_grid *grid = block->grid;
    uint64_t start = 0;
    for (uint32_t i = 0; i < grid->rows; start += a_of(grid, i++)->shape[0]) {
        struct overlap part = rows_of(block, start, a_of(grid, i));
        pack(a_of(grid, i), part.first, part.count, k, depth, block->a + part.at * depth, depth);
    }
}

/* Whether rows of a matrix can be multiplied as they are: floats without gaps in them, of a matrix small enough for the
 * distance of its rows not to matter. */
static bool is_ready(const struct gemm_grid *grid, const struct view *m)
{
    enum { SMALL = 1 << 16 };
    return grid->rows == 1 && grid->columns == 1 && m->dtype == DTYPE_f32 && m->stride[1] == 1 &&
           m->stride[0] >= m->shape[1] && m->shape[0] * m->stride[0] <= SMALL;
}

/* Adds the product of the slice [k, end). */
static void multiply(struct gemm_block *block, uint64_t k, uint64_t end)
{
    uint64_t depth = end - k, m = block->rows, n = block->columns, a_pitch = depth, b_pitch = block->pitch;
    const struct view *of_a = a_of(block->grid, 0), *of_b = b_of(block->grid, 0);
    const float *a = block->a, *b = block->b;
    bool by_columns = has_columns(block->grid);
    if (is_ready(block->grid, of_a)) {
        a = view_at(of_a, block->row, k);
        a_pitch = of_a->stride[0];
    } else {
        pack_a(block, k, depth);
    }
    if (is_ready(block->grid, of_b)) {
        b = view_at(of_b, k, block->column);
        b_pitch = of_b->stride[0];
    } else if (by_columns) {
        pack_columns(block, k, depth);
        b_pitch = depth;
    } else {
        pack_b(block, k, depth);
    }
    (by_columns ? blas_sgemm_transposed : blas_sgemm)(m, n, depth, a, a_pitch, b, b_pitch, block->exact || k == 0 ? 0 : 1,
                                                      block->sum, block->pitch);
    if (!block->exact)
        return;
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = i * block->pitch; j < i * block->pitch + n; j++) {
            uint32_t before = k == 0 ? 0 : (uint32_t)block->exact_sum[j];
            block->exact_sum[j] = (int32_t)(before + (uint32_t)(int32_t)block->sum[j]);
        }
}

/* ---- the patch of each gemm in a block */

static void each_patch(const struct gemm_block *block, void (*f)(struct gemm_patch *patch))
{
    const struct gemm_grid *grid = block->grid;
    uint64_t row = 0, column;
    for (uint32_t i = 0; i < grid->rows; row += a_of(grid, i++)->shape[0]) {
        struct overlap rows = rows_of(block, row, a_of(grid, i));
        column = 0;
        for (uint32_t j = 0; j < grid->columns && rows.count > 0; column += b_of(grid, j++)->shape[1]) {
            struct overlap columns = columns_of(block, column, b_of(grid, j));
            uint64_t at = rows.at * block->pitch + columns.at;
            struct gemm_patch patch = {.gemm = grid->gemm[(uint64_t)i * grid->columns + j], .row = rows.first,
                                  .rows = rows.count, .column = columns.first, .columns = columns.count,
                                  .pitch = block->pitch, .floats = !block->exact,
                                  .sum = block->exact ? (union lane *)(block->exact_sum + at)
                                                      : (union lane *)(block->sum + at)};
            if (columns.count > 0)
                f(&patch);
        }
    }
}

static void compute(struct gemm_block *block)
{
    const struct gemm *g = block->grid->gemm[0];
    uint64_t depth = g->a.shape[1], tile = gemm_has_k_tile_epilogue(g) ? g->tile_k : depth;
    for (uint64_t k = 0, end; k < depth; k = end) {
        uint64_t tile_end = kb_min(depth - k, tile - k % tile) + k;
        end = kb_min(tile_end, k + DEPTH);
        multiply(block, k, end);
        if (end == tile_end)
            each_patch(block, gemm_k_tile_done);
    }
    if (!block->in_c)
        each_patch(block, gemm_done);
}

/* ---- the blocks of a grid */

static uint64_t all_rows(const struct gemm_grid *grid)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < grid->rows; i++)
        rows += a_of(grid, i)->shape[0];
    return rows;
}

static uint64_t all_columns(const struct gemm_grid *grid)
{
    uint64_t columns = 0;
    for (uint32_t i = 0; i < grid->columns; i++)
        columns += b_of(grid, i)->shape[1];
    return columns;
}

static uint64_t blocks_across(const struct gemm_grid *grid)
{
    return (all_columns(grid) + COLUMNS - 1) / COLUMNS;
}

uint64_t gemm_blocks(const struct gemm_grid *grid)
{
    return (all_rows(grid) + ROWS - 1) / ROWS * blocks_across(grid);
}

void gemm_block(const struct gemm_grid *grid, uint64_t i, void *scratch)
{
    float *a = scratch, *b = a + ROWS * DEPTH, *sum = b + DEPTH * PITCH;
    uint64_t row = i / blocks_across(grid) * ROWS, column = i % blocks_across(grid) * COLUMNS;
    struct gemm_block block = {.grid = grid, .row = row, .column = column, .rows = kb_min(ROWS, all_rows(grid) - row),
                          .columns = kb_min(COLUMNS, all_columns(grid) - column),
                          .exact = !dtype_is_float(grid->gemm[0]->a.dtype), .a = a, .b = b, .sum = sum,
                          .exact_sum = (int32_t *)(sum + ROWS * PITCH)};
    const struct gemm *g = grid->gemm[0];
    block.pitch = block.columns + PAD;
    if (is_ready(grid, &g->c) && is_ready(grid, &g->b) && g->epilogues == 0 && !grid->in_place) {
        block.in_c = true;
        block.sum = view_at(&g->c, row, column);
        block.pitch = g->c.stride[0];
    }
    compute(&block);
}
