/* race.h: the race check: pairs of operations of kernels that access the same bytes, at least one of them writing, and
 * neither of which surely ends before the other begins (happens_before.h). What the host does is ordered with all. */
#ifndef KB_RACE_H
#define KB_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"
#include "oplog/oplog.h"
#include "happens_before.h"

/* Sets what is looked for by the option --races: on, off, or a number of operations; wrong words are a usage error.
 * Without it, races are looked for if there is a data pass, among RACES_OPERATIONS. */
enum { RACES_OPERATIONS = 1 << 20 };
void races_option(const char *text);

/* Before a run, with data or without. */
void races_begin(bool data);

/* Whether races are looked for, until there are too many operations. If not, only race_not_called and what begins with
 * `races` may be called. */
extern bool races_on;

/* ---- what kernels and the host do */

/* A record of the command that a kernel will submit next; a receive has no effect before it completes. */
void race_called(uint32_t pe, uint32_t number, struct op_ref *ref, const struct op *op, bool receives);

/* The same when races are not looked for. */
void race_not_called(void);

/* Learns when commands complete, and which message a receive takes. */
extern struct observer race_observer;

/* The host submits a launch on `pes` PEs. Returns what its kernels know, held by the caller. */
struct vector_clock *race_launched(uint32_t pes);

/* A kernel and all its commands have ended. */
void race_kernel_ended(uint32_t pe);

/* ---- what was found */

/* The number of pairs of lines that race, and the first race of each, in the order in which they were found. */
uint32_t races_found(void);

struct race {
    struct race_side {
        struct op_ref *op;
        uint64_t called_ps;
        bool writes;
    } side[2];
    uint32_t memory;
    uint64_t first, end;                                /* the lowest bytes that both access */
    struct race *next;
};

extern const struct race *races;

/* The operation that wrote a byte of a memory last, since the last launch on an idle machine; NULL if none did. */
struct op_ref *race_writer(uint32_t memory, uint64_t offset);

void races_print(FILE *out);
void races_write(struct json *json);                    /* "races" and "race_check" into an open object, unless off */

void races_reset(void);

#endif
