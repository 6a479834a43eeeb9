/* host_list.c: the host of a replayed stream, which takes its steps one after the other. */
#include "host_list.h"

#include <string.h>

#include "common/arena.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "program.h"
#include "sim/loop.h"
#include "sim/observer.h"
#include "why/why.h"

/* A step that has begun. */
struct step_run {
    struct host_list *list;
    const struct launch *launch;                        /* what it submitted, by its kind */
    const struct memory_request *memory;
    bool complete;
};

struct host_list {
    const struct command_stream *stream;
    uint64_t position;                                  /* of the step before the first in what the host does */
    struct step_run *runs;                              /* by step */
    uint32_t next;                                      /* the step that the host is at */
    bool begun;                                         /* that step has begun */
    uint32_t in_flight;
    bool stopped;                                       /* a request has not ended well */
    const struct failure *failure;                      /* of the first request that had one */
    struct host_delay delay;
    uint64_t end_ps;
    void (*ended)(void *owner);
    void *owner;
};

/* ---- requests */

static struct fanout *submit_map(const struct stream_map *map)
{
    uint64_t *addresses = map->unmaps ? NULL : arena_alloc(map->count, sizeof *addresses);
    for (uint32_t i = 0; addresses && i < map->count; i++)
        addresses[i] = program_address(&map->to, &kb_pe[map->pes[i]]);
    return map_request_submit(map->pes, addresses, map->count, map->va, map->pages);
}

static struct fanout *submit_memory(const struct stream_memory *memory, struct step_run *run)
{
    struct memory_request *request = arena_alloc(1, sizeof *request);
    uint64_t *addresses = arena_alloc(memory->count, sizeof *addresses);
    for (uint32_t i = 0; i < memory->count; i++)
        addresses[i] = program_address(&memory->addresses[i], &kb_pe[0]);
    *request = (struct memory_request){.writes = memory->writes, .addresses = addresses, .count = memory->count,
                                       .bytes = memory->bytes};
    memory_request_submit(request);
    run->memory = request;
    return &request->fanout;
}

static struct launch_part *parts_of(const struct stream_launch *launch)
{
    struct launch_part *parts = arena_alloc(launch->count, sizeof *parts);
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct stream_part *part = &launch->parts[i];
        parts[i] = (struct launch_part){.program = part->program->name, .body = program_run, .arg = part->program,
                                        .pes = part->pes, .count = part->count, .stackless = true};
    }
    return parts;
}

static struct fanout *submit_launch(const struct stream_launch *stream_launch, struct step_run *run, uint64_t position)
{
    struct launch_options options = stream_launch->options;
    options.position = position;
    struct launch *launch = launch_submit(parts_of(stream_launch), stream_launch->count, &options);
    run->launch = launch;
    return &launch->fanout;
}

/* ---- the list */

static void host_acts(struct host_list *list);

/* The run ends with the last request that does. */
static void ends_now(struct host_list *list)
{
    list->end_ps = now_ps;
    why_mark_end();
}

/* What the request of a step has met; NULL: nothing. */
static const struct failure *failure_of(const struct step_run *run)
{
    if (run->memory)
        return run->memory->failure.set ? &run->memory->failure : NULL;
    return run->launch && run->launch->failed ? &run->launch->failed->tl.failure : NULL;
}

static void request_ended(void *owner)
{
    struct step_run *run = owner;
    struct host_list *list = run->list;
    run->complete = true;
    list->in_flight--;
    ends_now(list);
    if (!list->failure)
        list->failure = failure_of(run);
    if ((run->launch && run->launch->status != LAUNCH_OK) || (run->memory && run->memory->failure.set)) {
        list->stopped = true;
        host_delay_cancel(&list->delay);
    }
    host_acts(list);
}

static void delay_ended(struct host_delay *delay)
{
    struct host_list *list = container_of(delay, struct host_list, delay);
    list->runs[list->next].complete = true;
    host_acts(list);
}

static void begin(struct host_list *list, const struct host_step *step, struct step_run *run)
{
    struct fanout *fanout = NULL;
    uint64_t position = list->position + list->next + 1;
    run->list = list;
    observe_host_calls(NULL, step->line);
    switch (step->kind) {
    case HOST_MAP:
        if (step->map.count)
            fanout = submit_map(&step->map);
        break;
    case HOST_MEMORY: fanout = submit_memory(&step->memory, run); break;
    case HOST_LAUNCH: fanout = submit_launch(&step->launch, run, position); break;
    case HOST_DELAY:
        host_delay_begin(&list->delay, step->delay_ps, position, delay_ended);
        return;
    case HOST_WAIT: return;
    }
    if (!fanout) {                                      /* a map of no PE */
        run->complete = true;
        ends_now(list);
        return;
    }
    fanout->ended = request_ended;
    fanout->owner = run;
    list->in_flight++;
}

/* Whether the host can go on to the step after this one. */
static bool has_passed(const struct host_list *list, const struct host_step *step, const struct step_run *run)
{
    if (step->kind != HOST_WAIT)
        return step->async || run->complete;
    for (uint32_t i = 0; i < step->awaited_count; i++)
        if (!list->runs[step->awaited[i]].complete)
            return false;
    return true;
}

/* Takes as many steps as the host can take now. */
static void host_acts(struct host_list *list)
{
    for (; !list->stopped && list->next < list->stream->count; list->next++, list->begun = false) {
        const struct host_step *step = &list->stream->steps[list->next];
        if (!list->begun)
            begin(list, step, &list->runs[list->next]);
        list->begun = true;
        if (!has_passed(list, step, &list->runs[list->next]))
            return;
    }
    if (!list->in_flight)
        list->ended(list->owner);
}

struct host_list *host_list_new(const struct command_stream *stream, uint64_t position, void (*ended)(void *owner), void *owner)
{
    struct host_list *list = arena_alloc(1, sizeof *list);
    *list = (struct host_list){.stream = stream, .position = position, .ended = ended, .owner = owner};
    list->runs = arena_alloc(stream->count + 1, sizeof *list->runs);
    return list;
}

void host_list_begin(struct host_list *list)
{
    host_acts(list);
}

bool host_list_end(struct host_list *list)
{
    for (list->next += list->begun; list->next < list->stream->count; list->next++) {
        const struct stream_launch *launch = &list->stream->steps[list->next].launch;
        if (launch->count)
            launch_skip(parts_of(launch), launch->count);
    }
    return !list->stopped;
}

uint64_t host_list_end_ps(const struct host_list *list)
{
    return list->end_ps;
}

const struct failure *host_list_failure(const struct host_list *list)
{
    return list->failure;
}

void *host_list_owner(const struct host_list *list)
{
    return list->owner;
}

const struct host_list *host_list_of(const struct fanout *fanout)
{
    return fanout->ended == request_ended ? ((const struct step_run *)fanout->owner)->list : NULL;
}
