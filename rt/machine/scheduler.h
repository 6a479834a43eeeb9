/* scheduler.h: pe_scheduler: the SubmissionQueue, the feeder, and the completion of commands. */
#ifndef KB_SCHEDULER_H
#define KB_SCHEDULER_H

#include "pe.h"

/* Puts a checked command into the SubmissionQueue. */
void scheduler_submit(struct pe *pe, struct command *command);

/* A tile of a command has ended: its engine, or pe_ipcq, reports it, which takes no time. The last one completes the
 * command. Only the scheduler changes how much of a command is complete. */
void scheduler_tile_ended(struct command *command);

/* Completes a command, and tells its submitter. Fast-forward calls it for a copy of a command that has completed. */
void scheduler_complete(struct command *command);

/* ---- the scheduler's part of the Issue step, as in tile.h */

/* The feeder begins the next tile, for which there is a slot, if there are buffers. */
bool serve_tile(struct pe *pe);

static inline bool serve_feeder(struct pe *pe)
{
    return pe->feeding && !pe->feed && !pe->lacks_room && pe->free_slots[pe->feeding->first_stage] && serve_tile(pe);
}

/* Ends the feed of a tile that takes no time. If nothing else is due in this instant, the next round would be the ends of
 * such feeds alone, and none of them concerns another PE: so it ends in place, which is as if that round came now. Else it
 * ends in the next round. Returns whether it has ended. */
bool feed_end(struct pe *pe);

static inline bool feed_ends(struct pe *pe)
{
    return pe->feeds_now && feed_end(pe);
}

/* The scheduler takes the next command. */
bool serve_command(struct pe *pe);

static inline bool serve_scheduler(struct pe *pe)
{
    return pe->submitted && !pe->scheduling && serve_command(pe);
}

extern const struct handler scheduler_handlers[];

#endif
