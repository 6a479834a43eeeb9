/* recheck.c: a gemm in f64, as a reference for what the data pass made of it.
 *
 * f64 holds the products and sums of f32 closely enough, and those of i8 exactly, until they wrap. */
#include "recheck.h"

#include <math.h>
#include <stdlib.h>

#include "blas.h"
#include "command.h"
#include "dtype.h"
#include "plan.h"
#include "text/diag.h"

enum { ROWS = 256, COLUMNS = 512, DEPTH = 2048 };       /* at a time */

struct patch {
    const struct gemm *gemm;
    uint64_t row, rows, column, columns;
    double *a, *b, *sum;
    double max_a, max_b;
};

static double element(const struct view *m, uint64_t i, uint64_t j)
{
    return dtype_value(m->dtype, view_at(IMAGE_BASE, m, i, j));
}

/* Copies rows x columns elements from (i, j) on; raises `max` to their largest magnitude. */
static void copy_out(const struct view *m, uint64_t i, uint64_t rows, uint64_t j, uint64_t columns, double *to,
                     double *max)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++) {
            double x = to[r * columns + c] = element(m, i + r, j + c);
            *max = fabs(x) > *max ? fabs(x) : *max;
        }
}

static double wrapped(const struct gemm *g, double x)
{
    return dtype_is_float(g->a.dtype) ? x : (double)(int32_t)(uint32_t)(int64_t)x;
}

static void apply_one(struct patch *p, const struct gemm_epilogue *e)
{
    const struct gemm *g = p->gemm;
    uint64_t last_m = (g->c.shape[0] - 1) / g->tile_m, last_n = (g->c.shape[1] - 1) / g->tile_n;
    for (uint64_t i = 0; i < p->rows * p->columns; i++) {
        uint64_t row = p->row + i / p->columns, column = p->column + i % p->columns;
        if (e->scope == SCOPE_ONCE && (row / g->tile_m != last_m || column / g->tile_n != last_n))
            continue;
        if (e->op == OP_bias)
            p->sum[i] = wrapped(g, p->sum[i] + element(&e->operand, 0, column));
        else
            p->sum[i] = p->sum[i] < 0 ? 0 : p->sum[i];
    }
}

static void apply(struct patch *p, enum scope scope)
{
    for (uint32_t e = 0; e < p->gemm->epilogues; e++)
        if (p->gemm->epilogue[e].scope == scope)
            apply_one(p, &p->gemm->epilogue[e]);
}

static void compute(struct patch *p)
{
    const struct gemm *g = p->gemm;
    for (uint64_t k = 0, end; k < g->a.shape[1]; k = end) {
        uint64_t tile_end = (k / g->tile_k + 1) * g->tile_k;
        end = k + DEPTH < tile_end ? k + DEPTH : tile_end;
        end = end < g->a.shape[1] ? end : g->a.shape[1];
        copy_out(&g->a, p->row, p->rows, k, end - k, p->a, &p->max_a);
        copy_out(&g->b, k, end - k, p->column, p->columns, p->b, &p->max_b);
        blas_dgemm(p->rows, p->columns, end - k, p->a, end - k, p->b, p->columns, k > 0, p->sum, p->columns);
        for (uint64_t i = 0; i < p->rows * p->columns; i++)
            p->sum[i] = wrapped(g, p->sum[i]);
        if (end == tile_end || end == g->a.shape[1])
            apply(p, SCOPE_K_TILE);
    }
    apply(p, SCOPE_OUTPUT_TILE);
    apply(p, SCOPE_ONCE);
}

/* Against what the dtype of C can hold of each value. */
static struct difference compare(const struct patch *p, const struct op *op)
{
    const struct view *c = &p->gemm->c;
    double tolerance = dtype_tolerance(c->dtype), scale = sqrt((double)p->gemm->a.shape[1]) * p->max_a * p->max_b;
    for (uint64_t i = 0; i < p->rows * p->columns; i++) {
        uint64_t row = p->row + i / p->columns, column = p->column + i % p->columns;
        double expected = dtype_in_range(c->dtype, p->sum[i]), got = element(c, row, column);
        double allowed = tolerance * (scale + fabs(expected));
        if (got != expected && !(isnan(got) && isnan(expected)) && !(fabs(got - expected) <= allowed))
            return (struct difference){op, row, column, got, expected, allowed};
    }
    return (struct difference){0};
}

struct difference recheck_gemm(const struct op *op)
{
    const struct gemm *g = &op->gemm;
    double *room = malloc((ROWS * DEPTH + DEPTH * COLUMNS + ROWS * COLUMNS) * sizeof *room);
    if (!room)
        die("no memory to check a gemm:");
    struct patch patch = {.gemm = g, .a = room, .b = room + ROWS * DEPTH, .sum = room + (ROWS + COLUMNS) * DEPTH};
    struct difference found = {0};
    for (patch.row = 0; patch.row < g->c.shape[0] && !found.op; patch.row += ROWS)
        for (patch.column = 0; patch.column < g->c.shape[1] && !found.op; patch.column += COLUMNS) {
            patch.rows = g->c.shape[0] - patch.row < ROWS ? g->c.shape[0] - patch.row : ROWS;
            patch.columns = g->c.shape[1] - patch.column < COLUMNS ? g->c.shape[1] - patch.column : COLUMNS;
            compute(&patch);
            found = compare(&patch, op);
        }
    free(room);
    return found;
}
