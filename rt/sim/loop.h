/* loop.h: the loop of instants and rounds, and the host programs on top of it.
 *
 *     instant   rounds, until nothing is due; then host programs act, which may add rounds; then time moves on
 *     round     Retire: the events that are due fire; Issue: the machine starts what can start
 *
 * Host programs are coroutines. Those that may go on act at the end of an instant, in the order of their ranks. */
#ifndef KB_LOOP_H
#define KB_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "event.h"

/* Runs the machine, and body(arg) as a host program for each of `ranks` ranks, from time 0 until all programs have
 * returned or one has ended the run. The rest of that instant is run, too. If nothing is due any more while programs
 * wait, calls stuck(), lets the programs act that it has woken, and returns false. */
bool sim_run(void (*body)(void *), void *arg, uint32_t ranks, void (*stuck)(void));

/* ---- a run without host programs: whoever calls these functions is the host, and acts between them, at the end of an
 * instant. How a span of time is divided into calls makes no difference to what happens in it. */

/* Begins the run at time 0. */
void sim_begin(void);

enum sim_stop { SIM_PAUSED, SIM_REACHED, SIM_IDLE, SIM_STOPPED };

/* Lets time pass up to until_ps, that instant included (REACHED), or up to the end of an instant in which sim_pause was called
 * (PAUSED). If nothing is due any more, time stays at the last instant that had events (IDLE). STOPPED: the run has ended, by
 * sim_stop. */
enum sim_stop sim_advance(uint64_t until_ps);

/* Makes sim_advance return at the end of this instant. */
void sim_pause(void);

/* Moves time on to until_ps if nothing is due before. */
void sim_pass(uint64_t until_ps);

/* When the next event is due, now or later; UINT64_MAX: none is. */
uint64_t sim_next_ps(void);

/* The host acts: nothing sleeps that it could tell from others. Called before it submits anything or reads state. */
void sim_host_acts(void);

/* ---- */

/* Resets the room (session/reset.c): time is 0, nothing is due, all stacks are free. */
void sim_reset(void);

/* The simulated time in ps. */
uint64_t sim_now_ps(void);

/* The machine's Issue step: the loop calls `step` in each round in which PEs are due. */
extern struct issue {
    uint32_t due;                                       /* how many PEs it visits */
    void (*step)(void);
} loop_issue;

/* The last instant that had more than one round; UINT64_MAX: none had. Whether this is the first round of an instant. */
extern uint64_t loop_several_rounds_ps;

static inline bool loop_is_first_round(void)
{
    return loop_several_rounds_ps != now_ps;
}

/* What the loop attends to before a round: requests, the limit of time, the alarm. */

/* Asks the loop to call loop_attend before the next round. For signal handlers, too. */
void loop_ask(void);

/* Answers a request. It may call sim_stop. */
extern void (*loop_attend)(void);

/* The run is about to end: a kernel that calls the device library is suspended. */
extern volatile sig_atomic_t loop_ends;

/* Time passes up to this one; what is due later does not happen, and reached() is called. UINT64_MAX: no limit. */
void loop_limit_set(uint64_t t_ps, void (*reached)(void));
uint64_t loop_limit_ps(void);

/* Observers of alarm_rings are told before the first round at or after this time. UINT64_MAX: never. */
void loop_alarm_set(uint64_t t_ps);
uint64_t loop_alarm_ps(void);

/* Ends the run before the next round: nothing more happens, not even in this instant. Called outside of coroutines, by
 * loop_attend and when the limit of time is reached. */
void sim_stop(void);

/* Ends the run at once, as a failed one, from wherever it is: a coroutine never goes on, and sim_run returns. Returns if
 * nothing runs. */
void sim_abandon(void);

/* Host time that host programs have taken in this run, in seconds. */
double sim_programs_seconds(void);

/* The rank of the program that acts, and how many programs there are. */
uint32_t sim_rank(void);
uint32_t sim_ranks(void);

/* Whether the program of a rank has returned. */
bool sim_returned(uint32_t rank);

/* Host programs that wait for the same thing. */
struct sim_wait {
    struct sim_program *sleepers;
};

/* Suspends the program that acts until sim_wake. */
void sim_sleep(struct sim_wait *wait);

/* Lets the programs that wait go on in this instant. */
void sim_wake(struct sim_wait *wait);

/* Lets all programs that may go on act, in the order of their ranks, the calling one included. */
void sim_yield(void);

/* Ends the run: no program goes on. Called by the program that acts. */
_Noreturn void sim_end(void);

/* Ends the run as one that has failed: no program goes on. */
void sim_fail(void);

/* Whether sim_fail was called in this run. */
bool sim_failed(void);

#endif
