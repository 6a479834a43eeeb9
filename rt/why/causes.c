/* causes.c: what made each event due, from the moments of the machine. */
#include "causes.h"

#include <stdlib.h>
#include <string.h>

#include "base/rates.h"
#include "common/array.h"
#include "common/hash.h"
#include "launch/kernel.h"
#include "machine/emitted.h"
#include "machine/fabric.h"
#include "machine/payload.h"
#include "machine/peers.h"
#include "machine/service.h"
#include "machine/tile.h"
#include "machine/tile_buffers.h"
#include "accounts.h"
#include "engines.h"
#include "sites.h"
#include "sums.h"

static const struct subject nobody = {.tile = NO_TILE, .stage = NO_STAGE};

/* ---- what made an event due: its note, which is for its observer to change */

enum {
    EDGE_MASK = (1 << EDGE_BITS) - 1,                   /* of a note's edge; beside it are */
    NOTE_FEEDS = 1 << 8,                                /* this if the event ends the feed of a tile, as tile_fed has said; */
    NOTE_FLIES = 1 << 9,                                /* this if a head has gone on since the end of the item without
                                                           waiting for anything, */
    WIRES_SHIFT = 16                                    /* and how many ps of that are wires */
};

static void note(const struct event *event, struct ref ref)
{
    memcpy(&((struct event *)event)->note, &ref, sizeof ref);
}

static inline struct ref noted(const struct event *event)
{
    struct ref ref;
    memcpy(&ref, &event->note, sizeof ref);
    return ref;
}

_Static_assert(sizeof(struct ref) == sizeof((struct event){0}.note), "a note is a ref");

/* ---- a table by address: what tokens, commands and rings wait for */

/* What an entry is about, in the lowest bits of its key. */
enum about { ABOUT_ARRIVAL, ABOUT_PARTS, ABOUT_RING, ABOUT_READ, ABOUT_REQUEST, ABOUT_MASK = 7 };

struct entry {
    uintptr_t key;                                      /* 0: free */
    uint64_t t_ps;                                      /* when it became so; of parts: the latest end; of a read: how long
                                                           the pseudo channel that ends last starts after the first, */
    uint64_t tick;                                      /* and how long it then changes rows */
    struct ref ref;                                     /* of a read: what held that channel before; item 0: nothing */
};

static struct {
    struct entry *at;
    size_t count;
    unsigned bits;
} table;

enum { FIRST_BITS = 12 };

static struct entry *entry_place(uintptr_t key)
{
    uint32_t mask = (UINT32_C(1) << table.bits) - 1, i = hash_bits(key, table.bits);
    while (table.at[i].key && table.at[i].key != key)
        i = (i + 1) & mask;
    return &table.at[i];
}

__attribute__((cold)) static void table_grow(void)
{
    struct entry *old = table.at;
    size_t room = (size_t)1 << table.bits;
    table.bits++;
    table.at = array_zeros((size_t)1 << table.bits, sizeof *table.at);
    for (size_t i = 0; i < room; i++)
        if (old[i].key)
            *entry_place(old[i].key) = old[i];
    array_freed(old);
}

static uintptr_t key_of(const void *thing, enum about about)
{
    return (uintptr_t)thing | about;
}

__attribute__((noinline)) static struct entry *entry_new(uintptr_t key)
{
    if (2 * ++table.count >> table.bits)
        table_grow();
    struct entry *entry = entry_place(key);
    entry->key = key;
    return entry;
}

/* The entry of a key, which is new if there was none. It stays where it is until another one is asked for. */
static inline struct entry *entry_of(uintptr_t key)
{
    struct entry *entry = entry_place(key);
    return entry->key ? entry : entry_new(key);
}

/* ---- conditions of starts */

/* When a condition became true for the last time, and what made it so. It is of use in that instant only: whatever waited
 * for it alone starts in it. */
struct condition {
    uint64_t t_ps, tick;                                /* tick: counts them; 0: it never did */
    struct ref ref;
};

/* Things of which several are alike: slots, engines of a stage, credits. A start takes the one that has been free for
 * longest, so with `room` of them the start number room + n takes the one that was freed as number n. Only those that became
 * free in this instant can be a cause. */
struct conditions ARRAY(struct condition);

struct fifo {
    uint64_t taken, freed;                              /* how often one was */
    uint64_t count;                                     /* of those freed last, all in one instant: */
    struct condition first;                             /* mostly there is only this one */
    struct conditions others;
};

static const struct condition never;

static struct condition fifo_take(struct fifo *fifo, uint64_t room)
{
    uint64_t taken = fifo->taken++, first = room + fifo->freed - fifo->count;
    if (taken < first || taken - first >= fifo->count)
        return never;
    return taken == first ? fifo->first : fifo->others.at[taken - first - 1];
}

static struct ref over(struct ref ref, enum edge edge)
{
    if (edge != EDGE_direct)
        ref.edge = edge;
    return ref;
}

/* ---- holders of resources */

struct holder {
    uint64_t free_ps;
    uint32_t item;
};

static struct holder *holders[RESOURCE_KINDS];

/* Of a node, a link or a pseudo channel: the item of what it serves is made when something waits for it, which is rare. */
struct late_holder {
    uint64_t free_ps;
    uint64_t first_end_ps;                              /* of what comes before the work itself: row changes of a pseudo
                                                           channel; the node that hands a head on to a link. 0: nothing */
    struct ref start;                                   /* what led to its start, maybe with NOTE_FLIES */
    struct subject who;
    const struct step *step;                            /* of a head that a node or that node handles: the next one */
    uint32_t item;                                      /* 0: not made yet */
};

static struct late_holder *late_holders[RESOURCE_KINDS];

/* ---- who runs */

struct made {
    uint64_t t_ps;
    struct ref ref;
};

struct launch_ends ARRAY(struct launch_end);

static struct {
    uint64_t tick, instant_ps;
    struct ref cause, last, program;                    /* of who runs: it ends now; of the last event that fired, and
                                                           of the last host program that acted */
    struct subject who;
    bool starts;                                        /* a service begins */
    struct ARRAY(struct made) made;                     /* ends of the reservations of who runs */
    uint64_t model_at;                                  /* of a memory that a model of a user serves; 0: none */
    uint64_t node_end_ps;                               /* when a node has handled a head; 0: none does */
    uint64_t link_end_ps;                               /* when the link that the head takes is free again; 0: it took none */
    uint64_t translation_ps, translation_at;            /* of its translation; 0: none */
    struct made supply;                                 /* the channel that it has reserved first: of a write, that supplies
                                                           the bytes that leave the PE; item 0: none */
    struct made delivery;                               /* of the data message whose head has arrived; item 0: none has */
    struct {
        bool any;                                       /* pseudo channels were reserved: */
        uint64_t first_ps, last_ps;                     /* the earliest start, the latest end, */
        uint64_t first_number, last_number;
        uint64_t last_start_ps, last_row_ps;            /* of the one that ends last, and how long it changes rows */
        struct ref first, last;                         /* what led to these starts */
    } share;
    uint32_t node_rank;                                 /* of node_end_ps */
    const struct step *step;                            /* if the note of the last event that fired has NOTE_FLIES: the next
                                                           one of its head */
    const struct event *head;                           /* the arrival over a link that the head has taken: its note is made */
    uint64_t link;                                      /* of link_end_ps */
    struct made control;                                /* the control message that was sent, and its event */
    const struct event *control_event;
    struct subject host;                                /* with the line of what it does */
    const struct tl *acts;                              /* the kernel that acts by itself */
    enum kernel_act act;
    uint32_t parts;                                     /* entries of ABOUT_PARTS that wait */
    bool marked;                                        /* `program` is the end: causes_mark_end */
    struct launch_ends ends;
    struct {
        uint64_t bytes, ps;
    } moved;                                            /* bytes_ps of last */
} run;

static bool modelled;                                   /* models of users say how long heads take: each hop has an item */

static struct {
    struct fifo *servers;                               /* by server of the machine; of engines of a DMA, by the first */
    struct fifo *slots;                                 /* by PE and stage */
    size_t server_count, slot_count;
    struct ARRAY(struct fifo) credits;                  /* by ring */
    struct condition *scheduler, *feeder, *buffer;      /* by PE; buffer: the next tile fits since then */
    struct condition *turn;                             /* by PE and queue: what the start ahead had waited for last */
    struct ref *program;                                /* by rank of host program: what woke it */
    size_t programs;
} when;

static void fifo_free(struct fifo *fifo)
{
    struct condition freed = {now_ps, ++run.tick, run.cause};
    if (fifo->count && fifo->first.t_ps != now_ps)
        fifo->count = fifo->others.count = 0;
    if (fifo->count)
        *array_add(&fifo->others) = freed;
    else
        fifo->first = freed;
    fifo->count++;
    fifo->freed++;
}

static void runs(struct ref cause, struct subject who)
{
    run.cause = cause;
    run.who = who;
    run.starts = false;
    run.made.count = 0;
    run.supply.ref.item = 0;
    run.delivery.ref.item = 0;
    run.share.any = false;
    run.model_at = run.node_end_ps = run.link_end_ps = run.translation_ps = 0;
}

static void make(uint64_t t_ps, struct ref ref)
{
    *array_add(&run.made) = (struct made){t_ps, ref};
}

/* Whether who runs has made the end of a reservation. */
static bool is_own(uint32_t item)
{
    for (size_t i = 0; i < run.made.count; i++)
        if (run.made.at[i].ref.item == item)
            return true;
    return false;
}

/* A head that has come to a step at t_ps, from ref.item on. */
static struct ref flown(struct ref ref, uint64_t t_ps, const struct step *step, struct subject who)
{
    struct ref from = {ref.item, ref.edge & EDGE_MASK};
    return (struct ref){item_detailed(from, t_ps, WORK_hop, ref.edge >> WIRES_SHIFT, (uintptr_t)step, who), EDGE_direct};
}

/* The cause of the last event that fired, or of who runs since then, as an item that ends then. */
static struct ref landed(struct ref ref)
{
    return ref.edge & NOTE_FLIES ? flown(ref, run.instant_ps, run.step - 1, items_about[ref.item].who) : ref;
}

/* Who runs acts now. Time has passed its cause if nothing was due in between: the run was stopped, or its host acts. */
__attribute__((cold)) static void cause_follow(void)
{
    run.cause = landed(run.cause);
    if (items[run.cause.item].end_ps < now_ps)
        run.cause = (struct ref){item_new(run.cause, now_ps, WORK_host, place_at(RESOURCE_NODE, 0), nobody), EDGE_direct};
}

/* The item of a holder is, until there is another one, that of the node that has handled a head up to t_ps. */
__attribute__((noinline)) static uint32_t handled(struct late_holder *holder, uint64_t rank, uint64_t t_ps)
{
    bool flies = holder->start.edge & NOTE_FLIES;
    struct ref from = {holder->start.item, holder->start.edge & EDGE_MASK};
    uint32_t place = holder->item = item_place();
    item_set(place, from, t_ps, flies ? WORK_handled : WORK_node, holder->start.edge >> WIRES_SHIFT,
             flies ? (uintptr_t)holder->step : place_at(RESOURCE_NODE, rank), holder->who);
    return item_place_taken(place);
}

/* The same for what a link or a pseudo channel has served. */
__attribute__((noinline)) static uint32_t late_made(struct late_holder *holder, enum resource_kind kind, uint64_t number)
{
    bool link = kind == RESOURCE_LINK;
    struct ref end = holder->start;
    if (holder->first_end_ps > items[end.item].end_ps)
        end = (struct ref){link ? handled(holder, target_rank(step_target(holder->step - 1)), holder->first_end_ps)
                         : item_new(end, holder->first_end_ps, WORK_row, place_at(kind, number), holder->who), EDGE_direct};
    return holder->item = item_new(end, holder->free_ps, link ? WORK_link : WORK_pseudo_channel, place_at(kind, number),
                                   holder->who);
}

/* The end of what a node, a link or a pseudo channel has served last. */
static inline uint32_t late_end(enum resource_kind kind, uint64_t number)
{
    struct late_holder *holder = &late_holders[kind][number];
    return holder->item ? holder->item
         : kind == RESOURCE_NODE ? handled(holder, number, holder->free_ps) : late_made(holder, kind, number);
}

/* What who runs has made that ends at t_ps, and can ask for a reservation: any but a delivery. */
static bool find_asker(uint64_t t_ps, struct ref *ref)
{
    if (t_ps == now_ps) {
        *ref = run.cause;
        return true;
    }
    if (run.link_end_ps == t_ps) {
        *ref = (struct ref){late_end(RESOURCE_LINK, run.link), EDGE_direct};
        return true;
    }
    for (size_t i = run.made.count; i-- > 0;)
        if (run.made.at[i].t_ps == t_ps) {
            *ref = run.made.at[i].ref;
            return true;
        }
    if (run.node_end_ps == t_ps) {
        *ref = (struct ref){late_end(RESOURCE_NODE, run.node_rank), EDGE_direct};
        return true;
    }
    return false;
}

/* What who runs has made that ends at t_ps. */
static bool find(uint64_t t_ps, struct ref *ref)
{
    if (t_ps != now_ps && run.delivery.ref.item && run.delivery.t_ps == t_ps) {
        *ref = run.delivery.ref;
        return true;
    }
    if (t_ps != now_ps && run.share.any && run.delivery.ref.item && run.share.last_ps == t_ps) {
        *ref = (struct ref){late_end(RESOURCE_PSEUDO_CHANNEL, run.share.last_number), EDGE_direct};
        return true;
    }
    return find_asker(t_ps, ref);
}

/* The latest of what it has made that ends before t_ps. */
static struct ref before(uint64_t t_ps)
{
    struct made latest = {now_ps, run.cause};
    if (run.node_end_ps && run.node_end_ps < t_ps)
        latest = (struct made){run.node_end_ps, {late_end(RESOURCE_NODE, run.node_rank), EDGE_direct}};
    for (size_t i = 0; i < run.made.count; i++)
        if (run.made.at[i].t_ps < t_ps && run.made.at[i].t_ps >= latest.t_ps)
            latest = run.made.at[i];
    return latest.ref;
}

/* A new item, reached directly. */
__attribute__((noinline)) static struct ref item_behind(struct ref cause, uint64_t t_ps, enum work work, uint64_t at,
                                                        struct subject who)
{
    return (struct ref){item_new(cause, t_ps, work, at, who), EDGE_direct};
}

static struct ref extended(struct ref cause, uint64_t t_ps, enum work work, uint64_t at)
{
    return item_behind(cause, t_ps, work, at, run.who);
}

/* The memory of a pseudo channel. */
static uint64_t at_slice(uint64_t channel)
{
    return place_at(RESOURCE_NODE, place_rank(slice_place((uint32_t)(channel / kb_attrs.hbm_ctrl_pcs))));
}

/* The chain of who runs up to t_ps. What it does in a time that nothing has reserved is `work`. */
__attribute__((noinline)) static struct ref chain(uint64_t t_ps, enum work work, uint64_t at)
{
    struct ref ref;
    if (t_ps <= now_ps)
        return run.cause;
    if (run.share.any && !run.delivery.ref.item && t_ps >= run.share.first_ps)
        return extended(run.share.first, t_ps, WORK_access, at_slice(run.share.first_number));
    if (find(t_ps, &ref))
        return ref;
    if (run.model_at)
        return extended(before(t_ps), t_ps, WORK_access, run.model_at);
    if (run.translation_ps) {                           /* of a write: after the TCM has supplied the bytes */
        bool supplies = run.supply.ref.item && run.supply.t_ps == t_ps - run.translation_ps;
        return extended(supplies ? run.supply.ref : before(t_ps), t_ps, WORK_translation, run.translation_at);
    }
    return extended(before(t_ps), t_ps, work, at);
}

/* ---- reservations */

/* The chain to the start of a reservation that did not wait. A write's delivery does not ask for one. */
__attribute__((noinline)) static struct ref asked_later(uint64_t start_ps, uint64_t at)
{
    struct ref ref;
    if (!run.delivery.ref.item)
        return chain(start_ps, WORK_node, at);
    return find_asker(start_ps, &ref) ? ref : extended(before(start_ps), start_ps, WORK_node, at);
}

static inline struct ref asked(uint64_t start_ps, uint64_t at)
{
    return start_ps == now_ps ? run.cause : asked_later(start_ps, at);
}

/* Whether a grant is the end of what held the resource before. */
static bool waited(uint64_t free_ps, uint64_t asked_ps, uint64_t start_ps)
{
    return start_ps > asked_ps && start_ps >= now_ps && free_ps == start_ps;
}

/* The chain to the grant of a channel. Before a request of another PE's TCM comes the overhead of that. */
static struct ref granted(const struct holder *holder, uint64_t asked_ps, uint64_t start_ps, uint64_t at)
{
    if (waited(holder->free_ps, asked_ps, start_ps))
        return (struct ref){holder->item, EDGE_channel};
    unsigned kind = place_resource(at);
    if (kind == RESOURCE_TCM_READ || kind == RESOURCE_TCM_WRITE)
        at = place_at(RESOURCE_NODE, pe_rank(&kb_pe[(uint32_t)at], NODE_pe_tcm));
    return asked(start_ps, at);
}

/* The time of bytes in a pseudo channel, without row changes. */
static uint64_t bytes_ps(uint64_t bytes)
{
    if (bytes != run.moved.bytes) {
        run.moved.bytes = bytes;
        run.moved.ps = move_ps(bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
    }
    return run.moved.ps;
}

/* A node, a link or a pseudo channel serves a request from start_ps on. Returns what leads to that. */
static inline struct ref late_reserved(enum resource_kind kind, uint64_t number, uint64_t asked_ps, uint64_t start_ps,
                                uint64_t row_end_ps, uint64_t end_ps)
{
    static const enum edge edges[RESOURCE_KINDS] = {[RESOURCE_NODE] = EDGE_node, [RESOURCE_LINK] = EDGE_link,
                                                    [RESOURCE_PSEUDO_CHANNEL] = EDGE_pseudo_channel};
    struct late_holder *holder = &late_holders[kind][number];
    struct ref start;
    if (waited(holder->free_ps, asked_ps, start_ps))
        start = (struct ref){late_end(kind, number), edges[kind]};
    else
        start = asked(start_ps, place_at(kind, number));
    *holder = (struct late_holder){end_ps > now_ps ? end_ps : now_ps, row_end_ps, start, run.who, run.step, 0};
    return start;
}

/* What waits is apart: what does not, which is more frequent, need not save registers. */
__attribute__((noinline)) static void node_waits(uint64_t rank, uint64_t asked_ps, uint64_t start_ps, uint64_t end_ps)
{
    late_reserved(RESOURCE_NODE, rank, asked_ps, start_ps, 0, end_ps);
}

static inline void node_reserved(uint64_t rank, uint64_t asked_ps, uint64_t start_ps, uint64_t end_ps)
{
    run.node_end_ps = end_ps;
    run.node_rank = (uint32_t)rank;
    if (start_ps == now_ps)
        late_holders[RESOURCE_NODE][rank] = (struct late_holder){end_ps, 0, run.cause, run.who, run.step, 0};
    else
        node_waits(rank, asked_ps, start_ps, end_ps);
}

/* A head arrives at t_ps, and its flight becomes an item. */
__attribute__((noinline)) static void hop_ends(const struct event *event, struct ref start, uint64_t t_ps, const struct step *step)
{
    note(event, flown(start, t_ps, step, run.who));
}

/* The head of a message arrives at t_ps over a link that it took as soon as its node had handled it. If it has not waited for
 * the node either, it flies: there is no item, unless it has come far. */
static inline void hop_due(const struct event *event, struct ref start, uint64_t t_ps, const struct step *step)
{
    uint64_t wires_ps = step_target(step)->latency_ps + (start.edge >> WIRES_SHIFT);
    bool flies = !(start.edge & EDGE_MASK) && wires_ps < LONG_WIRES && !modelled;
    start.edge = (uint32_t)(wires_ps < LONG_WIRES ? wires_ps : LONG_WIRES) << WIRES_SHIFT | (start.edge & EDGE_MASK);
    if (flies)
        note(event, (struct ref){start.item, start.edge | NOTE_FLIES});
    else
        hop_ends(event, start, t_ps, step);
}

/* The same over a link for which it waited, or that is the first. */
__attribute__((noinline)) static void wire_due(const struct event *event, uint64_t link, uint64_t asked_ps, uint64_t start_ps,
                                               uint64_t end_ps, uint64_t t_ps)
{
    struct ref start = late_reserved(RESOURCE_LINK, link, asked_ps, start_ps, 0, end_ps);
    struct ref from = items[start.item].end_ps <= t_ps ? start : run.cause;
    note(event, extended(from, t_ps, WORK_wire, place_at(RESOURCE_LINK, link)));
}

/* The head of a message takes a link. */
static inline void link_reserved(uint64_t link, uint64_t asked_ps, uint64_t start_ps, uint64_t end_ps)
{
    const struct event *event = &observed_message->event;
    const struct step *step = container_of(observed_message, struct data_message, message)->step - 1;
    uint64_t t_ps = start_ps + step_target(step)->latency_ps;
    run.head = event;
    run.link = link;
    run.link_end_ps = end_ps;
    if (asked_ps != start_ps || start_ps != run.node_end_ps || !start_ps) {
        wire_due(event, link, asked_ps, start_ps, end_ps, t_ps);
        return;
    }
    struct ref start = late_holders[RESOURCE_NODE][run.node_rank].start;
    late_holders[RESOURCE_LINK][link] = (struct late_holder){end_ps, start_ps, start, run.who, step, 0};
    hop_due(event, start, t_ps, step);
}

__attribute__((noinline)) static void share_reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps,
                                                     uint64_t start_ps, uint64_t end_ps)
{
    (void)kind;
    struct ref start = late_reserved(RESOURCE_PSEUDO_CHANNEL, number, asked_ps, start_ps, end_ps - bytes_ps(bytes), end_ps);
    bool any = run.share.any;
    run.share.any = true;
    if (!any || start_ps < run.share.first_ps || (start_ps == run.share.first_ps && number < run.share.first_number)) {
        run.share.first_ps = start_ps;
        run.share.first = start;
        run.share.first_number = number;
    }
    if (!any || end_ps > run.share.last_ps || (end_ps == run.share.last_ps && number < run.share.last_number)) {
        run.share.last_ps = end_ps;
        run.share.last_number = number;
        run.share.last = start;
        run.share.last_start_ps = start_ps;
        run.share.last_row_ps = end_ps - bytes_ps(bytes) - start_ps;
    }
}

__attribute__((noinline)) static void channel_reserved(enum resource_kind kind, uint64_t number, uint64_t bytes,
                                                       uint64_t asked_ps, uint64_t start_ps, uint64_t end_ps)
{
    (void)bytes;
    uint64_t at = place_at(kind, number);
    struct holder *holder = &holders[kind][number];
    bool behind_own = holder->free_ps >= now_ps && is_own(holder->item);
    struct ref start = granted(holder, asked_ps, start_ps, at);
    struct ref end = extended(start, end_ps > now_ps ? end_ps : now_ps, WORK_channel, at);
    *holder = (struct holder){end_ps, end.item};
    if (!run.supply.ref.item)
        run.supply = (struct made){end_ps, end};
    if (!behind_own)                                    /* else that end is made already; what follows it did not wait */
        make(start_ps, start);
    make(end_ps, end);
}

static void reserved(enum resource_kind kind, uint64_t number, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps,
                     uint64_t end_ps)
{
    if (kind == RESOURCE_NODE)
        node_reserved(number, asked_ps, start_ps, end_ps);
    else if (kind == RESOURCE_LINK)
        link_reserved(number, asked_ps, start_ps, end_ps);
    else if (kind == RESOURCE_PSEUDO_CHANNEL)
        share_reserved(kind, number, bytes, asked_ps, start_ps, end_ps);
    else if (kind == RESOURCE_HBM_MODEL || kind == RESOURCE_SRAM_MODEL)
        run.model_at = place_at(kind, number);
    else
        channel_reserved(kind, number, bytes, asked_ps, start_ps, end_ps);
}

static void translated(const struct pe *pe, uint64_t from_ps, uint64_t length_ps)
{
    uint64_t at = place_at(RESOURCE_NODE, pe_rank(pe, NODE_pe_mmu));
    if (length_ps)
        make(from_ps + length_ps, extended(chain(from_ps, WORK_translation, at), from_ps + length_ps, WORK_translation, at));
    run.translation_ps = length_ps;
    run.translation_at = at;
}

/* The next request is spaced from the one before, or else leaves when it can: then that is found by its time. */
static void request_leaves(const struct token *token, uint64_t leave_ps, bool spaced)
{
    uint64_t at = place_at(RESOURCE_NODE, pe_rank(token->command->pe, NODE_pe_dma));
    struct entry *entry = entry_of(key_of(token, ABOUT_REQUEST));
    struct ref ref = spaced ? extended(entry->ref, leave_ps, WORK_engine, at) : chain(leave_ps, WORK_engine, at);
    make(leave_ps, ref);
    entry->ref = ref;
}

/* ---- messages */

/* Whom a message is sent for: its cause; the tile and the line are those of who runs, if that is the same or the host. */
static void message_subject(const struct message *message)
{
    struct cause cause = message->cause;
    if (run.who.kernel == cause.kernel && run.who.number == cause.number)
        return;
    bool host_sends = !cause.kernel && !run.who.kernel && !run.who.number;
    uint32_t site = host_sends ? run.who.site : 0;
    run.who = nobody;
    run.who.kernel = cause.kernel;
    run.who.number = cause.number;
    run.who.site = site;
}

/* An item that somebody has waited for is of another one. Whom it held up is kept beside it. */
static struct ref for_who_runs(struct ref ref, uint64_t t_ps)
{
    if (ref.edge == EDGE_direct)
        return ref;
    return item_behind(ref, t_ps, WORK_handover, 0, run.who);
}

static void control_sent(const struct message *message, uint64_t leave_ps, uint64_t delivered_ps)
{
    uint64_t at = place_at(RESOURCE_NODE, route_from_rank(message->route));
    struct ref leaves = for_who_runs(chain(leave_ps, WORK_node, at), leave_ps);
    if (!message->cause.kernel)
        message_subject(message);
    run.control = (struct made){delivered_ps, extended(leaves, delivered_ps, WORK_control, (uintptr_t)message->route)};
    run.control_event = &message->event;
}

/* The narrowest link of a route; the first of several. */
static uint64_t narrowest(const struct data_message *data)
{
    const struct route *route = data->message.route;
    const struct step *step = route->steps;
    while (step_target(step)->speed != route->narrowest)
        step++;
    return place_at(RESOURCE_LINK, step_link(*step));
}

static void data_sent(const struct data_message *data)
{
    if (!run.share.any || run.delivery.ref.item)
        return;
    struct entry *entry = entry_of(key_of(data, ABOUT_READ));
    entry->t_ps = run.share.last_start_ps - run.share.first_ps;
    entry->tick = run.share.last_row_ps;
    entry->ref = entry->t_ps ? run.share.last : (struct ref){0, EDGE_direct};
}

/* Does again, behind `head`, what a pseudo channel did from since_ps on until it was free for the read: the bytes and the row
 * changes of all that held it. */
__attribute__((cold, noinline)) static struct ref held_by_others(struct ref head, struct ref last, uint64_t since_ps, uint64_t at)
{
    static struct ARRAY(struct ref) held;               /* the latest first */
    for (struct ref ref = last; items[ref.item].end_ps > since_ps; ref = (struct ref){items[ref.item].cause, items[ref.item].edge})
        *array_add(&held) = ref;
    while (held.count) {
        struct ref ref = held.at[--held.count];
        const struct item *item = &items[ref.item];
        uint64_t begin_ps = item_begin_ps(item) > since_ps ? item_begin_ps(item) : since_ps;
        enum work work = item->work == WORK_row ? WORK_row : WORK_stream;
        head = (struct ref){item_detailed(head, items[head.item].end_ps + item->end_ps - begin_ps, work, work == WORK_stream,
                                          at, items_about[ref.item].who), ref.edge};
    }
    return head;
}

/* HBM feeds a delivery as the pseudo channel that ends last has served the read: after others, and after row changes. */
static struct ref fed_by_hbm(struct ref head, uint64_t head_ps, const struct entry *read, uint64_t at)
{
    if (read->ref.item)
        head = held_by_others(head, read->ref, items[read->ref.item].end_ps - read->t_ps, at);
    return read->tick ? extended(head, head_ps + read->t_ps + read->tick, WORK_row, at) : head;
}

static void data_arrived(const struct data_message *data, uint64_t head_ps, uint64_t delivered_ps)
{
    struct ref head = chain(head_ps, WORK_node, place_at(RESOURCE_NODE, route_to_rank(data->message.route)));
    bool of_hbm = place_is_kind(rank_place(route_from_rank(data->message.route)), NODE_hbm_ctrl);
    bool streams = data->tail_ps > data_drain_ps(data);
    uint64_t at = streams ? place_at(RESOURCE_NODE, route_from_rank(data->message.route)) : narrowest(data);
    if (of_hbm) {
        struct entry *read = entry_place(key_of(data, ABOUT_READ));
        head = streams ? fed_by_hbm(head, head_ps, read, at) : head;
        read->ref.item = 0;
    }
    uint32_t item = item_detailed(head, delivered_ps, streams ? WORK_stream : WORK_link, streams && of_hbm, at, run.who);
    run.delivery = (struct made){delivered_ps, {item, EDGE_direct}};
}

static struct fifo *credits_of(uint32_t source, uint32_t destination)
{
    struct entry *entry = entry_of(((uintptr_t)source << 34 | (uintptr_t)destination << 4) + 16 + ABOUT_RING);
    if (!entry->tick) {                                 /* its position + 1 */
        *array_add(&when.credits) = (struct fifo){0};
        entry->tick = when.credits.count;
    }
    return &when.credits.at[entry->tick - 1];
}

static void credit_returned(uint32_t source, uint32_t destination)
{
    fifo_free(credits_of(source, destination));
}

static void handover(enum edge edge, struct subject who)
{
    run.cause = item_behind(over(run.cause, edge), now_ps, WORK_handover, 0, who);
}

static struct subject command_subject(const struct command *command)
{
    return (struct subject){command->ask.serial, command->number, NO_TILE, NO_STAGE,
                            site_number(command->ask.file, command->ask.line)};
}

static void receive_goes_on(const struct command *receive)
{
    struct subject who = command_subject(receive);
    run.cause = run.last;
    handover(EDGE_message, who);
    run.who = who;
}

/* ---- events */

static void keep_noted(const struct event *event)
{
    items_keep(noted(event).item);
}

enum { KEPT = 1 << ABOUT_PARTS | 1 << ABOUT_READ | 1 << ABOUT_REQUEST };    /* entries of what is under way */

/* Marks everything from which a path can go on. */
__attribute__((cold, noinline)) static void collect(const struct event *fires)
{
    items_collect_begin();
    keep_noted(fires);
    event_each(keep_noted);
    for (size_t i = 0; i < (size_t)1 << table.bits; i++)
        if (table.at[i].ref.item && (1u << (table.at[i].key & ABOUT_MASK) & KEPT))
            items_keep(table.at[i].ref.item);
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++)
        for (uint64_t i = 0, count = holders[kind] ? resource_count(kind) : 0; i < count; i++)
            if (holders[kind][i].free_ps >= now_ps)
                items_keep(holders[kind][i].item);
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++)
        for (uint64_t i = 0, count = late_holders[kind] ? resource_count(kind) : 0; i < count; i++)
            if (late_holders[kind][i].free_ps >= now_ps)
                items_keep(late_holders[kind][i].item ? late_holders[kind][i].item : late_holders[kind][i].start.item);
    for (size_t i = 0; i < when.programs; i++)
        items_keep(when.program[i].item);
    items_keep(run.last.item);
    items_keep(run.program.item);
    for (size_t i = 0; i < run.ends.count; i++)
        items_keep(run.ends.at[i].ref.item);
    items_collect_end();
    sums_collected();
}

/* Returns what led to the end of the feed. */
__attribute__((cold, noinline)) static struct ref feed_ends(const struct event *event)
{
    const struct token *token = container_of(event, struct token, event);
    struct ref ref = noted(event);
    ref.edge -= NOTE_FEEDS;
    when.feeder[pe_number(token->command->pe)] = (struct condition){now_ps, ++run.tick, ref};
    note(event, ref);
    return ref;
}

/* An event that fires soon, mostly the one after the next; NULL: none is known. */
static inline const struct event *event_soon(void)
{
    const struct event *next = event_firing ? event_firing : event_soonest->events;
    return next && next != event_firing && event_soonest[-1].events ? event_soonest[-1].events : next;
}

static void event_fires(const struct event *event)
{
    struct ref ref = noted(event);
    const struct event *soon = event_soon();
    if (soon) {                                         /* its item is seldom in the cache: fetched until then */
        __builtin_prefetch(&items[noted(soon).item]);
        __builtin_prefetch(&items_about[noted(soon).item]);
    }
    if (__builtin_expect(items_full, 0) && now_ps > run.instant_ps) /* no condition became true yet in this instant */
        collect(event);
    run.instant_ps = now_ps;
    if (ref.edge & NOTE_FLIES) {
        run.step = container_of(event, struct data_message, message.event)->step;
        if (step_is_last(run.step[-1]))
            ref = landed(ref);
    } else {
        if (__builtin_expect(ref.edge & NOTE_FEEDS, 0))
            ref = feed_ends(event);
        items_broken += items[ref.item].end_ps != now_ps;
    }
    run.last = ref;
    runs(ref, items_about[ref.item].who);
}

static struct ref message_due(const struct event *event, uint64_t t_ps)
{
    uint32_t rank = event_rank(event);
    if (event == run.control_event && run.control.t_ps == t_ps) {
        run.control_event = NULL;
        return run.control.ref;
    }
    return chain(t_ps, WORK_node, place_at(RESOURCE_NODE, rank));
}

static struct subject caller(const struct tl *tl)
{
    return (struct subject){tl->serial, tl->commands, NO_TILE, NO_STAGE, site_number(tl->call.file, tl->call.line)};
}

/* The kernel goes on because a command that it waits for is complete. */
static struct ref wait_ends(const struct tl *tl)
{
    struct subject who = caller(tl);
    struct ref cause = run.cause;
    cause.edge = cause.edge == EDGE_direct ? EDGE_wait : cause.edge;
    accounts_advance(tl, cause);
    return item_behind(cause, now_ps, WORK_handover, 0, who);
}

static struct ref kernel_due(const struct event *event, uint64_t t_ps)
{
    static const enum work works[] = {[KERNEL_BEGINS] = WORK_barrier, [KERNEL_LAUNCHES] = WORK_engine,
                                      [KERNEL_SUBMITS] = WORK_engine, [KERNEL_DELAYS] = WORK_delay};
    uint64_t at = place_at(RESOURCE_NODE, event_rank(event));
    if (event_rank(event) == place_rank(place_host()))
        return item_behind(run.cause, t_ps, WORK_host, at, run.host);
    const struct tl *tl = container_of(event, struct tl, event);
    if (run.acts != tl)
        return wait_ends(tl);
    run.acts = NULL;
    struct subject who = caller(tl);
    struct ref ref = item_behind(run.cause, t_ps, works[run.act], at, who);
    if (run.act != KERNEL_BEGINS)
        accounts_advance(tl, ref);
    return ref;
}

/* The end of a service, the arrival of a token over a link within a PE, or a fault. */
static struct ref service_due(const struct event *event, uint64_t t_ps)
{
    struct ref ref;
    if (run.parts) {
        struct entry *entry = entry_place(key_of(container_of(event, struct token, event), ABOUT_PARTS));
        struct ref part = entry->ref;
        run.parts -= part.item != 0;
        entry->ref.item = 0;
        if (part.item && entry->t_ps == t_ps && !find(t_ps, &ref))
            return part;
    }
    return chain(t_ps, run.starts ? WORK_engine : WORK_wire, place_at(RESOURCE_NODE, event_rank(event)));
}

__attribute__((noinline)) static void other_due(const struct event *event, uint64_t t_ps)
{
    enum event_class class = order_class(event->order);
    if (class == CLASS_SERVICE && noted(event).edge & NOTE_FEEDS)
        return;
    struct ref ref = class == CLASS_MESSAGE ? message_due(event, t_ps)
                   : class == CLASS_KERNEL ? kernel_due(event, t_ps)
                   : service_due(event, t_ps);
    note(event, for_who_runs(ref, t_ps));
}

static void event_set_due(const struct event *event, uint64_t t_ps)
{
    if (event == run.head)
        run.head = NULL;
    else
        other_due(event, t_ps);
}

/* ---- kernels and host programs */

static void kernel_will_act(const struct tl *tl, enum kernel_act act, uint64_t t_ps)
{
    (void)t_ps;
    run.acts = tl;
    run.act = act;
}

__attribute__((cold)) static void host_calls(const char *file, uint32_t line)
{
    run.host = nobody;
    run.host.site = site_number(file, line);
    run.who = run.host;
}

__attribute__((cold)) static void program_wakes(uint32_t rank)
{
    while (when.programs <= rank) {
        when.program = realloc(when.program, (when.programs + 1) * sizeof *when.program);
        when.program[when.programs++] = (struct ref){0, EDGE_direct};
    }
    cause_follow();
    when.program[rank] = run.starts ? landed(run.last) : run.cause;    /* Issue wakes none: nothing is due any more */
}

__attribute__((cold)) static void program_acts(uint32_t rank)
{
    if (run.marked)
        return;
    run.program = rank < when.programs ? when.program[rank] : (struct ref){0, EDGE_direct};
    runs(run.program, nobody);
    cause_follow();
}

static void kernel_ends(const struct tl *tl)
{
    cause_follow();
    accounts_kernel_ends(tl, run.cause);
}

__attribute__((cold)) static void launch_ends(const struct launch *launch)
{
    cause_follow();
    struct ref ref = run.starts ? landed(run.last) : run.cause;
    *array_add(&run.ends) = (struct launch_end){launch, ref};
}

/* ---- starts in Issue */

struct choice {
    uint64_t tick;
    struct ref ref;
};

static void consider(struct choice *choice, struct condition condition, enum edge edge)
{
    if (condition.t_ps != now_ps || condition.tick <= choice->tick)
        return;
    choice->tick = condition.tick;
    choice->ref = over(condition.ref, edge);
}

/* Begins a service whose cause is the choice. A model of a user may start what waits for nothing any more: then that has
 * the cause of the last event. */
static void begins(const struct choice *choice, struct subject who)
{
    struct ref ref = choice->tick ? choice->ref : landed(run.last);
    runs(ref, who);
    items_broken += items[ref.item].end_ps != now_ps;
    run.starts = true;
}

static struct fifo *slots_of(const struct pe *pe, unsigned stage)
{
    return &when.slots[(size_t)pe_number(pe) * STAGES + stage];
}

static uint64_t depth_of(unsigned stage)
{
    static const uint64_t *const depths[STAGES] = {
#define STAGE(name, part, engine, busy) [STAGE_##name] = &kb_attrs.part##_queue_depth,
#include "kb/stages.def"
#undef STAGE
    };
    return *depths[stage];
}

static void consider_slot(struct choice *choice, const struct pe *pe, unsigned stage)
{
    consider(choice, fifo_take(slots_of(pe, stage), depth_of(stage)), EDGE_slot);
}

/* The engines that a server is one of: writes come first, reads before the sends, which come last. */
static struct fifo *engines_of(const struct token *token, uint64_t *engines)
{
    const struct server *first = token->command->pe->servers;
    enum stage_kind stage = token->stage->kind;
    *engines = stage == STAGE_DMA_READ ? kb_attrs.pe_dma_rd_engines : stage == STAGE_DMA_WRITE ? kb_attrs.pe_dma_wr_engines : 1;
    const struct server *server = stage == STAGE_DMA_READ ? first + kb_pe_servers - 1 - *engines
                                : stage == STAGE_DMA_WRITE ? first : token->server;
    return &when.servers[server - kb_servers];
}

static void arrives(const void *thing)
{
    struct entry *entry = entry_of(key_of(thing, ABOUT_ARRIVAL));
    entry->t_ps = now_ps;
    entry->tick = ++run.tick;
    entry->ref = run.cause;
}

static void consider_arrival(struct choice *choice, const void *thing)
{
    const struct entry *entry = entry_of(key_of(thing, ABOUT_ARRIVAL));
    consider(choice, (struct condition){entry->t_ps, entry->tick, entry->ref}, EDGE_direct);
}

static struct subject token_subject(const struct token *token)
{
    struct subject who = command_subject(token->command);
    who.tile = (uint32_t)token->tile.id;
    who.stage = token->stage->kind;
    return who;
}

static void tile_queued(const struct token *token)
{
    arrives(token);
}

static void consider_credits(struct choice *choice, const struct command *send)
{
    struct pe_list peers = peers_of(&send->ask);
    for (uint32_t i = 0; i < peers.count; i++)
        consider(choice, fifo_take(credits_of(pe_number(send->pe), peers.pe[i]), kb_attrs.pe_ipcq_slots), EDGE_credit);
}

static void service_starts(const struct token *token)
{
    const struct pe *pe = token->command->pe;
    enum stage_kind stage = token->stage->kind, next = token->stage[1].kind;
    struct condition *turn = &when.turn[((size_t)pe_number(pe) * STAGES + stage) * 2 + token->direct];
    struct choice choice = {0};
    uint64_t engines;
    struct fifo *servers = engines_of(token, &engines);
    consider_arrival(&choice, token);
    consider(&choice, fifo_take(servers, engines), EDGE_engine);
    if (stage == STAGE_COMM)
        consider_credits(&choice, token->command);
    else
        consider(&choice, *turn, EDGE_direct);
    if (next != STAGE_NONE && next != stage)
        consider_slot(&choice, pe, next);
    struct subject who = token_subject(token);
    begins(&choice, who);
    engine_starts(pe, stage, run.cause);
    *turn = (struct condition){now_ps, choice.tick, choice.ref};
    if (!token->direct && next != stage)
        fifo_free(slots_of(pe, stage));
}

/* Whether there is room for the tile that the feeder would take now, once a token has given back its buffers. */
static bool next_tile_fits(const struct pe *pe, const struct token *without)
{
    if (!pe->feeding || pe->feed)
        return false;
    struct tile tile = tiling_tile(pe->feeding, pe->fed);
    return tile_buffers_fit(pe, tile.shape, without);
}

static void service_ends(const struct token *token)
{
    const struct pe *pe = token->command->pe;
    uint64_t engines;
    run.who = token_subject(token);
    fifo_free(engines_of(token, &engines));
    engine_ends(pe, token->stage->kind);
    if (token->stage[1].kind == STAGE_NONE && token->buffer[0].bytes && next_tile_fits(pe, token) && !next_tile_fits(pe, NULL))
        when.buffer[pe_number(pe)] = (struct condition){now_ps, ++run.tick, run.cause};
    if (token->stage->kind == STAGE_DMA_READ || token->stage->kind == STAGE_DMA_WRITE)
        entry_place(key_of(token, ABOUT_REQUEST))->ref.item = 0;
    if (run.parts && (token->stage->kind == STAGE_DMA_READ || token->stage->kind == STAGE_DMA_WRITE)) {
        struct entry *entry = entry_of(key_of(token, ABOUT_PARTS));
        run.parts -= entry->ref.item != 0;
        entry->ref.item = 0;
    }
}

static void part_known(const struct token *token, uint64_t end_ps)
{
    struct ref ref = chain(end_ps, WORK_engine, place_at(RESOURCE_NODE, pe_rank(token->command->pe, NODE_pe_dma)));
    struct entry *entry = entry_of(key_of(token, ABOUT_PARTS));
    run.parts += !entry->ref.item;
    if (entry->ref.item && entry->t_ps > end_ps)
        return;
    entry->t_ps = end_ps;
    entry->ref = ref;
}

static void command_submitted(const struct command *command)
{
    arrives(command);
}

static void scheduling_starts(const struct command *command)
{
    struct choice choice = {0};
    struct subject who = command_subject(command);
    consider_arrival(&choice, command);
    consider(&choice, when.scheduler[pe_number(command->pe)], EDGE_engine);
    begins(&choice, who);
    engine_starts(command->pe, STAGE_NONE, run.cause);
}

static void command_scheduled(const struct command *command)
{
    run.who = command_subject(command);
    when.scheduler[pe_number(command->pe)] = (struct condition){now_ps, ++run.tick, run.cause};
    engine_ends(command->pe, STAGE_NONE);
    arrives(command);                                   /* of a composite: at the feeder */
}

__attribute__((cold)) static void tile_fed(const struct token *token, uint64_t end_ps)
{
    const struct pe *pe = token->command->pe;
    uint32_t number = pe_number(pe);
    struct choice choice = {0};
    struct subject who = token_subject(token);
    who.stage = NO_STAGE;
    consider_arrival(&choice, token->command);
    consider(&choice, when.feeder[number], EDGE_engine);
    consider_slot(&choice, pe, token->stage->kind);
    consider(&choice, when.buffer[number], EDGE_buffer);
    begins(&choice, who);
    struct ref fed = extended(run.cause, end_ps, WORK_feed, place_at(RESOURCE_NODE, pe_rank(pe, NODE_pe_scheduler)));
    fed.edge |= NOTE_FEEDS;
    note(&token->event, fed);
}

/* ---- the run */

void causes_mark_end(void)
{
    cause_follow();
    run.program = run.starts ? landed(run.last) : run.cause;
    run.marked = true;
}

struct ref causes_of_end(void)
{
    return run.marked || items[run.program.item].end_ps == now_ps ? run.program : landed(run.last);
}

const struct launch_end *causes_of_launches(size_t *count)
{
    *count = run.ends.count;
    return run.ends.at;
}

__attribute__((cold)) void causes_begin(void)
{
    uint32_t pes = pe_count();
    causes_end();
    items_begin();
    sums_begin();
    memset(&run, 0, sizeof run);
    run.who = run.host = nobody;
    modelled = false;
    for (unsigned kind = 0; kind < NODE_KINDS; kind++)
        modelled |= kb_fabric_models[kind].handle || kb_fabric_models[kind].choose;
    table.bits = FIRST_BITS;
    table.at = array_zeros((size_t)1 << FIRST_BITS, sizeof *table.at);
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++)
        if (kind == RESOURCE_NODE || kind == RESOURCE_LINK || kind == RESOURCE_PSEUDO_CHANNEL)
            late_holders[kind] = array_zeros(resource_count(kind), sizeof *late_holders[kind]);
        else if (kind != RESOURCE_HBM_MODEL && kind != RESOURCE_SRAM_MODEL)
            holders[kind] = array_zeros(resource_count(kind), sizeof *holders[kind]);
    when.server_count = (size_t)pes * kb_pe_servers;
    when.slot_count = (size_t)pes * STAGES;
    when.servers = array_zeros(when.server_count, sizeof *when.servers);
    when.slots = array_zeros(when.slot_count, sizeof *when.slots);
    when.scheduler = array_zeros(pes, sizeof *when.scheduler);
    when.feeder = array_zeros(pes, sizeof *when.feeder);
    when.buffer = array_zeros(pes, sizeof *when.buffer);
    when.turn = array_zeros((size_t)pes * STAGES * 2, sizeof *when.turn);
}

__attribute__((cold)) static struct fifo *fifos_freed(struct fifo *fifos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        array_free(&fifos[i].others);
    return array_freed(fifos);
}

__attribute__((cold)) void causes_end(void)
{
    items_end();
    table.at = array_freed(table.at);
    table.count = 0;
    for (unsigned kind = 0; kind < RESOURCE_KINDS; kind++) {
        holders[kind] = array_freed(holders[kind]);
        late_holders[kind] = array_freed(late_holders[kind]);
    }
    fifos_freed(when.servers, when.server_count);
    fifos_freed(when.slots, when.slot_count);
    fifos_freed(when.credits.at, when.credits.count);
    array_free(&run.ends);
    array_free(&run.made);
    array_freed(when.scheduler);
    array_freed(when.feeder);
    array_freed(when.buffer);
    array_freed(when.turn);
    free(when.program);
    memset(&when, 0, sizeof when);
}

struct observer why_observer = {
    .name = "why",
    .needs_every_event = true,
    .event_fires = event_fires,
    .event_set_due = event_set_due,
    .programs_act = cause_follow,
    .program_wakes = program_wakes,
    .program_acts = program_acts,
    .kernel_begins = accounts_kernel_begins,
    .kernel_ends = kernel_ends,
    .host_calls = host_calls,
    .launch_ends = launch_ends,
    .kernel_will_act = kernel_will_act,
    .command_submitted = command_submitted,
    .scheduling_starts = scheduling_starts,
    .command_scheduled = command_scheduled,
    .receive_goes_on = receive_goes_on,
    .credit_returned = credit_returned,
    .tile_fed = tile_fed,
    .tile_queued = tile_queued,
    .service_starts = service_starts,
    .service_ends = service_ends,
    .part_known = part_known,
    .control_sent = control_sent,
    .translated = translated,
    .request_leaves = request_leaves,
    .data_sent = data_sent,
    .data_arrived = data_arrived,
    .reserved = reserved,
};
