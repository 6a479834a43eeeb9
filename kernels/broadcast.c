/* broadcast.c: one rank's vector for all ranks, and the reduction of all ranks' vectors for one: along a chain.
 *
 * The chain is the ring of ranks, cut at the root. The vector moves along it segment by segment, away from the root for
 * a broadcast and towards it for a reduction, so that all ranks work at the same time on a long vector. Each rank sends
 * the vector once. */
#include "collective.h"

struct chain_args {
    kb_tensor in, out;
    struct kb_order order;
    uint32_t root;                                      /* a rank */
    const char *op;                                     /* of a reduction */
    uint64_t chunk_bytes;
};

/* How many steps behind this rank the root is on the ring. */
static uint32_t steps_after_root(const struct rank_ring *ring, uint32_t root)
{
    uint32_t steps = 0;
    while (ring_behind(ring, steps) != root)
        steps++;
    return steps;
}

/* Moves the vector through this rank, with the same actions for each segment. */
static void chain_run(struct tl *tl, const struct chain_args *arg, const struct rank_ring *ring, struct tl_shard in,
                      struct tl_shard out, unsigned actions)
{
    uint64_t n = in.shape[0];
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, arg->op, arg->chunk_bytes, n);
    for (uint64_t base = 0; base < n; base += pipeline.segment) {
        struct indices range = {base, kb_min(pipeline.segment, n - base)};
        pipeline_push(&pipeline, &(struct segment){
            actions, ring_behind(ring, 1), ring_ahead(ring, 1), subrange(tl, in, range), subrange(tl, out, range),
            range.count});
    }
    pipeline_drain(&pipeline);
}

KB_KERNEL(broadcast, struct chain_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_shard(tl, arg->in, 0)), out = flattened(tl_my_shard(tl, arg->out));
    uint32_t steps = steps_after_root(&ring, arg->root);
    chain_run(tl, arg, &ring, in, out, PIPELINE_STORE | (steps == 0 ? PIPELINE_LOAD : PIPELINE_RECV) |
                                           (steps < ring.count - 1 ? PIPELINE_SEND : 0));
}

KB_KERNEL(reduce, struct chain_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_shard(tl, arg->out, 0));
    uint32_t steps = steps_after_root(&ring, arg->root);
    bool begins = steps == 1 || ring.count == 1;        /* the rank after the root, which is last */
    chain_run(tl, arg, &ring, in, out, PIPELINE_LOAD | (begins ? 0 : PIPELINE_RECV) |
                                           (steps == 0 ? PIPELINE_STORE : PIPELINE_SEND));
}

/* The bound of a chain: each of its links carries the vector, and the first element passes all of them in turn. */
static struct kb_work chain_bound(struct kb_pes pes, struct kb_order order, uint32_t begin, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint32_t at = 0;
    while (order.position[at] != begin)
        at++;
    for (uint32_t i = 0; i + 1 < order.count; i++) {
        uint32_t from = pes.pe[order.position[(at + i) % order.count]];
        uint32_t to = pes.pe[order.position[(at + i + 1) % order.count]];
        kb_traffic_add(bound.traffic, from, to, bytes);
        bound.latency_ps += kb_latency_ps(from, to);
    }
    return bound;
}

/* The rank after another one on the ring. */
static uint32_t rank_after(struct kb_order order, uint32_t rank)
{
    uint32_t at = 0;
    while (order.position[at] != rank)
        at++;
    return order.position[(at + 1) % order.count];
}

#define ROOT_PARAM KB_INT(root, 0, 0, 1 << 24, "rank of the root, modulo the number of ranks")

KB_BENCH(broadcast, "every PE gets one PE's vector",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of the vector"), ROOT_PARAM)
{
    struct collective c = collective_params();
    uint32_t root = (uint32_t)param_used("root", kb_int(root), kb_int(root) % c.pes.count, "modulo the number of ranks");
    uint64_t bytes = c.n * c.element_bytes;

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, "add");
    kb_future launch = kb_launch(broadcast, c.pes, &(struct chain_args){in, out, c.order, root, NULL, c.chunk});
    kb_wait(launch);

    struct kb_work bound = chain_bound(c.pes, c.order, root, bytes);
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

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    collective_fill(in, c.dtype, c.op);
    kb_future launch = kb_launch(reduce, c.pes, &(struct chain_args){in, out, c.order, root, c.op, c.chunk});
    kb_wait(launch);

    struct kb_work bound = chain_bound(c.pes, c.order, rank_after(c.order, root), bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 1, 1, &bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
