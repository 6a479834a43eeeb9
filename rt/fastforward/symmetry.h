/* symmetry.h: what is alike is simulated once.
 *
 * PEs that feed composites fall into groups that share no node, link or memory with one another. When all groups stand
 * alike, but for the names of what they consist of, they go on alike. So one of them is simulated, the PEs of the
 * others sleep; what completes in it completes in all. Before anything that may tell them apart, a timeout, a kernel
 * that submits or delays, a host program, they wake in the state in which the one is by then, and all that was counted
 * counts for each. */
#ifndef KB_ALIKE_H
#define KB_ALIKE_H

#include "machine/pe.h"

extern bool alike_asleep;

/* Before the first round of that time those that sleep have to wake; UINT64_MAX: there is none, or none sleeps. */
extern uint64_t alike_until_ps;

/* At the end of an instant: puts PEs to sleep, of those that feed composites, by rank, where nothing else is under way.
 * False: they do not stand alike. */
bool alike_sleep(struct pe *const *pes, uint32_t count);

/* While some sleep: a kernel may act at t_ps. */
static inline void alike_not_beyond(uint64_t t_ps)
{
    if (alike_asleep && t_ps < alike_until_ps)
        alike_until_ps = t_ps;
}

/* While some sleep: a composite has completed, as those of the PEs that sleep and correspond do now. */
void alike_completed(const struct command *command);

/* Wakes those that sleep, if any: between two rounds. */
void alike_wake(void);

/* Stage services of PEs that slept. */
uint64_t alike_services(void);

/* None sleeps, and none ever did. */
void alike_reset(void);

#endif
