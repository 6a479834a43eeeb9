/* loop.h: the host programs and the machine under them. */
#ifndef KB_SIM_H
#define KB_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* Runs body(arg) as a host program for each of `ranks` ranks, from time 0, and the machine under them, until all have
 * returned or one has ended the run. The rest of that instant still happens, nothing after it. In one instant programs
 * act in rank order, when nothing else is due in it.
 *
 * stuck() is called when programs wait and nothing is due any more; those that it wakes go on once. False: that was. */
bool sim_run(void (*body)(void *), void *arg, uint32_t ranks, void (*stuck)(void));

/* The machine's Issue step: `step` runs after the events of each round in which it is `due`. */
extern struct issue {
    bool due;
    void (*step)(void);
} loop_issue;

/* Observers of alarm_rings are told before the first round at or after this time; UINT64_MAX: never. */
extern uint64_t loop_alarm_ps;

/* Simulated time. */
uint64_t sim_now_ps(void);

/* The room's reset (cli/reset.c): time 0, no event, no coroutine. */
void sim_reset(void);

/* The program that acts, and how many there are. */
uint32_t sim_rank(void);
uint32_t sim_ranks(void);

/* Whether the program of a rank has returned. */
bool sim_returned(uint32_t rank);

/* Host programs that wait for one thing. */
struct sim_wait {
    struct sim_program *sleepers;
};

/* On a host program's coroutine: waits until sim_wake. */
void sim_sleep(struct sim_wait *wait);

/* Lets the waiting host programs go on in this instant; none: nothing. */
void sim_wake(struct sim_wait *wait);

/* On a host program's coroutine: lets all that are awake act, in rank order, itself among them. */
void sim_yield(void);

/* On a host program's coroutine: ends the run. No program goes on. */
_Noreturn void sim_end(void);

#endif
