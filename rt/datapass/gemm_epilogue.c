/* gemm_epilogue.c: ops on the sums of a gemm before they are rounded and stored: in f32, or of i8 in i32. */
#include "gemm_epilogue.h"

#include "base/dtype.h"
#include "math_ops.h"

enum { PIECE = 1024 };                                  /* of a row at a time */

/* Rows [row, rows) and columns [column, column + count) of a patch. */
struct part {
    const struct values *values;
    const struct gemm_epilogue *epilogue;
    uint64_t row, column;
    size_t count;
};

struct values values_of(const struct patch *patch)
{
    union lane *at = patch->exact ? (union lane *)patch->exact_sum : (union lane *)patch->sum;
    return (struct values){patch, at, !patch->exact};
}

bool gemm_epilogue_makes_floats(uint16_t op, enum dtype result)
{
    return op == OP_quant || op == OP_dequant || (op == OP_cast && dtype_is_float(result));
}

static void make_floats(struct values *values)
{
    const struct patch *patch = values->patch;
    for (uint64_t i = 0; i < patch->rows; i++)
        for (uint64_t j = 0; j < patch->columns; j++)
            values->at[i * patch->pitch + j].f = (float)values->at[i * patch->pitch + j].i;
    values->floats = true;
}

/* The operand's elements beside those of a row of the part. */
static void load_row(const struct part *part, uint64_t row, union lane *to)
{
    const struct gemm_epilogue *e = part->epilogue;
    const struct patch *patch = part->values->patch;
    struct elements line = {.number = e->scalar};
    if (e->has_operand) {
        const uint64_t *stride = e->operand.stride;
        uint64_t element = (patch->row + row) * stride[0] + (patch->column + part->column) * stride[1];
        line = elements_of(&e->operand, element, stride[1]);
    }
    elements_load(&line, part->values->floats, to, part->count);
}

/* To what the dtype of C holds. */
static void round_row(const struct part *part, union lane *x)
{
    uint32_t stored[PIECE];
    struct elements line = {.at = (uint8_t *)stored, .dtype = part->values->patch->gemm->c.dtype, .stride = 1};
    elements_store(&line, part->values->floats, false, x, part->count);
    elements_load(&line, part->values->floats, x, part->count);
}

static void apply(const struct part *part)
{
    const struct gemm_epilogue *e = part->epilogue;
    const struct patch *patch = part->values->patch;
    union lane y[PIECE];
    bool binary = e->has_operand || e->has_scalar, one_row = !e->has_operand || e->operand.stride[0] == 0;
    math_loop *loop = math_loop_of(e->op, RELATION_eq, part->values->floats);
    for (uint64_t row = part->row; row < patch->rows; row++) {
        union lane *x = part->values->at + row * patch->pitch + part->column;
        if (binary && (!one_row || row == part->row))
            load_row(part, row, y);
        if (loop)
            loop(x, y, part->count);
        if (e->op == OP_quant || e->op == OP_cast)
            round_row(part, x);
    }
}

/* On rows and columns of the patch from (row, column) on. */
static void apply_from(struct values *values, const struct gemm_epilogue *e, uint64_t row, uint64_t column)
{
    const struct patch *patch = values->patch;
    if (!values->floats && gemm_epilogue_makes_floats(e->op, patch->gemm->c.dtype))
        make_floats(values);
    for (uint64_t j = column; j < patch->columns; j += PIECE) {
        uint64_t rest = patch->columns - j;
        apply(&(struct part){values, e, row, j, rest < PIECE ? rest : PIECE});
    }
}

void gemm_epilogues(struct values *values, enum scope scope)
{
    const struct patch *patch = values->patch;
    const struct gemm *g = patch->gemm;
    uint64_t row = 0, column = 0;
    if (scope == SCOPE_ONCE) {                          /* the last tile alone */
        uint64_t last_row = (g->c.shape[0] - 1) / g->tile_m * g->tile_m;
        uint64_t last_column = (g->c.shape[1] - 1) / g->tile_n * g->tile_n;
        row = last_row > patch->row ? last_row - patch->row : 0;
        column = last_column > patch->column ? last_column - patch->column : 0;
    }
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].scope == scope)
            apply_from(values, &g->epilogue[i], row, column);
}
