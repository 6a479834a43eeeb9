/* all_to_all.c: every rank sends one block to every rank: pairwise exchange.
 *
 * In step s a rank sends to the rank s ahead on the ring and receives from the rank s behind it. So every rank sends
 * and receives one block at a time, and exchanges with near ranks first. */
#include "collective.h"

struct all_to_all_args {
    kb_tensor in, out;                                  /* a row of each per rank, which has a block per rank */
    struct kb_order order;
    uint64_t chunk_bytes;
};

KB_KERNEL(all_to_all, struct all_to_all_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0] / p;
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, NULL, arg->chunk_bytes, n);
    for (uint64_t base = 0; base < n; base += pipeline.segment)
        for (uint64_t step = 0; step < p; step++) {
            uint32_t to = ring_ahead(&ring, step), from = ring_behind(&ring, step);
            uint64_t count = kb_min(pipeline.segment, n - base);
            struct tl_shard give = tl_part(tl, in, 0, to * n + base, count);
            struct tl_shard take = tl_part(tl, out, 0, from * n + base, count);
            if (step == 0) {
                pipeline_push(&pipeline, &(struct segment){PIPELINE_LOAD | PIPELINE_STORE, from, to, give, take, count});
                continue;
            }
            pipeline_push(&pipeline, &(struct segment){PIPELINE_LOAD | PIPELINE_SEND, from, to, give, take, count});
            pipeline_push(&pipeline, &(struct segment){PIPELINE_RECV | PIPELINE_STORE, from, to, give, take, count});
        }
    pipeline_drain(&pipeline);
}

static struct kb_work all_to_all_bound(struct kb_pes pes, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    for (uint32_t i = 0; i < pes.count; i++)
        for (uint32_t j = 0; j < pes.count; j++) {
            if (i == j)
                continue;
            kb_traffic_add(bound.traffic, pes.pe[i], pes.pe[j], bytes);
            bound.latency_ps = kb_max(bound.latency_ps, kb_latency_ps(pes.pe[i], pes.pe[j]));
        }
    return bound;
}

KB_BENCH(all_to_all, "every PE sends a different block to every PE",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector, rounded up to blocks of equal size"))
{
    struct collective c = collective_params();
    uint64_t block = block_longest(c.n, c.p), bytes = c.p * block * c.element_bytes;

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.p * block), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(c.p, c.p * block), kb_rows(c.space, c.pes));
    collective_fill(in, c.dtype, "add");
    kb_future launch = kb_launch(all_to_all, c.pes, &(struct all_to_all_args){in, out, c.order, c.chunk});
    kb_wait(launch);

    struct kb_work bound = all_to_all_bound(c.pes, block * c.element_bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, c.p - 1, c.p, &bound);
    kb_expect_close(out, kb_ref_exchange(in));
}
