/* recheck.c: a gemm in f64, as a reference for what the data pass made of it.
 *
 * f64 holds the products and sums of f32 closely enough, and those of i8 exactly, until they wrap. */
#include "recheck.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datapass/blas.h"
#include "machine/command.h"
#include "base/dtype.h"
#include "recheck_ops.h"
#include "common/diag.h"

const struct exec_check recheck = {recheck_math_expect, recheck_math, recheck_gemm};

enum { ROWS = 256, COLUMNS = 512, DEPTH = 2048 };       /* at a time */

struct patch {
    const struct gemm *gemm;
    uint64_t row, rows, column, columns;
    double *a, *b, *sum;
    double *error;                                      /* how far each of the sums may be off */
    double max_a, max_b;
    bool whole;                                         /* the values are those of i32, which wrap */
};

static double element(const struct view *m, uint64_t i, uint64_t j)
{
    return dtype_value(m->dtype, view_at(IMAGE_BASE, m, i, j));
}

/* Copies rows x columns elements from (i, j) on; raises `max` to their largest magnitude that is finite. */
static void copy_out(const struct view *m, uint64_t i, uint64_t rows, uint64_t j, uint64_t columns, double *to,
                     double *max)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++) {
            double x = to[r * columns + c] = element(m, i + r, j + c);
            *max = fabs(x) > *max && isfinite(x) ? fabs(x) : *max;
        }
}

static double applied(const struct patch *p, const struct gemm_epilogue *e, double x, uint64_t row, uint64_t column)
{
    double operand[MATH_OPERANDS] = {x, e->has_operand ? element(&e->operand, row, column) : e->scalar};
    if (e->op == OP_quant)
        return dtype_in_range(p->gemm->c.dtype, recheck_float(OP_quant, 0, operand));
    if (e->op == OP_cast)
        return dtype_in_range(p->gemm->c.dtype, x);
    return p->whole ? recheck_whole(e->op, 0, operand) : recheck_float(e->op, 0, operand);
}

/* How far f(x) may be off where x may be off by `error`: as far as it is at both ends, and what f32 or a cast rounds.
 * Beyond the range of f32 all is possible. */
static double error_of(const struct patch *p, const struct gemm_epilogue *e, double x, double error, double value,
                       uint64_t row, uint64_t column)
{
    if (p->whole)
        return 0;
    double up = fabs(applied(p, e, x + error, row, column) - value);
    double down = fabs(applied(p, e, x - error, row, column) - value);
    if (isnan(up) || isnan(down) || fabs(value) > FLT_MAX)
        return INFINITY;
    double rounding = e->op == OP_cast ? dtype_tolerance(p->gemm->c.dtype) : 1e-6;
    return fmax(up, down) + rounding * fabs(value);
}

static void apply_one(struct patch *p, const struct gemm_epilogue *e)
{
    const struct gemm *g = p->gemm;
    uint64_t last_m = (g->c.shape[0] - 1) / g->tile_m, last_n = (g->c.shape[1] - 1) / g->tile_n;
    if (e->op == OP_quant || e->op == OP_dequant || (e->op == OP_cast && dtype_is_float(g->c.dtype)))
        p->whole = false;
    for (uint64_t i = 0; i < p->rows * p->columns; i++) {
        uint64_t row = p->row + i / p->columns, column = p->column + i % p->columns;
        if (e->scope == SCOPE_ONCE && (row / g->tile_m != last_m || column / g->tile_n != last_n))
            continue;
        double value = applied(p, e, p->sum[i], row, column);
        p->error[i] = error_of(p, e, p->sum[i], p->error[i], value, row, column);
        p->sum[i] = value;
    }
}

static void apply(struct patch *p, enum scope scope)
{
    for (uint32_t e = 0; e < p->gemm->epilogues; e++)
        if (p->gemm->epilogue[e].scope == scope)
            apply_one(p, &p->gemm->epilogue[e]);
}

/* The sum of so many products more: s of the tolerance is sqrt(depth) max|A| max|B|, without bound if f32 may not hold
 * a partial sum. */
static void widen_errors(struct patch *p, uint64_t depth)
{
    enum dtype dtype = dtype_is_float(p->gemm->c.dtype) ? p->gemm->c.dtype : DTYPE_f32;
    double most = p->max_a * p->max_b, more = p->whole ? 0 : dtype_tolerance(dtype) * sqrt((double)depth) * most;
    if (!p->whole && most * (double)depth > FLT_MAX)
        more = INFINITY;
    for (uint64_t i = 0; i < p->rows * p->columns; i++)
        p->error[i] += more;
}

static bool has_k_tile(const struct gemm *g)
{
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].scope == SCOPE_K_TILE)
            return true;
    return false;
}

static void compute(struct patch *p)
{
    const struct gemm *g = p->gemm;
    uint64_t depth = g->a.shape[1], tile = has_k_tile(g) ? g->tile_k : depth;
    p->whole = !dtype_is_float(g->a.dtype);
    p->max_a = p->max_b = 0;
    memset(p->error, 0, p->rows * p->columns * sizeof *p->error);
    for (uint64_t k = 0, end; k < depth; k = end) {
        uint64_t tile_end = (k / tile + 1) * tile < depth ? (k / tile + 1) * tile : depth;
        end = k + DEPTH < tile_end ? k + DEPTH : tile_end;
        copy_out(&g->a, p->row, p->rows, k, end - k, p->a, &p->max_a);
        copy_out(&g->b, k, end - k, p->column, p->columns, p->b, &p->max_b);
        blas_dgemm(p->rows, p->columns, end - k, p->a, end - k, p->b, p->columns, k > 0, p->sum, p->columns);
        for (uint64_t i = 0; i < p->rows * p->columns && p->whole; i++)
            p->sum[i] = dtype_wrapped(DTYPE_i32, (int64_t)p->sum[i]);
        if (end < tile_end)
            continue;
        widen_errors(p, end - (end - 1) / tile * tile);
        apply(p, SCOPE_K_TILE);
    }
    apply(p, SCOPE_OUTPUT_TILE);
    apply(p, SCOPE_ONCE);
}

/* Against what the dtype of C can hold of each value. The s of what epilogues give is 1. */
static struct difference compare(const struct patch *p, const struct op *op)
{
    const struct view *c = &p->gemm->c;
    double scale = p->gemm->epilogues > 0 ? 1 : 0;
    for (uint64_t i = 0; i < p->rows * p->columns; i++) {
        uint64_t row = p->row + i / p->columns, column = p->column + i % p->columns;
        double expected = p->sum[i], got = element(c, row, column);
        double allowed = p->error[i] + dtype_tolerance(c->dtype) * (scale + fabs(expected));
        if (!isfinite(p->error[i]) || dtype_close(c->dtype, got, expected, allowed))
            continue;
        return (struct difference){.op = op, .index = {row, column}, .got = got, .allowed = allowed,
                                   .expected = dtype_in_range(c->dtype, expected)};
    }
    return (struct difference){0};
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct difference recheck_gemm(const struct op *op)
{
    const struct gemm *g = &op->gemm;
    uint64_t rows = least(ROWS, g->c.shape[0]), columns = least(COLUMNS, g->c.shape[1]);
    uint64_t depth = least(DEPTH, g->a.shape[1]);
    double *room = malloc(((rows + columns) * depth + 2 * rows * columns) * sizeof *room);
    if (!room)
        die("no memory to check a gemm:");
    struct patch patch = {.gemm = g, .a = room, .b = room + rows * depth, .sum = room + (rows + columns) * depth};
    patch.error = patch.sum + rows * columns;
    struct difference found = {0};
    for (patch.row = 0; patch.row < g->c.shape[0] && !found.op; patch.row += ROWS)
        for (patch.column = 0; patch.column < g->c.shape[1] && !found.op; patch.column += COLUMNS) {
            patch.rows = least(ROWS, g->c.shape[0] - patch.row);
            patch.columns = least(COLUMNS, g->c.shape[1] - patch.column);
            compute(&patch);
            found = compare(&patch, op);
        }
    free(room);
    return found;
}
