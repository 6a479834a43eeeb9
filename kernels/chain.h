/* chain.h: a vector that goes along a chain: the ring of ranks, cut at the root. It moves segment by segment, away from the root or
 * towards it, so that all ranks work at the same time on a long vector. Each rank sends the vector once. */
#ifndef CHAIN_H
#define CHAIN_H

#include "collective.h"

struct chain_args {
    kb_tensor in, out;
    struct kb_order order;                              /* it begins with the root */
    bool at_once;                                       /* not along the chain */
    const char *op;                                     /* of a reduction */
    uint64_t chunk_bytes;
};

/* Moves the vector through this rank, with the same actions for each segment. */
static inline void chain_run(struct tl *tl, const struct chain_args *arg, const struct rank_ring *ring, struct tl_shard in,
                             struct tl_shard out, unsigned actions)
{
    uint64_t n = in.shape[0];
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, arg->op, arg->chunk_bytes, n);
    pipeline.all = ring->rank + 1;
    pipeline.receivers = arg->at_once ? ring->count - 1 : 0;
    for (uint64_t base = 0; base < n; base += pipeline.segment) {
        struct indices range = {base, kb_min(pipeline.segment, n - base)};
        pipeline_push(&pipeline, &(struct segment){
            actions, arg->at_once ? ring->rank[0] : ring_behind(ring, 1), ring_ahead(ring, 1), subrange(tl, in, range),
            subrange(tl, out, range), range.count});
    }
    pipeline_drain(&pipeline);
}

/* ---- in benches */

#define ROOT_PARAM KB_INT(root, 0, 0, 1 << 24, "rank of the root, modulo the number of ranks")

/* The bound of a chain that begins at an index of an order: each of its links carries the vector, and the first element
 * passes all of them in turn. */
static inline struct kb_work chain_bound(struct kb_pes pes, struct kb_order order, uint32_t at, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    for (uint32_t i = 0; i + 1 < order.count; i++) {
        uint32_t from = pes.pe[order.position[(at + i) % order.count]];
        uint32_t to = pes.pe[order.position[(at + i + 1) % order.count]];
        kb_traffic_add(bound.traffic, from, to, bytes);
        bound.latency_ps += kb_latency_ps(from, to);
    }
    return bound;
}

#endif
