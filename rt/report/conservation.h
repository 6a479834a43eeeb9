/* conservation.h: what must hold at the end of every run, whatever it was (laws.def).
 *
 * What the machine has counted is held against what it was asked for, and against itself. Nothing is counted for this
 * while a run goes on. A law that does not hold is a mistake of kbgen. */
#ifndef KB_CONSERVATION_H
#define KB_CONSERVATION_H

#include <stdbool.h>

/* Checks all laws, or only those that hold for a run that was ended early. Says as an internal error, and returns, the
 * first law that does not hold, and where; in the arena. Returns NULL if all hold, and for a run that has failed: it may
 * have been left in the middle of an event (sim_abandon), which breaks laws. While no event fires. */
const char *conservation_check(bool ended_well);

#endif
