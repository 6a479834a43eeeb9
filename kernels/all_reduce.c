/* all_reduce.c: every rank gets the reduction of all ranks' vectors: by a ring or in levels.
 *
 * Ring: the vector is cut into a block per rank. Each block goes once around the ring, is reduced with each rank's own
 * part on the way, and is complete at the last rank; from there it goes around again and is stored. Every rank sends
 * 2 (p - 1) / p of the vector, to its neighbour only, which is the least possible. It suits long vectors.
 *
 * Levels: each PE reduces a block of the vectors of its cube, which it loads from all of them; then a block of that
 * block over the cubes of its SIP; that is halved and doubled over the SIPs; and it stores its results with its peers
 * the same way back.
 *
 * Windows: the same in windows of the vector, with an exchanger in each cube that does no other work. So the links between SIPs,
 * which are the slowest, carry one window while the next one is reduced over the SIP and the one before is spread in it.
 *
 * Multicast: within a SIP, vectors are reduced by messages, and a few leads get the result, each a share of it, in their TCMs.
 * Between SIPs, whose messages pass one switch one after the other, leads move the longest pieces that there can be: SIPs in groups
 * give each other their shares, while they reduce the next ones, until each has one of its group; these are halved over the groups,
 * or reduced in a tree if they are short; and each lead sends what it has then to all ranks at once (spread.h).
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
    uint32_t leads, group;                              /* of a SIP; SIPs that collect shares in one of them each */
    uint32_t windows;                                   /* of the vector */
    uint64_t chunk;                                     /* elements that go through a SIP as a message */
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

/* ---- multicast */

static bool power_of_two(uint32_t count)
{
    return (count & (count - 1)) == 0;
}

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

/* Sends a buffer in messages of `message` elements at most. */
static void send_all(struct tl *tl, struct transfers *sends, uint32_t rank, struct tl_shard buffer, uint64_t message)
{
    for (uint64_t base = 0; base < buffer.shape[0]; base += message)
        transfers_add(tl, sends, tl_send_async(tl, rank, tl_part(tl, buffer, 0, base, kb_min(message, buffer.shape[0] - base))));
}

static void recv_all(struct tl *tl, uint32_t rank, struct tl_shard buffer, uint64_t message)
{
    for (uint64_t base = 0; base < buffer.shape[0]; base += message)
        tl_recv(tl, rank, tl_part(tl, buffer, 0, base, kb_min(message, buffer.shape[0] - base)));
}

/* What leads send each other in this many messages, at most, needs no notice: the switch has no more heads to handle then. */
enum { LEAD_MESSAGES = 2 };

enum { GROUP_MOST = 4 };                                /* SIPs of a group: more have more messages than their links take time */

/* A lead's share of the vector, which SIPs whose numbers follow one another, a group, collect in one of them, its owner. A row of
 * the tensor `lead` has places for the share of each of the group; that of the lead's own SIP is the first. */
struct lead {
    struct tl *tl;
    const struct all_reduce_args *arg;
    uint64_t n, longest, message;                       /* elements of the vector; of a share, of a message at most */
    uint32_t number, sip, owner;                        /* of the share, and this SIP; the SIP of the group that collects it */
    struct indices share;
    uint64_t got;                                       /* elements of it */
    uint32_t groups, at;                                /* of SIPs; that of this one */
    struct peers owners;                                /* the leads of those of all groups; short shares: of the first */
    struct transfers passed;                            /* to the owner */
    bool sends;                                         /* in messages what others store: shares are short */
};

static struct indices share_of(const struct lead *lead, uint64_t number)
{
    return block_range(lead->n, lead->arg->leads, number);
}

static uint32_t lead_rank(const struct lead *lead, uint64_t sip, uint64_t number)
{
    const struct levels *levels = &lead->arg->levels;
    return (uint32_t)((sip * levels->cubes + number) * levels->pes);
}

/* Which of a group collects a share. */
static uint32_t share_owner(const struct lead *lead, uint64_t number)
{
    return (uint32_t)(number * lead->arg->group / lead->arg->leads);
}

/* The leads of a SIP are the first PEs of its first cubes. */
static bool is_lead(const struct lead *lead)
{
    return tl_pe(lead->tl) % lead->arg->levels.pes == 0 && lead->number < lead->arg->leads;
}

static struct lead lead_of(struct tl *tl, const struct all_reduce_args *arg)
{
    const struct levels *levels = &arg->levels;
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    uint32_t cube = tl_pe(tl) / levels->pes, group = arg->group;
    struct lead lead = {.tl = tl, .arg = arg, .n = out.shape[0], .longest = block_longest(out.shape[0], arg->leads),
                        .message = spread_longest(tl, out.dtype, arg->chunk_bytes),
                        .number = cube % levels->cubes, .sip = cube / levels->cubes};
    uint32_t first = share_owner(&lead, lead.number), stride = group * levels->cubes * levels->pes;
    lead.owner = lead.sip / group * group + first;
    lead.share = share_of(&lead, lead.number);
    lead.groups = levels->sips / group;
    lead.at = lead.sip / group;
    lead.sends = lead.longest <= LEAD_MESSAGES * lead.message;
    uint32_t owners = lead.sends ? 1 : lead.groups;
    lead.owners = (struct peers){lead_rank(&lead, first, lead.number), stride, owners, lead.at % owners};
    return lead;
}

/* A range of the share of a SIP's lead, in one of the places of its row. */
static struct tl_shard lead_part(const struct lead *lead, uint64_t sip, uint64_t place, uint64_t number, struct indices range)
{
    struct tl_shard row = flattened(tl_shard(lead->tl, lead->arg->lead, sip * lead->arg->leads + number));
    return tl_part(lead->tl, row, 0, place * lead->longest + range.first - share_of(lead, number).first, range.count);
}

static struct tl_shard lead_own(const struct lead *lead, uint64_t place, struct indices range)
{
    return lead_part(lead, lead->sip, place, lead->number, range);
}

/* The place for the share of a SIP at the owner. */
static uint32_t lead_place(const struct lead *lead, uint32_t sip)
{
    return (sip + lead->arg->group - lead->owner % lead->arg->group) % lead->arg->group;
}

/* Begins to give this SIP's share to its owner. */
static void lead_pass(struct lead *lead)
{
    struct tl *tl = lead->tl;
    if (lead->sip == lead->owner)
        return;
    struct tl_shard mine = lead_own(lead, 0, lead->share);
    if (lead->sends)
        send_all(tl, &lead->passed, lead_rank(lead, lead->owner, lead->number), mine, lead->message);
    else
        transfers_add(tl, &lead->passed, tl_store_async(tl, lead_part(lead, lead->owner, lead_place(lead, lead->sip),
                                                                      lead->number, lead->share), mine));
}

/* Of the leads that have this one's place among those of their owners, that whose share is collected by SIP `i` of the group. */
static uint32_t lead_of_owner(const struct lead *lead, uint32_t i)
{
    uint32_t each = lead->arg->leads / lead->arg->group;
    return i * each + lead->number % each;
}

/* The lead that tells owners what a SIP has stored with them: that of the SIP before it, which has its share last. */
static uint32_t lead_teller(const struct lead *lead, uint32_t sip)
{
    uint32_t group = lead->arg->group;
    return lead_rank(lead, sip, lead_of_owner(lead, (sip + group - 1) % group));
}

/* Tells all owners at once that they have this SIP's shares: one notice for the switch. */
static void lead_tell(struct lead *lead, struct notices *notices)
{
    struct tl *tl = lead->tl;
    uint32_t group = lead->arg->group, first = lead->sip / group * group, teller = lead_teller(lead, lead->sip);
    uint32_t owners[GROUP_MOST], count = 0;
    if (teller != tl_pe(tl)) {
        notify(tl, notices, teller);
        return;
    }
    for (uint32_t i = 0; i < group; i++) {
        uint32_t number = lead_of_owner(lead, i), mine = lead_rank(lead, lead->sip, number);
        if (first + i == lead->sip)
            continue;
        if (mine != teller)
            await_notice(tl, notices, mine);
        owners[count++] = lead_rank(lead, first + i, number);
    }
    tl_multicast(tl, owners, count, notices->out);
}

/* The owner adds up the shares of its group. The SIP before it gives its share first (round_of). */
static void lead_collect(struct lead *lead, struct notices *notices)
{
    struct tl *tl = lead->tl;
    uint32_t group = lead->arg->group, first = lead->owner / group * group;
    transfers_wait(tl, &lead->passed);
    if (lead->sip != lead->owner && !lead->sends)
        lead_tell(lead, notices);
    if (lead->sip != lead->owner || lead->share.count == 0)
        return;
    for (uint32_t i = group - 1; i > 0; i--) {
        uint32_t sip = first + (lead->owner + i) % group;
        struct tl_shard mine = lead_own(lead, 0, lead->share), got = lead_own(lead, lead_place(lead, sip), lead->share);
        if (lead->sends)
            recv_all(tl, lead_rank(lead, sip, lead->number), got, lead->message);
        else
            await_notice(tl, notices, lead_teller(lead, sip));
        tl_math(tl, lead->arg->op, mine, got, mine);
    }
}

/* Loads a range of another owner's share and adds it to that of this one. */
static void lead_add(const struct lead *lead, uint32_t owner, struct indices range)
{
    struct tl *tl = lead->tl;
    struct tl_shard mine = lead_own(lead, 0, range), got = lead_own(lead, 1, (struct indices){lead->share.first, range.count});
    tl_load_into(tl, got, lead_part(lead, owner * lead->arg->group + lead->owner % lead->arg->group, 0, lead->number, range));
    tl_math(tl, lead->arg->op, mine, got, mine);
}

/* The same with short ranges, which are sent. */
static void lead_exchange(const struct lead *lead, uint32_t rank, struct indices given, struct indices kept)
{
    struct tl *tl = lead->tl;
    struct transfers sends = {.begun = 0};
    if (given.count)
        send_all(tl, &sends, rank, lead_own(lead, 0, given), lead->message);
    if (kept.count) {
        struct tl_shard mine = lead_own(lead, 0, kept), got = lead_own(lead, 1, (struct indices){lead->share.first, kept.count});
        recv_all(tl, rank, got, lead->message);
        tl_math(tl, lead->arg->op, mine, got, mine);
    }
    transfers_wait(tl, &sends);
}

/* Reduces a short share over all groups, in a tree. The first of them gets the sum. */
static void lead_tree(const struct lead *lead)
{
    uint32_t kept = 0;
    for (uint32_t count = lead->groups; count > 1 && lead->at < count; count = kept) {
        kept = kb_ceil_div(count, 2);
        bool gives = lead->at >= kept;
        uint32_t other = gives ? lead->at - kept : lead->at + kept;
        struct indices none = {lead->share.first, 0};
        if (other < count)
            lead_exchange(lead, lead->owners.first + other * lead->owners.stride, gives ? lead->share : none,
                          gives ? none : lead->share);
    }
}

/* Which owner's block of a share is the sender's with a number. The switch serves SIPs in the order of their numbers, so that the
 * first ones end their steps last, behind what others send already. Their blocks come last, and those of four SIPs that follow
 * one another in the vector are stored together. */
static uint32_t owner_of_sender(uint32_t owners, uint32_t number)
{
    return owners % 4 == 0 ? (owners / 4 - 1 - number / 4) * 4 + number % 4 : owners - 1 - number;
}

/* Reduces the share over its owners; each keeps its block. This goes by halving if their number is a power of two, else block by
 * block. */
static void lead_reduce(const struct lead *lead, struct notices *notices)
{
    const struct peers *all = &lead->owners;
    bool halves = power_of_two(all->count);
    for (uint32_t mask = all->count / 2; halves && mask > 0; mask >>= 1) {
        uint32_t peer = all->at ^ mask, rank = peer_rank(all, peer);
        struct indices kept = peer_held(lead->share, all, all->at, mask), given = peer_held(lead->share, all, peer, mask);
        if (lead->share.count * mask <= LEAD_MESSAGES * lead->message * all->count) {
            lead_exchange(lead, rank, given, kept);
            continue;
        }
        meet(lead->tl, notices, rank);
        if (kept.count)
            lead_add(lead, peer, kept);
    }
    if (halves)
        return;
    struct indices block = peer_block(lead->share, all, all->at);
    peers_barrier(lead->tl, notices, all);
    for (uint32_t i = 1; i < all->count && block.count; i++)
        lead_add(lead, (all->at + i) % all->count, block);
}

/* What two ranges have in common. */
static struct indices range_common(struct indices a, struct indices b)
{
    uint64_t first = kb_max(a.first, b.first), end = kb_min(a.first + a.count, b.first + b.count);
    return (struct indices){first, end > first ? end - first : 0};
}

/* ---- a SIP's vectors in chunks, which are messages
 *
 * Chunk i is added up in each cube by the PE with number i % pes, in each row of cubes by that PE of one of them, and over the rows
 * by that PE of one of these cubes, which sends the result to the leads. A PE loads its own vector only: no two meet at a memory,
 * and what they send takes less time than what they load.
 *
 * A round has a chunk for each PE of a cube. SIPs of a group take the rounds in different orders: first those of the share that the
 * next SIP collects, and those of their own share last. In each step a PE loads its chunks of a round and sends those of the round
 * before; it adds up those of its cube, and of its row, that were sent in the step before, and those of its column one step later.
 * So no PE waits for one that is late by less than a step. A PE receives what another one sends it in the order in which that one
 * sends. */
enum chunk_level { CHUNK_CUBE, CHUNK_ROW, CHUNK_SIP, CHUNK_RESULT, CHUNK_LEVELS };
enum { CHUNK_BUFFERS = 3 };                             /* of each level, for steps that follow one another */

struct chunks {
    struct tl *tl;
    struct lead *lead;
    uint64_t chunk, rounds;
    struct tl_shard in;
    tl_handle load;
    struct peers peers[CHUNK_LEVELS];
    struct chunk_buffer {
        struct tl_shard memory;                         /* a chunk for each peer, which it adds up */
        struct transfers sends;
    } buffer[CHUNK_LEVELS][CHUNK_BUFFERS];
};

/* The round of a step. */
static uint64_t round_of(const struct chunks *chunks, uint64_t step)
{
    uint32_t group = chunks->lead->arg->group;
    return (step + (chunks->lead->sip % group + 1) * chunks->rounds / group) % chunks->rounds;
}

/* Which of the peers of a level adds up the sums of a PE's chunk of a round. */
static uint32_t chunk_adder(const struct chunks *chunks, enum chunk_level level, uint64_t round, uint32_t pe)
{
    uint32_t in_row = chunks->peers[CHUNK_ROW].count;
    return level == CHUNK_CUBE ? pe : (uint32_t)((round + (level == CHUNK_ROW ? pe : pe / in_row)) % chunks->peers[level].count);
}

static struct indices chunk_of(const struct chunks *chunks, uint64_t round, uint32_t pe)
{
    uint64_t first = (round * chunks->peers[CHUNK_CUBE].count + pe) * chunks->chunk;
    return range_window((struct indices){0, chunks->lead->n}, kb_min(first, chunks->lead->n), chunks->chunk);
}

static struct chunk_buffer *chunk_buffer(struct chunks *chunks, enum chunk_level level, uint64_t step)
{
    return &chunks->buffer[level][step % CHUNK_BUFFERS];
}

/* The chunk of a peer, of which only `count` elements are used. */
static struct tl_shard chunk_in(const struct chunks *chunks, const struct chunk_buffer *buffer, uint32_t peer, uint64_t count)
{
    return tl_part(chunks->tl, buffer->memory, 0, peer * chunks->chunk, count);
}

static void chunks_load(struct chunks *chunks, uint64_t step)
{
    struct chunk_buffer *to = chunk_buffer(chunks, CHUNK_CUBE, step);
    uint64_t most = chunks->peers[CHUNK_CUBE].count * chunks->chunk;
    struct indices range = range_window((struct indices){0, chunks->lead->n}, round_of(chunks, step) * most, most);
    chunks->load = tl_load_async(chunks->tl, tl_part(chunks->tl, to->memory, 0, 0, range.count),
                                 subrange(chunks->tl, chunks->in, range));
}

/* Sends this PE's chunks of a round to the PEs of the cube. */
static void chunks_send(struct chunks *chunks, uint64_t step)
{
    struct tl *tl = chunks->tl;
    const struct peers *cube = &chunks->peers[CHUNK_CUBE];
    struct chunk_buffer *from = chunk_buffer(chunks, CHUNK_CUBE, step);
    tl_wait(tl, chunks->load);
    if (step + 1 < chunks->rounds)
        chunks_load(chunks, step + 1);
    for (uint32_t i = 1; i < cube->count; i++) {
        uint32_t pe = (cube->at + i) % cube->count;
        uint64_t count = chunk_of(chunks, round_of(chunks, step), pe).count;
        if (count)
            transfers_add(tl, &from->sends, tl_send_async(tl, peer_rank(cube, pe), chunk_in(chunks, from, pe, count)));
    }
}

/* Receives the peers' chunks in their places and adds all up. There is no op that multiplies along an axis. */
static void chunk_add(struct chunks *chunks, const struct peers *peers, const struct chunk_buffer *from, struct tl_shard sum)
{
    struct tl *tl = chunks->tl;
    const char *op = chunks->lead->arg->op;
    bool adds = op[0] == 'a', multiplies = op[1] == 'u';
    uint64_t count = sum.shape[0];
    struct transfers receives = {.begun = 0};
    for (uint32_t i = 1; i < peers->count; i++) {
        uint32_t peer = (peers->at + peers->count - i) % peers->count;
        transfers_add(tl, &receives, tl_recv_async(tl, peer_rank(peers, peer), chunk_in(chunks, from, peer, count)));
    }
    transfers_wait(tl, &receives);
    struct tl_shard rows = {.addr = from->memory.addr, .dtype = sum.dtype, .rank = 2, .shape = {peers->count, count},
                            .stride = {chunks->chunk, 1}};
    if (!multiplies) {
        tl_compute(tl, &(struct tl_compute){.op = adds ? "sum" : op, .to = sum, .x = tl_view(tl, rows)});
        return;
    }
    tl_copy(tl, sum, chunk_in(chunks, from, 0, count));
    for (uint32_t i = 1; i < peers->count; i++)
        tl_math(tl, op, sum, sum, chunk_in(chunks, from, i, count));
}

/* Sends the result of a chunk to the leads. */
static void chunk_finish(struct chunks *chunks, struct chunk_buffer *sum, struct indices chunk)
{
    struct tl *tl = chunks->tl;
    struct lead *lead = chunks->lead;
    for (uint32_t i = 0; i < lead->arg->leads; i++) {
        struct indices both = range_common(chunk, share_of(lead, i));
        struct tl_shard part = subrange(tl, sum->memory, (struct indices){both.first - chunk.first, both.count});
        uint32_t rank = lead_rank(lead, lead->sip, i);
        if (both.count && rank == tl_pe(tl))
            tl_copy(tl, lead_own(lead, 0, both), part);
        else if (both.count)
            transfers_add(tl, &sum->sends, tl_send_async(tl, rank, part));
    }
}

/* Adds up this PE's chunk of a step's round on a level, unless another PE does. The sum goes to who adds up the next level's. */
static void chunk_level(struct chunks *chunks, enum chunk_level level, uint64_t step)
{
    struct tl *tl = chunks->tl;
    if (step >= chunks->rounds)                         /* before the first one: beyond the last one */
        return;
    uint64_t round = round_of(chunks, step);
    uint32_t pe = chunks->peers[CHUNK_CUBE].at;
    struct indices chunk = chunk_of(chunks, round, pe);
    struct chunk_buffer *from = chunk_buffer(chunks, level, step), *to = chunk_buffer(chunks, level + 1, step);
    for (enum chunk_level i = CHUNK_CUBE; i <= level; i++)
        if (chunk_adder(chunks, i, round, pe) != chunks->peers[i].at || chunk.count == 0)
            return;
    const struct peers *next = &chunks->peers[level + 1];
    struct tl_shard sum = chunk_in(chunks, to, next->at, chunk.count);
    transfers_wait(tl, &from->sends);
    transfers_wait(tl, &to->sends);
    chunk_add(chunks, &chunks->peers[level], from, sum);
    uint32_t adder = level == CHUNK_SIP ? next->at : chunk_adder(chunks, level + 1, round, pe);
    if (level == CHUNK_SIP)
        chunk_finish(chunks, to, chunk);
    else if (adder != next->at)
        transfers_add(tl, &to->sends, tl_send_async(tl, peer_rank(next, adder), sum));
}

/* A lead receives the results of a step's round, and passes its share on after the last one. */
static void chunks_results(struct chunks *chunks, uint64_t step)
{
    struct lead *lead = chunks->lead;
    const struct peers *cube = &chunks->peers[CHUNK_CUBE];
    if (!is_lead(lead) || step >= chunks->rounds)
        return;
    uint64_t round = round_of(chunks, step);
    for (uint32_t pe = 0; pe < cube->count; pe++) {
        struct indices both = range_common(chunk_of(chunks, round, pe), lead->share);
        uint32_t x = chunk_adder(chunks, CHUNK_ROW, round, pe), y = chunk_adder(chunks, CHUNK_SIP, round, pe);
        uint32_t in_sip = y * chunks->peers[CHUNK_ROW].count + x;
        uint32_t rank = (uint32_t)(lead->sip * lead->arg->levels.cubes + in_sip) * cube->count + pe;
        if (both.count && rank != tl_pe(chunks->tl))
            tl_recv(chunks->tl, rank, lead_own(lead, 0, both));
        lead->got += both.count;
        if (both.count && lead->got == lead->share.count)
            lead_pass(lead);
    }
}

/* The cubes of a row: as many as there are rows, or more. */
static uint32_t cubes_in_row(uint32_t cubes)
{
    uint32_t rows = 1;
    for (uint32_t i = 1; i * i <= cubes; i++)
        rows = cubes % i == 0 ? i : rows;
    return cubes / rows;
}

static void reduce_chunks(struct lead *lead, const struct peers *cube, const struct peers *sip)
{
    struct tl *tl = lead->tl;
    uint32_t in_row = cubes_in_row(sip->count), x = sip->at % in_row, y = sip->at / in_row;
    struct chunks chunks = {
        .tl = tl, .lead = lead, .chunk = lead->arg->chunk,
        .rounds = kb_ceil_div(lead->n, lead->arg->chunk * cube->count),
        .in = flattened(tl_my_shard(tl, lead->arg->in)),
        .peers = {*cube, {sip->first + y * in_row * sip->stride, sip->stride, in_row, x},
                  {sip->first + x * sip->stride, in_row * sip->stride, sip->count / in_row, y}, only(tl_pe(tl))}};
    for (uint32_t i = 0; i < CHUNK_LEVELS * CHUNK_BUFFERS; i++)
        chunk_buffer(&chunks, i / CHUNK_BUFFERS, i)->memory =
            tl_alloc(tl, chunks.in.dtype, chunks.peers[i / CHUNK_BUFFERS].count * chunks.chunk);
    chunks_load(&chunks, 0);
    for (uint64_t step = 0; step < chunks.rounds + 3; step++) {
        if (step < chunks.rounds)
            chunks_send(&chunks, step);
        chunk_level(&chunks, CHUNK_CUBE, step - 1);
        chunks_results(&chunks, step - 3);
        chunk_level(&chunks, CHUNK_SIP, step - 2);
        chunk_level(&chunks, CHUNK_ROW, step - 1);
    }
    for (uint32_t i = 0; i < CHUNK_LEVELS * CHUNK_BUFFERS; i++) {
        struct chunk_buffer *buffer = chunk_buffer(&chunks, i / CHUNK_BUFFERS, i);
        transfers_wait(tl, &buffer->sends);
        tl_free(tl, buffer->memory);
    }
}

/* What is sent to all ranks, in the order of shares: each owner's block of them. */
static struct indices sender_block(const void *of, uint64_t sender)
{
    const struct lead *lead = of;
    uint32_t owners = lead->owners.count;
    return peer_block(share_of(lead, sender / owners), &lead->owners, owner_of_sender(owners, (uint32_t)(sender % owners)));
}

static uint32_t sender_rank(const void *of, uint64_t sender)
{
    const struct lead *lead = of;
    uint32_t owners = lead->owners.count, owner = owner_of_sender(owners, (uint32_t)(sender % owners));
    return lead_rank(lead, owner * lead->arg->group + share_owner(lead, sender / owners), sender / owners);
}

static void load_of_share(struct tl *tl, const void *of, struct tl_shard buffer, struct indices range)
{
    tl_load_into(tl, buffer, lead_own(of, 0, range));
}

KB_KERNEL(all_reduce_multicast, struct all_reduce_args)
{
    const struct levels *levels = &arg->levels;
    struct notices notices = notices_open(tl);
    struct peers cube = level_peers(tl, levels, LEVEL_CUBE), sip = level_peers(tl, levels, LEVEL_SIP);
    struct lead lead = lead_of(tl, arg);
    uint32_t owners = lead.owners.count;
    bool owns = lead.number < arg->leads && lead.sip == lead.owner;     /* this cube has the lead of an owner */
    reduce_chunks(&lead, &cube, &sip);
    if (is_lead(&lead))
        lead_collect(&lead, &notices);
    if (is_lead(&lead) && owns && owners > 1)
        lead_reduce(&lead, &notices);
    else if (is_lead(&lead) && owns)
        lead_tree(&lead);
    owns = owns && lead.at < owners;
    notices_close(tl, &notices);

    struct spread spread;
    spread_open(&spread, tl, flattened(tl_my_shard(tl, arg->out)), &arg->ranks, arg->chunk_bytes);
    uint64_t count = (uint64_t)arg->leads * owners;
    spread_all(&spread, &(struct senders){
        .count = count, .longest = block_longest(lead.longest, owners),
        .mine = owns ? lead.number * owners + owner_of_sender(owners, lead.owners.at) : count,
        .in_turn = !lead.sends,
        .part = sender_block, .rank = sender_rank, .load = load_of_share, .of = &lead});
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

/* The part of a range that a number still holds after the exchanges with those that differ in the bits below `mask`. */
static struct indices part_held(struct indices range, uint32_t id, uint32_t mask)
{
    for (uint32_t bit = 1; bit < mask; bit <<= 1) {
        uint64_t low = range.count / 2;
        range = id & bit ? (struct indices){range.first + low, range.count - low} : (struct indices){range.first, low};
    }
    return range;
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

/* The parameters with messages for which the vectors leave room; their segments have at most `longest` elements. `chunk` is 0 if
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

/* Whether shares of a number of leads go in so few messages that a tree takes the fewest. */
static bool shares_short(const struct collective *c, uint32_t leads)
{
    return block_longest(c->n, leads) <= LEAD_MESSAGES * (spread_message_bytes(c->chunk) / c->element_bytes);
}

/* The elements of a row of `lead`: the shares of each SIP of a group; those of one SIP, and what it gets of another's, which is
 * half of them if they are not short. */
static uint64_t lead_row(const struct collective *c, const struct levels *l, uint32_t group, uint32_t leads)
{
    uint64_t longest = block_longest(c->n, leads);
    uint64_t half = shares_short(c, leads) ? longest : kb_min(longest, longest / 2 + l->sips);
    return group > 1 ? group * longest : l->sips == 1 ? longest : longest + half;
}

/* How many SIPs are a group, how many leads a SIP has, and the elements of a chunk: those of a message, or of half of one so that
 * there are more rounds. `leads` is 0 if not even the first PEs of all cubes have room. */
struct lead_numbers {
    uint32_t group, leads;
    uint64_t chunk;
};

/* The most SIPs of a group, and the fewest leads, whose TCMs have room for their rows besides the chunks, or the messages that they
 * send. */
static struct lead_numbers lead_numbers(const struct collective *c, const struct levels *l)
{
    uint64_t size = c->element_bytes, message = kb_max(spread_message_bytes(c->chunk) / size, 1);
    uint64_t rounds = kb_max(kb_ceil_div(c->n, message * l->pes), kb_min(l->cubes / 2, 2 * c->n / (message * l->pes)));
    uint64_t chunk = kb_ceil_div(c->n, rounds * l->pes), buffer = tcm_padded(chunk * size);
    uint64_t row = cubes_in_row(l->cubes), buffers = CHUNK_BUFFERS * (l->pes + row + l->cubes / row + 1) * buffer;
    buffers = kb_max(buffers, SPREAD_BATCHES * tcm_padded(message * size)) + 2 * 64;
    for (uint32_t group = kb_min(GROUP_MOST, l->cubes); group > 0; group--)
        for (uint32_t leads = group; l->sips % group == 0 && leads <= l->cubes; leads += group)
            if (tcm_padded(lead_row(c, l, group, leads) * size) + buffers <= room_bytes(c))
                return (struct lead_numbers){group, leads, chunk};
    return (struct lead_numbers){1, 0, chunk};
}

/* What leads of a share, of `share` bytes, give its owners, or with a mask what the owners in groups whose numbers differ in one
 * bit give each other. */
static void add_shares(kb_traffic traffic, struct kb_pes leads, const struct levels *l, uint32_t group, uint32_t mask,
                       uint64_t share)
{
    uint32_t in_sip = leads.count / l->sips;
    for (uint32_t i = 0; i < leads.count; i++) {
        uint32_t sip = i / in_sip, number = i % in_sip, owner = sip / group * group + number * group / in_sip;
        uint32_t to = (owner / group ^ mask) * group + owner % group;
        if (sip != to && (mask == 0 || sip == owner) && to < l->sips)
            kb_traffic_add(traffic, leads.pe[i], leads.pe[to * in_sip + number], mask ? share * mask * group / l->sips : share);
    }
}

/* What the owners in the later ones of `count` groups give those in the `kept` first ones. */
static void add_tree_step(kb_traffic traffic, struct kb_pes leads, const struct levels *l, uint32_t group, uint32_t count,
                          uint32_t kept, uint64_t share)
{
    uint32_t in_sip = leads.count / l->sips;
    for (uint32_t i = kept * group * in_sip; i < count * group * in_sip; i++)
        if (i / in_sip % group == i % in_sip * group / in_sip)
            kb_traffic_add(traffic, leads.pe[i], leads.pe[i - kept * group * in_sip], share);
}

/* What the owners send to the last PE: all of the vector, which takes no link twice. */
static void add_spread(kb_traffic traffic, struct kb_pes pes, struct kb_pes leads, const struct levels *l, uint32_t group,
                       uint64_t bytes)
{
    uint32_t in_sip = leads.count / l->sips;
    for (uint32_t i = 0; i < leads.count; i++)
        if (i / in_sip % group == i % in_sip * group / in_sip && leads.pe[i] != pes.pe[pes.count - 1])
            kb_traffic_add(traffic, leads.pe[i], pes.pe[pes.count - 1], bytes / leads.count * group);
}

static struct kb_work multicast_bound(struct kb_pes pes, const struct levels *l, struct kb_pes leads, uint32_t group,
                                      bool tree, uint64_t bytes)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint32_t in_row = cubes_in_row(l->cubes), groups = l->sips / group;
    uint64_t share = bytes / leads.count * l->sips;
    uint64_t far_ps = leads.count > 1 ? kb_latency_ps(leads.pe[0], leads.pe[leads.count - 1]) : 0;
    bound.latency_ps += level_traffic(bound.traffic, pes, 1, l->pes, bytes / l->pes);
    bound.latency_ps += level_traffic(bound.traffic, pes, l->pes, in_row, bytes / l->pes / in_row);
    bound.latency_ps += level_traffic(bound.traffic, pes, l->pes * in_row, l->cubes / in_row, bytes / l->pes / l->cubes);
    add_shares(bound.traffic, leads, l, group, 0, share);
    bound.latency_ps += group > 1 ? far_ps : 0;
    for (uint32_t mask = 1; !tree && mask < groups; mask <<= 1) {
        add_shares(bound.traffic, leads, l, group, mask, share);
        bound.latency_ps += far_ps;
    }
    for (uint32_t count = groups, kept; tree && count > 1; count = kept) {
        kept = kb_ceil_div(count, 2);
        add_tree_step(bound.traffic, leads, l, group, count, kept, share);
        bound.latency_ps += far_ps;
    }
    add_spread(bound.traffic, pes, leads, l, group, bytes);
    bound.latency_ps += far_ps;
    return bound;
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
    if (!power_of_two(l->sips))                         /* each loads from all others and stores with them */
        return 2 * (3 * far_ps + switch_ps(l->sips, (uint64_t)pes.count * (l->sips - 1)));
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

/* The time in which a PE receives and adds up one chunk of each of `peers` peers: in one command, unless it multiplies. */
static uint64_t chunk_adds_ps(const struct collective *c, uint64_t chunk, uint64_t peers)
{
    uint64_t commands = c->op[1] == 'u' ? peers : 1;
    uint64_t call_ps = kb_attrs.pe_cpu_overhead_ps + kb_attrs.pe_scheduler_overhead_ps;
    return commands * kb_cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz) +
           kb_math_ps(c->dtype, chunk * peers) + (peers - 1 + commands) * call_ps;
}

/* A round loads a chunk for each PE of the cube, and adds up what they send at the same time. The last one is added up over rows
 * and the SIP in later steps, and goes to the leads. */
static uint64_t chunks_estimate_ps(const struct collective *c, const struct levels *l, const struct lead_numbers *number)
{
    uint64_t row = cubes_in_row(l->cubes), column = l->cubes / row, chunk = number->chunk;
    uint64_t rounds = kb_ceil_div(c->n, chunk * l->pes), bytes = chunk * l->pes * c->element_bytes;
    uint64_t load_ps = collective_memory_ps(c, bytes, 0) + 2 * command_ps(), adds_ps = chunk_adds_ps(c, chunk, l->pes);
    return (rounds + 2) * kb_max(load_ps, adds_ps) + adds_ps + chunk_adds_ps(c, chunk, row) + chunk_adds_ps(c, chunk, column) +
           CHUNK_RESULT * 3 * command_ps() + kb_move_ps(c->n * c->element_bytes / number->leads, kb_attrs.noc_link_bw_bps);
}

/* The vectors of a SIP are reduced; its leads pass shares on, long ones but the last meanwhile, and halve them in steps; and all
 * ranks write the vector that leads send. The messages of a step and its notices pass the switch. */
static uint64_t multicast_estimate_ps(const struct collective *c, const struct levels *l, struct kb_pes leads,
                                      const struct lead_numbers *number)
{
    if (leads.count == 0)
        return UINT64_MAX;
    uint64_t bytes = c->n * c->element_bytes, share = bytes / leads.count * l->sips, message = spread_message_bytes(c->chunk);
    uint64_t far_ps = leads.count > 1 ? kb_latency_ps(leads.pe[0], leads.pe[leads.count - 1]) : 0;
    uint64_t owners = leads.count / number->group, ps = chunks_estimate_ps(c, l, number);
    bool tree = shares_short(c, number->leads);
    for (uint32_t mask = 0; mask < (tree ? 1 : l->sips / number->group); mask = mask ? 2 * mask : 1) {
        uint64_t messages = mask ? owners : number->group > 1 ? leads.count - owners : 0;
        bool sends = share * kb_max(mask, 1) <= LEAD_MESSAGES * message * (mask ? l->sips / number->group : 1);
        uint64_t heads = messages * (sends ? mask ? 1 : kb_ceil_div(share, message) : mask ? 2 : 1);
        kb_traffic traffic = kb_traffic_new();
        add_shares(traffic, leads, l, number->group, mask, share);
        uint64_t moves_ps = kb_max(kb_traffic_ps(traffic), switch_ps(l->sips, heads + (sends || mask ? 0 : owners)));
        if (messages)
            ps += (sends ? 1 : 3) * far_ps + moves_ps / (mask || sends ? 1 : number->group - 1);
    }
    for (uint32_t count = l->sips / number->group, kept; tree && count > 1; count = kept) {
        kept = kb_ceil_div(count, 2);
        ps += far_ps + kb_max(kb_move_ps(share, kb_attrs.pcie_bw_bps),
                              switch_ps(l->sips, number->leads * (count - kept) * kb_ceil_div(share, message)));
    }
    kb_traffic spread = kb_traffic_new();
    add_spread(spread, c->pes, leads, l, number->group, bytes);
    owners = tree ? number->leads : owners;
    uint64_t messages = owners * kb_ceil_div(bytes / owners, c->chunk);
    uint64_t sends_ps = kb_max(kb_traffic_ps(spread), switch_ps(l->sips, messages));
    return ps + far_ps + kb_max(sends_ps, kb_memory_ps(c->space, 0, bytes)) +
           kb_ceil_div(messages, SPREAD_MESSAGES) * command_ps();
}

enum algorithm { RING, IN_LEVELS, MULTICAST, WINDOWS, ALGORITHMS };

static const char *const algorithm_names[ALGORITHMS] = {"ring", "levels", "multicast", "windows"};

static kb_future launch_of(enum algorithm algorithm, struct kb_pes pes, const struct all_reduce_args *args)
{
    if (algorithm == RING)
        return kb_launch(all_reduce_ring, pes, args);
    if (algorithm == WINDOWS)
        return kb_launch(all_reduce_windows, pes, args);
    return algorithm == MULTICAST ? kb_launch(all_reduce_multicast, pes, args) : kb_launch(all_reduce_levels, pes, args);
}

KB_BENCH(all_reduce, "every PE gets the reduction of all vectors",
         COLLECTIVE_PARAMS("f16 bf16 f32 i32 i8", "elements of each vector"), REDUCTION_PARAMS,
         KB_INT(windows, 0, 0, 1 << 20, "windows of algorithm=windows; 0: chosen"),
         KB_WORD(algorithm, "auto ring levels multicast windows",
                 "the shortest of: a ring; cubes, SIPs and the system in turn; messages, the last to all PEs at once; "
                 "levels in windows that overlap"))
{
    struct collective c = reduction_params();
    struct levels levels = levels_of(c.pes);
    uint64_t bytes = c.n * c.element_bytes, sent_bytes = 2 * (c.n - block_longest(c.n, c.p)) * c.element_bytes;
    uint32_t windows = windows_of(&c, &levels);
    struct lead_numbers number = lead_numbers(&c, &levels);
    bool fits = room_bytes(&c) >= MOVER_LEAST_ROOM;
    struct collective ring = with_shorter_messages(&c, block_longest(c.n, c.p));
    struct kb_pes leads = lead_pes(c.pes, &levels, number.leads);
    struct kb_work bound[ALGORITHMS] = {
        [RING] = ring_bound(c.pes, c.order, sent_bytes, 2),
        [IN_LEVELS] = levels_bound(c.pes, &levels, bytes), [WINDOWS] = windows_bound(c.pes, &levels, bytes)};
    if (number.leads)
        bound[MULTICAST] = multicast_bound(c.pes, &levels, leads, number.group, shares_short(&c, number.leads), bytes);
    enum algorithm algorithm = algorithm_used(algorithm_names, ALGORITHMS, (const uint64_t[]){
        [RING] = ring.chunk ? ring_estimate_ps(&ring, &bound[RING], 2) : UINT64_MAX,
        [IN_LEVELS] = fits ? levels_estimate_ps(&c, &levels) : UINT64_MAX,
        [MULTICAST] = multicast_estimate_ps(&c, &levels, leads, &number),
        [WINDOWS] = fits ? windows_estimate_ps(&c, &levels, windows) : UINT64_MAX});
    if (algorithm == MULTICAST && !number.leads) {
        kb_note("algorithm=multicast: levels is used, the vector does not fit into the TCMs of the first PEs of all cubes");
        algorithm = IN_LEVELS;
    }
    if (algorithm == WINDOWS && !windows) {
        kb_note("algorithm=windows: levels is used, there are no cubes of several PEs in several SIPs");
        algorithm = IN_LEVELS;
    }
    bool cuts = algorithm == WINDOWS;
    param_used("windows", kb_int(windows), cuts ? windows : 0, cuts ? "each has an element" : "other algorithms have none");
    if ((algorithm == IN_LEVELS || algorithm == WINDOWS) && !fits)
        kb_refuse("levels need %u bytes of a TCM, in which %llu are left: make size smaller, or take algorithm=ring",
                  MOVER_LEAST_ROOM, (unsigned long long)room_bytes(&c));
    if (algorithm == RING)
        collective_fits(&c, held_bytes(&c), block_longest(c.n, c.p), 0);

    kb_tensor in = kb_tensor_new("in", c.dtype, kb_2d(c.p, c.n), kb_rows(c.space, c.pes));
    kb_tensor out = kb_tensor_new("out", c.dtype, kb_2d(1, c.n), kb_copies(c.space, c.pes));
    collective_fill(in, c.dtype, c.op, c.p);
    struct all_reduce_args args = {in, out, c.order, c.op, c.chunk, levels, spread_ranks(levels), NULL, number.leads,
                                   number.group, windows, number.chunk, kb_has_data()};
    if (algorithm == MULTICAST)
        args.lead = kb_tensor_new("lead", c.dtype,
                                  kb_2d(leads.count, lead_row(&c, &levels, number.group, number.leads)),
                                  kb_rows(KB_TCM, leads));
    kb_future launch = launch_of(algorithm, c.pes, &args);
    kb_wait(launch);

    bound[algorithm].memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 2 * (c.p - 1), c.p, &bound[algorithm]);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
