/* conservation.h: the laws that hold at the end of every run (laws.def).
 *
 * They compare the counts of the machine with each other and with what commands and the host have asked for. Nothing is
 * counted for this while a run goes on. A broken law is a bug of kbgen. */
#ifndef KB_CONSERVATION_H
#define KB_CONSERVATION_H

#include <stdbool.h>

/* Checks all laws, or only those that also hold for a run that was ended early. Reports the first broken law and its place
 * as an internal error, and returns that message, which is in the arena. Returns NULL if no law is broken, and for a run
 * that has failed: it may have been left in the middle of an event (sim_abandon), which breaks laws. Must not be called
 * while an event fires. */
const char *conservation_check(bool ended_well);

#endif
