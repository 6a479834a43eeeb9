/* sim.c: the loop of instants and rounds, with a host program on top. */
#include "sim.h"

#include "coro.h"
#include "event.h"
#include "fabric.h"
#include "pe.h"
#include "stats.h"
#include "trace.h"

enum { HOST_STACK_BYTES = 8 << 20 };                    /* a host program may call BLAS */

struct stats stats;

static struct coro *running;                            /* the host program that runs, or ran last */

void sim_init(void)
{
    fabric_init();
    pe_init_all();
}

uint64_t sim_now_ps(void)
{
    return now_ps;
}

void sim_sleep(struct sim_wait *wait)
{
    wait->sleeper = running;
    coro_suspend(wait->sleeper);
}

void sim_wake(struct sim_wait *wait)
{
    struct coro *sleeper = wait->sleeper;
    if (!sleeper)
        return;
    wait->sleeper = NULL;
    running = sleeper;
    if (!coro_resume(sleeper)) {
        running = NULL;
        coro_free(sleeper);
    }
}

/* All rounds of the instant. */
static void instant(void)
{
    do
        pe_issue_woken();
    while (event_retire());
    trace_instant_end();
}

bool sim_run(void (*host)(void *), void *arg)
{
    struct sim_wait start = {coro_new(host, arg, HOST_STACK_BYTES)};
    sim_wake(&start);
    while (running) {
        if (!event_next_instant())
            return false;
        instant();
    }
    return true;
}
