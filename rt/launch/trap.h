/* trap.h: what kernels and benches do to the process: traps, abort(), exit(), fork(). */
#ifndef KB_TRAP_H
#define KB_TRAP_H

#include <signal.h>
#include <sys/types.h>

/* From now on they are faults:
 *
 *     SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT      caused or raised
 *     exit, _exit, _Exit, quick_exit, pthread_exit
 *
 * of a kernel: KERNEL_ERROR, or STACK_OVERFLOW in the guard of its stack; of a bench: calls bench_fault on the bench's
 * coroutine, with a text, which must not return. Outside of both these signals end the simulator as usual. Under the
 * address sanitizer, which reports signals itself, only the calls are caught.
 *
 * A child process of a kernel or bench ends with status 1 when it would go on with the simulation. */
void traps_catch(void (*bench_fault)(const char *text));

/* Forks a process in which the run goes on, with its kernels and benches caught as before. As fork(). */
pid_t traps_fork(void);

/* Lets the handler of a signal return to `where`, on a stack for such ends, instead of to the code that it has
 * interrupted. `where` must not return. `context` is that of the handler. */
void trap_divert(void *context, void (*where)(void));

#endif
