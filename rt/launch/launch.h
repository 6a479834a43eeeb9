/* launch.h: kernel launches from the host, through io_cpu and m_cpu to every target, and their answers. */
#ifndef KB_LAUNCH_H
#define KB_LAUNCH_H

#include "fanout.h"
#include "kernel.h"

enum launch_status { LAUNCH_RUNNING, LAUNCH_OK, LAUNCH_FAILED, LAUNCH_TIMEOUT, LAUNCH_DEADLOCK, LAUNCH_SKIPPED };

/* What a part of a launch's targets runs. */
struct launch_part {
    const char *program;                                /* its name, for results */
    kernel_fn *body;
    const void *arg;
    const uint32_t *pes;                                /* over the machine, in any order; no PE in two parts */
    uint32_t count;
};

struct launch_options {
    bool fail_fast;                                     /* else drain */
    bool timed;
    uint64_t timeout_ps;                                /* from the submission */
    const char *file;                                   /* the host program's call; NULL in a command stream */
    uint32_t line;
};

struct launch {
    const char *program;                                /* names of the parts, joined by '+' */
    enum launch_status status;
    uint64_t submitted_ps, start_ps, done_ps;
    struct kernel_run {                                 /* per target, in rank order */
        struct tl tl;
        bool started, ended;                            /* ended: returned or failed */
        uint64_t start_ps, end_ps, dma_ps, compute_ps;  /* the last two from its end on */
    } *runs;
    uint32_t count;
    const struct kernel_run *failed;                    /* whose failure the host got */
    const char *file;                                   /* as in its options */
    uint32_t line;
    struct fanout fanout;
    struct event timeout;
    struct launch *next;                                /* in order of submission */
};

/* Submits a launch at this instant; on the host's coroutine. */
struct launch *launch_submit(const struct launch_part *parts, uint32_t count, const struct launch_options *options);

/* A launch that the host does not submit, because something before it did not end well. */
void launch_skip(const struct launch_part *parts, uint32_t count);

/* Waits until the host has the last answer; on the host's coroutine. True: it ended well. */
bool launch_wait(struct launch *launch);

/* Nothing is due any more: launches that still wait will wait for ever. Reports who waits for whom. */
void launches_deadlocked(void);

/* The room's reset (cli/reset.c): no launch, no memory request. */
void launch_reset(void);

/* The host has the last answer of a launch, or will have none. */
void launch_ends(struct launch *launch, enum launch_status status);

/* The first launch that is known to have ended other than well; NULL: none. */
const struct launch *launch_bad(void);

/* How it did, for people: "kernel gemm failed with PAGE_FAULT at sip0.cube0.pe1.pe_mmu, 1200 ps (request 1)". */
const char *launch_outcome(const struct launch *launch);

/* Where a run stands at a time: busy since its start, or till its end. */
uint64_t run_dma_ps(const struct kernel_run *run, uint64_t t_ps);
uint64_t run_compute_ps(const struct kernel_run *run, uint64_t t_ps);

/* All launches of this run of the simulator, in order of submission. */
extern struct launch *launches;

#endif
