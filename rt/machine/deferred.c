/* deferred.c: ends of services that have no event. */
#include "deferred.h"

#include "emitted.h"

/* ---- what may be deferred */

static bool is_compute(const struct stage *stage)
{
    return stage->kind == STAGE_GEMM || stage->kind == STAGE_MATH;
}

/* From the last stage on: up to one that another engine serves, or that takes no time or has a link behind it. */
static void shape_mark(struct stage *first, struct stage *last)
{
    for (struct stage *stage = last; stage >= first && stage->ps && !stage->link_ps; stage--) {
        stage->deferrable = is_compute(stage) || stage->kind == STAGE_FETCH;
        if (!is_compute(stage))
            return;
    }
}

void deferrable_mark(struct command *command)
{
    if (kb_own_models || command->planned)
        return;
    for (struct tile_shape *shape = command->shapes; shape < command->shapes + command->shape_count; shape++) {
        struct stage *last = shape->stages;
        if (!last || shape->kind != TILE_ADDS)
            continue;
        while (last[1].kind != STAGE_NONE)
            last++;
        shape_mark(shape->stages, last);
    }
}

/* ---- one PE */

void deferred_make_events(struct pe *pe)
{
    for (struct event *event; (event = pe->deferred);) {
        struct token *token = container_of(event, struct token, event);
        pe->deferred = event->next;
        service_until(token, token->stage->kind, event->t_ps);
    }
}

/* ---- all PEs */

static void end_past(struct pe *pe)
{
    if (pe->deferred)
        pe_end_deferred(pe, now_ps + 1, now_ps + 1);
}

void deferred_settle(void)
{
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        end_past(pe);
        deferred_make_events(pe);
    }
}

uint64_t deferred_next_ps(void)
{
    uint64_t first_ps = UINT64_MAX;
    for (struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        end_past(pe);
        if (pe->deferred && pe->deferred->t_ps < first_ps)
            first_ps = pe->deferred->t_ps;
    }
    return first_ps;
}
