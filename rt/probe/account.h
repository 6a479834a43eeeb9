/* account.h: what a transfer in an idle machine does, step by step.
 *
 * An observer follows the one transfer of the machine. Its steps have no gap and do not overlap: each begins when the one
 * before ends. Times come from the machine itself, not from rules of their own. */
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
    enum link_class link;
    uint64_t arrives_ps, ready_ps;                      /* the head is at the node; the node has handled it */
};

struct account_step {
    enum step_what what;
    uint32_t from, to;                                  /* ranks of nodes; equal unless it is a message */
    uint64_t begin_ps, end_ps;                          /* of a message: when its head is handled at its last node */
    uint64_t bytes;                                     /* of a data message */
    uint32_t first_hop, hops;                           /* of a message, in account.hops */
};

extern struct account {
    struct account_step *steps;                         /* memory of malloc, until account_reset */
    struct account_hop *hops;
    uint32_t count;
    bool broken;                                        /* steps overlap: the transfer was not alone */
} account;

/* Begins an account; it watches from now on. `pe` acts, by a command of a kernel, or UINT32_MAX: the host does. */
void account_begin(uint32_t pe);

/* Ends it, and works `account` out. */
void account_end(void);

void account_reset(void);

extern struct observer account_observer;

#endif
