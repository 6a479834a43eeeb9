/* event.c: the event queue, a hierarchical timing wheel.
 *
 * Times are numbers with digits of 12 bits. An event is in the level of the highest digit in which its time differs
 * from the queue's time, in the slot of that digit. So the next event is in the first occupied slot of the lowest
 * occupied level. When the queue's time reaches a slot of a higher level, the events of the slot move to lower levels;
 * a slot of level 0 is one time. Events are linked in place, nothing is allocated. Only the events of one round are
 * sorted. */
#include "event.h"

#include <assert.h>

#include "base/stopwatch.h"
#include "common/fail.h"
#include "observer.h"

uint64_t now_ps;

/* ---- the events of one round */

struct event *event_due;

static bool before(const struct event *a, const struct event *b)
{
    return a->order != b->order ? a->order < b->order : a->key < b->key;
}

static struct event *merged(struct event *a, struct event *b)
{
    struct event *first, **link = &first;
    while (a && b) {
        struct event **least = before(a, b) ? &a : &b;
        *link = *least;
        link = &(*least)->next;
        *least = *link;
    }
    *link = a ? a : b;
    return first;
}

/* Takes the longest run from the front of a list, in rising or in falling order, and leaves the rest. The events of
 * most rounds are one run. Returns the run in rising order. */
static struct event *run_take(struct event **rest)
{
    struct event *first = *rest, *last = first, *event = first->next;
    while (event) {
        struct event *next = event->next;
        if (before(last, event)) {
            last->next = event;
            last = event;
        } else if (before(event, first)) {
            event->next = first;
            first = event;
        } else {
            break;
        }
        event = next;
    }
    last->next = NULL;
    *rest = event;
    return first;
}

/* Merges runs as a binary counter counts: places[i] holds 2^i of them, or none. */
static struct event *all_merged(struct event *run, struct event *rest)
{
    struct event *places[64], *all = NULL;
    unsigned used = 0;
    for (; run; run = rest ? run_take(&rest) : NULL) {
        unsigned place = 0;
        for (; place < used && places[place]; place++) {
            run = merged(places[place], run);
            places[place] = NULL;
        }
        used += place == used;
        places[place] = run;
    }
    for (unsigned place = 0; place < used; place++)
        all = merged(all, places[place]);
    return all;
}

static struct event *sorted(struct event *list)
{
    struct event *run = run_take(&list);
    return list ? all_merged(run, list) : run;
}

/* ---- the events of later times */

enum { DIGIT_BITS = 12, SLOTS = 1 << DIGIT_BITS, WORDS = SLOTS / 64, LEVELS = 6 };

struct level {
    uint64_t words;                                     /* a bit for each word of `occupied` that is not 0 */
    uint64_t occupied[WORDS];                           /* a bit for each slot that is not empty */
    struct event *slots[SLOTS];
};

static struct {
    struct level levels[LEVELS];
    uint64_t reached_ps;                                /* the queue's time: no event in it is due before */
    uint64_t fired;                                     /* events so far */
} wheel;

static void future_add(struct event *event)
{
    uint64_t differs = event->t_ps ^ wheel.reached_ps;
    unsigned number = differs >> DIGIT_BITS == 0 ? 0 : (63 - (unsigned)__builtin_clzll(differs)) / DIGIT_BITS;
    struct level *level = &wheel.levels[number];
    unsigned slot = event->t_ps >> number * DIGIT_BITS & (SLOTS - 1);
    event->next = level->slots[slot];
    level->slots[slot] = event;
    level->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
    level->words |= UINT64_C(1) << slot / 64;
}

static struct event *first_slot_take(struct level *level)
{
    unsigned word = (unsigned)__builtin_ctzll(level->words);
    unsigned slot = word * 64 + (unsigned)__builtin_ctzll(level->occupied[word]);
    level->occupied[word] &= level->occupied[word] - 1;
    if (!level->occupied[word])
        level->words &= level->words - 1;
    struct event *events = level->slots[slot];
    level->slots[slot] = NULL;
    return events;
}

void event_at(struct event *event, uint64_t t_ps)
{
    assert(t_ps >= now_ps);
    event->t_ps = t_ps;
    if (t_ps != now_ps) {
        future_add(event);
        return;
    }
    event->next = event_due;
    event_due = event;
}

/* The handler of a cancelled event. */
static void nothing(struct event *event)
{
    (void)event;
}

void event_cancel(struct event *event)
{
    event->fire = nothing;
}

_Noreturn void time_runs_out(void)
{
    run_failed("simulated time runs past 2^64 ps (213 days)");
}

/* Moves the events of a slot to lower levels and removes cancelled ones. */
static void spread(struct event *events, unsigned number)
{
    wheel.reached_ps = events->t_ps >> number * DIGIT_BITS << number * DIGIT_BITS;
    for (struct event *next; events; events = next) {
        next = events->next;
        if (events->fire != nothing)
            future_add(events);
    }
}

bool event_next_instant(void)
{
    for (unsigned number = 0; number < LEVELS;) {
        if (!wheel.levels[number].words) {
            number++;
            continue;
        }
        struct event *events = first_slot_take(&wheel.levels[number]);
        while (events && events->fire == nothing)
            events = events->next;
        if (events && events->next && number > 0)
            spread(events, number);
        else if (events) {
            event_due = events;
            now_ps = wheel.reached_ps = events->t_ps;
            return true;
        }
        number = 0;
    }
    wheel.reached_ps = now_ps;
    return false;
}

void event_fire_due(void)
{
    struct event *event = event_due;
    if (event->next) {
        phase_enter(PHASE_queue);
        event = sorted(event);
    }
    event_due = NULL;
    bool watched = is_observed(MOMENT_event_fires);
    for (struct event *next; event; event = next) {
        next = event->next;                             /* once it has fired, it may wait for something else */
        wheel.fired++;
        if (watched)
            observe_event_fires(event);
        event->fire(event);
    }
}

/* ---- all events of later times */

static bool of_kernel(const struct event *event)
{
    return order_class(event->order) == CLASS_KERNEL;
}

/* Removes all events of later times from the queue and returns them. */
static struct event *waiting_take(void)
{
    struct event *all = NULL;
    for (struct level *level = wheel.levels; level < wheel.levels + LEVELS; level++)
        while (level->words)
            for (struct event *event = first_slot_take(level), *next; event; event = next) {
                next = event->next;
                event->next = all;
                all = event;
            }
    return all;
}

size_t event_waiting(uint64_t *kernel_ps)
{
    size_t count = 0;
    *kernel_ps = UINT64_MAX;
    for (struct event *event = waiting_take(), *next; event; event = next) {
        next = event->next;
        if (event->fire == nothing)
            continue;
        future_add(event);
        if (!of_kernel(event))
            count++;
        else if (event->t_ps < *kernel_ps)
            *kernel_ps = event->t_ps;
    }
    return count;
}

void event_drop(bool (*drop)(uint32_t rank))
{
    for (struct event *event = waiting_take(), *next; event; event = next) {
        next = event->next;
        if (of_kernel(event) || !drop(event_rank(event)))
            future_add(event);
    }
}

void event_skip(uint64_t d_ps)
{
    struct event *all = waiting_take();
    now_ps += d_ps;
    wheel.reached_ps = now_ps;
    for (struct event *event = all, *next; event; event = next) {
        next = event->next;
        if (!of_kernel(event))
            event->t_ps = time_after(event->t_ps, d_ps);
        future_add(event);
    }
}

void event_restart(uint64_t t_ps)
{
    waiting_take();                                     /* only cancelled ones */
    now_ps = wheel.reached_ps = t_ps;
}

uint64_t event_fired(void)
{
    return wheel.fired;
}

void event_reset(void)
{
    for (struct level *level = wheel.levels; level < wheel.levels + LEVELS; level++)
        if (level->words)
            *level = (struct level){0};
    event_due = NULL;
    wheel.reached_ps = now_ps = wheel.fired = 0;
}

const struct handler event_handlers[] = {
    HANDLER(nothing, "cancelled"),
    {0}};
