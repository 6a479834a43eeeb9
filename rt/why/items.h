/* items.h: what took time in a run, and what each of it waited for: the graph whose critical path --why prints.
 *
 * An item is work that takes time. It begins when its cause ends, so a chain of causes has no gap. Items that nothing can
 * follow any more are collected: what is kept grows with the length of paths, not with the number of events. */
#ifndef KB_ITEMS_H
#define KB_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

enum reason {
#define REASON(name, meaning) REASON_##name,
#include "reasons.def"
    REASONS
};

enum edge {
#define EDGE(name, reason, meaning) EDGE_##name,
#include "reasons.def"
    EDGES
};

enum work {
#define WORK(name, reason, meaning) WORK_##name,
#include "reasons.def"
    WORKS
};

extern const uint8_t edge_reasons[EDGES], work_reasons[WORKS];       /* enum reason */
extern const char *const reason_names[REASONS], *const reason_meanings[REASONS], *const edge_names[EDGES],
    *const work_names[WORKS], *const stage_names[];

enum { NO_TILE = UINT32_MAX, SITE_BITS = 28, STAGE_BITS = 4, NO_STAGE = (1 << STAGE_BITS) - 1 };

/* For whom something is done. */
struct subject {
    uint32_t kernel;                                    /* its serial number over the run; 0: the host */
    uint32_t number;                                    /* of the command in its kernel; of the host's request */
    uint32_t tile;                                      /* NO_TILE: none */
    uint32_t stage : STAGE_BITS;                        /* enum stage_kind, NO_STAGE: none */
    uint32_t site : SITE_BITS;                          /* of the call in the source (sites.h); 0: not known */
};

/* The end of an item, and how it is waited for. */
struct ref {
    uint32_t item, edge;
};

enum { WORK_BITS = 5, EDGE_BITS = 4, DEPTH_BITS = 7 };

struct item {
    uint64_t end_ps;
    uint32_t cause;                                     /* the item whose end is its begin */
    uint32_t work : WORK_BITS;
    uint32_t edge : EDGE_BITS;                          /* to its cause */
    uint32_t depth : DEPTH_BITS;                        /* of it in its chain: how many items have a length, modulo 128 */
    uint32_t detail : 16;                               /* of WORK_hop and WORK_handled: how many ps of it are wires,
                                                           LONG_WIRES: many; of WORK_stream 1: out of HBM */
};

_Static_assert(WORKS <= 1 << WORK_BITS, "a work fits into its bits");
_Static_assert(EDGES <= 1 << EDGE_BITS, "an edge fits into its bits");
_Static_assert(sizeof(struct item) == 16, "four items are a cache line, and causes are followed without more");

/* The rest of an item, which is not needed to follow causes. */
struct item_about {
    uint64_t at;                                        /* where: place_at; of WORK_control a struct route, of WORK_hop
                                                           the last struct step, of WORK_handled the next one */
    struct subject who;
};

/* Where an item is: a resource (enum resource_kind) and its number. */
static inline uint64_t place_at(unsigned resource, uint64_t number)
{
    return (uint64_t)resource << 56 | number;
}

static inline unsigned place_resource(uint64_t at)
{
    return at >> 56;
}

static inline uint64_t place_number(uint64_t at)
{
    return at & ((UINT64_C(1) << 56) - 1);
}

extern struct item *items;                              /* item 0 is the beginning of the run */
extern struct item_about *items_about;
extern bool items_full;                                 /* a collection is worth it */
extern uint64_t items_broken;                           /* found to begin before their causes end: a bug */

/* Where the next items go: the places that the last collection did not mark. */
extern struct item_places {
    uint64_t free;                                      /* a bit for each place of 64 that is free; at least one is */
    uint32_t first;                                     /* of these 64 */
} item_places;

void items_begin(void);
void items_end(void);

/* Goes on to the next places of which one is free. Ends the run with a message if there are 2^32 items. Returns `place`, as
 * it is: nothing else needs to be kept around the call. */
uint32_t item_places_next(uint32_t place);

/* A new item: item_place, item_set, item_place_taken. */
static inline uint32_t item_place(void)
{
    return item_places.first + (uint32_t)__builtin_ctzll(item_places.free);
}

static inline uint32_t item_place_taken(uint32_t place)
{
    item_places.free &= item_places.free - 1;
    return __builtin_expect(item_places.free != 0, 1) ? place : item_places_next(place);
}

/* It begins at the end of its cause. */
static inline void item_set(uint32_t place, struct ref cause, uint64_t end_ps, enum work work, uint16_t detail, uint64_t at,
                            struct subject who)
{
    const struct item *before = &items[cause.item];
    unsigned depth = before->depth + (end_ps != before->end_ps);
    items_broken += end_ps < before->end_ps;
    items[place] = (struct item){end_ps, cause.item, work, cause.edge, depth & ((1 << DEPTH_BITS) - 1), detail};
    items_about[place] = (struct item_about){at, who};
}

static inline uint32_t item_detailed(struct ref cause, uint64_t end_ps, enum work work, uint16_t detail, uint64_t at,
                                     struct subject who)
{
    uint32_t place = item_place();
    item_set(place, cause, end_ps, work, detail, at, who);
    return item_place_taken(place);
}

static inline uint32_t item_new(struct ref cause, uint64_t end_ps, enum work work, uint64_t at, struct subject who)
{
    return item_detailed(cause, end_ps, work, 0, at, who);
}

static inline uint64_t item_begin_ps(const struct item *item)
{
    return items[item->cause].end_ps;
}

enum { LONG_WIRES = UINT16_MAX };                       /* the detail of this many ps and more: steps say how many */

/* A part of what a head does on its way: a node handles it, or it is on the wire of the link before that node. */
struct hop_part {
    uint64_t begin_ps, end_ps;
    const struct step *step;
    bool is_wire;
};

/* The parts of an item of WORK_hop or WORK_handled, the last one first:
 *     for (struct hop_part part = hop_parts_end(item); hop_part_before(&part, from_ps);) ...
 * hop_part_before returns false if there is nothing between from_ps and a part. */
static inline struct hop_part hop_parts_end(uint32_t item)
{
    return (struct hop_part){.begin_ps = items[item].end_ps, .step = (const struct step *)(uintptr_t)items_about[item].at,
                             .is_wire = items[item].work == WORK_handled};
}

bool hop_part_before(struct hop_part *part, uint64_t from_ps);

/* The reason of an item that is reached directly. A memory that feeds a delivery too slowly is a pseudo channel, or a channel
 * of an sram or a TCM. */
static inline uint8_t item_reason(const struct item *item)
{
    return item->work == WORK_stream && !item->detail ? REASON_channel : work_reasons[item->work];
}

/* Whether an item of no length hands on its own edge instead of the one that leads to it: if that is none, or the kernel's
 * own wait for something that waited for another reason. */
static inline bool edge_hands_on(uint8_t to, uint8_t own)
{
    return to == EDGE_direct || (to == EDGE_wait && own != EDGE_direct);
}

/* A collection keeps the items from which a path can go on, and those behind them:
 *     items_collect_begin(); for each of them: items_keep(item); then items_collect_end()
 * Most collections also keep all that the one before has kept, and follow no causes further than to these. */
void items_collect_begin(void);
void items_keep(uint32_t item);
void items_collect_end(void);

/* Whether the last collection has kept an item that was there before it. */
bool items_has_kept(uint32_t item);

#endif
