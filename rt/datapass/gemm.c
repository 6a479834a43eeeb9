/* gemm.c: what a gemm does with its sums: the epilogues, then rounding. */
#include "exec.h"
#include "gemm_epilogue.h"
#include "gemm_blocks.h"

bool gemm_is_alone(const struct gemm *g)
{
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].scope == SCOPE_K_TILE)
            return true;
    return false;
}

void gemm_k_tile_done(struct patch *patch)
{
    struct values values = values_of(patch);
    gemm_epilogues(&values, SCOPE_K_TILE);
}

void gemm_done(struct patch *patch)
{
    const struct view *c = &patch->gemm->c;
    struct values values = values_of(patch);
    gemm_epilogues(&values, SCOPE_OUTPUT_TILE);
    gemm_epilogues(&values, SCOPE_ONCE);
    for (uint64_t i = 0; i < patch->rows; i++) {
        uint64_t element = (patch->row + i) * c->stride[0] + patch->column * c->stride[1];
        struct elements line = elements_of(c, element, c->stride[1]);
        elements_store(&line, values.floats, false, values.at + i * patch->pitch, patch->columns);
    }
}

/* ---- one by itself */

static void reach(const struct gemm *g)
{
    view_reach(IMAGE_BASE, &g->a);
    view_reach(IMAGE_BASE, &g->b);
    view_reach(IMAGE_BASE, &g->c);
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].has_operand)
            view_reach(IMAGE_BASE, &g->epilogue[i].operand);
}

void exec_gemm(const struct gemm *g, void *scratch)
{
    struct grid grid = {1, 1, &g};
    reach(g);
    for (uint64_t i = 0; i < grid_blocks(&grid); i++)
        grid_block(&grid, i, scratch);
}
