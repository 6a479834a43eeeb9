/* snake.c: PEs in an order in which neighbours are near: along a snake over the cubes and the routers in them. */
#include <stdlib.h>

#include "emitted.h"
#include "fabric.h"
#include "kb/measure.h"
#include "text/base.h"

struct stop {
    uint64_t key;                                       /* how far along the snake */
    uint32_t position;                                  /* in the set */
};

/* Of row-major places in a grid, how far along a snake that begins at (0, 0) and crosses the rows. */
static uint64_t along(uint64_t row, uint64_t col, uint64_t cols)
{
    return row * cols + (row % 2 ? cols - 1 - col : col);
}

/* The router of a PE's pe_dma. */
static uint32_t router_of(uint32_t pe)
{
    const struct cube_node *dma = &kb_cube_nodes[cube_pe_node(&kb_shape, pe % kb_shape.pes, NODE_pe_dma)];
    return kb_cube_nodes[kb_cube_links[dma->up].to].index;
}

static uint64_t key_of(uint32_t pe)
{
    const struct shape *s = &kb_shape;
    uint32_t cube = pe / s->pes, sip = cube / s->cubes, row = cube % s->cubes / s->cube_cols;
    uint32_t router = router_of(pe), router_row = router / s->noc_cols, router_col = router % s->noc_cols;
    uint64_t key = sip * (uint64_t)s->cubes + along(row, cube % s->cube_cols, s->cube_cols);
    if (row % 2)                                        /* westwards */
        router_col = s->noc_cols - 1 - router_col;
    key = key * s->noc_rows * s->noc_cols + along(router_col, router_row, s->noc_rows);
    return key * s->pes + pe % s->pes;
}

static int by_key(const void *x, const void *y)
{
    const struct stop *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

struct kb_order kb_snake(struct kb_pes pes)
{
    struct stop *stops = arena_alloc(pes.count, sizeof *stops);
    uint32_t *position = arena_alloc(pes.count, sizeof *position);
    for (uint32_t i = 0; i < pes.count; i++)
        stops[i] = (struct stop){key_of(pes.pe[i]), i};
    qsort(stops, pes.count, sizeof *stops, by_key);
    for (uint32_t i = 0; i < pes.count; i++)
        position[i] = stops[i].position;
    return (struct kb_order){position, pes.count};
}
