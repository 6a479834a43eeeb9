/* engine.c: what the engines of a PE have in common: which serves what, the links between them, the TCM's channels.
 *
 * Generated code starts their services; engine.h, dma.c and ipcq.c compute how long these take. */
#include "engine.h"

#include <inttypes.h>

#include "base/rates.h"
#include "common/fail.h"
#include "deferred.h"
#include "emitted.h"

uint64_t engine_link_ps(enum stage_kind from, enum stage_kind to)
{
    static const uint64_t *const links[NODE_KINDS][NODE_KINDS] = {
#define WIRE(from, to) [NODE_pe_##from][NODE_pe_##to] = &kb_attrs.links_##from##_to_##to##_ps,
#include "kb/wires.def"
#undef WIRE
    };
    const uint64_t *link = links[from == STAGE_NONE ? NODE_pe_scheduler : stage_node(from)][stage_node(to)];
    return link ? *link : 0;
}

enum { FOLLOWED = 256 };                                /* ops; beyond them all count as asked for */
static bool asked[FOLLOWED];

uint64_t engine_op_cost(uint16_t op)
{
    if (op < FOLLOWED)
        asked[op] = true;
    return kb_op_costs[op];
}

bool engine_op_cost_asked(uint16_t op)
{
    return op >= FOLLOWED || asked[op];
}

static uint64_t stage_ps(const struct command *command, const struct tile_shape *shape, const struct stage *stage)
{
    const struct request *ask = &command->ask;
    enum dtype dtype = ask->kind == COMMAND_gemm_tiles ? ask->out_dtype : ask->dtype;
    switch ((enum stage_kind)stage->kind) {
    case STAGE_GEMM:
        return builtin_pe_gemm_service(&(struct kb_gemm_request){
            .m = shape->m, .k = shape->k, .n = shape->n, .k_per_cycle = kb_gemm_k_per_cycle[ask->dtype]});
    case STAGE_MATH:                                    /* an epilogue of a gemm works with the lanes of its output */
        return builtin_pe_math_service(&(struct kb_math_request){
            .elements = stage->amount, .lanes = kb_math_lanes[dtype], .cost = engine_op_cost(stage->op)});
    case STAGE_FETCH:
    case STAGE_STORE:
        return builtin_pe_fetch_store_service(&(struct kb_move_request){
            .stores = stage->kind == STAGE_STORE, .bytes = stage->amount}).channel_ps;
    default:
        return 0;
    }
}

static inline void stage_times(const struct command *command, const struct tile_shape *shape, struct stage *stage)
{
    stage->order = event_order(pe_rank(command->pe, stage_node(stage->kind)), CLASS_SERVICE, command->number);
    stage->ps = stage_ps(command, shape, stage);
}

void engine_times(struct command *command)
{
    command->link_ps = engine_link_ps(STAGE_NONE, command->first_stage);
    if (!command_is_composite(command->ask.kind)) {
        stage_times(command, command->shapes, command->shapes->stages);
        return;
    }
    for (struct tile_shape *shape = command->shapes; shape < command->shapes + command->shape_count; shape++)
        for (struct stage *stage = shape->stages; stage && stage->kind != STAGE_NONE; stage++) {
            stage_times(command, shape, stage);
            stage->link_ps = stage[1].kind == STAGE_NONE ? 0 : engine_link_ps(stage->kind, stage[1].kind);
        }
    deferrable_mark(command);
}

_Noreturn void service_too_long(const char *model, uint64_t length_ps)
{
    run_failed("simulated time runs past 2^64 ps (213 days): %s of %s, asked at %" PRIu64 " ps, takes %" PRIu64 " ps",
               model, kb_machine_name, now_ps, length_ps);
}

/* ---- the PE's own TCM */

static inline uint64_t tcm_reserve_made(struct pe *pe, bool writes, uint64_t at_ps, uint64_t bytes, uint64_t length_ps,
                                        bool watched)
{
    if (writes)
        delivery_settle(&kb_nodes[pe_rank(pe, NODE_pe_dma)], NULL);
    uint64_t *free_ps = writes ? &pe->tcm.write_free_ps : &pe->tcm.read_free_ps;
    uint64_t start = reserve(free_ps, at_ps, length_ps);
    *(writes ? &stats.write_bytes[SPACE_TCM] : &stats.read_bytes[SPACE_TCM]) += bytes;
    stats_channel(SPACE_TCM, writes, pe_number(pe), bytes, at_ps, start, length_ps, watched);
    return start + length_ps;
}

static __attribute__((cold, noinline)) uint64_t tcm_reserve_watched(struct pe *pe, bool writes, uint64_t at_ps,
                                                                    uint64_t bytes, uint64_t length_ps,
                                                                    enum kb_tcm_user user)
{
    if (!kb_has_model[NODE_pe_tcm])
        return tcm_reserve_made(pe, writes, at_ps, bytes, length_ps, true);
    *(writes ? &stats.write_bytes[SPACE_TCM] : &stats.read_bytes[SPACE_TCM]) += bytes;
    return pe_tcm_serve(&(struct kb_tcm_request){pe_number(pe), user, writes, bytes, length_ps, at_ps}).last_ps;
}

static inline uint64_t tcm_reserve(struct pe *pe, bool writes, uint64_t at_ps, uint64_t bytes, uint64_t length_ps,
                                   enum kb_tcm_user user)
{
    return is_observed_or_modelled(MOMENT_reserved) ? tcm_reserve_watched(pe, writes, at_ps, bytes, length_ps, user)
                                                    : tcm_reserve_made(pe, writes, at_ps, bytes, length_ps, false);
}

uint64_t tcm_read_for(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t length_ps)
{
    return tcm_reserve(pe, false, at_ps, bytes, length_ps, KB_TCM_FETCH_STORE);
}

uint64_t tcm_write_for(struct pe *pe, uint64_t at_ps, uint64_t bytes, uint64_t length_ps)
{
    return tcm_reserve(pe, true, at_ps, bytes, length_ps, KB_TCM_FETCH_STORE);
}

uint64_t tcm_read(struct pe *pe, uint64_t at_ps, const struct payload *payload)
{
    return tcm_reserve(pe, false, at_ps, payload->bytes, payload->tcm_read_ps, KB_TCM_DMA);
}

uint64_t tcm_write(struct pe *pe, uint64_t at_ps, const struct payload *payload)
{
    return tcm_reserve(pe, true, at_ps, payload->bytes, payload->tcm_write_ps, KB_TCM_DMA);
}
