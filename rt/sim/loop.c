/* loop.c: the loop of instants and rounds, and the host programs on top of it. */
#include "loop.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "base/stopwatch.h"
#include "base/threads.h"
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
void (*loop_attend)(void);
volatile sig_atomic_t loop_ends;
uint64_t loop_several_rounds_ps = UINT64_MAX;

static struct {
    struct sim_program *all, *acting;                   /* all: by rank */
    uint32_t count, alive;
    bool any_awake;                                     /* if it is false, no program is awake */
    bool ended, failed;                                 /* no program goes on: all have returned, or one has failed */
    double seconds;                                     /* host time that they have taken */
} programs;

static struct {
    _Atomic uint64_t attend_ps;                         /* the loop attends before the first round at or after this time */
    volatile sig_atomic_t asked;
    uint64_t limit_ps, alarm_ps;
    void (*limit_reached)(void);
    bool runs, stopped, paused;
    jmp_buf out;                                        /* of sim_run */
} loop = {.attend_ps = UINT64_MAX, .limit_ps = UINT64_MAX, .alarm_ps = UINT64_MAX};

void sim_reset(void)
{
    programs.all = programs.acting = NULL;
    loop.stopped = false;
    loop_several_rounds_ps = UINT64_MAX;
    loop_issue = (struct issue){0};
    loop_alarm_set(UINT64_MAX);
    event_reset();
    coroutine_reset();
}

uint64_t sim_now_ps(void)
{
    return now_ps;
}

/* ---- attention */

void loop_ask(void)
{
    loop.asked = true;
    loop.attend_ps = 0;
}

/* Works out when to attend next. A signal may ask at any time, so requests come last. */
static void plan_attention(void)
{
    uint64_t late_ps = loop.limit_ps < UINT64_MAX ? loop.limit_ps + 1 : UINT64_MAX;
    loop.attend_ps = late_ps < loop.alarm_ps ? late_ps : loop.alarm_ps;
    if (loop.asked || loop.stopped)
        loop.attend_ps = 0;
}

void loop_limit_set(uint64_t t_ps, void (*reached)(void))
{
    loop.limit_ps = t_ps;
    loop.limit_reached = reached;
    plan_attention();
}

uint64_t loop_limit_ps(void)
{
    return loop.limit_ps;
}

void loop_alarm_set(uint64_t t_ps)
{
    loop.alarm_ps = t_ps;
    plan_attention();
}

uint64_t loop_alarm_ps(void)
{
    return loop.alarm_ps;
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
    for (struct sim_program *program = wait->sleepers; program; program = program->next) {
        program->awake = programs.any_awake = true;
        observe_program_wakes(program - programs.all);
    }
    wait->sleepers = NULL;
}

void sim_yield(void)
{
    check_program();
    programs.acting->awake = programs.any_awake = true;
    observe_program_wakes(sim_rank());
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
    loop_ask();
}

void sim_abandon(void)
{
    if (!loop.runs)
        return;
    sim_fail();
    sim_stop();
    threads_leave();
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

/* Lets the programs that are awake act, in the order of ranks. */
static void programs_act(void)
{
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
        programs.acting = program;
        observe_program_acts(sim_rank());
        enum coroutine_end end = coroutine_resume(program->coro);
        if (end == COROUTINE_LOST)
            program_lost();
        if (end != COROUTINE_RETURNED)
            continue;
        program->returned = true;
        coroutine_free(program->coro);
        programs.alive--;
    }
    programs.ended |= !programs.alive;
    programs.seconds += clock_seconds() - began;
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

__attribute__((noinline, cold)) static void attend(void)
{
    if (loop.asked && !loop.stopped && loop_attend) {
        loop.asked = false;
        loop_attend();
    }
    if (!loop.stopped && now_ps > loop.limit_ps) {
        event_return(loop.limit_ps);
        loop.limit_reached();
    }
    if (!loop.stopped && now_ps >= loop.alarm_ps)
        observe_alarm_rings();
    plan_attention();
}

static inline bool wants_attention(void)
{
    return __builtin_expect(now_ps >= atomic_load_explicit(&loop.attend_ps, memory_order_relaxed), 0);
}

/* Attends to what asks for it. Returns whether the run goes on. */
static inline bool goes_on(void)
{
    if (!wants_attention())
        return true;
    attend();
    return !loop.stopped;
}

static void round_passes(uint32_t *rounds)
{
    loop_several_rounds_ps = now_ps;
    if (++*rounds == ROUNDS_MOST)
        time_stands_still();
}

/* Attends before a round whose events were taken from the queue. Returns its events, which may be others now. */
__attribute__((noinline, cold)) static struct event *attend_before(struct event *events)
{
    event_due = events;
    attend();
    return loop.stopped ? NULL : event_take_round();
}

/* Runs the rounds of an instant, and the programs that its events wake. `events` are those of its first round, taken from the
 * queue; NULL: there are none. Returns false if the run was stopped. */
static inline bool run_instant(struct event *events)
{
    for (uint32_t rounds = 0;; round_passes(&rounds)) {
        if (wants_attention()) {
            events = attend_before(events);
            if (loop.stopped)
                return false;
        }
        if (events)
            event_fire_round(events);
        if (loop_issue.due)
            loop_issue.step();
        if (!event_due) {
            if (!programs.any_awake)
                break;
            programs_act();
            if (loop_issue.due)
                loop_issue.step();
        }
        events = event_take_round();
    }
    observe_instant_ends();
    phase_enter(PHASE_queue);
    return true;
}

/* Runs to the end. Returns false if nothing is due any more and programs still wait. Apart from sim_run, whose setjmp
 * would keep its variables out of registers. Hot: a compiler takes what is called once for rare. */
__attribute__((noinline, hot)) static bool run_instants(void)
{
    struct event *events = event_take_round();
    while (run_instant(events) && !programs.ended) {
        events = event_take_instant();
        if (!events)
            return !goes_on();
    }
    return true;
}

/* ---- without host programs */

void sim_begin(void)
{
    programs.all = programs.acting = arena_alloc(1, sizeof *programs.all);     /* the host is rank 0 of 1 */
    programs.count = programs.alive = 1;
    programs.any_awake = programs.ended = programs.failed = false;
    programs.seconds = 0;
    loop.stopped = false;
    plan_attention();
}

/* Fast-forward skips nothing beyond the limit of time, so the instant that ends here is the last one. */
void sim_pause(void)
{
    loop.paused = true;
    loop_limit_set(now_ps, NULL);
}

void sim_host_acts(void)
{
    observe_programs_act();
}

uint64_t sim_next_ps(void)
{
    return event_due || loop_issue.due ? now_ps : event_next_ps();
}

void sim_pass(uint64_t until_ps)
{
    if (now_ps < until_ps && until_ps < sim_next_ps())
        event_pass(until_ps);
}

static enum sim_stop instants_up_to(uint64_t until_ps)
{
    for (uint64_t next_ps; (next_ps = sim_next_ps()) <= until_ps && next_ps < UINT64_MAX;) {
        if (!run_instant(next_ps > now_ps ? event_take_instant() : event_take_round()))
            return SIM_STOPPED;
        if (loop.paused)
            return SIM_PAUSED;
    }
    return event_next_ps() == UINT64_MAX ? SIM_IDLE : SIM_REACHED;
}

enum sim_stop sim_advance(uint64_t until_ps)
{
    loop.paused = false;
    loop_limit_set(until_ps, NULL);
    enum sim_stop stop = instants_up_to(until_ps);
    if (stop == SIM_REACHED)
        sim_pass(until_ps);
    loop_limit_set(UINT64_MAX, NULL);
    return stop;
}

/* ---- with host programs */

bool sim_run(void (*body)(void *), void *arg, uint32_t ranks, void (*stuck)(void))
{
    programs.all = arena_alloc(ranks, sizeof *programs.all);
    programs.count = programs.alive = ranks;
    programs.any_awake = true;
    programs.ended = programs.failed = loop.stopped = false;
    programs.seconds = 0;
    plan_attention();
    for (uint32_t rank = 0; rank < ranks; rank++)
        programs.all[rank] = (struct sim_program){.coro = coroutine_new(body, arg, HOST_STACK_BYTES), .awake = true};
    loop.runs = true;
    bool all_returned = setjmp(loop.out) || run_instants();     /* sim_abandon comes back to setjmp */
    if (!all_returned) {
        stuck();
        while (programs.any_awake)
            programs_act();
    }
    loop.runs = false;
    phase_enter(PHASE_rest);
    return all_returned;
}
