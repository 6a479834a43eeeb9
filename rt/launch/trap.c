/* trap.c: traps inside kernels become faults of their PE.
 *
 * The signal handler has its own stack, since the kernel's may be full. It only redirects the kernel's coroutine to a
 * function that reports the fault and never returns to the kernel. */
#define _GNU_SOURCE                                     /* REG_RIP */
#include "trap.h"

#include <inttypes.h>
#include <signal.h>
#include <ucontext.h>

#include "common/arena.h"
#include "common/diag.h"
#include "kernel.h"
#include "sim/coroutine.h"

static struct {
    struct tl *tl;
    int signal, code;
    const void *address;
} trap;

/* ---- the fault */

static const char *what_happened(void)
{
    switch (trap.signal) {
    case SIGFPE:
        return trap.code == FPE_INTDIV ? "SIGFPE: an integer divided by 0, or a quotient that is too large" : "SIGFPE";
    case SIGILL:
        return "SIGILL: an instruction that the processor does not know, or __builtin_trap";
    default:
        return arena_printf("%s at address 0x%" PRIxPTR, trap.signal == SIGBUS ? "SIGBUS" : "SIGSEGV",
                            (uintptr_t)trap.address);
    }
}

/* Where the kernel made its last call that submitted a command. */
static const char *last_call(const struct tl *tl)
{
    if (!tl->file)
        return "before its first command";
    return arena_printf("after command %u, called at %s:%u", (unsigned)(tl->commands - 1), tl->file,
                        (unsigned)tl->line);
}

/* The kernel goes on here, outside the handler. */
static void landed(void)
{
    struct tl *tl = trap.tl;
    if (coroutine_guards(tl->coro, trap.address))
        kernel_fault(tl, FAULT_STACK_OVERFLOW, NULL, 0, "the kernel's stack of %zu KiB (pe_cpu: stack_kb) is full, %s",
                     coroutine_stack_bytes(tl->coro) >> 10, last_call(tl));
    kernel_fault(tl, FAULT_KERNEL_ERROR, NULL, 0, "%s, %s", what_happened(), last_call(tl));
}

/* ---- the handler */

/* The stack on which a trapped kernel reports its fault: its own may be full. */
static char landing[64 << 10] __attribute__((aligned(16)));

/* Makes the handler return to landed(), on that stack. */
static void land(ucontext_t *context, char *stack_top)
{
#if defined __x86_64__
    enum { DIRECTION_FLAG = 1 << 10 };
    greg_t *registers = context->uc_mcontext.gregs;
    registers[REG_RIP] = (greg_t)(uintptr_t)landed;
    registers[REG_RSP] = (greg_t)(uintptr_t)(stack_top - 8);    /* as after a call */
    registers[REG_EFL] &= ~DIRECTION_FLAG;
#elif defined __aarch64__
    context->uc_mcontext.pc = (uintptr_t)landed;
    context->uc_mcontext.sp = (uintptr_t)stack_top;
    context->uc_mcontext.regs[30] = 0;
#else
#error "the registers of this processor are not known here"
#endif
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    struct tl *tl = kernel_running();
    if (!tl || info->si_code <= 0) {                    /* not a kernel's, or sent by a process: the default action */
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(signal, &plain, NULL);
        if (info->si_code <= 0)
            raise(signal);
        return;
    }
    trap.tl = tl;
    trap.signal = signal;
    trap.code = info->si_code;
    trap.address = signal == SIGSEGV || signal == SIGBUS ? info->si_addr : NULL;
    land(context, landing + sizeof landing);
}

void traps_catch(void)
{
    static char stack[64 << 10];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (coroutine_announced())
        return;
    if (sigaltstack(&alternate, NULL))
        die("sigaltstack:");
    for (unsigned i = 0; i < COUNT_OF(signals); i++)
        if (sigaction(signals[i], &action, NULL))
            die("sigaction:");
}
