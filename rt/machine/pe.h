/* pe.h: the state of a PE: tokens in queues, servers, scheduler and feeder, TCM.
 *
 * A token represents a tile on its way through the stages of its plan. One queue or one server holds it at a time. */
#ifndef KB_PE_H
#define KB_PE_H

#include "base/address.h"
#include "command.h"
#include "memory.h"
#include "sim/event.h"
#include "tiling.h"

struct dma_fault;
struct mmu;
struct tl;

/* Buffers of a tile in the reserved region of the TCM. */
struct buffer {
    uint64_t at, bytes;                                 /* 0 bytes: there is none */
    struct buffer *higher, **link;                      /* the next one by address; what points to this one */
};

/* In lines of the host's caches of 64 bytes, as struct pe: what waits or ends; a service; the tile. */
struct token {
    struct event event;                                 /* the end of its service, or its arrival at the next engine */
    struct token *next;                                 /* behind it in a queue */
    struct command *command;
    const struct stage *stage;                          /* that it waits for or is in; the next one follows it */

    struct server *server;                              /* that serves it */
    uint64_t arrival_ps, started_ps;
    struct transfer *transfer;                          /* of a DMA: the last of its runs over the fabric, under way */
    uint32_t parts;                                     /* of a DMA: runs whose end is not known yet, */
    bool direct;                                        /* of a simple command */
    bool dispatched;                                    /* has entered its first queue */
    uint64_t end_ps;                                    /* of a DMA: the latest end of its other runs */

    struct tile tile;
    const struct dma_fault *fault;                      /* of a DMA that has one */
    struct buffer buffer[OPERANDS];                     /* one, or one for each operand; first those that there are */
};

/* First in, first out: by (arrival, key). */
struct queue {
    struct token *head, *tail;
};

struct server {
    struct token *token;                                /* in service; NULL: the server is idle */
    uint64_t started;                                   /* number of that service among the PE's */
    bool held;                                          /* a read that is done before its predecessor */
};

/* How long at least one server of a group was busy. */
struct busy {
    uint32_t servers;
    uint64_t since_ps, total_ps;
};

/* What tiles of composites need comes first, together: queues; slots and servers; the feeder; the TCM. */
struct pe {
    _Alignas(64) uint32_t rank;                         /* of its first node, pe_cpu */
    uint32_t waiting;                                   /* a bit for each queue that holds a token: of `queue`, from
                                                           WAITS_DIRECT on of `direct` */
    struct server *servers;                             /* kb_pe_servers */
    struct queue queue[STAGES];                         /* of tiles of composites */
    uint32_t free_slots[STAGES];                        /* of queue[] */
    bool failed;                                        /* its kernel has met a fault: nothing starts any more */
    bool waits_for_issue;                               /* the next Issue step visits it */
    bool feeds_now;                                     /* `feed` ends in this instant, not yet by an event */
    bool lacks_room;                                    /* next_feed waits for buffers to be released */
    struct event *deferred;                             /* ends of services without an event, by time (deferred.h) */
    struct busy dma, compute;
    struct command *submitted;                          /* the SubmissionQueue, linked by `waiting` */
    struct command *feeding;                            /* feeder: composites; the first is being fed */
    uint64_t fed;                                       /* tiles of the first that were begun */
    struct token *feed, *next_feed;                     /* on its way from the feeder; the next, not yet begun */
    struct channels tcm;
    uint64_t services;                                  /* that have started, if several servers serve reads */
    struct buffer *lowest;                              /* of those of all tiles */
    struct tile next_tile;                              /* behind the last one that there is a token for, if there is one */

    struct command *scheduling;                         /* that the scheduler has taken from the SubmissionQueue */
    struct queue direct[STAGES];                        /* of simple commands, unbounded */
    struct tl *kernel;                                  /* that runs, or ran last, on it */
    struct command *submitted_last, *feeding_last;
    struct event scheduled;                             /* of the command that is `scheduling` */
    uint64_t scheduling_since_ps;
    struct token *travelling;                           /* between two engines, over a link that takes time */
    struct mmu *mmu;                                    /* from its first use on */
};

/* Where the bits of `direct` begin in pe->waiting; the bits of both queues of a stage. */
enum { WAITS_DIRECT = 8 };
_Static_assert((int)STAGES <= (int)WAITS_DIRECT, "each queue has a bit");

static inline uint32_t waiting_bits(enum stage_kind stage)
{
    return (UINT32_C(1) | UINT32_C(1) << WAITS_DIRECT) << stage;
}

/* The number of a PE over the machine. */
uint32_t pe_number(const struct pe *pe) __attribute__((const));

/* "sip0.cube3.pe5"; in one of four buffers that later calls use again. */
const char *pe_name(const struct pe *pe);

/* Finds the number of the PE of a name, in this spelling alone. Returns false if there is none. */
bool pe_numbered(const char *name, uint32_t *number);

/* The rank of one of its nodes. */
static inline uint32_t pe_rank(const struct pe *pe, enum node_kind part)
{
    return pe->rank + (part - NODE_pe_cpu);
}

/* Sets up all PEs (state.h: machine_init). */
void pes_init(void);

void pe_wake_first(struct pe *pe);

/* Makes the next Issue step visit a PE, because something has changed that its servers may wait for. */
static inline void pe_wake(struct pe *pe)
{
    if (!pe->waits_for_issue)
        pe_wake_first(pe);
}

/* A server of the group starts or ends a service. */
static inline void busy_begin(struct busy *busy)
{
    if (busy->servers++ == 0)
        busy->since_ps = now_ps;
}

static inline void busy_end(struct busy *busy)
{
    if (--busy->servers == 0)
        busy->total_ps += now_ps - busy->since_ps;
}

/* The group's busy time up to t_ps. */
static inline uint64_t busy_total_ps(const struct busy *busy, uint64_t t_ps)
{
    return busy->total_ps + (busy->servers ? t_ps - busy->since_ps : 0);
}

#endif
