/* event.c: the event queue.
 *
 * Time is written in digits of 12 bits. An event waits in the level of the highest digit in which its time differs from
 * the queue's, in the slot of its digit there: so the next one is in the first slot of the lowest level that holds
 * something. When the queue's time reaches a slot of a higher level, its events go down to lower ones; a slot of level
 * 0 is one time. Events are linked in place, nothing is allocated; only those of one round are sorted, by their key. */
#include "event.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "observer.h"
#include "base/stopwatch.h"
#include "common/diag.h"

uint64_t now_ps;
static uint64_t fired;

/* ---- what is due in one round */

struct event *event_due;

static void due_add(struct event *event)
{
    event->next = event_due;
    event_due = event;
}

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

/* Takes as many as follow one another, upwards or downwards: most rounds are one such run. */
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

/* Merges runs as a binary counter adds: place i holds 2^i of them, or none. */
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

/* ---- what is due later */

enum { DIGIT_BITS = 12, SLOTS = 1 << DIGIT_BITS, WORDS = SLOTS / 64, LEVELS = 6 };

static struct level {
    uint64_t words;                                     /* a bit per word of the next that is not 0 */
    uint64_t occupied[WORDS];                           /* a bit per slot that holds something */
    struct event *slots[SLOTS];
} levels[LEVELS];

static uint64_t reached_ps;                             /* the queue's time: nothing in it is due before */

static void future_add(struct event *event)
{
    uint64_t differs = event->t_ps ^ reached_ps;
    unsigned number = differs >> DIGIT_BITS == 0 ? 0 : (63 - (unsigned)__builtin_clzll(differs)) / DIGIT_BITS;
    struct level *level = &levels[number];
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

/* ---- */

void event_at(struct event *event, uint64_t t_ps)
{
    assert(t_ps >= now_ps);
    event->t_ps = t_ps;
    if (t_ps == now_ps)
        due_add(event);
    else
        future_add(event);
}

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

/* The events of a slot go down to lower levels, those that were cancelled away. */
static void spread(struct event *events, unsigned number)
{
    reached_ps = events->t_ps >> number * DIGIT_BITS << number * DIGIT_BITS;
    for (struct event *next; events; events = next) {
        next = events->next;
        if (events->fire != nothing)
            future_add(events);
    }
}

bool event_next_instant(void)
{
    for (unsigned number = 0; number < LEVELS;) {
        if (!levels[number].words) {
            number++;
            continue;
        }
        struct event *events = first_slot_take(&levels[number]);
        while (events && events->fire == nothing)
            events = events->next;
        if (events && events->next && number > 0)
            spread(events, number);
        else if (events) {
            event_due = events;
            now_ps = reached_ps = events->t_ps;
            return true;
        }
        number = 0;
    }
    reached_ps = now_ps;
    return false;
}

/* Fires events that somebody watches. */
static void fire_watched(struct event *event)
{
    for (struct event *next; event; event = next) {
        next = event->next;
        fired++;
        observe_event_fires(event);
        event->fire(event);
    }
}

void event_fire_due(void)
{
    struct event *event = event_due;
    if (event->next) {
        phase_enter(PHASE_queue);
        event = sorted(event);
    }
    event_due = NULL;
    if (is_observed(MOMENT_event_fires)) {
        fire_watched(event);
        return;
    }
    for (struct event *next; event; event = next) {
        next = event->next;                             /* it may wait for something else when it has fired */
        fired++;
        event->fire(event);
    }
}

/* ---- all that waits */

static bool of_kernel(const struct event *event)
{
    return order_class(event->order) == CLASS_KERNEL;
}

/* Takes all that waits out of the queue. */
static struct event *waiting_take(void)
{
    struct event *all = NULL;
    for (struct level *level = levels; level < levels + LEVELS; level++)
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
    reached_ps = now_ps;
    for (struct event *event = all, *next; event; event = next) {
        next = event->next;
        if (!of_kernel(event))
            event->t_ps = time_after(event->t_ps, d_ps);
        future_add(event);
    }
}

void event_restart(uint64_t t_ps)
{
    waiting_take();                                     /* those that were cancelled */
    now_ps = reached_ps = t_ps;
}

uint64_t event_fired(void)
{
    return fired;
}

void event_reset(void)
{
    for (struct level *level = levels; level < levels + LEVELS; level++)
        if (level->words)
            *level = (struct level){0};
    event_due = NULL;
    reached_ps = now_ps = fired = 0;
}

const struct handler event_handlers[] = {
    HANDLER(nothing, "cancelled"),
    {0}};
