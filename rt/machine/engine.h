/* engine.h: what the engines of a PE have in common, and the built-in models of engines and scheduler.
 *
 * The models are inline functions for generated code to call, with the interface that models of users have (kb/impl.h).
 * Models of memories are in memory.h. */
#ifndef KB_ENGINE_H
#define KB_ENGINE_H

#include "base/rates.h"
#include "emitted.h"
#include "kb/impl.h"
#include "pe.h"
#include "stats.h"
#include "tiling.h"

/* The engine that serves a stage, as statistics count them. */
static inline enum engine engine_of(enum stage_kind stage)
{
    static const uint8_t engines[STAGES] = {
#define STAGE(name, part, engine, busy) [STAGE_##name] = ENGINE_##engine,
#include "kb/stages.def"
#undef STAGE
    };
    return engines[stage];
}

/* The latency of the PE-internal link between the parts that serve two stages, 0 if there is none; from STAGE_NONE: from
 * the scheduler. */
uint64_t engine_link_ps(enum stage_kind from, enum stage_kind to);

/* Works out the rest of the plan of a command that is submitted: for each stage of each shape, the order of its events, the
 * latency of the link behind it and, by the built-in models, how long GEMM and MATH serve it, or for how long FETCH and
 * STORE reserve the PE's TCM. */
void engine_times(struct command *command);

/* The cost of an op that the machine has; whether a run of this process has asked for it. */
uint64_t engine_op_cost(uint16_t op);
bool engine_op_cost_asked(uint16_t op);

/* ---- the PE's own TCM: a channel for reads, another for writes. Each call reserves one from at_ps on, and returns
 * when the reservation ends. */

uint64_t tcm_read(struct pe *pe, uint64_t at_ps, const struct payload *payload);
uint64_t tcm_write(struct pe *pe, uint64_t at_ps, const struct payload *payload);

/* The same for a length of time. */
uint64_t tcm_read_for(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t length_ps);
uint64_t tcm_write_for(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t length_ps);

/* ---- models */

/* Ends the run with a message: a service takes so long by its model that its end does not fit into 64 bits. */
_Noreturn void service_too_long(const char *model, uint64_t length_ps);

/* The end of a service that begins now and takes length_ps by a model. Ends the run with a message if that does not fit
 * into 64 bits. */
static inline uint64_t service_end_ps(const char *model, uint64_t length_ps)
{
    uint64_t end_ps;
    if (__builtin_add_overflow(now_ps, length_ps, &end_ps))
        service_too_long(model, length_ps);
    return end_ps;
}

static inline uint64_t builtin_pe_gemm_service(const struct kb_gemm_request *ask)
{
    uint64_t tiles = product(ceil_div(ask->m, kb_attrs.pe_gemm_rows), ceil_div(ask->n, kb_attrs.pe_gemm_cols));
    uint64_t steps = sum(ceil_div(ask->k, ask->k_per_cycle), kb_attrs.pe_gemm_block_cycles);
    uint64_t cycles = sum(kb_attrs.pe_gemm_fill_cycles, product(tiles, steps));
    return sum(kb_attrs.pe_gemm_overhead_ps, cycles_ps(cycles, kb_attrs.pe_gemm_clock_khz));
}

static inline uint64_t builtin_pe_math_service(const struct kb_math_request *ask)
{
    uint64_t steps = ceil_div(ask->elements, ask->lanes);
    uint64_t cycles = sum(kb_attrs.pe_math_fill_cycles, product(steps, ask->cost));
    return sum(kb_attrs.pe_math_overhead_ps, cycles_ps(cycles, kb_attrs.pe_math_clock_khz));
}

/* Bytes move at the bandwidth of the TCM's channel or of the link to it, whichever is less. */
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

#endif
