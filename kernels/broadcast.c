/* broadcast.c: one rank's vector for all ranks.
 *
 * Each message goes to all ranks at once (tl_multicast): it takes each link once. A broadcast that is asked to goes along a chain
 * instead (chain.h). */
#include "chain.h"

KB_KERNEL(broadcast, struct chain_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_shard(tl, arg->in, 0)), out = flattened(tl_my_shard(tl, arg->out));
    bool sends = arg->at_once ? ring.at == 0 && ring.count > 1 : ring.at < ring.count - 1;
    chain_run(tl, arg, &ring, in, out, PIPELINE_STORE | (ring.at == 0 ? PIPELINE_LOAD : PIPELINE_RECV) |
                                           (sends ? PIPELINE_SEND : 0));
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
