/* reset.h: makes a simulator that has run as new. */
#ifndef KB_RESET_H
#define KB_RESET_H

/* Forgets all runs so far: machine_init can follow. Keeps buffers, stacks and tables that only save time, and the
 * options of the command line. Afterwards nobody refers to memory that the arena gave out during a run. */
void simulator_reset(void);

#endif
