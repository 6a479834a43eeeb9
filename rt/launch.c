/* launch.c: a launch's way down to its PEs and the answers' way up (ADR-0009, ADR-0035).
 *
 *     host -> io_cpu of each SIP -> m_cpu of each cube -> pe_cpu of each PE, each leg a control message;
 *     a kernel returns -> its m_cpu, when all of the cube have -> io_cpu, when all of the SIP have -> host.
 *
 * All kernels begin at the target time that io_cpu stamps, or the host when a launch spans SIPs: late enough for the
 * farthest PE. A message of a leg serves for its answer too. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

#include "emitted.h"
#include "fabric.h"
#include "pe.h"
#include "sim.h"
#include "text/base.h"

struct leg {
    struct message message;
    struct delivery *delivery;
    struct leg *above;                                  /* of the leg that this one continues; NULL: the host */
    uint32_t first, end;                                /* of the launch's runs */
    uint32_t awaited;                                   /* answers from below */
};

/* What a launch needs on its way: a leg per SIP, per cube and per PE. */
struct delivery {
    struct launch *launch;
    struct leg *sips, *cubes, *pes;                     /* pes: one for each of the launch's runs, in their order */
    uint32_t sip_count, cube_count;
    uint32_t awaited;
    uint64_t start_ps;
};

struct launch *launches;
static struct launch *last_launch;

/* ---- who is in it */

static int compare_pes(const void *a, const void *b)
{
    const struct kernel_run *x = a, *y = b;
    return x->tl.pe < y->tl.pe ? -1 : x->tl.pe > y->tl.pe;
}

static struct launch *launch_new(const struct launch_part *parts, uint32_t count)
{
    struct launch *launch = arena_alloc(1, sizeof *launch);
    const char *program = parts[0].program;
    for (uint32_t i = 0; i < count; i++) {
        launch->count += parts[i].count;
        if (i)
            program = arena_printf("%s+%s", program, parts[i].program);
    }
    launch->program = program;
    launch->runs = arena_alloc(launch->count, sizeof *launch->runs);
    struct kernel_run *run = launch->runs;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < parts[i].count; j++, run++)
            run->tl = (struct tl){.pe = &kb_pe[parts[i].pes[j]], .launch = launch, .name = parts[i].program,
                                  .body = parts[i].body, .arg = parts[i].arg};
    qsort(launch->runs, launch->count, sizeof *launch->runs, compare_pes);
    for (uint32_t i = 0; i < launch->count; i++) {
        launch->runs[i].tl.index = i;
        launch->runs[i].tl.count = launch->count;
    }
    return launch;
}

static uint32_t run_pe(const struct delivery *delivery, uint32_t run)
{
    return pe_number(delivery->launch->runs[run].tl.pe);
}

static uint32_t leg_cube(const struct leg *leg)
{
    return run_pe(leg->delivery, leg->first) / kb_shape.pes;
}

static struct place leg_m_cpu(const struct leg *leg)
{
    return place_m_cpu(leg_cube(leg) / kb_shape.cubes, leg_cube(leg) % kb_shape.cubes);
}

static struct place leg_io_cpu(const struct leg *leg)
{
    return place_io_cpu(leg_cube(leg) / kb_shape.cubes);
}

/* Groups runs [first, end) by `pes` PEs that belong together; the legs continue `above`. */
static uint32_t legs_make(struct delivery *delivery, struct leg *legs, uint32_t pes, struct leg *above, uint32_t first, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        if (i == first || run_pe(delivery, i) / pes != run_pe(delivery, i - 1) / pes)
            legs[count++] = (struct leg){.delivery = delivery, .above = above, .first = i};
        legs[count - 1].end = i + 1;
    }
    if (above)
        above->awaited = count;
    return count;
}

static struct delivery *delivery_new(struct launch *launch)
{
    struct delivery *d = arena_alloc(1, sizeof *d);
    d->launch = launch;
    d->sips = arena_alloc(launch->count, sizeof *d->sips);
    d->cubes = arena_alloc(launch->count, sizeof *d->cubes);
    d->pes = arena_alloc(launch->count, sizeof *d->pes);
    d->sip_count = legs_make(d, d->sips, kb_shape.cubes * kb_shape.pes, NULL, 0, launch->count);
    d->awaited = d->sip_count;
    for (uint32_t i = 0; i < d->sip_count; i++)
        d->cube_count += legs_make(d, d->cubes + d->cube_count, kb_shape.pes, &d->sips[i], d->sips[i].first, d->sips[i].end);
    for (uint32_t i = 0; i < d->cube_count; i++)
        legs_make(d, d->pes + d->cubes[i].first, 1, &d->cubes[i], d->cubes[i].first, d->cubes[i].end);
    return d;
}

/* ---- ways and the target time */

static struct way to_io_cpu(const struct leg *leg)
{
    return (struct way){place_host(), leg_io_cpu(leg), REQUEST};
}

static struct way to_m_cpu(const struct leg *leg)
{
    return (struct way){leg_io_cpu(leg), leg_m_cpu(leg), REQUEST};
}

static struct way to_pe_cpu(const struct leg *leg)
{
    return (struct way){leg_m_cpu(leg), place_pe(run_pe(leg->delivery, leg->first), NODE_pe_cpu), REQUEST};
}

/* From an io_cpu to the farthest PE below it, through its m_cpu. */
static uint64_t below_io_cpu_ps(const struct leg *sip)
{
    const struct delivery *d = sip->delivery;
    uint64_t most = 0;
    for (uint32_t i = sip->first; i < sip->end; i++) {
        struct way first = to_m_cpu(&d->pes[i]), second = to_pe_cpu(&d->pes[i]);
        uint64_t ps = way_latency_ps(&first) + way_latency_ps(&second);
        most = ps > most ? ps : most;
    }
    return most;
}

/* The time by which a launch of several SIPs reaches all of its PEs. */
static uint64_t host_stamp_ps(const struct delivery *d)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < d->sip_count; i++) {
        struct way way = to_io_cpu(&d->sips[i]);
        uint64_t ps = way_latency_ps(&way) + below_io_cpu_ps(&d->sips[i]);
        most = ps > most ? ps : most;
    }
    return time_after(now_ps, most);
}

/* ---- up */

static struct leg *leg_of(struct message *message)
{
    return container_of(message, struct leg, message);
}

static void host_answered(struct message *message)
{
    struct delivery *d = leg_of(message)->delivery;
    struct launch *launch = d->launch;
    if (--d->awaited)
        return;
    launch->status = LAUNCH_OK;
    launch->done_ps = now_ps;
    sim_wake(&launch->waiter);
}

/* An answer has come to the node where this leg ends; passed on when it was the last. */
static void answer_passed(struct leg *leg, void (*delivered)(struct message *))
{
    if (--leg->awaited == 0)
        control_send(&leg->message, way_back(leg->message.way), now_ps, delivered);
}

static void io_cpu_answered(struct message *message)
{
    answer_passed(leg_of(message)->above, host_answered);
}

static void m_cpu_answered(struct message *message)
{
    answer_passed(leg_of(message)->above, io_cpu_answered);
}

static void kernel_ended(struct tl *tl)
{
    struct kernel_run *run = container_of(tl, struct kernel_run, tl);
    run->ended = true;
    run->end_ps = now_ps;
    run->dma_ps = busy_total_ps(&tl->pe->dma, now_ps) - run->dma_ps;
    run->compute_ps = busy_total_ps(&tl->pe->compute, now_ps) - run->compute_ps;
    control_send(&run->leg->message, way_back(run->leg->message.way), now_ps, m_cpu_answered);
}

/* ---- down */

static void pe_cpu_reached(struct message *message)
{
    struct leg *leg = leg_of(message);
    struct kernel_run *run = &leg->delivery->launch->runs[leg->first];
    run->leg = leg;
    run->start_ps = leg->delivery->start_ps;
    run->dma_ps = busy_total_ps(&run->tl.pe->dma, now_ps);
    run->compute_ps = busy_total_ps(&run->tl.pe->compute, now_ps);
    kernel_start(&run->tl, run->start_ps, kernel_ended);
}

static void m_cpu_reached(struct message *message)
{
    struct leg *leg = leg_of(message);
    struct delivery *d = leg->delivery;
    for (uint32_t i = leg->first; i < leg->end; i++)
        control_send(&d->pes[i].message, to_pe_cpu(&d->pes[i]), now_ps, pe_cpu_reached);
}

static void io_cpu_reached(struct message *message)
{
    struct leg *leg = leg_of(message);
    struct delivery *d = leg->delivery;
    if (d->sip_count == 1)
        d->start_ps = time_after(now_ps, below_io_cpu_ps(leg));
    d->launch->start_ps = d->start_ps;
    for (uint32_t i = 0; i < d->cube_count; i++)
        if (d->cubes[i].above == leg)
            control_send(&d->cubes[i].message, to_m_cpu(&d->cubes[i]), now_ps, m_cpu_reached);
}

struct launch *launch_submit(const struct launch_part *parts, uint32_t count)
{
    struct launch *launch = launch_new(parts, count);
    struct delivery *d = delivery_new(launch);
    launch->submitted_ps = now_ps;
    *(launches ? &last_launch->next : &launches) = launch;
    last_launch = launch;
    if (d->sip_count > 1)
        d->start_ps = host_stamp_ps(d);
    for (uint32_t i = 0; i < d->sip_count; i++)
        control_send(&d->sips[i].message, to_io_cpu(&d->sips[i]), now_ps, io_cpu_reached);
    return launch;
}

void launch_wait(struct launch *launch)
{
    if (launch->status == LAUNCH_RUNNING)
        sim_sleep(&launch->waiter);
}
