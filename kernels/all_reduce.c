/* all_reduce.c: every rank gets the reduction of all ranks' vectors, by a ring or by recursive halving and doubling.
 *
 * Ring: the vector is cut into a block per rank. Each block goes once around the ring, is reduced with each rank's own
 * part on the way, and is complete at the last rank; from there it goes around again and is stored. Every rank sends
 * 2 (p - 1) / p of the vector, to its neighbour only, which is the least possible. It suits long vectors.
 *
 * Halving and doubling: pairs of ranks exchange halves and each keeps the reduced half; then pairs of pairs exchange
 * quarters, and so on; doubling goes the same way back. It sends as many bytes as the ring, but takes 2 log2(p) steps
 * instead of 2 (p - 1), which suits short vectors. The largest parts go to the nearest ranks. Ranks beyond a power of
 * two give their vector to a neighbour and get the result from it. */
#include "collective.h"

struct all_reduce_args {
    kb_tensor in, out;                                  /* `in`: a row per rank; `out`: a copy per rank */
    struct kb_order order;
    const char *op;
    uint64_t chunk_bytes;
};

/* ---- ring */

KB_KERNEL(all_reduce_ring, struct all_reduce_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0], longest = block_longest(n, p);
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, arg->op, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipeline.segment)
        for (uint64_t step = 0; step <= 2 * (p - 1); step++) {
            struct indices block = block_range(n, p, (ring.at + 2 * p - step) % p);
            struct indices range = range_window(block, base, pipeline.segment);
            unsigned actions = (step > 0 ? PIPELINE_RECV : 0) | (step < p ? PIPELINE_LOAD : 0) |
                               (step >= p - 1 ? PIPELINE_STORE : 0) | (step < 2 * (p - 1) ? PIPELINE_SEND : 0);
            pipeline_push(&pipeline, &(struct segment){
                actions, ring_behind(&ring, 1), ring_ahead(&ring, 1), subrange(tl, in, range), subrange(tl, out, range),
                range.count});
        }
    pipeline_drain(&pipeline);
}

/* ---- halving and doubling */

struct halving {
    struct tl *tl;
    struct rank_ring ring;
    struct tl_shard in, out;
    struct pipeline pipeline;
    uint32_t extra;                                     /* ranks beyond the power of two */
    uint32_t id, ids;                                   /* this rank's number among those that halve and double */
};

/* The ring index of an id. The second rank of each of the first `extra` pairs has an id, and every rank after them. */
static uint32_t index_of_id(uint32_t extra, uint32_t id)
{
    return id < extra ? 2 * id + 1 : id + extra;
}

static uint32_t rank_of_id(const struct halving *h, uint32_t id)
{
    return h->ring.rank[index_of_id(h->extra, id)];
}

/* The range that an id still holds after the exchanges with the ids that differ in the bits below `mask`. */
static struct indices held_range(const struct halving *h, uint32_t id, uint32_t mask)
{
    struct indices range = {0, h->in.shape[0]};
    for (uint32_t bit = 1; bit < mask; bit <<= 1) {
        uint64_t low = range.count / 2;
        range = id & bit ? (struct indices){range.first + low, range.count - low} : (struct indices){range.first, low};
    }
    return range;
}

/* Sends the range `give` of `from` to a rank and receives the range `take` from it into `out`. With `actions`
 * PIPELINE_LOAD what is received is reduced with the same range of `from`. Empty ranges are not sent. Segments are sent
 * and received in turn, so that neither rank waits for a slot that the other one does not free. */
static void exchange_ranges(struct halving *h, uint32_t rank, struct tl_shard from, struct indices give,
                            struct indices take, unsigned actions)
{
    struct tl *tl = h->tl;
    struct pipeline *pipeline = &h->pipeline;
    for (uint64_t base = 0; base < kb_max(give.count, take.count); base += pipeline->segment) {
        struct indices g = range_window(give, base, pipeline->segment), t = range_window(take, base, pipeline->segment);
        struct tl_shard out = subrange(tl, h->out, t);
        pipeline_push(pipeline, &(struct segment){
            PIPELINE_LOAD | PIPELINE_SEND, rank, rank, subrange(tl, from, g), out, g.count});
        pipeline_push(pipeline, &(struct segment){
            PIPELINE_RECV | PIPELINE_STORE | actions, rank, rank, subrange(tl, from, t), out, t.count});
    }
    pipeline_drain(pipeline);
}

/* A single rank copies its vector. */
static void copy_vector(struct halving *h)
{
    struct indices all = {0, h->in.shape[0]};
    for (uint64_t base = 0; base < all.count; base += h->pipeline.segment) {
        struct indices range = range_window(all, base, h->pipeline.segment);
        pipeline_push(&h->pipeline, &(struct segment){
            PIPELINE_LOAD | PIPELINE_STORE, 0, 0, subrange(h->tl, h->in, range), subrange(h->tl, h->out, range),
            range.count});
    }
    pipeline_drain(&h->pipeline);
}

/* Halves and doubles among the ids. `from` holds this rank's vector, or its reduction with its partner's. */
static void halve_and_double(struct halving *h, struct tl_shard from)
{
    for (uint32_t mask = 1; mask < h->ids; mask <<= 1) {
        uint32_t peer = h->id ^ mask;
        exchange_ranges(h, rank_of_id(h, peer), from, held_range(h, peer, 2 * mask), held_range(h, h->id, 2 * mask),
                        PIPELINE_LOAD);
        from = h->out;
    }
    for (uint32_t mask = h->ids / 2; mask > 0; mask >>= 1) {
        uint32_t peer = h->id ^ mask;
        exchange_ranges(h, rank_of_id(h, peer), from, held_range(h, h->id, 2 * mask), held_range(h, peer, 2 * mask), 0);
    }
}

KB_KERNEL(all_reduce_halving, struct all_reduce_args)
{
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    struct halving h = {.tl = tl, .ring = ring_of(tl, arg->order), .in = flattened(tl_my_shard(tl, arg->in)),
                        .out = out, .ids = 1};
    bool in_tcm = h.in.shape[0] <= tl_room_bytes(tl) / 2 / kb_dtype_bytes(h.in.dtype);
    if (in_tcm)                                         /* all steps then load and store within the TCM */
        h.in = h.out = tl_load(tl, h.in);
    struct indices all = {0, h.in.shape[0]}, none = {0, 0};
    while (h.ids <= h.ring.count / 2)
        h.ids *= 2;
    h.extra = h.ring.count - h.ids;
    pipeline_open(&h.pipeline, tl, h.in.dtype, arg->op, arg->chunk_bytes, all.count);
    bool paired = h.ring.at < 2 * h.extra, first = paired && h.ring.at % 2 == 0;
    uint32_t partner = first ? ring_ahead(&h.ring, 1) : ring_behind(&h.ring, 1);
    h.id = paired ? h.ring.at / 2 : h.ring.at - h.extra;
    if (first)
        exchange_ranges(&h, partner, h.in, all, none, 0);
    else if (paired)
        exchange_ranges(&h, partner, h.in, none, all, PIPELINE_LOAD);
    else if (h.ids == 1)
        copy_vector(&h);
    if (!first)
        halve_and_double(&h, paired ? h.out : h.in);
    if (paired)
        exchange_ranges(&h, partner, h.out, first ? none : all, first ? all : none, 0);
    if (in_tcm)
        tl_store(tl, out, h.out);
}

/* The bound of halving and doubling: every id exchanges half of the vector with its nearest peer, a quarter with the
 * next one, and so on, there and back; each step takes one message at least. */
static struct kb_work halving_bound(struct kb_pes pes, struct kb_order order, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint32_t ids = 1;
    while (ids <= order.count / 2)
        ids *= 2;
    uint32_t extra = order.count - ids;
    for (uint32_t mask = 1; mask < ids; mask <<= 1) {
        uint64_t nearest_ps = UINT64_MAX;
        for (uint32_t id = 0; id < ids; id++) {
            uint32_t from = pes.pe[order.position[index_of_id(extra, id)]];
            uint32_t to = pes.pe[order.position[index_of_id(extra, id ^ mask)]];
            kb_traffic_add(bound.traffic, from, to, bytes / (2 * mask) * 2);
            nearest_ps = kb_min(nearest_ps, kb_latency_ps(from, to));
        }
        bound.latency_ps += 2 * nearest_ps;
    }
    return bound;
}

KB_BENCH(all_reduce, "every PE gets the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS,
         KB_WORD(algorithm, "ring halving", "a ring, or recursive halving and doubling"))
{
    struct collective c = reduction_params();
    uint64_t bytes = c.n * c.element_bytes;
    bool ring = kb_word(algorithm)[0] == 'r';

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, c.op);
    struct all_reduce_args args = {in, out, c.order, c.op, c.chunk};
    kb_future launch = ring ? kb_launch(all_reduce_ring, c.pes, &args) : kb_launch(all_reduce_halving, c.pes, &args);
    kb_wait(launch);

    uint64_t sent_bytes = 2 * (c.n - block_longest(c.n, c.p)) * c.element_bytes;
    struct kb_work bound = ring ? ring_bound(c.pes, c.order, sent_bytes, 2)
                                         : halving_bound(c.pes, c.order, bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 2 * (c.p - 1), c.p, &bound);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
