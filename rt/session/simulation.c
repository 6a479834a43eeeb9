/* simulation.c: a bench on the simulated machine, its data pass, its result. */
#define _GNU_SOURCE                                     /* gettid */
#include "simulation.h"

#include <inttypes.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "base/human.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/fail.h"
#include "datapass/exec.h"
#include "fastforward/fastforward.h"
#include "host/bench.h"
#include "host/host.h"
#include "host/launches.h"
#include "host/tensor_request.h"
#include "launch/deadlock.h"
#include "launch/launch.h"
#include "launch/watchdog.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "machine/state.h"
#include "machine/stats.h"
#include "oplog/log.h"
#include "races/race.h"
#include "reference/expect.h"
#include "reference/reference.h"
#include "report/activity.h"
#include "report/conservation.h"
#include "report/ledger.h"
#include "report/result.h"
#include "sim/loop.h"
#include "store/tensor.h"
#include "why/why.h"

static struct {
    pid_t process;                                      /* in which it is under way; 0: it is not */
    pid_t thread;
    const char *fault, *error;                          /* of the bench; the last words of what has ended the run */
    int status;                                         /* of the exit that the run has asked for */
    bool in_point;                                      /* of a sweep, which goes on after any exit */
    bool passes;                                        /* the last data pass runs, */
    jmp_buf out;                                        /* which ends early here */
    char line[1024], last_line[1024];                   /* of messages: incomplete, complete */
    char last_words[1024];                              /* the last line when the run ended */
} simulation;

static void nothing(void)
{
}

static void nothing_to_write(struct json *json)
{
    (void)json;
}

struct simulation_extras simulation_extras = {
    .pass_done = nothing, .write_checks = nothing_to_write, .write_probes = nothing_to_write,
};

void simulation_bench_fault(const char *text)
{
    simulation.fault = arena_printf("%s; %s", text, host_last_call());
    message("fault: bench %s, %" PRIu64 " ps: %s\n", bench_current->name, sim_now_ps(), simulation.fault);
    sim_fail();
    sim_end();
}

/* Leaves the last data pass, if that is what runs. */
static void leave_pass(void)
{
    if (!simulation.passes)
        return;
    threads_leave();
    longjmp(simulation.out, 1);
}

void simulation_in_points(void)
{
    simulation.in_point = true;
}

bool simulation_is_under_way(void)
{
    return simulation.process == getpid();
}

void simulation_forked(void)
{
    simulation.process = getpid();
    simulation.thread = gettid();
}

/* The last line becomes the error of the run. This takes no memory, since a run also ends when there is none. */
static void keep_last_words(void)
{
    memcpy(simulation.last_words, simulation.last_line, sizeof simulation.last_line);
    simulation.error = simulation.last_words;
}

void simulation_fails(int status)
{
    bool is_reported = status == STATUS_RUN_FAILED || (status != STATUS_GOOD && simulation.in_point);
    if (!is_reported || !simulation_is_under_way() || simulation.thread != gettid())
        return;
    simulation.status = status;
    keep_last_words();
    sim_abandon();
    leave_pass();
}

void simulation_attend(void)
{
    if (watchdog_ends_here())
        leave_pass();
}

void simulation_said(const char *text)
{
    for (; *text; text++) {
        size_t length = strlen(simulation.line);
        if (*text == '\n') {
            memcpy(simulation.last_line, simulation.line, sizeof simulation.line);
            *simulation.line = '\0';
        } else if (length + 1 < sizeof simulation.line) {
            simulation.line[length] = *text;
            simulation.line[length + 1] = '\0';
        }
    }
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

/* The data pass after the run, of data that no expectation needed. Returns false if it was ended. */
static bool last_pass(void)
{
    simulation.passes = true;
    bool ended = setjmp(simulation.out);
    if (!ended)
        exec_data_pass();
    simulation.passes = false;
    return !ended;
}

/* Records an internal error, which is a mistake of kbgen, as the end of the run. Returns whether the run has met none. */
static bool holds(const char *internal_error)
{
    if (!internal_error)
        return true;
    simulation.error = internal_error;
    simulation.status = STATUS_HOST_FAILED;
    return false;
}

static bool simulate(struct host_times *times)
{
    uint32_t ranks = bench_current->per_sip ? kb_shape.sips : 1;
    double began = clock_seconds();
    bool good = sim_run(run_bench, NULL, ranks, report_deadlock) && result_good() && !sim_failed();
    transfers_count_ahead(-1);
    times->simulation = clock_seconds() - began - sim_programs_seconds();
    if (sim_failed() && !watchdog_ended() && !simulation.fault && !simulation.error) {
        keep_last_words();
        watchdog_print_kernels();
    }
    faults_report_rest();
    good &= holds(conservation_check(good && !watchdog_ended()));
    bool logged = oplog_on && log_filed;
    if (good && (exec_check || logged))
        good = last_pass();
    oplog_settle(true, OP_OF_HOST);                     /* also of a run that ended early */
    if (good && logged)
        simulation_extras.pass_done();
    return good && !verification_failed() && !exec_difference.op && !races_found();
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* An estimate of how much a first launch has done, which mostly reads what the host has filled, and writes the rest: the
 * part of all these bytes that has been moved. Negative: none has. */
static double tensors_moved(void)
{
    struct tensors_bytes bytes = tensors_bytes();
    uint64_t filled = smaller(bytes.filled, bytes.all);
    uint64_t read = smaller(stats.read_bytes[SPACE_HBM] + stats.read_bytes[SPACE_SRAM], filled);
    uint64_t written = smaller(stats.write_bytes[SPACE_HBM] + stats.write_bytes[SPACE_SRAM], bytes.all - filled);
    return read || written ? (double)(read + written) / (double)bytes.all : -1;
}

int simulation_run(double began, const struct watchdog_limits *limits, struct host_times *times)
{
    simulation.process = getpid();
    simulation.thread = gettid();
    simulation.fault = simulation.error = NULL;
    simulation.status = STATUS_GOOD;
    races_begin(oplog_on);
    machine_init();
    fastforward_init();
    watchdog_start(limits, &(struct watchdog_run){.bench_call = host_last_call, .part_done = tensors_moved});
    bool good = simulate(times);
    watchdog_stop();
    simulation.process = 0;
    exec_left();
    reference_left();
    times->total = clock_seconds() - began;
    times->setup = times->total - times->simulation - exec_stats.seconds - reference_seconds;
    times->setup -= simulation_extras.seconds;
    if (!holds(why_end(sim_now_ps(), watchdog_ended())) || simulation.status == STATUS_HOST_FAILED)
        return simulation.status;
    if (watchdog_ended())
        simulation.status = watchdog_status();
    else if (!good && simulation.status == STATUS_GOOD)
        simulation.status = STATUS_RUN_FAILED;
    return simulation.status;
}

const char *simulation_error(void)
{
    return simulation.fault ? simulation.fault : simulation.error;
}

void simulation_write(struct json *json, void *times)
{
    json_string(json, "bench", bench_current->name);
    bench_write_params(json, "params");
    json_u64(json, "seed", fill_seed);
    if (simulation.fault)
        json_string(json, "fault", simulation.fault);
    result_write(json, sim_now_ps(), true);
    summary_write(json);
    simulation_extras.write_checks(json);
    activity_write(json, sim_now_ps());
    ledger_write(json);
    simulation_extras.write_probes(json);
    why_write(json);
    summary_write_host(json, times);
    result_write_interruption(json);
    if (simulation.error)
        json_string(json, "error", simulation.error);
    json_u64(json, "status", (uint64_t)simulation.status);
}

void simulation_print_end(FILE *out, int status)
{
    if (watchdog_ended())
        fprintf(out, "INTERRUPTED  by %s: everything above is up to %s\n", watchdog_ended(), human_time(sim_now_ps()));
    fprintf(out, "end          status %d\n", status);
}
