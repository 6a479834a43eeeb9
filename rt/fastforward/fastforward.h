/* fastforward.h: fast-forward: computes what need not be simulated. Times, to the picosecond, and counts are those of
 * the simulation of every event.
 *
 * Long composites of equal tiles repeat themselves. Two mechanisms use that:
 *     symmetry.h      of several groups of PEs that share nothing and are in equal states, one is simulated
 *     period.h        when the machine comes back to a state, the period in between is repeated by arithmetic
 * Both compare states (state.h), which costs about as much as a few tiles of each PE. This file decides when that is
 * worth it, and does it at the end of an instant.
 *
 * There is no fast-forward while an observer needs every event (a trace, the file of an op log), nor for component models
 * of users, whose state is not known. */
#ifndef KB_FASTFORWARD_H
#define KB_FASTFORWARD_H

#include <stdbool.h>

/* Whether fast-forward is wanted. Set before fastforward_init, which clears it if it is not possible. */
extern bool fastforward_on;

/* The first watches while fast-forward is on, the second in an instant at whose end states are to be compared. */
extern struct observer fastforward_observer, comparison_observer;

/* At the start of each run, when tables and options are known. */
void fastforward_init(void);

/* The same in the middle of a run, at the end of an instant, when an observer that needs every event begins or ends to
 * watch. */
void fastforward_follow(void);

/* Resets the room (session/reset.c): nothing is skipped so far, and no PE sleeps. */
void fastforward_reset(void);

#endif
