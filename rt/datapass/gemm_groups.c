/* gemm_groups.c: gemms as grids: which share operands, and where every combination is there.
 *
 * Each gemm is a place in a table: a row for each A, a column for each B. Rows are taken some at a time, in the order
 * in which they came; columns that have gemms in the same rows make a grid. */
#include "gemm_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/diag.h"

enum { MOST_ROWS = 64 };                                /* of a grid: bits of a mask */

struct place {
    const struct gemm *gemm;
    uint64_t order;
    uint64_t kind;                                      /* what all of a grid have in common */
    uint64_t a, b;                                      /* order of the first gemm that has the same A, the same B */
    uint64_t rows;                                      /* of a column: a bit for each of the rows taken that has one */
    uint32_t row;                                       /* among them */
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

/* Finds the first gemm of the same kind that has the same operand; it may be this one. */
static uint64_t first_with(uint64_t *table, unsigned bits, const struct place *places, uint64_t i, bool of_b)
{
    const struct view *view = of_b ? &places[i].gemm->b : &places[i].gemm->a;
    uint64_t at = hash_bits(view->offset + view->memory * UINT64_C(0x100000001) + of_b, bits);
    for (;; at++) {
        uint64_t *slot = &table[at & ((UINT64_C(1) << bits) - 1)];
        if (!*slot)
            *slot = 2 * (i + 1) + of_b;
        const struct place *first = &places[*slot / 2 - 1];
        if (*slot % 2 == of_b && first->kind == places[i].kind &&
            same_view(view, of_b ? &first->gemm->b : &first->gemm->a))
            return first->order;
    }
}

static void find_operands(struct place *places, uint64_t count)
{
    unsigned bits = 4;
    while (UINT64_C(1) << bits < 4 * count)
        bits++;
    uint64_t *table = calloc(UINT64_C(1) << bits, sizeof *table);
    if (!table)
        die("no memory to sort gemms:");
    for (uint64_t i = 0; i < count; i++) {
        places[i].a = first_with(table, bits, places, i, false);
        places[i].b = first_with(table, bits, places, i, true);
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
    const struct place *p = x, *q = y;
    if (p->kind != q->kind)
        return compare(p->kind, q->kind);
    return p->a != q->a ? compare(p->a, q->a) : compare(p->order, q->order);
}

static int by_column(const void *x, const void *y)
{
    const struct place *p = x, *q = y;
    if (p->b != q->b)
        return compare(p->b, q->b);
    return p->row != q->row ? compare(p->row, q->row) : compare(p->order, q->order);
}

static int by_mask(const void *x, const void *y)
{
    const struct place *p = x, *q = y;
    return p->rows != q->rows ? compare(p->rows, q->rows) : by_column(x, y);
}

/* ---- grids */

/* What is made, and how far it is. */
struct making {
    const struct gemm **sorted;
    struct grid *grids;
    uint64_t grid_count;
};

/* Columns of one mask, one behind the other: `rows` gemms each. */
static void add_grid(struct making *making, const struct place *places, uint64_t count, uint32_t rows)
{
    uint32_t columns = (uint32_t)(count / rows);
    for (uint64_t i = 0; i < count; i++)
        making->sorted[i % rows * columns + i / rows] = places[i].gemm;
    making->grids[making->grid_count++] = (struct grid){rows, columns, making->sorted};
    making->sorted += count;
}

/* The gemms of the rows taken, by mask and column. */
static void add_grids(struct making *making, const struct place *places, uint64_t count)
{
    for (uint64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && places[i].rows && places[end].rows == places[i].rows; end++)
            ;
        add_grid(making, places + i, end - i, places[i].rows ? (uint32_t)__builtin_popcountll(places[i].rows) : 1);
    }
}

/* Gives each gemm the mask of its column. A column that has two in one row has none: they are for themselves. */
static void find_masks(struct place *places, uint64_t count)
{
    qsort(places, count, sizeof *places, by_column);
    for (uint64_t i = 0, end; i < count; i = end) {
        uint64_t mask = 0;
        bool twice = false;
        for (end = i; end < count && places[end].b == places[i].b; end++) {
            twice |= mask >> places[end].row & 1;
            mask |= UINT64_C(1) << places[end].row;
        }
        for (uint64_t j = i; j < end; j++)
            places[j].rows = twice ? 0 : mask;
    }
}

/* Takes rows from the first on, as many as a grid has and of its kind: how many gemms they have. */
static uint64_t take_rows(struct place *places, uint64_t count)
{
    uint32_t row = 0;
    uint64_t stacked = places[0].gemm->a.shape[0], i = 0;
    for (; i < count; i++) {
        const struct gemm *g = places[i].gemm;
        if (i > 0 && places[i].a != places[i - 1].a) {
            stacked += g->a.shape[0];
            if (++row == MOST_ROWS || stacked > GRID_ROWS || places[i].kind != places[0].kind)
                break;
        }
        places[i].row = row;
    }
    return i;
}

uint64_t batch(const struct gemm *const *gemm, uint64_t count, const struct gemm **sorted, struct grid *grids)
{
    struct making making = {sorted, grids, 0};
    struct place *places = calloc(count, sizeof *places);
    if (!places)
        die("no memory to sort gemms:");
    for (uint64_t i = 0; i < count; i++)
        places[i] = (struct place){.gemm = gemm[i], .order = i, .kind = kind_of(gemm[i])};
    find_operands(places, count);
    qsort(places, count, sizeof *places, by_row);
    for (uint64_t i = 0, taken; i < count; i += taken) {
        taken = take_rows(places + i, count - i);
        find_masks(places + i, taken);
        qsort(places + i, taken, sizeof *places, by_mask);
        add_grids(&making, places + i, taken);
    }
    free(places);
    return making.grid_count;
}
