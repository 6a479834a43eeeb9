/* event.h: simulated time, and what is due in it.
 *
 * An event lives inside the thing that waits. Everything due at one time is one instant, worked off in rounds: the
 * events due when a round begins fire in the order (node rank; class; key), what they make due now waits for the next
 * round, and after each round the machine issues what can start. */
#ifndef KB_EVENT_H
#define KB_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_class { CLASS_SERVICE, CLASS_MESSAGE, CLASS_KERNEL };

struct event {
    uint64_t order;                                     /* node rank, class, first part of the key: see event_order */
    uint64_t key;                                       /* second part: a tile's id + 1, a message's number */
    void (*fire)(struct event *event);
    uint64_t t_ps;                                      /* when it is due; this and the next are the queue's */
    struct event *next;
};

/* The time now, in ps. Read it; only the event loop sets it. */
extern uint64_t now_ps;

enum { RANK_BITS = 30 };                                /* 256 SIPs of 256 cubes of at most 4,742 nodes fit */

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

/* Says which event it is, and what it does. */
static inline void event_set(struct event *event, uint64_t order, uint64_t key, void (*fire)(struct event *))
{
    event->order = order;
    event->key = key;
    event->fire = fire;
}

/* Makes the event due at t_ps, now or later; it is in no other place of the queue. */
void event_at(struct event *event, uint64_t t_ps);

/* What waits no more: the event does not fire, and there is no instant for its sake. */
void event_cancel(struct event *event);

/* Stops the run with a message: a time does not fit into 64 bits. */
_Noreturn void time_runs_out(void) __attribute__((cold));

/* The time d_ps from t_ps; the run stops with a message when it does not fit into 64 bits. */
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

/* Goes to the next instant; false: nothing is due any more. */
bool event_next_instant(void);

/* What is due in the next round, in any order; NULL: nothing. Only event.c changes it. */
extern struct event *event_due;

void event_fire_due(void);

/* One round's Retire: fires what is due; false: nothing was. */
static inline bool event_retire(void)
{
    if (!event_due)
        return false;
    event_fire_due();
    return true;
}

/* What waits for a later time, but for kernels' resumptions and timeouts; the earliest of these in *kernel_ps, or
 * UINT64_MAX. */
size_t event_waiting(uint64_t *kernel_ps);

/* Takes out what waits for a later time at a node for which drop(rank), but for kernels' resumptions and timeouts. */
void event_drop(bool (*drop)(uint32_t rank));

/* Nothing happens for d_ps: time goes on by that much, and all that waits, but for kernels' resumptions and timeouts,
 * is due that much later; the run stops with a message when that does not fit into 64 bits. Nothing is due now, and no
 * kernel's resumption nor timeout until then. */
void event_skip(uint64_t d_ps);

/* Events fired so far. */
uint64_t event_fired(void);

/* Time 0, and nothing is due. */
void event_reset(void);

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
