/* items.c: the pool of items: an array with a free list, and its collection by mark and sweep. */
#include "items.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/fail.h"

const char *const reason_names[REASONS] = {
#define REASON(name, meaning) #name,
#include "reasons.def"
};

const char *const reason_meanings[REASONS] = {
#define REASON(name, meaning) meaning,
#include "reasons.def"
};

const char *const edge_names[EDGES] = {
#define EDGE(name, reason, meaning) #name,
#include "reasons.def"
};

const char *const work_names[WORKS] = {
#define WORK(name, reason, meaning) #name,
#include "reasons.def"
};

const char *const stage_names[] = {
#define STAGE(name, part, engine, busy) #name,
#include "kb/stages.def"
#undef STAGE
};

enum { FIRST_ITEMS = 1 << 16 };

struct item *items;
uint32_t items_live, items_wanted;
uint64_t items_broken;

static struct {
    size_t count, room;                                 /* of the array */
    uint32_t first;                                     /* of the free ones, linked by `cause`; 0: there is none */
} pool;

void items_begin(void)
{
    items_end();
    items = array_grown(NULL, &pool.room, FIRST_ITEMS, sizeof *items);
    items[0] = (struct item){.work = WORK_start, .tile = NO_TILE, .stage = NO_STAGE};
    pool.count = items_live = 1;
    items_wanted = FIRST_ITEMS;
}

void items_end(void)
{
    items = array_freed(items);
    pool.count = pool.room = pool.first = 0;
    items_live = 0;
    items_broken = 0;
}

static uint32_t place_new(void)
{
    uint32_t place = pool.first;
    if (place) {
        pool.first = items[place].cause;
        return place;
    }
    if (pool.count == UINT32_MAX)
        run_failed("--why: the critical path has more than 2^32 segments");
    if (pool.count == pool.room)
        items = array_grown(items, &pool.room, pool.count + 1, sizeof *items);
    return (uint32_t)pool.count++;
}

uint32_t item_new(struct ref cause, uint64_t end_ps, enum work work, uint64_t at, const struct subject *who)
{
    uint32_t place = place_new();
    items_broken += end_ps < items[cause.item].end_ps;
    items_live++;
    items[place] = (struct item){.end_ps = end_ps, .at = at, .cause = cause.item, .kernel = who->kernel,
                                 .number = who->number, .tile = who->tile, .site = who->site, .work = work,
                                 .edge = cause.edge, .stage = who->stage};
    return place;
}

/* ---- collection */

void items_keep(uint32_t item)
{
    for (; !items[item].marked && item; item = items[item].cause)
        items[item].marked = true;
}

void items_collect(void)
{
    pool.first = 0;
    items_live = 1;
    for (size_t place = pool.count; place-- > 1;)
        if (items[place].marked) {
            items[place].marked = false;
            items_live++;
        } else {
            items[place].cause = pool.first;
            pool.first = (uint32_t)place;
        }
    items_wanted = items_live < FIRST_ITEMS / 4 ? FIRST_ITEMS : items_live < UINT32_MAX / 4 ? 4 * items_live : UINT32_MAX;
}
