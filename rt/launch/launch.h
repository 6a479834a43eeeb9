/* launch.h: kernel launches from the host, through io_cpu and m_cpu to every PE, and their answers. */
#ifndef KB_LAUNCH_H
#define KB_LAUNCH_H

#include "fanout.h"
#include "kernel.h"

enum launch_status { LAUNCH_RUNNING, LAUNCH_OK, LAUNCH_FAILED, LAUNCH_TIMEOUT, LAUNCH_DEADLOCK, LAUNCH_SKIPPED };

/* A kernel, and the PEs of a launch that run it. */
struct launch_part {
    const char *program;                                /* its name, for results */
    kernel_fn *body;
    const void *arg;
    const uint32_t *pes;                                /* over the machine, in any order; no PE in two parts */
    uint32_t count;
    bool stackless;                                     /* the body returns in order to wait (kernel.h) */
};

/* When the kernels of a launch begin. */
enum launch_start {
    START_BARRIER,                                      /* all at one time, that io_cpu stamps or, for several SIPs, the host */
    START_CUBE,                                         /* those of a cube at one time, that its m_cpu stamps; no io_cpu */
    START_FREE                                          /* each when the launch reaches its pe_cpu */
};

struct launch_options {
    enum launch_start start;
    uint64_t position;                                  /* in what the host does: orders timeouts of one instant; 0: the
                                                           number of the request */
    bool fail_fast;                                     /* the host gets the first failure at once, not at the end */
    bool timed;
    uint64_t timeout_ps;                                /* from the submission */
    const char *file;                                   /* the host program's call; NULL: `line` is the stream's */
    uint32_t line;
};

struct launch {
    const char *program;                                /* names of the parts, joined by '+' */
    enum launch_status status;
    uint64_t submitted_ps, done_ps;
    bool begun;                                         /* a kernel has begun: */
    uint64_t start_ps;                                  /* when the first one did */
    enum launch_start start;
    uint64_t stamp_ps;                                  /* when all kernels begin, of START_BARRIER */
    struct kernel_run {                                 /* per PE, by rank */
        struct tl tl;
        bool started, ended;                            /* ended: returned or failed */
        bool counted;                                   /* dma_ps and compute_ps are final: it has ended, or its launch */
        uint64_t stamp_ps;                              /* when it shall begin, unless START_FREE */
        uint64_t start_ps, end_ps, dma_ps, compute_ps;
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

/* Ends a launch for the host with this status, without an answer. */
void launch_give_up(struct launch *launch, enum launch_status status);

/* The first launch that is known to have failed; NULL: there is none. */
const struct launch *launch_bad(void);

/* How it ended, for people: "kernel gemm failed with PAGE_FAULT at sip0.cube0.pe1.pe_mmu, 1200 ps (request 1)". */
const char *launch_outcome(const struct launch *launch);

/* For how long at least one server of pe_dma, or of pe_gemm and pe_math, was busy for a kernel, up to t_ps or to the end
 * of its launch. */
uint64_t run_dma_ps(const struct kernel_run *run, uint64_t t_ps);
uint64_t run_compute_ps(const struct kernel_run *run, uint64_t t_ps);

/* All launches of this run, in the order of submission. */
extern struct launch *launches;

/* The last one; NULL: there is none. */
struct launch *launch_last(void);

/* Resets the room (session/reset.c): no launch, no request. */
void launch_reset(void);

extern const struct handler launch_handlers[];

#endif
