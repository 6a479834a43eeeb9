/* loop.c: the loop of instants and rounds, and the host programs on top of it. */
#include "loop.h"

#include <inttypes.h>
#include <setjmp.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/fail.h"
#include "coroutine.h"
#include "event.h"
#include "observer.h"

enum { HOST_STACK_BYTES = 8 << 20 };                    /* a host program may call BLAS */

struct sim_program {
    struct coroutine *coro;
    struct sim_program *next;                           /* that waits for the same thing */
    bool awake, acts, returned;                         /* acts: it was awake when it was the programs' turn */
};

struct issue loop_issue;
uint64_t loop_alarm_ps = UINT64_MAX;

static struct {
    struct sim_program *all, *acting;                   /* all: by rank */
    uint32_t count, alive;
    bool any_awake;                                     /* if it is false, no program is awake */
    bool ended, failed;                                 /* no program goes on; that is because one has failed */
    double seconds;                                     /* host time that they have taken */
} programs;

struct loop_poll loop_poll;
uint64_t loop_limit_ps = UINT64_MAX;
void (*loop_limit_reached)(void);

static struct {
    bool runs, stopped;
    jmp_buf out;                                        /* of sim_run */
} loop;

void sim_reset(void)
{
    programs.all = programs.acting = NULL;
    loop.stopped = false;
    loop_issue = (struct issue){0};
    loop_alarm_ps = UINT64_MAX;
    event_reset();
    coroutine_reset();
}

uint64_t sim_now_ps(void)
{
    return now_ps;
}

/* ---- host programs */

uint32_t sim_rank(void)
{
    return programs.acting - programs.all;
}

uint32_t sim_ranks(void)
{
    return programs.count;
}

bool sim_returned(uint32_t rank)
{
    return programs.all[rank].returned;
}

/* Suspends code that only seems to be the program that acts: it has jumped to its stack. */
static void check_program(void)
{
    if (coroutine_current() != programs.acting->coro)
        coroutine_suspend(programs.acting->coro);
}

void sim_sleep(struct sim_wait *wait)
{
    check_program();
    programs.acting->next = wait->sleepers;
    wait->sleepers = programs.acting;
    coroutine_suspend(programs.acting->coro);
}

void sim_wake(struct sim_wait *wait)
{
    for (struct sim_program *program = wait->sleepers; program; program = program->next)
        program->awake = programs.any_awake = true;
    wait->sleepers = NULL;
}

void sim_yield(void)
{
    check_program();
    programs.acting->awake = programs.any_awake = true;
    coroutine_suspend(programs.acting->coro);
}

void sim_fail(void)
{
    programs.ended = programs.failed = true;
}

bool sim_failed(void)
{
    return programs.failed;
}

double sim_programs_seconds(void)
{
    return programs.seconds;
}

void sim_stop(void)
{
    programs.ended = loop.stopped = true;
    loop_poll.due = true;
}

void sim_abandon(void)
{
    if (!loop.runs)
        return;
    sim_fail();
    sim_stop();
    if (coroutine_current())
        coroutine_suspend(coroutine_current());
    longjmp(loop.out, 1);
}

void sim_end(void)
{
    programs.ended = true;
    for (;;)
        coroutine_suspend(programs.acting->coro);
}

static void program_lost(void)
{
    if (!programs.ended)
        message("fault: the host program of rank %u at %" PRIu64 " ps: its stack was left or overwritten (longjmp, or "
                "the tl of a kernel used outside of it)\n", (unsigned)sim_rank(), now_ps);
    sim_fail();
}

/* Lets the programs that are awake act, in the order of ranks. Returns false if none was. */
static bool programs_act(void)
{
    bool acted = false;
    if (!programs.any_awake)
        return false;
    programs.any_awake = false;
    observe_programs_act();
    phase_enter(PHASE_host);
    double began = clock_seconds();
    const struct sim_program *end = programs.all + programs.count;
    for (struct sim_program *program = programs.all; program < end; program++) {
        program->acts = program->awake;
        program->awake = false;
    }
    for (struct sim_program *program = programs.all; program < end && !programs.ended; program++) {
        if (!program->acts)
            continue;
        acted = true;
        programs.acting = program;
        enum coroutine_end end = coroutine_resume(program->coro);
        if (end == COROUTINE_LOST)
            program_lost();
        if (end != COROUTINE_RETURNED)
            continue;
        program->returned = true;
        coroutine_free(program->coro);
        programs.alive--;
    }
    programs.seconds += clock_seconds() - began;
    return acted;
}

/* ---- instants */

/* More rounds than any instant needs. A kernel that delays by 0 ps for ever makes endless rounds. */
enum { ROUNDS_MOST = 1 << 24 };

static void time_stands_still(void)
{
    message("%s: time stands still at %" PRIu64 " ps: %d rounds, and something is always due in this instant\n",
            program_name, now_ps, ROUNDS_MOST);
    sim_fail();
    sim_stop();
}

/* Attends to signals. Returns whether the run ends here. */
__attribute__((noinline, cold)) static bool stops(void)
{
    loop_poll.due = false;
    if (!loop.stopped && loop_poll.attend)
        loop_poll.attend();
    loop_poll.due |= loop.stopped;
    return loop.stopped;
}

/* Returns false if the run was stopped in the middle of the instant. */
static bool run_instant(void)
{
    uint32_t rounds = 0;
    do
        do {
            if (__builtin_expect(loop_poll.due, 0) && stops())
                return false;
            if (loop_issue.due)
                loop_issue.step();
            if (now_ps >= loop_alarm_ps)
                observe_alarm_rings();
            if (++rounds == ROUNDS_MOST)
                time_stands_still();
        } while (event_retire());
    while (programs_act());
    observe_instant_ends();
    phase_enter(PHASE_queue);
    return true;
}

/* Moves time on. Returns false if nothing is due any more. */
static bool next_instant(void)
{
    if (!event_next_instant())
        return false;
    if (now_ps > loop_limit_ps) {
        now_ps = loop_limit_ps;
        loop_limit_reached();
    }
    return true;
}

/* Runs to the end. Returns false if nothing is due any more and programs still wait. Apart from sim_run, whose setjmp
 * would keep its variables out of registers. */
__attribute__((noinline)) static bool run_instants(void)
{
    while (run_instant() && programs.alive && !programs.ended)
        if (!next_instant())
            return false;
    return true;
}

bool sim_run(void (*body)(void *), void *arg, uint32_t ranks, void (*stuck)(void))
{
    programs.all = arena_alloc(ranks, sizeof *programs.all);
    programs.count = programs.alive = ranks;
    programs.any_awake = true;
    programs.ended = programs.failed = loop.stopped = false;
    programs.seconds = 0;
    for (uint32_t rank = 0; rank < ranks; rank++)
        programs.all[rank] = (struct sim_program){.coro = coroutine_new(body, arg, HOST_STACK_BYTES), .awake = true};
    loop.runs = true;
    bool all_returned = setjmp(loop.out) || run_instants();     /* sim_abandon comes back to setjmp */
    if (!all_returned) {
        stuck();
        while (programs_act())
            ;
    }
    loop.runs = false;
    phase_enter(PHASE_rest);
    return all_returned;
}
