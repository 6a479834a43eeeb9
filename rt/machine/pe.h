/* pe.h: the state of a PE: tokens in queues, servers, the scheduler, the feeder, the TCM.
 *
 * A token is a tile on its way through the stages of its plan; it is owned by exactly one queue or server at a time. */
#ifndef KB_PE_H
#define KB_PE_H

#include "base/address.h"
#include "command.h"
#include "sim/event.h"
#include "memory.h"
#include "tiling.h"

struct tl;
struct mmu;

struct token {
    struct event event;                                 /* the end of its service, or its way to the next engine */
    struct token *next;                                 /* behind it in a queue */
    struct command *command;
    struct tile tile;
    struct stage stage, following;                      /* being waited for or served, and the one after it */
    uint64_t arrival_ps, started_ps;
    struct server *server;                              /* that serves it */
    uint32_t parts;                                     /* of a DMA: runs whose end is not known yet, */
    uint64_t end_ps;                                    /* and the latest of those that are */
    struct transfer *transfer;                          /* of a DMA, the last of its runs over the fabric, under way */
    const char *fault_why;                              /* of a DMA: what is wrong with the address; NULL: unmapped */
    uint64_t fault_address;
    bool dispatched;                                    /* has entered its first queue */
    uint64_t block, block_bytes;                        /* its tile buffers in the reserved region */
    struct token *lower, *higher;                       /* tokens with buffers, by address */
};

/* First in, first out: by (arrival, key). */
struct queue {
    struct token *head, *tail;
};

struct server {
    struct token *token;                                /* being served; NULL: idle */
    uint64_t started;                                   /* number of that service among the PE's */
    bool held;                                          /* a read that is done, but not its predecessor */
};

/* How long at least one server of a group was busy. */
struct busy {
    uint32_t servers;
    uint64_t since_ps, total_ps;
};

struct pe {
    uint32_t rank;                                      /* of its first node, pe_cpu */
    struct tl *kernel;                                  /* that runs, or ran last, on it */
    struct server *servers;                             /* kb_pe_servers */
    struct queue queue[STAGES], direct[STAGES];
    uint64_t free_slots[STAGES];                        /* of queue[] */
    uint32_t waiting;                                   /* a bit per stage with a token in one of its queues */
    uint64_t services;
    struct busy dma, compute;
    struct path path[OPERANDS];                         /* to the memory that was asked last for each operand, */
    uint32_t path_memory[OPERANDS];                     /* its number + 1; 0: none */
    struct channels tcm;

    struct command *submitted, *submitted_last;         /* scheduler: the SubmissionQueue, by waiting */
    struct command *scheduling;
    struct event scheduled;
    uint64_t scheduling_since_ps;

    struct command *feeding, *feeding_last;             /* feeder: composites, the first is being fed */
    uint64_t fed;                                       /* tiles of the first that were begun */
    struct tile last_tile;                              /* the last one that there is a token for */
    struct token *feed, *next_feed;                     /* under way from the feeder; the next, waiting for room */
    struct token *lowest;                               /* of the tokens with buffers */
    bool lacks_room;                                    /* next_feed has to wait for the release of buffers */
    struct token *travelling;                           /* between two engines, over a link that takes time */
    struct mmu *mmu;                                    /* from its first use on */
    bool failed;                                        /* its kernel has met a fault: nothing starts any more */
    bool waits_for_issue;                               /* visited at the end of this round */
};

/* The number of a PE over the machine. */
uint32_t pe_number(const struct pe *pe) __attribute__((const));

/* "sip0.cube3.pe5"; in one of a few buffers that later calls use again. */
const char *pe_name(const struct pe *pe);

/* The rank of one of its nodes. */
static inline uint32_t pe_rank(const struct pe *pe, enum node_kind part)
{
    return pe->rank + (part - NODE_pe_cpu);
}

/* Sets up the machine, before anything else of it is used: once, and after each reset. */
void machine_init(void);

/* Has a PE's servers look for work at the end of this round. */
void pe_wake(struct pe *pe);

/* ---- what a PE's Issue step is made of: each starts one service at most and says whether it did. Most visits find
 * nothing to do, and look no further. */

/* Starts the first eligible of the tokens of two stages, of which one may be both. */
bool serve_waiting(struct pe *pe, struct server *server, enum stage_kind later, enum stage_kind earlier);

/* An idle server of one stage. */
static inline bool serve_one(struct pe *pe, struct server *server, enum stage_kind stage)
{
    return !server->token && pe->waiting >> stage & 1 && serve_waiting(pe, server, stage, stage);
}

/* An idle server of two stages: the earliest arrival, at equal arrival the later stage. */
static inline bool serve_two(struct pe *pe, struct server *server, enum stage_kind later, enum stage_kind earlier)
{
    return !server->token && (pe->waiting >> later | pe->waiting >> earlier) & 1
           && serve_waiting(pe, server, later, earlier);
}

bool serve_send(struct pe *pe, struct server *server);
bool serve_tile(struct pe *pe);
bool serve_command(struct pe *pe);

/* The server of sends: the first whose ring has a free slot. */
static inline bool serve_comm(struct pe *pe, struct server *server)
{
    return !server->token && pe->waiting >> STAGE_COMM & 1 && serve_send(pe, server);
}

static inline bool serve_feeder(struct pe *pe)
{
    return !pe->feed && pe->feeding && !pe->lacks_room && serve_tile(pe);
}

static inline bool serve_scheduler(struct pe *pe)
{
    return !pe->scheduling && pe->submitted && serve_command(pe);
}

/* Puts a checked command into the SubmissionQueue. */
void pe_submit(struct pe *pe, struct command *command);

/* Lets a receive, which has its slot, enter the direct queue of reads. */
void pe_read_slot(struct command *receive);

/* A command whose tiles are all complete: whoever waits for it goes on. */
void command_complete(struct command *command);

/* Where a busy group stands at a time. */
uint64_t busy_total_ps(const struct busy *busy, uint64_t t_ps);

#endif
