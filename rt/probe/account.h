/* account.h: what a transfer in an idle machine does, step by step; of several at once, what each step took.
 *
 * An observer follows the transfers of the machine. The steps of one have no gap and do not overlap: each begins when the
 * one before ends. Times come from the machine itself, not from rules of their own. */
#ifndef KB_PROBE_ACCOUNT_H
#define KB_PROBE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tables.h"

enum step_what {
#define STEP(name, what) STEP_##name,
#include "step.def"
    STEP_WHATS
};

/* "drain"; what that means. */
extern const char *const step_words[STEP_WHATS], *const step_phrases[STEP_WHATS];

/* A link of a message's way, and the node behind it. */
struct account_hop {
    uint32_t rank;                                      /* of the node */
    uint32_t speed;                                     /* of the link, as link_speed says */
    uint64_t arrives_ps, ready_ps;                      /* the head is at the node; the node has handled it */
};

struct account_step {
    enum step_what what;
    uint32_t from, to;                                  /* ranks of nodes; equal unless it is a message */
    uint64_t begin_ps, end_ps;                          /* of a message: when its head is handled at its last node */
    uint64_t bytes;                                     /* of a data message */
    uint32_t first_hop, hops;                           /* of a message, in account.hops */
};

/* Times of which there are several. */
struct spread {
    uint64_t times, least_ps, most_ps, sum_ps;
};

/* The least time of `count` transfers, of which some may lack the step. */
static inline uint64_t spread_least_ps(const struct spread *spread, uint64_t count)
{
    return spread->times < count ? 0 : spread->least_ps;
}

/* A step of several transfers; those that lack it took no time for it. */
struct account_row {
    enum step_what what;
    uint32_t from, to;
    uint64_t bytes;
    struct spread took;
    uint32_t hops;
    struct account_hop_row {
        uint32_t rank, speed;
        struct spread took;                             /* from when the node before it has handled the head */
    } *hop;
};

/* Memory of malloc, until account_reset. */
extern struct account {
    struct account_step *steps;                         /* of a single transfer */
    struct account_hop *hops;
    uint32_t count;
    struct account_row *rows;                           /* of several */
    uint32_t row_count;
    uint64_t sum_ps;                                    /* of the times of these */
    bool broken;                                        /* steps of a transfer overlap */
} account;

/* Begins an account of `count` transfers; it watches from now on. `pe` acts, by commands of a kernel, or UINT32_MAX: the
 * host does. */
void account_begin(uint32_t pe, uint64_t count);

/* Ends it, and works `account` out. */
void account_end(void);

void account_reset(void);

extern struct observer account_observer;

#endif
