/* gemm.c: what a gemm does with its sums: epilogues, then rounding into C. */
#include "gemm.h"

#include "base/dtype.h"
#include "gemm_blocks.h"
#include "kb/arith.h"
#include "machine/command.h"
#include "math.h"

enum { PIECE = 1024 };                                  /* elements of a row at a time */

bool gemm_has_k_tile_epilogue(const struct gemm *g)
{
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].scope == SCOPE_K_TILE)
            return true;
    return false;
}

/* ---- epilogues */

bool gemm_epilogue_makes_floats(uint16_t op, enum dtype c)
{
    enum op_domain domain = (enum op_domain)op_traits(op).domain;
    return domain == DOMAIN_QUANT || domain == DOMAIN_DEQUANT || (domain == DOMAIN_CAST && dtype_is_float(c));
}

static void make_floats(struct gemm_patch *patch)
{
    for (uint64_t i = 0; i < patch->rows; i++)
        for (uint64_t j = 0; j < patch->columns; j++)
            patch->sum[i * patch->pitch + j].f = (float)patch->sum[i * patch->pitch + j].i;
    patch->floats = true;
}

/* The operand's elements for [column, column + count) of a row of the patch. */
static void load_operand(const struct gemm_patch *patch, const struct gemm_epilogue *e, uint64_t row, uint64_t column,
                         union lane *to, size_t count)
{
    struct elements line = {.number = e->scalar};
    if (e->has_operand) {
        const uint64_t *stride = e->operand.stride;
        uint64_t element = (patch->row + row) * stride[0] + (patch->column + column) * stride[1];
        line = elements_of(&e->operand, element, stride[1]);
    }
    elements_load(&line, patch->floats, to, count);
}

/* Rounds to what the dtype of C holds. */
static void round_to_c(const struct gemm_patch *patch, union lane *x, size_t count)
{
    uint32_t stored[PIECE];
    struct elements line = {.at = (uint8_t *)stored, .dtype = patch->gemm->c.dtype, .stride = 1};
    elements_store(&line, patch->floats, false, x, count);
    elements_load(&line, patch->floats, x, count);
}

/* Applies an epilogue to [column, column + count) of all rows of the patch from `row` on. */
static void apply_to_columns(struct gemm_patch *patch, const struct gemm_epilogue *e, uint64_t row, uint64_t column,
                             size_t count)
{
    union lane y[PIECE];
    enum op_domain domain = (enum op_domain)op_traits(e->op).domain;
    bool binary = e->has_operand || e->has_scalar, one_row = !e->has_operand || e->operand.stride[0] == 0;
    math_loop *loop = math_loop_of(e->op, RELATION_eq, patch->floats);
    for (uint64_t i = row; i < patch->rows; i++) {
        union lane *x = patch->sum + i * patch->pitch + column;
        if (binary && (!one_row || i == row))
            load_operand(patch, e, i, column, y, count);
        loop(x, y, NULL, count);
        if (domain == DOMAIN_QUANT || domain == DOMAIN_CAST)
            round_to_c(patch, x, count);
    }
}

/* Applies the epilogues of a scope, in their order; those of SCOPE_ONCE to the last tile of C alone. */
static void apply_scope(struct gemm_patch *patch, enum scope scope)
{
    const struct gemm *g = patch->gemm;
    uint64_t row = 0, column = 0;
    if (scope == SCOPE_ONCE) {
        uint64_t last_row = (g->c.shape[0] - 1) / g->tile_m * g->tile_m;
        uint64_t last_column = (g->c.shape[1] - 1) / g->tile_n * g->tile_n;
        row = last_row > patch->row ? last_row - patch->row : 0;
        column = last_column > patch->column ? last_column - patch->column : 0;
    }
    for (uint32_t i = 0; i < g->epilogues; i++) {
        const struct gemm_epilogue *e = &g->epilogue[i];
        if (e->scope != scope)
            continue;
        if (!patch->floats && gemm_epilogue_makes_floats(e->op, g->c.dtype))
            make_floats(patch);
        for (uint64_t j = column; j < patch->columns; j += PIECE)
            apply_to_columns(patch, e, row, j, kb_min(PIECE, patch->columns - j));
    }
}

void gemm_k_tile_done(struct gemm_patch *patch)
{
    apply_scope(patch, SCOPE_K_TILE);
}

void gemm_done(struct gemm_patch *patch)
{
    const struct view *c = &patch->gemm->c;
    apply_scope(patch, SCOPE_OUTPUT_TILE);
    apply_scope(patch, SCOPE_ONCE);
    for (uint64_t i = 0; i < patch->rows; i++) {
        uint64_t element = (patch->row + i) * c->stride[0] + patch->column * c->stride[1];
        struct elements line = elements_of(c, element, c->stride[1]);
        elements_store(&line, patch->floats, false, patch->sum + i * patch->pitch, patch->columns);
    }
}

/* ---- a gemm by itself */

void gemm_run(const struct gemm *g, void *scratch)
{
    struct gemm_grid grid = {1, 1, &g, .in_place = true};
    view_reach(&g->a);
    view_reach(&g->b);
    view_reach(&g->c);
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].has_operand)
            view_reach(&g->epilogue[i].operand);
    for (uint64_t i = 0; i < gemm_blocks(&grid); i++)
        gemm_block(&grid, i, scratch);
}
