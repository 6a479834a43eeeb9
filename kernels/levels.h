/* levels.h: collectives that know the machine: the PEs of a cube, the cubes of a SIP, the SIPs, one level after the
 * other; transfers of large pieces straight from and to the memories of other PEs; and a barrier in levels.
 *
 * A message of tl_send has at most a slot, and each pays for every node on its way; between SIPs all of them pass one
 * switch. A load or store of another PE's memory is one message of any length. So data that are long move in pieces as
 * large as the TCM allows, and short messages only say that something is ready. */
#ifndef LEVELS_H
#define LEVELS_H

#include "collective.h"
#include "transfers.h"

/* ---- the levels of a launch, from the host */

/* The launch has `sips` SIPs with `cubes` cubes each, and those have `pes` PEs each: rank (s * cubes + c) * pes + j is
 * PE j of cube c of SIP s. A set of PEs that is not so even is one level: `pes` is their number, and even is false. */
struct levels {
    uint32_t pes, cubes, sips;
    bool even;
};

/* How many PEs a cube and a SIP of the machine have. */
static inline struct levels levels_of_machine(void)
{
    uint32_t all = kb_machine_pes("*").count, sip = kb_machine_pes("sip0.*").count;
    uint32_t cube = kb_machine_pes("sip0.cube0.*").count;
    return (struct levels){cube, sip / cube, all / sip, true};
}

/* The number of PEs from one on that are in the same group of `size` PEs of the machine. */
static inline uint32_t levels_run(struct kb_pes pes, uint32_t from, uint32_t size)
{
    uint32_t count = 0;
    while (from + count < pes.count && pes.pe[from + count] / size == pes.pe[from] / size)
        count++;
    return count;
}

static inline struct levels levels_of(struct kb_pes pes)
{
    struct levels machine = levels_of_machine();
    uint32_t cube = levels_run(pes, 0, machine.pes), sip = levels_run(pes, 0, machine.pes * machine.cubes);
    struct levels levels = {cube, sip / cube, pes.count / sip, sip % cube == 0 && pes.count % sip == 0};
    for (uint32_t i = 0; levels.even && i < pes.count; i += cube)
        levels.even = levels_run(pes, i, machine.pes) == cube;
    for (uint32_t i = 0; levels.even && i < pes.count; i += sip)
        levels.even = levels_run(pes, i, machine.pes * machine.cubes) == sip;
    return levels.even ? levels : (struct levels){pes.count, 1, 1, false};
}

/* `count` ranks: first, first + stride and so on. This PE is the one of index `at`. */
struct peers {
    uint32_t first, stride, count, at;
};

enum level { LEVEL_CUBE, LEVEL_SIP, LEVEL_SYSTEM, LEVELS };

/* The peers of this PE on a level: the PEs of its cube; those with its number in the cubes of its SIP; those with its
 * number and its cube's in all SIPs. */
static inline struct peers level_peers(struct tl *tl, const struct levels *levels, enum level level)
{
    uint32_t stride = level == LEVEL_CUBE ? 1 : level == LEVEL_SIP ? levels->pes : levels->pes * levels->cubes;
    uint32_t count = level == LEVEL_CUBE ? levels->pes : level == LEVEL_SIP ? levels->cubes : levels->sips;
    uint32_t at = tl_pe(tl) / stride % count;
    return (struct peers){tl_pe(tl) - at * stride, stride, count, at};
}

static inline uint32_t peer_rank(const struct peers *peers, uint64_t i)
{
    return peers->first + (uint32_t)(i % peers->count) * peers->stride;
}

/* ---- short messages: what was done before a notice has happened for who awaits it */

/* The buffers of notices, allocated once by a kernel. */
struct notices {
    struct tl_shard out, in;
};

static inline struct notices notices_open(struct tl *tl)
{
    return (struct notices){tl_alloc(tl, KB_u8, 1), tl_alloc(tl, KB_u8, 1)};
}

static inline void notices_close(struct tl *tl, struct notices *notices)
{
    tl_free(tl, notices->in);
    tl_free(tl, notices->out);
}

static inline void notify(struct tl *tl, struct notices *notices, uint32_t rank)
{
    tl_send(tl, rank, notices->out);
}

static inline void await_notice(struct tl *tl, struct notices *notices, uint32_t rank)
{
    tl_recv(tl, rank, notices->in);
}

/* A dissemination barrier of peers. */
static inline void peers_barrier(struct tl *tl, struct notices *notices, const struct peers *peers)
{
    for (uint32_t distance = 1; distance < peers->count; distance *= 2) {
        notify(tl, notices, peer_rank(peers, peers->at + distance));
        await_notice(tl, notices, peer_rank(peers, peers->at + peers->count - distance % peers->count));
    }
}

enum { LEVELS_FAN = 16 };                               /* the most peers that one of them waits for in a row */

/* Who a peer waits for and notifies in a tree, in which each has LEVELS_FAN children at most. */
static inline void peers_gather(struct tl *tl, struct notices *notices, const struct peers *peers)
{
    uint64_t first = (uint64_t)peers->at * LEVELS_FAN + 1;
    for (uint64_t i = first; i < first + LEVELS_FAN && i < peers->count; i++)
        await_notice(tl, notices, peer_rank(peers, i));
    if (peers->at > 0)
        notify(tl, notices, peer_rank(peers, (peers->at - 1) / LEVELS_FAN));
}

static inline void peers_release(struct tl *tl, struct notices *notices, const struct peers *peers)
{
    uint64_t first = (uint64_t)peers->at * LEVELS_FAN + 1;
    if (peers->at > 0)
        await_notice(tl, notices, peer_rank(peers, (peers->at - 1) / LEVELS_FAN));
    for (uint64_t i = first; i < first + LEVELS_FAN && i < peers->count; i++)
        notify(tl, notices, peer_rank(peers, i));
}

/* A barrier of all ranks: the first PE of each cube gathers its cube, the first of each SIP those, the first of all the
 * SIPs, and each releases whom it has waited for. */
static inline void levels_barrier(struct tl *tl, struct notices *notices, const struct levels *levels)
{
    struct peers peers[LEVELS];
    uint32_t levels_of_mine = 1;
    for (enum level level = LEVEL_CUBE; level < LEVELS; level++)
        peers[level] = level_peers(tl, levels, level);
    while (levels_of_mine < LEVELS && peers[levels_of_mine - 1].at == 0)
        levels_of_mine++;
    for (uint32_t level = 0; level < levels_of_mine; level++)
        peers_gather(tl, notices, &peers[level]);
    for (uint32_t level = levels_of_mine; level-- > 0;)
        peers_release(tl, notices, &peers[level]);
}

/* ---- large pieces */

/* Elements from `from` on of the shards of some peers: the one with index `at` comes first, and the first `skip` are
 * left out. */
struct span {
    kb_tensor tensor;
    struct peers peers;                                 /* numbers of shards */
    uint64_t from;
    uint32_t skip;
};

/* One shard. */
static inline struct peers only(uint32_t shard)
{
    return (struct peers){shard, 1, 1, 0};
}

static inline struct tl_shard span_piece(struct tl *tl, const struct span *span, uint32_t i, struct indices piece)
{
    struct tl_shard shard = flattened(tl_shard(tl, span->tensor, peer_rank(&span->peers, span->peers.at + span->skip + i)));
    return tl_part(tl, shard, 0, span->from + piece.first, piece.count);
}

enum { MOVER_BUFFERS = 3, MOVER_LEAST_BYTES = 1 << 17 };

/* Buffers of the TCM through which pieces move: each is loaded, reduced or not, and stored, while others are. */
struct mover {
    struct tl *tl;
    const char *op;                                     /* of tl_math; NULL: no reductions */
    uint64_t piece, least;                              /* elements of a buffer, and of a piece that is not cut */
    uint32_t buffers;
    struct mover_buffer {
        struct tl_shard memory;
        bool taken;                                     /* a piece is loaded into it, or the sum so far */
        tl_handle math;                                 /* reads it */
        struct transfers stores;
    } buffer[MOVER_BUFFERS];
    struct mover_load {                                 /* in the order in which they were begun */
        tl_handle load;
        uint32_t buffer, sum;                           /* the buffer of what it is added to; its own: it is the first */
        struct indices piece;
        bool last;                                      /* of what is added up */
        struct span to;
    } load[MOVER_BUFFERS];
    uint32_t begun, ended;
};

/* Opens a mover, with buffers in most of what the TCM has room for. Fails with KERNEL_ERROR if that is not two
 * elements. */
static inline void mover_open(struct mover *mover, struct tl *tl, enum kb_dtype dtype, const char *op)
{
    uint64_t size = kb_dtype_bytes(dtype), room = tl_room_bytes(tl) / MOVER_BUFFERS;
    *mover = (struct mover){.tl = tl, .op = op, .buffers = MOVER_BUFFERS};
    mover->piece = (room > 64 ? room - 64 : 0) / size;
    mover->least = kb_min(mover->piece, MOVER_LEAST_BYTES / size);
    for (uint32_t i = 0; i < mover->buffers; i++)
        mover->buffer[i].memory = tl_alloc(tl, dtype, mover->piece);
}

static inline void mover_close(struct mover *mover)
{
    for (uint32_t i = 0; i < mover->buffers; i++)
        tl_free(mover->tl, mover->buffer[i].memory);
}

/* Waits for the oldest load, and adds its piece to the sum; if it is the last one, stores the sum. */
static inline void mover_step(struct mover *mover)
{
    struct tl *tl = mover->tl;
    struct mover_load *load = &mover->load[mover->ended++ % MOVER_BUFFERS];
    struct mover_buffer *from = &mover->buffer[load->buffer], *sum = &mover->buffer[load->sum];
    struct tl_shard added = tl_part(tl, sum->memory, 0, 0, load->piece.count);
    tl_wait(tl, load->load);
    if (from != sum) {
        if (sum->math)
            tl_after(tl, sum->math);
        from->math = sum->math = tl_math_async(tl, mover->op, added,
                                               tl_part(tl, from->memory, 0, 0, load->piece.count), added);
        from->taken = false;
    }
    if (!load->last)
        return;
    if (sum->math)
        tl_wait(tl, sum->math);
    for (uint32_t i = 0; i + load->to.skip < load->to.peers.count; i++)
        transfers_add(tl, &sum->stores, tl_store_async(tl, span_piece(tl, &load->to, i, load->piece), added));
    sum->taken = false;
}

/* Takes a buffer that nothing uses; they take turns. */
static inline uint32_t mover_take(struct mover *mover)
{
    static const uint32_t none = MOVER_BUFFERS;
    for (;;) {
        uint32_t found = none;
        for (uint32_t i = 0; i < mover->buffers && found == none; i++)
            found = mover->buffer[(mover->begun + i) % mover->buffers].taken ? none
                                                                           : (mover->begun + i) % mover->buffers;
        if (found != none) {
            struct mover_buffer *buffer = &mover->buffer[found];
            if (buffer->math)
                tl_wait(mover->tl, buffer->math);
            transfers_wait(mover->tl, &buffer->stores);
            buffer->math = NULL;
            buffer->taken = true;
            return found;
        }
        mover_step(mover);
    }
}

/* Reduces `count` elements of all shards of `from`, and stores the result in all shards of `to`, in as few pieces as
 * possible or in `pieces` if they are not too short. The last pieces are under way on return. */
static inline void mover_push(struct mover *mover, struct span from, struct span to, uint64_t count, uint64_t pieces)
{
    uint64_t most = kb_min(mover->piece, kb_max(mover->least, kb_ceil_div(count, pieces)));
    most = kb_ceil_div(count, kb_max(kb_ceil_div(count, kb_max(most, 1)), 1));
    for (uint64_t base = 0; base < count; base += most) {
        struct indices piece = {base, kb_min(most, count - base)};
        uint32_t sum = MOVER_BUFFERS;
        for (uint32_t i = 0; i < from.peers.count; i++) {
            uint32_t buffer = mover_take(mover);
            if (mover->begun - mover->ended == mover->buffers - 1)
                mover_step(mover);
            sum = i ? sum : buffer;
            struct tl_shard memory = tl_part(mover->tl, mover->buffer[buffer].memory, 0, 0, piece.count);
            mover->load[mover->begun++ % MOVER_BUFFERS] = (struct mover_load){
                tl_load_async(mover->tl, memory, span_piece(mover->tl, &from, i, piece)), buffer, sum, piece,
                i + 1 == from.peers.count, to};
        }
    }
}

/* All that was pushed is stored on return. */
static inline void mover_drain(struct mover *mover)
{
    while (mover->ended < mover->begun)
        mover_step(mover);
    for (uint32_t i = 0; i < mover->buffers; i++)
        transfers_wait(mover->tl, &mover->buffer[i].stores);
}

/* ---- in benches */

/* The ranks of each cube, twice: what comes after one of them are all others. */
static inline const uint32_t *cube_ranks(const struct levels *levels)
{
    uint32_t pes = levels->pes, count = 2 * pes * levels->cubes * levels->sips, *ranks = kb_array(uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = i / (2 * pes) * pes + i % pes;
    return ranks;
}

/* What notices and a mover need of a TCM at least: two notices, and a piece of 64 bytes in each buffer of the mover, with as much
 * in between. */
enum { MOVER_LEAST_ROOM = 2 * 64 + MOVER_BUFFERS * 2 * 64 };

/* The messages of a level: each PE exchanges `bytes` in all with each of its peers, there and back. Returns the longest
 * way. */
static inline uint64_t level_traffic(kb_traffic traffic, struct kb_pes pes, uint32_t stride, uint32_t count, uint64_t bytes)
{
    uint64_t longest_ps = 0;
    for (uint32_t i = 0; i < pes.count; i++) {
        uint32_t at = i / stride % count, first = i - at * stride;
        for (uint32_t j = 0; j < count; j++) {
            if (j == at)
                continue;
            kb_traffic_add(traffic, pes.pe[first + j * stride], pes.pe[i], bytes);
            if (i < stride * count)
                longest_ps = kb_max(longest_ps, kb_latency_ps(pes.pe[first + j * stride], pes.pe[i]));
        }
    }
    return longest_ps;
}

#endif
