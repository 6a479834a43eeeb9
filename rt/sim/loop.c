/* loop.c: the loop of instants and rounds, with host programs on top. */
#include "loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/diag.h"
#include "coroutine.h"
#include "event.h"
#include "observer.h"

enum { HOST_STACK_BYTES = 8 << 20 };                    /* a host program may call BLAS */

struct sim_program {
    struct coroutine *coro;
    struct sim_program *next;                           /* that waits for the same */
    bool awake, acts, returned;                         /* acts: was awake when the programs' turn came */
};

struct issue loop_issue;
uint64_t loop_alarm_ps = UINT64_MAX;

static struct sim_program *programs, *acting;           /* by rank */
static uint32_t count, alive;
static bool ended;
static bool any_awake;                                  /* at least one of the programs may be */

void sim_reset(void)
{
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
    return acting - programs;
}

uint32_t sim_ranks(void)
{
    return count;
}

bool sim_returned(uint32_t rank)
{
    return programs[rank].returned;
}

void sim_sleep(struct sim_wait *wait)
{
    acting->next = wait->sleepers;
    wait->sleepers = acting;
    coroutine_suspend(acting->coro);
}

void sim_wake(struct sim_wait *wait)
{
    for (struct sim_program *program = wait->sleepers; program; program = program->next)
        program->awake = any_awake = true;
    wait->sleepers = NULL;
}

void sim_yield(void)
{
    acting->awake = any_awake = true;
    coroutine_suspend(acting->coro);
}

void sim_end(void)
{
    ended = true;
    for (;;)
        coroutine_suspend(acting->coro);
}

/* Lets those that are awake act, in rank order; false: there was none. */
static bool programs_act(void)
{
    bool acted = false;
    if (!any_awake)
        return false;
    any_awake = false;
    observe_programs_act();
    phase_enter(PHASE_host);
    for (struct sim_program *program = programs; program < programs + count; program++) {
        program->acts = program->awake;
        program->awake = false;
    }
    for (struct sim_program *program = programs; program < programs + count && !ended; program++) {
        if (!program->acts)
            continue;
        acted = true;
        acting = program;
        if (coroutine_resume(program->coro))
            continue;
        program->returned = true;
        coroutine_free(program->coro);
        alive--;
    }
    return acted;
}

/* ---- instants */

/* More rounds than any instant needs; a kernel that delays by 0 ps for ever makes no other. */
enum { ROUNDS_MOST = 1 << 24 };

static void stands_still(void)
{
    run_failed("time stands still at %" PRIu64 " ps: %d rounds, and something is always due in this instant",
               now_ps, ROUNDS_MOST);
}

/* All rounds of the instant. */
static void instant(void)
{
    uint32_t rounds = 0;
    do
        do {
            if (loop_issue.due)
                loop_issue.step();
            if (now_ps >= loop_alarm_ps)
                observe_alarm_rings();
            if (++rounds == ROUNDS_MOST)
                stands_still();
        } while (event_retire());
    while (programs_act());
    observe_instant_ends();
    phase_enter(PHASE_queue);
}

/* False: host programs wait, and nothing is due any more. */
static bool instants(void)
{
    do {
        instant();
        if (!alive || ended)
            return true;
    } while (event_next_instant());
    return false;
}

bool sim_run(void (*body)(void *), void *arg, uint32_t ranks, void (*stuck)(void))
{
    programs = arena_alloc(ranks, sizeof *programs);
    count = alive = ranks;
    any_awake = true;
    ended = false;
    for (uint32_t rank = 0; rank < ranks; rank++)
        programs[rank] = (struct sim_program){.coro = coroutine_new(body, arg, HOST_STACK_BYTES), .awake = true};
    bool all_returned = instants();
    if (!all_returned) {
        stuck();
        while (programs_act())
            ;
    }
    phase_enter(PHASE_rest);
    return all_returned;
}
