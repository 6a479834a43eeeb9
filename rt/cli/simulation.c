/* simulation.c: a bench on the simulated machine, its data pass, its result. */
#include "simulation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/stopwatch.h"
#include "common/fail.h"
#include "data.h"
#include "datapass/exec.h"
#include "fastforward/fastforward.h"
#include "host/bench.h"
#include "host/host.h"
#include "host/launches.h"
#include "launch/deadlock.h"
#include "launch/launch.h"
#include "launch/trap.h"
#include "machine/emitted.h"
#include "oplog/log.h"
#include "races/race.h"
#include "reference/expect.h"
#include "reference/reference.h"
#include "report/result.h"
#include "sim/loop.h"

static bool under_way;

/* At the exit of the process: a kernel or bench that calls exit(0) must not look like a good run. */
static void at_exit(int status, void *arg)
{
    (void)arg;
    if (!under_way || status)
        return;
    message("%s: the bench or a kernel called exit() at %" PRIu64 " ps; the run did not end\n", program_name,
            sim_now_ps());
    _exit(STATUS_RUN_FAILED);
}

void simulation_prepare(void)
{
    on_exit(at_exit, NULL);
    traps_catch();
}

/* The host program. */
static void run_bench(void *arg)
{
    (void)arg;
    bench_current->body();
    launches_wait();
}

static void report_deadlock(void)
{
    launches_deadlocked();
    host_deadlocked();
}

bool simulation_run(double began, struct host_times *times)
{
    under_way = true;
    machine_init();
    fastforward_init();
    uint32_t ranks = bench_current->per_sip ? kb_shape.sips : 1;
    bool good = sim_run(run_bench, NULL, ranks, report_deadlock) && result_good();
    bool logged = oplog_on && log_filed;
    if (good && (exec_check || logged))                 /* data that no expectation needed count, too */
        exec_data_pass();
    oplog_settle(true, OP_OF_HOST);                     /* also of a run that ended early */
    if (good && logged)
        data_record_hashes();
    under_way = false;
    times->total = clock_seconds() - began;
    times->simulation = times->total - exec_stats.seconds - reference_seconds;
    return good && !verification_failed() && !exec_difference.op && !races_found();
}

void simulation_write(struct json *json, void *times)
{
    json_string(json, "bench", bench_current->name);
    bench_write_params(json, "params");
    json_u64(json, "seed", fill_seed);
    result_write(json);
    summary_write(json);
    summary_write_host(json, times);
}
