/* oplog.h: the record of everything that moves or makes data, in data order, and what pass 1 does with it.
 *
 * Data order is the order of issue: (instant of the call, PE's rank, number of the command); what the host writes comes
 * first in its instant, and a receive stands at the instant of its completion. A send copies its bytes to a place of
 * their own, the receive of its message from there. Pass 1 moves the bytes of copies and fills in that order and marks
 * the results of computes as pending; the data pass does everything again on `base`, computes included. */
#ifndef KB_OPLOG_H
#define KB_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "compute.h"
#include "fill.h"

enum op_kind { OPKIND_memory, OPKIND_gemm, OPKIND_math };

/* Element by element; both have the same shape. */
struct copy {
    struct view from, to;
};

enum { OP_OF_HOST = -1 };

struct op {
    uint64_t id;                                        /* position in data order over the whole run */
    enum op_kind kind;
    const char *name;                                   /* "dma_read", "dma_write", "send", "fill", "gemm_f16" ... */
    int64_t pe;                                         /* over the machine, or OP_OF_HOST */
    uint64_t at_ps;                                     /* instant of the call; of a receive, of its completion */
    uint32_t command;                                   /* its number in the launch */
    uint64_t start_ps, end_ps;                          /* first service's start and last one's end */
    uint32_t node;                                      /* rank of the component of the first service */
    uint32_t services;
    const char *kernel, *file;
    uint32_t line;
    const struct op *after;                             /* explicit dependency, or NULL */
    const struct op *sent;                              /* of a receive: the send of its message; else NULL */
    union {
        struct copy copy;                               /* memory, of a PE */
        struct fill fill;                               /* memory, of the host */
        struct gemm gemm;
        struct math math;
    };
};

/* Whether a data pass will follow. Without it there are no services in records and nothing is kept for replay; the
 * records stay all the same, for they name the maker of a pending byte. Before anything else of this header. */
extern bool oplog_on;

/* Takes a copy of an operation that is called now. It lives until the end of the run. */
struct op *oplog_add(const struct op *op);

/* The same for a receive, in two steps: the record at the call, and its place in data order at its completion, when it
 * is known which send's message it takes. */
struct op *oplog_call(const struct op *op);
void oplog_received(struct op *receive, const struct op *send);

/* Does pass 1 for the operations of earlier instants; of this one too when `all`, or when one of them is of this PE. */
void oplog_settle(bool all, int64_t pe);

/* The operations since the interval began, settled: op i of oplog_count. */
uint64_t oplog_count(void);
struct op *oplog_get(uint64_t i);

/* Begins the next interval: `now` is `base` again. */
void oplog_restart(void);

/* Nothing was logged. */
void oplog_reset(void);

/* The compute whose result a pending byte is, wherever it was copied since. */
const struct op *oplog_maker(uint32_t memory, uint64_t offset);

/* The hook of the engines' common code, for a command that has a record: a service of one of its tiles on a node. */
void oplog_service_start(struct op *op, uint64_t t_ps, uint32_t node);
void oplog_service_end(struct op *op, uint64_t t_ps);

#endif
