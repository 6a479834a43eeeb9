/* fanout.h: a request of the host on its way through the control processors, and its answers.
 *
 *     host -> io_cpu of each SIP -> m_cpu of each cube -> leaves (PEs, or memories)
 *     host -> m_cpu of each cube -> leaves, of a direct request
 *
 * Each leg is a message, with payload (stored and forwarded) or without. Answers come back along the way of each leg. A
 * control processor answers when it has the answers of all legs below it. */
#ifndef KB_FANOUT_H
#define KB_FANOUT_H

#include "machine/fabric.h"
#include "sim/loop.h"

struct fanout;

enum { NO_LEAF = UINT32_MAX };

struct leg {
    struct data_message data;                           /* down, later up */
    struct fanout *fanout;
    struct leg *next;                                   /* that waits behind it at its m_cpu */
    struct way way;                                     /* down; whoever plans the request sets where a leaf's ends */
    struct leg *above;                                  /* the leg that it continues; NULL: the host sent it */
    uint32_t first, end;                                /* leaves below it */
    uint32_t cube;                                      /* of the first of them, over the machine */
    uint64_t reached_ps;                                /* of one that waits at its m_cpu */
    void (*delivered)(struct message *message);
    uint32_t awaited;                                   /* answers from below */
    uint32_t failed;                                    /* leaf whose failure its answer carries, or NO_LEAF */
    bool answered;
};

struct fanout {
    uint64_t correlation;                               /* number of the request, for people */
    struct leg *sips, *cubes, *leaves;                  /* leaves in the caller's order; cubes and SIPs by rank */
    uint32_t sip_count, cube_count, leaf_count;
    uint64_t leaf_bytes;                                /* payload of each leaf, */
    bool writes, reads;                                 /* on the way down, on the way up */
    bool fail_fast;                                     /* a failure is answered at once */
    bool direct;                                        /* the host sends to each m_cpu itself; no payload */
    uint32_t awaited, failed;                           /* of the host, as in a leg */
    bool answered;
    struct sim_wait waiter;                             /* the host program that waits for the answer */
    void (*at_io_cpu)(struct leg *sip);                 /* before io_cpu passes the request on; may be NULL */
    void (*at_m_cpu)(struct leg *cube);                 /* sends to the leaves of its cube */
    void (*done)(struct fanout *fanout);                /* in the event of the last answer to the host; may be NULL */
    void (*ended)(void *owner);                         /* tells the host in place that the request is over; may be NULL */
    void *owner;
};

/* Makes the legs for `count` leaves. cube[i] is the number of leaf i's cube over the machine; leaves are sorted by it. */
void fanout_plan(struct fanout *fanout, const uint32_t *cube, uint32_t count);

/* Sends it in this instant. */
void fanout_send(struct fanout *fanout);

/* Suspends the host program that acts until the host has the answer. */
void fanout_wait(struct fanout *fanout);

/* Ends the request for the host: tells its owner, and wakes the program that waits. Later answers are ignored. */
void fanout_end(struct fanout *fanout);

/* Called when the m_cpu of a leaf has that leaf's answer: by a message, or because it knows when the leaf is done.
 * `failed`: the answer is a failure. */
void fanout_leaf_answered(struct leg *leaf, bool failed);

/* Makes the m_cpu of a cube answer with a failure instead of passing the request on. */
void fanout_refused(struct leg *cube);

/* The longest latency to a leaf, once the ways of all leaves are set: from the host; from where a leg ends. */
uint64_t fanout_latency_ps(const struct fanout *fanout);
uint64_t leg_latency_ps(const struct leg *leg);

/* The leg that a message belongs to, and the number of a leaf. */
struct leg *leg_of(struct message *message);
uint32_t leg_leaf(const struct leg *leaf);

/* How many fanouts were planned: requests of the host in this run. */
uint64_t fanout_count(void);

/* Numbers fanouts from 1 again. */
void fanout_reset(void);

extern const struct handler fanout_handlers[];

#endif
