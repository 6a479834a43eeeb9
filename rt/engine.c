/* engine.c: services of the engines: how long fetch, store, GEMM and MATH take; dma.c and ring.c have the others. */
#include "engine.h"

#include "channel.h"
#include "emitted.h"
#include "ring.h"

enum engine engine_of(enum stage_kind stage)
{
    static const enum engine engines[STAGES] = {
        [STAGE_DMA_READ] = ENGINE_DMA_READ, [STAGE_FETCH] = ENGINE_FETCH_STORE, [STAGE_GEMM] = ENGINE_GEMM,
        [STAGE_MATH] = ENGINE_MATH,         [STAGE_STORE] = ENGINE_FETCH_STORE, [STAGE_DMA_WRITE] = ENGINE_DMA_WRITE,
        [STAGE_COMM] = ENGINE_COMM,
    };
    return engines[stage];
}

uint64_t engine_link_ps(enum stage_kind from, enum stage_kind to)
{
    const struct attrs *a = &kb_attrs;
    switch (from) {
    case STAGE_NONE:
        return to == STAGE_FETCH || to == STAGE_STORE ? a->links_scheduler_to_fetch_store_ps
               : to == STAGE_GEMM                     ? a->links_scheduler_to_gemm_ps
               : to == STAGE_MATH                     ? a->links_scheduler_to_math_ps
                                                      : a->links_scheduler_to_dma_ps;
    case STAGE_DMA_READ:
        return to == STAGE_FETCH ? a->links_dma_to_fetch_store_ps : 0;
    case STAGE_FETCH:
        return to == STAGE_GEMM ? a->links_fetch_store_to_gemm_ps : a->links_fetch_store_to_math_ps;
    case STAGE_GEMM:
        return to == STAGE_MATH ? a->links_gemm_to_math_ps : a->links_gemm_to_fetch_store_ps;
    case STAGE_MATH:
        return to == STAGE_STORE ? a->links_math_to_fetch_store_ps : 0;
    default:
        return a->links_fetch_store_to_dma_ps;
    }
}

uint64_t gemm_ps(uint64_t m, uint64_t k, uint64_t n, enum dtype dtype)
{
    uint64_t tiles = product(ceil_div(m, kb_attrs.pe_gemm_rows), ceil_div(n, kb_attrs.pe_gemm_cols));
    uint64_t cycles = sum(kb_attrs.pe_gemm_fill_cycles, product(tiles, ceil_div(k, kb_gemm_k_per_cycle[dtype])));
    return sum(kb_attrs.pe_gemm_overhead_ps, cycles_ps(cycles, kb_attrs.pe_gemm_clock_khz));
}

uint64_t math_ps(unsigned op, uint64_t elements, enum dtype dtype)
{
    uint64_t steps = ceil_div(elements, kb_math_lanes[dtype]);
    uint64_t cycles = sum(kb_attrs.pe_math_fill_cycles, product(steps, kb_ops[op].cost));
    return sum(kb_attrs.pe_math_overhead_ps, cycles_ps(cycles, kb_attrs.pe_math_clock_khz));
}

/* ---- the PE's own TCM: one read and one write channel */

uint64_t tcm_read(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t bw_bps)
{
    uint64_t length = move_ps(bytes, bw_bps), start = reserve(&pe->tcm_read_free_ps, at_ps, length);
    stats.read_bytes[SPACE_TCM] += bytes;
    stats.read_busy_ps[SPACE_TCM] += length;
    stats.memory_wait_ps[SPACE_TCM] += start - at_ps;
    return pe->tcm_read_free_ps;
}

uint64_t tcm_write(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t bw_bps)
{
    uint64_t length = move_ps(bytes, bw_bps), start = reserve(&pe->tcm_write_free_ps, at_ps, length);
    stats.write_bytes[SPACE_TCM] += bytes;
    stats.write_busy_ps[SPACE_TCM] += length;
    stats.memory_wait_ps[SPACE_TCM] += start - at_ps;
    return pe->tcm_write_free_ps;
}

/* Between TCM and register file the narrower of the channel and the link to it counts. */
static uint64_t fetch_store_bw(uint64_t tcm_bps)
{
    uint64_t link_bps = kb_attrs.links_fetch_store_to_tcm_bw_bps;
    return !tcm_bps || (link_bps && link_bps < tcm_bps) ? link_bps : tcm_bps;
}

/* ---- fetch, store, compute */

static uint64_t fetch_ps(const struct token *token)
{
    uint64_t bytes = plan_fetch_bytes(token->command, &token->tile);
    uint64_t end_ps = tcm_read(token->command->pe, now_ps, bytes, fetch_store_bw(kb_attrs.pe_tcm_read_bw_bps));
    return time_after(end_ps, kb_attrs.pe_fetch_store_overhead_ps);
}

static uint64_t store_ps(const struct token *token)
{
    uint64_t bytes = plan_bytes(token->command, &token->tile, OPERAND_C);
    uint64_t end_ps = tcm_write(token->command->pe, now_ps, bytes, fetch_store_bw(kb_attrs.pe_tcm_write_bw_bps));
    return time_after(end_ps, kb_attrs.pe_fetch_store_overhead_ps);
}

static uint64_t gemm_end_ps(const struct token *token)
{
    const struct tile *tile = &token->tile;
    stats.gemm_flops += 2 * tile->m * tile->k * tile->n;
    return time_after(now_ps, gemm_ps(tile->m, tile->k, tile->n, token->command->ask.dtype));
}

/* An epilogue of a gemm works with the lanes of what comes out. */
static uint64_t math_end_ps(const struct token *token)
{
    const struct request *ask = &token->command->ask;
    enum dtype dtype = ask->kind == COMMAND_gemm_tiles ? ask->out_dtype : ask->dtype;
    return time_after(now_ps, math_ps(token->stage.op, plan_elements(token->command, &token->tile), dtype));
}

void service_start(struct token *token)
{
    switch (token->stage.kind) {
    case STAGE_COMM:
        ring_send(token);
        break;
    case STAGE_DMA_READ:
    case STAGE_DMA_WRITE:
        dma_start(token);
        break;
    case STAGE_FETCH:
        service_until(token, fetch_ps(token));
        break;
    case STAGE_STORE:
        service_until(token, store_ps(token));
        break;
    case STAGE_GEMM:
        service_until(token, gemm_end_ps(token));
        break;
    default:
        service_until(token, math_end_ps(token));
    }
}
