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
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct kb_order order = kb_snake(pes);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    enum kb_space space = space_of(kb_word(space));
    const char *op = op_of(kb_word(op));
    uint64_t n = kb_int(size), p = pes.count, size = kb_dtype_bytes(dtype);

    kb_tensor in = kb_tensor_new("in", dtype, kb_2d(p, n), kb_rows(space, pes));
    kb_tensor out = kb_tensor_new("out", dtype, kb_2d(1, n), kb_cols(space, pes));
    fill_for(in, dtype, op);
    kb_future launch = kb_launch(reduce_scatter, pes,
                                 &(struct reduce_scatter_args){in, out, order, op, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = ring_bound(pes, order, (n - longest_block(n, p)) * size, 1);
    bound.memory_ps = kb_memory_ps(space, n * size, longest_block(n, p) * size);
    report(launch, n * size, p - 1, p, bound);
    kb_expect_close(out, kb_ref_reduce(in, op));
}
