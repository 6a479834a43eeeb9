/* one_run.c: a bench on the simulated machine, its data pass, its result. */
#include "one_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/bench.h"
#include "base/stopwatch.h"
#include "machine/emitted.h"
#include "datapass/exec.h"
#include "host/host.h"
#include "host/launches.h"
#include "launch/deadlock.h"
#include "launch/launch.h"
#include "data.h"
#include "fastforward/periodic.h"
#include "oplog/log.h"
#include "races/race.h"
#include "reference/reference.h"
#include "report/result.h"
#include "sim/loop.h"
#include "common/diag.h"
#include "launch/trap.h"

/* A host program: the bench, and whatever it launched without waiting for it. */
static void host(void *arg)
{
    ((const struct kb_bench *)arg)->body();
    launches_wait();
}

static void stuck(void)
{
    launches_deadlocked();
    host_deadlocked();
}

static bool under_way;

/* A kernel or bench that calls exit() must not look like a good run. */
static void left(int status, void *arg)
{
    (void)arg;
    if (!under_way || status)
        return;
    fprintf(stderr, "%s: the bench or a kernel called exit() at %" PRIu64 " ps; the run did not end\n", program_name,
            sim_now_ps());
    _exit(1);
}

void one_run_prepare(void)
{
    on_exit(left, NULL);
    traps_catch();
}

bool one_run(double began, struct host_times *times)
{
    under_way = true;
    machine_init();
    steady_init();
    uint32_t ranks = bench_current->per_sip ? kb_shape.sips : 1;
    bool good = sim_run(host, (void *)bench_current, ranks, stuck) && result_good();
    if ((exec_check || (oplog_on && log_filed)) && good)        /* what no expectation asked for counts, too */
        exec_data_pass();
    oplog_settle(true, OP_OF_HOST);                     /* of a run that ended early, too */
    if (oplog_on && log_filed && good)
        contents_record();
    under_way = false;
    times->total = clock_seconds() - began;
    times->simulation = times->total - exec_stats.seconds - reference_seconds;
    return good && !verification_failed() && !exec_difference.op && !races_found();
}

void one_run_write(struct json *json, void *times)
{
    json_string(json, "bench", bench_current->name);
    bench_write_params(json, "params");
    json_u64(json, "seed", fill_seed);
    result_write(json);
    summary_write(json);
    summary_write_host(json, times);
}
