/* happens_before.h: the happens-before order of the operations of kernels: which of two surely ends before the other
 * begins.
 *
 * That an operation has ended is known to
 *     whatever its kernel calls after waiting for it, by a blocking call or by tl_wait;
 *     whatever knows of a message that was sent after such a wait; a message is known once its receive was waited for,
 *     and with it the end of its send, and of what the send comes after by tl_after;
 *     whatever comes after it by tl_after, unless it is a receive, which has no place in the order before it completes;
 *     launches that are submitted after its kernel ended.
 * Nothing else is an order: neither the instants in which things happen nor the order in which engines serve them. */
#ifndef KB_HAPPENS_BEFORE_H
#define KB_HAPPENS_BEFORE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/operation.h"
#include "store/view.h"

struct vector_clock;

/* In a list of operations, each of which it holds. */
struct hb_link {
    struct hb_op *op;
    struct hb_link *next;
};

/* Operations of a kernel, each of which comes after the one before it by tl_after: those that are named so. Waiting for
 * one waits for all before it. */
struct hb_chain {
    uint32_t newest, waited;                            /* places, from 1 on: the last one; the last one waited for */
    uint32_t holders;
};

struct hb_place {
    struct hb_chain *chain;
    uint32_t place;
    struct hb_place *next;                              /* of a list */
};

/* A wait for the receive of a message. */
struct hb_receipt {
    uint32_t clock, pe;                                 /* clock 0: there was none */
    struct hb_receipt *next;
};

struct hb_op {
    struct op_ref *op;
    uint32_t pe, number;                                /* PE over the machine; number of the command */
    uint64_t called_ps;
    uint32_t clock;                                     /* of its PE at its call */
    struct vector_clock *known;                         /* of its kernel at its call; NULL: no longer needed */
    uint32_t waited, sent;                              /* clock at which it was waited for; of a send: at its call */
    uint32_t unreceived;                                /* of a send: receives that were not waited for */
    struct hb_receipt received;                         /* of a send: list of the others */
    struct hb_link *after, *later_sends;                /* what it comes after by tl_after; sends that come after it */
    struct hb_place place;                              /* in a chain, once it is named; chain NULL: it is not */
    struct hb_place *behind;                            /* of each chain, the last place that it comes after, unless
                                                           that was waited for before its call */
    struct hb_op *from;                                 /* of a completed receive: the send of its message */
    struct view writes;                                 /* of a receive: where it puts its message */
    uint32_t holders;
    uint64_t search;                                    /* number of the last search that reached it */
    struct hb_op *older, *newer;                        /* list of those of one PE that were not waited for */
};

/* The operation of the command that a kernel is about to submit; the same one for all records of the command. */
struct hb_op *hb_called(uint32_t pe, uint32_t number, struct op_ref *op);

static inline struct hb_op *hb_hold(struct hb_op *op)
{
    op->holders++;
    return op;
}

void hb_drop(struct hb_op *op);

/* The operation is a send, to a number of PEs. */
void hb_sends(struct hb_op *send, uint32_t receivers);

/* A receive has got the message of a send. */
void hb_received(struct hb_op *receive, struct hb_op *send);

/* All accesses that the operation overlaps were compared with it: it is no longer the `b` of happens_before. */
void hb_compared(struct hb_op *op);

/* Whether `a` surely ends before `b` begins. `b` was called after `a`. */
bool happens_before(const struct hb_op *a, const struct hb_op *b);

/* A kernel has waited for its command of a number; its next command comes after that one by tl_after. */
void hb_waited(uint32_t pe, uint32_t number);
void hb_after(uint32_t pe, uint32_t number);

/* The kernel has submitted the command: it has no more records. */
void hb_submitted(uint32_t pe);

/* What a launch that is submitted now knows, held by the caller. */
struct vector_clock *hb_known_to_host(void);

/* A kernel of such a launch begins on a PE; it has ended, and so have its commands. */
void hb_kernel_begins(uint32_t pe, const struct vector_clock *known);
void hb_kernel_ended(uint32_t pe);

/* Nothing more will be asked in this run: frees what the order takes. */
void hb_stop(void);

void hb_reset(void);

#endif
