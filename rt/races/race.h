/* race.h: the race check: operations of kernels on the same bytes, at least one of which writes, of which neither
 * surely ends before the other one begins (racer.h). What the host does is in order with all. */
#ifndef KB_RACE_H
#define KB_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "oplog/oplog.h"
#include "happens_before.h"

/* Whether races are looked for. Before anything else of this header; nothing of it is called when they are not. */
extern bool races_on;

/* ---- what kernels and the host do */

/* A record of the command that a kernel will submit next; a receive's has no effect before its completion. */
void race_called(uint32_t pe, uint32_t number, struct origin *origin, const struct op *op, bool receives);

/* Tells when commands completed and which message a receive took. */
extern struct observer race_observer;

/* The host submits a launch on so many PEs; what its kernels know is the caller's. */
struct clocks *race_launched(uint32_t pes);

/* A kernel and all its commands have ended. */
void race_kernel_ended(uint32_t pe);

/* ---- what was found */

/* How many pairs of lines race, and the first race of each, as it was found. */
uint32_t races_found(void);

struct race {
    struct raced {
        struct origin *origin;
        uint64_t at_ps;                                 /* of its call */
        bool writes;
    } side[2];
    uint32_t memory;
    uint64_t first, end;                                /* bytes that both have, from the lowest on */
    struct race *next;
};

extern const struct race *races;

/* The operation that wrote a byte of a memory last, since the last launch on an idle machine; NULL: none. */
struct origin *race_writer(uint32_t memory, uint64_t offset);

void races_print(FILE *out);
void races_write(struct json *json);                    /* "races" into an open object, if they were looked for */

void races_reset(void);

#endif
