/* kernel.h: a kernel on a PE: a coroutine that submits commands and waits.
 *
 * A stackless kernel has a stack only while it runs: its body returns in order to wait, and is called again when the kernel
 * goes on, also after its end until no command is left. So the programs of a stream share one stack, on however many PEs they run.
 *
 * The kernel's coroutine calls the functions of the first part. A submission takes pe_cpu's overhead; a wait takes no
 * time beyond that of what it waits for. */
#ifndef KB_KERNEL_H
#define KB_KERNEL_H

#include "common/fail.h"
#include "machine/command.h"
#include "machine/fabric.h"
#include "sim/coroutine.h"
#include "sim/event.h"
#include "sim/loop.h"
#include "sim/observer.h"

struct launch;
struct tl;

struct failure {
    bool set;
    enum fault code;
    struct place node;
    uint64_t t_ps;
};

/* A kernel's body. `arg` is what the launch carries. That of a stackless kernel returns as soon as a function says, or
 * tl->waits does, that the kernel waits; the kernel ends when it returns and the kernel does not wait. */
typedef void kernel_fn(struct tl *tl, const void *arg);

/* A kernel that runs, or has run, on a PE: the context of all device calls. */
struct tl {
    struct pe *pe;
    struct launch *launch;
    uint64_t request;                                   /* number of the launch's request, for people */
    const char *name;                                   /* of the kernel */
    kernel_fn *body;
    const void *arg;
    uint32_t index, count;                              /* position among the launch's PEs by rank; their number */
    struct coroutine *coro;                             /* NULL: it has no stack */
    struct event event;                                 /* its next resumption */
    struct command *awaited;
    uint64_t awaited_since_ps;
    uint32_t serial;                                    /* number among all kernels of the run, from 1 on */
    bool stackless;
    bool waits;                                         /* of a stackless one: it has nothing to do before it is resumed */
    uint32_t step, part;                                /* where a stackless body goes on */
    struct command *first, *last;                       /* its commands that are not complete, by number */
    uint32_t commands;                                  /* submitted so far */
    struct command *issued;                             /* by a stackless kernel, and not submitted yet */
    struct call_site call;                              /* the last one of the device library; no name: none yet; of a
                                                           command stream the line alone, of its step */
    void (*began)(struct tl *tl), (*ended)(struct tl *tl);
    struct failure failure;
    void *data;                                         /* of the device library */
};

/* The kernel whose coroutine runs, NULL if none does, and how many calls of the device library there have been. */
extern struct kernels {
    struct tl *running;
    uint64_t calls;
} all_kernels;

/* What a call does that is not one of the kernel that runs, or that comes when the run is about to end. */
void kernel_call_stops(struct tl *tl, struct call_site call);

/* Records a call of the device library by a kernel. If another kernel runs, that one meets a fault, KERNEL_ERROR. */
static inline void kernel_calls(struct tl *tl, struct call_site call)
{
    all_kernels.calls++;
    if (__builtin_expect(!tl || tl != all_kernels.running || loop_ends, 0))
        kernel_call_stops(tl, call);
    tl->call = call;
    observe_call_begins(tl);
}

/* Waits for pe_cpu's overhead, checks the command and submits it. `ask` is copied before other kernels run. The command
 * lives until it is complete, which takes another event, or longer if somebody holds it. */
struct command *kernel_submit(struct tl *tl, const struct request *ask);

/* The same for a stackless kernel: after the first of these it waits for the overhead, then it calls the second one. */
void kernel_issue(struct tl *tl, const struct request *ask);
struct command *kernel_submit_issued(struct tl *tl);

/* The kernel's command of a number that was submitted; NULL: it is complete. */
struct command *kernel_command(const struct tl *tl, uint32_t number);

/* Waits until the command of a number is complete. A stackless kernel then waits if tl->waits says so; in the two below
 * it does. */
void kernel_wait(struct tl *tl, uint32_t number);

/* Waits for a time, 0 included. */
void kernel_delay(struct tl *tl, uint64_t ps);

/* Waits until kernel_go_on, which the host calls, and lets the kernel go on in this instant. */
void kernel_sleep(struct tl *tl);
void kernel_go_on(struct tl *tl);

/* Stops the kernel with a fault at the call of file and line; NULL, 0: there is none. The first fault of a kernel ends
 * it in this instant, and its PE starts nothing more. The message is for people. */
_Noreturn void kernel_fault(struct tl *tl, enum fault code, const char *file, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ---- from outside */

/* Starts a kernel at t_ps, and calls `began` then. Calls `ended` in the event in which the kernel has returned and all
 * its commands are complete, or in which it fails. */
void kernel_start(struct tl *tl, uint64_t t_ps, void (*began)(struct tl *), void (*ended)(struct tl *));

/* Where a kernel is, for people: "its last call is tl_load, at gemm.c:12". */
const char *kernel_last_call(const struct tl *tl);

/* Prints how many PEs have had each fault that was printed for one of them. */
void faults_report_rest(void);

/* Numbers kernels from 1 again. */
void kernels_reset(void);

extern const struct handler kernel_handlers[];

#endif
