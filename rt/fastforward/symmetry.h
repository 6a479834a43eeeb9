/* symmetry.h: symmetry reduction: of several groups of PEs in the same state, one is simulated for all.
 *
 * The PEs that feed composites are partitioned into groups that share no node, link or memory with one another. Groups
 * in the same state, apart from the names of their parts, stay in the same state. So one group, the representative, is
 * simulated, and the PEs of the others sleep; when a composite of the representative completes, its counterparts complete
 * too. Before anything that may tell groups apart (a timeout, a submission or a delay of a kernel, a host program), the
 * others wake: they are put into the state of the representative, and what was counted for it is counted for each of
 * them. */
#ifndef KB_SYMMETRY_H
#define KB_SYMMETRY_H

#include "machine/pe.h"

/* Watches while PEs sleep. */
extern struct observer symmetry_observer;

/* At the end of an instant: puts all groups but the representative to sleep. `pes` are all PEs that feed composites, by
 * rank. Returns false if there are not several groups in the same state, or if something else is under way. */
bool symmetry_sleep(struct pe *const *pes, uint32_t count);

bool symmetry_sleeps(const struct pe *pe);

/* Stage services of PEs while they slept. */
uint64_t symmetry_services(void);

void symmetry_reset(void);

#endif
