/* trap.h: traps inside kernels. */
#ifndef KB_TRAP_H
#define KB_TRAP_H

/* Makes SIGSEGV, SIGBUS, SIGFPE and SIGILL that a kernel raises faults of its PE: KERNEL_ERROR, or STACK_OVERFLOW in
 * the guard of its stack. Outside of kernels these signals end the simulator as usual. Does nothing under the address
 * sanitizer, which reports them itself. */
void traps_catch(void);

#endif
