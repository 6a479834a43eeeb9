/* gemm_groups.c: which gemms form a grid: those that share operands, where every combination of the operands occurs.
 *
 * Each gemm is a cell of a table with a row for each A and a column for each B. Rows are taken a few at a time, in the
 * order in which they came; the columns that have gemms in the same rows form a grid. */
#include "gemm_groups.h"

#include <stdlib.h>
#include <string.h>

#include "common/diag.h"
#include "common/hash.h"

enum { MOST_ROWS = 64 };                                /* of a grid: the bits of a mask */

struct table_cell {
    const struct gemm *gemm;
    uint64_t order;
    uint64_t kind;                                      /* depth and dtypes: equal in all of a grid */
    uint64_t a, b;                                      /* order of the first gemm with the same A, with the same B */
    uint64_t rows;                                      /* a bit for each of the rows taken that is in this column */
    uint32_t row;                                       /* among the rows taken */
};

/* ---- which operands are the same */

static uint64_t kind_of(const struct gemm *g)
{
    return g->a.shape[1] << 8 | (uint64_t)g->a.dtype << 4 | g->b.dtype;
}

static bool same_view(const struct view *x, const struct view *y)
{
    return x->memory == y->memory && x->offset == y->offset && x->dtype == y->dtype &&
           x->shape[0] == y->shape[0] && x->shape[1] == y->shape[1] && x->stride[0] == y->stride[0] &&
           x->stride[1] == y->stride[1];
}

/* The order of the first gemm of the same kind with the same operand, which may be this one. */
static uint64_t first_with(uint64_t *table, unsigned bits, const struct table_cell *cells, uint64_t i, bool of_b)
{
    const struct view *view = of_b ? &cells[i].gemm->b : &cells[i].gemm->a;
    uint64_t at = hash_bits(view->offset + view->memory * UINT64_C(0x100000001) + of_b, bits);
    for (;; at++) {
        uint64_t *slot = &table[at & ((UINT64_C(1) << bits) - 1)];
        if (!*slot)
            *slot = 2 * (i + 1) + of_b;
        const struct table_cell *first = &cells[*slot / 2 - 1];
        if (*slot % 2 == of_b && first->kind == cells[i].kind &&
            same_view(view, of_b ? &first->gemm->b : &first->gemm->a))
            return first->order;
    }
}

static void find_operands(struct table_cell *cells, uint64_t count)
{
    unsigned bits = 4;
    while (UINT64_C(1) << bits < 4 * count)
        bits++;
    uint64_t *table = calloc(UINT64_C(1) << bits, sizeof *table);
    if (!table)
        die("no memory to sort gemms:");
    for (uint64_t i = 0; i < count; i++) {
        cells[i].a = first_with(table, bits, cells, i, false);
        cells[i].b = first_with(table, bits, cells, i, true);
    }
    free(table);
}

/* ---- orders */

static int compare(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int by_row(const void *x, const void *y)
{
    const struct table_cell *p = x, *q = y;
    if (p->kind != q->kind)
        return compare(p->kind, q->kind);
    return p->a != q->a ? compare(p->a, q->a) : compare(p->order, q->order);
}

static int by_column(const void *x, const void *y)
{
    const struct table_cell *p = x, *q = y;
    if (p->b != q->b)
        return compare(p->b, q->b);
    return p->row != q->row ? compare(p->row, q->row) : compare(p->order, q->order);
}

static int by_mask(const void *x, const void *y)
{
    const struct table_cell *p = x, *q = y;
    return p->rows != q->rows ? compare(p->rows, q->rows) : by_column(x, y);
}

/* ---- grids */

struct grid_builder {
    const struct gemm **sorted;
    struct gemm_grid *grids;
    uint64_t grid_count;
};

/* Adds a grid of columns that have one mask: `rows` gemms of each, column after column. */
static void add_grid(struct grid_builder *builder, const struct table_cell *cells, uint64_t count, uint32_t rows)
{
    uint32_t columns = (uint32_t)(count / rows);
    for (uint64_t i = 0; i < count; i++)
        builder->sorted[i % rows * columns + i / rows] = cells[i].gemm;
    builder->grids[builder->grid_count++] = (struct gemm_grid){rows, columns, builder->sorted, false};
    builder->sorted += count;
}

/* Adds the grids of the rows taken; cells are sorted by mask and column. */
static void add_grids(struct grid_builder *builder, const struct table_cell *cells, uint64_t count)
{
    for (uint64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && cells[i].rows && cells[end].rows == cells[i].rows; end++)
            ;
        add_grid(builder, cells + i, end - i, cells[i].rows ? (uint32_t)__builtin_popcountll(cells[i].rows) : 1);
    }
}

/* Sets the mask of each column. A column with two gemms in one row gets 0: each of its gemms is a grid by itself. */
static void find_masks(struct table_cell *cells, uint64_t count)
{
    qsort(cells, count, sizeof *cells, by_column);
    for (uint64_t i = 0, end; i < count; i = end) {
        uint64_t mask = 0;
        bool twice = false;
        for (end = i; end < count && cells[end].b == cells[i].b; end++) {
            twice |= mask >> cells[end].row & 1;
            mask |= UINT64_C(1) << cells[end].row;
        }
        for (uint64_t j = i; j < end; j++)
            cells[j].rows = twice ? 0 : mask;
    }
}

/* Takes rows of one kind from the first cell on, as many as a grid can have. Returns their number of cells. */
static uint64_t take_rows(struct table_cell *cells, uint64_t count)
{
    uint32_t row = 0;
    uint64_t stacked = cells[0].gemm->a.shape[0], i = 0;
    for (; i < count; i++) {
        const struct gemm *g = cells[i].gemm;
        if (i > 0 && cells[i].a != cells[i - 1].a) {
            stacked += g->a.shape[0];
            if (++row == MOST_ROWS || stacked > GEMM_BLOCK_ROWS || cells[i].kind != cells[0].kind)
                break;
        }
        cells[i].row = row;
    }
    return i;
}

uint64_t gemm_groups(const struct gemm *const *gemm, uint64_t count, const struct gemm **sorted, struct gemm_grid *grids)
{
    struct grid_builder builder = {sorted, grids, 0};
    struct table_cell *cells = calloc(count, sizeof *cells);
    if (!cells)
        die("no memory to sort gemms:");
    for (uint64_t i = 0; i < count; i++)
        cells[i] = (struct table_cell){.gemm = gemm[i], .order = i, .kind = kind_of(gemm[i])};
    find_operands(cells, count);
    qsort(cells, count, sizeof *cells, by_row);
    for (uint64_t i = 0, taken; i < count; i += taken) {
        taken = take_rows(cells + i, count - i);
        find_masks(cells + i, taken);
        qsort(cells + i, taken, sizeof *cells, by_mask);
        add_grids(&builder, cells + i, taken);
    }
    free(cells);
    return builder.grid_count;
}
