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

#include "store/operation.h"
#include "store/fill.h"
#include "store/origin.h"

enum op_kind { OPKIND_memory, OPKIND_gemm, OPKIND_math };

/* Element by element; both have the same shape. */
struct copy {
    struct view from, to;
};

enum { OP_OF_HOST = -1 };

/* A record. As the log gives it, it is one piece of memory with all that it points to, but for texts. */
struct op {
    uint64_t id;                                        /* position in data order over the whole run */
    enum op_kind kind;
    const char *name;                                   /* "dma_read", "dma_write", "send", "fill", "gemm_f16" ... */
    int64_t pe;                                         /* over the machine, or OP_OF_HOST */
    uint64_t at_ps;                                     /* instant of the call; of a receive, of its completion */
    uint32_t serial;                                    /* of its kernel, over the run; 0: the host's */
    uint32_t command;                                   /* its number in that */
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

/* Names a command over the run; its records are of one. */
static inline uint64_t command_key(uint32_t serial, uint32_t command)
{
    return (uint64_t)serial << 32 | command;
}

/* Whether a data pass will follow. Before anything else of this header. */
extern bool oplog_on;

/* ---- recording: id, at_ps and sent of what is given are the log's to find, and do not count. What it points to is
 * copied. The call that is given back is held until pass 1 is done for it: whoever needs it longer holds it. */

/* Records an operation that is called now; one of the host is done at once. */
struct origin *oplog_add(const struct op *op);

/* The same for a receive, in two steps: the record at the call, and its place in data order at its completion, when it
 * is known which send's message it takes. */
struct origin *oplog_call(const struct op *op);
void oplog_received(struct origin *receive, struct origin *send);

/* Does pass 1 for the operations of earlier instants; of this one too when `all`, or when one of them is of this PE. */
void oplog_settle(bool all, int64_t pe);

/* ---- the hook of the engines' common code, for a command whose services are recorded */

/* A stage of a composite's tile. */
struct tile_stage {
    uint64_t id, tile;                                  /* of the composite; number of the tile */
    uint32_t stage, node;                               /* position in the tile's plan; rank of the component */
    uint64_t start_ps, end_ps;
};

/* A service has ended. `id` is not the caller's to know. */
void oplog_served(struct origin *op, bool is_composite, struct tile_stage stage);

/* The command is complete. */
void oplog_completed(struct origin *op);

/* ---- reading the operations since the interval began, those that are settled */

struct log_reader;

struct oplog_reader {
    struct log_reader *log;                             /* NULL: at the end */
};

/* How many there are. */
uint64_t oplog_count(void);

/* Begins at the first. Nothing is to be added while somebody reads. */
void oplog_read(struct oplog_reader *reader);

/* The next one, in data order, to be freed with free(); NULL: that was the last, and the reader is done. */
struct op *oplog_next(struct oplog_reader *reader);

/* Begins the next interval: `now` is `base` again. */
void oplog_restart(void);

/* From here on readers read this log, of which so many operations are known to be there. */
void oplog_replay(struct log_reader *log, uint64_t count);

/* Nothing was logged. */
void oplog_reset(void);

#endif
