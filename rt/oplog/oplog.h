/* oplog.h: the op log: a record of every operation that moves or computes data, in data order; and pass 1.
 *
 * Data order is the order of issue: (instant of the call, rank of the PE, number of the command). A write of the host
 * comes first in its instant; a receive has the instant of its completion. A send copies its bytes to a buffer of the
 * message, and the receive copies them from there. In that order pass 1 does the copies and fills to the contents of the
 * memories, without moving their bytes, and marks the results of computes as pending; the data pass does all operations,
 * computes included, to the bytes of the store. */
#ifndef KB_OPLOG_H
#define KB_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/observer.h"
#include "store/fill.h"
#include "store/operation.h"

enum op_kind { OPKIND_memory, OPKIND_gemm, OPKIND_math };

/* Element by element; both have the same shape. */
struct copy {
    struct view from, to;
};

enum { OP_OF_HOST = -1 };

/* A record. When the log returns one, it is one allocation with all that it points to except texts. */
struct op {
    uint64_t id;                                        /* position in data order over the whole run */
    enum op_kind kind;
    uint32_t serial;                                    /* of the kernel, over the run; 0: the host */
    const char *name;                                   /* "dma_read", "dma_write", "send", "fill", "gemm_f16" ... */
    int64_t pe;                                         /* over the machine, or OP_OF_HOST */
    uint64_t at_ps;                                     /* instant of the call; of a receive, of its completion */
    uint64_t request;                                   /* of the host that launched the kernel */
    uint32_t command;                                   /* number in the kernel */
    uint32_t receivers;                                 /* of a send that is recorded: PEs that get its message */
    const char *kernel, *file;
    uint32_t line;
    uint32_t afters;                                    /* explicit dependencies: */
    const uint32_t *after;                              /* numbers of commands of its kernel */
    uint64_t sent;                                      /* of a receive: 1 + id of the send of its message; else 0 */
    union {
        struct copy copy;                               /* memory, of a PE */
        struct fill fill;                               /* memory, of the host */
        struct gemm gemm;
        struct math math;
    };
};

/* The identity of a command over the run; all records of a command have the same. */
static inline uint64_t command_key(uint32_t serial, uint32_t command)
{
    return (uint64_t)serial << 32 | command;
}

/* Whether the host put something into a tensor. */
static inline bool op_is_fill(const struct op *op)
{
    return op->kind == OPKIND_memory && op->pe == OP_OF_HOST;
}

/* Calls f for each view that an operation reads or writes. Not for fills: they write tensors. */
void op_each_view(const struct op *op, void (*f)(const struct view *view, bool writes, void *arg), void *arg);

/* Whether a data pass will follow. Set before any other call of this header. */
extern bool oplog_on;

/* ---- recording: the log sets id, at_ps and sent of the operation that it is given, and copies all that it points to.
 * The reference that is returned is held until pass 1 has done the operation; whoever needs it longer holds it. */

/* Records an operation that is called now. One of the host is done at once. */
struct op_ref *oplog_add(const struct op *op);

/* The same for a receive, in two steps: the record at the call, and its place in data order at its completion, when the
 * send of its message is known. */
struct op_ref *oplog_call(const struct op *op);

/* Does pass 1 for the operations of earlier instants; for those of this instant too if `all`, or if one of them is of
 * this PE. */
void oplog_settle(bool all, int64_t pe);

/* ---- what is seen of commands: receives and the ends of commands in all runs of benches, services if the log is filed
 */

extern struct observer oplog_observer, services_observer;

/* What nodes, links and channels of memories are reserved for; if the log is filed, and that is asked for. */
extern struct observer reservations_observer;

/* A reservation. */
struct reservation {
    struct cause cause;
    enum resource_kind resource;
    uint64_t number, bytes, start_ps, end_ps;           /* number: of the resource */
};

/* A stage of a composite's tile. */
struct tile_stage {
    uint64_t id, tile;                                  /* of the composite; number of the tile */
    uint32_t stage, node;                               /* position in the tile's plan; rank of the component */
    uint64_t start_ps, end_ps;
};

/* ---- reading the operations since the interval began, as far as pass 1 has done them */

struct log_reader;

struct oplog_reader {
    struct log_reader *log;                             /* NULL: at the end */
};

uint64_t oplog_count(void);

/* Begins at the first. Nothing may be recorded until the reader is done. */
void oplog_read(struct oplog_reader *reader);

/* The next one in data order, which the caller frees with free(); NULL at the end, when the reader is done. */
struct op *oplog_next(struct oplog_reader *reader);

/* Begins the next interval: memories hold what the store has. */
void oplog_restart(void);

/* From here on oplog_read reads this log, of `count` operations. */
void oplog_replay(struct log_reader *log, uint64_t count);

/* Discards all records. */
void oplog_reset(void);

#endif
