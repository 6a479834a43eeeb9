/* scheduler.c: pe_scheduler: takes commands from the SubmissionQueue one at a time, and feeds the tiles of composites
 * into the pipeline, one composite after the other; and completes commands. */
#include "scheduler.h"

#include <assert.h>

#include "base/rates.h"
#include "deferred.h"
#include "emitted.h"
#include "engine.h"
#include "ipcq.h"
#include "service.h"
#include "stats.h"
#include "tile.h"
#include "tile_buffers.h"

/* ---- feeder */

static void tile_is_fed(struct event *event)
{
    struct token *token = container_of(event, struct token, event);
    token->command->pe->feed = NULL;
    token_travel(token, token->command->link_ps);
}

static __attribute__((noinline)) struct event *feed_event(const struct pe *pe, struct token *token)
{
    token->event.order = event_order(pe_rank(pe, NODE_pe_scheduler), CLASS_SERVICE, token->command->number);
    token->event.fire = tile_is_fed;
    return &token->event;
}

/* The token of the next tile to be fed. The tile behind it is worked out ahead: a host processor waits when it copies what it
 * has just written in other pieces. */
static struct token *next_token(struct pe *pe, struct command *command)
{
    if (!pe->fed || pe->next_tile.id != pe->fed)
        pe->next_tile = tiling_tile(command, pe->fed);
    struct token *token = token_new(command, &pe->next_tile);
    if (pe->fed + 1 < command->tiles)
        tiling_next(command, &pe->next_tile);
    return token;
}

bool serve_tile(struct pe *pe)
{
    struct command *command = pe->feeding;
    if (pe->failed)
        return false;
    struct token *token = pe->next_feed ? pe->next_feed : next_token(pe, command);
    pe->lacks_room = !tile_buffers_take(pe, token);
    if (pe->lacks_room) {
        pe->next_feed = token;
        return false;
    }
    pe->free_slots[token->stage->kind]--;
    pe->feed = token;
    pe->next_feed = NULL;
    if (++pe->fed == command->tiles) {
        pe->feeding = command->waiting;
        pe->fed = 0;
        observe_feeder_turns(pe, true);
    }
    uint64_t end_ps = scheduler_end_ps(command, true, token->tile.id);
    pe->feeds_now = end_ps == now_ps;
    observe_tile_fed(token, end_ps);
    if (!pe->feeds_now)
        event_at(feed_event(pe, token), end_ps);
    return true;
}

bool feed_end(struct pe *pe)
{
    struct token *token = pe->feed;
    pe->feeds_now = false;
    if (event_due) {
        event_at(feed_event(pe, token), now_ps);
        return false;
    }
    if (token->command->link_ps || is_any_observed(MOMENT_BIT(MOMENT_event_fires) | MOMENT_BIT(MOMENT_tile_queued))) {
        event_fire(feed_event(pe, token));
        return true;
    }
    event_count++;
    pe->feed = NULL;
    token_enqueue(pe, token, false);
    return true;
}

/* ---- scheduler */

void scheduler_submit(struct pe *pe, struct command *command)
{
    engine_times(command);
    if (command->ask.kind == COMMAND_send || command->ask.kind == COMMAND_recv)
        ipcq_submitted(command);
    command->waiting = NULL;
    *(pe->submitted ? &pe->submitted_last->waiting : &pe->submitted) = command;
    pe->submitted_last = command;
    observe_command_submitted(command);
    pe_wake(pe);
}

static void scheduled(struct event *event)
{
    struct pe *pe = container_of(event, struct pe, scheduled);
    struct command *command = pe->scheduling;
    pe->scheduling = NULL;
    stats_service(ENGINE_SCHEDULER, command->submitted_ps, pe->scheduling_since_ps);
    observe_command_scheduled(command);
    pe_wake(pe);
    if (command->ask.kind == COMMAND_recv) {
        ipcq_receive(command);
        return;
    }
    if (!command_is_composite(command->ask.kind)) {
        deferred_end(pe);
        token_travel(token_simple(command), command->link_ps);
        return;
    }
    command->waiting = NULL;
    bool first = !pe->feeding;
    *(pe->feeding ? &pe->feeding_last->waiting : &pe->feeding) = command;
    pe->feeding_last = command;
    if (first)
        observe_feeder_turns(pe, false);
}

bool serve_command(struct pe *pe)
{
    struct command *command = pe->submitted;
    if (pe->failed)
        return false;
    pe->submitted = command->waiting;
    pe->scheduling = command;
    uint32_t rank = pe_rank(pe, NODE_pe_scheduler);
    event_set(&pe->scheduled, event_order(rank, CLASS_SERVICE, command->number), 0, scheduled);
    pe->scheduling_since_ps = now_ps;
    observe_scheduling_starts(command);
    event_at(&pe->scheduled, scheduler_end_ps(command, false, 0));
    return true;
}

/* ---- completion
 *
 * The commands in flight are those that the scheduler has taken and that are not complete; a command itself says how many
 * of its tiles are left. The submitter gets the record of a completion in the instant in which it is written. */

void scheduler_complete(struct command *command)
{
    command->complete = true;
    command->complete_ps = now_ps;
    observe_command_completed(command);
    command->submitter->completed(command);
    command_drop(command);
}

void scheduler_tile_ended(struct command *command)
{
    assert(command->tiles_left > 0);                    /* each tile ends once */
    if (--command->tiles_left == 0)
        scheduler_complete(command);
}

const struct handler scheduler_handlers[] = {
    HANDLER(tile_is_fed, "feeder: a tile is fed"),
    HANDLER(scheduled, "scheduler: a command is taken"),
    {0}};
