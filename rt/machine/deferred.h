/* deferred.h: ends of services that have no event.
 *
 * While no tile waits for the engines that serve tiles from the TCM on, the end of a FETCH, GEMM or MATH lets nothing start but
 * the tile's next stage, if that is a GEMM or MATH. So it need not happen at its time: it is deferred until something else
 * happens in the PE that it may have to do with, and takes place before that, as of its own time. When something waits that it
 * may let start, it becomes an event.
 *
 *     end_defer              a service starts whose end is deferred
 *     deferred_end           the ends that are past take place, with the services that they let start
 *     deferred_make_events   the others become events */
#ifndef KB_DEFERRED_H
#define KB_DEFERRED_H

#include "pe.h"
#include "service.h"
#include "sim/loop.h"
#include "sim/observer.h"
#include "tile.h"

/* The stages that may let one another start: those of the compute engines, and the others that share servers and slots with
 * them. */
enum {
    COMPUTE_STAGES = 1 << STAGE_GEMM | 1 << STAGE_MATH,
    TCM_STAGES = 1 << STAGE_FETCH | 1 << STAGE_STORE
};

/* Whether a token waits for one of some stages. */
static inline bool any_waits(const struct pe *pe, uint32_t stages)
{
    return pe->waiting & (stages | stages << WAITS_DIRECT);
}

/* Marks the stages of a command's tiles whose ends may be deferred: from then on only compute engines serve the tile, each for
 * some time, and no link is between them. Only tiles that store nothing have such stages, so no command is complete at such an
 * end. */
void deferrable_mark(struct command *command);

/* Whether the end of a service that starts now may be deferred. */
static inline bool end_is_deferrable(const struct pe *pe, const struct token *token)
{
    const uint64_t watched = MOMENT_BIT(MOMENT_event_fires) | MOMENT_BIT(MOMENT_event_set_due)
                             | MOMENT_BIT(MOMENT_tile_queued) | MOMENT_BIT(MOMENT_service_starts)
                             | MOMENT_BIT(MOMENT_service_ends);
    return token->stage->deferrable && !any_waits(pe, COMPUTE_STAGES | TCM_STAGES) && !pe->lacks_room
           && !is_any_observed(watched);
}

/* Defers the end of a service, which is after now. */
static inline void end_defer(struct pe *pe, struct token *token, uint64_t t_ps)
{
    struct event **link = &pe->deferred, *event = &token->event;
    event->t_ps = t_ps;
    while (*link && (*link)->t_ps < t_ps)
        link = &(*link)->next;
    event->next = *link;
    *link = event;
}

/* The time before which ends have taken place, and what they let start has started: in the first round of an instant, its own
 * ends have not. */
static inline uint64_t deferred_past_ps(void)
{
    return now_ps + !loop_is_first_round();
}

/* Ends that are past take place. To be called before anything is done that they may have to do with. */
static inline void deferred_end(struct pe *pe)
{
    if (__builtin_expect(pe->deferred != NULL, 0) && pe->deferred->t_ps <= now_ps)
        pe_end_deferred(pe, deferred_past_ps(), deferred_past_ps());
}

/* Makes events of all that are deferred. */
void deferred_make_events(struct pe *pe);

/* At the begin of the PE's Issue step, if it has deferred ends. */
static inline void deferred_before_issue(struct pe *pe)
{
    if (pe->deferred->t_ps <= now_ps)
        pe_end_deferred(pe, now_ps + 1, deferred_past_ps());
}

/* At the end of it: what still waits for an engine may have to start at one of those that are to come. */
static inline void deferred_after_issue(struct pe *pe)
{
    if (any_waits(pe, COMPUTE_STAGES | TCM_STAGES) || pe->lacks_room)
        deferred_make_events(pe);
}

/* At the end of an instant, for all PEs: the ends up to now take place, the others become events. */
void deferred_settle(void);

/* When the first of those after now is due, likewise; UINT64_MAX: there is none. */
uint64_t deferred_next_ps(void);

#endif
