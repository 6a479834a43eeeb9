/* gemm.c: gemms of transposed operands with every epilogue in every scope, against their definition; and the check of
 * every operation, which has to agree with both and to find what is wrong. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapass/blas.h"
#include "machine/command.h"
#include "base/dtype.h"
#include "datapass/gemm.h"
#include "datapass/gemm_blocks.h"
#include "datapass/gemm_groups.h"
#include "datapass/math.h"
#include "machine/tiling.h"
#include "reference/recheck.h"
#include "definition.h"
#include "names.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 16, .slices = 16, .srams = 1, .ops = KNOWN_OPS};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

static uint8_t *place(const struct view *v, uint64_t i, uint64_t j)
{
    store_reach(v->memory, UINT64_C(1) << 20);
    return view_at(v, i, j);
}

static double at(const struct view *v, uint64_t i, uint64_t j)
{
    return dtype_value(v->dtype, place(v, i, j));
}

static struct view matrix(uint32_t memory, enum dtype dtype, uint64_t rows, uint64_t columns)
{
    struct view v = view_matrix(memory, dtype, 64 * below(3), rows, columns, columns + below(4));
    if (below(2)) {
        v.stride[0] = 1;
        v.stride[1] = rows + below(4);
    }
    return v;
}

static void fill(const struct view *v, double most)
{
    for (uint64_t i = 0; i < v->shape[0]; i++)
        for (uint64_t j = 0; j < v->shape[1]; j++) {
            double x = ((double)below(2001) / 1000 - 1) * most;
            dtype_from_f64(v->dtype, &x, place(v, i, j), 1);
        }
}

/* ---- by definition: the value and how far it may be off, element by element */

struct sum {
    double value, error;
    bool whole;
};

static double rounded(enum dtype dtype, double x)
{
    double stored;
    uint32_t element;
    dtype_from_f64(dtype, &x, &element, 1);
    stored = dtype_value(dtype, &element);
    return stored;
}

static double function(uint16_t op, enum dtype c, double x, double y)
{
    double value = (double)op_defined(op, x, y);
    return op == OP_quant || op == OP_cast ? rounded(c, value) : value;
}

static double in_i32(double x)
{
    return (int32_t)(uint32_t)(uint64_t)(int64_t)x;
}

static void apply(const struct gemm *g, const struct gemm_epilogue *e, uint64_t i, uint64_t j, struct sum *sum)
{
    double y = e->has_operand ? at(&e->operand, i, j) : e->scalar, x = sum->value;
    enum dtype c = g->c.dtype;
    if (gemm_epilogue_makes_floats(e->op, c))
        sum->whole = false;
    if (sum->whole && e->op == OP_div) {
        sum->value = y == 0 ? 0 : trunc(x / y);
    } else if (sum->whole) {
        sum->value = in_i32(function(e->op, c, x, y));
    } else {
        double above = function(e->op, c, x + sum->error, y), below_it = function(e->op, c, x - sum->error, y);
        sum->value = function(e->op, c, x, y);
        sum->error = fmax(fabs(above - sum->value), fabs(below_it - sum->value)) + 1e-6 * fabs(sum->value);
        if (isnan(above) || isnan(below_it) || fabs(sum->value) + sum->error > FLT_MAX)     /* f32 may be infinite */
            sum->error = INFINITY;
    }
}

static void scope(const struct gemm *g, enum scope scope, uint64_t i, uint64_t j, struct sum *sum)
{
    bool last = i / g->tile_m == (g->c.shape[0] - 1) / g->tile_m && j / g->tile_n == (g->c.shape[1] - 1) / g->tile_n;
    for (uint32_t e = 0; e < g->epilogues; e++)
        if (g->epilogue[e].scope == scope && (scope != SCOPE_ONCE || last))
            apply(g, &g->epilogue[e], i, j, sum);
}

static struct sum defined(const struct gemm *g, uint64_t i, uint64_t j)
{
    struct sum sum = {.whole = !dtype_is_float(g->a.dtype)};
    for (uint64_t k = 0; k < g->a.shape[1]; k++) {
        double product = at(&g->a, i, k) * at(&g->b, k, j);
        sum.value = sum.whole ? in_i32(sum.value + product) : sum.value + product;
        sum.error += sum.whole ? 0 : 1e-6 * fabs(product) + 1e-7 * fabs(sum.value);
        if ((k + 1) % g->tile_k == 0 || k + 1 == g->a.shape[1])
            scope(g, SCOPE_K_TILE, i, j, &sum);
    }
    scope(g, SCOPE_OUTPUT_TILE, i, j, &sum);
    scope(g, SCOPE_ONCE, i, j, &sum);
    return sum;
}

/* ---- what is computed */

static bool element_right(const struct gemm *g, uint64_t i, uint64_t j)
{
    static const double by_dtype[DTYPES] = {[DTYPE_f32] = 1e-6, [DTYPE_f16] = 5e-4, [DTYPE_bf16] = 4e-3,
                                            [DTYPE_f8e4m3] = 0.0626, [DTYPE_f8e5m2] = 0.126};
    static const double least[DTYPES] = {[DTYPE_f8e4m3] = 0x1p-10, [DTYPE_f8e5m2] = 0x1p-17};   /* half of a denormal */
    enum dtype c = g->c.dtype;
    struct sum want = defined(g, i, j);
    double got = at(&g->c, i, j), near = rounded(c, want.value);
    double spread = fmax(rounded(c, want.value + want.error) - near, near - rounded(c, want.value - want.error));
    if (got == near || isinf(want.error) || isnan(want.value) ||
        fabs(got - near) <= spread + by_dtype[c] * fabs(near) + (dtype_is_float(c) ? 1e-7 : 0) + least[c])
        return true;
    printf("# %s to %s, [%lu, %lu]: got %.9g, want %.9g, error %g;", dtype_words[g->a.dtype], dtype_words[c], i, j, got,
           near, want.error);
    for (uint32_t e = 0; e < g->epilogues; e++)
        printf(" %s(%d)", kb_op_names[g->epilogue[e].op], (int)g->epilogue[e].scope);
    printf("\n");
    return false;
}

static bool right(const struct gemm *g)
{
    static void *scratch;
    if (!scratch)
        scratch = aligned_alloc(64, gemm_scratch_bytes);
    struct op op = {.kind = OPKIND_gemm, .gemm = *g};
    gemm_run(g, scratch);
    struct difference found = recheck.gemm(&op);
    if (found.op)
        printf("# the check of every operation objects to [%lu, %lu]: %g, not %g, %g allowed\n", found.index[0],
               found.index[1], found.got, found.expected, found.allowed);
    bool good = !found.op;
    for (uint64_t i = 0; i < g->c.shape[0] && good; i++)
        for (uint64_t j = 0; j < g->c.shape[1] && good; j++)
            good = element_right(g, i, j);
    return good;
}

/* A float of 8 bits. */
static bool is_narrow(enum dtype dtype)
{
    return dtype == DTYPE_f8e4m3 || dtype == DTYPE_f8e5m2;
}

/* An epilogue of an op, with an operand of any form that it may have. */
static struct gemm_epilogue epilogue(const struct gemm *g, uint16_t op, bool floats, uint32_t number)
{
    uint64_t m = g->c.shape[0], n = g->c.shape[1];
    bool row = op == OP_bias || op == OP_bias_add, scale = op == OP_scale || op == OP_quant || op == OP_dequant;
    bool f32 = floats || op == OP_quant || op == OP_dequant;
    unsigned form = row ? 1 : scale ? (unsigned)below(2) * 2 + 1 : (unsigned)below(4);
    struct gemm_epilogue e = {.op = op, .scope = (uint8_t)below(SCOPES), .has_operand = op_traits(op).operands == 2};
    if (e.has_operand && !row && below(4) == 0) {
        e.has_operand = false;
        e.has_scalar = true;
        e.scalar = f32 ? 0.625 : 3;
    }
    if (op == OP_cast && is_narrow(g->c.dtype))         /* roundings of each k tile to 8 bits are not independent */
        e.scope = SCOPE_OUTPUT_TILE;
    e.operand = matrix(3 + number, f32 ? DTYPE_f32 : DTYPE_i32, m, n);
    if (form & 1)
        e.operand.stride[0] = 0;
    if (form & 2)
        e.operand.stride[1] = 0;
    fill(&e.operand, f32 ? 1 : 50);
    return e;
}

static bool is_usable(uint16_t op, enum dtype c, bool floats)
{
    struct math math = {.op = op, .operands = op_traits(op).operands, .to.dtype = floats ? DTYPE_f32 : DTYPE_i32};
    char why[MATH_WHY];
    math.operand[0].dtype = math.operand[1].dtype = math.to.dtype;
    if (op == OP_quant || op == OP_dequant)
        math.operand[1].dtype = DTYPE_f32;
    if (op == OP_quant || op == OP_cast)
        math.to.dtype = c;
    if (op == OP_dequant)
        math.to.dtype = DTYPE_f32;
    return math.operands > 0 && math.operands < 3 && op != OP_cmp && op != OP_gather && math_defined(&math, why);
}

/* Gemms whose first epilogue is of this op, and some with another one behind it. */
static bool gemms(uint16_t op, enum dtype in, enum dtype out)
{
    bool good = true;
    for (int times = 0; times < 8 && good; times++) {
        struct gemm_epilogue epilogues[2];
        uint64_t m = 1 + below(23), k = 1 + below(40), n = 1 + below(29);
        struct gemm g = {.tile_m = 1 + below(m), .tile_k = 1 + below(k), .tile_n = 1 + below(n), .epilogue = epilogues,
                         .a = matrix(0, in, m, k), .b = matrix(1, in, k, n), .c = matrix(2, out, m, n)};
        bool floats = dtype_is_float(in);
        fill(&g.a, floats ? 1 : 127);
        fill(&g.b, floats ? 1 : 127);
        epilogues[g.epilogues++] = epilogue(&g, op, floats, 0);
        if (!floats && gemm_epilogue_makes_floats(op, out)) {
            epilogues[0].scope = SCOPE_OUTPUT_TILE;
            floats = true;
        }
        uint16_t second = (uint16_t)below(KNOWN_OPS);
        if (is_usable(second, out, floats) && floats == dtype_is_float(in) &&
            !(!floats && gemm_epilogue_makes_floats(second, out)))
            epilogues[g.epilogues++] = epilogue(&g, second, floats, 1);
        good = right(&g);
    }
    return good;
}

/* Of the pairs with, or without, a float of 8 bits. */
static void all_ops(bool narrow)
{
    for (uint16_t op = 0; op < KNOWN_OPS; op++) {
        bool good = true;
        unsigned pairs = 0;
        for (unsigned in = 0; in < DTYPES; in++)
            for (unsigned out = 0; out < DTYPES; out++)
                if ((is_narrow(in) || is_narrow(out)) == narrow && (dtype_is_float(in) || in == DTYPE_i8)
                    && is_usable(op, out, dtype_is_float(in))) {
                    good &= gemms(op, in, out);
                    pairs++;
                }
        if (pairs)
            expect(good, "gemms are right with the epilogue %s, of %u pairs of dtypes", kb_op_names[op], pairs);
    }
}

/* One element off by more than is allowed is found, through epilogues that make errors larger and smaller. */
static void finds(void)
{
    struct gemm_epilogue epilogues[] = {{.op = OP_scale, .scope = SCOPE_OUTPUT_TILE, .has_scalar = true, .scalar = 1e4},
                                        {.op = OP_tanh, .scope = SCOPE_ONCE}};
    struct gemm g = {.tile_m = 8, .tile_k = 8, .tile_n = 8, .epilogue = epilogues, .epilogues = 2,
                     .a = matrix(0, DTYPE_f16, 20, 30), .b = matrix(1, DTYPE_f16, 30, 20),
                     .c = matrix(2, DTYPE_f32, 20, 20)};
    struct op op = {.kind = OPKIND_gemm, .gemm = g};
    fill(&g.a, 1);
    fill(&g.b, 1);
    expect(right(&g), "the allowed error grows with a scale and shrinks with tanh");
    *(float *)place(&g.c, 17, 18) *= 0.9f;
    struct difference found = recheck.gemm(&op);
    expect(found.op == &op && found.index[0] == 17 && found.index[1] == 18,
           "the first wrong element of a gemm is found");
}

/* Gemms of `rows` matrices A with each of two B: grids of at most 64 rows, each with every combination of its operands. */
static bool grouped(uint32_t rows)
{
    enum { COLUMNS = 2, MOST = 65 * COLUMNS };
    struct gemm made[MOST];
    const struct gemm *gemms[MOST], *sorted[MOST];
    struct gemm_grid grids[MOST];
    uint64_t count = 0, found = 0;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < COLUMNS; j++, count++) {
            made[count] = (struct gemm){.a = view_matrix(0, DTYPE_f32, 64 * i, 1, 8, 8),
                                        .b = view_matrix(1, DTYPE_f32, 512 * j, 8, 4, 4), .tile_m = 1, .tile_k = 8,
                                        .tile_n = 4};
            gemms[count] = &made[count];
        }
    uint64_t grid_count = gemm_groups(gemms, count, sorted, grids);
    bool good = grid_count == (rows + 63) / 64;
    for (uint64_t g = 0; g < grid_count; g++)
        for (uint32_t i = 0; i < grids[g].rows * grids[g].columns; i++, found++) {
            const struct gemm *at = grids[g].gemm[i], *first = grids[g].gemm[i / grids[g].columns * grids[g].columns];
            good &= at->a.offset == first->a.offset && at->b.offset == grids[g].gemm[i % grids[g].columns]->b.offset;
        }
    return good && found == count && grids[0].rows == (rows < 64 ? rows : 64) && grids[0].columns == COLUMNS;
}

/* Columns with two gemms of the same operands: each of their gemms is a grid by itself. */
static bool apart(void)
{
    enum { COUNT = 6 };
    static const uint64_t a[COUNT] = {0, 0, 64, 0, 0, 64}, b[COUNT] = {0, 0, 0, 512, 512, 512};
    struct gemm made[COUNT];
    const struct gemm *gemms[COUNT] = {0}, *sorted[COUNT];
    struct gemm_grid grids[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        made[i] = (struct gemm){.a = view_matrix(0, DTYPE_f32, a[i], 1, 8, 8),
                                .b = view_matrix(1, DTYPE_f32, b[i], 8, 4, 4), .tile_m = 1, .tile_k = 8, .tile_n = 4};
        gemms[i] = &made[i];
    }
    bool good = gemm_groups(gemms, COUNT, sorted, grids) == COUNT;
    for (uint32_t i = 0; good && i < COUNT; i++)
        good &= grids[i].rows == 1 && grids[i].columns == 1;
    return good;
}

/* Operand `number` of a grid: two B of more columns than a block has, which lie row after row or column after column. */
static struct view wide(uint32_t number, bool by_columns)
{
    enum { DEPTH = 90, COLUMNS = 2500 };
    struct view v = view_matrix(1 + 2 * number, DTYPE_f16, 64, DEPTH, COLUMNS, COLUMNS + 3);
    if (by_columns) {
        v.stride[0] = 1;
        v.stride[1] = DEPTH + 5;
    }
    return v;
}

static bool blocks_right(bool first_by_columns, bool second_by_columns)
{
    struct view b[] = {wide(0, first_by_columns), wide(1, second_by_columns)};
    struct gemm made[2];
    const struct gemm *gemms[2], *sorted[2];
    struct gemm_grid grid[2];
    for (uint32_t i = 0; i < 2; i++) {
        made[i] = (struct gemm){.a = view_matrix(0, DTYPE_f16, 0, 3, b->shape[0], b->shape[0]), .b = b[i], .tile_m = 3,
                                .c = view_matrix(2 + 2 * i, DTYPE_f32, 0, 3, b->shape[1], b->shape[1]),
                                .tile_k = b->shape[0], .tile_n = b->shape[1]};
        gemms[i] = &made[i];
        fill(&made[i].b, 1);
        *place(&made[i].c, 2, b->shape[1] - 1) = 0;
    }
    fill(&made->a, 1);
    bool good = gemm_groups(gemms, 2, sorted, grid) == 1 && grid->columns == 2 && gemm_blocks(grid) == 3;
    void *scratch = aligned_alloc(64, gemm_scratch_bytes);
    for (uint64_t i = 0; good && i < gemm_blocks(grid); i++)
        gemm_block(grid, i, scratch);
    free(scratch);
    for (uint64_t i = 0; good && i < 2 * 3 * b->shape[1]; i++)
        good = element_right(&made[i % 2], i / 2 % 3, i / 6);
    return good;
}

static void blocks(void)
{
    expect(blocks_right(false, false), "gemms of several blocks, whose B lie row after row");
    expect(blocks_right(true, true), "and column after column");
    expect(blocks_right(true, false) && blocks_right(false, true), "and one of each");
}

static void groups(void)
{
    expect(grouped(1) && grouped(63), "gemms that share operands form one grid");
    expect(grouped(64), "64 rows form one grid");
    expect(grouped(65), "the 65th row begins another grid");
    expect(apart(), "two gemms of the same operands are in no grid with others");
}

int main(void)
{
    blas_open();
    all_ops(false);
    all_ops(true);
    finds();
    groups();
    blocks();
    return tests_end();
}
