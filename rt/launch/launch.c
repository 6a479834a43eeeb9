/* launch.c: kernel launches: the common start of their kernels, their answers, failures and timeouts.
 *
 * All kernels begin at one target time, late enough for the farthest PE, unless the launch says otherwise (enum
 * launch_start). A pe_cpu answers when its kernel has returned or failed. */
#include "launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/arena.h"
#include "common/fail.h"
#include "host_request.h"
#include "machine/deferred.h"
#include "machine/emitted.h"
#include "machine/pe.h"

struct launch *launches;
static struct launch *last_launch;
static const struct launch *bad;

struct launch *launch_last(void)
{
    return last_launch;
}

/* ---- the kernels of a launch */

static int compare_pes(const void *a, const void *b)
{
    const struct kernel_run *x = a, *y = b;
    return x->tl.pe < y->tl.pe ? -1 : x->tl.pe > y->tl.pe;
}

static struct launch *launch_new(const struct launch_part *parts, uint32_t count)
{
    struct launch *launch = arena_alloc(1, sizeof *launch);
    launch->program = parts[0].program;
    for (uint32_t i = 1; i < count; i++)
        launch->program = arena_printf("%s+%s", launch->program, parts[i].program);
    *(launches ? &last_launch->next : &launches) = launch;
    last_launch = launch;
    return launch;
}

static void runs_make(struct launch *launch, const struct launch_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        launch->count += parts[i].count;
    struct kernel_run *run = launch->runs = arena_alloc(launch->count, sizeof *launch->runs);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < parts[i].count; j++, run++)
            run->tl = (struct tl){.pe = &kb_pe[parts[i].pes[j]], .launch = launch, .name = parts[i].program,
                                  .body = parts[i].body, .stackless = parts[i].stackless, .arg = parts[i].arg};
    qsort(launch->runs, launch->count, sizeof *launch->runs, compare_pes);
    for (uint32_t i = 0; i < launch->count; i++) {
        launch->runs[i].tl.index = i;
        launch->runs[i].tl.count = launch->count;
    }
}

static struct launch *launch_of(const struct leg *leg)
{
    return container_of(leg->fanout, struct launch, fanout);
}

static struct kernel_run *run_of(const struct leg *leaf)
{
    return &launch_of(leaf)->runs[leg_leaf(leaf)];
}

static struct leg *run_leg(const struct kernel_run *run)
{
    return &run->tl.launch->fanout.leaves[run->tl.index];
}

/* ---- target times: late enough for the farthest PE */

static void io_cpu_stamps(struct leg *sip)
{
    if (sip->fanout->sip_count == 1)
        launch_of(sip)->stamp_ps = time_after(now_ps, leg_latency_ps(sip));
}

/* ---- the PEs */

static void pe_answered(struct message *message)
{
    struct leg *leaf = leg_of(message);
    fanout_leaf_answered(leaf, run_of(leaf)->tl.failure.set);
}

static uint64_t compute_busy_ps(struct pe *pe, uint64_t t_ps)
{
    deferred_end(pe);
    return busy_total_ps(&pe->compute, t_ps);
}

static void kernel_began(struct tl *tl)
{
    struct kernel_run *run = container_of(tl, struct kernel_run, tl);
    if (!tl->launch->begun)
        tl->launch->start_ps = now_ps;
    run->started = tl->launch->begun = true;
    run->start_ps = now_ps;
    if (run->counted)                                   /* the host has given it up */
        return;
    run->dma_ps = busy_total_ps(&tl->pe->dma, now_ps);
    run->compute_ps = compute_busy_ps(tl->pe, now_ps);
}

/* Ends the count of a PE's busy times. */
static void stop_counting(struct kernel_run *run)
{
    run->dma_ps = run_dma_ps(run, now_ps);
    run->compute_ps = run_compute_ps(run, now_ps);
    run->counted = true;
}

static void kernel_ended(struct tl *tl)
{
    struct kernel_run *run = container_of(tl, struct kernel_run, tl);
    stop_counting(run);
    run->ended = true;
    run->end_ps = now_ps;
    struct message *message = &run_leg(run)->data.message;
    control_send(message, route_back(message->route), now_ps, pe_answered);
}

uint64_t run_dma_ps(const struct kernel_run *run, uint64_t t_ps)
{
    return run->counted || !run->started ? run->dma_ps : busy_total_ps(&run->tl.pe->dma, t_ps) - run->dma_ps;
}

uint64_t run_compute_ps(const struct kernel_run *run, uint64_t t_ps)
{
    return run->counted || !run->started ? run->compute_ps : compute_busy_ps(run->tl.pe, t_ps) - run->compute_ps;
}

static void pe_cpu_reached(struct message *message)
{
    struct kernel_run *run = run_of(leg_of(message));
    kernel_start(&run->tl, run->tl.launch->start == START_FREE ? now_ps : run->stamp_ps, kernel_began, kernel_ended);
}

static void m_cpu_dispatches(struct leg *cube)
{
    const struct launch *launch = launch_of(cube);
    uint64_t stamp_ps = launch->start == START_CUBE ? time_after(now_ps, leg_latency_ps(cube)) : launch->stamp_ps;
    for (uint32_t i = cube->first; i < cube->end; i++) {
        struct leg *leaf = &cube->fanout->leaves[i];
        run_of(leaf)->stamp_ps = stamp_ps;
        control_send(&leaf->data.message, route_of(leaf->way), now_ps, pe_cpu_reached);
    }
}

/* ---- the host */

static void launch_ends(struct launch *launch, enum launch_status status)
{
    launch->status = status;
    launch->done_ps = now_ps;
    for (uint32_t i = 0; i < launch->count; i++)
        stop_counting(&launch->runs[i]);
    observe_launch_ends(launch);
    event_cancel(&launch->timeout);
    faults_report_rest();
    if (status != LAUNCH_OK && !bad)
        bad = launch;
}

void launch_give_up(struct launch *launch, enum launch_status status)
{
    launch_ends(launch, status);
    fanout_end(&launch->fanout);
}

const struct launch *launch_bad(void)
{
    return bad;
}

const char *launch_outcome(const struct launch *launch)
{
    const char *how = launch->status == LAUNCH_TIMEOUT ? "timed out" : "waits for ever";
    if (launch->status != LAUNCH_FAILED)
        return arena_printf("kernel %s %s, %" PRIu64 " ps (request %" PRIu64 ")", launch->program, how,
                            launch->done_ps, launch->fanout.correlation);
    const struct failure *failure = &launch->failed->tl.failure;
    return arena_printf("kernel %s failed with %s at %s, %" PRIu64 " ps (request %" PRIu64 ")", launch->program,
                        fault_names[failure->code], place_name(failure->node), failure->t_ps,
                        launch->fanout.correlation);
}

static void launch_answered(struct fanout *fanout)
{
    struct launch *launch = container_of(fanout, struct launch, fanout);
    if (fanout->failed != NO_LEAF)
        launch->failed = &launch->runs[fanout->failed];
    launch_ends(launch, launch->failed ? LAUNCH_FAILED : LAUNCH_OK);
}

/* Names some of the PEs that had not ended. */
static void print_timeout(const struct launch *launch)
{
    enum { NAMED = 8 };
    uint32_t running = 0;
    for (uint32_t i = 0; i < launch->count; i++)
        running += !launch->runs[i].ended;
    message("fault: TIMEOUT at host, %" PRIu64 " ps, request %" PRIu64 ", kernel %s: ", now_ps,
            launch->fanout.correlation, launch->program);
    message("%u of %u PEs had not ended:", (unsigned)running, (unsigned)launch->count);
    uint32_t named = 0;
    for (uint32_t i = 0; i < launch->count && named < NAMED; i++)
        if (!launch->runs[i].ended)
            message("%s %s", named++ ? "," : "", pe_name(launch->runs[i].tl.pe));
    message(running > named ? " and %u more\n" : "\n", (unsigned)(running - named));
    if (launch->file)
        message("  launched at %s:%u\n", launch->file, (unsigned)launch->line);
}

static void timed_out(struct event *event)
{
    struct launch *launch = container_of(event, struct launch, timeout);
    print_timeout(launch);
    launch_give_up(launch, LAUNCH_TIMEOUT);
}

struct launch *launch_submit(const struct launch_part *parts, uint32_t count, const struct launch_options *options)
{
    struct launch *launch = launch_new(parts, count);
    runs_make(launch, parts, count);
    launch->file = options->file;
    launch->line = options->line;
    launch->submitted_ps = now_ps;
    uint32_t *cube = arena_alloc(launch->count, sizeof *cube);
    for (uint32_t i = 0; i < launch->count; i++)
        cube[i] = pe_number(launch->runs[i].tl.pe) / kb_shape.pes;
    launch->start = options->start;
    launch->fanout = (struct fanout){.fail_fast = options->fail_fast, .direct = options->start == START_CUBE,
                                     .at_io_cpu = io_cpu_stamps, .at_m_cpu = m_cpu_dispatches,
                                     .done = launch_answered};
    fanout_plan(&launch->fanout, cube, launch->count);
    for (uint32_t i = 0; i < launch->count; i++) {
        launch->runs[i].tl.request = launch->fanout.correlation;
        launch->fanout.leaves[i].way.to = place_pe(pe_number(launch->runs[i].tl.pe), NODE_pe_cpu);
    }
    if (launch->fanout.sip_count > 1)
        launch->stamp_ps = time_after(now_ps, fanout_latency_ps(&launch->fanout));
    if (options->timed) {
        uint64_t position = options->position ? options->position : launch->fanout.correlation;
        event_set(&launch->timeout, event_order(place_rank(place_host()), CLASS_KERNEL, 0), position, timed_out);
        event_at(&launch->timeout, time_after(now_ps, options->timeout_ps));
    }
    fanout_send(&launch->fanout);
    return launch;
}

void launch_skip(const struct launch_part *parts, uint32_t count)
{
    launch_new(parts, count)->status = LAUNCH_SKIPPED;
}

bool launch_wait(struct launch *launch)
{
    fanout_wait(&launch->fanout);
    return launch->status == LAUNCH_OK;
}

void launch_reset(void)
{
    fanout_reset();
    host_requests_reset();
    kernels_reset();
    launches = last_launch = NULL;
    bad = NULL;
}

const struct handler launch_handlers[] = {
    HANDLER(pe_answered, "PE's answer at m_cpu"),
    HANDLER(pe_cpu_reached, "launch at pe_cpu"),
    HANDLER(timed_out, "timeout of a launch"),
    {0}};
