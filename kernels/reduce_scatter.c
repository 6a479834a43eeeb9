/* reduce_scatter.c: every rank gets its block of the reduction of all ranks' vectors: the ring algorithm.
 *
 * The block of a rank starts at the next rank, goes once around the ring, is reduced with each rank's own part on the
 * way, and is complete when it reaches its rank. Every rank sends (p - 1) / p of the vector, to its neighbour only. */
#include "collective.h"

struct reduce_scatter_args {
    kb_tensor in, out;                                  /* `in`: a row per rank; `out`: a block of columns per rank */
    struct kb_order order;
    const char *op;
    uint64_t chunk_bytes;
};

KB_KERNEL(reduce_scatter, struct reduce_scatter_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0], longest = block_longest(n, p);
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, arg->op, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipeline.segment)
        for (uint64_t step = 0; step < p; step++) {
            struct indices block = block_range(n, p, ring_behind(&ring, step + 1));
            struct indices range = range_window(block, base, pipeline.segment);
            struct indices own = {base, step == p - 1 ? range.count : 0};
            unsigned actions = PIPELINE_LOAD | (step > 0 ? PIPELINE_RECV : 0) |
                               (step == p - 1 ? PIPELINE_STORE : PIPELINE_SEND);
            pipeline_push(&pipeline, &(struct segment){
                actions, ring_behind(&ring, 1), ring_ahead(&ring, 1), subrange(tl, in, range), subrange(tl, out, own),
                range.count});
        }
    pipeline_drain(&pipeline);
}

KB_BENCH(reduce_scatter, "every PE gets its block of the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS)
{
    struct collective c = reduction_params();

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_cols(c.space, c.pes));
    collective_fill(in, c.dtype, c.op);
    kb_future launch = kb_launch(reduce_scatter, c.pes,
                                 &(struct reduce_scatter_args){in, out, c.order, c.op, c.chunk});
    kb_wait(launch);

    uint64_t longest = block_longest(c.n, c.p);
    struct kb_work bound = ring_bound(c.pes, c.order, (c.n - longest) * c.element_bytes, 1);
    bound.memory_ps = kb_memory_ps(c.space, c.n * c.element_bytes, longest * c.element_bytes);
    collective_report(launch, &c, in, out, c.n * c.element_bytes, c.p - 1, c.p, &bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
