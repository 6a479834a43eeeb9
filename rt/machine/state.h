/* state.h: the machine's state as a whole. */
#ifndef KB_MACHINE_STATE_H
#define KB_MACHINE_STATE_H

/* The room's reset (cli/reset.c): all that the machine consists of is as at the start of a run. */
void machine_reset(void);

#endif
