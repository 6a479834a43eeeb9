/* trap.c: what kernels and benches do to the process becomes their fault.
 *
 * The signal handler has its own stack, since the kernel's may be full. It only diverts the coroutine to a function that
 * reports the fault and never returns to the kernel or bench. */
#define _GNU_SOURCE                                     /* REG_RIP, gettid */
#include "trap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/leave.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/temporary.h"
#include "kernel.h"
#include "sim/coroutine.h"

static struct {
    int signal, code;
    const void *address;
} trap;

static struct {
    pid_t process, thread;                              /* of the simulator */
    void (*bench_fault)(const char *text);
    bool forks;                                         /* by traps_fork */
} caught;

/* Whether code of the user runs, in the simulator itself: not in a child process, not in another thread. */
static bool user_runs(void)
{
    return coroutine_current() && getpid() == caught.process && gettid() == caught.thread;
}

/* The kernel or bench that runs has ended by itself. */
static _Noreturn void user_fault(enum fault code, const char *text)
{
    struct tl *tl = all_kernels.running;
    if (tl)
        kernel_fault(tl, code, NULL, 0, "%s; %s", text, kernel_last_call(tl));
    caught.bench_fault(text);
    abort();
}

/* ---- signals */

static const char *what_happened(void)
{
    const char *name = arena_printf("SIG%s", sigabbrev_np(trap.signal));
    if (trap.signal == SIGABRT)
        return "SIGABRT: abort(), a failed assert(), or a pointer that free() does not know";
    if (trap.code <= 0)
        return arena_printf("%s, which the program has raised itself", name);
    switch (trap.signal) {
    case SIGFPE:
        return trap.code == FPE_INTDIV ? "SIGFPE: an integer divided by 0, or a quotient that is too large" : "SIGFPE";
    case SIGILL:
        return "SIGILL: an instruction that the processor does not know, or __builtin_trap";
    case SIGSEGV:
    case SIGBUS:
        return arena_printf("%s at address 0x%" PRIxPTR, name, (uintptr_t)trap.address);
    default:
        return name;
    }
}

/* The kernel or bench goes on here, outside the handler. */
static void landed(void)
{
    struct coroutine *coro = coroutine_current();
    if (!coroutine_guards(coro, trap.address))
        user_fault(FAULT_KERNEL_ERROR, what_happened());
    size_t kib = coroutine_stack_bytes(coro) >> 10;
    user_fault(FAULT_STACK_OVERFLOW,
               all_kernels.running ? arena_printf("the kernel's stack of %zu KiB (pe_cpu: stack_kb) is full", kib)
                                : arena_printf("the bench's stack of %zu KiB is full", kib));
}

/* The stack on which a trapped kernel reports its fault: its own may be full. */
static char landing[64 << 10] __attribute__((aligned(16)));

void trap_divert(void *interrupted, void (*where)(void))
{
    ucontext_t *context = interrupted;
    char *stack_top = landing + sizeof landing;
#if defined __x86_64__
    enum { DIRECTION_FLAG = 1 << 10 };
    greg_t *registers = context->uc_mcontext.gregs;
    registers[REG_RIP] = (greg_t)(uintptr_t)where;
    registers[REG_RSP] = (greg_t)(uintptr_t)(stack_top - 8);    /* as after a call */
    registers[REG_EFL] &= ~DIRECTION_FLAG;
#elif defined __aarch64__
    context->uc_mcontext.pc = (uintptr_t)where;
    context->uc_mcontext.sp = (uintptr_t)stack_top;
    context->uc_mcontext.regs[30] = 0;
#else
#error "the registers of this processor are not known here"
#endif
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

/* Whether the report of a fault has trapped itself: it runs on the stack for such ends. */
static bool reports(const void *interrupted)
{
    const ucontext_t *context = interrupted;
#if defined __x86_64__
    uintptr_t at = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined __aarch64__
    uintptr_t at = (uintptr_t)context->uc_mcontext.sp;
#endif
    return at - (uintptr_t)landing < sizeof landing;
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    bool raised = info->si_code <= 0, foreign = raised && info->si_pid != getpid();
    if (!user_runs() || foreign || reports(context)) {  /* the default action */
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(signal, &plain, NULL);
        if (getpid() == caught.process && !foreign) {
            say("the simulator itself has failed: by a bug of it or of a model given with --impl, or because a kernel or "
                "bench has written over its memory\n");
            temporary_remove_all();
        }
        if (raised)
            raise(signal);
        return;
    }
    trap.signal = signal;
    trap.code = info->si_code;
    trap.address = !raised && (signal == SIGSEGV || signal == SIGBUS) ? info->si_addr : NULL;
    trap_divert(context, landed);
}

static void signals_catch(void)
{
    static char stack[64 << 10];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaltstack(&alternate, NULL))
        die("sigaltstack:");
    for (unsigned i = 0; i < COUNT_OF(signals); i++)
        if (sigaction(signals[i], &action, NULL))
            die("sigaction:");
}

/* ---- exit and fork */

static void leaves(const char *call, int status)
{
    if (user_runs())
        user_fault(FAULT_KERNEL_ERROR, arena_printf("it called %s(%d)", call, status));
}

/* Empties the buffers of files, which the child would write as well. */
static void before_fork(void)
{
    fflush(NULL);
}

static void in_child(void)
{
    if (!caught.forks)
        coroutines_close();
}

pid_t traps_fork(void)
{
    caught.forks = true;
    pid_t child = fork();
    caught.forks = false;
    if (child == 0) {
        caught.process = getpid();
        caught.thread = gettid();
    }
    return child;
}

void traps_catch(void (*bench_fault)(const char *text))
{
    caught.process = getpid();
    caught.thread = gettid();
    caught.bench_fault = bench_fault;
    leave_watch(leaves);
    pthread_atfork(before_fork, NULL, in_child);
    if (!coroutine_announced())
        signals_catch();
}
