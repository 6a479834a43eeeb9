/* metrics.c: the short answer of a point, from counters that every run keeps. */
#include "metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/arena.h"
#include "common/fail.h"
#include "datapass/exec.h"
#include "demand.h"
#include "kb/arith.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "launch/watchdog.h"
#include "machine/dma.h"
#include "machine/fabric.h"
#include "machine/pe.h"
#include "machine/stats.h"
#include "races/race.h"
#include "reference/expect.h"
#include "result.h"
#include "sim/event.h"
#include "sim/loop.h"
#include "summary.h"

static struct {
    uint64_t launches, pes, exec_ps, dma_ps, compute_ps;
} totals;

static void add_launch(const struct launch *launch, bool *is_used)
{
    uint64_t exec_ps = 0, dma_ps = 0, compute_ps = 0;
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct kernel_run *run = &launch->runs[i];
        if (!run->started)
            continue;
        bool *used = &is_used[pe_number(run->tl.pe)];
        totals.pes += !*used;
        *used = true;
        exec_ps = kb_max(exec_ps, (run->ended ? run->end_ps : now_ps) - run->start_ps);
        dma_ps = kb_max(dma_ps, run_dma_ps(run, now_ps));
        compute_ps = kb_max(compute_ps, run_compute_ps(run, now_ps));
    }
    totals.launches++;
    totals.exec_ps += exec_ps;
    totals.dma_ps += dma_ps;
    totals.compute_ps += compute_ps;
}

void metrics_write(struct json *json, uint64_t end_ps)
{
    bool *is_used = arena_alloc(pe_count(), sizeof *is_used);
    memset(&totals, 0, sizeof totals);
    for (const struct launch *launch = launches; launch; launch = launch->next)
        add_launch(launch, is_used);
#define METRIC(name, unit, what, expression) json_u64(json, #name, expression);
#include "metrics.def"
#undef METRIC
}

/* ---- how it has ended */

enum ending {
#define ENDING(name, word, meaning) ENDING_##name,
#include "kb/endings.def"
#undef ENDING
};

static const char *const words[] = {
#define ENDING(name, word, meaning) word,
#include "kb/endings.def"
#undef ENDING
};

static enum ending of_watchdog(const char *ended)
{
    return !strcmp(ended, "--time-limit") ? ENDING_time_limit : !strcmp(ended, "--mem-limit") ? ENDING_memory
         : !strcmp(ended, "--sim-limit") ? ENDING_sim_limit : ENDING_signal;
}

static enum ending ending_of(int status)
{
    const struct launch *bad = launch_bad();
    if (status == STATUS_GOOD)
        return ENDING_ok;
    if (status == STATUS_WRONG_USE)
        return ENDING_refused;
    if (watchdog_ended())
        return of_watchdog(watchdog_ended());
    if (status == STATUS_HOST_FAILED)
        return ENDING_host;
    if (bad)
        return bad->status == LAUNCH_DEADLOCK ? ENDING_deadlock : bad->status == LAUNCH_TIMEOUT ? ENDING_timeout : ENDING_fault;
    if (!sim_failed() && (verification_failed() || exec_difference.op || races_found()))
        return ENDING_wrong_data;
    return ENDING_fault;
}

static const char *memory_outcome(void)
{
    for (const struct memory_request *request = memory_requests; request; request = request->next) {
        const struct failure *failure = &request->failure;
        if (failure->set)
            return arena_printf("a %s of memory failed with %s at %s, %" PRIu64 " ps", request->writes ? "write" : "read",
                                fault_names[failure->code], place_name(failure->node), failure->t_ps);
    }
    return NULL;
}

/* What an answer says of a run that did not end well. */
static const char *reason(enum ending ending, const char *error)
{
    const struct launch *bad = launch_bad();
    if (ending == ENDING_wrong_data)
        return "results are wrong or not verified; a run by itself says where";
    if (error || watchdog_ended())
        return error ? error : watchdog_ended();
    return bad ? launch_outcome(bad) : memory_outcome();
}

void metrics_write_end(struct json *json, int status, const char *error)
{
    enum ending ending = ending_of(status);
    if (!isnan(verification_error()))
        json_double(json, "max_err", verification_error());
    json_u64(json, "status", (uint64_t)status);
    json_string(json, "ended", words[ending]);
    if (ending != ENDING_ok)
        json_string(json, "why", reason(ending, error));
}
