/* all_gather.c: every rank gets the blocks of all ranks: the ring algorithm.
 *
 * Every block goes once around the ring, and each rank on the way stores it. Every rank sends (p - 1) / p of the
 * vector, to its neighbour only. */
#include "collective.h"

struct all_gather_args {
    kb_tensor in, out;                                  /* `in`: a block of columns per rank; `out`: a copy per rank */
    struct kb_order order;
    uint64_t chunk_bytes;
};

KB_KERNEL(all_gather, struct all_gather_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = out.shape[0], longest = block_longest(n, p);
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, out.dtype, NULL, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipeline.segment)
        for (uint64_t step = 0; step < p; step++) {
            struct indices range = range_window(block_range(n, p, ring_behind(&ring, step)), base, pipeline.segment);
            struct indices own = {base, step == 0 ? range.count : 0};
            unsigned actions = (step > 0 ? PIPELINE_RECV : PIPELINE_LOAD) | PIPELINE_STORE |
                               (step < p - 1 ? PIPELINE_SEND : 0);
            pipeline_push(&pipeline, &(struct segment){
                actions, ring_behind(&ring, 1), ring_ahead(&ring, 1), subrange(tl, in, own), subrange(tl, out, range),
                range.count});
        }
    pipeline_drain(&pipeline);
}

KB_BENCH(all_gather, "every PE gets the blocks of all PEs",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of all blocks together"))
{
    struct collective c = collective_params();

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(1, c.n), kb_cols(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, "add");
    kb_future launch = kb_launch(all_gather, c.pes, &(struct all_gather_args){in, out, c.order, c.chunk});
    kb_wait(launch);

    uint64_t longest = block_longest(c.n, c.p);
    struct kb_work bound = ring_bound(c.pes, c.order, (c.n - longest) * c.element_bytes, 1);
    bound.memory_ps = kb_memory_ps(c.space, longest * c.element_bytes, c.n * c.element_bytes);
    collective_report(launch, &c, in, out, c.n * c.element_bytes, c.p - 1, c.p, &bound);
    kb_expect_close(out, kb_ref_copy(in));
}
