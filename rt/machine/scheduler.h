/* scheduler.h: pe_scheduler: the SubmissionQueue and the feeder. */
#ifndef KB_SCHEDULER_H
#define KB_SCHEDULER_H

#include "pe.h"

/* Puts a checked command into the SubmissionQueue. */
void scheduler_submit(struct pe *pe, struct command *command);

/* ---- the scheduler's part of the Issue step, as in tile.h */

/* The feeder begins the next tile, if there are buffers and a slot for it. */
bool serve_tile(struct pe *pe);

static inline bool serve_feeder(struct pe *pe)
{
    return !pe->feed && pe->feeding && !pe->lacks_room && serve_tile(pe);
}

/* The scheduler takes the next command. */
bool serve_command(struct pe *pe);

static inline bool serve_scheduler(struct pe *pe)
{
    return !pe->scheduling && pe->submitted && serve_command(pe);
}

extern const struct handler scheduler_handlers[];

#endif
