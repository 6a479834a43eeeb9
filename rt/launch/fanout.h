/* fanout.h: a request of the host's on its way, and the answers.
 *
 *     host -> io_cpu of each SIP -> m_cpu of each cube -> leaves (PEs, or memories)
 *
 * Each leg is a message of its own, with payload (store and forward) or without; answers come back along each leg's way
 * reversed. A node passes on what it has when all that it waits for is there. */
#ifndef KB_FANOUT_H
#define KB_FANOUT_H

#include "machine/fabric.h"
#include "sim/loop.h"

struct fanout;

enum { NO_LEAF = UINT32_MAX };

struct leg {
    struct data_message data;                           /* down, later up */
    struct fanout *fanout;
    struct leg *above;                                  /* the leg that it continues; NULL: the host */
    uint32_t first, end;                                /* leaves below it */
    uint32_t cube;                                      /* of the first of them, over the machine */
    void (*delivered)(struct message *message);
    uint32_t awaited;                                   /* answers from below */
    uint32_t failed;                                    /* leaf whose failure its answer carries, or NO_LEAF */
    bool answered;
};

struct fanout {
    uint64_t correlation;                               /* id, for people */
    struct leg *sips, *cubes, *leaves;                  /* leaves in the caller's order, cubes and SIPs in rank order */
    uint32_t sip_count, cube_count, leaf_count;
    uint64_t leaf_bytes;                                /* payload of each leaf, */
    bool writes, reads;                                 /* on the way down, on the way up */
    bool fail_fast;
    uint32_t awaited, failed;                           /* of the host: as in a leg */
    bool answered;
    struct sim_wait waiter;                             /* the host program that waits for the answer */
    void (*at_io_cpu)(struct leg *sip);                 /* before it passes the request on; may be NULL */
    void (*at_m_cpu)(struct leg *cube);                 /* sends to the leaves of its cube */
    void (*done)(struct fanout *fanout);              /* in the event of the last answer awaited */
};

/* Makes the legs; `cube` is the cube (over the machine) of each of the leaves, which are sorted by it. */
void fanout_plan(struct fanout *fanout, const uint32_t *cube, uint32_t count);

/* The next fanout is number 1. */
void fanout_reset(void);

/* Sends it, at this instant. */
void fanout_send(struct fanout *fanout);

/* On the host's coroutine: waits for the answer. */
void fanout_wait(struct fanout *fanout);

/* The m_cpu of a leaf has its answer, by a message or because it knows; `failed`: a failure. */
void fanout_leaf_answered(struct leg *leaf, bool failed);

/* The m_cpu answers with a failure instead of passing the request on. */
void fanout_refused(struct leg *cube);

struct place leg_m_cpu(const struct leg *leg);          /* of a cube's or a leaf's leg */
struct place leg_io_cpu(const struct leg *leg);
struct way leg_way_to_io_cpu(const struct leg *leg);
struct way leg_way_to_m_cpu(const struct leg *leg);

/* The leg that a message belongs to. */
struct leg *leg_of(struct message *message);
uint32_t leg_leaf(const struct leg *leaf);

#endif
