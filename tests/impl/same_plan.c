/* same_plan.c: a pe_scheduler that takes what the built-in one takes, and the built-in plan. */
#include <kb/impl.h>

uint64_t same_plan_service(const struct kb_schedule_request *ask)
{
    return ask->feeds ? kb_attrs.pe_scheduler_tile_overhead_ps : kb_attrs.pe_scheduler_overhead_ps;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

KB_PLAN(same)
{
    uint64_t tiles_k = kb_ceil_div(ask->k, ask->tile_k), tiles_n = kb_ceil_div(ask->n, ask->tile_n);
    uint64_t i_k = number % tiles_k, i_n = number / tiles_k % tiles_n, i_m = number / tiles_k / tiles_n;
    struct kb_plan_tile tile = {.m0 = i_m * ask->tile_m, .k0 = i_k * ask->tile_k, .n0 = i_n * ask->tile_n};
    if (tile.m0 >= ask->m)
        return (struct kb_plan_tile){0};
    tile.m = smaller(ask->tile_m, ask->m - tile.m0);
    tile.k = smaller(ask->tile_k, ask->k - tile.k0);
    tile.n = smaller(ask->tile_n, ask->n - tile.n0);
    return tile;
}
