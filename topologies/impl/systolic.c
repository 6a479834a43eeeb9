/* systolic.c: a pe_gemm: an output-stationary systolic array that takes its operands from a register file.
 *
 * A pass fills one array's worth of C: k steps, and a skew of rows + cols - 2 cycles until the last element has come
 * through. The skew of a pass hides behind the next one where the register file holds both (`overlap: 1`); the drain of
 * the array, a row a cycle, does not. Parameter: overlap, 0 or 1. */
#include <kb/impl.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t systolic_service(const struct kb_gemm_request *ask)
{
    uint64_t rows = least(ask->m, kb_attrs.pe_gemm_rows), cols = least(ask->n, kb_attrs.pe_gemm_cols);
    uint64_t passes = kb_product(kb_ceil_div(ask->m, kb_attrs.pe_gemm_rows),
                                 kb_ceil_div(ask->n, kb_attrs.pe_gemm_cols));
    uint64_t skew = rows + cols - 2, skews = systolic_overlap ? 1 : passes;
    uint64_t pass = kb_sum(kb_ceil_div(ask->k, ask->k_per_cycle), rows);
    uint64_t cycles = kb_sum(kb_product(passes, pass), kb_product(skews, skew));
    return kb_sum(kb_attrs.pe_gemm_overhead_ps, kb_cycles_ps(cycles, kb_attrs.pe_gemm_clock_khz));
}
