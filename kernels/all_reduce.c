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
 * give each other their shares, while they reduce the next ones, until each has one of its group; a few groups get a block of each
 * from all others at once, or all of it in a tree if it is short; and they send what they have then to all ranks at once
 * (spread.h).
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
    uint32_t owners;                                    /* groups that get blocks of a share */
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
enum { OWNERS_MOST = 16 };

/* A lead's share of the vector, which the members of a group of SIPs collect in one of them, its owner: SIP s is member s / groups of
 * group s % groups. A row of the tensor `lead` has places for the share of each member; that of the owner itself is the first. */
struct lead {
    struct tl *tl;
    const struct all_reduce_args *arg;
    enum kb_dtype dtype;
    uint64_t n, longest, message;                       /* elements of the vector; of a share, of a message at most */
    uint32_t number, sip;                               /* of the share, and this SIP */
    uint32_t groups, at;                                /* of SIPs; that of this one */
    uint32_t member, owner;                             /* of the group: this SIP; that which collects the share */
    struct indices share;
    uint64_t got;                                       /* elements of it that are received or will be */
    bool given;                                         /* to the owner */
    struct peers owners;                                /* of the share: the leads of the groups that get a block, or a short one */
    struct transfers results, passed;                   /* from PEs of this SIP; to the owner */
    bool sends, sends_blocks;                           /* in messages what is stored or loaded otherwise: it is short */
};

static struct indices share_of(const struct lead *lead, uint64_t number)
{
    return block_range(lead->n, lead->arg->leads, number);
}

static uint32_t lead_rank(const struct lead *lead, uint64_t sip, uint64_t number)
{
    const struct levels *levels = &lead->arg->levels;
    return spread_lead(&lead->arg->ranks, (uint32_t)(sip * levels->cubes + number));
}

/* Which of a group collects a share. */
static uint32_t share_owner(const struct lead *lead, uint64_t number)
{
    return (uint32_t)(number * lead->arg->group / lead->arg->leads);
}

/* The leads of a SIP are PEs of its first cubes, one of each. */
static bool is_lead(const struct lead *lead)
{
    return tl_pe(lead->tl) % lead->arg->levels.pes == lead->arg->ranks.lead && lead->number < lead->arg->leads;
}

static struct lead lead_of(struct tl *tl, const struct all_reduce_args *arg)
{
    const struct levels *levels = &arg->levels;
    struct tl_shard out = flattened(tl_my_shard(tl, arg->out));
    uint32_t cube = tl_pe(tl) / levels->pes;
    struct lead lead = {.tl = tl, .arg = arg, .dtype = out.dtype, .n = out.shape[0],
                        .longest = block_longest(out.shape[0], arg->leads),
                        .message = spread_longest(tl, out.dtype, arg->chunk_bytes),
                        .number = cube % levels->cubes, .sip = cube / levels->cubes, .groups = levels->sips / arg->group};
    lead.at = lead.sip % lead.groups;
    lead.member = lead.sip / lead.groups;
    lead.owner = share_owner(&lead, lead.number);
    lead.share = share_of(&lead, lead.number);
    lead.sends = lead.longest <= LEAD_MESSAGES * lead.message;
    lead.sends_blocks = block_longest(lead.longest, arg->owners) <= lead.message;
    lead.owners = (struct peers){lead_rank(&lead, lead.owner * lead.groups, lead.number), levels->cubes * levels->pes,
                                 arg->owners, lead.at % arg->owners};
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

/* A SIP of this group, and its lead of a share. */
static uint32_t member_sip(const struct lead *lead, uint32_t member)
{
    return member % lead->arg->group * lead->groups + lead->at;
}

static uint32_t member_rank(const struct lead *lead, uint32_t member, uint32_t number)
{
    return lead_rank(lead, member_sip(lead, member), number);
}

/* The place for the share of a member at the owner. */
static uint32_t lead_place(const struct lead *lead, uint32_t member)
{
    return (member + lead->arg->group - lead->owner) % lead->arg->group;
}

/* The lead of the share in the member of a group that owns it. */
static uint32_t owner_rank(const struct lead *lead, uint32_t group)
{
    return lead->owners.first + group * lead->owners.stride;
}

/* Adds what is got of another one's share to a range of this one. */
static void lead_add(const struct lead *lead, struct tl_shard got, struct indices range)
{
    struct tl_shard mine = lead_own(lead, 0, range);
    tl_math(lead->tl, lead->arg->op, mine, got, mine);
}

/* Begins to give this SIP's share to its owner. */
static void lead_pass(struct lead *lead)
{
    struct tl *tl = lead->tl;
    struct tl_shard mine = lead_own(lead, 0, lead->share);
    uint32_t owner = member_rank(lead, lead->owner, lead->number);
    if (lead->sends)
        send_all(tl, &lead->passed, owner, mine, lead->message);
    else
        transfers_add(tl, &lead->passed, tl_store_async(tl, lead_part(lead, member_sip(lead, lead->owner),
                                                                      lead_place(lead, lead->member), lead->number, lead->share),
                                                        mine));
}

/* Of the leads that have this one's place among those of their owners, that whose share is collected by a member. */
static uint32_t lead_of_owner(const struct lead *lead, uint32_t member)
{
    uint32_t each = lead->arg->leads / lead->arg->group;
    return member % lead->arg->group * each + lead->number % each;
}

/* Whether a member gives its share of this number after all others that it gives (round_of). */
static bool gives_last(const struct lead *lead, uint32_t member)
{
    return member == (lead->owner + 1) % lead->arg->group;
}

/* The lead that tells the owner of this share that a member has stored it: the share's own if the member gives it last, so that the
 * owner has added up the others by then; else that whose share the member gives last but one. */
static uint32_t lead_teller(const struct lead *lead, uint32_t member)
{
    return member_rank(lead, member, gives_last(lead, member) ? lead->number : lead_of_owner(lead, member + lead->arg->group - 2));
}

/* Tells the owners that they have the shares which this SIP has stored with them: all but the last one at once, in one notice for
 * the switch. */
static void lead_tell(struct lead *lead, struct notices *notices)
{
    struct tl *tl = lead->tl;
    uint32_t group = lead->arg->group, teller = lead_teller(lead, lead->member);
    uint32_t owners[GROUP_MOST], count = 0;
    if (gives_last(lead, lead->member)) {
        notify(tl, notices, member_rank(lead, lead->owner, lead->number));
        return;
    }
    if (teller != tl_pe(tl)) {
        notify(tl, notices, teller);
        return;
    }
    for (uint32_t i = 1; i < group - 1; i++) {
        uint32_t number = lead_of_owner(lead, lead->member + i), mine = member_rank(lead, lead->member, number);
        if (mine != teller)
            await_notice(tl, notices, mine);
        owners[count++] = member_rank(lead, lead->member + i, number);
    }
    tl_multicast(tl, owners, count, notices->out);
}

/* The owner adds up the shares of its group. The member before it gives its share first, and the one after it last (round_of). */
static void lead_collect(struct lead *lead, struct notices *notices)
{
    struct tl *tl = lead->tl;
    transfers_wait(tl, &lead->results);
    for (uint32_t i = lead->arg->group - 1; i > 0; i--) {
        struct tl_shard got = lead_own(lead, i, lead->share);
        if (lead->sends)
            recv_all(tl, member_rank(lead, lead->owner + i, lead->number), got, lead->message);
        else
            await_notice(tl, notices, lead_teller(lead, (lead->owner + i) % lead->arg->group));
        lead_add(lead, got, lead->share);
    }
}

/* The place for a range of another lead's share. */
static struct tl_shard lead_got(const struct lead *lead, struct indices range)
{
    return lead_own(lead, 1, (struct indices){lead->share.first, range.count});
}

/* A range of the share in another group. */
static struct tl_shard lead_other(const struct lead *lead, uint32_t group, struct indices range)
{
    return lead_part(lead, lead->owner * lead->groups + group, 0, lead->number, range);
}

/* Reduces a short share over all groups, in a tree. The first of them gets the sum. */
static void lead_tree(const struct lead *lead)
{
    struct tl *tl = lead->tl;
    uint32_t kept = 0;
    for (uint32_t count = lead->groups; count > 1 && lead->at < count && lead->share.count; count = kept) {
        kept = kb_ceil_div(count, 2);
        bool gives = lead->at >= kept;
        uint32_t other = gives ? lead->at - kept : lead->at + kept;
        struct transfers sends = {.begun = 0};
        if (gives) {
            send_all(tl, &sends, owner_rank(lead, other), lead_own(lead, 0, lead->share), lead->message);
        } else if (other < count) {
            recv_all(tl, owner_rank(lead, other), lead_got(lead, lead->share), lead->message);
            lead_add(lead, lead_got(lead, lead->share), lead->share);
        }
        transfers_wait(tl, &sends);
    }
}

/* Which PE of an owner's cube loads the block from the group `i` places further. The PEs behind the owner take turns, since the owner
 * adds. */
static uint32_t lead_loader(const struct lead *lead, uint32_t owner, uint32_t i)
{
    uint32_t pes = lead->arg->levels.pes, rank = owner_rank(lead, owner);
    return rank / pes * pes + (rank + i % lead->groups) % pes;
}

static struct indices owner_block(const struct lead *lead, uint32_t owner)
{
    return peer_block(lead->share, &lead->owners, owner);
}

/* Whether the lead of this cube is that of a SIP that owns a block of its share. */
static bool owns_block(const struct lead *lead)
{
    return lead->number < lead->arg->leads && lead->member == lead->owner && lead->at < lead->owners.count;
}

/* Gives the owners of a share their blocks of it: tells those PEs that load them, or sends them if they are short. */
static void lead_give(const struct lead *lead, struct notices *notices)
{
    struct tl *tl = lead->tl;
    uint32_t ranks[OWNERS_MOST], count = 0;
    struct transfers sends = {.begun = 0};
    for (uint32_t owner = 0; owner < lead->owners.count; owner++) {
        struct indices block = owner_block(lead, owner);
        if (owner == lead->at)
            continue;
        if (lead->sends_blocks && block.count)
            send_all(tl, &sends, owner_rank(lead, owner), lead_own(lead, 0, block), lead->message);
        ranks[count++] = lead_loader(lead, owner, lead->at + lead->groups - owner);
    }
    if (count && !lead->sends_blocks)
        tl_multicast(tl, ranks, count, notices->out);
    transfers_wait(tl, &sends);
}

/* Loads the block of this cube's owner from all groups. A PE has one engine that loads, so that each of the cube loads from some
 * groups and sends the owner what it gets. Groups come in the order in which the switch serves them. */
static void lead_load(const struct lead *lead, struct notices *notices)
{
    struct tl *tl = lead->tl;
    struct indices block = owner_block(lead, lead->at);
    bool owns = is_lead(lead);
    for (uint32_t from = 0; from < lead->groups && block.count; from++) {
        uint32_t loader = lead_loader(lead, lead->at, from + lead->groups - lead->at);
        struct transfers sends = {.begun = 0};
        if (from == lead->at || (tl_pe(tl) != loader && !owns))
            continue;
        struct tl_shard got = owns ? lead_got(lead, block) : tl_alloc(tl, lead->dtype, block.count);
        if (lead->sends_blocks) {
            if (owns)
                recv_all(tl, owner_rank(lead, from), got, lead->message);
        } else if (tl_pe(tl) == loader) {
            await_notice(tl, notices, owner_rank(lead, from));
            tl_load_into(tl, got, lead_other(lead, from, block));
            if (!owns)
                send_all(tl, &sends, owner_rank(lead, lead->at), got, lead->message);
        } else {
            recv_all(tl, loader, got, lead->message);
        }
        if (owns)
            lead_add(lead, got, block);
        transfers_wait(tl, &sends);
        if (!owns)
            tl_free(tl, got);
    }
}

/* Reduces the share of this cube's lead over all SIPs. */
static void lead_reduce(struct lead *lead, struct notices *notices)
{
    if (is_lead(lead) && lead->member != lead->owner) {
        transfers_wait(lead->tl, &lead->passed);
        if (!lead->sends)
            lead_tell(lead, notices);
    } else if (is_lead(lead) && lead->share.count) {
        lead_collect(lead, notices);
        if (lead->sends)
            lead_tree(lead);
        else
            lead_give(lead, notices);
    }
    if (owns_block(lead) && !lead->sends)
        lead_load(lead, notices);
}

/* What two ranges have in common. */
static struct indices range_common(struct indices a, struct indices b)
{
    uint64_t first = kb_max(a.first, b.first), end = kb_min(a.first + a.count, b.first + b.count);
    return (struct indices){first, end > first ? end - first : 0};
}

/* ---- a SIP's vectors in chunks, which are messages
 *
 * Chunk i is added up in each cube by the PE with number i % pes, which loads it from all PEs of the cube, in each column of cubes by
 * that PE of one of them, and over the columns by that PE of one of these cubes, which sends the result to the leads. Columns are
 * added up in their middle, to which the ways are short, and not in the first row, which has the leads: what these give other SIPs
 * holds up all that moves along that row.
 *
 * A round has a chunk for each PE of a cube. SIPs of a group take the rounds in different orders: first those of the share that the
 * next SIP collects, and those of their own share last. In each step a PE adds up its chunk of a round, and loads the next one, which
 * meets results on their way through the cube of a lead, so that no more are loaded ahead; it adds up those of its column that were
 * sent in the step before, and those over the columns. A lead receives in the next step, and does not wait unless its share is
 * complete. A PE receives what another one sends it in the order in which that one sends. */
enum chunk_level { CHUNK_CUBE, CHUNK_COLUMN, CHUNK_SIP, CHUNK_RESULT, CHUNK_LEVELS };
enum { CHUNK_BUFFERS = 3 };                             /* of each level, for steps that follow one another */

struct chunks {
    struct tl *tl;
    struct lead *lead;
    uint64_t chunk, rounds;
    const int32_t *cube;                                /* its ranks, from this one on */
    struct peers peers[CHUNK_LEVELS];
    struct chunk_buffer {
        struct tl_shard memory;                         /* a chunk for each peer, which it adds up */
        tl_handle load;
        struct transfers sends;
    } buffer[CHUNK_LEVELS][CHUNK_BUFFERS];
};

/* The round of a step. */
static uint64_t round_of(const struct chunks *chunks, uint64_t step)
{
    uint32_t group = chunks->lead->arg->group;
    return (step + (chunks->lead->member + 1) * chunks->rounds / group) % chunks->rounds;
}

/* Which of the peers of a level adds up the sums of a PE's chunk of a round. */
static uint32_t chunk_adder(const struct chunks *chunks, enum chunk_level level, uint64_t round, uint32_t pe)
{
    uint32_t rows = chunks->peers[CHUNK_COLUMN].count, middle = kb_max(rows, 3) - 2;    /* rows without the first and the last */
    if (level == CHUNK_CUBE)
        return pe;
    if (level == CHUNK_COLUMN)
        return (rows > 1) + (uint32_t)((round + pe) % middle);
    return (uint32_t)((round + pe / middle) % chunks->peers[level].count);
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

/* The peers of a level have a row each: the first `count` elements of their chunk. */
static struct tl_shard chunk_rows(const struct chunks *chunks, enum chunk_level level, const struct chunk_buffer *buffer,
                                  uint64_t count)
{
    return chunks_as_rows(chunks->tl, buffer->memory, chunks->chunk, chunks->peers[level].count, count);
}

/* Begins to load this PE's chunk of a step's round from all PEs of the cube. */
static void chunks_load(struct chunks *chunks, uint64_t step)
{
    struct chunk_buffer *to = chunk_buffer(chunks, CHUNK_CUBE, step);
    if (step >= chunks->rounds)
        return;
    struct indices chunk = chunk_of(chunks, round_of(chunks, step), chunks->peers[CHUNK_CUBE].at);
    if (chunk.count)
        to->load = tl_load_rows_async(chunks->tl, chunk_rows(chunks, CHUNK_CUBE, to, chunk.count),
                                      tl_rows_part(chunks->lead->arg->in, chunk.first, chunk.count), chunks->cube);
}

/* Waits until the chunks of the peers are in their places. */
static void chunk_receive(struct chunks *chunks, enum chunk_level level, const struct chunk_buffer *to, uint64_t count)
{
    struct tl *tl = chunks->tl;
    const struct peers *peers = &chunks->peers[level];
    struct transfers receives = {.begun = 0};
    if (level == CHUNK_CUBE) {
        tl_wait(tl, to->load);
        return;
    }
    for (uint32_t i = 1; i < peers->count; i++) {
        uint32_t peer = (peers->at + peers->count - i) % peers->count;
        transfers_add(tl, &receives, tl_recv_async(tl, peer_rank(peers, peer), chunk_in(chunks, to, peer, count)));
    }
    transfers_wait(tl, &receives);
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
    chunk_receive(chunks, level, from, chunk.count);
    reduce_rows(tl, chunks->lead->arg->op, sum, chunk_rows(chunks, level, from, chunk.count));
    uint32_t adder = level == CHUNK_SIP ? next->at : chunk_adder(chunks, level + 1, round, pe);
    if (level == CHUNK_SIP)
        chunk_finish(chunks, to, chunk);
    else if (adder != next->at)
        transfers_add(tl, &to->sends, tl_send_async(tl, peer_rank(next, adder), sum));
}

/* A lead begins to receive the results of a step's round. */
static void chunks_results(struct chunks *chunks, uint64_t step)
{
    struct lead *lead = chunks->lead;
    const struct peers *cube = &chunks->peers[CHUNK_CUBE];
    if (!is_lead(lead) || step >= chunks->rounds)
        return;
    uint64_t round = round_of(chunks, step);
    for (uint32_t pe = 0; pe < cube->count; pe++) {
        struct indices both = range_common(chunk_of(chunks, round, pe), lead->share);
        uint32_t y = chunk_adder(chunks, CHUNK_COLUMN, round, pe), x = chunk_adder(chunks, CHUNK_SIP, round, pe);
        uint32_t in_sip = y * chunks->peers[CHUNK_SIP].count + x;
        uint32_t rank = (uint32_t)(lead->sip * lead->arg->levels.cubes + in_sip) * cube->count + pe;
        if (both.count && rank != tl_pe(chunks->tl))
            transfers_add(chunks->tl, &lead->results, tl_recv_async(chunks->tl, rank, lead_own(lead, 0, both)));
        lead->got += both.count;
    }
}

/* It gives its share to the owner when it has all of it. */
static void chunks_pass(struct chunks *chunks)
{
    struct lead *lead = chunks->lead;
    if (!is_lead(lead) || lead->member == lead->owner || lead->got < lead->share.count || lead->given || lead->share.count == 0)
        return;
    transfers_wait(chunks->tl, &lead->results);
    lead->given = true;
    lead_pass(lead);
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
        .cube = (const int32_t *)lead->arg->ranks.all + 2 * cube->first + cube->at,
        .peers = {*cube, {sip->first + x * sip->stride, in_row * sip->stride, sip->count / in_row, y},
                  {sip->first + y * in_row * sip->stride, sip->stride, in_row, x}, only(tl_pe(tl))}};
    for (uint32_t i = 0; i < CHUNK_LEVELS * CHUNK_BUFFERS; i++)
        chunk_buffer(&chunks, i / CHUNK_BUFFERS, i)->memory =
            tl_alloc(tl, lead->dtype, chunks.peers[i / CHUNK_BUFFERS].count * chunks.chunk);
    chunks_load(&chunks, 0);
    for (uint64_t step = 0; step < chunks.rounds + 2; step++) {
        chunk_level(&chunks, CHUNK_COLUMN, step - 1);
        chunks_results(&chunks, step - 2);
        chunks_pass(&chunks);
        chunk_level(&chunks, CHUNK_CUBE, step);
        chunks_load(&chunks, step + 1);
        chunk_level(&chunks, CHUNK_SIP, step - 1);
    }
    for (uint32_t i = 0; i < CHUNK_LEVELS * CHUNK_BUFFERS; i++) {
        struct chunk_buffer *buffer = chunk_buffer(&chunks, i / CHUNK_BUFFERS, i);
        transfers_wait(tl, &buffer->sends);
        tl_free(tl, buffer->memory);
    }
}

/* What is sent to all ranks, in the order of the vector: each owner's block of each share. */
static struct indices sender_block(const void *of, uint64_t sender)
{
    const struct lead *lead = of;
    uint32_t owners = lead->owners.count;
    return peer_block(share_of(lead, sender / owners), &lead->owners, (uint32_t)(sender % owners));
}

static uint32_t sender_rank(const void *of, uint64_t sender)
{
    const struct lead *lead = of;
    uint64_t number = sender / lead->owners.count, group = sender % lead->owners.count;
    return lead_rank(lead, share_owner(lead, number) * lead->groups + group, number);
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
    reduce_chunks(&lead, &cube, &sip);
    lead_reduce(&lead, &notices);
    notices_close(tl, &notices);

    struct spread spread;
    spread_open(&spread, tl, flattened(tl_my_shard(tl, arg->out)), &arg->ranks, arg->chunk_bytes);
    uint64_t count = (uint64_t)arg->leads * owners;
    spread_all(&spread, &(struct senders){
        .count = count, .longest = block_longest(lead.longest, owners),
        .mine = owns_block(&lead) ? lead.number * owners + lead.at : count,
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
    uint64_t rounds = kb_max(kb_ceil_div(c->n, message * l->pes), kb_min(l->cubes / 4, 2 * c->n / (message * l->pes)));
    uint64_t chunk = kb_ceil_div(c->n, rounds * l->pes), buffer = tcm_padded(chunk * size);
    uint64_t row = cubes_in_row(l->cubes), buffers = CHUNK_BUFFERS * (l->pes + row + l->cubes / row + 1) * buffer;
    buffers = kb_max(buffers, SPREAD_BATCHES * tcm_padded(message * size)) + 2 * 64;
    for (uint32_t group = kb_min(GROUP_MOST, l->cubes); group > 0; group--)
        for (uint32_t leads = group; l->sips % group == 0 && leads <= l->cubes; leads += group)
            if (tcm_padded(lead_row(c, l, group, leads) * size) + buffers <= room_bytes(c))
                return (struct lead_numbers){group, leads, chunk};
    return (struct lead_numbers){1, 0, chunk};
}

/* How long the busiest link is busy until the leads of a SIP, which have a place in their cubes, have got the sums of `bytes`: PEs of
 * these cubes load from one another, and all of the SIP send the leads what they have added up. */
static uint64_t lead_ps(struct kb_pes sip, const struct levels *l, uint32_t place, uint32_t leads, uint64_t bytes)
{
    kb_traffic traffic = kb_traffic_new();
    level_traffic(traffic, (struct kb_pes){sip.pe, leads * l->pes}, 1, l->pes, bytes / l->pes);
    for (uint32_t i = 0; i < sip.count; i++)
        for (uint32_t lead = place; lead < leads * l->pes; lead += l->pes)
            if (i != lead)
                kb_traffic_add(traffic, sip.pe[i], sip.pe[lead], bytes / leads / sip.count);
    return kb_traffic_ps(traffic);
}

/* Which PE of a cube is a lead: where results meet least of what PEs of the cube load, and of these the one that is nearest to other
 * SIPs. */
static uint32_t lead_pe(struct kb_pes pes, const struct levels *l, uint32_t leads, uint64_t bytes)
{
    struct kb_pes sip = {pes.pe, l->pes * l->cubes};
    uint64_t best_ps = UINT64_MAX;
    uint32_t best = 0, far = pes.pe[pes.count - 1];
    for (uint32_t i = 0; i < l->pes; i++) {
        uint64_t ps = lead_ps(sip, l, i, leads, bytes);
        if (ps < best_ps || (ps == best_ps && kb_latency_ps(far, pes.pe[i]) < kb_latency_ps(far, pes.pe[best])))
            best = i;
        best_ps = kb_min(best_ps, ps);
    }
    return best;
}

/* Who moves what between SIPs. */
struct lead_pes {
    struct kb_pes pes;                                  /* of each SIP, as many as there are shares */
    uint32_t place;                                     /* of each in its cube */
    uint32_t shares, group, groups, owners;             /* owners: of a share, that send it to all ranks */
    uint64_t share;                                     /* bytes */
};

/* What owners take to get blocks from all groups: more owners have shorter ones, but more messages, besides a notice of each group. */
static uint64_t blocks_ps(const struct collective *c, const struct lead_pes *leads, uint32_t owners)
{
    uint64_t others = leads->groups - 1, heads = leads->shares * (owners * others + leads->groups);
    return kb_max(kb_move_ps(leads->shares / leads->group * others * (leads->share / owners), kb_attrs.pcie_bw_bps),
                  switch_ps(c->sips, heads));
}

static struct lead_pes lead_pes_of(const struct collective *c, const struct levels *l, const struct lead_numbers *number)
{
    uint32_t shares = number->leads, count = l->sips * shares, *pe = kb_array(uint32_t, count);
    uint32_t place = shares ? lead_pe(c->pes, l, shares, c->n * c->element_bytes) : 0;
    for (uint32_t i = 0; i < count; i++)
        pe[i] = c->pes.pe[(i / shares * l->cubes + i % shares) * l->pes + place];
    struct lead_pes leads = {{pe, count}, place, shares, number->group, l->sips / number->group, 1,
                             c->n * c->element_bytes / kb_max(shares, 1)};
    if (shares == 0 || shares_short(c, shares))
        return leads;
    leads.owners = kb_min(leads.groups, 2);             /* what one owner gets would not fit into lead_row */
    for (uint32_t owners = 4; owners <= kb_min(leads.groups, OWNERS_MOST); owners *= 2)
        leads.owners = blocks_ps(c, &leads, owners) < blocks_ps(c, &leads, leads.owners) ? owners : leads.owners;
    return leads;
}

/* The lead of a share in a member of a group, from the owner on. */
static uint32_t lead_in(const struct lead_pes *leads, uint32_t at, uint32_t member, uint32_t number)
{
    uint32_t owner = number * leads->group / leads->shares, sip = (owner + member) % leads->group * leads->groups + at;
    return leads->pes.pe[sip * leads->shares + number];
}

static uint64_t lead_latency_ps(const struct lead_pes *leads)
{
    return leads->pes.count > 1 ? kb_latency_ps(leads->pes.pe[0], leads->pes.pe[leads->pes.count - 1]) : 0;
}

/* What members give the owners of shares. */
static void add_shares(kb_traffic traffic, const struct lead_pes *leads)
{
    for (uint32_t number = 0; number < leads->shares; number++)
        for (uint32_t i = leads->groups; i < leads->groups * leads->group; i++)
            kb_traffic_add(traffic, lead_in(leads, i % leads->groups, i / leads->groups, number),
                           lead_in(leads, i % leads->groups, 0, number), leads->share);
}

/* The blocks of long shares that owners get. */
static void add_blocks(kb_traffic traffic, const struct lead_pes *leads)
{
    for (uint32_t number = 0; number < leads->shares; number++)
        for (uint32_t i = 0; i < leads->groups * leads->owners; i++)
            if (i % leads->groups != i / leads->groups)
                kb_traffic_add(traffic, lead_in(leads, i % leads->groups, 0, number),
                               lead_in(leads, i / leads->groups, 0, number), leads->share / leads->owners);
}

/* What those in the later ones of `count` groups give those in the `kept` first ones. */
static void add_tree_step(kb_traffic traffic, const struct lead_pes *leads, uint32_t count, uint32_t kept)
{
    for (uint32_t number = 0; number < leads->shares; number++)
        for (uint32_t i = kept; i < count; i++)
            kb_traffic_add(traffic, lead_in(leads, i, 0, number), lead_in(leads, i - kept, 0, number), leads->share);
}

/* What the owners send to one PE: all of the vector, which takes no link twice. */
static void add_spread(kb_traffic traffic, const struct lead_pes *leads, uint32_t pe)
{
    for (uint32_t number = 0; number < leads->shares; number++)
        for (uint32_t i = 0; i < leads->owners; i++)
            if (lead_in(leads, i, 0, number) != pe)
                kb_traffic_add(traffic, lead_in(leads, i, 0, number), pe, leads->share / leads->owners);
}

static struct kb_work multicast_bound(const struct collective *c, const struct levels *l, const struct lead_pes *leads)
{
    struct kb_work bound = {.traffic = kb_traffic_new()};
    uint32_t in_row = cubes_in_row(l->cubes);
    uint64_t bytes = c->n * c->element_bytes, far_ps = lead_latency_ps(leads);
    bound.latency_ps += level_traffic(bound.traffic, c->pes, 1, l->pes, bytes / l->pes);
    bound.latency_ps += level_traffic(bound.traffic, c->pes, l->pes * in_row, l->cubes / in_row, bytes / l->pes / (l->cubes / in_row));
    bound.latency_ps += level_traffic(bound.traffic, c->pes, l->pes, in_row, bytes / l->pes / l->cubes);
    add_shares(bound.traffic, leads);
    bound.latency_ps += leads->group > 1 ? far_ps : 0;
    if (!shares_short(c, leads->shares) && leads->groups > 1) {
        add_blocks(bound.traffic, leads);
        bound.latency_ps += far_ps;
    }
    for (uint32_t count = leads->groups, kept; shares_short(c, leads->shares) && count > 1; count = kept) {
        kept = kb_ceil_div(count, 2);
        add_tree_step(bound.traffic, leads, count, kept);
    }
    for (uint64_t count = shares_short(c, leads->shares) ? leads->groups : 1; count > 1; count /= 2)   /* the longest way up the tree */
        bound.latency_ps += far_ps;
    add_spread(bound.traffic, leads, c->pes.pe[l->pes * l->cubes - 1]);
    bound.latency_ps += far_ps;
    return bound;
}

/* What the PEs of a cube take to reduce their vectors, or to give the result back: they wait for some way, and meet at their
 * memories. */
static uint64_t cube_estimate_ps(const struct collective *c, const struct levels *l)
{
    uint64_t bytes = c->n * c->element_bytes, memory_ps = kb_memory_ps(c->space, bytes, 0);
    uint64_t near_ps = level_traffic(kb_traffic_new(), c->pes, 1, l->pes, 0);
    bool far = !l->even && c->sips > 1;                 /* an uneven set counts as a cube: requests and data go to other SIPs */
    uint64_t passes_ps = far ? switch_ps(c->sips, c->p * (c->p - kb_ceil_div(c->p, c->sips))) : 0;
    return kb_max(l->pes * (command_ps() + (far ? 2 * near_ps : near_ps / 2)), passes_ps) + memory_ps + (l->pes > 1 ? memory_ps / 2 : 0);
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

/* The rounds of a SIP's reduction. In each a PE loads its chunk from all PEs of the cube, while others add up theirs. */
static uint64_t rounds_estimate_ps(const struct collective *c, const struct levels *l, const struct lead_numbers *number)
{
    uint64_t chunk = number->chunk, bytes = chunk * l->pes * c->element_bytes, adds_ps = chunk_adds_ps(c, chunk, l->pes);
    return kb_ceil_div(c->n, chunk * l->pes) * kb_max(collective_memory_ps(c, bytes, 0) + 2 * command_ps(), adds_ps);
}

/* What comes after the last one: its chunks are added up in the steps of two more, and go to the leads. */
static uint64_t results_estimate_ps(const struct collective *c, const struct levels *l, const struct lead_numbers *number)
{
    uint64_t row = cubes_in_row(l->cubes), column = l->cubes / row, chunk = number->chunk;
    return 2 * rounds_estimate_ps(c, l, number) / kb_ceil_div(c->n, chunk * l->pes) + chunk_adds_ps(c, chunk, l->pes) +
           chunk_adds_ps(c, chunk, row) + chunk_adds_ps(c, chunk, column) + CHUNK_RESULT * 3 * command_ps() +
           kb_move_ps(c->n * c->element_bytes / number->leads, kb_attrs.noc_link_bw_bps);
}

/* The vectors of a SIP are reduced; its leads pass shares on, long ones meanwhile, the first after a part of the rounds, and owners get
 * blocks of them at once; and all ranks write the vector that leads send. Messages and notices pass the switch. What is stored or
 * loaded takes three ways. */
static uint64_t multicast_estimate_ps(const struct collective *c, const struct levels *l, const struct lead_pes *leads,
                                      const struct lead_numbers *number)
{
    if (leads->pes.count == 0)
        return UINT64_MAX;
    uint64_t bytes = c->n * c->element_bytes, message = spread_message_bytes(c->chunk), far_ps = lead_latency_ps(leads);
    uint64_t rounds_ps = rounds_estimate_ps(c, l, number), ps = rounds_ps + results_estimate_ps(c, l, number);
    uint64_t all = leads->groups * leads->shares, group = leads->group;
    bool tree = shares_short(c, leads->shares);
    if (group > 1) {
        kb_traffic traffic = kb_traffic_new();
        uint64_t heads = all * (group - 1) * (tree ? kb_ceil_div(leads->share, message) : 1) + (tree ? 0 : 2 * l->sips);
        add_shares(traffic, leads);
        uint64_t moves_ps = kb_max(kb_traffic_ps(traffic), switch_ps(l->sips, heads));
        uint64_t first_ps = ps - rounds_ps / group * (group - 1) + moves_ps, last_ps = ps - rounds_ps / group + moves_ps / (group - 1);
        ps = tree ? ps + far_ps + moves_ps : kb_max(ps, kb_max(first_ps, last_ps) + 3 * far_ps);
    }
    if (!tree && leads->groups > 1)
        ps += (leads->share <= message * leads->owners ? 1 : 3) * far_ps + blocks_ps(c, leads, leads->owners);
    for (uint32_t count = leads->groups, kept; tree && count > 1; count = kept) {
        kept = kb_ceil_div(count, 2);
        ps += far_ps + kb_max(kb_move_ps(leads->share, kb_attrs.pcie_bw_bps),
                              switch_ps(l->sips, (uint64_t)leads->shares * (count - kept) * kb_ceil_div(leads->share, message)));
    }
    kb_traffic spread = kb_traffic_new();
    add_spread(spread, leads, c->pes.pe[l->pes * l->cubes - 1]);
    uint64_t senders = (uint64_t)leads->shares * leads->owners;
    uint64_t messages = senders * kb_ceil_div(bytes / senders, c->chunk);
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
    bool known = levels.even || c.sips == 1;            /* which messages pass the switch */
    struct collective ring = with_shorter_messages(&c, block_longest(c.n, c.p));
    struct lead_pes leads = lead_pes_of(&c, &levels, &number);
    struct kb_work bound[ALGORITHMS] = {
        [RING] = ring_bound(c.pes, c.order, sent_bytes, 2),
        [IN_LEVELS] = levels_bound(c.pes, &levels, bytes), [WINDOWS] = windows_bound(c.pes, &levels, bytes)};
    if (number.leads)
        bound[MULTICAST] = multicast_bound(&c, &levels, &leads);
    enum algorithm algorithm = algorithm_used(algorithm_names, ALGORITHMS, (const uint64_t[]){
        [RING] = ring.chunk ? ring_estimate_ps(&ring, &bound[RING], 2) : UINT64_MAX,
        [IN_LEVELS] = fits ? levels_estimate_ps(&c, &levels) : UINT64_MAX,
        [MULTICAST] = known ? multicast_estimate_ps(&c, &levels, &leads, &number) : UINT64_MAX,
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
    struct all_reduce_args args = {in, out, c.order, c.op, c.chunk, levels, spread_ranks(levels, leads.place), NULL, number.leads,
                                   number.group, leads.owners, windows, number.chunk, kb_has_data()};
    if (algorithm == MULTICAST)
        args.lead = kb_tensor_new("lead", c.dtype,
                                  kb_2d(leads.pes.count, lead_row(&c, &levels, number.group, number.leads)),
                                  kb_rows(KB_TCM, leads.pes));
    kb_future launch = launch_of(algorithm, c.pes, &args);
    kb_wait(launch);

    bound[algorithm].memory_ps = kb_memory_ps(c.space, bytes, bytes);
    collective_report(launch, &c, in, out, bytes, 2 * (c.p - 1), c.p, &bound[algorithm]);
    kb_expect_close(out, kb_ref_reduce(in, c.op));
}
