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

/* Watches while PEs sleep. */
extern struct observer symmetry_observer;

/* At the end of an instant: puts PEs to sleep, of those that feed composites, by rank, where nothing else is under way.
 * False: they do not stand alike. */
bool alike_sleep(struct pe *const *pes, uint32_t count);

/* Stage services of PEs that slept. */
uint64_t alike_services(void);

/* None sleeps, and none ever did. */
void alike_reset(void);

#endif
