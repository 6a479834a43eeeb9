/* all_to_all.c: every rank sends a block of its own to every rank.
 *
 * In step s a rank sends to the one s places further on and receives from the one s places behind, so that every rank
 * sends and receives one block at a time, to the near ones first. */
#include "collective.h"

struct all_to_all_args {
    kb_tensor in, out;                                  /* a row of each with each rank: a block per rank */
    struct kb_order order;
    uint64_t chunk_bytes;
};

KB_KERNEL(all_to_all, struct all_to_all_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flat(tl_my_shard(tl, arg->in)), out = flat(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0] / p;
    struct pipe pipe;
    pipe_open(&pipe, tl, in.dtype, NULL, arg->chunk_bytes, n);
    for (uint64_t base = 0; base < n; base += pipe.panel)
        for (uint64_t step = 0; step < p; step++) {
            uint32_t to = ring_ahead(&ring, step), from = ring_behind(&ring, step);
            uint64_t count = kb_min(pipe.panel, n - base);
            struct tl_shard give = tl_part(tl, in, 0, to * n + base, count);
            struct tl_shard take = tl_part(tl, out, 0, from * n + base, count);
            if (step == 0) {
                pipe_put(&pipe, (struct panel){LOAD | STORE, from, to, give, take, count});
                continue;
            }
            pipe_put(&pipe, (struct panel){LOAD | SEND, from, to, give, take, count});
            pipe_put(&pipe, (struct panel){RECV | STORE, from, to, give, take, count});
        }
    pipe_flush(&pipe);
}

static struct bound all_to_all_bound(struct kb_pes pes, uint64_t bytes)
{
    struct bound bound = {.traffic = kb_traffic_new()};
    for (uint32_t i = 0; i < pes.count; i++)
        for (uint32_t j = 0; j < pes.count; j++) {
            if (i == j)
                continue;
            uint64_t latency_ps = kb_latency_ps(pes.pe[i], pes.pe[j]);
            kb_traffic_add(bound.traffic, pes.pe[i], pes.pe[j], bytes);
            bound.latency_ps = latency_ps > bound.latency_ps ? latency_ps : bound.latency_ps;
        }
    return bound;
}

KB_BENCH(all_to_all, "every PE sends a block of its own to every PE",
         PARAMS_OF_COLLECTIVE("f16 bf16 f32 i32 i8", "elements of each vector, rounded up to blocks of one size"))
{
    struct collective c = collective_params();
    uint64_t block = longest_block(c.n, c.p);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.p * block), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(c.p, c.p * block), kb_rows(c.space, c.pes));
    fill_for(in, c.dtype, "add");
    kb_future launch = kb_launch(all_to_all, c.pes, &(struct all_to_all_args){in, out, c.order, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = all_to_all_bound(c.pes, block * c.element_bytes);
    bound.memory_ps = kb_memory_ps(c.space, c.p * block * c.element_bytes, c.p * block * c.element_bytes);
    report(launch, c.p * block * c.element_bytes, c.p - 1, c.p, bound);
    kb_expect_close(out, kb_ref_exchange(in));
}
