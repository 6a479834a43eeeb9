/* all_reduce.c: all ranks get the reduction of all ranks' vectors: round a ring, or by halving and doubling.
 *
 * Ring: the vector is cut into a block per rank. Each block goes once round, joined with each rank's own on the way,
 * and is complete at the last one; from there it goes round again and is stored. Every rank sends 2 (p - 1) / p of the
 * vector, to its neighbour alone: the least there is, for long vectors.
 *
 * Halving: ranks in pairs exchange halves and keep the joined half; then pairs of pairs quarters, and so on; doubling
 * takes the same way back. As many bytes, but 2 log2(p) steps instead of 2 (p - 1): for short vectors. The largest
 * parts go to the nearest. Ranks beyond a power of two give their vector to a neighbour, and get the result from it. */
#include "collective.h"

struct all_reduce_args {
    kb_tensor in, out;                                  /* a row of `in` with each rank, a copy of `out` */
    struct kb_order order;
    const char *op;
    uint64_t chunk_bytes;
};

/* ---- ring */

KB_KERNEL(all_reduce_ring, struct all_reduce_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flat(tl_my_shard(tl, arg->in)), out = flat(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0], longest = longest_block(n, p);
    struct pipe pipe;
    pipe_open(&pipe, tl, in.dtype, arg->op, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipe.panel)
        for (uint64_t step = 0; step <= 2 * (p - 1); step++) {
            struct span span = span_cut(block_of(n, p, (ring.at + 2 * p - step) % p), base, pipe.panel);
            unsigned what = (step > 0 ? RECV : 0) | (step < p ? LOAD : 0) | (step >= p - 1 ? STORE : 0) |
                            (step < 2 * (p - 1) ? SEND : 0);
            pipe_put(&pipe, (struct panel){what, ring_behind(&ring, 1), ring_ahead(&ring, 1), part_of(tl, in, span),
                                           part_of(tl, out, span), span.count});
        }
    pipe_flush(&pipe);
}

/* ---- halving and doubling */

struct halving {
    struct tl *tl;
    struct ring ring;
    struct tl_shard in, out;
    struct pipe pipe;
    uint32_t extra;                                     /* ranks beyond the power of two */
    uint32_t id, ids;                                   /* among those that take part */
};

/* Ids are given to the second of each of the first `extra` pairs of places, and to all places after them. */
static uint32_t place_of_id(uint32_t extra, uint32_t id)
{
    return id < extra ? 2 * id + 1 : id + extra;
}

static uint32_t rank_of_id(const struct halving *h, uint32_t id)
{
    return h->ring.rank[place_of_id(h->extra, id)];
}

/* What an id still holds after the exchanges with the ids that differ in the bits below `mask`. */
static struct span held(const struct halving *h, uint32_t id, uint32_t mask)
{
    struct span span = {0, h->in.shape[0]};
    for (uint32_t bit = 1; bit < mask; bit <<= 1) {
        uint64_t low = span.count / 2;
        span = id & bit ? (struct span){span.first + low, span.count - low} : (struct span){span.first, low};
    }
    return span;
}

/* Sends a span of `from` to a rank and receives another one from it, to be stored in `out`, joined with the same span
 * of `from` if `what` has LOAD; panel by panel in turn, for neither waits for a slot that the other one does not free.
 * An empty span is not sent. */
static void exchange(struct halving *h, uint32_t rank, struct tl_shard from, struct span give, struct span take,
                     unsigned what)
{
    struct tl *tl = h->tl;
    uint64_t longest = give.count > take.count ? give.count : take.count;
    for (uint64_t base = 0; base < longest; base += h->pipe.panel) {
        struct span g = span_cut(give, base, h->pipe.panel), t = span_cut(take, base, h->pipe.panel);
        struct tl_shard out = part_of(tl, h->out, t);
        pipe_put(&h->pipe, (struct panel){LOAD | SEND, rank, rank, part_of(tl, from, g), out, g.count});
        pipe_put(&h->pipe, (struct panel){RECV | STORE | what, rank, rank, part_of(tl, from, t), out, t.count});
    }
    pipe_flush(&h->pipe);
}

static void copy(struct halving *h)
{
    for (uint64_t base = 0; base < h->in.shape[0]; base += h->pipe.panel) {
        struct span span = span_cut((struct span){0, h->in.shape[0]}, base, h->pipe.panel);
        struct tl_shard in = part_of(h->tl, h->in, span), out = part_of(h->tl, h->out, span);
        pipe_put(&h->pipe, (struct panel){LOAD | STORE, 0, 0, in, out, span.count});
    }
    pipe_flush(&h->pipe);
}

/* Halves and doubles among the ids; `from` is the vector so far. */
static void halve_and_double(struct halving *h, struct tl_shard from)
{
    for (uint32_t mask = 1; mask < h->ids; mask <<= 1) {
        uint32_t peer = h->id ^ mask;
        exchange(h, rank_of_id(h, peer), from, held(h, peer, 2 * mask), held(h, h->id, 2 * mask), LOAD);
        from = h->out;
    }
    for (uint32_t mask = h->ids / 2; mask > 0; mask >>= 1) {
        uint32_t peer = h->id ^ mask;
        exchange(h, rank_of_id(h, peer), from, held(h, h->id, 2 * mask), held(h, peer, 2 * mask), 0);
    }
}

KB_KERNEL(all_reduce_halving, struct all_reduce_args)
{
    struct tl_shard out = flat(tl_my_shard(tl, arg->out));
    struct halving h = {.tl = tl, .ring = ring_of(tl, arg->order), .in = flat(tl_my_shard(tl, arg->in)), .out = out,
                        .ids = 1};
    bool held = h.in.shape[0] <= tl_room_bytes(tl) / 2 / kb_dtype_bytes(h.in.dtype);
    if (held)                                           /* its steps load and store within the TCM */
        h.in = h.out = tl_load(tl, h.in);
    struct span all = {0, h.in.shape[0]}, none = {0, 0};
    while (h.ids <= h.ring.count / 2)
        h.ids *= 2;
    h.extra = h.ring.count - h.ids;
    pipe_open(&h.pipe, tl, h.in.dtype, arg->op, arg->chunk_bytes, all.count);
    bool paired = h.ring.at < 2 * h.extra, first = paired && h.ring.at % 2 == 0;
    uint32_t partner = first ? ring_ahead(&h.ring, 1) : ring_behind(&h.ring, 1);
    h.id = paired ? h.ring.at / 2 : h.ring.at - h.extra;
    if (first)
        exchange(&h, partner, h.in, all, none, 0);
    else if (paired)
        exchange(&h, partner, h.in, none, all, LOAD);
    else if (h.ids == 1)
        copy(&h);
    if (!first)
        halve_and_double(&h, paired ? h.out : h.in);
    if (paired)
        exchange(&h, partner, h.out, first ? none : all, first ? all : none, 0);
    if (held)
        tl_store(tl, out, h.out);
}

/* Every id exchanges half of the vector with the nearest, a quarter with the next, and so on, there and back; at the
 * least one message a step. */
static struct bound halving_bound(struct kb_pes pes, struct kb_order order, uint64_t bytes)
{
    struct bound bound = {.traffic = kb_traffic_new()};
    uint32_t ids = 1;
    while (ids <= order.count / 2)
        ids *= 2;
    uint32_t extra = order.count - ids;
    for (uint32_t mask = 1; mask < ids; mask <<= 1) {
        uint64_t nearest_ps = UINT64_MAX;
        for (uint32_t id = 0; id < ids; id++) {
            uint32_t from = pes.pe[order.position[place_of_id(extra, id)]];
            uint32_t to = pes.pe[order.position[place_of_id(extra, id ^ mask)]];
            kb_traffic_add(bound.traffic, from, to, bytes / (2 * mask) * 2);
            nearest_ps = kb_min(nearest_ps, kb_latency_ps(from, to));
        }
        bound.latency_ps += 2 * nearest_ps;
    }
    return bound;
}

KB_BENCH(all_reduce, "every PE gets the reduction of all vectors",
         PARAMS_OF_COLLECTIVE("f16 bf16 f32 i32 i8", "elements of each vector"), PARAMS_OF_REDUCTION,
         KB_WORD(algorithm, "ring halving", "ring; or recursive halving and doubling"))
{
    struct collective c = reduction_params();
    uint64_t bytes = c.n * c.element_bytes;
    bool ring = kb_word(algorithm)[0] == 'r';

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    fill_for(in, c.dtype, c.op);
    struct all_reduce_args args = {in, out, c.order, c.op, kb_int(chunk)};
    kb_future launch = ring ? kb_launch(all_reduce_ring, c.pes, &args) : kb_launch(all_reduce_halving, c.pes, &args);
    kb_wait(launch);

    struct bound bound = ring ? ring_bound(c.pes, c.order, 2 * (c.n - longest_block(c.n, c.p)) * c.element_bytes, 2)
                              : halving_bound(c.pes, c.order, bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    report(launch, bytes, 2 * (c.p - 1), c.p, bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
