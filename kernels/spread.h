/* spread.h: a vector for all ranks, whose parts some of them send. A message goes to one PE of every cube, its lead, at once,
 * and each of these passes it on to the other PEs of its cube at once. Every rank stores all of the vector.
 *
 * Messages have one order, which all ranks know, and a rank sends or passes on a message before it waits for one that comes
 * later. So a full ring always has a receiver that goes on. */
#ifndef SPREAD_H
#define SPREAD_H

#include "levels.h"

/* A batch is what is stored together: messages of neighbouring elements. One is filled, some are awaited, so that senders are ahead
 * of what has come, and one is stored. */
enum { SPREAD_MESSAGES = 4, SPREAD_AWAITED = 2, SPREAD_BATCHES = SPREAD_AWAITED + 2 };

struct spread {
    struct tl *tl;
    struct tl_shard out;                                /* this rank's copy of the vector */
    uint32_t lead, leads, peers;                        /* that of this cube; cubes; other ranks of this one */
    const uint32_t *other_leads, *cube_peers;           /* those of the other cubes; the other ranks of this one */
    uint64_t message, turn, room;                       /* elements of the longest message, of what a rank sends before the
                                                           next one does, and of a batch */
    struct spread_batch {
        struct tl_shard memory;
        struct indices range;
        struct indices part[SPREAD_MESSAGES];           /* of the vector, by message */
        tl_handle recv[SPREAD_MESSAGES], store;         /* recv: NULL: this rank has sent it */
        uint32_t messages;
        struct transfers sends;
    } batch[SPREAD_BATCHES];
    uint32_t filled;                                    /* batches so far */
};

/* The bytes of the longest message: those of a chunk, or a sixteenth of the TCM. */
static inline uint64_t spread_message_bytes(uint64_t chunk_bytes)
{
    return kb_min(chunk_bytes, kb_min(pipeline_message_bytes(), tcm_allocatable_bytes() / 16));
}

/* Its elements: the same on every PE. Fails with KERNEL_ERROR if it holds none. */
static inline uint64_t spread_longest(struct tl *tl, enum kb_dtype dtype, uint64_t chunk_bytes)
{
    uint64_t bytes = spread_message_bytes(chunk_bytes);
    if (bytes < kb_dtype_bytes(dtype))
        tl_fail(tl, 1, "a message of %llu bytes holds no element", (unsigned long long)bytes);
    return bytes / kb_dtype_bytes(dtype);
}

/* The ranks of a spread, from the host: which PE of a cube is its lead; the ranks of each cube, and the leads of all cubes, twice
 * each: what comes after one of them are all others. */
struct spread_ranks {
    struct levels levels;
    uint32_t lead;
    const uint32_t *all, *leads;
};

/* The rank that gets messages for a cube. */
static inline uint32_t spread_lead(const struct spread_ranks *ranks, uint32_t cube)
{
    return cube * ranks->levels.pes + ranks->lead;
}

/* Opens a spread into `out`. Messages have at most chunk_bytes. */
static inline void spread_open(struct spread *spread, struct tl *tl, struct tl_shard out,
                               const struct spread_ranks *ranks, uint64_t chunk_bytes)
{
    uint64_t size = kb_dtype_bytes(out.dtype), message = spread_longest(tl, out.dtype, chunk_bytes);
    uint32_t cube = tl_pe(tl) / ranks->levels.pes, pes = ranks->levels.pes;
    *spread = (struct spread){
        .tl = tl, .out = out, .message = message,
        .turn = message * kb_min(tl_slots(tl), SPREAD_MESSAGES), .lead = spread_lead(ranks, cube), .leads = ranks->levels.cubes * ranks->levels.sips,
        .peers = pes - 1, .other_leads = ranks->leads + cube + 1, .cube_peers = ranks->all + 2 * cube * pes + ranks->lead + 1};
    uint64_t room = tl_room_bytes(tl) / SPREAD_BATCHES, fit = (room > 64 ? room - 64 : 0) / size / message;
    spread->room = kb_clamp(fit, 1, SPREAD_MESSAGES) * message;
    for (uint32_t i = 0; i < SPREAD_BATCHES; i++)
        spread->batch[i].memory = tl_alloc(tl, out.dtype, spread->room);
}

static inline bool spread_leads(const struct spread *spread)
{
    return tl_pe(spread->tl) == spread->lead;
}

static inline struct tl_shard spread_part(struct spread *spread, struct spread_batch *batch, struct indices part)
{
    return tl_part(spread->tl, batch->memory, 0, part.first - batch->range.first, part.count);
}

/* Waits for the messages of a batch, passes them on, and begins to store them. */
static inline void spread_store(struct spread *spread, struct spread_batch *batch)
{
    struct tl *tl = spread->tl;
    for (uint32_t i = 0; i < batch->messages; i++) {
        if (batch->recv[i])
            tl_wait(tl, batch->recv[i]);
        if (tl_pe(tl) == spread->lead && spread->peers)
            transfers_add(tl, &batch->sends, tl_multicast_async(tl, spread->cube_peers, spread->peers,
                                                                spread_part(spread, batch, batch->part[i])));
    }
    if (batch->messages)
        batch->store = tl_store_async(tl, subrange(tl, spread->out, batch->range),
                                      spread_part(spread, batch, batch->range));
    batch->messages = 0;
}

/* Waits until a batch can be filled again. */
static inline void spread_free(struct spread *spread, struct spread_batch *batch)
{
    if (batch->store)
        tl_wait(spread->tl, batch->store);
    batch->store = NULL;
    transfers_wait(spread->tl, &batch->sends);
}

/* The buffer of the next message of all, the elements `range`. */
static inline struct tl_shard spread_buffer(struct spread *spread, struct indices range)
{
    struct spread_batch *batch = &spread->batch[spread->filled % SPREAD_BATCHES];
    bool fits = batch->messages < SPREAD_MESSAGES && batch->range.first + batch->range.count == range.first &&
                batch->range.count + range.count <= spread->room;
    if (batch->messages && !fits) {
        spread_store(spread, &spread->batch[(spread->filled + SPREAD_BATCHES - SPREAD_AWAITED) % SPREAD_BATCHES]);
        batch = &spread->batch[++spread->filled % SPREAD_BATCHES];
    }
    if (batch->messages == 0) {
        spread_free(spread, batch);
        batch->range = (struct indices){range.first, 0};
    }
    batch->recv[batch->messages] = NULL;
    batch->part[batch->messages++] = range;
    batch->range.count += range.count;
    return spread_part(spread, batch, range);
}

/* Sends the buffer of the next message to all other ranks. */
static inline void spread_send(struct spread *spread, struct tl_shard buffer)
{
    struct spread_batch *batch = &spread->batch[spread->filled % SPREAD_BATCHES];
    if (spread->leads > 1)
        transfers_add(spread->tl, &batch->sends,
                      tl_multicast_async(spread->tl, spread->other_leads, spread->leads - 1, buffer));
}

/* Receives the next message, which the lead `from` of a cube sends. */
static inline void spread_receive(struct spread *spread, struct tl_shard buffer, uint32_t from)
{
    struct spread_batch *batch = &spread->batch[spread->filled % SPREAD_BATCHES];
    batch->recv[batch->messages - 1] =
        tl_recv_async(spread->tl, tl_pe(spread->tl) == spread->lead ? from : spread->lead, buffer);
}

/* All messages so far are stored on return. */
static inline void spread_drain(struct spread *spread)
{
    for (uint32_t i = 1; i <= SPREAD_BATCHES; i++)
        spread_store(spread, &spread->batch[(spread->filled + i) % SPREAD_BATCHES]);
    for (uint32_t i = 0; i < SPREAD_BATCHES; i++)
        spread_free(spread, &spread->batch[i]);
}

/* Who sends which part of the vector. */
struct senders {
    uint64_t count, longest;                            /* longest: elements of a part, at most */
    uint64_t mine;                                      /* the number of the one in this cube; count: there is none */
    bool in_turn;                                       /* it sends when its turn comes, instead of at once */
    struct indices (*part)(const void *of, uint64_t sender);
    uint32_t (*rank)(const void *of, uint64_t sender);  /* the lead of its cube */
    void (*load)(struct tl *tl, const void *of, struct tl_shard buffer, struct indices range);
    const void *of;                                     /* what these three are given */
};

/* Stores all of the vector. The senders take turns, in each of which one sends as many messages as there are slots. A rank begins
 * with the sender in its own cube, unless senders send in_turn. `load` is called on senders, for parts of their own. */
static inline void spread_all(struct spread *spread, const struct senders *senders)
{
    for (uint64_t base = 0; base < senders->longest; base += spread->turn)
        for (uint64_t i = 0; i <= senders->count; i++) {
            uint64_t first = senders->in_turn ? senders->count : senders->mine, at = i == 0 ? first : i - 1;
            if (at == senders->count || (i > 0 && at == first))
                continue;
            struct indices turn = range_window(senders->part(senders->of, at), base, spread->turn);
            uint32_t rank = senders->rank(senders->of, at);
            for (uint64_t done = 0; done < turn.count; done += spread->message) {
                struct indices range = range_window(turn, done, spread->message);
                struct tl_shard buffer = spread_buffer(spread, range);
                if (rank == tl_pe(spread->tl)) {
                    senders->load(spread->tl, senders->of, buffer, range);
                    spread_send(spread, buffer);
                } else {
                    spread_receive(spread, buffer, rank);
                }
            }
        }
    spread_drain(spread);
}

/* ---- in benches */

static inline struct spread_ranks spread_ranks(struct levels levels, uint32_t lead)
{
    uint32_t cubes = levels.cubes * levels.sips, *leads = kb_array(uint32_t, 2 * cubes);
    for (uint32_t i = 0; i < 2 * cubes; i++)
        leads[i] = i % cubes * levels.pes + lead;
    return (struct spread_ranks){levels, lead, cube_ranks(&levels), leads};
}

#endif
