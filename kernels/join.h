/* join.h: rows of results that many PEs have, joined by messages: each PE gets a part of what they make together.
 *
 * It goes in steps. Neighbours, a few at a time, share out the columns, and each gets from the others what they have of
 * its share; then it does the same with those of other groups that have the same share. Every PE sends about as many
 * bytes as a row has, and waits for the latency of a message once a step. */
#ifndef JOIN_H
#define JOIN_H

#include "collective.h"
#include "moves.h"
#include "reduce.h"

/* The PEs that have rows, in the order of their rows. */
struct ranks {
    uint64_t count, at;                                 /* at: this PE's place */
    uint64_t pes, rows;                                 /* of the launch, of x */
};

static inline struct ranks ranks_of(struct tl *tl, struct tl_shard x, uint64_t rows)
{
    uint64_t pes = tl_num_pes(tl);
    return rows < pes ? (struct ranks){rows, x.first[0], pes, rows} : (struct ranks){pes, tl_pe(tl), pes, rows};
}

/* With fewer rows than PEs, row i lies with the last PE whose shard does not begin behind it. */
static inline uint32_t pe_of(const struct ranks *ranks, uint64_t at)
{
    return (uint32_t)(ranks->rows < ranks->pes ? block_with(ranks->rows, ranks->pes, at) : at);
}

/* How many ranks exchange in a step, where so many are still to be joined: a few, for a PE takes in one message at a
 * time; not two, for each step costs a message's latency. */
static inline uint64_t radix_of(uint64_t ranks)
{
    uint64_t radix = ranks < 4 ? ranks : 4;
    while (ranks % radix != 0)
        radix++;
    return radix;
}

/* Ranks that exchange: `count`, which are `step` apart; this PE is number `self` among them. */
struct party {
    uint64_t step, count, self;
};

static inline uint32_t member(const struct ranks *ranks, const struct party *party, uint64_t i)
{
    return pe_of(ranks, ranks->at + i * party->step - party->self * party->step);
}

static inline struct tl_shard share(struct tl *tl, const struct party *party, struct tl_shard row, uint64_t i)
{
    struct span cols = block_of(row.shape[1], party->count, i);
    if (cols.count)
        return tl_part(tl, row, 1, cols.first, cols.count);
    row.shape[1] = 0;
    return row;
}

/* Message i of a share; of a shape of 0 there: there are no more. */
static inline struct tl_shard message(struct tl *tl, struct tl_shard share, uint64_t i)
{
    uint64_t longest = tl_slot_bytes(tl) / kb_dtype_bytes(share.dtype), first = i * longest, n = share.shape[1];
    if (first < n)
        return tl_part(tl, share, 1, first, kb_clamp(n - first, 1, longest));
    share.shape[1] = 0;
    return share;
}

/* Sends the others their shares of a row of results: of no more messages each than a ring has slots, so that none of
 * them waits for its receiver, who still sends as well. */
static inline void send_shares(struct tl *tl, const struct ranks *ranks, const struct party *party, struct tl_shard row)
{
    struct moves sent = {.begun = 0};
    for (uint64_t i = 1; i < party->count; i++) {
        uint64_t to = (party->self + i) % party->count;
        struct tl_shard whole = share(tl, party, row, to), part;
        for (uint64_t k = 0; (part = message(tl, whole, k)).shape[1] > 0; k++)
            moves_add(tl, &sent, tl_send_async(tl, member(ranks, party, to), part));
    }
    moves_wait(tl, &sent);
}

/* Receives this PE's share of the others' results, and joins it to its own. */
static inline void join_shares(struct tl *tl, const struct ranks *ranks, const struct party *party,
                               const struct reduction *reduction, struct tl_shard own)
{
    struct tl_shard all = tl_alloc(tl, own.dtype, party->count, own.shape[1]), part;
    tl_handle copied = tl_copy_async(tl, tl_part(tl, all, 0, party->self, 1), own);
    for (uint64_t i = 1; i < party->count; i++) {
        uint64_t from = (party->self + party->count - i) % party->count;
        for (uint64_t k = 0; (part = message(tl, tl_part(tl, all, 0, from, 1), k)).shape[1] > 0; k++)
            tl_recv(tl, member(ranks, party, from), part);
    }
    tl_wait(tl, copied);
    reduce_along(tl, reduction, own, all, 0);
    tl_free(tl, all);
}

/* Joins all PEs' rows of results; this PE gets the part of the whole that it returns: of a shape of 0 there, none. */
static inline struct tl_shard join(struct tl *tl, const struct ranks *ranks, const struct reduction *reduction,
                            struct tl_shard row)
{
    struct party party = {.step = 1};
    for (; party.step < ranks->count; party.step *= party.count) {
        party.count = radix_of(ranks->count / party.step);
        party.self = ranks->at / party.step % party.count;
        send_shares(tl, ranks, &party, row);
        row = share(tl, &party, row, party.self);
        if (row.shape[1] == 0)
            break;
        join_shares(tl, ranks, &party, reduction, row);
    }
    return row;
}

#endif
