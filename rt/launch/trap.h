/* trap.h: traps inside kernels. */
#ifndef KB_TRAP_H
#define KB_TRAP_H

/* From here on SIGSEGV, SIGBUS, SIGFPE and SIGILL that a kernel raises are faults of its PE: KERNEL_ERROR, or
 * STACK_OVERFLOW in the guard of its stack. Anywhere else they end the simulator as they always do. Not under the
 * address sanitizer, which reports them itself. */
void traps_catch(void);

#endif
