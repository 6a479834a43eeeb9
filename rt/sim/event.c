/* event.c: the event queue: a short sorted array of instants, the front, before a hierarchical timing wheel.
 *
 * The front has the soonest events, the wheel those from front.end_ps on. If few events are pending, as is mostly so,
 * all of them are in the front. When the front is full, its later half moves to the wheel; when it is empty, the first
 * slot of the wheel moves to it.
 *
 * The wheel takes times as numbers with digits of 6 bits. An event is in the level of the highest digit in which its
 * time differs from the wheel's, in the slot of that digit. So the soonest events are in the first occupied slot of the
 * lowest occupied level. If they do not fit into the front, they move to lower levels; a slot of level 0 is one time.
 *
 * Events of an instant or a slot are linked in place; nothing is allocated. Only the events of one round are sorted. */
#include "event.h"

#include <assert.h>
#include <string.h>

#include "base/stopwatch.h"
#include "common/fail.h"
#include "observer.h"

uint64_t now_ps;

static void list_remove(struct event **link, const struct event *event)
{
    for (; *link; link = &(*link)->next)
        if (*link == event) {
            *link = event->next;
            return;
        }
}

/* ---- the events of one round */

struct event *event_due;
uint64_t event_count;

static struct event *firing;                            /* the rest of the round that fires */

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

void event_fire_several(void)
{
    phase_enter(PHASE_queue);
    firing = sorted(event_due);
    event_due = NULL;
    for (struct event *event; (event = firing);) {
        firing = event->next;                           /* once it has fired, it may wait for something else */
        event_fire(event);
    }
}

/* ---- the wheel */

enum { DIGIT_BITS = 6, SLOTS = 1 << DIGIT_BITS, LEVELS = (64 + DIGIT_BITS - 1) / DIGIT_BITS };

static struct {
    uint64_t reached_ps;                                /* no event in the wheel is due before */
    uint32_t levels;                                    /* a bit for each level that is not empty */
    uint64_t occupied[LEVELS];                          /* a bit for each slot that is not empty */
    struct event *slots[LEVELS][SLOTS];
} wheel;

static unsigned wheel_level(uint64_t t_ps)
{
    return (63 - (unsigned)__builtin_clzll((t_ps ^ wheel.reached_ps) | 1)) / DIGIT_BITS;
}

static unsigned wheel_slot(uint64_t t_ps, unsigned level)
{
    return t_ps >> level * DIGIT_BITS & (SLOTS - 1);
}

static void wheel_add(struct event *event)
{
    unsigned level = wheel_level(event->t_ps), slot = wheel_slot(event->t_ps, level);
    event->next = wheel.slots[level][slot];
    wheel.slots[level][slot] = event;
    wheel.occupied[level] |= UINT64_C(1) << slot;
    wheel.levels |= 1u << level;
}

static void slot_emptied(unsigned level, unsigned slot)
{
    wheel.slots[level][slot] = NULL;
    wheel.occupied[level] &= ~(UINT64_C(1) << slot);
    if (!wheel.occupied[level])
        wheel.levels &= ~(1u << level);
}

static unsigned lowest_level(void)
{
    return (unsigned)__builtin_ctz(wheel.levels);
}

/* Takes the events of the first slot of the lowest level. No other event in the wheel is due before one of them. */
static struct event *first_slot_take(void)
{
    unsigned level = lowest_level(), slot = (unsigned)__builtin_ctzll(wheel.occupied[level]);
    struct event *events = wheel.slots[level][slot];
    slot_emptied(level, slot);
    return events;
}

/* The start of that slot, UINT64_MAX if the wheel is empty. */
static uint64_t first_slot_ps(void)
{
    if (!wheel.levels)
        return UINT64_MAX;
    unsigned level = lowest_level(), shift = level * DIGIT_BITS;
    uint64_t slot = (uint64_t)__builtin_ctzll(wheel.occupied[level]);
    return ((wheel.reached_ps >> shift & ~(uint64_t)(SLOTS - 1)) | slot) << shift;
}

static void wheel_remove(const struct event *event)
{
    unsigned level = wheel_level(event->t_ps), slot = wheel_slot(event->t_ps, level);
    list_remove(&wheel.slots[level][slot], event);
    if (!wheel.slots[level][slot])
        slot_emptied(level, slot);
}

/* ---- the front */

enum {
    ENOUGH = 8,                                         /* events for the front at a time */
    MANY = 16,                                          /* too many of one slot */
    FRONT = 24                                          /* room for instants: ENOUGH - 1 + MANY - 1, and some more */
};

struct instant {
    uint64_t t_ps;
    struct event *events;
};

static struct {
    struct instant *soonest;
    uint64_t end_ps;                                    /* the wheel has the events from this time on */
    struct instant instants[1 + FRONT];                 /* the soonest one last; the first one ends searches */
} front = {.soonest = front.instants, .end_ps = UINT64_MAX, .instants = {{.t_ps = UINT64_MAX}}};

static bool front_is_empty(void)
{
    return front.soonest == front.instants;
}

static void front_add(struct event *event)
{
    uint64_t t_ps = event->t_ps;
    struct instant *at = front.soonest;
    while (at->t_ps < t_ps)
        at--;
    if (at->t_ps == t_ps && at > front.instants) {
        event->next = at->events;
        at->events = event;
        return;
    }
    for (at = ++front.soonest; at[-1].t_ps < t_ps; at--)
        *at = at[-1];
    event->next = NULL;
    *at = (struct instant){t_ps, event};
}

static void front_remove(const struct event *event)
{
    struct instant *at = front.soonest;
    while (at->t_ps < event->t_ps)
        at--;
    list_remove(&at->events, event);
    if (!at->events && at > front.instants) {
        memmove(at, at + 1, (size_t)(front.soonest - at) * sizeof *at);
        front.soonest--;
    }
}

/* Moves the later half of the front, which is full, to the wheel. */
__attribute__((noinline)) static void front_spill(void)
{
    struct instant *last = &front.instants[FRONT / 2];
    front.end_ps = last->t_ps;
    if (!wheel.levels)
        wheel.reached_ps = now_ps;
    for (struct instant *at = &front.instants[1]; at <= last; at++)
        for (struct event *event = at->events, *next; event; event = next) {
            next = event->next;
            wheel_add(event);
        }
    memmove(&front.instants[1], last + 1, (FRONT - FRONT / 2) * sizeof *last);
    front.soonest -= FRONT / 2;
}

static void future_add(struct event *event)
{
    if (event->t_ps >= front.end_ps) {
        wheel_add(event);
        return;
    }
    front_add(event);
    if (front.soonest == &front.instants[FRONT])
        front_spill();
}

/* Moves the events of the first slot to lower levels. */
static void first_slot_spread(void)
{
    struct event *events = first_slot_take();
    wheel.reached_ps = events->t_ps;
    for (const struct event *event = events; event; event = event->next)
        if (event->t_ps < wheel.reached_ps)
            wheel.reached_ps = event->t_ps;
    for (struct event *next; events; events = next) {
        next = events->next;
        wheel_add(events);
    }
}

/* The number of events in the first slot of a level, MANY if there are more. Those of level 0 are one instant. */
static unsigned first_slot_count(unsigned level)
{
    const struct event *event = wheel.slots[level][(unsigned)__builtin_ctzll(wheel.occupied[level])];
    unsigned count = 1;
    while (level > 0 && count < MANY && (event = event->next))
        count++;
    return count;
}

/* Moves the events of the first slots of the wheel to the front, which is empty. Returns false if the wheel is empty. */
__attribute__((noinline)) static bool front_refill(void)
{
    struct event *slots[ENOUGH];
    unsigned level, count, taken = 0, total = 0;
    if (!wheel.levels)
        return false;
    while ((count = first_slot_count(level = lowest_level())) == MANY)
        first_slot_spread();
    wheel.reached_ps = first_slot_ps();
    do {
        slots[taken++] = first_slot_take();
        total += count;
    } while (total < ENOUGH && wheel.occupied[level] && (count = first_slot_count(level)) < MANY);
    while (taken)
        for (struct event *event = slots[--taken], *next; event; event = next) {
            next = event->next;
            front_add(event);
        }
    front.end_ps = first_slot_ps();
    return true;
}

/* ---- the queue */

void event_at(struct event *event, uint64_t t_ps)
{
    event->t_ps = t_ps;
    if (t_ps == now_ps) {
        event->next = event_due;
        event_due = event;
        return;
    }
    assert(t_ps > now_ps);
    future_add(event);
}

void event_cancel(struct event *event)
{
    if (event->t_ps > now_ps) {
        if (event->t_ps < front.end_ps)
            front_remove(event);
        else
            wheel_remove(event);
    } else if (event->t_ps == now_ps) {
        list_remove(&event_due, event);
        list_remove(&firing, event);
    }
}

_Noreturn void time_runs_out(void)
{
    run_failed("simulated time runs past 2^64 ps (213 days)");
}

bool event_next_instant(void)
{
    if (front_is_empty() && !front_refill())
        return false;
    now_ps = front.soonest->t_ps;
    event_due = front.soonest->events;
    front.soonest--;
    return true;
}

/* ---- all events of later times */

static bool of_kernel(const struct event *event)
{
    return order_class(event->order) == CLASS_KERNEL;
}

/* Empties the queue of later times. Returns its events. */
static struct event *future_take(void)
{
    struct event *all = NULL;
    while (!front_is_empty() || front_refill()) {
        for (struct event *event = front.soonest->events, *next; event; event = next) {
            next = event->next;
            event->next = all;
            all = event;
        }
        front.soonest--;
    }
    return all;
}

size_t event_waiting(uint64_t *kernel_ps)
{
    size_t count = 0;
    *kernel_ps = UINT64_MAX;
    for (struct event *event = future_take(), *next; event; event = next) {
        next = event->next;
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
    for (struct event *event = future_take(), *next; event; event = next) {
        next = event->next;
        if (of_kernel(event) || !drop(event_rank(event)))
            future_add(event);
    }
}

void event_skip(uint64_t d_ps)
{
    struct event *all = future_take();
    now_ps += d_ps;
    for (struct event *event = all, *next; event; event = next) {
        next = event->next;
        if (!of_kernel(event))
            event->t_ps = time_after(event->t_ps, d_ps);
        future_add(event);
    }
}

void event_restart(uint64_t t_ps)
{
    assert(front_is_empty() && !wheel.levels);
    now_ps = t_ps;
}

void event_reset(void)
{
    future_take();
    event_due = firing = NULL;
    now_ps = event_count = 0;
}
