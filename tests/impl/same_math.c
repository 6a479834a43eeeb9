/* same_math.c: a pe_math that takes what the built-in one takes. */
#include <kb/impl.h>

uint64_t same_math_service(const struct kb_math_request *ask)
{
    uint64_t cycles = kb_attrs.pe_math_fill_cycles + kb_ceil_div(ask->elements, ask->lanes) * ask->cost;
    return kb_attrs.pe_math_overhead_ps + kb_cycles_ps(cycles, kb_attrs.pe_math_clock_khz);
}
