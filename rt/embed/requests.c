/* requests.c: a run whose host is another program: time in slices, requests, what became of them.
 *
 * The program acts where the host of a bench does: at the end of an instant. What the machine does ahead of time or skips
 * depends on no later act of a host, or ends at the limit of time (sim_advance), so slices of any size give the same. */
#include "requests.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/diag.h"
#include "common/fail.h"
#include "failure.h"
#include "fastforward/fastforward.h"
#include "host/bench.h"
#include "host/launches.h"
#include "instance.h"
#include "kb/arith.h"
#include "launch/deadlock.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "machine/state.h"
#include "report/result.h"
#include "report/summary.h"
#include "report/trace.h"
#include "session/fault_stop.h"
#include "session/host_list.h"
#include "session/program.h"
#include "session/stream.h"
#include "sim/loop.h"

/* A request of the program. */
struct caller_request {
    uint64_t number;
    enum kb_sim_request kind;
    enum kb_sim_outcome outcome;                        /* RUNNING until the host has the answer */
    uint64_t submitted_ps, done_ps;
    const struct launch *launch;                        /* of a launch or program; */
    struct fed_program *program;
    const struct memory_request *memory;                /* of a write or read; */
    struct host_list *list;                             /* of a stream, */
    const struct launch *before;                        /* and the last launch before its own */
    struct caller_request *next;                        /* that runs, or that is complete, after it */
    struct caller_request **link;                       /* of one that runs: what points to it */
};

/* The name of a node that a failure was at. */
struct node_name {
    struct node_name *next;
    char text[];
};

/* Who has a PE. */
struct owner {
    const struct kernel_run *run;                       /* launched last on it */
    const struct caller_request *stream;                /* that may launch on it */
};

static struct requests {
    struct ARRAY(struct caller_request *) all;          /* by number, from 1 on */
    struct owner *owners;                               /* by PE */
    struct caller_request *running;                     /* the newest first */
    struct node_name *names;                            /* each node once */
    uint64_t positions;                                 /* given to what orders timeouts and delays of one instant */
    uint64_t end_ps;                                    /* of the last request that is complete */
    struct caller_request *complete, **complete_end;    /* whose completion the program was not told of */
    uint32_t stop_mask;                                 /* of the call that is under way */
    uint64_t stop_request;                              /* the first that is complete, */
    uint64_t fault_request;                             /* or has failed, in that call; 0: none */
    void *user;
    void (*completed)(void *user, const struct kb_sim_result *result);
    struct trace_call trace;
} requests;

/* ---- requests */

static struct caller_request *request_new(enum kb_sim_request kind, uint64_t *number)
{
    struct caller_request *request = arena_alloc(1, sizeof *request);
    *array_add(&requests.all) = request;
    *number = requests.all.count;
    *request = (struct caller_request){.number = *number, .kind = kind, .submitted_ps = now_ps, .done_ps = UINT64_MAX,
                                       .next = requests.running, .link = &requests.running};
    if (request->next)
        request->next->link = &request->next;
    requests.running = request;
    return request;
}

static void stop_running(struct caller_request *request)
{
    *request->link = request->next;
    if (request->next)
        request->next->link = request->link;
    request->next = NULL;
}

static struct caller_request *request_of(uint64_t number)
{
    return number && number <= requests.all.count ? requests.all.at[number - 1] : NULL;
}

static enum kb_status no_request(uint64_t number)
{
    return refuse(KB_WRONG, "there is no request %" PRIu64 "; the last one is %zu", number, requests.all.count);
}

static const struct failure *failure_of(const struct caller_request *request)
{
    if (request->list)
        return host_list_failure(request->list);
    if (request->memory)
        return request->memory->failure.set ? &request->memory->failure : NULL;
    return request->launch && request->launch->failed ? &request->launch->failed->tl.failure : NULL;
}

static enum kb_sim_outcome launch_outcome_of(enum launch_status status)
{
    static const enum kb_sim_outcome outcomes[] = {
        [LAUNCH_RUNNING] = KB_SIM_RUNNING, [LAUNCH_OK] = KB_SIM_OK, [LAUNCH_FAILED] = KB_SIM_FAILED,
        [LAUNCH_TIMEOUT] = KB_SIM_TIMEOUT, [LAUNCH_DEADLOCK] = KB_SIM_DEADLOCK, [LAUNCH_SKIPPED] = KB_SIM_SKIPPED};
    return outcomes[status];
}

/* The name of a node, which place_name keeps only until its next call, until the reset. */
static const char *node_name(struct place node)
{
    const char *name = place_name(node);
    for (const struct node_name *known = requests.names; known; known = known->next)
        if (!strcmp(known->text, name))
            return known->text;
    struct node_name *added = arena_alloc(1, sizeof *added + strlen(name) + 1);
    added->next = requests.names;
    requests.names = added;
    return strcpy(added->text, name);
}

static void result_fill(const struct caller_request *request, struct kb_sim_result *result)
{
    const struct failure *failure = request->outcome == KB_SIM_RUNNING ? NULL : failure_of(request);
    const struct launch *launch = request->launch;
    const struct kernel_run *failed = launch && failure ? launch->failed : NULL;
    *result = (struct kb_sim_result){
        .struct_size = sizeof *result, .request = request->number, .kind = request->kind, .outcome = request->outcome,
        .submitted_ps = request->submitted_ps, .done_ps = request->done_ps,
        .start_ps = launch && launch->begun ? launch->start_ps : UINT64_MAX, .pe_count = launch ? launch->count : 0,
        .failure = failure ? fault_names[failure->code] : NULL,
        .failure_node = failure ? node_name(failure->node) : NULL, .failure_ps = failure ? failure->t_ps : UINT64_MAX,
        .failure_pe = failed ? pe_number(failed->tl.pe) : UINT64_MAX};
}

enum kb_status requests_poll(uint64_t number, struct kb_sim_result *result)
{
    const struct caller_request *request = request_of(number);
    if (!request)
        return no_request(number);
    result_fill(request, result);
    return KB_OK;
}

enum kb_status requests_poll_pe(uint64_t number, uint64_t i, struct kb_sim_pe_result *result)
{
    const struct caller_request *request = request_of(number);
    if (!request)
        return no_request(number);
    const struct launch *launch = request->launch;
    if (!launch || i >= launch->count)
        return refuse(KB_WRONG, "request %" PRIu64 " has %" PRIu64 " PEs, there is no number %" PRIu64, number,
                      launch ? (uint64_t)launch->count : 0, i);
    sim_host_acts();
    const struct kernel_run *run = &launch->runs[i];
    const struct failure *failure = run->tl.failure.set ? &run->tl.failure : NULL;
    *result = (struct kb_sim_pe_result){
        .struct_size = sizeof *result, .pe = pe_number(run->tl.pe),
        .outcome = !run->ended ? KB_SIM_RUNNING : failure ? KB_SIM_FAILED : KB_SIM_OK,
        .start_ps = run->started ? run->start_ps : UINT64_MAX, .end_ps = run->ended ? run->end_ps : UINT64_MAX,
        .dma_ps = run_dma_ps(run, now_ps), .compute_ps = run_compute_ps(run, now_ps),
        .failure = failure ? fault_names[failure->code] : NULL, .failure_node = failure ? node_name(failure->node) : NULL,
        .failure_ps = failure ? failure->t_ps : UINT64_MAX};
    return KB_OK;
}

/* ---- completions: the program is told at the end of the instant */

static void tell_completions(void)
{
    while (requests.complete) {
        struct caller_request *request = requests.complete;
        requests.complete = request->next;
        if (!requests.stop_request)
            requests.stop_request = request->number;
        if (request->outcome != KB_SIM_OK && !requests.fault_request)
            requests.fault_request = request->number;
        struct kb_sim_result result;
        result_fill(request, &result);
        if (requests.completed)
            requests.completed(requests.user, &result);
    }
    requests.complete_end = &requests.complete;
}

static void complete(struct caller_request *request, enum kb_sim_outcome outcome)
{
    request->outcome = outcome;
    request->done_ps = now_ps;
    requests.end_ps = kb_max(requests.end_ps, request->list ? host_list_end_ps(request->list) : now_ps);
    stop_running(request);
    *requests.complete_end = request;
    requests.complete_end = &request->next;
    sim_pause();
}

static void request_ended(void *owner)
{
    struct caller_request *request = owner;
    enum kb_sim_outcome outcome = KB_SIM_OK;
    if (request->launch)
        outcome = launch_outcome_of(request->launch->status);
    else if (request->memory && request->memory->failure.set)
        outcome = KB_SIM_FAILED;
    complete(request, outcome);
}

static void request_awaits(struct caller_request *request, struct fanout *fanout)
{
    fanout->ended = request_ended;
    fanout->owner = request;
}

/* ---- faults of kernels, while the program asked to be stopped by them */

static const struct caller_request *request_of_launch(const struct launch *launch)
{
    const struct host_list *list = host_list_of(&launch->fanout);
    return list ? host_list_owner(list) : launch->fanout.owner;
}

static void kernel_failed(const struct tl *tl)
{
    const struct caller_request *request = request_of_launch(tl->launch);
    if (!requests.fault_request)
        requests.fault_request = request->number;
    sim_pause();
}

/* ---- time */

enum kb_status requests_now_ps(uint64_t *t_ps)
{
    *t_ps = now_ps;
    return KB_OK;
}

enum kb_status requests_next_ps(uint64_t *next_ps)
{
    if (instance_is_new()) {
        *next_ps = UINT64_MAX;
        return KB_OK;
    }
    uint64_t event_ps = sim_next_ps(), ahead_ps = transfers_next_ps();
    *next_ps = event_ps < ahead_ps ? event_ps : ahead_ps;
    return KB_OK;
}

/* Whether a PE waits for the program's next step. */
static bool program_is_awaited(void)
{
    for (const struct caller_request *request = requests.running; request; request = request->next)
        if (request->program && fed_program_waits(request->program))
            return true;
    return false;
}

/* Nothing is due any more. Returns why time stops here; UNTIL: it goes on, and nothing happens. */
static enum kb_sim_reason idle(uint64_t until_ps)
{
    if (requests.stop_mask & KB_STOP_DEADLOCK && requests.running && !program_is_awaited()) {
        launches_deadlocked();
        tell_completions();
        return KB_STOP_DEADLOCK;
    }
    if (requests.stop_mask & KB_STOP_IDLE || until_ps == UINT64_MAX)
        return KB_STOP_IDLE;
    sim_pass(until_ps);
    return KB_STOP_UNTIL;
}

/* Why the program is stopped at the end of this instant; UNTIL: it is not. */
static enum kb_sim_reason stop_reason(void)
{
    if (requests.stop_mask & KB_STOP_FAULT && requests.fault_request)
        return KB_STOP_FAULT;
    return requests.stop_mask & KB_STOP_COMPLETED && requests.stop_request ? KB_STOP_COMPLETED : KB_STOP_UNTIL;
}

/* Goes on after each instant in which a request is complete, of which the program is told then. */
static enum kb_sim_reason advance(uint64_t until_ps)
{
    for (;;) {
        tell_completions();
        if (stop_reason() != KB_STOP_UNTIL)
            return stop_reason();
        switch (sim_advance(until_ps)) {
        case SIM_PAUSED: break;
        case SIM_REACHED: return KB_STOP_UNTIL;
        case SIM_IDLE: return idle(until_ps);
        case SIM_STOPPED: fail_exit(STATUS_RUN_FAILED);
        }
    }
}

enum kb_status requests_run(uint64_t until_ps, uint32_t stop_mask, struct kb_sim_stop *why)
{
    enum kb_status opens = requests_opens();
    if (opens != KB_OK)
        return opens;
    enum { REASONS = KB_STOP_UNTIL | KB_STOP_COMPLETED | KB_STOP_FAULT | KB_STOP_IDLE | KB_STOP_DEADLOCK };
    if (until_ps < now_ps)
        return refuse(KB_WRONG, "time is %" PRIu64 " ps already, and cannot go back to %" PRIu64 " ps", now_ps, until_ps);
    if (stop_mask & ~(uint32_t)REASONS)
        return refuse(KB_WRONG, "the stop mask 0x%" PRIx32 " has bits that are no enum kb_sim_reason", stop_mask);
    requests.stop_mask = stop_mask;
    requests.stop_request = requests.fault_request = 0;
    fault_stop_set(stop_mask & KB_STOP_FAULT ? kernel_failed : NULL);
    failure_machine_works();
    enum kb_sim_reason reason = advance(until_ps);
    failure_machine_rests();
    requests.stop_mask = 0;
    *why = (struct kb_sim_stop){
        .struct_size = sizeof *why, .now_ps = now_ps, .reason = reason,
        .request = reason == KB_STOP_FAULT       ? requests.fault_request
                   : reason == KB_STOP_COMPLETED ? requests.stop_request : 0};
    return KB_OK;
}

/* ---- PEs that requests are for */

enum kb_status requests_check_pes(const uint32_t *pes, uint64_t count)
{
    if (count == 0)
        return refuse(KB_WRONG, "there is no PE");
    for (uint64_t i = 0; i < count; i++)
        if (pes[i] >= pe_count())
            return refuse(KB_WRONG, "the machine has %u PEs, there is no number %" PRIu32, (unsigned)pe_count(), pes[i]);
    return KB_OK;
}

static int compare_pes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A copy in rank order. */
static uint32_t *sorted(const uint32_t *pes, uint64_t count)
{
    uint32_t *copy = arena_alloc(count, sizeof *copy);
    memcpy(copy, pes, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, compare_pes);
    return copy;
}

/* Whether a PE can be launched on. */
static enum kb_status check_idle(uint32_t pe)
{
    const struct owner *owner = &requests.owners[pe];
    if (owner->stream && owner->stream->outcome == KB_SIM_RUNNING)
        return refuse(KB_WRONG, "request %" PRIu64 ", a stream, uses %s", owner->stream->number, pe_name(&kb_pe[pe]));
    if (owner->run && !owner->run->ended)
        return refuse(KB_WRONG, "%s still runs kernel %s", pe_name(&kb_pe[pe]), owner->run->tl.name);
    if (kb_pe[pe].failed)
        return refuse(KB_WRONG, "%s has failed and starts nothing until kb_sim_reset", pe_name(&kb_pe[pe]));
    return KB_OK;
}

/* Notes who has the PEs of a launch. */
static void own(const struct launch *launch)
{
    for (uint32_t i = 0; i < launch->count; i++)
        requests.owners[pe_number(launch->runs[i].tl.pe)].run = &launch->runs[i];
}

/* ---- launches */

static enum kb_status check_launch(const struct kb_sim_launch *ask)
{
    enum kb_status status = requests_check_pes(ask->pes, ask->pe_count);
    if (status != KB_OK)
        return status;
    if (ask->start > KB_SIM_START_FREE)
        return refuse(KB_WRONG, "there is no start number %" PRIu32, ask->start);
    if (ask->timeout_ps > UINT64_MAX - now_ps)
        return refuse(KB_WRONG, "a timeout of %" PRIu64 " ps ends beyond 2^64 ps", ask->timeout_ps);
    const uint32_t *pes = sorted(ask->pes, ask->pe_count);
    for (uint64_t i = 0; i < ask->pe_count; i++) {
        if (i && pes[i] == pes[i - 1])
            return refuse(KB_WRONG, "%s is given twice", pe_name(&kb_pe[pes[i]]));
        status = check_idle(pes[i]);
        if (status != KB_OK)
            return status;
    }
    return KB_OK;
}

static void submit(struct caller_request *request, const struct kb_sim_launch *ask, struct launch_part *part)
{
    struct launch_options options = {.start = (enum launch_start)ask->start, .fail_fast = ask->fail_fast,
                                     .timed = ask->timeout_ps, .timeout_ps = ask->timeout_ps,
                                     .position = ++requests.positions};
    part->pes = sorted(ask->pes, ask->pe_count);
    part->count = (uint32_t)ask->pe_count;
    sim_host_acts();
    struct launch *launch = launch_submit(part, 1, &options);
    request->launch = launch;
    request_awaits(request, &launch->fanout);
    own(launch);
}

_Static_assert((int)KB_SIM_START_CUBE == START_CUBE && (int)KB_SIM_START_FREE == START_FREE, "one enumeration");

enum kb_status requests_launch(const struct kb_sim_launch *ask, uint64_t *number)
{
    enum kb_status opens = requests_opens();
    if (opens != KB_OK)
        return opens;
    const struct kb_kernel *kernel = kernel_find(ask->kernel);
    if (!kernel)
        return refuse(KB_WRONG, "no kernel '%s'", ask->kernel);
    if (ask->arg_bytes != kernel->arg_bytes)
        return refuse(KB_WRONG, "kernel %s has arguments of %" PRIu64 " bytes, not %" PRIu64, kernel->name,
                      kernel->arg_bytes, ask->arg_bytes);
    if (kernel->arg_bytes && !ask->arg)
        return refuse(KB_WRONG, "kernel %s is launched without its arguments", kernel->name);
    enum kb_status status = check_launch(ask);
    if (status != KB_OK)
        return status;
    struct launch_part part = launches_part(&(struct kb_part){
        .kernel = kernel, .arg = ask->arg, .pes = {ask->pes, (uint32_t)ask->pe_count}});
    failure_machine_works();
    submit(request_new(KB_SIM_LAUNCH, number), ask, &part);
    failure_machine_rests();
    return KB_OK;
}

/* ---- programs, a command at a time */

enum kb_status requests_program(const struct kb_sim_launch *ask, uint64_t *number)
{
    enum kb_status opens = requests_opens();
    if (opens != KB_OK)
        return opens;
    enum kb_status status = check_launch(ask);
    if (status != KB_OK)
        return status;
    const char *name = ask->kernel ? arena_text(ask->kernel, strlen(ask->kernel)) : "program";
    failure_machine_works();
    struct caller_request *request = request_new(KB_SIM_PROGRAM, number);
    request->program = fed_program_new((uint32_t)ask->pe_count);
    submit(request, ask, &(struct launch_part){.program = name, .body = fed_program_run, .arg = request->program,
                                                .stackless = true});
    failure_machine_rests();
    return KB_OK;
}

static enum kb_status find_program(uint64_t number, struct caller_request **request)
{
    *request = request_of(number);
    if (!*request)
        return no_request(number);
    if (!(*request)->program)
        return refuse(KB_WRONG, "request %" PRIu64 " is no program", number);
    if (fed_program_ended((*request)->program))
        return refuse(KB_WRONG, "the program of request %" PRIu64 " has ended", number);
    return KB_OK;
}

/* A text of the caller as a source that stays. */
static const struct source *source_of(const char *name, const char *text, uint64_t length)
{
    struct source *source = arena_alloc(1, sizeof *source);
    *source = (struct source){.path = name, .text = arena_text(text, length), .length = length};
    return source;
}

/* Refuses it: the messages, with lines and columns, are the text of the call. */
static enum kb_status wrong_text(void)
{
    errors_forget();
    return KB_WRONG;
}

enum kb_status requests_command(uint64_t number, uint32_t pe, const char *text, uint64_t length)
{
    struct caller_request *request;
    enum kb_status status = find_program(number, &request);
    if (status != KB_OK)
        return status;
    const struct launch *launch = request->launch;
    uint32_t i = 0;
    while (i < launch->count && pe_number(launch->runs[i].tl.pe) != pe)
        i++;
    if (i == launch->count)
        return refuse(KB_WRONG, "PE %" PRIu32 " is not one of request %" PRIu64, pe, number);
    const struct stream_step *step = stream_step_of(source_of("command", text, length), fed_program_ids(request->program, i));
    if (!step)
        return wrong_text();
    sim_host_acts();
    fed_program_add(request->program, i, step);
    return KB_OK;
}

enum kb_status requests_program_end(uint64_t number)
{
    struct caller_request *request;
    enum kb_status status = find_program(number, &request);
    if (status != KB_OK)
        return status;
    sim_host_acts();
    fed_program_end(request->program);
    return KB_OK;
}

/* ---- streams */

static void stream_ended(void *owner)
{
    struct caller_request *request = owner;
    bool good = host_list_end(request->list);
    for (struct launch *launch = request->before ? request->before->next : launches; launch; launch = launch->next)
        if (host_list_of(&launch->fanout) == request->list)
            own(launch);
    complete(request, good ? KB_SIM_OK : KB_SIM_FAILED);
}

static enum kb_status check_stream(const struct command_stream *stream)
{
    for (const struct host_step *step = stream->steps; step < stream->steps + stream->count; step++)
        for (const struct stream_part *part = step->launch.parts; part < step->launch.parts + step->launch.count; part++)
            for (uint32_t i = 0; i < part->count; i++) {
                enum kb_status status = check_idle(part->pes[i]);
                if (status != KB_OK)
                    return status;
            }
    return KB_OK;
}

static void own_for_stream(const struct command_stream *stream, const struct caller_request *request)
{
    for (const struct host_step *step = stream->steps; step < stream->steps + stream->count; step++)
        for (const struct stream_part *part = step->launch.parts; part < step->launch.parts + step->launch.count; part++)
            for (uint32_t i = 0; i < part->count; i++)
                requests.owners[part->pes[i]].stream = request;
}

enum kb_status requests_replay(const char *text, uint64_t length, uint64_t *number)
{
    enum kb_status opens = requests_opens();
    if (opens != KB_OK)
        return opens;
    const struct command_stream *stream = stream_of(source_of("stream", text, length));
    if (!stream)
        return wrong_text();
    enum kb_status status = check_stream(stream);
    if (status != KB_OK)
        return status;
    failure_machine_works();
    struct caller_request *request = request_new(KB_SIM_STREAM, number);
    request->before = launch_last();
    request->list = host_list_new(stream, requests.positions, stream_ended, request);
    requests.positions += stream->count;
    own_for_stream(stream, request);
    sim_host_acts();
    host_list_begin(request->list);
    failure_machine_rests();
    return KB_OK;
}

/* ---- maps */

/* A PE of a map, and the address that its pages are mapped to. */
struct mapped {
    uint32_t pe;
    uint64_t address;
};

static int compare_mapped(const void *a, const void *b)
{
    const struct mapped *x = a, *y = b;
    return compare_pes(&x->pe, &y->pe);
}

enum kb_status requests_map(const uint32_t *pes, const uint64_t *addresses, uint64_t count, uint64_t va, uint64_t pages,
                           uint64_t *number)
{
    enum kb_status opens = requests_opens();
    if (opens != KB_OK)
        return opens;
    enum kb_status status = requests_check_pes(pes, count);
    uint64_t page = kb_attrs.pe_mmu_page_bytes, bytes, known;
    if (status != KB_OK)
        return status;
    if (pages == 0 || __builtin_mul_overflow(pages, page, &bytes))
        return refuse(KB_WRONG, "%" PRIu64 " pages of %" PRIu64 " bytes cannot be mapped", pages, page);
    const char *wrong = map_pages(va, bytes, &known);
    if (wrong)
        return refuse(KB_WRONG, "%s", wrong);
    struct mapped *mapped = arena_alloc(count, sizeof *mapped);
    for (uint64_t i = 0; i < count; i++)
        mapped[i] = (struct mapped){pes[i], addresses ? addresses[i] : 0};
    qsort(mapped, count, sizeof *mapped, compare_mapped);
    uint32_t *in_order = arena_alloc(count, sizeof *in_order);
    uint64_t *to = addresses ? arena_alloc(count, sizeof *to) : NULL;
    for (uint64_t i = 0; i < count; i++) {
        if (i && mapped[i].pe == mapped[i - 1].pe)
            return refuse(KB_WRONG, "%s is given twice", pe_name(&kb_pe[mapped[i].pe]));
        in_order[i] = mapped[i].pe;
        if (to)
            to[i] = mapped[i].address;
    }
    failure_machine_works();
    struct caller_request *request = request_new(to ? KB_SIM_MAP : KB_SIM_UNMAP, number);
    sim_host_acts();
    request_awaits(request, map_request_submit(in_order, to, (uint32_t)count, va, pages));
    failure_machine_rests();
    return KB_OK;
}

/* ---- writes and reads */

enum kb_status requests_check_transfer(const uint64_t *addresses, uint64_t count, uint64_t bytes)
{
    enum { MOST_SHIFT = 46 };                           /* bytes, whose time is far below 2^64 ps */
    uint64_t all;
    if (count == 0 || bytes == 0 || count > UINT32_MAX || __builtin_mul_overflow(count, bytes, &all) || all >> MOST_SHIFT)
        return refuse(KB_WRONG, "%" PRIu64 " bytes at each of %" PRIu64 " addresses cannot be moved", bytes, count);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t sip = addresses[i] >> 48 & 0xff, cube = addresses[i] >> 40 & 0xff;
        if (sip >= kb_shape.sips || cube >= kb_shape.cubes)
            return refuse(KB_WRONG, "0x%016" PRIx64 ": there is no sip%u.cube%u", addresses[i], (unsigned)sip, (unsigned)cube);
    }
    return KB_OK;
}

enum kb_status requests_transfer(bool writes, const uint64_t *addresses, uint64_t count, uint64_t bytes, uint64_t *number)
{
    uint64_t *copy = arena_alloc(count, sizeof *copy);
    memcpy(copy, addresses, count * sizeof *copy);
    struct memory_request *memory = arena_alloc(1, sizeof *memory);
    *memory = (struct memory_request){.writes = writes, .addresses = copy, .count = (uint32_t)count, .bytes = bytes};
    failure_machine_works();
    struct caller_request *request = request_new(writes ? KB_SIM_WRITE : KB_SIM_READ, number);
    sim_host_acts();
    memory_request_submit(memory);
    request->memory = memory;
    request_awaits(request, &memory->fanout);
    failure_machine_rests();
    return KB_OK;
}

/* ---- results */

/* A stream ends when its last request does, whatever delays follow. */
static uint64_t end_ps(void)
{
    uint64_t last_ps = requests.end_ps;
    for (const struct caller_request *request = requests.running; request; request = request->next)
        if (request->list)
            last_ps = kb_max(last_ps, host_list_end_ps(request->list));
    return last_ps;
}

void requests_write(struct json *json)
{
    sim_host_acts();
    result_write(json, end_ps(), false);
}

/* Writes the counters of the machine. */
static void write_counters(struct json *json)
{
    sim_host_acts();
    transfers_count_ahead(-1);
    utilisation_write(json);
    json_u64(json, "events", event_count);
    transfers_count_ahead(1);
}

/* Writes all that kb_sim_stat has names for. */
static void write_all(struct json_numbers *numbers)
{
    struct json json;
    json_visit(&json, numbers);
    json_object(&json, NULL);
    instance_write_result(&json);
    if (!instance_ran_bench())
        write_counters(&json);
    json_object_end(&json);
}

/* Writes the part that has a number with this name, without a walk over all requests. Returns false if that is not known. */
static bool write_part(struct json_numbers *numbers, const char *name)
{
    static const struct {
        const char *list;
        void (*write)(struct json *json, uint64_t i, bool with_ids);
    } lists[] = {{"launches", result_write_launch}, {"memory", result_write_memory}};
    struct json json;
    json_visit(&json, numbers);
    json_object(&json, NULL);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        size_t length = strlen(lists[i].list);
        if (strncmp(name, lists[i].list, length) || name[length] != '.')
            continue;
        uint64_t which = strtoull(name + length + 1, NULL, 10);
        if (!instance_ran_bench())
            sim_host_acts();
        json_array(&json, lists[i].list);
        numbers->level[json.depth].index = which;
        lists[i].write(&json, which, instance_ran_bench());
        return true;
    }
    if (instance_ran_bench())
        return false;
    write_counters(&json);
    return true;
}

struct wanted {
    const char *name;
    uint64_t *value;
    bool found;
};

static void find(void *arg, const char *path, uint64_t value)
{
    struct wanted *wanted = arg;
    if (wanted->found || strcmp(path, wanted->name))
        return;
    *wanted->value = value;
    wanted->found = true;
}

/* Finds what is known without a walk over all requests. */
static bool find_total(const char *name, uint64_t *value)
{
    bool is_end = !strcmp(name, "end_ps");
    if (!is_end && strcmp(name, "events"))
        return false;
    sim_host_acts();
    transfers_count_ahead(-1);
    *value = is_end ? end_ps() : event_count;
    transfers_count_ahead(1);
    return true;
}

static enum kb_status nothing_ran(void)
{
    return refuse(KB_WRONG, "there is no result: nothing has run");
}

enum kb_status requests_stat(const char *name, uint64_t *value)
{
    if (instance_is_new())
        return nothing_ran();
    if (!instance_ran_bench() && find_total(name, value))
        return KB_OK;
    struct wanted wanted = {name, value, false};
    struct json_numbers numbers = {.number = find, .user = &wanted};
    if (!write_part(&numbers, name))
        write_all(&numbers);
    return wanted.found ? KB_OK : refuse(KB_WRONG, "the result has no number '%s'", name);
}

struct visit {
    int (*visitor)(void *user, const char *name, uint64_t value);
    void *user;
    bool stopped;
};

static void visit(void *arg, const char *path, uint64_t value)
{
    struct visit *to = arg;
    to->stopped = to->stopped || to->visitor(to->user, path, value);
}

enum kb_status requests_stats(int (*visitor)(void *user, const char *name, uint64_t value), void *user)
{
    if (instance_is_new())
        return nothing_ran();
    struct visit to = {visitor, user, false};
    write_all(&(struct json_numbers){.number = visit, .user = &to});
    return KB_OK;
}

/* ---- the trace */

static void trace_event(void *arg, uint64_t t_ps, const char *name, const char *line)
{
    (void)arg;
    requests.trace.visitor(requests.trace.user,
                        &(struct kb_sim_event){.struct_size = sizeof(struct kb_sim_event), .t_ps = t_ps, .event = name,
                                               .line = line});
}

struct trace_call requests_trace_call(void)
{
    return requests.trace;
}

enum kb_status requests_trace(void (*visitor)(void *user, const struct kb_sim_event *event), void *user)
{
    if (visitor && !requests.trace.visitor)
        machine_settle();                               /* it is told of all that happens from now on */
    requests.trace = (struct trace_call){visitor, user};
    trace_visit((struct trace_visitor){visitor ? trace_event : NULL, NULL});
    fastforward_follow();
    return KB_OK;
}

/* ---- begin and reset */

void requests_begin(const struct kb_sim_config *config)
{
    requests.user = config->user;
    requests.completed = config->completed;
}

enum kb_status requests_opens(void)
{
    if (instance_ran_bench())
        return refuse(KB_WRONG, "a bench has run in the instance: kb_sim_reset makes it new");
    if (!instance_is_new())
        return KB_OK;
    instance_is_used();
    requests.complete_end = &requests.complete;
    machine_init();
    fastforward_init();
    sim_begin();
    requests.owners = arena_alloc(pe_count(), sizeof *requests.owners);
    return KB_OK;
}

void requests_reset(void)
{
    if (requests.trace.visitor)
        trace_visit((struct trace_visitor){0});
    fault_stop_set(NULL);
    array_free(&requests.all);
    requests = (struct requests){.user = requests.user, .completed = requests.completed};
}
