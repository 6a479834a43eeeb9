/* launch.h: kernel launches from the host, through io_cpu and m_cpu to every target, and their answers. */
#ifndef KB_LAUNCH_H
#define KB_LAUNCH_H

#include "kernel.h"
#include "sim.h"

enum launch_status { LAUNCH_RUNNING, LAUNCH_OK, LAUNCH_SKIPPED };

/* What a part of a launch's targets runs. */
struct launch_part {
    const char *program;                                /* its name, for results */
    kernel_fn *body;
    const void *arg;
    const uint32_t *pes;                                /* over the machine, in any order; no PE in two parts */
    uint32_t count;
};

struct launch {
    const char *program;                                /* names of the parts, joined by '+' */
    enum launch_status status;
    uint64_t submitted_ps, start_ps, done_ps;
    struct kernel_run {                                 /* per target, in rank order */
        struct tl tl;
        struct leg *leg;                                /* that brought it; its answer goes back along it */
        bool ended;
        uint64_t start_ps, end_ps, dma_ps, compute_ps;
    } *runs;
    uint32_t count;
    struct sim_wait waiter;                             /* the host program that waits for it */
    struct launch *next;                                /* in order of submission */
};

/* Submits a launch at this instant; on the host's coroutine. */
struct launch *launch_submit(const struct launch_part *parts, uint32_t count);

/* Waits until the host has the last answer; on the host's coroutine. */
void launch_wait(struct launch *launch);

/* All launches of this run, in order of submission. */
extern struct launch *launches;

#endif
