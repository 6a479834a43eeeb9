/* symmetry.h: symmetry reduction: of groups of PEs that are in the same state, one is simulated.
 *
 * PEs that feed composites fall into groups that share no node, link or memory with one another. When all groups are in
 * the same state, apart from the names of their parts, they stay in the same state. So one of them is simulated and the
 * PEs of the others sleep; when a composite completes in the first group, the corresponding ones complete too. Before
 * anything that can tell groups apart, a timeout, a kernel that submits or delays, a host program, the others wake: they
 * are put into the state that the first one has by then, and all that was counted for it counts for each. */
#ifndef KB_SYMMETRY_H
#define KB_SYMMETRY_H

#include "machine/pe.h"

/* Watches while PEs sleep. */
extern struct observer symmetry_observer;

/* At the end of an instant: puts PEs to sleep, of these, which are all that feed composites, by rank. Returns false if
 * there are no several groups in the same state, or something else is under way. */
bool symmetry_sleep(struct pe *const *pes, uint32_t count);

bool symmetry_sleeps(const struct pe *pe);

/* Stage services of PEs that slept. */
uint64_t symmetry_services(void);

/* Before each run. */
void symmetry_reset(void);

#endif
