/* event.c: the event queue: a ladder queue with one rung.
 *
 *     front     a short sorted array: the soonest instants, up to front.last_ps
 *     rung      slots of equal length, unsorted: the events after these
 *     top       a list, unsorted: the events after the last slot
 *
 * If few events are pending, as is mostly so, all of them are in the front. When the front is full, its later half moves
 * to the rung. When it is empty, the first slot of the rung that has events moves to it. When the rung is empty, too, it
 * begins again where the top does. The length of a slot follows how many instants its slots turn out to have.
 *
 * Events of an instant, a slot or the top are linked in place; nothing is allocated. Only the events of one round are
 * sorted. */
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

struct event *event_firing;

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

enum { FRONT_OF_RUN = 3 };

/* Inserts an event into a run if it belongs behind one of the first ones. It is neither before the first nor after the
 * last of the run. */
static __attribute__((noinline)) bool run_insert(struct event *first, struct event *event)
{
    struct event *behind = first;
    for (unsigned i = 1; i < FRONT_OF_RUN && before(behind->next, event); i++)
        behind = behind->next;
    if (before(behind->next, event))
        return false;
    event->next = behind->next;
    behind->next = event;
    return true;
}

/* Takes the longest run from the front of a list and leaves the rest. Each event of it belongs behind those taken so far
 * or among the first FRONT_OF_RUN of them, as all events of most rounds do: the parts of a machine act in the order of their
 * ranks, apart from neighbours, and each puts its event in at the head of the list. Returns the run in rising order. */
static inline __attribute__((always_inline)) struct event *run_take(struct event **rest)
{
    struct event *first = *rest, *last = first, *event = first->next;
    while (event) {
        struct event *next = event->next;
        if (before(event, first)) {
            event->next = first;
            first = event;
        } else if (before(last, event)) {
            last->next = event;
            last = event;
        } else if (!run_insert(first, event)) {
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
    event_firing = sorted(event_due);
    event_due = NULL;
    event_fire_rest();
}

void event_fire_rest(void)
{
    for (struct event *event; (event = event_firing);) {
        event_firing = event->next;                     /* once it has fired, it may wait for something else */
        event_fire(event);
    }
}

/* ---- rung and top */

enum {
    SLOTS = 512,
    WORDS = SLOTS / 64,
    FEW = 3,                                            /* if a slot has fewer instants, on average, it is too short */
    MANY = 10,                                          /* if it has more, it is too long */
    NARROWER = 2                                        /* by how much the shift falls when a slot overflows the front */
};

static struct {
    uint64_t start_ps;                                  /* of the first slot; no event after the front is due before */
    uint64_t occupied[WORDS];                           /* a bit for each slot that is not empty */
    uint32_t words;                                     /* a bit for each word that is not 0 */
    unsigned shift;                                     /* a slot is 2^shift ps long */
    struct event *slots[SLOTS];
    uint32_t refills;                                   /* of the front since it began, and the instants that came so */
    uint64_t instants;
    struct event *top;
} rung;

static void later_add(struct event *event)
{
    uint64_t slot = (event->t_ps - rung.start_ps) >> rung.shift;
    struct event **list = &rung.top;
    if (slot < SLOTS) {
        list = &rung.slots[slot];
        rung.occupied[slot / 64] |= UINT64_C(1) << slot % 64;
        rung.words |= 1u << slot / 64;
    }
    event->next = *list;
    *list = event;
}

static void slot_emptied(unsigned slot)
{
    rung.slots[slot] = NULL;
    rung.occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (!rung.occupied[slot / 64])
        rung.words &= ~(1u << slot / 64);
}

static unsigned first_slot(void)
{
    unsigned word = (unsigned)__builtin_ctz(rung.words);
    return word * 64 + (unsigned)__builtin_ctzll(rung.occupied[word]);
}

static void later_remove(const struct event *event)
{
    uint64_t slot = (event->t_ps - rung.start_ps) >> rung.shift;
    if (slot >= SLOTS) {
        list_remove(&rung.top, event);
        return;
    }
    list_remove(&rung.slots[slot], event);
    if (!rung.slots[slot])
        slot_emptied((unsigned)slot);
}

/* Begins the rung again. All later events move to where they are now. */
static void rung_begin(uint64_t start_ps, unsigned shift)
{
    struct event *events = rung.top;
    while (rung.words) {
        unsigned slot = first_slot();
        for (struct event *event = rung.slots[slot], *next; event; event = next) {
            next = event->next;
            event->next = events;
            events = event;
        }
        slot_emptied(slot);
    }
    rung.top = NULL;
    rung.start_ps = start_ps;
    rung.shift = shift;
    rung.refills = 0;
    rung.instants = 0;
    for (struct event *next; events; events = next) {
        next = events->next;
        later_add(events);
    }
}

/* Begins the rung, which is empty, where the top does. */
static void rung_follow(void)
{
    uint64_t first_ps = UINT64_MAX;
    unsigned shift = rung.shift;
    if (rung.instants < (uint64_t)FEW * rung.refills)
        shift++;
    else if (rung.instants > (uint64_t)MANY * rung.refills && shift > 0)
        shift--;
    for (const struct event *event = rung.top; event; event = event->next)
        first_ps = event->t_ps < first_ps ? event->t_ps : first_ps;
    rung_begin(first_ps, shift);
}

/* ---- the front */

enum { FRONT = 24 };                                    /* room for instants */

static struct {
    uint64_t last_ps;                                   /* it has all events up to this time */
    struct instant instants[1 + FRONT];                 /* the soonest one last; the first one ends searches */
} front = {.last_ps = UINT64_MAX, .instants = {{.t_ps = UINT64_MAX}}};

struct instant *event_soonest = front.instants;

static void front_add(struct event *event)
{
    uint64_t t_ps = event->t_ps;
    struct instant *at = event_soonest;
    while (at->t_ps < t_ps)
        at--;
    if (at->t_ps == t_ps && at > front.instants) {
        event->next = at->events;
        at->events = event;
        return;
    }
    for (at = ++event_soonest; at[-1].t_ps < t_ps; at--)
        *at = at[-1];
    event->next = NULL;
    *at = (struct instant){t_ps, event};
}

static void front_remove(const struct event *event)
{
    struct instant *at = event_soonest;
    while (at->t_ps < event->t_ps)
        at--;
    list_remove(&at->events, event);
    if (!at->events && at > front.instants) {
        memmove(at, at + 1, (size_t)(event_soonest - at) * sizeof *at);
        event_soonest--;
    }
}

/* Moves the later half of the front, which is full, to the rung. */
__attribute__((noinline)) static void front_spill(void)
{
    struct instant *last = &front.instants[FRONT / 2];
    if (!rung.words && !rung.top)
        rung_begin(now_ps, 62 - (unsigned)__builtin_clzll((last->t_ps - event_soonest->t_ps) | 2));
    front.last_ps = last->t_ps - 1;
    for (struct instant *at = &front.instants[1]; at <= last; at++)
        for (struct event *event = at->events, *next; event; event = next) {
            next = event->next;
            later_add(event);
        }
    memmove(&front.instants[1], last + 1, (FRONT - FRONT / 2) * sizeof *last);
    event_soonest -= FRONT / 2;
}

static void future_add(struct event *event)
{
    if (event->t_ps > front.last_ps) {
        later_add(event);
        return;
    }
    front_add(event);
    if (event_soonest == &front.instants[FRONT])
        front_spill();
}

bool front_refill(void)
{
    front.last_ps = UINT64_MAX;
    if (!rung.words) {
        if (!rung.top)
            return false;
        rung_follow();
    }
    unsigned slot = first_slot();
    uint64_t first_ps = rung.start_ps + ((uint64_t)slot << rung.shift);
    uint64_t last_ps = first_ps + (UINT64_C(1) << rung.shift) - 1;
    struct event *events = rung.slots[slot];
    slot_emptied(slot);
    if (rung.words || rung.top)                         /* otherwise last_ps may have wrapped */
        front.last_ps = last_ps;
    for (struct event *next; events; events = next) {
        next = events->next;
        future_add(events);
    }
    rung.refills++;
    rung.instants += (uint64_t)(event_soonest - front.instants);
    if (front.last_ps < last_ps && rung.shift > 0)
        rung_begin(first_ps, rung.shift > NARROWER ? rung.shift - NARROWER : 0);
    return true;
}

/* ---- the queue */

static inline void event_add(struct event *event, uint64_t t_ps)
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

static __attribute__((cold, noinline)) void event_add_watched(struct event *event, uint64_t t_ps)
{
    tell_event_set_due(event, t_ps);
    event_add(event, t_ps);
}

void event_at(struct event *event, uint64_t t_ps)
{
    if (is_observed(MOMENT_event_set_due))
        event_add_watched(event, t_ps);
    else
        event_add(event, t_ps);
}

void event_cancel(struct event *event)
{
    if (event->t_ps > now_ps) {
        if (event->t_ps <= front.last_ps)
            front_remove(event);
        else
            later_remove(event);
    } else if (event->t_ps == now_ps) {
        list_remove(&event_due, event);
        list_remove(&event_firing, event);
    }
}

/* ---- events that were put off */

static void firing_add(struct event *event)
{
    struct event **link = &event_firing;
    while (*link && before(*link, event))
        link = &(*link)->next;
    event->next = *link;
    *link = event;
}

void event_catch_up(struct event *event, const struct event *by)
{
    uint64_t real_now_ps = now_ps;
    while (event->t_ps < now_ps || (event->t_ps == now_ps && !(by && before(by, event)))) {
        now_ps = event->t_ps;
        event_fire(event);
        bool due_again = event->t_ps > now_ps;
        if (due_again)
            event_cancel(event);
        now_ps = real_now_ps;
        if (!due_again)
            return;
    }
    if (event->t_ps > now_ps)
        event_at(event, event->t_ps);
    else
        firing_add(event);
}

_Noreturn void time_runs_out(void)
{
    run_failed("simulated time runs past 2^64 ps (213 days)");
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
    while (event_soonest->events || front_refill()) {
        for (struct event *event = event_soonest->events, *next; event; event = next) {
            next = event->next;
            event->next = all;
            all = event;
        }
        event_soonest--;
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

static void list_each(const struct event *event, void (*each)(const struct event *event))
{
    for (; event; event = event->next)
        each(event);
}

void event_each(void (*each)(const struct event *event))
{
    list_each(event_due, each);
    list_each(event_firing, each);
    for (const struct instant *at = event_soonest; at > front.instants; at--)
        list_each(at->events, each);
    for (unsigned slot = 0; rung.words && slot < SLOTS; slot++)
        list_each(rung.slots[slot], each);
    list_each(rung.top, each);
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

void event_pass(uint64_t t_ps)
{
    assert(!event_due && t_ps >= now_ps && t_ps < event_next_ps());
    now_ps = t_ps;
}

void event_restart(uint64_t t_ps)
{
    assert(!event_soonest->events && !rung.words && !rung.top);
    now_ps = t_ps;
}

void event_reset(void)
{
    future_take();
    event_due = event_firing = NULL;
    now_ps = event_count = 0;
}
