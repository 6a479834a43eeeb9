/* all_reduce.c: every rank gets the reduction of all ranks' vectors: by a ring, by recursive halving and doubling, or in
 * levels.
 *
 * Ring: the vector is cut into a block per rank. Each block goes once around the ring, is reduced with each rank's own
 * part on the way, and is complete at the last rank; from there it goes around again and is stored. Every rank sends
 * 2 (p - 1) / p of the vector, to its neighbour only, which is the least possible. It suits long vectors.
 *
 * Halving and doubling: pairs of ranks exchange halves and each keeps the reduced half; then pairs of pairs exchange
 * quarters, and so on; doubling goes the same way back. It sends as many bytes as the ring, but takes 2 log2(p) steps
 * instead of 2 (p - 1), which suits short vectors. The largest parts go to the nearest ranks. Ranks beyond a power of
 * two give their vector to a neighbour and get the result from it.
 *
 * Levels: each PE reduces a block of the vectors of its cube, which it loads from all of them; then a block of that
 * block over the cubes of its SIP; that is halved and doubled over the SIPs; and it stores its results with its peers
 * the same way back.
 *
 * Windows: the same in windows of the vector, with an exchanger in each cube that does no other work. So the links between SIPs,
 * which are the slowest, carry one window while the next one is reduced over the SIP and the one before is spread in it.
 *
 * Multicast: within a SIP, short vectors are reduced by messages, longer ones as in levels, and a few leads get the result, in
 * their TCMs. Between SIPs, whose messages pass one switch one after the other, leads move the longest pieces that there can be:
 * they halve their shares, and each sends what it has then to all ranks at once (spread.h).
 *
 * auto estimates the time of each and takes the shortest. */
#include "spread.h"

struct all_reduce_args {
    kb_tensor in, out;                                  /* `in`: a row per rank; `out`: a copy per rank */
    struct kb_order order;
    const char *op;
    uint64_t chunk_bytes;
    struct levels levels;
    struct spread_ranks ranks;
    kb_tensor lead;                                     /* a row for each lead of each SIP */
    uint32_t leads, reducers;                           /* of a SIP; cubes that reduce its vectors for them */
    uint32_t windows;                                   /* of the vector */
    uint64_t chunk;                                     /* elements that go through a SIP as a message; 0: parts are loaded */
    uint64_t cut;                                       /* elements that leads load at once, if there are two such pieces */
    bool copies;                                        /* halving loads the vector into the TCM, and stores it at the end */
    bool has_data;                                      /* false: levels do not follow what p PEs reduce through p memories */
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

/* The part of a range that a number still holds after the exchanges with those that differ in the bits below `mask`. */
static struct indices part_held(struct indices range, uint32_t id, uint32_t mask)
{
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
    struct indices all = {0, h->in.shape[0]};
    for (uint32_t mask = 1; mask < h->ids; mask <<= 1) {
        uint32_t peer = h->id ^ mask;
        exchange_ranges(h, rank_of_id(h, peer), from, part_held(all, peer, 2 * mask), part_held(all, h->id, 2 * mask),
                        PIPELINE_LOAD);
        from = h->out;
    }
    for (uint32_t mask = h->ids / 2; mask > 0; mask >>= 1) {
        uint32_t peer = h->id ^ mask;
        exchange_ranges(h, rank_of_id(h, peer), from, part_held(all, h->id, 2 * mask), part_held(all, peer, 2 * mask), 0);
    }
}

KB_KERNEL(all_reduce_halving, struct all_reduce_args)
{
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    struct halving h = {.tl = tl, .ring = ring_of(tl, arg->order), .in = flattened(tl_my_shard(tl, arg->in)),
                        .out = out, .ids = 1};
    if (arg->copies)                                    /* all steps then load and store within the TCM */
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
    if (arg->copies)
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

static bool power_of_two(uint32_t count)
{
    return (count & (count - 1)) == 0;
}

/* ---- multicast */

/* The block of a range that is for the peer with an index. */
static struct indices peer_block(struct indices range, const struct peers *peers, uint32_t at)
{
    struct indices block = block_range(range.count, peers->count, at);
    return (struct indices){range.first + block.first, block.count};
}

/* What the peer with an index, and those that differ from it in lower bits than `mask`, hold together of a range. */
static struct indices peer_held(struct indices range, const struct peers *peers, uint32_t at, uint32_t mask)
{
    uint64_t first = peer_block(range, peers, at & ~(mask - 1)).first;
    struct indices last = peer_block(range, peers, at | (mask - 1));
    return (struct indices){first, last.first + last.count - first};
}

static void meet(struct tl *tl, struct notices *notices, uint32_t rank)
{
    notify(tl, notices, rank);
    await_notice(tl, notices, rank);
}

/* A lead's share of the vector, in its TCM and in those of its peers in other SIPs. */
struct lead {
    struct peers rows, ranks;                           /* those of the leads of all SIPs that have this share */
    struct indices share;
    const struct all_reduce_args *arg;
    uint64_t n;                                         /* elements of the vector */
};

static struct tl_shard lead_part(struct tl *tl, const struct lead *lead, uint32_t sip, struct indices range)
{
    struct tl_shard all = flattened(tl_shard(tl, lead->arg->lead, peer_rank(&lead->rows, sip)));
    return tl_part(tl, all, 0, range.first - lead->share.first, range.count);
}

/* Loads a range of another SIP's share and adds it to that of this one; half of it is added while the rest is loaded. */
static void lead_add(struct tl *tl, const struct lead *lead, uint32_t sip, struct indices range, struct tl_shard got)
{
    uint64_t most = range.count < 2 * lead->arg->cut ? range.count : kb_ceil_div(range.count, 2);
    tl_handle load[2] = {NULL, NULL};
    for (uint64_t base = 0, i = 0; base < range.count; base += most, i++)
        load[i] = tl_load_async(tl, tl_part(tl, got, 0, base, kb_min(most, range.count - base)),
                                lead_part(tl, lead, sip, range_window(range, base, most)));
    for (uint64_t base = 0, i = 0; base < range.count; base += most, i++) {
        struct tl_shard mine = lead_part(tl, lead, lead->ranks.at, range_window(range, base, most));
        tl_wait(tl, load[i]);
        tl_math(tl, lead->arg->op, mine, tl_part(tl, got, 0, base, mine.shape[0]), mine);
    }
}

/* Which SIP's block of a share is the sender's with a number. The switch serves SIPs in the order of their numbers, so that the
 * first ones end their steps last, behind what others send already. Their blocks come last, and those of four SIPs that follow
 * one another in the vector are stored together. */
static uint32_t sip_of_sender(uint32_t sips, uint32_t number)
{
    return sips % 4 == 0 ? (sips / 4 - 1 - number / 4) * 4 + number % 4 : sips - 1 - number;
}

/* Reduces the share over the SIPs; each SIP keeps its block. This goes by halving if the number of SIPs is a power of two, else
 * block by block. */
static void lead_reduce(struct tl *tl, struct notices *notices, const struct lead *lead)
{
    const struct peers *all = &lead->ranks;
    struct indices block = peer_block(lead->share, all, all->at);
    bool halves = power_of_two(all->count);
    uint64_t longest = halves ? kb_ceil_div(lead->share.count, 2) + all->count : block.count;
    struct tl_shard got = tl_alloc(tl, lead_part(tl, lead, all->at, lead->share).dtype, kb_max(longest, 1));
    for (uint32_t mask = all->count / 2; halves && mask > 0; mask >>= 1) {
        struct indices kept = peer_held(lead->share, all, all->at, mask);
        meet(tl, notices, peer_rank(all, all->at ^ mask));
        if (kept.count)
            lead_add(tl, lead, all->at ^ mask, kept, got);
    }
    if (!halves)
        peers_barrier(tl, notices, all);
    for (uint32_t i = 1; !halves && i < all->count; i++)
        if (block.count)
            lead_add(tl, lead, (all->at + i) % all->count, block, got);
    tl_free(tl, got);
}

/* The leads of a SIP are the first PEs of its first cubes. */
static struct indices lead_share(uint64_t n, uint32_t leads, uint32_t lead)
{
    return block_range(n, leads, lead);
}

/* What two ranges have in common. */
static struct indices range_common(struct indices a, struct indices b)
{
    uint64_t first = kb_max(a.first, b.first), end = kb_min(a.first + a.count, b.first + b.count);
    return (struct indices){first, end > first ? end - first : 0};
}

/* What this PE reduces in its cube and of that in its SIP goes to the leads, whose shares have it. */
static void push_to_leads(struct mover *mover, const struct all_reduce_args *arg, const struct peers *sip,
                          struct indices part)
{
    uint32_t number = tl_pe(mover->tl) / (arg->levels.pes * arg->levels.cubes);
    uint64_t n = flattened(tl_my_shard(mover->tl, arg->out)).shape[0];
    for (uint32_t i = 0; i < arg->leads; i++) {
        struct indices share = lead_share(n, arg->leads, i);
        uint64_t first = kb_max(part.first, share.first), end = kb_min(part.first + part.count, share.first + share.count);
        if (first < end)
            mover_push(mover, (struct span){arg->out, *sip, first, 0},
                       (struct span){arg->lead, only(number * arg->leads + i), first - share.first, 0}, end - first, 2);
    }
    mover_drain(mover);
}

/* ---- a SIP's vectors in chunks, which are messages
 *
 * Chunk i is added up in each cube by the PE with number i % pes, and these sums are added up by that PE of one of the cubes,
 * which sends the result to the leads. A PE loads its own vector only, from beginning to end: no two meet at a memory, and what
 * they send takes less time than what they load. */
struct chunks {
    struct tl *tl;
    const struct all_reduce_args *arg;
    const struct peers *cube, *sip;
    struct tl_shard in, sum, got;                       /* got: a chunk from each peer, one after the other */
    struct chunk_round {
        struct tl_shard memory;                         /* a chunk for each PE of the cube */
        tl_handle load;
        struct transfers sends;
    } round[2];
};

static struct indices chunk_of(const struct chunks *chunks, uint64_t round, uint32_t pe)
{
    uint64_t n = chunks->in.shape[0], first = (round * chunks->cube->count + pe) * chunks->arg->chunk;
    return range_window((struct indices){0, n}, kb_min(first, n), chunks->arg->chunk);
}

static void chunks_load(struct chunks *chunks, uint64_t number)
{
    struct chunk_round *round = &chunks->round[number % 2];
    uint64_t most = chunks->cube->count * chunks->arg->chunk;
    struct indices range = range_window((struct indices){0, chunks->in.shape[0]}, number * most, most);
    transfers_wait(chunks->tl, &round->sends);
    if (range.count)
        round->load = tl_load_async(chunks->tl, tl_part(chunks->tl, round->memory, 0, 0, range.count),
                                    subrange(chunks->tl, chunks->in, range));
}

/* Adds up in `sum` what this PE and its peers have of a chunk. */
static void chunks_add(struct chunks *chunks, const struct peers *peers, struct tl_shard sum, struct tl_shard mine)
{
    struct tl *tl = chunks->tl;
    uint64_t count = mine.shape[0];
    if (peers->count == 1 && sum.addr != mine.addr)
        tl_load_into(tl, sum, mine);
    for (uint32_t i = 1; i < peers->count; i++) {
        struct tl_shard got = tl_part(tl, chunks->got, 0, i % 2 * chunks->arg->chunk, count);
        tl_recv(tl, peer_rank(peers, peers->at + peers->count - i), got);
        tl_math(tl, chunks->arg->op, sum, i == 1 ? mine : sum, got);
    }
}

/* Sends its chunks of a round to the PEs of the cube, and adds up that of this PE. */
static void chunks_round(struct chunks *chunks, uint64_t number)
{
    struct tl *tl = chunks->tl;
    const struct peers *cube = chunks->cube;
    struct chunk_round *round = &chunks->round[number % 2];
    uint64_t chunk = chunks->arg->chunk;
    tl_wait(tl, round->load);
    for (uint32_t i = 1; i < cube->count; i++) {
        uint32_t pe = (cube->at + i) % cube->count;
        uint64_t count = chunk_of(chunks, number, pe).count;
        if (count)
            transfers_add(tl, &round->sends, tl_send_async(tl, peer_rank(cube, pe),
                                                           tl_part(tl, round->memory, 0, pe * chunk, count)));
    }
    chunks_load(chunks, number + 1);
    uint64_t count = chunk_of(chunks, number, cube->at).count;
    if (count == 0)
        return;
    struct tl_shard mine = tl_part(tl, round->memory, 0, cube->at * chunk, count);
    if (number == chunks->sip->at) {
        chunks_add(chunks, cube, tl_part(tl, chunks->sum, 0, 0, count), mine);
    } else {
        chunks_add(chunks, cube, mine, mine);
        transfers_add(tl, &round->sends, tl_send_async(tl, peer_rank(chunks->sip, number), mine));
    }
}

/* Stores what leads have of a range in their TCMs. */
static void store_with_leads(struct tl *tl, const struct all_reduce_args *arg, struct tl_shard from, struct indices range)
{
    uint32_t number = tl_pe(tl) / (arg->levels.pes * arg->levels.cubes);
    uint64_t n = flattened(tl_my_shard(tl, arg->out)).shape[0];
    for (uint32_t i = 0; i < arg->leads; i++) {
        struct indices share = lead_share(n, arg->leads, i), both = range_common(range, share);
        if (both.count)
            tl_store(tl, tl_part(tl, flattened(tl_shard(tl, arg->lead, number * arg->leads + i)), 0, both.first - share.first,
                                 both.count), tl_part(tl, from, 0, both.first - range.first, both.count));
    }
}

static void reduce_chunks(struct tl *tl, const struct all_reduce_args *arg, const struct peers *cube, const struct peers *sip)
{
    struct chunks chunks = {.tl = tl, .arg = arg, .cube = cube, .sip = sip, .in = flattened(tl_my_shard(tl, arg->in))};
    enum kb_dtype dtype = chunks.in.dtype;
    uint64_t rounds = kb_ceil_div(chunks.in.shape[0], arg->chunk * cube->count);
    chunks.sum = tl_alloc(tl, dtype, arg->chunk);
    chunks.got = tl_alloc(tl, dtype, 2 * arg->chunk);
    for (uint32_t i = 0; i < 2; i++)
        chunks.round[i].memory = tl_alloc(tl, dtype, cube->count * arg->chunk);
    chunks_load(&chunks, 0);
    for (uint64_t round = 0; round < rounds; round++)
        chunks_round(&chunks, round);
    struct indices mine = sip->at < rounds ? chunk_of(&chunks, sip->at, cube->at) : (struct indices){0, 0};
    if (mine.count) {
        struct tl_shard sum = tl_part(tl, chunks.sum, 0, 0, mine.count);
        if (sip->count > 1)
            chunks_add(&chunks, sip, sum, sum);
        store_with_leads(tl, arg, sum, mine);
    }
    for (uint32_t i = 0; i < 2; i++) {
        transfers_wait(tl, &chunks.round[i].sends);
        tl_free(tl, chunks.round[i].memory);
    }
    tl_free(tl, chunks.got);
    tl_free(tl, chunks.sum);
}

/* What is sent to all ranks, in the order of shares: each SIP's block of them. */
static struct indices lead_block(const void *of, uint64_t sender)
{
    const struct lead *lead = of;
    uint32_t sips = lead->ranks.count;
    return peer_block(lead_share(lead->n, lead->arg->leads, (uint32_t)(sender / sips)), &lead->ranks,
                      sip_of_sender(sips, (uint32_t)(sender % sips)));
}

static uint32_t lead_rank(const void *of, uint64_t sender)
{
    const struct lead *lead = of;
    const struct levels *levels = &lead->arg->levels;
    uint64_t share = sender / levels->sips, sip = sip_of_sender(levels->sips, (uint32_t)(sender % levels->sips));
    return (uint32_t)((sip * levels->cubes + share) * levels->pes);
}

static void load_of_share(struct tl *tl, const void *of, struct tl_shard buffer, struct indices range)
{
    const struct lead *lead = of;
    tl_load_into(tl, buffer, lead_part(tl, lead, lead->ranks.at, range));
}

/* The same for a longer vector, whose blocks PEs load from one another's memories. */
static void reduce_blocks(struct tl *tl, struct notices *notices, const struct all_reduce_args *arg, const struct peers *cube,
                          const struct peers *sip)
{
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    struct indices block = peer_block((struct indices){0, out.shape[0]}, cube, cube->at);
    struct indices part = block_range(block.count, arg->reducers, sip->at);
    struct mover mover;
    mover_open(&mover, tl, out.dtype, arg->op);
    mover_push(&mover, (struct span){arg->in, *cube, block.first, 0}, (struct span){arg->out, only(tl_pe(tl)), block.first, 0},
               block.count, 4);
    mover_drain(&mover);
    peers_barrier(tl, notices, sip);
    if (sip->at < arg->reducers)
        push_to_leads(&mover, arg, sip, (struct indices){block.first + part.first, part.count});
    mover_close(&mover);
}

KB_KERNEL(all_reduce_multicast, struct all_reduce_args)
{
    const struct levels *levels = &arg->levels;
    struct notices notices = notices_open(tl);
    struct peers cube = level_peers(tl, levels, LEVEL_CUBE), sip = level_peers(tl, levels, LEVEL_SIP);
    struct peers all = level_peers(tl, levels, LEVEL_SYSTEM);
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    if (arg->chunk)
        reduce_chunks(tl, arg, &cube, &sip);
    else
        reduce_blocks(tl, &notices, arg, &cube, &sip);
    peers_gather(tl, &notices, &cube);
    if (cube.at == 0)
        peers_barrier(tl, &notices, &sip);
    bool leads = cube.at == 0 && sip.at < arg->leads;
    struct lead lead = {{sip.at, arg->leads, all.count, all.at}, all,
                        lead_share(out.shape[0], arg->leads, leads ? sip.at : 0), arg, out.shape[0]};
    if (leads && all.count > 1)
        lead_reduce(tl, &notices, &lead);
    notices_close(tl, &notices);

    struct spread spread;
    spread_open(&spread, tl, out, &arg->ranks, arg->chunk_bytes);
    uint64_t count = (uint64_t)arg->leads * all.count;
    spread_all(&spread, &(struct senders){
        .count = count, .longest = block_longest(block_longest(out.shape[0], arg->leads), all.count),
        .mine = sip.at < arg->leads ? sip.at * all.count + sip_of_sender(all.count, all.at) : count,
        .part = lead_block, .rank = lead_rank,
        .load = load_of_share, .of = &lead});
}

/* ---- levels */

/* What a PE needs for each level. */
struct level_run {
    struct tl *tl;
    const struct all_reduce_args *arg;
    struct notices notices;
    struct mover mover;
    struct peers peers[LEVELS];
    struct indices block, part;                         /* of this PE in its cube, and of that in its SIP */
};

/* All PEs of this SIP meet those of another one. Only two notices pass the switch. */
static void meet_sip(struct level_run *run, uint32_t sip)
{
    struct tl *tl = run->tl;
    struct peers *cube = &run->peers[LEVEL_CUBE], *cubes = &run->peers[LEVEL_SIP];
    peers_gather(tl, &run->notices, cube);
    if (cube->at == 0)
        peers_gather(tl, &run->notices, cubes);
    if (cube->at == 0 && cubes->at == 0)
        meet(tl, &run->notices, peer_rank(&run->peers[LEVEL_SYSTEM], sip));
    if (cube->at == 0)
        peers_release(tl, &run->notices, cubes);
    peers_release(tl, &run->notices, cube);
}

/* Reduces this PE's part over the SIPs, by halving, and gets all of it back, by doubling, in memory. */
static void exchange_parts(struct level_run *run)
{
    const struct peers *all = &run->peers[LEVEL_SYSTEM];
    uint32_t mine = tl_pe(run->tl), mask = 1;
    for (; mask < all->count; mask <<= 1) {
        uint32_t peer = peer_rank(all, all->at ^ mask), low = mine < peer ? mine : peer;
        struct indices kept = part_held(run->part, all->at, 2 * mask);
        struct peers both = {low, kb_max(mine, peer) - low, 2, mine != low};
        meet_sip(run, all->at ^ mask);
        mover_push(&run->mover, (struct span){run->arg->out, both, kept.first, 0},
                   (struct span){run->arg->out, only(mine), kept.first, 0}, kept.count, 1);
        mover_drain(&run->mover);
    }
    for (mask >>= 1; mask > 0; mask >>= 1) {
        uint32_t peer = peer_rank(all, all->at ^ mask);
        struct indices got = part_held(run->part, all->at ^ mask, 2 * mask);
        meet_sip(run, all->at ^ mask);
        mover_push(&run->mover, (struct span){run->arg->out, only(peer), got.first, 0},
                   (struct span){run->arg->out, only(mine), got.first, 0}, got.count, 1);
        mover_drain(&run->mover);
    }
}

/* The same where the number of SIPs is no power of two: each reduces one block of the part and stores it with all. */
static void gather_parts(struct level_run *run)
{
    const struct peers *all = &run->peers[LEVEL_SYSTEM];
    struct indices block = peer_block(run->part, all, all->at);
    struct span own = {run->arg->out, only(tl_pe(run->tl)), block.first, 0};
    peers_barrier(run->tl, &run->notices, all);
    mover_push(&run->mover, (struct span){run->arg->out, *all, block.first, 0}, own, block.count, 1);
    mover_drain(&run->mover);
    mover_push(&run->mover, own, (struct span){run->arg->out, *all, block.first, 1}, block.count, 1);
    mover_drain(&run->mover);
    peers_barrier(run->tl, &run->notices, all);
}

static void exchange_sips(struct level_run *run)
{
    if (power_of_two(run->arg->levels.sips))
        exchange_parts(run);
    else
        gather_parts(run);
}

KB_KERNEL(all_reduce_levels, struct all_reduce_args)
{
    tl_data_op_default(tl, arg->has_data);
    struct tl_shard in = flattened(tl_my_shard(tl, arg->in));
    struct level_run run = {.tl = tl, .arg = arg, .notices = notices_open(tl)};
    struct peers *cube = &run.peers[LEVEL_CUBE], *sip = &run.peers[LEVEL_SIP];
    for (enum level level = LEVEL_CUBE; level < LEVELS; level++)
        run.peers[level] = level_peers(tl, &arg->levels, level);
    run.block = peer_block((struct indices){0, in.shape[0]}, cube, cube->at);
    run.part = peer_block(run.block, sip, sip->at);
    struct peers mine = only(tl_pe(tl));
    struct span block = {arg->out, mine, run.block.first, 0}, part = {arg->out, mine, run.part.first, 0};
    mover_open(&run.mover, tl, in.dtype, arg->op);
    mover_push(&run.mover, (struct span){arg->in, *cube, block.from, 0}, block, run.block.count, 4);
    mover_drain(&run.mover);
    if (sip->count > 1) {
        peers_barrier(tl, &run.notices, sip);
        mover_push(&run.mover, (struct span){arg->out, *sip, part.from, 0}, part, run.part.count, 4);
        mover_drain(&run.mover);
    }
    if (arg->levels.sips > 1)
        exchange_sips(&run);
    if (sip->count > 1) {
        mover_push(&run.mover, part, (struct span){arg->out, *sip, part.from, 1}, run.part.count, 4);
        mover_drain(&run.mover);
        peers_barrier(tl, &run.notices, sip);
    }
    mover_push(&run.mover, block, (struct span){arg->out, *cube, block.from, 1}, run.block.count, 4);
    mover_drain(&run.mover);
}

/* ---- windows
 *
 * A window has a unit for each cube, which the cube's first PE, the exchanger, exchanges with those of other SIPs. A unit has a
 * part for each of the other PEs, the workers. */

/* How many windows workers reduce before they spread the first one: it is exchanged while they reduce the second. */
enum { WINDOWS_AHEAD = 2 };

struct window_run {
    struct level_run level;
    struct peers cube, workers, cubes;                  /* the PEs of the cube; without the first; those with this number */
};

/* What a cube exchanges of a window, and what a worker of each cube reduces and spreads of that. */
static struct indices window_unit(const struct window_run *run, uint32_t window, uint32_t cube)
{
    uint64_t n = flattened(tl_my_shard(run->level.tl, run->level.arg->out)).shape[0];
    return peer_block(block_range(n, run->level.arg->windows, window), &run->cubes, cube);
}

static struct indices window_part(const struct window_run *run, uint32_t window, uint32_t cube)
{
    return peer_block(window_unit(run, window, cube), &run->workers, run->workers.at);
}

static void window_push(struct window_run *run, kb_tensor tensor, struct peers from, struct indices part, struct peers to,
                        uint32_t skip)
{
    kb_tensor out = run->level.arg->out;
    mover_push(&run->level.mover, (struct span){tensor, from, part.first, 0}, (struct span){out, to, part.first, skip},
               part.count, 1);
}

/* Reduces a window over the cube and spreads an earlier one in it: one reads while the other one writes. The unit that the
 * exchanger of this cube has exchanged is not stored with it: other SIPs may still load theirs from there. */
static void window_in_cube(struct window_run *run, uint32_t reduce, uint32_t spread)
{
    const struct all_reduce_args *arg = run->level.arg;
    struct peers mine = only(tl_pe(run->level.tl));
    for (uint32_t cube = 0; cube < run->cubes.count; cube++) {
        if (reduce < arg->windows)
            window_push(run, arg->in, run->cube, window_part(run, reduce, cube), mine, 0);
        if (spread < arg->windows)
            window_push(run, arg->out, mine, window_part(run, spread, cube), cube == run->cubes.at ? run->workers : run->cube, 1);
    }
    mover_drain(&run->level.mover);
}

static void work(struct window_run *run)
{
    struct tl *tl = run->level.tl;
    const struct all_reduce_args *arg = run->level.arg;
    struct notices *notices = &run->level.notices;
    struct peers exchanger = only(run->cube.first);
    for (uint32_t i = 0; i < arg->windows + WINDOWS_AHEAD; i++) {
        uint32_t spread = i - WINDOWS_AHEAD;            /* before the first one: beyond the last one */
        if (spread < arg->windows) {
            peers_release(tl, notices, &run->cube);
            window_push(run, arg->out, exchanger, window_part(run, spread, run->cubes.at), run->cubes, 0);
            mover_drain(&run->level.mover);
            peers_barrier(tl, notices, &run->cubes);
        }
        window_in_cube(run, i, spread);
        if (i < arg->windows) {
            peers_barrier(tl, notices, &run->cubes);
            window_push(run, arg->out, run->cubes, window_part(run, i, run->cubes.at), exchanger, 0);
            mover_drain(&run->level.mover);
            peers_gather(tl, notices, &run->cube);
        }
    }
}

static void exchange(struct window_run *run)
{
    for (uint32_t window = 0; window < run->level.arg->windows; window++) {
        run->level.part = window_unit(run, window, run->cubes.at);
        peers_gather(run->level.tl, &run->level.notices, &run->cube);
        exchange_sips(&run->level);
        peers_release(run->level.tl, &run->level.notices, &run->cube);
    }
}

KB_KERNEL(all_reduce_windows, struct all_reduce_args)
{
    tl_data_op_default(tl, arg->has_data);
    struct window_run run = {.level = {.tl = tl, .arg = arg, .notices = notices_open(tl)},
                             .cube = level_peers(tl, &arg->levels, LEVEL_CUBE),
                             .cubes = level_peers(tl, &arg->levels, LEVEL_SIP)};
    run.workers = (struct peers){run.cube.first + 1, 1, run.cube.count - 1, run.cube.at ? run.cube.at - 1 : 0};
    run.level.peers[LEVEL_CUBE] = only(tl_pe(tl));      /* exchangers meet alone */
    run.level.peers[LEVEL_SIP] = run.cubes;
    run.level.peers[LEVEL_SYSTEM] = level_peers(tl, &arg->levels, LEVEL_SYSTEM);
    mover_open(&run.level.mover, tl, flattened(tl_my_shard(tl, arg->in)).dtype, arg->op);
    if (run.cube.at > 0)
        work(&run);
    else
        exchange(&run);
}

/* ---- what each algorithm moves, and an estimate of its time */

/* The exchange of a step between SIPs: each PE, of `in_sip` of each SIP, gets `bytes` from that of the SIP whose number differs
 * in one bit. */
static void add_exchange(kb_traffic traffic, struct kb_pes pes, uint32_t in_sip, uint32_t mask, uint64_t bytes)
{
    for (uint32_t i = 0; i < pes.count; i++) {
        uint32_t peer = (i / in_sip ^ mask) * in_sip + i % in_sip;
        if (peer < pes.count)
            kb_traffic_add(traffic, pes.pe[i], pes.pe[peer], bytes);
    }
}

static uint64_t exchange_ps(struct kb_pes pes, uint32_t in_sip, uint32_t mask, uint64_t bytes)
{
    kb_traffic traffic = kb_traffic_new();
    add_exchange(traffic, pes, in_sip, mask, bytes);
    return kb_traffic_ps(traffic);
}

static struct kb_work levels_bound(struct kb_pes pes, const struct levels *l, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint64_t part = bytes / l->pes / l->cubes;
    bound.latency_ps += 2 * level_traffic(bound.traffic, pes, 1, l->pes, 2 * (bytes / l->pes));
    bound.latency_ps += 2 * level_traffic(bound.traffic, pes, l->pes, l->cubes, 2 * part);
    for (uint32_t mask = 1; mask < l->sips; mask <<= 1) {
        add_exchange(bound.traffic, pes, l->pes * l->cubes, mask, part / (2 * mask) * 2);
        bound.latency_ps += 2 * kb_latency_ps(pes.pe[0], pes.pe[pes.count - 1]);
    }
    return bound;
}

/* What `in` and `out` take of each memory. */
static uint64_t held_bytes(const struct collective *c)
{
    return 2 * tcm_padded(c->n * c->element_bytes);
}

/* What is left of a TCM. */
static uint64_t room_bytes(const struct collective *c)
{
    return collective_room(c, held_bytes(c));
}

/* What a mover's buffer can hold at most. */
static uint64_t mover_buffer_bytes(const struct collective *c)
{
    return kb_max(room_bytes(c) / MOVER_BUFFERS, 1);
}

/* Whether halving has room for its vector in the TCM, as much again, and the buffers of a pipeline: all steps then load and
 * store within the TCM. */
static bool halving_copies(const struct collective *c)
{
    uint64_t bytes = tcm_padded(c->n * c->element_bytes), room = room_bytes(c);
    uint64_t buffer = kb_min(bytes, tcm_padded(c->chunk * pipeline_chunks(c->chunk)));
    return bytes <= room / 2 && bytes + 2 * buffer <= room;
}

/* The same with messages for which the vectors leave room; their segments have at most `longest` elements. `chunk` is 0 if
 * there is no room for one element. */
static struct collective with_shorter_messages(const struct collective *c, uint64_t longest)
{
    struct collective with = *c;
    with.chunk = collective_chunk_that_fits(c, held_bytes(c), longest, 0);
    with.chunk = with.chunk < c->element_bytes ? 0 : with.chunk;
    return with;
}

/* `count` PEs of each cube, from its PE `first` on. */
static struct kb_pes cube_pes(struct kb_pes pes, const struct levels *l, uint32_t first, uint32_t count)
{
    uint32_t cubes = l->cubes * l->sips, *some = kb_array(uint32_t, cubes * count);
    for (uint32_t i = 0; i < cubes * count; i++)
        some[i] = pes.pe[i / count * l->pes + first + i % count];
    return (struct kb_pes){some, cubes * count};
}

/* How many windows overlap: as many as have parts that are not too short; more than four hide little more. Those that are asked
 * for have an element each. 0: there are no SIPs to exchange with, or no workers. */
static uint32_t windows_of(const struct collective *c, const struct levels *l)
{
    if (l->sips == 1 || l->pes == 1)
        return 0;
    uint64_t part = c->n * c->element_bytes / l->cubes / (l->pes - 1);
    return (uint32_t)(kb_int(windows) ? kb_min(kb_int(windows), c->n) : kb_clamp(part / (MOVER_LEAST_BYTES / 2), 1, 4));
}

/* Workers load what they reduce from all PEs of their cube and store the result with them. */
static struct kb_work windows_bound(struct kb_pes pes, const struct levels *l, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    if (l->sips == 1 || l->pes == 1)
        return bound;
    struct kb_pes exchangers = cube_pes(pes, l, 0, 1), workers = cube_pes(pes, l, 1, l->pes - 1);
    uint64_t block = bytes / (l->pes - 1), part = block / l->cubes;
    for (uint32_t i = 0; i < workers.count; i++)
        for (uint32_t j = 0; j < l->pes; j++) {
            uint32_t worker = workers.pe[i], peer = pes.pe[i / (l->pes - 1) * l->pes + j];
            if (worker != peer) {
                kb_traffic_add(bound.traffic, peer, worker, block);
                kb_traffic_add(bound.traffic, worker, peer, block);
            }
        }
    bound.latency_ps += 2 * level_traffic(bound.traffic, workers, l->pes - 1, l->cubes, 2 * part);
    for (uint32_t mask = 1; mask < l->sips; mask <<= 1) {
        add_exchange(bound.traffic, exchangers, l->cubes, mask, bytes / l->cubes / (2 * mask) * 2);
        bound.latency_ps += 2 * kb_latency_ps(exchangers.pe[0], exchangers.pe[exchangers.count - 1]);
    }
    return bound;
}

/* The leads of each SIP, with their shares. */
static struct kb_pes lead_pes(struct kb_pes pes, const struct levels *l, uint32_t leads)
{
    uint32_t *lead = kb_array(uint32_t, l->sips * leads), count = l->sips * leads;
    for (uint32_t i = 0; i < count; i++)
        lead[i] = pes.pe[(i / leads * l->cubes + i % leads) * l->pes];
    return (struct kb_pes){lead, count};
}

/* The fewest leads of a SIP whose TCMs hold their shares one and a half times, and leave an eighth for other buffers, or their
 * shares, notices and the messages that they send; 0: not even the first PEs of all cubes do. */
static uint32_t leads_of(const struct collective *c, const struct levels *l)
{
    uint64_t room = room_bytes(c), other = tcm_allocatable_bytes() / 8;
    uint64_t messages = SPREAD_BATCHES * tcm_padded(spread_message_bytes(c->chunk)) + 2 * 64;
    for (uint32_t leads = 1; leads <= l->cubes; leads++) {
        uint64_t share = block_longest(c->n, leads) * c->element_bytes;
        if (share * 3 / 2 + other < room && tcm_padded(share) + messages <= room)
            return leads;
    }
    return 0;
}

/* How many cubes reduce the vectors of a SIP: as many as have parts that a lead takes as long to receive as pe_dma takes for a
 * message. */
static uint32_t reducers_of(const struct collective *c, const struct levels *l)
{
    uint64_t block_ps = kb_move_ps(block_longest(c->n, l->pes) * c->element_bytes, kb_attrs.noc_link_bw_bps);
    return (uint32_t)kb_clamp(block_ps / kb_max(kb_attrs.pe_dma_overhead_ps, 1), 1, l->cubes);
}

/* The elements of a chunk: those of a message, or of half of one so that the PEs of more cubes add up. 0: a PE would add up more
 * than one chunk over its SIP, or TCMs have no room for those of two rounds besides the leads' shares. */
static uint64_t chunk_of_vector(const struct collective *c, const struct levels *l, uint32_t leads)
{
    uint64_t message = c->chunk / c->element_bytes, size = c->element_bytes;
    if (message < 2 || leads == 0)
        return 0;
    uint64_t rounds = kb_max(kb_ceil_div(c->n, message * l->pes), kb_min(l->cubes / 2, c->n / (message / 2 * l->pes)));
    uint64_t chunk = kb_ceil_div(c->n, rounds * l->pes);
    uint64_t taken = tcm_padded(block_longest(c->n, leads) * size) + 2 * 64 + 2 * tcm_padded(chunk * l->pes * size) +
                     tcm_padded(2 * chunk * size) + tcm_padded(chunk * size);
    return rounds <= l->cubes && taken <= room_bytes(c) ? chunk : 0;
}

/* The elements that take as long between SIPs as the switch takes for a message of each SIP. */
static uint64_t cut_of(const struct collective *c, uint64_t sips)
{
    uint64_t bytes = 2 * (uint64_t)((unsigned __int128)switch_ps(sips, sips) * kb_attrs.pcie_bw_bps / 1000000000000u);
    return kb_max(bytes, 1 << 16) / c->element_bytes;
}

/* What the leads send to the last PE: all of the vector, which takes no link twice. */
static void add_spread(kb_traffic traffic, struct kb_pes pes, struct kb_pes leads, uint64_t bytes)
{
    for (uint32_t i = 0; i < leads.count; i++)
        if (leads.pe[i] != pes.pe[pes.count - 1])
            kb_traffic_add(traffic, leads.pe[i], pes.pe[pes.count - 1], bytes / leads.count);
}

static struct kb_work multicast_bound(struct kb_pes pes, const struct levels *l, struct kb_pes leads, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint32_t in_sip = leads.count / l->sips;
    uint64_t far_ps = leads.count > 1 ? kb_latency_ps(leads.pe[0], leads.pe[leads.count - 1]) : 0;
    bound.latency_ps += level_traffic(bound.traffic, pes, 1, l->pes, bytes / l->pes);
    bound.latency_ps += level_traffic(bound.traffic, pes, l->pes, l->cubes, bytes / l->pes / l->cubes);
    for (uint32_t mask = 1; mask < l->sips; mask <<= 1) {
        add_exchange(bound.traffic, leads, in_sip, mask, bytes / in_sip / (l->sips / mask));
        bound.latency_ps += 2 * far_ps;
    }
    add_spread(bound.traffic, pes, leads, bytes);
    bound.latency_ps += far_ps;
    return bound;
}

/* Halving and doubling read the vector three times and write it twice unless they copy it to the TCM; only then do they
 * not move most of it at the same time. The last steps go to other SIPs, with a message from each PE. */
static uint64_t halving_estimate_ps(const struct collective *c, const struct kb_work *bound)
{
    uint64_t bytes = c->n * c->element_bytes, links_ps = kb_traffic_ps(bound->traffic);
    uint64_t ps = bound->latency_ps, in_sip = kb_ceil_div(c->p, c->sips);
    if (halving_copies(c)) {
        ps += kb_memory_ps(c->space, bytes, bytes) + links_ps + links_ps / 2;
    } else {
        uint64_t memory_ps = kb_memory_ps(c->space, 3 * bytes, 2 * bytes);
        ps += kb_max(memory_ps, links_ps) + kb_min(memory_ps, links_ps) / 4;
    }
    for (uint64_t ids = 1; ids < c->p; ids *= 2) {
        bytes = kb_ceil_div(bytes, 2);
        ps += 3 * command_ps() + (ids >= in_sip ? 2 * switch_ps(c->sips, c->p * kb_ceil_div(bytes, c->chunk)) : 0);
    }
    return ps;
}

/* What the PEs of a cube take to reduce their vectors, or to give the result back: they wait for some way, and meet at their
 * memories. */
static uint64_t cube_estimate_ps(const struct collective *c, const struct levels *l)
{
    uint64_t bytes = c->n * c->element_bytes, memory_ps = kb_memory_ps(c->space, bytes, 0);
    uint64_t near_ps = level_traffic(kb_traffic_new(), c->pes, 1, l->pes, 0);
    return l->pes * (command_ps() + near_ps / 2) + memory_ps + (l->pes > 1 ? memory_ps / 2 : 0);
}

/* The same for the cubes of a SIP. */
static uint64_t cubes_estimate_ps(const struct collective *c, const struct levels *l)
{
    uint64_t bytes = c->n * c->element_bytes, ps = 0;
    kb_traffic traffic = kb_traffic_new();
    uint64_t across_ps = level_traffic(traffic, c->pes, l->pes, l->cubes, bytes / l->pes / l->cubes);
    if (l->cubes > 1)
        ps += l->cubes * (command_ps() + across_ps / 2) + kb_traffic_ps(traffic) + kb_memory_ps(c->space, bytes, 0) / l->pes;
    for (uint32_t i = 1; i < l->cubes; i *= 2)
        ps += across_ps + command_ps();
    return ps;
}

static uint64_t sip_estimate_ps(const struct collective *c, const struct levels *l)
{
    return cube_estimate_ps(c, l) + cubes_estimate_ps(c, l);
}

/* What PEs, `in_sip` of each SIP, take to halve `bytes` each with those of other SIPs, and to double them. A step has a notice,
 * and a load whose request and data go one way each. */
static uint64_t exchange_estimate_ps(const struct collective *c, const struct levels *l, struct kb_pes pes, uint32_t in_sip,
                                     uint64_t bytes)
{
    uint64_t far_ps = kb_latency_ps(pes.pe[0], pes.pe[pes.count - 1]), ps = 0;
    for (uint32_t mask = 1; mask < l->sips; mask <<= 1) {
        uint64_t some = bytes / (2 * mask);
        ps += 2 * (3 * far_ps + kb_max(exchange_ps(pes, in_sip, mask, some),
                                       switch_ps(l->sips, pes.count * kb_ceil_div(some, mover_buffer_bytes(c)))));
    }
    return ps;
}

static uint64_t levels_estimate_ps(const struct collective *c, const struct levels *l)
{
    uint64_t part = c->n * c->element_bytes / l->pes / l->cubes;
    return 2 * sip_estimate_ps(c, l) + exchange_estimate_ps(c, l, c->pes, l->pes * l->cubes, part);
}

/* Workers and exchangers have all windows to do, and those that are faster wait for the others except in one. What workers read
 * and write at the same time meets at the memories of a cube. Exchangers are few: links wait for their requests, and while they
 * load what they add. */
static uint64_t windows_estimate_ps(const struct collective *c, const struct levels *l, uint32_t windows)
{
    if (windows == 0)
        return UINT64_MAX;
    struct collective window = *c;
    window.n = kb_ceil_div(c->n, windows);
    struct kb_pes exchangers = cube_pes(c->pes, l, 0, 1);
    uint64_t unit = window.n * c->element_bytes / l->cubes, loads = 2 * kb_ceil_div(unit, mover_buffer_bytes(c));
    uint64_t far_ps = kb_latency_ps(exchangers.pe[0], exchangers.pe[exchangers.count - 1]);
    uint64_t work_ps = 2 * (mul_div(cube_estimate_ps(&window, l), l->pes + 1, l->pes - 1) + cubes_estimate_ps(&window, l));
    uint64_t exchange_ps = exchange_estimate_ps(c, l, exchangers, l->cubes, unit) + kb_product(loads, 2 * far_ps) +
                           kb_memory_ps(c->space, 2 * unit, 0);
    return kb_sum(kb_product(windows, kb_max(work_ps, exchange_ps)), kb_min(work_ps, exchange_ps));
}

/* The same in chunks: a round loads a chunk for each PE of the cube and adds up what they send, most of it at the same time. At
 * the end PEs of a cube get their chunks from all cubes, over two of its ports at least. */
static uint64_t chunks_estimate_ps(const struct collective *c, const struct levels *l, uint64_t chunk)
{
    uint64_t rounds = kb_ceil_div(c->n, chunk * l->pes), bytes = chunk * l->pes * c->element_bytes;
    return rounds * (kb_memory_ps(c->space, bytes, 0) + 2 * command_ps()) + (l->pes + l->cubes) * 3 * command_ps() / 2 +
           (l->cubes > 1 ? kb_move_ps(l->cubes * bytes / 2, kb_attrs.noc_link_bw_bps) : 0);
}

/* The vectors of a SIP are reduced, its leads get the result and halve their shares in steps, and all ranks write the vector
 * that they send. */
static uint64_t multicast_estimate_ps(const struct collective *c, const struct levels *l, struct kb_pes leads, uint64_t chunk)
{
    if (leads.count == 0)
        return UINT64_MAX;
    uint64_t bytes = c->n * c->element_bytes, in_sip = leads.count / l->sips;
    uint64_t far_ps = leads.count > 1 ? kb_latency_ps(leads.pe[0], leads.pe[leads.count - 1]) : 0;
    uint64_t ps = (chunk ? chunks_estimate_ps(c, l, chunk) : sip_estimate_ps(c, l)) +
                  kb_move_ps(bytes / in_sip, kb_attrs.noc_link_bw_bps) + 17 * command_ps();
    for (uint32_t mask = 1; mask < l->sips; mask <<= 1)
        ps += 3 * far_ps + kb_max(exchange_ps(leads, (uint32_t)in_sip, mask, bytes / in_sip / (l->sips / mask)),
                                  switch_ps(l->sips, leads.count));
    kb_traffic spread = kb_traffic_new();
    add_spread(spread, c->pes, leads, bytes);
    uint64_t messages = leads.count * kb_ceil_div(bytes / leads.count, c->chunk);
    uint64_t sends_ps = kb_max(kb_traffic_ps(spread), switch_ps(l->sips, messages));
    return ps + far_ps + sends_ps + kb_memory_ps(c->space, 0, bytes) +
           kb_ceil_div(messages, SPREAD_MESSAGES) * command_ps();
}

enum algorithm { RING, HALVING, IN_LEVELS, MULTICAST, WINDOWS, ALGORITHMS };

static const char *const algorithm_names[ALGORITHMS] = {"ring", "halving", "levels", "multicast", "windows"};

static kb_future launch_of(enum algorithm algorithm, struct kb_pes pes, const struct all_reduce_args *args)
{
    if (algorithm == RING)
        return kb_launch(all_reduce_ring, pes, args);
    if (algorithm == HALVING)
        return kb_launch(all_reduce_halving, pes, args);
    if (algorithm == WINDOWS)
        return kb_launch(all_reduce_windows, pes, args);
    return algorithm == MULTICAST ? kb_launch(all_reduce_multicast, pes, args) : kb_launch(all_reduce_levels, pes, args);
}

KB_BENCH(all_reduce, "every PE gets the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS,
         KB_INT(windows, 0, 0, 1 << 20, "windows of algorithm=windows; 0: chosen"),
         KB_WORD(algorithm, "auto ring halving levels multicast windows",
                 "a ring; recursive halving and doubling; cubes, SIPs and the system in turn, and back; the same in windows, "
                 "which overlap; or back by messages to all PEs at once; or the shortest of these"))
{
    struct collective c = reduction_params();
    struct levels levels = levels_of(c.pes);
    uint64_t bytes = c.n * c.element_bytes, sent_bytes = 2 * (c.n - block_longest(c.n, c.p)) * c.element_bytes;
    uint32_t number = leads_of(&c, &levels), windows = windows_of(&c, &levels);
    uint64_t chunk = chunk_of_vector(&c, &levels, number);
    bool copies = halving_copies(&c), fits = room_bytes(&c) >= MOVER_LEAST_ROOM;
    struct collective ring = with_shorter_messages(&c, block_longest(c.n, c.p));
    struct collective halving = copies ? c : with_shorter_messages(&c, c.n);
    struct kb_pes leads = lead_pes(c.pes, &levels, number);
    struct kb_work bound[ALGORITHMS] = {
        [RING] = ring_bound(c.pes, c.order, sent_bytes, 2), [HALVING] = halving_bound(c.pes, c.order, bytes),
        [IN_LEVELS] = levels_bound(c.pes, &levels, bytes), [WINDOWS] = windows_bound(c.pes, &levels, bytes)};
    if (number)
        bound[MULTICAST] = multicast_bound(c.pes, &levels, leads, bytes);
    enum algorithm algorithm = algorithm_used(algorithm_names, ALGORITHMS, (const uint64_t[]){
        [RING] = ring.chunk ? ring_estimate_ps(&ring, &bound[RING], 2) : UINT64_MAX,
        [HALVING] = halving.chunk ? halving_estimate_ps(&halving, &bound[HALVING]) : UINT64_MAX,
        [IN_LEVELS] = fits ? levels_estimate_ps(&c, &levels) : UINT64_MAX,
        [MULTICAST] = multicast_estimate_ps(&c, &levels, leads, chunk),
        [WINDOWS] = fits ? windows_estimate_ps(&c, &levels, windows) : UINT64_MAX});
    if (algorithm == MULTICAST && !number) {
        kb_note("algorithm=multicast: levels is used, the vector does not fit into the TCMs of the first PEs of all cubes");
        algorithm = IN_LEVELS;
    }
    if (algorithm == WINDOWS && !windows) {
        kb_note("algorithm=windows: levels is used, there are no cubes of several PEs in several SIPs");
        algorithm = IN_LEVELS;
    }
    if ((algorithm == IN_LEVELS || algorithm == WINDOWS) && !fits)
        kb_refuse("levels need %u bytes of a TCM, in which %llu are left: make size smaller, or take algorithm=ring",
                  MOVER_LEAST_ROOM, (unsigned long long)room_bytes(&c));
    if (algorithm == RING || (algorithm == HALVING && !copies))
        collective_fits(&c, held_bytes(&c), algorithm == RING ? block_longest(c.n, c.p) : c.n, 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, c.op);
    struct all_reduce_args args = {in, out, c.order, c.op, c.chunk, levels, spread_ranks(levels), NULL, number,
                                   reducers_of(&c, &levels), windows, chunk, cut_of(&c, levels.sips), copies, kb_has_data()};
    if (algorithm == MULTICAST)
        args.lead = kb_tensor_new("lead", c.dtype, kb_2d(leads.count, block_longest(c.n, number)), kb_rows(KB_TCM, leads));
    kb_future launch = launch_of(algorithm, c.pes, &args);
    kb_wait(launch);

    bound[algorithm].memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 2 * (c.p - 1), c.p, &bound[algorithm]);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
