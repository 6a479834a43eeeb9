/* sim.h: the host program and the machine under it. */
#ifndef KB_SIM_H
#define KB_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct coro;

/* Sets up the machine; once, before anything else of it is used. */
void sim_init(void);

/* Runs a host program as a coroutine from time 0, and the machine under it, until the program has returned. The rest of
 * that instant still happens, nothing after it. False: the program waits, and nothing is due any more (a deadlock). */
bool sim_run(void (*host)(void *), void *arg);

/* Simulated time. */
uint64_t sim_now_ps(void);

/* A host program that waits for something; at most one for each thing. */
struct sim_wait {
    struct coro *sleeper;
};

/* On the host's coroutine: waits until sim_wake. */
void sim_sleep(struct sim_wait *wait);

/* Lets the waiting host program go on, in place; none: nothing. */
void sim_wake(struct sim_wait *wait);

#endif
