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
    struct where where;
    bool has_start, has_done, has_took, has_pe, has_launch, has_number, waited;
    bool ends;                                          /* the kernel */
    log_ps start_ps, done_ps, took_ps;
    uint32_t pe;                                        /* over the machine */
    uint64_t launch, number;
    const char *word, *id;                              /* NULL: not given */
    struct where word_where, id_where;
    log_ps order_ps;                                    /* of command_order_add */
    uint64_t order_number;
};

/* Reads a record. `clock_khz` is what cycles are counted by, 0 if nobody has said. Returns false after errors. */
bool command_record_read(const struct node *fields, uint64_t clock_khz, struct command_record *out);

/* Whether a key is one of those above. */
bool command_record_has(const char *key);

/* Those keys, with times in ns; ends with NULL. */
extern const char *const command_record_keys[];

/* Of the records of a PE, in the order of the log. */
struct command_order {
    bool known, has_launch;
    struct where first;
    log_ps ps;
    uint64_t number;
};

/* Takes the next record of a log. `pes` has one for each PE. A record without a time or a number takes those of the record
 * of its PE above it, so that the order below is a total one. Reports an error if the records of a PE differ in whether
 * they have `launch`. */
void command_order_add(struct command_order *pes, struct command_record *record);

/* A line of a comparison for qsort. */
#define BY(a, b) do { if ((a) != (b)) return (a) < (b) ? -1 : 1; } while (0)

/* The order in which PEs issued records: by PE, launch, time, number and line. The end of a kernel is the last of its time.
 * For qsort, of records or of structs that begin with one. */
int command_order_compare(const void *a, const void *b);

#endif
