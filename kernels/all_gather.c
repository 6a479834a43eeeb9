/* all_gather.c: every rank gets the blocks of all ranks: by a ring, or by messages to all ranks at once.
 *
 * Ring: every block goes once around the ring, and each rank on the way stores it. Every rank sends (p - 1) / p of the
 * vector, to its neighbour only.
 *
 * Multicast: neighbouring cubes form groups whose blocks fill a message. The first rank of each group loads their blocks
 * and sends them to all ranks (spread.h), so that the vector takes each link between cubes once, and no message is short.
 *
 * auto estimates the time of both and takes the shorter. */
#include "spread.h"

struct all_gather_args {
    kb_tensor in, out;                                  /* `in`: a block of columns per rank; `out`: a copy per rank */
    struct kb_order order;
    uint64_t chunk_bytes;
    struct spread_ranks ranks;
    uint64_t group;                                     /* ranks whose blocks one of them sends */
};

KB_KERNEL(all_gather_ring, struct all_gather_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in)), out = flattened(tl_my_shard(tl, arg->out));
    uint64_t p = ring.count, n = out.shape[0], longest = block_longest(n, p);
    struct pipeline pipeline;
    pipeline_open(&pipeline, tl, out.dtype, NULL, arg->chunk_bytes, longest);
    for (uint64_t base = 0; base < longest; base += pipeline.segment)
        for (uint64_t step = 0; step < p; step++) {
            struct indices range = range_window(block_range(n, p, ring_behind(&ring, step)), base, pipeline.segment);
            struct indices own = {base, step == 0 ? range.count : 0};
            unsigned actions = (step > 0 ? PIPELINE_RECV : PIPELINE_LOAD) | PIPELINE_STORE |
                               (step < p - 1 ? PIPELINE_SEND : 0);
            pipeline_push(&pipeline, &(struct segment){
                actions, ring_behind(&ring, 1), ring_ahead(&ring, 1), subrange(tl, in, own), subrange(tl, out, range),
                range.count});
        }
    pipeline_drain(&pipeline);
}

/* ---- multicast */

/* Ranks in groups of `group`. The first rank of a group sends the blocks of all its ranks. The p ranks have n elements, those of
 * `in`. */
struct groups {
    kb_tensor in;
    uint64_t n, p, group;
};

static struct indices group_range(const void *of, uint64_t i)
{
    const struct groups *g = of;
    uint64_t first = block_range(g->n, g->p, i * g->group).first;
    return (struct indices){first, block_range(g->n, g->p, kb_min((i + 1) * g->group, g->p)).first - first};
}

static uint32_t group_rank(const void *of, uint64_t i)
{
    return (uint32_t)(i * ((const struct groups *)of)->group);
}

/* Loads elements of the vector into a buffer from the blocks of the ranks that have them. */
static void load_blocks(struct tl *tl, const void *of, struct tl_shard buffer, struct indices range)
{
    const struct groups *g = of;
    struct transfers loads = {0};
    for (uint64_t done = 0; done < range.count;) {
        uint64_t rank = block_owner(g->n, g->p, range.first + done);
        struct indices block = block_range(g->n, g->p, rank);
        uint64_t from = range.first + done - block.first, count = kb_min(block.count - from, range.count - done);
        transfers_add(tl, &loads, tl_load_async(tl, tl_part(tl, buffer, 0, done, count),
                                                tl_part(tl, flattened(tl_shard(tl, g->in, rank)), 0, from, count)));
        done += count;
    }
    transfers_wait(tl, &loads);
}

KB_KERNEL(all_gather_multicast, struct all_gather_args)
{
    struct spread spread;
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    struct groups groups = {arg->in, out.shape[0], tl_num_pes(tl), arg->group};
    struct senders senders = {.count = kb_ceil_div(groups.p, groups.group), .part = group_range, .rank = group_rank,
                              .load = load_blocks, .of = &groups};
    for (uint64_t i = 0; i < senders.count; i++)
        senders.longest = kb_max(senders.longest, group_range(&groups, i).count);
    spread_open(&spread, tl, out, &arg->ranks, arg->chunk_bytes);
    senders.mine = spread.lead % groups.group ? senders.count : spread.lead / groups.group;
    spread_all(&spread, &senders);
}

/* ---- the bench */

/* The bound of messages to all ranks: those from all groups to the last rank; the vector takes no link twice. */
static struct kb_work multicast_bound(const struct collective *c, uint64_t group)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    struct groups groups = {NULL, c->n, c->p, group};
    uint32_t last = c->pes.pe[c->p - 1];
    for (uint64_t i = 0; i * group < c->p; i++) {
        uint32_t from = c->pes.pe[i * group];
        if (from == last)
            continue;
        kb_traffic_add(bound.traffic, from, last, group_range(&groups, i).count * c->element_bytes);
        bound.latency_ps = kb_max(bound.latency_ps, kb_latency_ps(from, last));
    }
    return bound;
}

/* Every rank stores the messages in batches, each of which waits for its messages: STORED_PERCENT is how much of the time a memory
 * then writes, measured on ref_sip, two_sips and others with vectors of 8 MB. */
enum { STORED_PERCENT = 70 };

/* The switch passes every message, and every rank stores them. Before a group's first rank sends a message it waits for the blocks
 * in it; the ranks run ahead by as many batches as there are but one, so that as many groups load at the same time. */
static uint64_t multicast_estimate_ps(const struct collective *c, const struct kb_work *bound, uint64_t group,
                                      uint64_t messages)
{
    uint64_t stores = kb_ceil_div(messages, SPREAD_MESSAGES), bytes = c->n * c->element_bytes, groups = kb_ceil_div(c->p, group);
    uint64_t turn = kb_min(kb_attrs.pe_ipcq_slots, SPREAD_MESSAGES), ahead = (SPREAD_BATCHES - 1) * SPREAD_MESSAGES / turn + 1;
    uint64_t links_ps = kb_max(kb_traffic_ps(bound->traffic), switch_ps(c->sips, messages));
    uint64_t memory_ps = kb_scaled(collective_memory_ps(c, 0, bytes), 100, STORED_PERCENT) + stores * command_ps();
    uint64_t loads_ps = 0, access_ps = c->space == KB_HBM ? kb_attrs.hbm_ctrl_access_ps : 0;
    for (uint64_t i = 0; i < group; i++)
        loads_ps += command_ps() + 2 * kb_latency_ps(c->pes.pe[0], c->pes.pe[i]);
    uint64_t more = messages - kb_min(messages, groups);                    /* messages of a group but the first one */
    loads_ps += more * (command_ps() + access_ps + kb_latency_ps(c->pes.pe[0], c->pes.pe[group - 1])) / kb_min(groups, ahead);
    loads_ps += collective_memory_ps(c, kb_ceil_div(bytes, groups), 0);
    return bound->latency_ps + loads_ps + kb_max(links_ps, memory_ps);
}

enum algorithm { RING, MULTICAST, ALGORITHMS };

KB_BENCH(all_gather, "every PE gets the blocks of all PEs",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of all blocks together"),
         KB_WORD(algorithm, "auto ring multicast", "a ring; messages to all PEs at once; or the shorter of both"))
{
    struct collective c = collective_params();
    uint64_t longest = block_longest(c.n, c.p), bytes = c.n * c.element_bytes;
    uint64_t held = tcm_padded(longest * c.element_bytes) + tcm_padded(bytes);
    uint64_t chunk = c.chunk, of_ring = collective_chunk_that_fits(&c, held, longest, 0);
    c.chunk = kb_max(collective_chunk_that_fits(&c, held, longest, SPREAD_BATCHES), c.element_bytes);
    struct levels levels = levels_of(c.pes);
    uint64_t group = kb_clamp(c.chunk / (longest * c.element_bytes * levels.pes), 1, levels.cubes) * levels.pes;
    struct kb_work bound[ALGORITHMS] = {
        [RING] = ring_bound(c.pes, c.order, (c.n - longest) * c.element_bytes, 1), [MULTICAST] = multicast_bound(&c, group)};
    uint64_t message = kb_min(c.chunk, tcm_allocatable_bytes() / 16);
    uint64_t messages = kb_ceil_div(longest * group * c.element_bytes, message) * kb_ceil_div(c.p, group);
    static const char *const names[] = {[RING] = "ring", [MULTICAST] = "multicast"};
    uint64_t multicast_ps = multicast_estimate_ps(&c, &bound[MULTICAST], group, messages);
    c.chunk = kb_max(of_ring, c.element_bytes);
    enum algorithm algorithm = algorithm_used(names, ALGORITHMS, (const uint64_t[]){
        [RING] = ring_estimate_ps(&c, &bound[RING], 1), [MULTICAST] = multicast_ps});
    c.chunk = chunk;
    collective_fits(&c, held, longest, algorithm == MULTICAST ? SPREAD_BATCHES : 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(1, c.n), kb_cols(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, "add", c.p);
    struct all_gather_args args = {in, out, c.order, c.chunk, spread_ranks(levels, 0), group};
    kb_future launch = algorithm == RING ? kb_launch(all_gather_ring, c.pes, &args)
                                         : kb_launch(all_gather_multicast, c.pes, &args);
    kb_wait(launch);

    bound[algorithm].memory_ps = kb_memory_ps(c.space, longest * c.element_bytes, bytes);
    collective_report(launch, &c, in, out, bytes, c.p - 1, c.p, &bound[algorithm]);
    kb_expect_close(out, kb_ref_copy(in));
}
