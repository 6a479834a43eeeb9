/* kernel.c: kernels as coroutines: they submit commands, wait, and meet faults. */
#include "kernel.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "machine/deferred.h"
#include "machine/emitted.h"
#include "machine/operand.h"
#include "machine/pe.h"
#include "machine/scheduler.h"
#include "machine/submission.h"
#include "machine/tiling.h"
#include "sim/loop.h"
#include "sim/observer.h"

/* ---- the coroutine */

static void kernel_body(void *arg)
{
    struct tl *tl = arg;
    tl->waits = false;
    tl->body(tl, tl->arg);
    while (tl->first && !tl->waits)
        kernel_wait(tl, tl->first->number);
}

/* Waits until an event resumes the kernel. */
static void suspend(struct tl *tl)
{
    if (tl->stackless)
        tl->waits = true;
    else
        coroutine_suspend(tl->coro);
}

struct kernels all_kernels;
static uint32_t serials;                                /* given out */

static void kernel_end(struct tl *tl)
{
    tl->ended(tl);
    observe_kernel_ends(tl);
}

static void kernel_lost(struct tl *tl);

/* A run that is to end resumes no kernel: it might not come back either. */
static void kernel_run(struct tl *tl)
{
    if (tl->failure.set || loop_ends)
        return;
    if (!tl->coro)
        tl->coro = coroutine_new(kernel_body, tl, kb_attrs.pe_cpu_stack_bytes);
    all_kernels.running = tl;
    enum coroutine_end end = coroutine_resume(tl->coro);
    all_kernels.running = NULL;
    if (end == COROUTINE_LOST)
        kernel_lost(tl);
    bool returned = end == COROUTINE_RETURNED, stopped = tl->stackless && end == COROUTINE_SUSPENDED;
    if (!returned && !stopped)
        return;
    coroutine_free(tl->coro);
    tl->coro = NULL;
    if (returned && !tl->waits)
        kernel_end(tl);
}

static void kernel_resumes(struct event *event)
{
    kernel_run(container_of(event, struct tl, event));
}

static void kernel_at(struct tl *tl, uint64_t t_ps, void (*fire)(struct event *))
{
    event_set(&tl->event, event_order(pe_rank(tl->pe, NODE_pe_cpu), CLASS_KERNEL, 0), 0, fire);
    event_at(&tl->event, t_ps);
}

/* Resumes the kernel at a time of its own choice, not because a command is complete. */
static void kernel_acts_at(struct tl *tl, enum kernel_act act, uint64_t t_ps, void (*fire)(struct event *))
{
    observe_kernel_will_act(tl, act, t_ps);
    kernel_at(tl, t_ps, fire);
}

static void kernel_begins(struct event *event)
{
    struct tl *tl = container_of(event, struct tl, event);
    tl->began(tl);
    observe_kernel_begins(tl);
    if (kb_attrs.pe_cpu_launch_ps)
        kernel_acts_at(tl, KERNEL_LAUNCHES, time_after(now_ps, kb_attrs.pe_cpu_launch_ps), kernel_resumes);
    else
        kernel_run(tl);
}

void kernel_start(struct tl *tl, uint64_t t_ps, void (*began)(struct tl *), void (*ended)(struct tl *))
{
    tl->serial = ++serials;
    tl->began = began;
    tl->ended = ended;
    tl->pe->kernel = tl;
    kernel_acts_at(tl, KERNEL_BEGINS, t_ps, kernel_begins);
}

struct command *kernel_command(const struct tl *tl, uint32_t number)
{
    struct command *command = tl->first;
    if (tl->last && tl->last->number == number)         /* the case of a call that blocks */
        return tl->last;
    while (command && command->number < number)
        command = command->next;
    return command && command->number == number ? command : NULL;
}

void kernel_wait(struct tl *tl, uint32_t number)
{
    struct command *command = kernel_command(tl, number);
    if (!command)
        return;
    tl->awaited = command;
    tl->awaited_since_ps = now_ps;
    suspend(tl);
}

/* Resumes the kernel in this instant if it waits for the command. */
static void completed(struct command *command)
{
    struct tl *tl = command->pe->kernel;
    if (tl->awaited == command && !tl->failure.set) {
        tl->awaited = NULL;
        kernel_at(tl, now_ps, kernel_resumes);
    }
    *(command->before ? &command->before->next : &tl->first) = command->next;
    *(command->next ? &command->next->before : &tl->last) = command->before;
}

static void pause(struct tl *tl, enum kernel_act act, uint64_t ps)
{
    kernel_acts_at(tl, act, time_after(now_ps, ps), kernel_resumes);
    suspend(tl);
}

void kernel_delay(struct tl *tl, uint64_t ps)
{
    pause(tl, KERNEL_DELAYS, ps);
}

void kernel_sleep(struct tl *tl)
{
    suspend(tl);
}

void kernel_go_on(struct tl *tl)
{
    if (!tl->failure.set)
        kernel_acts_at(tl, KERNEL_DELAYS, now_ps, kernel_resumes);
}

/* ---- faults */

/* Faults that are equal apart from the PE, the time and the numbers in their text: the same kernel of the same launch at
 * the same call. The first one is printed at once. */
struct fault_group {
    enum fault code;
    uint64_t request;
    const char *kernel, *file, *text;
    uint32_t line;
    struct place first, last;
    uint64_t last_ps;
    uint32_t more;                                      /* not printed yet */
};

static struct ARRAY(struct fault_group) groups;

/* Whether two texts are equal apart from their numbers. */
static bool same_text(const char *a, const char *b)
{
    for (char before = ' ';; before = *a, a++, b++) {
        bool number = isdigit((unsigned char)*a) || isdigit((unsigned char)*b) || before == 'x';
        while (number && isxdigit((unsigned char)*a))
            a++;
        while (number && isxdigit((unsigned char)*b))
            b++;
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

static struct fault_group *group_of(const struct fault_group *fault)
{
    for (size_t i = 0; i < groups.count; i++) {
        struct fault_group *group = &groups.at[i];
        bool equal = group->code == fault->code && group->request == fault->request &&
                     group->kernel == fault->kernel && group->file == fault->file && group->line == fault->line &&
                     same_text(group->text, fault->text);
        if (equal)
            return group;
    }
    return NULL;
}

/* Prints the first fault of a group, and counts the others. */
static void report(const struct tl *tl, enum fault code, struct place node, const char *file, uint32_t line,
                   const char *text)
{
    struct fault_group fault = {.code = code, .request = tl->request, .kernel = tl->name,
                                .file = line ? file : tl->call.file, .line = line ? line : tl->call.line,
                                .first = node, .text = text};
    struct fault_group *group = group_of(&fault);
    if (group) {
        group->more++;
        group->last = node;
        group->last_ps = now_ps;
        return;
    }
    fault.text = arena_text(text, strlen(text));
    *array_add(&groups) = fault;
    message("fault: %s at %s, %" PRIu64 " ps, request %" PRIu64 ", kernel %s: %s\n", fault_names[code],
            place_name(node), now_ps, tl->request, tl->name, text);
    if (file)
        message("  called at %s:%u\n", file, (unsigned)line);
}

void faults_report_rest(void)
{
    for (size_t i = 0; i < groups.count; i++) {
        struct fault_group *group = &groups.at[i];
        if (!group->more)
            continue;
        message("fault: %s of kernel %s as at %s, on %u more PE%s", fault_names[group->code], group->kernel,
                place_name(group->first), (unsigned)group->more, group->more > 1 ? "s; the last one is" : ":");
        message(" %s, %" PRIu64 " ps\n", place_name(group->last), group->last_ps);
        group->more = 0;
    }
}

/* Ends the kernel, whose PE starts nothing more. Does nothing after the first fault. */
static void failed(struct tl *tl, enum fault code, struct place node, const char *file, uint32_t line,
                   const char *text)
{
    if (tl->failure.set)
        return;
    report(tl, code, node, file, line, text);
    tl->failure = (struct failure){true, code, node, now_ps};
    deferred_end(tl->pe);
    deferred_make_events(tl->pe);
    tl->pe->failed = true;
    kernel_end(tl);
}

/* Suspends the kernel that runs for good. */
static _Noreturn void kernel_stop(struct tl *tl)
{
    for (;;)
        coroutine_suspend(tl->coro);
}

/* The part of a PE that finds a fault of a kernel. */
static enum node_kind fault_part(enum fault code)
{
    return code == FAULT_BAD_ADDRESS ? NODE_pe_dma : code == FAULT_PAGE_FAULT ? NODE_pe_mmu : NODE_pe_cpu;
}

void kernel_fault(struct tl *tl, enum fault code, const char *file, uint32_t line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    failed(tl, code, place_pe(pe_number(tl->pe), fault_part(code)), file, line, text);
    kernel_stop(tl);
}

static void kernel_lost(struct tl *tl)
{
    failed(tl, FAULT_KERNEL_ERROR, place_pe(pe_number(tl->pe), NODE_pe_cpu), NULL, 0,
           arena_printf("it jumped to the stack of another kernel or bench, or one of them to its stack (longjmp); %s",
                        kernel_last_call(tl)));
}

const char *kernel_last_call(const struct tl *tl)
{
    if (!tl->call.name)
        return "before its first call";
    return arena_printf("its last call is %s, at %s:%u", tl->call.name, tl->call.file, (unsigned)tl->call.line);
}

void kernel_call_stops(struct tl *tl, struct call_site call)
{
    if (!all_kernels.running)
        misuse_of(call, "it is for kernels; a bench cannot call it");
    if (tl != all_kernels.running)
        kernel_fault(all_kernels.running, FAULT_KERNEL_ERROR, call.file, call.line,
                     "%s: tl belongs to another kernel or PE; it is not the one that this kernel was called with", call.name);
    tl->call = call;
    observe_call_begins(tl);
    kernel_stop(tl);
}

static void faulted(const struct command *command, enum fault code, enum node_kind part, const char *text)
{
    failed(command->pe->kernel, code, place_pe(pe_number(command->pe), part), command->ask.file, command->ask.line,
           text);
}

/* ---- submission */

static const struct submitter submitter = {completed, faulted};

/* Makes a command, before others run, whose calls may use the same `ask`. */
static struct command *issue(struct tl *tl, const struct request *ask)
{
    struct command *command = command_new(ask);
    pause(tl, KERNEL_SUBMITS, pe_cpu_issue_ps(tl->pe, ask->kind));
    return command;
}

static struct command *submit(struct tl *tl, struct command *command)
{
    command->ask.serial = tl->serial;
    command->pe = tl->pe;
    command->submitter = &submitter;
    command->kernel = tl->name;
    command->number = tl->commands;
    command->submitted_ps = now_ps;
    const char *wrong = tiling_make(command);
    struct refusal why;
    if (submission_refused(command, wrong, &why)) {
        command_fault(command, why.code, why.part, "%s", why.text);
        kernel_stop(tl);
    }
    operands_make(command);
    tl->commands++;
    command->before = tl->last;
    *(tl->last ? &tl->last->next : &tl->first) = command;
    tl->last = command;
    scheduler_submit(tl->pe, command);
    return command;
}

struct command *kernel_submit(struct tl *tl, const struct request *ask)
{
    return submit(tl, issue(tl, ask));
}

void kernel_issue(struct tl *tl, const struct request *ask)
{
    tl->issued = issue(tl, ask);
}

struct command *kernel_submit_issued(struct tl *tl)
{
    return submit(tl, tl->issued);
}

void kernels_reset(void)
{
    serials = 0;
    array_free(&groups);
}

const struct handler kernel_handlers[] = {
    HANDLER(kernel_begins, "kernel begins"),
    HANDLER(kernel_resumes, "kernel goes on"),
    {0}};
