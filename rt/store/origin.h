/* origin.h: the calls that operations come from: what remains in memory of a record of the op log while somebody may
 * still name it: a command, a message, bytes that are pending. */
#ifndef KB_ORIGIN_H
#define KB_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

struct oplog_entry;
struct racer;

struct origin {
    uint64_t id;                                        /* of the record, from its place in data order on; else NO_ID */
    const char *name;                                   /* "dma_read", "gemm_f16" ... */
    int64_t pe;                                         /* over the machine, or OP_OF_HOST */
    uint32_t command;                                   /* its number in the launch */
    const char *kernel, *file;
    uint32_t line;
    uint32_t holders;                                   /* it goes with the last one */
    uint64_t message;                                   /* of a send: where the bytes of its message are */
    uint64_t start_ps, end_ps;                          /* first service's start and last one's end */
    uint32_t node;                                      /* rank of the component of the first service */
    uint32_t services;                                  /* that have ended */
    bool complete;                                      /* the command is, and services are recorded */
    struct racer *racer;                                /* what the race check knows of it, if that is on: racer.h */
    struct oplog_entry *entry;                                /* its record, until that has its place: oplog.c */
    struct origin *next;                                /* of those that are free */
};

#define NO_ID UINT64_MAX

/* One that the caller holds, all 0 but for its id, NO_ID. */
struct origin *origin_new(void);

/* Another one holds it; NULL: nothing. Gives what it is given. */
static inline struct origin *origin_hold(struct origin *origin)
{
    if (origin)
        origin->holders++;
    return origin;
}

void origin_free(struct origin *origin);

/* One holder less; NULL: nothing. */
static inline void origin_drop(struct origin *origin)
{
    if (origin && --origin->holders == 0)
        origin_free(origin);
}

/* There are none. */
void origins_reset(void);

#endif
