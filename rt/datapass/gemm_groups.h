/* gemm_groups.h: gemms that may be done at once, as few large grids (grid.h). */
#ifndef KB_BATCH_H
#define KB_BATCH_H

#include "gemm_blocks.h"

/* Parts gemms, of which none depends on another, into grids: those of one depth and one dtype of each operand that
 * share operands, as far as every combination of the operands of a grid is there. What comes out depends on the gemms
 * and their order alone. `sorted` has room for all of them, and is what the grids then point into; there are at most as
 * many grids as gemms. Returns how many. */
uint64_t batch(const struct gemm *const *gemm, uint64_t count, const struct gemm **sorted, struct grid *grids);

#endif
