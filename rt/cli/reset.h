/* reset.h: a simulator that has run as one that has not. */
#ifndef KB_RESET_H
#define KB_RESET_H

/* Forgets all of the runs so far: machine_init can follow. Keeps buffers, stacks and tables that only save time, and what
 * the command line said. After it nobody refers to anything that the arena gave out during a run. */
void simulator_reset(void);

#endif
