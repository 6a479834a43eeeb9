/* all_to_all.c: every rank sends one block to every rank: in pairs, or in levels.
 *
 * Pairs: in step s a rank sends to the rank s ahead on the ring and receives from the rank s behind it. So every rank
 * sends and receives one block at a time, and exchanges with near ranks first. It sends p - 1 messages at least.
 *
 * Levels: the PEs of a cube exchange what is for PEs with their numbers, in whichever cube; then the cubes of a SIP what is
 * for their cubes, in whichever SIP; then the SIPs. Every block moves up to three times, in as many messages as a PE has
 * peers on all levels. On each level a rank has rows with a block for each peer; what is for one peer is gathered in the
 * TCM and lies in one piece there.
 *
 * auto estimates the time of both and takes the shorter. */
#include "levels.h"

struct all_to_all_args {
    kb_tensor in, out;                                  /* a row of each per rank, which has a block per rank */
    struct kb_order order;
    uint64_t chunk_bytes;
    struct levels levels;
    kb_tensor between[2];                               /* what the levels have exchanged: a row per rank */
    uint64_t window;                                    /* elements of a block that move at a time */
    bool has_data;                                      /* false: the p * p blocks are not followed from memory to memory */
};

KB_KERNEL(all_to_all_pairs, struct all_to_all_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = in.shape[0] / p;
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, in.dtype, NULL, arg->chunk_bytes, n);
    for (uint64_t base = 0; base < n; base += pipeline.segment)
        for (uint64_t step = 0; step < p; step++) {
            uint32_t to = ring_ahead(&ring, step), from = ring_behind(&ring, step);
            uint64_t count = kb_min(pipeline.segment, n - base);
            struct tl_shard give = tl_part(tl, in, 0, to * n + base, count);
            struct tl_shard take = tl_part(tl, out, 0, from * n + base, count);
            if (step == 0) {
                pipeline_push(&pipeline, &(struct segment){PIPELINE_LOAD | PIPELINE_STORE, from, to, give, take, count});
                continue;
            }
            pipeline_push(&pipeline, &(struct segment){PIPELINE_LOAD | PIPELINE_SEND, from, to, give, take, count});
            pipeline_push(&pipeline, &(struct segment){PIPELINE_RECV | PIPELINE_STORE, from, to, give, take, count});
        }
    pipeline_drain(&pipeline);
}

/* ---- levels */

/* Blocks of a tensor's row: `count` elements of each, from the element `base` on. */
struct blocks {
    kb_tensor tensor;
    uint64_t base, count;
};

static struct tl_shard blocks_part(struct tl *tl, const struct blocks *blocks, uint32_t rank, uint64_t first, uint64_t count)
{
    struct tl_shard row = flattened(tl_shard(tl, blocks->tensor, rank));
    row = tl_reshape(tl, row, tl_num_pes(tl), row.shape[0] / tl_num_pes(tl));
    return tl_part(tl, tl_part(tl, row, 0, first, count), 1, blocks->base, blocks->count);
}

/* How many rows of `width` blocks fit into a buffer, and into a transfer. */
static uint64_t rows_at_once(uint64_t room_bytes, uint64_t width, uint64_t block_bytes)
{
    return kb_clamp(kb_min(room_bytes / (width * block_bytes), TL_RUNS_MOST / width), 1, UINT64_MAX);
}

/* This rank has rows with a block for each of some peers. Block i of all rows goes to peer i, which has the rows of the
 * first peer first. */
static void exchange_blocks(struct tl *tl, const struct peers *peers, struct blocks from, struct blocks to)
{
    enum { BUFFERS = 2 };
    struct transfers stores[BUFFERS] = {0};
    struct tl_shard memory[BUFFERS];
    enum kb_dtype dtype = flattened(tl_my_shard(tl, from.tensor)).dtype;
    uint64_t rows = tl_num_pes(tl) / peers->count, room = tl_room_bytes(tl) / BUFFERS - 64;
    uint64_t most = kb_min(rows, rows_at_once(room, peers->count, from.count * kb_dtype_bytes(dtype)));
    for (uint32_t i = 0; i < BUFFERS; i++)
        memory[i] = tl_alloc(tl, dtype, most * peers->count, from.count);
    for (uint64_t row = 0, turn = 0; row < rows; row += most, turn = (turn + 1) % BUFFERS) {
        uint64_t count = kb_min(most, rows - row);
        struct tl_shard loaded = tl_part(tl, memory[turn], 0, 0, count * peers->count);
        transfers_wait(tl, &stores[turn]);
        tl_load_into(tl, loaded, blocks_part(tl, &from, tl_pe(tl), row * peers->count, count * peers->count));
        for (uint32_t i = 0; i < peers->count; i++) {
            uint32_t at = (peers->at + i) % peers->count;
            transfers_add(tl, &stores[turn], tl_store_async(
                tl, blocks_part(tl, &to, peer_rank(peers, at), peers->at * rows + row, count),
                tl_part(tl, tl_every(tl, loaded, 0, at, peers->count), 0, 0, count)));
        }
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        transfers_wait(tl, &stores[i]);
        tl_free(tl, memory[i]);
    }
}

KB_KERNEL(all_to_all_levels, struct all_to_all_args)
{
    tl_data_op_default(tl, arg->has_data);
    struct notices notices = notices_open(tl);
    uint64_t block = flattened(tl_my_shard(tl, arg->in)).shape[0] / tl_num_pes(tl);
    for (uint64_t base = 0; base < block; base += arg->window) {
        struct blocks at = {arg->in, base, kb_min(arg->window, block - base)};
        for (enum level level = LEVEL_CUBE; level < LEVELS; level++) {
            struct peers peers = level_peers(tl, &arg->levels, level);
            struct blocks to = level + 1 == LEVELS ? (struct blocks){arg->out, base, at.count}
                                                   : (struct blocks){arg->between[level], 0, at.count};
            exchange_blocks(tl, &peers, at, to);
            levels_barrier(tl, &notices, &arg->levels);
            at = to;
        }
    }
}

static struct kb_work pairs_bound(struct kb_pes pes, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    for (uint32_t i = 0; i < pes.count; i++)
        for (uint32_t j = 0; j < pes.count; j++) {
            if (i == j)
                continue;
            kb_traffic_add(bound.traffic, pes.pe[i], pes.pe[j], bytes);
            bound.latency_ps = kb_max(bound.latency_ps, kb_latency_ps(pes.pe[i], pes.pe[j]));
        }
    return bound;
}

/* The bound of levels: each level moves all blocks, less those that stay with their PE. */
static struct kb_work levels_bound(const struct collective *c, const struct levels *l, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    bound.latency_ps += level_traffic(bound.traffic, c->pes, 1, l->pes, bytes * (c->p / l->pes));
    bound.latency_ps += level_traffic(bound.traffic, c->pes, l->pes, l->cubes, bytes * (c->p / l->cubes));
    bound.latency_ps += level_traffic(bound.traffic, c->pes, l->pes * l->cubes, l->sips, bytes * (c->p / l->sips));
    return bound;
}

enum algorithm { PAIRS, IN_LEVELS, ALGORITHMS };

/* Pairs have three commands for each segment of a block, each message between SIPs passes the switch, and links carry about what those
 * of levels do. Levels have a barrier each. */
static uint64_t pairs_estimate_ps(const struct collective *c, const struct kb_work *levels, uint64_t messages)
{
    uint64_t bytes = c->p * block_longest(c->n, c->p) * c->element_bytes;
    if (c->p == 1)                                      /* it sends nothing */
        return collective_memory_ps(c, bytes, bytes) + 2 * command_ps();
    uint64_t segments = kb_ceil_div(messages, pipeline_chunks(c->chunk));
    uint64_t in_sip = kb_ceil_div(c->p, c->sips), passes_ps = switch_ps(c->sips, c->p * (c->p - in_sip) * messages);
    return levels->latency_ps + kb_max(kb_max(kb_traffic_ps(levels->traffic), passes_ps),
                                       kb_max(collective_memory_ps(c, bytes, bytes), 3 * command_ps() * c->p * segments));
}

static uint64_t levels_estimate_ps(const struct collective *c, const struct levels *l, const struct kb_work *bound,
                                   uint64_t windows)
{
    uint64_t bytes = c->p * block_longest(c->n, c->p) * c->element_bytes, messages = l->pes * l->cubes * (l->sips - 1);
    uint64_t peers = l->pes + l->cubes + l->sips, commands = 4 * peers;     /* a store for each, and three barriers */
    return windows * (4 * bound->latency_ps + commands * command_ps()) +
           kb_max(kb_traffic_ps(bound->traffic), windows * switch_ps(l->sips, 2 * l->sips * messages)) +
           3 * collective_memory_ps(c, bytes, bytes);
}

/* What levels need of a TCM for a window of a block: two notices and two buffers of a row of blocks, and the vectors between
 * the levels if they lie there too. */
static uint64_t levels_room_bytes(const struct collective *c, uint64_t widest, uint64_t window)
{
    uint64_t bytes = window * c->element_bytes, between = c->space == KB_TCM ? 2 * tcm_padded(c->p * bytes) : 0;
    return between + 2 * 64 + 2 * (tcm_padded(widest * bytes) + 64);
}

KB_BENCH(all_to_all, "every PE sends a different block to every PE",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector, rounded up to blocks of equal size"),
         KB_WORD(algorithm, "auto pairs levels", "each pair of PEs; cubes, SIPs and the system in turn; or the shorter of both"))
{
    struct collective c = collective_params();
    struct levels levels = levels_of(c.pes);
    uint64_t block = block_longest(c.n, c.p), block_bytes = block * c.element_bytes, bytes = c.p * block_bytes;
    uint64_t room = tcm_allocatable_bytes(), held = 2 * tcm_padded(bytes);
    uint64_t widest = kb_max(kb_max(levels.pes, levels.cubes), levels.sips), window = room / 4 / widest;
    if (c.space == KB_TCM) {                            /* for two vectors between levels and two buffers, with paddings */
        uint64_t left = collective_room(&c, held);
        window = kb_min(window, (left - left / 8) / (2 * (c.p + widest)));
    }
    window = kb_clamp(window / c.element_bytes, 1, block);
    bool fits = collective_room(&c, held) >= levels_room_bytes(&c, widest, window);
    struct kb_work bound = levels_bound(&c, &levels, block_bytes);
    static const char *const names[] = {[PAIRS] = "pairs", [IN_LEVELS] = "levels"};
    enum algorithm algorithm = algorithm_used(names, ALGORITHMS, (const uint64_t[]){
        [PAIRS] = pairs_estimate_ps(&c, &bound, kb_ceil_div(block_bytes, c.chunk)),
        [IN_LEVELS] = fits ? levels_estimate_ps(&c, &levels, &bound, kb_ceil_div(block, window)) : UINT64_MAX});
    if (algorithm == IN_LEVELS && !fits)
        kb_refuse("levels need %llu bytes of a TCM, in which %llu are left: make size smaller, or take algorithm=pairs",
                  (unsigned long long)levels_room_bytes(&c, widest, window), (unsigned long long)collective_room(&c, held));
    if (algorithm == PAIRS)
        collective_fits(&c, held, block, 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.p * block), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(c.p, c.p * block), kb_rows(c.space, c.pes));
    collective_fill(in, c.dtype, "add", c.p);
    struct all_to_all_args args = {in, out, c.order, c.chunk, levels, {NULL, NULL}, window, kb_has_data()};
    for (uint32_t i = 0; i < 2 && algorithm == IN_LEVELS; i++)
        args.between[i] = kb_tensor_new(i ? "of_sip" : "of_cube", c.dtype, kb_2d(c.p, c.p * args.window),
                                        kb_rows(c.space, c.pes));
    kb_future launch = algorithm == PAIRS ? kb_launch(all_to_all_pairs, c.pes, &args)
                                          : kb_launch(all_to_all_levels, c.pes, &args);
    kb_wait(launch);

    if (algorithm == PAIRS)                             /* the ways of all pairs are known by now */
        bound = pairs_bound(c.pes, block_bytes);
    bound.memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, c.p - 1, c.p, &bound);
    kb_expect_close(out, kb_ref_exchange(in));
}
