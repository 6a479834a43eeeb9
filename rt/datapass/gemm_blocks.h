/* gemm_blocks.h: several gemms as one product, in blocks.
 *
 * OpenBLAS comes near its peak only with blocks of hundreds of rows and columns. The tiles that PEs multiply are smaller
 * but share their operands: rows of A with all columns of B, and the other way round. So gemms form a grid: each A, one
 * above the other, times each B, side by side. A gemm by itself is a grid of 1 x 1. */
#ifndef KB_GEMM_BLOCKS_H
#define KB_GEMM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/operation.h"

/* All gemms of a row have the same A, all of a column the same B; all have one depth and one dtype of each operand. Only
 * one by itself may have epilogues of k tiles. */
struct gemm_grid {
    uint32_t rows, columns;
    const struct gemm *const *gemm;                     /* [row * columns + column] */
    bool in_place;                                      /* one by itself may read what it writes */
};

enum { GEMM_BLOCK_ROWS = 1024 };                        /* at most */

/* The blocks of a grid follow from its shape alone and are independent of one another: several threads may do several at
 * once, on `base`, each with its own `scratch` of gemm_scratch_bytes, aligned to 64. All operands are within reach. */
extern const uint64_t gemm_scratch_bytes;
uint64_t gemm_blocks(const struct gemm_grid *grid);
void gemm_block(const struct gemm_grid *grid, uint64_t i, void *scratch);

#endif
