/* launch.h: kernel launches from the host, through io_cpu and m_cpu to every PE, and their answers. */
#ifndef KB_LAUNCH_H
#define KB_LAUNCH_H

#include "fanout.h"
#include "kernel.h"

enum launch_status { LAUNCH_RUNNING, LAUNCH_OK, LAUNCH_FAILED, LAUNCH_TIMEOUT, LAUNCH_DEADLOCK, LAUNCH_SKIPPED };

/* What some of a launch's PEs run. */
struct launch_part {
    const char *program;                                /* its name, for results */
    kernel_fn *body;
    const void *arg;
    const uint32_t *pes;                                /* over the machine, in any order; no PE in two parts */
    uint32_t count;
};

struct launch_options {
    bool fail_fast;                                     /* the host gets the first failure at once, not at the end */
    bool timed;
    uint64_t timeout_ps;                                /* from the submission */
    const char *file;                                   /* the host program's call; NULL in a command stream */
    uint32_t line;
};

struct launch {
    const char *program;                                /* names of the parts, joined by '+' */
    enum launch_status status;
    uint64_t submitted_ps, start_ps, done_ps;
    struct kernel_run {                                 /* per PE, by rank */
        struct tl tl;
        bool started, ended;                            /* ended: returned or failed */
        uint64_t start_ps, end_ps, dma_ps, compute_ps;  /* the last two are valid from its end on */
    } *runs;
    uint32_t count;
    const struct kernel_run *failed;                    /* whose failure the host got */
    const char *file;                                   /* as in its options */
    uint32_t line;
    struct fanout fanout;
    struct event timeout;
    struct launch *next;                                /* in the order of submission */
};

/* Submits a launch in this instant. */
struct launch *launch_submit(const struct launch_part *parts, uint32_t count, const struct launch_options *options);

/* Records a launch that the host does not submit, because something before it failed. */
void launch_skip(const struct launch_part *parts, uint32_t count);

/* Suspends the host program that acts until the host has the last answer. Returns false if the launch failed. */
bool launch_wait(struct launch *launch);

/* The host has the last answer of a launch, or will never have it. */
void launch_ends(struct launch *launch, enum launch_status status);

/* The first launch that is known to have failed; NULL: there is none. */
const struct launch *launch_bad(void);

/* How it ended, for people: "kernel gemm failed with PAGE_FAULT at sip0.cube0.pe1.pe_mmu, 1200 ps (request 1)". */
const char *launch_outcome(const struct launch *launch);

/* How long a PE's DMAs, or its arrays, have been busy for its kernel up to t_ps. */
uint64_t run_dma_ps(const struct kernel_run *run, uint64_t t_ps);
uint64_t run_compute_ps(const struct kernel_run *run, uint64_t t_ps);

/* All launches of this run, in the order of submission. */
extern struct launch *launches;

/* Resets the room (cli/reset.c): no launch, no request. */
void launch_reset(void);

extern const struct handler launch_handlers[];

#endif
