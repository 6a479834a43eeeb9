/* systolic.c: a model of pe_gemm: an output-stationary systolic array with operands from a register file.
 *
 * A pass computes one block of C of the array's size: k steps, and a skew of rows + cols - 2 cycles until the last
 * element has passed through. If the register file holds the operands of two passes (`overlap: 1`), the skew of a pass
 * overlaps the next pass; the drain of the array, one row per cycle, does not. Parameter: overlap, 0 or 1. */
#include <kb/impl.h>

uint64_t systolic_service(const struct kb_gemm_request *ask)
{
    uint64_t rows = kb_min(ask->m, kb_attrs.pe_gemm_rows), cols = kb_min(ask->n, kb_attrs.pe_gemm_cols);
    uint64_t passes = kb_product(kb_ceil_div(ask->m, kb_attrs.pe_gemm_rows),
                                 kb_ceil_div(ask->n, kb_attrs.pe_gemm_cols));
    uint64_t skew = rows + cols - 2, skews = systolic_overlap ? 1 : passes;
    uint64_t pass = kb_sum(kb_ceil_div(ask->k, ask->k_per_cycle), rows);
    uint64_t cycles = kb_sum(kb_product(passes, pass), kb_product(skews, skew));
    return kb_sum(kb_attrs.pe_gemm_overhead_ps, kb_cycles_ps(cycles, kb_attrs.pe_gemm_clock_khz));
}
