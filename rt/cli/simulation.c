/* simulation.c: a bench on the simulated machine, its data pass, its result. */
#include "simulation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/leave.h"
#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/fail.h"
#include "data.h"
#include "datapass/exec.h"
#include "fastforward/fastforward.h"
#include "host/bench.h"
#include "host/host.h"
#include "host/launches.h"
#include "host/tensor_request.h"
#include "launch/deadlock.h"
#include "launch/launch.h"
#include "launch/trap.h"
#include "machine/emitted.h"
#include "machine/state.h"
#include "oplog/log.h"
#include "races/race.h"
#include "reference/expect.h"
#include "reference/reference.h"
#include "report/result.h"
#include "sim/loop.h"

static struct {
    pid_t process;                                      /* in which it is under way; 0: it is not */
    const char *fault;                                  /* of the bench */
} simulation;

/* Ends the run, from the bench's coroutine. */
static void bench_fault(const char *text)
{
    simulation.fault = arena_printf("%s; %s", text, host_last_call());
    message("fault: bench %s, %" PRIu64 " ps: %s\n", bench_current->name, sim_now_ps(), simulation.fault);
    sim_fail();
    sim_end();
}

/* At the exit of the process: a run that did not end must not look like a good one, whatever has ended the process. */
static void at_exit(int status, void *arg)
{
    (void)arg;
    if (simulation.process != getpid() || status)
        return;
    leave_watch(NULL);
    message("%s: the process ends at %" PRIu64 " ps; the run did not\n", program_name, sim_now_ps());
    _exit(STATUS_RUN_FAILED);
}

void simulation_prepare(void)
{
    on_exit(at_exit, NULL);
    traps_catch(bench_fault);
}

/* The host program. */
static void run_bench(void *arg)
{
    (void)arg;
    bench_current->body();
    launches_wait();
    tensor_requests_wait();
}

static void report_deadlock(void)
{
    launches_deadlocked();
    host_deadlocked();
}

bool simulation_run(double began, struct host_times *times)
{
    simulation.process = getpid();
    simulation.fault = NULL;
    machine_init();
    fastforward_init();
    uint32_t ranks = bench_current->per_sip ? kb_shape.sips : 1;
    bool good = sim_run(run_bench, NULL, ranks, report_deadlock) && result_good() && !sim_failed();
    faults_report_rest();
    bool logged = oplog_on && log_filed;
    if (good && (exec_check || logged))                 /* data that no expectation needed count, too */
        exec_data_pass();
    oplog_settle(true, OP_OF_HOST);                     /* also of a run that ended early */
    if (good && logged)
        data_record_hashes();
    simulation.process = 0;
    times->total = clock_seconds() - began;
    times->simulation = times->total - exec_stats.seconds - reference_seconds;
    return good && !verification_failed() && !exec_difference.op && !races_found();
}

void simulation_write(struct json *json, void *times)
{
    json_string(json, "bench", bench_current->name);
    bench_write_params(json, "params");
    json_u64(json, "seed", fill_seed);
    if (simulation.fault)
        json_string(json, "fault", simulation.fault);
    result_write(json, sim_now_ps());
    summary_write(json);
    summary_write_host(json, times);
}
