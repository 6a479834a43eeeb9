/* items.c: the pool of items: arrays, collected by marking. Nothing is swept: new items take the places without a mark. */
#include "items.h"

#include <string.h>

#include "common/array.h"
#include "common/fail.h"
#include "machine/fabric.h"

const uint8_t edge_reasons[EDGES] = {
#define EDGE(name, reason, meaning) [EDGE_##name] = REASON_##reason,
#include "reasons.def"
};

const uint8_t work_reasons[WORKS] = {
#define WORK(name, reason, meaning) [WORK_##name] = REASON_##reason,
#include "reasons.def"
};

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

_Static_assert(sizeof stage_names / sizeof *stage_names <= NO_STAGE, "a stage fits into its bits");

enum { PLACES = 64, FIRST_ITEMS = 1 << 14, FACTOR = 3 };  /* PLACES: those of one word of marks */

struct item *items;
struct item_about *items_about;
struct item_places item_places;
bool items_full;
uint64_t items_broken;

static struct {
    size_t room;                                        /* of items; a multiple of PLACES */
    uint64_t *marks;                                    /* a bit for each place that the last collection kept */
    size_t marks_room;
    bool forgets;                                       /* a collection marks anew what it keeps */
} pool;

/* Makes room for as many items again, or for `wanted`. */
static void pool_grow(size_t wanted)
{
    size_t before = pool.room / PLACES, most = (UINT32_MAX / PLACES) + 1;
    size_t words = wanted > 2 * pool.room ? (wanted + PLACES - 1) / PLACES : 2 * before;
    if (before == most)
        run_failed("--why: the critical path has more than 2^32 segments");
    words = words < most ? words : most;
    items = array_grown(items, &(size_t){0}, words * PLACES, sizeof *items);
    items_about = array_grown(items_about, &(size_t){0}, words * PLACES, sizeof *items_about);
    pool.marks = array_grown(pool.marks, &pool.marks_room, words, sizeof *pool.marks);
    memset(pool.marks + before, 0, (words - before) * sizeof *pool.marks);
    pool.room = words * PLACES;
}

static bool places_at(size_t first)
{
    item_places = (struct item_places){~pool.marks[first / PLACES], (uint32_t)first};
    return item_places.free;
}

void items_begin(void)
{
    items_end();
    pool_grow(FIRST_ITEMS);
    items[0] = (struct item){.work = WORK_start};
    items_about[0] = (struct item_about){.who = {.tile = NO_TILE, .stage = NO_STAGE}};
    pool.marks[0] = 1;
    places_at(0);
}

void items_end(void)
{
    items = array_freed(items);
    items_about = array_freed(items_about);
    pool.marks = array_freed(pool.marks);
    pool.room = pool.marks_room = 0;
    items_full = pool.forgets = false;
    items_broken = 0;
}

uint32_t item_places_next(uint32_t place)
{
    size_t first = item_places.first;
    do {
        first += PLACES;
        items_full |= first >= pool.room - pool.room / 8;     /* the rest is for the instant that ends first */
        if (first == pool.room)
            pool_grow(0);
    } while (!places_at(first));
    return place;
}

bool hop_part_before(struct hop_part *part, uint64_t from_ps)
{
    if (part->begin_ps == from_ps)
        return false;
    part->step -= part->is_wire;
    part->is_wire = !part->is_wire;
    part->end_ps = part->begin_ps;
    const struct link_target *target = step_target(part->step);
    uint64_t ps = part->is_wire ? target->latency_ps : target_overhead_ps(target);
    part->begin_ps -= ps < part->end_ps - from_ps ? ps : part->end_ps - from_ps;
    return true;
}

/* ---- collection: by generations. The old one, of marked items, is looked through when it has half of the places. */

void items_collect_begin(void)
{
    if (pool.forgets)
        memset(pool.marks, 0, pool.room / PLACES * sizeof *pool.marks);
    pool.marks[0] |= 1;
}

/* The ways back that are under way. They are followed in turn, so that their items are fetched at the same time. */
enum { WAYS = 16 };

static struct {
    uint32_t item[WAYS];
    unsigned count;
} ways;

/* A step of each of them. A way ends at an item that has a mark. */
static void ways_advance(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ways.count; i++) {
        uint32_t item = ways.item[i];
        uint64_t *mark = &pool.marks[item / PLACES], bit = UINT64_C(1) << item % PLACES;
        if (*mark & bit)
            continue;
        *mark |= bit;
        ways.item[count] = items[item].cause;
        __builtin_prefetch(&items[ways.item[count++]]);
    }
    ways.count = count;
}

void items_keep(uint32_t item)
{
    __builtin_prefetch(&items[item]);
    ways.item[ways.count++] = item;
    while (ways.count == WAYS)
        ways_advance();
}

bool items_has_kept(uint32_t item)
{
    return pool.marks[item / PLACES] >> item % PLACES & 1;
}

void items_collect_end(void)
{
    size_t kept = 0;
    while (ways.count)
        ways_advance();
    for (size_t word = 0; word < pool.room / PLACES; word++)
        kept += (size_t)__builtin_popcountll(pool.marks[word]);
    if (pool.forgets && FACTOR * kept > pool.room)
        pool_grow(FACTOR * kept);
    pool.forgets = 2 * kept > pool.room;
    items_full = false;
    if (!places_at(0))
        item_places_next(0);
}
