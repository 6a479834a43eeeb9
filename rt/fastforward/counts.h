/* counts.h: all that is counted while tiles are worked on, for results alone: nothing decides by it. */
#ifndef KB_STEADY_COUNTS_H
#define KB_STEADY_COUNTS_H

#include "machine/pe.h"

/* How all counts stand now, those of these PEs among them. One at a time. */
void counts_take(struct pe *const *pes, uint32_t count);

/* As much is added once more, `times` times, as was counted since then. The same PEs. */
void counts_repeat(struct pe *const *pes, uint32_t count, uint64_t times);

#endif
