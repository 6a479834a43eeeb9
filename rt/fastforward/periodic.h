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

/* When the next look is due: the PE by whose tiles looks are timed, how many it is to have begun, whether it has. */
struct steady {
    const struct pe *leader;                            /* NULL: none feeds a composite that is long enough */
    uint64_t at;
    bool due;
};

extern struct steady steady;

/* At the start of each run, when tables and options are there. */
void steady_init(void);

/* The room's reset (cli/reset.c): nothing was skipped, no PE sleeps. */
void fastforward_reset(void);

/* A PE begins to feed another composite, or none any more; ended: it fed one until now. */
void steady_feeds(const struct pe *pe, bool ended);

/* A PE has begun a tile. */
static inline void steady_fed(const struct pe *pe)
{
    if (__builtin_expect(pe == steady.leader && pe->fed >= steady.at, 0))
        steady.due = true;
}

/* At the end of an instant in which a look has become due. */
void steady_look(void);

/* Stage services that were computed, of stats.services. */
uint64_t steady_services(void);

#endif
