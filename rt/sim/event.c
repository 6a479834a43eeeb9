/* event.c: the event queue: a ladder queue with two rungs.
 *
 *     front     a short sorted array: the soonest instants, up to front.last_ps
 *     near      slots of equal length, unsorted: the events after these
 *     far       likewise, of longer slots: the events after the last slot of `near`, if they are many
 *     top       a list, unsorted: the events after the last slots
 *
 * If few events are pending, as is mostly so, all of them are in the front. When the front is full, its later half moves
 * to `near`. When it is empty, the first slot of `near` that has events moves to it. When `near` is empty, too, it
 * begins again where the top does or, if tens of thousands of events are pending, in the first slot of `far`. The length of
 * a slot of `near` follows how many instants its slots turn out to have.
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

/* The last of the first events of a list that are in order. */
static inline struct event *order_end(struct event *last)
{
    for (struct event *event; (event = last->next) && before(last, event);)
        last = event;
    return last;
}

/* Takes the longest run from the front of a list and leaves the rest. Each event of it belongs behind those taken so far
 * or among the first FRONT_OF_RUN of them, as all events of most rounds do: the parts of a machine act in the order of their
 * ranks, apart from neighbours, and each puts its event in at the head of the list. Returns the run in rising order. */
static inline __attribute__((always_inline)) struct event *run_take(struct event **rest)
{
    struct event *first = *rest, *last = first, *event;
    while ((event = (last = order_end(last))->next)) {
        last->next = event->next;
        if (before(event, first)) {
            event->next = first;
            first = event;
        } else if (!run_insert(first, event)) {
            last->next = NULL;
            break;
        }
    }
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

void event_fire_several(struct event *events)
{
    phase_enter(PHASE_queue);
    event_firing = sorted(events);
    event_fire_rest();
}

/* An observer that begins to watch in this round is told from the next one on. */
void event_fire_rest(void)
{
    bool watched = is_observed(MOMENT_event_fires);
    for (struct event *event; (event = event_firing);) {
        event_firing = event->next;                     /* once it has fired, it may wait for something else */
        event_count++;
        if (watched)
            tell_event_fires(event);
        event->fire(event);
    }
}

/* ---- rungs and top */

enum {
    SLOTS_SHIFT = 9,
    SLOTS = 1 << SLOTS_SHIFT,
    WORDS = SLOTS / 64,
    FEW = 3,                                            /* if a slot has fewer instants, on average, it is too short */
    MANY = 10,                                          /* if it has more, it is too long */
    CROWDED = 4,                                        /* if instants have more events, on average, */
    WIDER = 3,                                          /* slots may have this many times as many instants */
    NARROWER = 2,                                       /* by how much the shift falls when a slot overflows the front */
    CROWD = MANY * SLOTS                                /* more events than this in the top are spread over `far` */
};

struct rung {
    uint64_t start_ps;                                  /* of the first slot; the first one of `near` has what is before, too */
    uint64_t count;                                     /* of slots: SLOTS, fewer if `far` goes on before, 0 if it is not in use */
    uint64_t occupied[WORDS];                           /* a bit for each slot that is not empty */
    uint32_t words;                                     /* a bit for each word that is not 0 */
    unsigned shift;                                     /* a slot is 2^shift ps long */
    struct event *slots[SLOTS];
};

/* No event in `far` or the top is due before the end of `near`, and none in the top before the end of `far`. */
static struct rung near, far;
static struct event *top;

static struct {
    uint32_t refills;                                   /* of the front since `near` began, */
    uint64_t instants, events;                          /* and the instants and events that came so */
} drawn;

/* Not less than the rung's count if the event is before the rung, or after it. */
static uint64_t slot_of(const struct rung *rung, const struct event *event)
{
    return (event->t_ps - rung->start_ps) >> rung->shift;
}

static void rung_add(struct rung *rung, uint64_t slot, struct event *event)
{
    rung->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
    rung->words |= 1u << slot / 64;
    event->next = rung->slots[slot];
    rung->slots[slot] = event;
}

/* The list of an event that is not in a slot of `near` by its time: a rung and its slot; NULL: the top. */
static struct rung *outer_rung(const struct event *event, uint64_t *slot)
{
    *slot = 0;
    if (event->t_ps < near.start_ps)
        return &near;
    *slot = slot_of(&far, event);
    return *slot < far.count ? &far : NULL;
}

static __attribute__((noinline)) void outer_add(struct event *event)
{
    uint64_t slot;
    struct rung *rung = outer_rung(event, &slot);
    if (rung) {
        rung_add(rung, slot, event);
        return;
    }
    event->next = top;
    top = event;
}

static void later_add(struct event *event)
{
    uint64_t slot = slot_of(&near, event);
    if (slot < near.count)
        rung_add(&near, slot, event);
    else
        outer_add(event);
}

static void slot_emptied(struct rung *rung, unsigned slot)
{
    rung->slots[slot] = NULL;
    rung->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (!rung->occupied[slot / 64])
        rung->words &= ~(1u << slot / 64);
}

static unsigned first_slot(const struct rung *rung)
{
    unsigned word = (unsigned)__builtin_ctz(rung->words);
    return word * 64 + (unsigned)__builtin_ctzll(rung->occupied[word]);
}

/* Takes the events of a slot. */
static struct event *slot_take(struct rung *rung, unsigned slot)
{
    struct event *events = rung->slots[slot];
    slot_emptied(rung, slot);
    return events;
}

static uint64_t slot_start_ps(const struct rung *rung, uint64_t slot)
{
    return rung->start_ps + (slot << rung->shift);
}

static void later_remove(const struct event *event)
{
    struct rung *rung = &near;
    uint64_t slot = slot_of(rung, event);
    if (slot >= rung->count)
        rung = outer_rung(event, &slot);
    if (!rung) {
        list_remove(&top, event);
        return;
    }
    list_remove(&rung->slots[slot], event);
    if (!rung->slots[slot])
        slot_emptied(rung, (unsigned)slot);
}

/* Adds the events of a list to the rungs and the top. */
static void all_later_add(struct event *events)
{
    for (struct event *next; events; events = next) {
        next = events->next;
        later_add(events);
    }
}

/* Begins `near`, which is empty, with at most `count` slots. */
static void near_begin(uint64_t start_ps, unsigned shift, uint64_t count)
{
    near.start_ps = start_ps;
    near.shift = shift;
    near.count = count < SLOTS ? count : SLOTS;
    drawn.refills = 0;
    drawn.instants = drawn.events = 0;
}

/* Takes the events of all slots. */
static struct event *all_taken(struct rung *rung)
{
    struct event *events = NULL;
    while (rung->words)
        for (struct event *event = slot_take(rung, first_slot(rung)), *next; event; event = next) {
            next = event->next;
            event->next = events;
            events = event;
        }
    return events;
}

/* Begins `near` again with shorter slots, for what is left of its time. */
static void near_narrow(uint64_t start_ps)
{
    unsigned shift = near.shift > NARROWER ? near.shift - NARROWER : 0;
    uint64_t left_ps = slot_start_ps(&near, near.count) - start_ps;
    struct event *events = all_taken(&near);
    near_begin(start_ps, shift, left_ps >> shift);
    all_later_add(events);
}

/* The shift of slots as long as those of `near` should have been. In the front, an event finds the place of a new instant by
 * passing others, but mostly joins the one before it at once. So where instants are crowded, slots may be longer, and fewer
 * events go through `near`. */
static unsigned better_shift(void)
{
    bool crowded = drawn.events > CROWDED * drawn.instants;
    uint64_t slots = (uint64_t)drawn.refills * (crowded ? WIDER : 1);
    if (drawn.instants < FEW * slots)
        return near.shift + 1;
    return near.shift - (drawn.instants > MANY * slots && near.shift > 0);
}

/* The time of the first event of a list, and how many there are. */
static uint64_t list_first_ps(const struct event *event, uint64_t *count)
{
    uint64_t first_ps = UINT64_MAX;
    for (*count = 0; event; event = event->next, ++*count)
        first_ps = event->t_ps < first_ps ? event->t_ps : first_ps;
    return first_ps;
}

/* Begins `far` again with slots as long as all of `near`, which has begun in the first of them: it would go through the events
 * of a longer slot again and again. */
static void far_narrow(void)
{
    uint64_t left_ps = slot_start_ps(&far, far.count) - near.start_ps;
    struct event *events = all_taken(&far);
    far.start_ps = near.start_ps;
    far.shift = near.shift + SLOTS_SHIFT;
    far.count = left_ps >> far.shift < SLOTS ? left_ps >> far.shift : SLOTS;
    all_later_add(events);
}

/* Begins `near`, which is empty, in the first slot of `far` that has events, up to the end of that slot at the most. */
static void near_follow_far(unsigned shift)
{
    uint64_t events_count;
    unsigned slot = first_slot(&far);
    struct event *events = slot_take(&far, slot);
    uint64_t first_ps = list_first_ps(events, &events_count), end_ps = slot_start_ps(&far, slot + 1);
    while ((end_ps - first_ps) >> shift == 0)
        shift--;
    uint64_t count = (end_ps - first_ps) >> shift;
    near_begin(count <= SLOTS ? end_ps - (count << shift) : first_ps, shift, count);
    if (count > SLOTS)
        far_narrow();
    all_later_add(events);
}

/* Begins `near`, which is empty as `far` is, where the top does; it goes on in `far` if there are too many events. */
static void near_follow_top(unsigned shift)
{
    uint64_t count, first_ps = list_first_ps(top, &count);
    struct event *events = top;
    top = NULL;
    near_begin(first_ps, shift, SLOTS);
    far.count = 0;
    if (count > CROWD && shift + SLOTS_SHIFT < 64) {
        far.start_ps = first_ps;
        far.shift = shift + SLOTS_SHIFT;
        far.count = SLOTS;
    }
    all_later_add(events);
}

/* ---- the front */

enum {
    FRONT = 48,                                         /* room for instants */
    STRIDE = 2                                          /* how many a search for a place passes at once */
};

static struct {
    uint64_t last_ps;                                   /* it has all events up to this time */
    struct instant ends[STRIDE + FRONT];                /* the first ones end searches; then instants, the soonest one last */
} front = {.last_ps = UINT64_MAX, .ends = {[0 ... STRIDE - 1] = {.t_ps = UINT64_MAX}}};

/* The last of those that end searches. */
static struct instant *const front_end = &front.ends[STRIDE - 1];

struct instant *event_soonest = &front.ends[STRIDE - 1];

struct event *event_last_added;
uint64_t event_last_added_ps;

/* Moves the later half of the front, which is full, to the rung. */
__attribute__((noinline)) static void front_spill(void)
{
    struct instant *last = &front_end[FRONT / 2];
    if (!near.words && !far.words && !top) {
        near_begin(now_ps, 62 - (unsigned)__builtin_clzll((last->t_ps - event_soonest->t_ps) | 2), SLOTS);
        far.count = 0;
    }
    event_last_added = NULL;
    front.last_ps = last->t_ps - 1;
    for (struct instant *at = &front_end[1]; at <= last; at++)
        for (struct event *event = at->events, *next; event; event = next) {
            next = event->next;
            later_add(event);
        }
    memmove(&front_end[1], last + 1, (FRONT - FRONT / 2) * sizeof *last);
    event_soonest -= FRONT / 2;
}

/* Adds an event to an instant that has others. The sooner ones were moved up for a new instant, and move back. */
static __attribute__((noinline)) void front_join(struct event *event, struct instant *at)
{
    event->next = at->events;
    at->events = event;
    for (event_soonest--; at < event_soonest; at++)
        at[1] = at[2];
}

static inline bool joins_last(struct event *event)
{
    struct event *last = event_last_added;
    if (event_last_added_ps != event->t_ps || !last)
        return false;
    event->next = last->next;
    last->next = event;
    event_last_added = event;
    return true;
}

/* Adds an event that does not join the last one. */
static inline __attribute__((always_inline)) void apart_add(struct event *event)
{
    uint64_t t_ps = event->t_ps;
    if (t_ps > front.last_ps) {
        later_add(event);
        return;
    }
    struct instant *at = event_soonest;
    event->next = NULL;
    event_last_added_ps = t_ps;
    event_last_added = event;
    for (; at[1 - STRIDE].t_ps < t_ps; at -= STRIDE)
        for (int i = 1; i > 1 - STRIDE; i--)
            at[i] = at[i - 1];
    for (int i = 1; i < STRIDE; i++) {
        size_t sooner = at->t_ps < t_ps;
        __asm__("" : "+r"(sooner));                     /* no branch, which nothing could predict */
        at[1] = at[0];
        at -= sooner;
    }
    event_soonest++;
    if (at->t_ps == t_ps && at > front_end) {
        front_join(event, at);
        return;
    }
    at[1] = (struct instant){t_ps, event};
    if (event_soonest == &front_end[FRONT])
        front_spill();
}

/* Adds an event that was told of before. After the last one, future_added. */
static __attribute__((noinline)) void future_add(struct event *event)
{
    if (!joins_last(event))
        apart_add(event);
}

/* What becomes due from now on does not join these events: an observer may watch it. */
static void future_added(void)
{
    event_last_added = NULL;
}

static void front_remove(const struct event *event)
{
    event_last_added = NULL;
    struct instant *at = event_soonest;
    while (at->t_ps < event->t_ps)
        at--;
    list_remove(&at->events, event);
    if (!at->events && at > front_end) {
        memmove(at, at + 1, (size_t)(event_soonest - at) * sizeof *at);
        event_soonest--;
    }
}

bool front_refill(void)
{
    front.last_ps = UINT64_MAX;
    if (!near.words) {
        if (far.words)
            near_follow_far(better_shift());
        else if (top)
            near_follow_top(better_shift());
        else
            return false;
    }
    unsigned slot = first_slot(&near);
    uint64_t first_ps = slot_start_ps(&near, slot), last_ps = first_ps + (UINT64_C(1) << near.shift) - 1;
    struct event *events = slot_take(&near, slot);
    if (near.words || far.words || top)                 /* otherwise last_ps may have wrapped */
        front.last_ps = last_ps;
    for (struct event *next; events; events = next) {
        next = events->next;
        future_add(events);
        drawn.events++;
    }
    future_added();
    drawn.refills++;
    drawn.instants += (uint64_t)(event_soonest - front_end);
    if (front.last_ps < last_ps && near.shift > 0)
        near_narrow(first_ps);
    return true;
}

/* ---- the queue */

static inline void event_add(struct event *event, uint64_t t_ps)
{
    if (t_ps <= now_ps) {
        assert(t_ps == now_ps);
        event->next = event_due;
        event_due = event;
        return;
    }
    apart_add(event);
}

static __attribute__((cold, noinline)) void event_add_watched(struct event *event, uint64_t t_ps)
{
    tell_event_set_due(event, t_ps);
    event_add(event, t_ps);
    event_last_added = NULL;
}

void event_at(struct event *event, uint64_t t_ps)
{
    event->t_ps = t_ps;
    if (joins_last(event))                              /* nobody watches */
        return;
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
    event_last_added = NULL;                            /* what follows may become due at times that have passed */
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
    event_last_added = NULL;
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
    future_added();
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
    for (const struct instant *at = event_soonest; at > front_end; at--)
        list_each(at->events, each);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        list_each(near.slots[slot], each);
        list_each(far.slots[slot], each);
    }
    list_each(top, each);
}

void event_drop(bool (*drop)(uint32_t rank))
{
    for (struct event *event = future_take(), *next; event; event = next) {
        next = event->next;
        if (of_kernel(event) || !drop(event_rank(event)))
            future_add(event);
    }
    future_added();
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
    future_added();
}

void event_pass(uint64_t t_ps)
{
    assert(!event_due && t_ps >= now_ps && t_ps < event_next_ps());
    now_ps = t_ps;
}

void event_return(uint64_t t_ps)
{
    now_ps = t_ps;
}

void event_restart(uint64_t t_ps)
{
    assert(!event_soonest->events && !near.words && !far.words && !top);
    event_return(t_ps);
}

void event_reset(void)
{
    future_take();
    event_due = event_firing = NULL;
    now_ps = event_count = 0;
}
