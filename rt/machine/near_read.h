/* near_read.h: reads of HBM next to the PE, computed as one sum.
 *
 * A read of a composite's block from a slice at the PE's own router is put off when it starts, if nothing is in its way: its
 * end is known then, and only that is an event. The state of what it uses stays as it is until it ends. Whoever meets it
 * before, at the slice, the router, pe_dma or the TCM, settles it first: what is due by then happens as if it had been
 * events, and events do the rest. */
#ifndef KB_NEAR_READ_H
#define KB_NEAR_READ_H

#include "fabric.h"
#include "memory.h"

struct operand;
struct token;
struct transfer;

enum { NEAR_NEVER = UINT32_MAX };

/* What the reads of an operand have in common. */
struct near_read {
    uint32_t pause, pauses;                             /* reads left that go as events, NEAR_NEVER: all do; how many follow
                                                           one that had to be settled */
    struct hbm_slice *slice;
    struct pseudo_channel *channel;                     /* its first */
    struct route *route;                                /* of requests */
    uint64_t request_ps;                                /* until the request reaches the slice */
    struct hbm_turn turn;                               /* of the read that is put off: there is one server of reads */
    struct near_way way;
};

void near_read_make(struct near_read *near, const struct operand *operand);

/* Tries to compute the read as one sum. Returns false if something is in its way. */
bool near_read_try(struct transfer *transfer, struct near_read *near);

/* Puts a read off that starts now. Returns false if it has to go as events. */
static inline bool near_read_start(struct transfer *transfer, struct near_read *near)
{
    if (near->pause)
        near->pause -= near->pause != NEAR_NEVER;
    else
        return near_read_try(transfer, near);
    return false;
}

/* Whether a read is put off. */
static inline bool is_put_off(const struct data_message *data)
{
    return data->ahead_ps == UINT64_MAX;
}

/* The read of a token, which was put off, ends now, and its transfer. */
void near_read_end(struct token *token);

/* Settles a read that was put off. `by`: as event_catch_up has it. */
void near_read_settle(struct transfer *transfer, const struct event *by);

/* When the first of its steps after now is due. */
uint64_t near_read_next_ps(const struct transfer *transfer);

#endif
