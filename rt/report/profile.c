/* profile.c: the host's time by kind of event: each kind is a lap of the stopwatch.
 *
 * The kind of an event is its handler. The end of a service has its stage for a kind, a message the function that it is
 * delivered to. */
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/hash.h"
#include "fastforward/period.h"
#include "fastforward/symmetry.h"
#include "launch/fanout.h"
#include "launch/host_request.h"
#include "launch/kernel.h"
#include "launch/launch.h"
#include "machine/dma.h"
#include "machine/fabric.h"
#include "machine/ipcq.h"
#include "machine/dma_requests.h"
#include "machine/scheduler.h"
#include "machine/stats.h"
#include "machine/tile.h"
#include "sim/event.h"
#include "sim/observer.h"

enum { FIRST_SERVICE = PHASES, FIRST_HANDLER = FIRST_SERVICE + STAGES, OTHER = LAPS - 1, HASH_BITS = 8 };

bool profile_on;

static const char *names[LAPS] = {
#define PHASE(name, what) [PHASE_##name] = what,
#include "base/phases.def"
#undef PHASE
#define STAGE(name, part, engine, busy) [FIRST_SERVICE + STAGE_##name] = "service end: " #name,
#include "kb/stages.def"
#undef STAGE
    [OTHER] = "other events",
};

/* The lap of each handler: a hash table with open addressing. Fewer than half of its slots are taken. */
static struct slot {
    void (*function)(void);
    unsigned lap;
} slots[1 << HASH_BITS];

static double began_s;                                  /* the start of the profile, by the host's clock */
static uint64_t began_ticks;                            /* and by the stopwatch */

static struct slot *slot_of(void (*function)(void))
{
    size_t at = hash_bits((uintptr_t)function, HASH_BITS);
    while (slots[at].function && slots[at].function != function)
        at = (at + 1) % COUNT_OF(slots);
    return &slots[at];
}

static void event_fires(const struct event *event)
{
    void (*function)(void) = (void (*)(void))event->fire;
    if (event_is_message(event))
        function = (void (*)(void))container_of(event, struct message, event)->delivered;
    const struct slot *slot = slot_of(function);
    stopwatch_enter(slot->function ? slot->lap : OTHER);
}

struct observer profile_observer = {
    .name = "profile",
    .event_fires = event_fires,
};

void profile_start(void)
{
    static const struct handler *const lists[] = {
        dma_handlers, fabric_handlers, fanout_handlers, host_request_handlers, ipcq_handlers,
        kernel_handlers, launch_handlers, dma_requests_handlers, scheduler_handlers, tile_handlers};
    for (unsigned stage = 0; stage < STAGES; stage++) {
        void (*ends)(void) = (void (*)(void))service_end_events[stage];
        *slot_of(ends) = (struct slot){ends, FIRST_SERVICE + stage};
    }
    unsigned lap = FIRST_HANDLER;
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (const struct handler *handler = lists[i]; handler->name && lap < OTHER; handler++, lap++) {
            *slot_of(handler->function) = (struct slot){handler->function, lap};
            names[lap] = handler->name;
        }
    profile_on = true;
    observer_watch(&profile_observer, true);
    began_s = clock_seconds();
    began_ticks = stopwatch_ticks();
    stopwatch_start();
}

/* ---- output */

/* Nanoseconds per tick, measured since the start of the profile. */
static double tick_ns(void)
{
    double ticks = (double)(stopwatch_ticks() - began_ticks);
    return ticks > 0 ? (clock_seconds() - began_s) * 1e9 / ticks : 0;
}

static int longest_first(const void *x, const void *y)
{
    uint64_t a = laps[*(const unsigned *)x].ticks, b = laps[*(const unsigned *)y].ticks;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* Lists the laps that were entered, the longest first. Returns how many there are. */
static unsigned sorted(unsigned order[LAPS])
{
    unsigned count = 0;
    for (unsigned lap = 0; lap < LAPS; lap++)
        if (laps[lap].ticks || laps[lap].count)
            order[count++] = lap;
    qsort(order, count, sizeof *order, longest_first);
    return count;
}

/* The cost of entering a lap, in ticks. */
static double lap_cost(void)
{
    enum { TIMES = 10000 };
    uint64_t start = stopwatch_ticks();
    for (unsigned i = 0; i < TIMES; i++)
        stopwatch_back(PHASE_rest);
    return (double)(stopwatch_ticks() - start) / TIMES;
}

void profile_print(void)
{
    unsigned order[LAPS], count = sorted(order);
    uint64_t entered = 0, all = 0;
    for (unsigned lap = 0; lap < LAPS; lap++) {
        all += laps[lap].ticks;
        entered += laps[lap].count;
    }
    double ns = tick_ns(), own = lap_cost() * (double)entered;
    fprintf(stderr, "%" PRIu64 " stage services: %" PRIu64 " in skipped periods, %" PRIu64
            " on PEs that were not simulated\n", stats.services, period_services(), symmetry_services());
    fprintf(stderr, "%7s %12s %12s %10s  host time: %.6f s\n", "share", "seconds", "count", "ns each",
            (double)all * ns * 1e-9);
    for (unsigned i = 0; i < count; i++) {
        const struct lap *lap = &laps[order[i]];
        fprintf(stderr, "%5.1f %% %12.6f %12" PRIu64, 100 * (double)lap->ticks / (double)all,
                (double)lap->ticks * ns * 1e-9, lap->count);
        if (lap->count)
            fprintf(stderr, " %10.0f", (double)lap->ticks * ns / (double)lap->count);
        else
            fprintf(stderr, " %10s", "");
        fprintf(stderr, "  %s\n", names[order[i]]);
    }
    fprintf(stderr, "%5.1f %% %12.6f %12" PRIu64 " %10.0f  of this, about, for the profile itself\n",
            100 * own / (double)all, own * ns * 1e-9, entered, lap_cost() * ns);
}

void profile_write(struct json *json)
{
    unsigned order[LAPS], count = sorted(order);
    if (!profile_on)
        return;
    double ns = tick_ns();
    json_array(json, "profile");
    for (unsigned i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "what", names[order[i]]);
        json_bool(json, "event", order[i] >= PHASES);
        json_u64(json, "count", laps[order[i]].count);
        json_u64(json, "ns", (uint64_t)((double)laps[order[i]].ticks * ns));
        json_object_end(json);
    }
    json_array_end(json);
}
