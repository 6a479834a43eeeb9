/* gemm_blocks.h: gemms as one product: every combination of a few A, one above the other, with a few B, side by side.
 *
 * OpenBLAS comes near its peak only with blocks of hundreds of rows and columns. Tiles that several PEs multiply are
 * smaller, but share their operands: rows of A with all columns of B, and the other way round. A gemm by itself is a
 * grid of 1 x 1. */
#ifndef KB_GRID_H
#define KB_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "store/operation.h"

/* All have one depth and one dtype of each operand; only one by itself may have epilogues of k tiles. Those of a row
 * have the same A, those of a column the same B. */
struct grid {
    uint32_t rows, columns;
    const struct gemm *const *gemm;                     /* [row * columns + column] */
};

/* Rows and columns of C that have been summed up, for its epilogues: C[row + i, column + j] = sum[i * pitch + j]. */
struct patch {
    const struct gemm *gemm;
    uint64_t row, rows, column, columns, pitch;
    bool exact;                                         /* whole numbers, in exact_sum; else f32, in sum */
    float *sum;
    int32_t *exact_sum;
};

/* The C of a grid are made in blocks, which depend on its shape alone and on one another not at all: several threads
 * may do several at once, on `base`, each with `scratch` of its own of so many bytes, aligned to 64. All operands are
 * within reach before. */
enum { GRID_ROWS = 1024 };                              /* of a block, at most */
extern const uint64_t grid_scratch_bytes;
uint64_t grid_blocks(const struct grid *grid);
void grid_block(const struct grid *grid, uint64_t i, void *scratch);

/* Whether a gemm can only be a grid by itself: it has epilogues of k tiles. */
bool gemm_is_alone(const struct gemm *gemm);

/* The epilogues of k tiles, on what has been summed up; those that follow all of k, then rounding into C: gemm.c. */
void gemm_k_tile_done(struct patch *patch);
void gemm_done(struct patch *patch);

#endif
