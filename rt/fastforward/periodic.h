/* periodic.h: computing what need not be simulated: long runs of a composite's tiles in steady state.
 *
 * A PE that works through equal tiles soon does the same again and again, and so do PEs that share links and memories.
 * When the whole machine stands at the end of an instant just as it stood at an earlier one, but for the time and for
 * how far the composites are, then what lies between happens again, until something breaks the period: a tile of
 * another size, a row of HBM that is open when it was closed, a timeout, the end of a composite. So time goes on by as
 * many whole periods as are sure, and all that is counted grows by as much as in each of them. Results are those of
 * the simulation of every event, to the picosecond.
 *
 * Not with a trace or an op log's file, nor with models of the user's own, nor while commands other than composites are
 * under way. A look also asks whether PEs stand alike (alike.h); periods are then those of PEs that do not sleep. */
#ifndef KB_STEADY_H
#define KB_STEADY_H

#include "machine/pe.h"

/* Off: every event is simulated, nor do PEs sleep that stand as others do. Before the start. */
extern bool steady_on;

/* The first watches a run that may be skipped in part, the second one while a look is due: at the end of the instant. */
extern struct observer periodic_observer, look_observer;

/* At the start of each run, when tables and options are there. */
void steady_init(void);

/* The room's reset (cli/reset.c): nothing was skipped, no PE sleeps. */
void fastforward_reset(void);

/* Stage services that were computed, of stats.services. */
uint64_t steady_services(void);

#endif
