/* service.h: the built-in models of the engines and the scheduler, in the form that a user's own have, for emitted code
 * to call directly; and what is done with the times that models give. Memories' built-in models: memory.c. */
#ifndef KB_SERVICE_H
#define KB_SERVICE_H

#include "base/rates.h"
#include "emitted.h"
#include "engine.h"
#include "kb/impl.h"

static inline uint64_t builtin_pe_gemm_service(const struct kb_gemm_request *ask)
{
    uint64_t tiles = product(ceil_div(ask->m, kb_attrs.pe_gemm_rows), ceil_div(ask->n, kb_attrs.pe_gemm_cols));
    uint64_t cycles = sum(kb_attrs.pe_gemm_fill_cycles, product(tiles, ceil_div(ask->k, ask->k_per_cycle)));
    return sum(kb_attrs.pe_gemm_overhead_ps, cycles_ps(cycles, kb_attrs.pe_gemm_clock_khz));
}

static inline uint64_t builtin_pe_math_service(const struct kb_math_request *ask)
{
    uint64_t steps = ceil_div(ask->elements, ask->lanes);
    uint64_t cycles = sum(kb_attrs.pe_math_fill_cycles, product(steps, ask->cost));
    return sum(kb_attrs.pe_math_overhead_ps, cycles_ps(cycles, kb_attrs.pe_math_clock_khz));
}

/* Between TCM and register file the narrower of the channel and the link to it counts. */
static inline struct kb_moved builtin_pe_fetch_store_service(const struct kb_move_request *ask)
{
    uint64_t tcm_bps = ask->stores ? kb_attrs.pe_tcm_write_bw_bps : kb_attrs.pe_tcm_read_bw_bps;
    uint64_t link_bps = kb_attrs.links_fetch_store_to_tcm_bw_bps;
    uint64_t bw_bps = !tcm_bps || (link_bps && link_bps < tcm_bps) ? link_bps : tcm_bps;
    return (struct kb_moved){move_ps(ask->bytes, bw_bps), kb_attrs.pe_fetch_store_overhead_ps};
}

static inline uint64_t builtin_pe_scheduler_service(const struct kb_schedule_request *ask)
{
    return ask->feeds ? kb_attrs.pe_scheduler_tile_overhead_ps : kb_attrs.pe_scheduler_overhead_ps;
}

/* The end of what begins now and takes so long by a model; the run stops with a message when there is no such time. */
static inline uint64_t service_end_ps(const char *model, uint64_t length_ps)
{
    uint64_t end_ps;
    if (__builtin_add_overflow(now_ps, length_ps, &end_ps))
        service_too_long(model, length_ps);
    return end_ps;
}

#endif
