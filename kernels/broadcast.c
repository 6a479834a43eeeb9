/* broadcast.c: one rank's vector for all, and the reduction of all ranks' vectors for one: along a chain.
 *
 * The chain is the ring, cut at the root: from it for a broadcast, towards it for a reduction. The vector goes along it
 * panel by panel, so that all ranks are at work when it is long; each sends it once. */
#include "collective.h"

struct chain_args {
    kb_tensor in, out;
    struct kb_order order;
    uint32_t root;                                      /* a rank */
    const char *op;                                     /* of a reduction */
    uint64_t chunk_bytes;
};

/* How many places after the root this rank stands. */
static uint32_t places_after(const struct ring *ring, uint32_t root)
{
    uint32_t places = 0;
    while (ring_behind(ring, places) != root)
        places++;
    return places;
}

KB_KERNEL(broadcast, struct chain_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard out = flat(tl_my_shard(tl, arg->out)), in = flat(tl_shard(tl, arg->in, 0));
    uint64_t n = out.shape[0];
    uint32_t places = places_after(&ring, arg->root);
    unsigned what = STORE | (places == 0 ? LOAD : RECV) | (places < ring.count - 1 ? SEND : 0);
    struct pipe pipe;
    pipe_open(&pipe, tl, out.dtype, NULL, arg->chunk_bytes, n);
    for (uint64_t base = 0; base < n; base += pipe.panel) {
        struct span span = {base, kb_min(pipe.panel, n - base)};
        pipe_put(&pipe, (struct panel){what, ring_behind(&ring, 1), ring_ahead(&ring, 1), part_of(tl, in, span),
                                       part_of(tl, out, span), span.count});
    }
    pipe_flush(&pipe);
}

KB_KERNEL(reduce, struct chain_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flat(tl_my_shard(tl, arg->in)), out = flat(tl_shard(tl, arg->out, 0));
    uint64_t n = in.shape[0];
    uint32_t places = places_after(&ring, arg->root);
    bool begins = places == 1 || ring.count == 1;
    unsigned what = LOAD | (begins ? 0 : RECV) | (places == 0 ? STORE : SEND);
    struct pipe pipe;
    pipe_open(&pipe, tl, in.dtype, arg->op, arg->chunk_bytes, n);
    for (uint64_t base = 0; base < n; base += pipe.panel) {
        struct span span = {base, kb_min(pipe.panel, n - base)};
        pipe_put(&pipe, (struct panel){what, ring_behind(&ring, 1), ring_ahead(&ring, 1), part_of(tl, in, span),
                                       part_of(tl, out, span), span.count});
    }
    pipe_flush(&pipe);
}

/* Every hop but the one that closes the ring carries the vector, and the last rank's first element comes over all. */
static struct bound chain_bound(struct kb_pes pes, struct kb_order order, uint32_t begin, uint64_t bytes)
{
    struct bound bound = {.traffic = kb_traffic_new()};
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

/* The rank that comes after another one. */
static uint32_t rank_after(struct kb_order order, uint32_t rank)
{
    uint32_t at = 0;
    while (order.position[at] != rank)
        at++;
    return order.position[(at + 1) % order.count];
}

#define ROOT KB_INT(root, 0, 0, 1 << 24, "position of the root among the PEs that take part; modulo their number")

KB_BENCH(broadcast, "every PE gets one PE's vector",
         PARAMS_OF_COLLECTIVE("f16 bf16 f32 i32 i8", "elements of the vector"), ROOT)
{
    struct collective c = collective_params();
    uint32_t root = (uint32_t)(kb_int(root) % c.pes.count);
    uint64_t bytes = c.n * c.element_bytes;

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    fill_for(in, c.dtype, "add");
    kb_future launch = kb_launch(broadcast, c.pes, &(struct chain_args){in, out, c.order, root, NULL, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = chain_bound(c.pes, c.order, root, bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    report(launch, bytes, 1, 1, bound);
    kb_expect_close(out, kb_ref_copy(in));
}

KB_BENCH(reduce, "one PE gets the reduction of all vectors",
         PARAMS_OF_COLLECTIVE("f16 bf16 f32 i32 i8", "elements of each vector"), PARAMS_OF_REDUCTION, ROOT)
{
    struct collective c = reduction_params();
    uint32_t root = (uint32_t)(kb_int(root) % c.pes.count);
    uint64_t bytes = c.n * c.element_bytes;

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_on(c.space, ((struct kb_pes){c.pes.pe + root, 1})));
    fill_for(in, c.dtype, c.op);
    kb_future launch = kb_launch(reduce, c.pes, &(struct chain_args){in, out, c.order, root, c.op, kb_int(chunk)});
    kb_wait(launch);

    struct bound bound = chain_bound(c.pes, c.order, rank_after(c.order, root), bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    report(launch, bytes, 1, 1, bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
