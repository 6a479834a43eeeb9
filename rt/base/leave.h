/* leave.h: calls of the C library by which code of the user would end the process.
 *
 * A simulator defines exit, _exit, _Exit, quick_exit and pthread_exit itself: the linker prefers them to those of the C library for
 * kernels, benches and models of the user. So such a call is noticed where it is made, on the stack of the caller, and
 * the run goes on. A supervising process would notice it as well, but would stand between the simulator and signals,
 * debuggers and limits, and would know neither the kernel nor the time. */
#ifndef KB_LEAVE_H
#define KB_LEAVE_H

/* Calls `leaves` for each such call, with its name; the process ends if it returns. NULL: all calls end the process. */
void leave_watch(void (*leaves)(const char *call, int status));

/* Ends the process as exit() of the C library does. */
_Noreturn void leave_process(int status);

#endif
