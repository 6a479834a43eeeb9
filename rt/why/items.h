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

extern const char *const reason_names[REASONS], *const reason_meanings[REASONS], *const edge_names[EDGES],
    *const work_names[WORKS], *const stage_names[];

enum { NO_TILE = UINT32_MAX, NO_STAGE = UINT8_MAX };

/* For whom something is done. */
struct subject {
    uint32_t kernel;                                    /* its serial number over the run; 0: the host */
    uint32_t number;                                    /* of the command in its kernel; of the host's request */
    uint32_t tile;                                      /* NO_TILE: none */
    uint32_t site;                                      /* of the call in the source (sites.h); 0: not known */
    uint8_t stage;                                      /* enum stage_kind, NO_STAGE: none */
};

/* The end of an item, and how it is waited for. */
struct ref {
    uint32_t item;
    uint8_t edge;
};

struct item {
    uint64_t end_ps;
    uint64_t at;                                        /* where: place_at; of WORK_control a struct route */
    uint32_t cause, kernel, number, tile, site;         /* cause: the item whose end is its begin */
    uint8_t work, edge, stage;                          /* edge: to its cause */
    bool marked;
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
extern uint32_t items_live;                             /* in use */
extern uint32_t items_wanted;                           /* how many may be in use before a collection is worth it */
extern uint64_t items_broken;                           /* found to begin before their causes end: a bug */

void items_begin(void);
void items_end(void);

/* A new item, which begins at the end of its cause. Ends the run with a message if there are 2^32. */
uint32_t item_new(struct ref cause, uint64_t end_ps, enum work work, uint64_t at, const struct subject *who);

static inline uint64_t item_begin_ps(const struct item *item)
{
    return items[item->cause].end_ps;
}

static inline struct subject subject_of(const struct item *item)
{
    return (struct subject){item->kernel, item->number, item->tile, item->site, item->stage};
}

/* A collection keeps the items from which a path can go on, and those behind them:
 *     for each of them: items_keep(item); then items_collect() */
void items_keep(uint32_t item);
void items_collect(void);

#endif
