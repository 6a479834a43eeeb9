/* device.h: a kernel of the device library, as the host library starts it. */
#ifndef KB_DEVICE_H
#define KB_DEVICE_H

#include "flight.h"
#include "launch/kernel.h"
#include "kb/tl.h"

/* A kernel with a copy of its arguments. */
struct device_program {
    const struct kb_kernel *kernel;
    const void *arg;
    const struct clocks *known;                         /* of others' work, for the race check; NULL: it is off */
};

/* What the library keeps for a kernel while it runs: its tl's data. */
struct device_state {
    struct held *held;                                  /* what tl_data handed out (buffer.c) */
    struct flights receives, moves;                     /* transfers not waited for (flight.c) */
    struct freed *freed;                                /* what it gave back (freed.c) */
    uint32_t *after;                                    /* commands that the next one depends on (device_call.c), */
    uint32_t afters, after_room;
};

/* The body of every such kernel; `arg` is a struct device_program. */
void device_run(struct tl *tl, const void *arg);

/* Frees what a kernel allocated and what it was handed out; its commands are complete. */
void buffers_end(struct tl *tl);

/* The room's reset (cli/reset.c): frees the buffers of every PE's kernel, also of those that did not end. */
void device_reset(void);

#endif
