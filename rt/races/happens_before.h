/* happens_before.h: operations as far as their order goes: which of two surely ends before the other one begins.
 *
 * That is known of an operation to
 *     whatever its kernel calls after it waited for it, by blocking or by tl_wait;
 *     whatever was told of by a message that was sent after that, once its receive was waited for; the send of a
 *     message itself is known to who got it, and so is what that comes after by tl_after;
 *     what comes after it by tl_after, if it is no receive: that has no place before it is complete;
 *     launches that are submitted after its kernel ended.
 * Nothing else is an order: not the instants in which things happen, nor the order in which engines take them. */
#ifndef KB_RACER_H
#define KB_RACER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/origin.h"
#include "store/view.h"

struct clocks;

struct racer {
    struct origin *origin;
    uint32_t pe, number;                                /* over the machine; of its command */
    uint64_t at_ps;                                     /* of its call */
    uint32_t own;                                       /* the clock of its PE at its call, */
    struct clocks *seen;                                /* what that knew of others; NULL: no longer needed */
    uint32_t waited, sent;                              /* the clock at which it was waited for; a send: at its call */
    uint32_t heard, heard_by;                           /* a send: the clock of a PE that waited for its receive */
    struct teller *tellers;                             /* sends that come after it */
    struct racer *from;                                 /* a completed receive: the send of its message */
    struct racer **after;                               /* of tl_after */
    uint32_t afters;
    struct view received;                               /* a receive: what it will write */
    uint32_t holders;
    uint64_t visit;                                     /* number of the search that has come by */
    struct racer *older, *newer;                        /* not waited for, of one PE; `older` of those that are free */
};

/* The operation of the command that a kernel is about to submit: the same one when it has several records. */
struct racer *racer_called(uint32_t pe, uint32_t number, struct origin *origin);

/* One holder less. */
void racer_drop(struct racer *racer);

/* It is a send: its message goes to who receives it. */
void racer_sends(struct racer *racer);

/* A receive has got the message of a send. */
void racer_received(struct racer *receive, struct racer *send);

/* All that it overlaps is found: later ones ask for less. */
void racer_known(struct racer *racer);

/* Whether `a` ends before `b` begins; of `b` all is known that its call can know. */
bool racer_before(const struct racer *a, struct racer *b);

/* A kernel has waited for its command of a number; its next one is to come after that. */
void racer_waited(uint32_t pe, uint32_t number);
void racer_after(uint32_t pe, uint32_t number);

/* All records of its next command were called. */
void racer_submitted(uint32_t pe);

/* What a launch that is submitted now knows, held by the caller. */
struct clocks *racers_known_to_host(void);

/* A kernel of such a launch begins on a PE, or has ended, its commands too. */
void racers_kernel_begins(uint32_t pe, const struct clocks *known);
void racers_kernel_ended(uint32_t pe);

void racers_reset(void);

#endif
