/* all_gather.c: all ranks get all ranks' blocks, round a ring.
 *
 * Every block goes once round and is stored by each rank on the way. Every rank sends (p - 1) / p of the whole, to its
 * neighbour alone. */
#include "collective.h"

struct all_gather_args {
    kb_tensor in, out;                                  /* a block of columns of `in` with each rank, a copy of `out` */
    struct kb_order order;
    uint64_t chunk_bytes;
};

KB_KERNEL(all_gather, struct all_gather_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flat(tl_my_shard(tl, arg->in)), out = flat(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = out.shape[0], longest = longest_block(n, p);
    struct pipe pipe;
    pipe_open(&pipe, tl, out.dtype, NULL, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipe.panel)
        for (uint64_t step = 0; step < p; step++) {
            struct span span = span_cut(block_of(n, p, ring_behind(&ring, step)), base, pipe.panel);
            struct span mine = {base, step == 0 ? span.count : 0};
            unsigned what = (step > 0 ? RECV : LOAD) | STORE | (step < p - 1 ? SEND : 0);
            pipe_put(&pipe, (struct panel){what, ring_behind(&ring, 1), ring_ahead(&ring, 1), part_of(tl, in, mine),
                                           part_of(tl, out, span), span.count});
        }
    pipe_flush(&pipe);
}

KB_BENCH(all_gather, "every PE gets the blocks of all",
         PARAMS_OF_COLLECTIVE("f16 bf16 f32 i32 i8", "elements of all blocks together"))
{
    struct collective c = collective_params();

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(1, c.n), kb_cols(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    fill_for(in, c.dtype, "add");
    kb_future launch = kb_launch(all_gather, c.pes, &(struct all_gather_args){in, out, c.order, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = ring_bound(c.pes, c.order, (c.n - longest_block(c.n, c.p)) * c.element_bytes, 1);
    bound.memory_ps = kb_memory_ps(c.space, longest_block(c.n, c.p) * c.element_bytes, c.n * c.element_bytes);
    report(launch, c.n * c.element_bytes, c.p - 1, c.p, bound);
    kb_expect_close(out, kb_ref_copy(in));
}
