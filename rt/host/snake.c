/* snake.c: kb_snake: an order of PEs in which neighbours are near, along a snake over the cubes and their routers.
 *
 * The way through each cube decides whether two steps share a link. There are only four: all are tried. */
#include <stdlib.h>

#include "common/arena.h"
#include "kb/measure.h"
#include "machine/emitted.h"
#include "machine/fabric.h"

struct snake_stop {
    uint64_t key;                                       /* distance along the snake */
    uint32_t position;                                  /* in the set */
};

/* The distance of (row, col) along a snake that begins at (0, 0) and crosses a grid row by row. */
static uint64_t distance(uint64_t row, uint64_t col, uint64_t cols)
{
    return row * cols + (row % 2 ? cols - 1 - col : col);
}

/* The router of a PE's pe_dma. */
static uint32_t router_of(uint32_t pe)
{
    const struct cube_node *dma = &kb_cube_nodes[cube_pe_node(&kb_shape, pe % kb_shape.pes, NODE_pe_dma)];
    return kb_cube_nodes[kb_cube_links[dma->up].to].index;
}

/* The ways through the routers of a cube: along their columns or rows, from the top or the bottom. */
enum { BY_ROWS = 1, FROM_BELOW = 2, WAYS = 4 };

/* The distance of a PE. The cubes of odd rows are crossed backwards, and so are their routers. */
static uint64_t key_of(uint32_t pe, unsigned way)
{
    const struct shape *s = &kb_shape;
    uint32_t cube = pe / s->pes, sip = cube / s->cubes, cube_row = cube % s->cubes / s->cube_cols;
    uint32_t router = router_of(pe), row = router / s->noc_cols, col = router % s->noc_cols;
    if (cube_row % 2)
        col = s->noc_cols - 1 - col;
    if (way & FROM_BELOW)
        row = s->noc_rows - 1 - row;
    uint64_t key = sip * (uint64_t)s->cubes + distance(cube_row, cube % s->cube_cols, s->cube_cols);
    key *= s->noc_rows * s->noc_cols;
    key += way & BY_ROWS ? distance(row, col, s->noc_cols) : distance(col, row, s->noc_rows);
    return key * s->pes + pe % s->pes;
}

static int by_key(const void *x, const void *y)
{
    const struct snake_stop *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

static struct kb_order order_of(struct kb_pes pes, unsigned way)
{
    struct snake_stop *stops = arena_alloc(pes.count, sizeof *stops);
    uint32_t *position = arena_alloc(pes.count, sizeof *position);
    for (uint32_t i = 0; i < pes.count; i++)
        stops[i] = (struct snake_stop){key_of(pes.pe[i], way), i};
    qsort(stops, pes.count, sizeof *stops, by_key);
    for (uint32_t i = 0; i < pes.count; i++)
        position[i] = stops[i].position;
    return (struct kb_order){position, pes.count};
}

/* The time that the busiest link takes for a message from each PE to the next one. */
static uint64_t busy_ps(struct kb_pes pes, struct kb_order order)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint32_t i = 0; order.count > 1 && i < order.count; i++)
        kb_traffic_add(traffic, pes.pe[order.position[i]], pes.pe[order.position[(i + 1) % order.count]], 1 << 20);
    return kb_traffic_ps(traffic);
}

struct kb_order kb_snake(struct kb_pes pes)
{
    struct kb_order best = order_of(pes, 0);
    uint64_t least_ps = busy_ps(pes, best);
    for (unsigned way = 1; way < WAYS; way++) {
        struct kb_order order = order_of(pes, way);
        uint64_t ps = busy_ps(pes, order);
        if (ps < least_ps)
            best = order, least_ps = ps;
    }
    return best;
}

struct kb_order kb_order_from(struct kb_order order, uint32_t position)
{
    uint32_t first = 0, *from = arena_alloc(order.count, sizeof *from);
    while (first < order.count && order.position[first] != position)
        first++;
    for (uint32_t i = 0; i < order.count; i++)
        from[i] = order.position[(first + i) % order.count];
    return (struct kb_order){from, order.count};
}
