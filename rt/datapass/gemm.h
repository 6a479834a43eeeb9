/* gemm.h: what a gemm does with its sums: epilogues, then rounding into C. */
#ifndef KB_GEMM_H
#define KB_GEMM_H

#include "elements.h"
#include "store/operation.h"

/* Rows and columns of C that have been summed up: C[row + i, column + j] = sum[i * pitch + j]. Sums are f32; those of
 * integers are i32, until an epilogue makes f32 of them. */
struct gemm_patch {
    const struct gemm *gemm;
    uint64_t row, rows, column, columns, pitch;
    union lane *sum;
    bool floats;
};

/* The epilogues of a k tile, on what has been summed up so far; those that follow all of k, then rounding into C. */
void gemm_k_tile_done(struct gemm_patch *patch);
void gemm_done(struct gemm_patch *patch);

/* Whether it has epilogues of k tiles: its sums are needed after each tile. */
bool gemm_has_k_tile_epilogue(const struct gemm *gemm);

/* Whether an op on i32 sums makes f32 of them, for a C of this dtype. */
bool gemm_epilogue_makes_floats(uint16_t op, enum dtype c);

/* Does a gemm on `base`, block after block; scratch as for gemm_block (gemm_blocks.h). */
void gemm_run(const struct gemm *gemm, void *scratch);

#endif
