/* broadcast.c: one rank's vector for all ranks, and the reduction of all ranks' vectors for one.
 *
 * A broadcast sends each message to all ranks at once (tl_multicast): it takes each link once. A reduction, or a broadcast
 * that is asked to, goes along a chain: the ring of ranks, cut at the root. The vector moves along it segment by segment,
 * away from the root or towards it, so that all ranks work at the same time on a long vector. Each rank sends the vector
 * once. */
#include "collective.h"

struct chain_args {
    kb_tensor in, out;
    struct kb_order order;                              /* it begins with the root */
    bool at_once;                                       /* not along the chain */
    const char *op;                                     /* of a reduction */
    uint64_t chunk_bytes;
};

/* Moves the vector through this rank, with the same actions for each segment. */
static void chain_run(struct tl *tl, const struct chain_args *arg, const struct rank_ring *ring, struct tl_shard in,
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

KB_KERNEL(broadcast, struct chain_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_shard(tl, arg->in, 0)), out = flattened(tl_my_shard(tl, arg->out));
    bool sends = arg->at_once ? ring.at == 0 && ring.count > 1 : ring.at < ring.count - 1;
    chain_run(tl, arg, &ring, in, out, PIPELINE_STORE | (ring.at == 0 ? PIPELINE_LOAD : PIPELINE_RECV) |
                                           (sends ? PIPELINE_SEND : 0));
}

KB_KERNEL(reduce, struct chain_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_shard(tl, arg->out, 0));
    bool begins = ring.at == 1 || ring.count == 1;      /* the rank after the root, which is last */
    chain_run(tl, arg, &ring, in, out, PIPELINE_LOAD | (begins ? 0 : PIPELINE_RECV) |
                                           (ring.at == 0 ? PIPELINE_STORE : PIPELINE_SEND));
}

/* The bound of a chain that begins at an index of an order: each of its links carries the vector, and the first element
 * passes all of them in turn. */
static struct kb_work chain_bound(struct kb_pes pes, struct kb_order order, uint32_t at, uint64_t bytes)
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

/* The bound of messages to all ranks: the links on the way to the one that is furthest away carry the vector. */
static struct kb_work at_once_bound(struct kb_pes pes, struct kb_order order, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint32_t root = pes.pe[order.position[0]], furthest = root;
    for (uint32_t i = 1; i < order.count; i++) {
        uint64_t latency_ps = kb_latency_ps(root, pes.pe[order.position[i]]);
        if (latency_ps > bound.latency_ps)
            bound.latency_ps = latency_ps, furthest = pes.pe[order.position[i]];
    }
    if (furthest != root)
        kb_traffic_add(bound.traffic, root, furthest, bytes);
    return bound;
}

#define ROOT_PARAM KB_INT(root, 0, 0, 1 << 24, "rank of the root, modulo the number of ranks")

KB_BENCH(broadcast, "every PE gets one PE's vector",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of the vector"), ROOT_PARAM,
         KB_WORD(algorithm, "multicast chain", "to all PEs at once, or from one to the next"))
{
    struct collective c = collective_params();
    uint32_t root = (uint32_t)param_used("root", kb_int(root), kb_int(root) % c.pes.count, "modulo the number of ranks");
    uint64_t bytes = c.n * c.element_bytes;
    bool at_once = kb_word(algorithm)[0] == 'm';
    collective_fits(&c, 2 * tcm_padded(bytes), c.n, 0);
    c.order = kb_order_from(c.order, root);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, "add", c.p);
    kb_future launch = kb_launch(broadcast, c.pes, &(struct chain_args){in, out, c.order, at_once, NULL, c.chunk});
    kb_wait(launch);

    struct kb_work bound = at_once ? at_once_bound(c.pes, c.order, bytes) : chain_bound(c.pes, c.order, 0, bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 1, 1, &bound);
    kb_expect_close(out, kb_ref_copy(in));
}

KB_BENCH(reduce, "one PE gets the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS, ROOT_PARAM)
{
    struct collective c = reduction_params();
    uint32_t root = (uint32_t)param_used("root", kb_int(root), kb_int(root) % c.pes.count, "modulo the number of ranks");
    uint64_t bytes = c.n * c.element_bytes;
    c.order = kb_order_from(c.order, root);
    collective_fits(&c, 2 * tcm_padded(bytes), c.n, 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    collective_fill(in, c.dtype, c.op, c.p);
    kb_future launch = kb_launch(reduce, c.pes, &(struct chain_args){in, out, c.order, false, c.op, c.chunk});
    kb_wait(launch);

    struct kb_work bound = chain_bound(c.pes, c.order, 1 % c.order.count, bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 1, 1, &bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
