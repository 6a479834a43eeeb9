/* loop.c: the loop of instants and rounds, and the host programs on top of it. */
#include "loop.h"

#include <inttypes.h>

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
} programs;

void sim_reset(void)
{
    programs.all = programs.acting = NULL;
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
    return acted;
}

/* ---- instants */

/* More rounds than any instant needs. A kernel that delays by 0 ps for ever makes endless rounds. */
enum { ROUNDS_MOST = 1 << 24 };

static void run_instant(void)
{
    uint32_t rounds = 0;
    do
        do {
            if (loop_issue.due)
                loop_issue.step();
            if (now_ps >= loop_alarm_ps)
                observe_alarm_rings();
            if (++rounds == ROUNDS_MOST)
                run_failed("time stands still at %" PRIu64 " ps: %d rounds, and something is always due in this "
                           "instant", now_ps, ROUNDS_MOST);
        } while (event_retire());
    while (programs_act());
    observe_instant_ends();
    phase_enter(PHASE_queue);
}

bool sim_run(void (*body)(void *), void *arg, uint32_t ranks, void (*stuck)(void))
{
    programs.all = arena_alloc(ranks, sizeof *programs.all);
    programs.count = programs.alive = ranks;
    programs.any_awake = true;
    programs.ended = programs.failed = false;
    for (uint32_t rank = 0; rank < ranks; rank++)
        programs.all[rank] = (struct sim_program){.coro = coroutine_new(body, arg, HOST_STACK_BYTES), .awake = true};
    bool all_returned;
    do {
        run_instant();
        all_returned = !programs.alive || programs.ended;
    } while (!all_returned && event_next_instant());
    if (!all_returned) {
        stuck();
        while (programs_act())
            ;
    }
    phase_enter(PHASE_rest);
    return all_returned;
}
