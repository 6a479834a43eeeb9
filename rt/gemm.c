/* gemm.c: what a gemm composite does with its sums: the epilogues, then rounding. */
#include "grid.h"

#include "command.h"
#include "dtype.h"
#include "exec.h"
#include "plan.h"

/* ---- epilogues, on rows [row, rows) and columns [column, columns) of a patch */

static void relu(struct patch *patch, uint64_t row, uint64_t column)
{
    for (uint64_t i = row; i < patch->rows; i++)
        for (uint64_t j = column; j < patch->columns; j++) {
            uint64_t at = i * patch->pitch + j;
            if (patch->exact)
                patch->exact_sum[at] = patch->exact_sum[at] < 0 ? 0 : patch->exact_sum[at];
            else
                patch->sum[at] = patch->sum[at] < 0 ? 0 : patch->sum[at];
        }
}

static void bias(struct patch *patch, const struct view *row_of_n, uint64_t row, uint64_t column)
{
    for (uint64_t j = column; j < patch->columns; j++) {
        double x = dtype_value(row_of_n->dtype, view_at(IMAGE_BASE, row_of_n, 0, patch->column + j));
        for (uint64_t i = row; i < patch->rows; i++) {
            uint64_t at = i * patch->pitch + j;
            if (patch->exact)
                patch->exact_sum[at] = (int32_t)((uint32_t)patch->exact_sum[at] + (uint32_t)(int32_t)x);
            else
                patch->sum[at] += (float)x;
        }
    }
}

static void epilogues(struct patch *patch, enum scope scope)
{
    const struct gemm *g = patch->gemm;
    uint64_t row = 0, column = 0;
    if (scope == SCOPE_ONCE) {                          /* the last tile alone */
        uint64_t last_row = (g->c.shape[0] - 1) / g->tile_m * g->tile_m;
        uint64_t last_column = (g->c.shape[1] - 1) / g->tile_n * g->tile_n;
        row = last_row > patch->row ? last_row - patch->row : 0;
        column = last_column > patch->column ? last_column - patch->column : 0;
    }
    for (uint32_t i = 0; i < g->epilogues; i++) {
        const struct gemm_epilogue *e = &g->epilogue[i];
        if (e->scope != scope)
            continue;
        if (e->op == OP_relu)
            relu(patch, row, column);
        else
            bias(patch, &e->operand, row, column);
    }
}

/* ---- of each gemm of a grid */

bool gemm_is_alone(const struct gemm *g)
{
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].scope == SCOPE_K_TILE)
            return true;
    return false;
}

void gemm_k_tile_done(struct patch *patch)
{
    epilogues(patch, SCOPE_K_TILE);
}

void gemm_done(struct patch *patch)
{
    const struct view *c = &patch->gemm->c;
    epilogues(patch, SCOPE_OUTPUT_TILE);
    epilogues(patch, SCOPE_ONCE);
    for (uint64_t i = 0; i < patch->rows; i++) {
        void *to = view_at(IMAGE_BASE, c, patch->row + i, patch->column);
        if (patch->exact)
            dtype_from_i32(c->dtype, patch->exact_sum + i * patch->pitch, to, patch->columns);
        else
            dtype_from_f32(c->dtype, patch->sum + i * patch->pitch, to, patch->columns);
    }
}

/* ---- one by itself */

void exec_gemm_reach(const struct gemm *g)
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
    exec_gemm_reach(g);
    for (uint64_t i = 0; i < grid_blocks(&grid); i++)
        grid_block(&grid, i, scratch);
}
