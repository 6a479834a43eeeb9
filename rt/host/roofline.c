/* roofline.c: the least time that engines, memories and links need for some work, and how near a launch came to it. */
#include "base/rates.h"
#include "machine/emitted.h"
#include "kb/measure.h"
#include "base/ops.h"

uint64_t kb_gemm_ps(enum kb_dtype dtype, uint64_t macs)
{
    uint64_t a_cycle = product(product(kb_attrs.pe_gemm_rows, kb_attrs.pe_gemm_cols), kb_gemm_k_per_cycle[dtype]);
    return a_cycle ? cycles_ps(ceil_div(macs, a_cycle), kb_attrs.pe_gemm_clock_khz) : 0;
}

uint64_t kb_math_ps(enum kb_dtype dtype, uint64_t elements)
{
    uint64_t lanes = kb_math_lanes[dtype];
    return lanes ? cycles_ps(ceil_div(elements, lanes), kb_attrs.pe_math_clock_khz) : 0;
}

uint64_t kb_op_cost(const char *op)
{
    uint16_t number = op_number(op);
    return op_known(number) ? kb_op_costs[number] : 0;
}

/* A set is in rank order: the PEs of a cube follow one another. */
static uint64_t cubes_of(struct kb_pes pes)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < pes.count; i++)
        count += i == 0 || pes.pe[i] / kb_shape.pes != pes.pe[i - 1] / kb_shape.pes;
    return count;
}

static void bound(const char *name, uint64_t bound_ps)
{
    if (bound_ps)
        kb_figure(name, bound_ps, KB_PS);
}

void kb_roofline(uint64_t time_ps, struct kb_pes pes, const struct kb_work *work)
{
    uint64_t p = pes.count, cubes = cubes_of(pes);
    uint64_t array_ps = kb_gemm_ps(work->gemm_dtype, ceil_div(work->macs, p));
    uint64_t wide_ps = kb_math_ps(KB_f32, ceil_div(work->math_f32, p));
    uint64_t math_ps = kb_math_ps(work->math_dtype, ceil_div(work->math, p)) + wide_ps;
    uint64_t hbm_ps = kb_memory_ps(KB_HBM, ceil_div(work->hbm_read, p), ceil_div(work->hbm_written, p));
    uint64_t sram_ps = kb_memory_ps(KB_SRAM, ceil_div(work->sram_read, cubes), ceil_div(work->sram_written, cubes));
    uint64_t memory_ps = kb_max(hbm_ps, sram_ps), link_ps = work->traffic ? kb_traffic_ps(work->traffic) : 0;
    uint64_t accel_ps = kb_shape.accel_shared ? array_ps + math_ps : kb_max(array_ps, math_ps);
    uint64_t most_ps = kb_max(accel_ps, kb_max(memory_ps, link_ps));
    kb_figure("time", time_ps, KB_PS);
    bound("array_bound", array_ps);
    bound("math_bound", math_ps);
    if (array_ps && math_ps)
        bound("accel_bound", accel_ps);
    bound("memory_bound", memory_ps);
    bound("link_bound", link_ps);
    if (time_ps)
        kb_figure("bound_reached", (uint64_t)((unsigned __int128)most_ps * 1000 / time_ps), KB_PERMILLE);
}
