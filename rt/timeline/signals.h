/* signals.h: integers that change over time. Each signal is told of in the order of time, once per time at most, and only
 * if its value is another one then. */
#ifndef KB_SIGNALS_H
#define KB_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/array.h"

struct signal {
    int64_t value, told;
    bool changed;                                       /* it is in the list of those that changed */
};

struct signal_change {
    uint64_t t_ps;
    int64_t delta;
    uint32_t number;
};

struct signals {
    /* Says that a signal has a value from t_ps on. */
    void (*tell)(uint32_t number, uint64_t t_ps, int64_t value);
    struct ARRAY(struct signal) all;                    /* by number */
    struct ARRAY(uint32_t) changed;
    struct ARRAY(struct signal_change) changes, due, other;     /* not told of yet; those that are sorted, and a second
                                                           array for that */
    size_t batch, enough;                               /* changes after which they are sorted: more than are left, enough in all */
};

/* Adds a signal, whose value is 0. Returns its number. */
uint32_t signals_add(struct signals *signals);

/* Adds to a signal's value at t_ps, now or later. */
static inline void signals_change(struct signals *signals, uint32_t number, uint64_t t_ps, int64_t delta)
{
    *array_add(&signals->changes) = (struct signal_change){t_ps, delta, number};
}

/* Tells of the changes of all times before end_ps, at most now + 1, to which no more changes are added. */
void signals_tell_before(struct signals *signals, uint64_t end_ps);

/* Tells of the changes up to now, if these are many. Called at the end of each instant. */
void signals_instant_ends(struct signals *signals);

/* Tells of all other changes. */
void signals_finish(struct signals *signals);

#endif
