/* event.h: simulated time and the event queue.
 *
 * An event is a member of the thing that waits for it. All events that are due at one time form an instant, which runs
 * in rounds: the events that are due when a round begins fire in the order (node rank, class, key); an event that they
 * make due now fires in the next round. The loop (loop.h) does the rest of a round. */
#ifndef KB_EVENT_H
#define KB_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observer.h"

enum event_class { CLASS_SERVICE, CLASS_MESSAGE, CLASS_KERNEL };

struct event {
    uint64_t order;                                     /* node rank, class and first part of the key: event_order */
    uint64_t key;                                       /* second part: a tile's id + 1, a message's number */
    void (*fire)(struct event *event);
    uint64_t t_ps;                                      /* when it is due; the queue sets this and `next` */
    struct event *next;
    uint64_t note;                                      /* of the observer of event_set_due, for event_fires */
};

/* The current time in ps. Only the queue sets it. */
extern uint64_t now_ps;

enum { RANK_BITS = 30 };                                /* enough for 256 SIPs of 256 cubes of at most 4,742 nodes */

static inline uint64_t event_order(uint32_t rank, enum event_class class, uint32_t key)
{
    return (uint64_t)rank << 34 | (uint64_t)class << 32 | key;
}

static inline uint32_t order_rank(uint64_t order)
{
    return order >> 34;
}

static inline enum event_class order_class(uint64_t order)
{
    return order >> 32 & 3;
}

static inline uint32_t event_rank(const struct event *event)
{
    return order_rank(event->order);
}

/* Sets the event's place in the order of a round, and its handler. */
static inline void event_set(struct event *event, uint64_t order, uint64_t key, void (*fire)(struct event *))
{
    event->order = order;
    event->key = key;
    event->fire = fire;
}

/* Makes the event due at t_ps, which is not before now. It must not be due already. */
void event_at(struct event *event, uint64_t t_ps);

/* Cancels the event: it will not fire, and time does not stop for it. */
void event_cancel(struct event *event);

/* Ends the run with a message: a time does not fit into 64 bits. */
_Noreturn void time_runs_out(void) __attribute__((cold));

/* The time d_ps after t_ps. Ends the run with a message if that does not fit into 64 bits. */
static inline uint64_t time_after(uint64_t t_ps, uint64_t d_ps)
{
    uint64_t sum;
    if (__builtin_add_overflow(t_ps, d_ps, &sum))
        time_runs_out();
    return sum;
}

/* Reserves a resource that is free from *free_ps on, for a length of time that begins at at_ps at the earliest, which
 * may lie in the future. Returns the start, and leaves the end in *free_ps. */
static inline uint64_t reserve(uint64_t *free_ps, uint64_t at_ps, uint64_t length_ps)
{
    uint64_t start = *free_ps > at_ps ? *free_ps : at_ps;
    *free_ps = time_after(start, length_ps);
    return start;
}

/* The event that was last put into the front of the queue, which it has not left, and its time: the next one is often due at
 * the same time, and joins it. NULL: it may have left it, or an observer watches what becomes due. Only the queue and
 * observer_watch change it. */
extern struct event *event_last_added;
extern uint64_t event_last_added_ps;

/* The events of the next round, unsorted; NULL: there are none. Only the queue changes it. */
extern struct event *event_due;

/* The soonest of the instants in the front, an array that ends in it. It has no events if the front is empty; front_refill
 * then moves there what is due later, and returns false if nothing is. Only the queue changes it. */
extern struct instant {
    uint64_t t_ps;
    struct event *events;
} *event_soonest;

bool front_refill(void);

/* When the next instant is that has events; UINT64_MAX: nothing is due any more. */
static inline uint64_t event_next_ps(void)
{
    return event_soonest->events || front_refill() ? event_soonest->t_ps : UINT64_MAX;
}

/* Moves time to the next instant, and takes the events of its first round from the queue. NULL: nothing is due any more. */
static inline struct event *event_take_instant(void)
{
    struct event *events = event_soonest->events;
    if (!events) {
        if (!front_refill())
            return NULL;
        events = event_soonest->events;
    }
    now_ps = event_soonest->t_ps;
    event_soonest--;
    /* NULL if it is one of these; without a branch, which nothing could predict. */
    event_last_added = (struct event *)((uintptr_t)event_last_added & -(uintptr_t)(event_last_added_ps != now_ps));
    return events;
}

/* Takes the events of the next round from the queue. */
static inline struct event *event_take_round(void)
{
    struct event *events = event_due;
    event_due = NULL;
    return events;
}

/* Events of the model so far. Who carries one out in place, without the queue, counts it here. */
extern uint64_t event_count;

static inline void event_fire(struct event *event)
{
    event_count++;
    observe_event_fires(event);
    event->fire(event);
}

/* The rest of the round that fires, sorted. Only the queue changes it. */
extern struct event *event_firing;

void event_fire_several(struct event *events);
void event_fire_rest(void);

/* The Retire step of a round: fires its events, which were taken from the queue. */
static inline void event_fire_round(struct event *events)
{
    if (events->next) {
        event_fire_several(events);
    } else {
        event_fire(events);
        if (__builtin_expect(event_firing != NULL, 0))
            event_fire_rest();
    }
}

/* Catches up with an event that was put off, and is not due: its time and handler are set. If it would have fired by now,
 * it fires, at its time, as often as it makes itself due again by now, which is never at the same time. Otherwise it is due
 * from now on, in this round or later. An event of this time would have fired if it goes before `by`, the event that fires;
 * NULL: all events of the round have fired. */
void event_catch_up(struct event *event, const struct event *by);

/* Counts the events that are due at later times, those of kernels excepted, and sets *kernel_ps to the time of the
 * first of a kernel, UINT64_MAX if there is none. Events of kernels are resumptions and timeouts. */
size_t event_waiting(uint64_t *kernel_ps);

/* Shows all events that are due, those of the round that fires included, in no particular order. */
void event_each(void (*each)(const struct event *event));

/* Removes the events of later times at nodes for which drop(rank) is true, those of kernels excepted. */
void event_drop(bool (*drop)(uint32_t rank));

/* Moves time on by d_ps, and with it all events of later times, those of kernels excepted. No event may be due now, and
 * no event of a kernel before the new time. Ends the run with a message if a time does not fit into 64 bits. */
void event_skip(uint64_t d_ps);

/* Moves time on to t_ps, before which no event is due. None may be due now. */
void event_pass(uint64_t t_ps);

/* Sets the time back. Events that were taken from the queue and are later do not fire. */
void event_return(uint64_t t_ps);

/* Sets the time, which may be earlier than now. No event may wait. */
void event_restart(uint64_t t_ps);

/* Sets time to 0 and empties the queue. */
void event_reset(void);

/* An event's `fire` or a message's `delivered`, with the name that a profile prints. Each file has a list of its own
 * handlers, which ends with {0}. */
struct handler {
    const char *name;
    void (*function)(void);
};

#define HANDLER(function, name) {name, (void (*)(void))(function)}

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
