/* process.h: runs in a process that is the simulator's: what kernels may do to it, how it ends, its copies. */
#ifndef KB_CLI_PROCESS_H
#define KB_CLI_PROCESS_H

#include <sys/types.h>

/* Catches what kernels may do to the process: traps, and calls of exit(). Call it once, before output files are opened:
 * so their removal at exit comes first. */
void process_prepare(void);

/* Forks a process which goes on, in silence; in a run that is under way, or between two. It ends with this process. As
 * fork(). */
pid_t process_fork(void);

#endif
