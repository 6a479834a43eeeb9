/* gemm_groups.h: which gemms can be done at once, as few large grids (gemm_blocks.h). */
#ifndef KB_GEMM_GROUPS_H
#define KB_GEMM_GROUPS_H

#include "gemm_blocks.h"

/* Partitions gemms that are independent of one another into grids: of one depth and one dtype of each operand, as large
 * as every combination of the operands occurs. The result follows from the gemms and their order alone. `sorted` and
 * `grids` have space for `count` each; the grids point into `sorted`. Returns the number of grids. */
uint64_t gemm_groups(const struct gemm *const *gemm, uint64_t count, const struct gemm **sorted,
                     struct gemm_grid *grids);

#endif
