/* reduce_scatter.c: each rank gets its block of the reduction of all ranks' vectors, round a ring.
 *
 * The block of a rank starts one place after it, goes once round, joined with each rank's own on the way, and is
 * complete where it belongs. Every rank sends (p - 1) / p of the vector, to its neighbour alone. */
#include "collective.h"

struct reduce_scatter_args {
    kb_tensor in, out;                                  /* a row of `in` with each rank, a block of columns of `out` */
    struct kb_order order;
    const char *op;
    uint64_t chunk_bytes;
};

KB_KERNEL(reduce_scatter, struct reduce_scatter_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flat(tl_my_shard(tl, arg->in)), out = flat(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0], longest = longest_block(n, p);
    struct pipe pipe;
    pipe_open(&pipe, tl, in.dtype, arg->op, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipe.panel)
        for (uint64_t step = 0; step < p; step++) {
            struct span block = block_of(n, p, ring_behind(&ring, step + 1));
            struct span span = span_cut(block, base, pipe.panel), mine = {base, step == p - 1 ? span.count : 0};
            unsigned what = LOAD | (step > 0 ? RECV : 0) | (step == p - 1 ? STORE : SEND);
            pipe_put(&pipe, (struct panel){what, ring_behind(&ring, 1), ring_ahead(&ring, 1), part_of(tl, in, span),
                                           part_of(tl, out, mine), span.count});
        }
    pipe_flush(&pipe);
}

KB_BENCH(reduce_scatter, "every PE gets its block of the reduction of all vectors",
         PARAMS_OF_COLLECTIVE("f16 bf16 f32 i32 i8", "elements of each vector"), PARAMS_OF_REDUCTION)
{
    struct collective c = reduction_params();

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_cols(c.space, c.pes));
    fill_for(in, c.dtype, c.op);
    kb_future launch = kb_launch(reduce_scatter, c.pes,
                                 &(struct reduce_scatter_args){in, out, c.order, c.op, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = ring_bound(c.pes, c.order, (c.n - longest_block(c.n, c.p)) * c.element_bytes, 1);
    bound.memory_ps = kb_memory_ps(c.space, c.n * c.element_bytes, longest_block(c.n, c.p) * c.element_bytes);
    report(launch, c.n * c.element_bytes, c.p - 1, c.p, bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
