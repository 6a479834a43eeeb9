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
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct kb_order order = kb_snake(pes);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    enum kb_space space = space_of(kb_word(space));
    uint64_t n = kb_int(size), p = pes.count, size = kb_dtype_bytes(dtype);

    kb_tensor in = kb_tensor_new("in", dtype, kb_2d(1, n), kb_cols(space, pes));
    kb_tensor out = kb_tensor_new("out", dtype, kb_2d(1, n), kb_copies(space, pes));
    fill_for(in, dtype, "add");
    kb_future launch = kb_launch(all_gather, pes, &(struct all_gather_args){in, out, order, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = ring_bound(pes, order, (n - longest_block(n, p)) * size, 1);
    bound.memory_ps = kb_memory_ps(space, longest_block(n, p) * size, n * size);
    report(launch, n * size, p - 1, p, bound);
    kb_expect_close(out, kb_ref_copy(in));
}
