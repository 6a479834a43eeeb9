/* conservation.h: what must hold at the end of every run, whatever it was (laws.def).
 *
 * What the machine has counted is held against what it was asked for, and against itself. Nothing is counted for this
 * while a run goes on. A law that does not hold is a mistake of kbgen. */
#ifndef KB_CONSERVATION_H
#define KB_CONSERVATION_H

#include <stdbool.h>

/* Checks all laws, or only those that hold for a run that was ended early. Returns NULL, or a
 * message, in the arena: the first law that does not hold, and where. While no event fires; a run that was left in the
 * middle of an event (sim_abandon) breaks laws. */
const char *conservation_broken(bool ended_well);

#endif
