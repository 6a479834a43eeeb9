/* vector.c: a model of pe_math: lanes with a few special function units.
 *
 * All lanes add, multiply and compare, one group of elements per cycle. Ops with a cost above 1 (exp, div) use the
 * special function units, each of which takes `cost` cycles for an element. A reduction ends with a tree over the
 * lanes. Parameters: special_units, their number; throttle, the fraction of the clock that is left when the chip is
 * hot. */
#include <string.h>

#include <kb/impl.h>

static bool reduces(const char *op)
{
    return !strcmp(op, "sum") || !strcmp(op, "mean") || !strcmp(op, "max") || !strcmp(op, "min");
}

/* The levels of a binary tree over the lanes. */
static uint64_t tree_levels(uint64_t lanes)
{
    uint64_t count = 0;
    for (; lanes > 1; lanes = kb_ceil_div(lanes, 2))
        count++;
    return count;
}

uint64_t vector_service(const struct kb_math_request *ask)
{
    uint64_t cycles = kb_ceil_div(ask->elements, ask->lanes);
    if (ask->cost > 1)
        cycles = kb_product(kb_ceil_div(ask->elements, vector_special_units), ask->cost);
    if (reduces(ask->op))
        cycles = kb_sum(cycles, tree_levels(ask->lanes));
    cycles = kb_sum(cycles, kb_attrs.pe_math_fill_cycles);
    uint64_t at_full_clock_ps = kb_cycles_ps(cycles, kb_attrs.pe_math_clock_khz);
    return kb_sum(kb_attrs.pe_math_overhead_ps,
                  kb_scaled(at_full_clock_ps, vector_throttle_den, vector_throttle_num));
}
