/* columns.c: a pe_scheduler that feeds the output tiles of a composite column by column, and makes them half as high and
 * twice as wide as the kernel asks for. */
#include <kb/impl.h>

uint64_t columns_service(const struct kb_schedule_request *ask)
{
    return ask->feeds ? kb_attrs.pe_scheduler_tile_overhead_ps : kb_attrs.pe_scheduler_overhead_ps;
}

/* Sets a tile's first element and size along an axis. */
static void set(uint64_t whole, uint64_t step, uint64_t i, uint64_t *first, uint64_t *size)
{
    *first = i * step;
    *size = whole - *first < step ? whole - *first : step;
}

KB_PLAN(by_columns)
{
    uint64_t high = kb_ceil_div(ask->tile_m, 2), wide = 2 * ask->tile_n;
    uint64_t tiles_m = kb_ceil_div(ask->m, high), tiles_k = kb_ceil_div(ask->k, ask->tile_k);
    uint64_t column = number / tiles_k / tiles_m;
    struct kb_plan_tile tile = {0};
    if (column >= kb_ceil_div(ask->n, wide))
        return tile;
    set(ask->k, ask->tile_k, number % tiles_k, &tile.k0, &tile.k);
    set(ask->m, high, number / tiles_k % tiles_m, &tile.m0, &tile.m);
    set(ask->n, wide, column, &tile.n0, &tile.n);
    return tile;
}
