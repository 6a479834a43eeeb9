/* command_record.h: what a record of a firmware log says of a command: which one it is, and when.
 *
 *     t_UNIT               when the firmware issued it (of a wait: when it went on); UNIT is ps, ns, us, ms, s or cycles
 *     done_UNIT, took_UNIT when it was complete, or how long it took: one of the two
 *     pe                   "sip0.cube0.pe0", or its number over the machine
 *     launch, cmd          the launch of the PE, and the command of the launch, both from 0 on
 *     id                   a name of the command
 *     async                false: the firmware waited for it before it went on
 *     do                   the command, or wait; begin, end: of a kernel
 *
 * All else is a field of the command. */
#ifndef KB_COMMAND_RECORD_H
#define KB_COMMAND_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/node.h"

/* A time of a log, in ps since any instant; INT64_MAX fits 10,000 times into the largest. */
typedef __int128 log_ps;

struct command_record {
    const struct node *fields;                          /* all of the record */
    bool has_start, has_done, has_took, has_pe, has_launch, has_number, waited;
    log_ps start_ps, done_ps, took_ps;
    uint32_t pe;                                        /* over the machine */
    uint64_t launch, number;
    const char *word, *id;                              /* NULL: not given */
    struct where word_where, id_where;
};

/* Reads a record. `clock_khz` is what cycles are counted by, 0 if nobody has said. Returns false after errors. */
bool command_record_read(const struct node *fields, uint64_t clock_khz, struct command_record *out);

/* Whether a key is one of those above. */
bool command_record_has(const char *key);

#endif
