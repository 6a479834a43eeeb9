/* watchdog.c: limits, signals, stalled kernels and progress of a run. */
#define _GNU_SOURCE                                     /* gettid, REG_RIP */
#include "watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/human.h"
#include "base/progress.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/temporary.h"
#include "launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "sim/coroutine.h"
#include "sim/event.h"
#include "sim/loop.h"
#include "trap.h"

enum { TICK_MS = 100, HASTE_MS = 1, GROUPS = 8 };

/* How long a kernel may run without a device call before it is named, and, once the run is to end, before it is left
 * where it is: in its own code, and in a library that it has called. The last one: before the process ends without a
 * report. */
static const double NAMED_S = 10, LEFT_S = 0.5, LEFT_IN_LIBRARY_S = 2, GIVEN_UP_S = 60;

enum end { END_NONE, END_SIGINT, END_SIGTERM, END_TIME, END_MEMORY, END_SIMULATED };

static const struct {
    const char *name;
    int status;
} ends[] = {
    [END_NONE] = {NULL, STATUS_GOOD},
    [END_SIGINT] = {"SIGINT", 128 + SIGINT},
    [END_SIGTERM] = {"SIGTERM", 128 + SIGTERM},
    [END_TIME] = {"--time-limit", STATUS_RUN_FAILED},
    [END_MEMORY] = {"--mem-limit", STATUS_RUN_FAILED},
    [END_SIMULATED] = {"--sim-limit", STATUS_RUN_FAILED},
};

static struct {
    struct watchdog_limits limits;
    struct watchdog_run run;
    double began;
    timer_t timer;
    struct sigaction before[4];                         /* of `signals` */
    bool runs, said;                                    /* said: what ends the run, to people */
    bool hastes;                                        /* ticks come every HASTE_MS */
} dog;

/* What the handlers write. */
static volatile sig_atomic_t end, asked;                /* an enum end; SIGUSR1 came */
static volatile double end_s, asked_s;                  /* when they were set */

static struct {
    uint64_t calls, resumed;                            /* as they were when the kernel was last seen to act */
    double since;
    bool named;
} stall;

const char *watchdog_prefix = "";

static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM};

/* Ends the run, unless something else has ended it before. Handlers call it, too. */
static void end_by(enum end reason)
{
    if (end != END_NONE)
        return;
    end_s = clock_seconds();
    end = reason;
    loop_ends = true;
    loop_ask();
}

/* ---- who runs */

/* PEs whose kernels are at the same place. */
struct where_group {
    const struct tl *first;
    uint32_t count;
};

static bool same_place(const struct tl *a, const struct tl *b)
{
    return a->name == b->name && a->call.file == b->call.file && a->call.line == b->call.line &&
           !a->awaited == !b->awaited;
}

static bool has_kernel(const struct pe *pe)
{
    if (!pe->kernel)
        return false;
    const struct kernel_run *run = container_of(pe->kernel, struct kernel_run, tl);
    return run->started && !run->ended;
}

static void print_group(const struct where_group *group)
{
    const struct tl *tl = group->first;
    message("  kernel %s on %u PE%s %s", tl->name, (unsigned)group->count,
            group->count > 1 ? "s, the first is" : ":", pe_name(tl->pe));
    if (tl->awaited)
        message(", waits for command %u, %s", (unsigned)tl->awaited->number, command_words[tl->awaited->ask.kind]);
    message("; %s\n", kernel_last_call(tl));
}

void watchdog_print_kernels(void)
{
    struct where_group groups[GROUPS];
    unsigned count = 0;
    uint32_t others = 0;
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        if (!has_kernel(pe))
            continue;
        unsigned i = 0;
        while (i < count && !same_place(groups[i].first, pe->kernel))
            i++;
        if (i == GROUPS)
            others++;
        else if (i == count)
            groups[count++] = (struct where_group){pe->kernel, 1};
        else
            groups[i].count++;
    }
    for (unsigned i = 0; i < count; i++)
        print_group(&groups[i]);
    if (others)
        message("  %u more PEs elsewhere\n", (unsigned)others);
    if (!count)
        message("  no kernel runs\n");
}

/* ---- progress */

/* How many commands a kernel has had: the last one of each body that has ended tells it for those that have not, unless
 * the run knows it. */
struct known_body {
    kernel_fn *body;
    double commands;
};

struct known_bodies {
    struct known_body at[GROUPS];
    unsigned count;
};

static struct known_body *known_body(struct known_bodies *known, kernel_fn *body)
{
    for (unsigned i = 0; i < known->count; i++)
        if (known->at[i].body == body)
            return &known->at[i];
    return NULL;
}

static void note_body(struct known_bodies *known, const struct tl *tl)
{
    struct known_body *body = known_body(known, tl->body);
    if (!body && known->count < GROUPS)
        *(body = &known->at[known->count++]) = (struct known_body){.body = tl->body};
    if (body)
        body->commands = (double)tl->commands;
}

/* How many commands a kernel will have had, or 0 if that is not known. */
static double commands_of(struct known_bodies *bodies, const struct tl *tl)
{
    if (dog.run.commands)
        return (double)dog.run.commands(tl);
    const struct known_body *body = known_body(bodies, tl->body);
    return body ? body->commands : 0;
}

/* The part that a kernel has done that has not ended, from 0 to 1: of its commands, else of the tiles of the composites
 * that are not complete. Sets *known if it knows that. */
static double part_done(struct known_bodies *bodies, const struct tl *tl, bool *known)
{
    double commands = commands_of(bodies, tl);
    double complete = (double)tl->commands, tiles = 0, left = 0;
    for (const struct command *command = tl->first; command; command = command->next) {
        bool composite = command_is_composite(command->ask.kind) && command->tiles;
        complete -= composite ? (double)command->tiles_left / (double)command->tiles : 1;
        tiles += composite ? (double)command->tiles : 0;
        left += composite ? (double)command->tiles_left : 0;
    }
    *known |= tiles > 0 || commands > 0;
    if (commands > 0)
        return complete < commands ? complete / commands : 1;
    return tiles > 0 ? 1 - left / tiles : 0;
}

/* How much of the launches that there have been is done: kernels that have ended, and parts of the others. Negative: not
 * known. */
static double share_done(void)
{
    struct known_bodies bodies = {.count = 0};
    double done = 0, all = 0;
    bool known = false;
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++) {
            if (run->ended)
                note_body(&bodies, &run->tl);
            known |= run->ended;
        }
        bool runs = launch->status == LAUNCH_RUNNING;
        for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++)
            done += run->ended || !runs ? 1 : run->started ? part_done(&bodies, &run->tl, &known) : 0;
        all += launch->count;
    }
    return known ? done / all : dog.run.part_done ? dog.run.part_done() : -1;
}

/* "simulation 42 %, 1.2 ms simulated, 3.4 M events, 2 M/s, about 3 s left". `began`: when simulation has begun. */
static const char *where(void)
{
    double elapsed = clock_seconds() - dog.began, busy = elapsed - sim_programs_seconds(), share = share_done();
    const char *part = share >= 0 ? arena_printf(" %.0f %%", 100 * share) : "";
    const char *left = share > 0 && share < 1
                           ? arena_printf(", about %s left", human_seconds(elapsed * (1 - share) / share)) : "";
    return arena_printf("%ssimulation%s, %s simulated, %s, %s%s", watchdog_prefix, part, human_time(now_ps),
                        human_count((double)event_count, "events"),
                        human_count((double)event_count / (busy > 0 ? busy : 1), "/s"), left);
}

/* ---- the loop's side */

static void print_end(void)
{
    if (dog.said)
        return;
    dog.said = true;
    message("%s: %sended by %s after %s, at %s simulated\n", program_name, watchdog_prefix, ends[end].name,
            human_seconds(clock_seconds() - dog.began), human_time(now_ps));
    watchdog_print_kernels();
}

static void answer(void)
{
    if (!asked)
        return;
    asked = false;
    message("%s: %s\n", program_name, where());
    watchdog_print_kernels();
}

static void attend(void)
{
    struct arena_mark mark = arena_mark();
    answer();
    if (end != END_NONE) {
        print_end();
        sim_stop();
    } else if (progress_is_due()) {
        progress_show(where());
    }
    arena_release(mark);
}

static void simulated_time_is_over(void)
{
    end_by(END_SIMULATED);
    print_end();
    sim_stop();
}

bool watchdog_ends_here(void)
{
    if (!dog.runs)
        return false;
    answer();
    if (end == END_NONE)
        return false;
    print_end();
    sim_abandon();
    return true;
}

const char *watchdog_ended(void)
{
    return ends[end].name;
}

int watchdog_status(void)
{
    return ends[end].status;
}

/* ---- the handlers' side: only what signal handlers may do */

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

static void die_of(int signal)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigaction(signal, &plain, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(signal);
}

static uint64_t resident_bytes(void)
{
    char text[64] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    const char *second = length > 0 ? strchr(text, ' ') : NULL;
    uint64_t pages = 0;
    for (const char *digit = second ? second + 1 : ""; *digit >= '0' && *digit <= '9'; digit++)
        pages = pages * 10 + (uint64_t)(*digit - '0');
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Names the kernel that does not come back; snprintf takes no lock and no memory for these formats. */
static void name_stalled(double seconds)
{
    char text[400];
    const struct tl *tl = all_kernels.running;
    if (tl)
        snprintf(text, sizeof text, "%s: kernel %s on %s has made no device call for %.0f s; its last one is %s, at "
                 "%s:%u\n", program_name, tl->name, pe_name(tl->pe), seconds, tl->call.name ? tl->call.name : "none",
                 tl->call.file ? tl->call.file : "-", (unsigned)tl->call.line);
    else
        snprintf(text, sizeof text, "%s: the bench runs, and has not come back to the simulator for %.0f s\n",
                 program_name, seconds);
    say(text);
}

static _Noreturn void left_behind(void)
{
    const struct tl *tl = all_kernels.running;
    print_end();
    if (tl)
        message("  kernel %s on %s does not come back to the simulator and is left where it is; %s\n", tl->name,
                pe_name(tl->pe), kernel_last_call(tl));
    else
        message("  the bench does not come back to the simulator and is left where it is; %s\n",
                dog.run.bench_call ? dog.run.bench_call() : "");
    for (;;) {
        sim_abandon();
        coroutine_suspend(coroutine_current());
    }
}

/* Whether the interrupted code is of this program, not of a library that it calls and that may hold locks. */
static bool in_own_code(const void *interrupted)
{
    extern const char __executable_start[], etext[];
    const ucontext_t *context = interrupted;
#if defined __x86_64__
    const char *at = (const char *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    const char *at = (const char *)(uintptr_t)context->uc_mcontext.pc;
#endif
    return at >= __executable_start && at < etext;
}

static int tick_every(long ms)
{
    struct itimerspec every = {.it_interval.tv_nsec = ms * 1000000, .it_value.tv_nsec = ms * 1000000};
    dog.hastes = ms < TICK_MS;
    return timer_settime(dog.timer, 0, &every, NULL);
}

static void watch_stall(double now, void *context)
{
    uint64_t calls = all_kernels.calls, resumed = coroutine_resumed();
    if (!coroutine_current() || calls != stall.calls || resumed != stall.resumed) {
        stall.calls = calls;
        stall.resumed = resumed;
        stall.since = now;
        stall.named = false;
        return;
    }
    double seconds = now - stall.since;
    if (!all_kernels.running && !now_ps)
        progress_setup(watchdog_prefix, seconds);
    if (all_kernels.running && seconds >= NAMED_S && !stall.named) {
        stall.named = true;
        name_stalled(seconds);
    }
    if (asked && seconds >= 2e-3 * TICK_MS && now - asked_s >= 2e-3 * TICK_MS) {
        asked = false;
        name_stalled(seconds);
    }
    double late = end == END_NONE ? 0 : now - end_s;
    late = late < seconds ? late : seconds;
    late *= end == END_MEMORY ? 2 : 1;                  /* memory grows meanwhile */
    if (late >= LEFT_S && !dog.hastes)
        tick_every(HASTE_MS);                           /* to meet a kernel in its own code that is there seldom */
    if (!threads_at_work && ((late >= LEFT_S && in_own_code(context)) || late >= LEFT_IN_LIBRARY_S)) {
        stall.since = now;
        trap_divert(context, left_behind);
    }
}

static void ticked(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    int error = errno;
    double now = clock_seconds();
    if (dog.limits.seconds > 0 && now - dog.began > dog.limits.seconds)
        end_by(END_TIME);
    if (dog.limits.bytes && resident_bytes() > dog.limits.bytes)
        end_by(END_MEMORY);
    if (end != END_NONE && now - end_s > GIVEN_UP_S) {
        say("the run does not come to an end; the process ends without a report\n");
        temporary_remove_all();
        if (end != END_SIGINT && end != END_SIGTERM)
            _exit(ends[end].status);
        die_of(end == END_SIGINT ? SIGINT : SIGTERM);
    }
    loop_ask();
    watch_stall(now, context);
    errno = error;
}

/* The first SIGINT or SIGTERM ends the run in order, the second one at once. */
static void interrupted(int signal)
{
    if (end == END_NONE) {
        end_by(signal == SIGINT ? END_SIGINT : END_SIGTERM);
        return;
    }
    temporary_remove_all();
    die_of(signal);
}

static void asked_where(int signal)
{
    (void)signal;
    if (!asked)
        asked_s = clock_seconds();
    asked = true;
    loop_ask();
}

/* ---- start and end */

static void timer_start(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &dog.timer) || tick_every(TICK_MS))
        die("a timer:");
}

/* A signal that is ignored, as SIGINT in the background, stays ignored. */
static void signals_watch(void)
{
    for (unsigned i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction action = {.sa_flags = SA_RESTART | SA_ONSTACK};
        if (signals[i] == SIGALRM) {
            action.sa_flags |= SA_SIGINFO;
            action.sa_sigaction = ticked;
        } else {
            action.sa_handler = signals[i] == SIGUSR1 ? asked_where : interrupted;
        }
        bool given_up = signals[i] == SIGINT || signals[i] == SIGTERM;
        sigaction(signals[i], NULL, &dog.before[i]);
        if (!given_up || dog.before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void watchdog_start(const struct watchdog_limits *limits, const struct watchdog_run *run)
{
    dog.limits = *limits;
    dog.run = *run;
    dog.began = stall.since = clock_seconds();
    dog.said = false;
    dog.runs = true;
    end = END_NONE;
    asked = loop_ends = false;
    loop_attend = attend;
    loop_limit_set(limits->ps ? limits->ps : UINT64_MAX, simulated_time_is_over);
    message_set_before(progress_clear);
    signals_watch();
    timer_start();
}

void watchdog_stop(void)
{
    dog.runs = false;
    timer_delete(dog.timer);
    for (unsigned i = 0; i < COUNT_OF(signals); i++)
        sigaction(signals[i], &dog.before[i], NULL);
    loop_attend = NULL;
    progress_end();
    message_set_before(NULL);
}
