/* replay.c: `SIM replay STREAM.yaml`: runs a recorded command stream. */
#include "replay.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/human.h"
#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "common/yaml.h"
#include "fastforward/fastforward.h"
#include "launch/deadlock.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "limits.h"
#include "machine/dma.h"
#include "machine/emitted.h"
#include "machine/state.h"
#include "output_files.h"
#include "report/activity.h"
#include "report/conservation.h"
#include "report/ledger.h"
#include "report/profile.h"
#include "report/result.h"
#include "session/host_list.h"
#include "session/numbers.h"
#include "session/program.h"
#include "session/stream.h"
#include "sim/loop.h"
#include "sim/observer.h"
#include "sweep.h"
#include "why/why.h"

static int replay_main(int argc, char **argv);

static const struct cli_option options[] = {
    SET_OPTION,
    OUTPUT_OPTIONS,
    {'e', "exact-events", NULL, "simulate every event, skip nothing that repeats: same results, more slowly"},
    {'f', "profile", NULL, "report where the host's time went, by kind of event"},
    LIMIT_OPTIONS,
    {'p', "points", "FILE",
     "sweep: one run for each line of FILE, - is standard input. A line is a JSON\n"
     "object, {\"--set\": {\"cube.noc.link_bw_gbs\": 512}}, whose numbers are replaced.\n"
     "Each answer is a line of JSON, on standard output or in --json"},
    {'a', "metrics", NULL, "of --points, which needs it: each answer has metrics alone (`schema metrics`)"},
    {0},
};

const struct subcommand replay_subcommand = {
    "replay", "STREAM.yaml", "runs a recorded command stream", "Runs a recorded command stream in simulated time.",
    options, replay_main,
};

/* ---- the host program */

static struct {
    struct host_list *list;
    bool over;
    struct sim_wait waiter;
} host;

static void host_over(void *owner)
{
    (void)owner;
    host.over = true;
    sim_wake(&host.waiter);
}

static void host_run(void *stream)
{
    host.over = false;
    host.list = host_list_new(stream, 0, host_over, NULL);
    host_list_begin(host.list);
    if (!host.over)
        sim_sleep(&host.waiter);
    host_list_end(host.list);
}

/* ---- the subcommand */

static const char *internal_error;                      /* NULL: the run has met none */

static uint64_t end_ps(void)
{
    if (watchdog_ended())
        return sim_now_ps();
    return host.list ? host_list_end_ps(host.list) : 0;
}

static void write_result(struct json *json, void *arg)
{
    const struct output_files *files = arg;
    result_write(json, end_ps(), files->trace_all);
    activity_write(json, end_ps());
    if (files->report || why_on)
        ledger_write(json);                             /* without these, a result has the keys of its format alone */
    output_files_write_probes(json);
    why_write(json);
    if (profile_on) {
        json_object(json, "host");
        json_u64(json, "events", event_count);
        profile_write(json);
        json_object_end(json);
    }
    result_write_interruption(json);
    if (internal_error)
        json_string(json, "error", internal_error);
}

/* Host seconds of the run: up to the start of the simulation, and of that. */
static double setup_s, simulation_s;

static const char *outcome(void)
{
    if (watchdog_ended() && !internal_error)
        return "interrupted";
    return result_good() && !sim_failed() && !internal_error ? "ok" : "failed";
}

static void print_summary(FILE *out, const char *path)
{
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        const char *program = printable(launch->program);
        if (launch->status == LAUNCH_SKIPPED)
            fprintf(out, "launch %-24s skipped\n", program);
        else if (launch->status == LAUNCH_RUNNING)
            fprintf(out, "launch %-24s %5u PEs  submitted %" PRIu64 " ps  UNFINISHED\n", program,
                    (unsigned)launch->count, launch->submitted_ps);
        else
            fprintf(out, "launch %-24s %5u PEs  submitted %" PRIu64 " ps  done %" PRIu64 " ps%s%s\n", program,
                    (unsigned)launch->count, launch->submitted_ps, launch->done_ps,
                    launch->status == LAUNCH_OK ? "" : "  FAILED: ",
                    launch->status == LAUNCH_OK ? "" : launch_outcome(launch));
    }
    if (result_good() && !watchdog_ended())
        ledger_print(out, "--json with --why or --report");
    double rate = simulation_s > 0 ? (double)event_count / simulation_s : 0;
    fprintf(out, "host   set-up %s, simulation %s (%" PRIu64 " events, %s)\n", human_seconds(setup_s),
            human_seconds(simulation_s), event_count, human_count(rate, "/s"));
    fprintf(out, "%s on %s: %s, end %" PRIu64 " ps\n", printable(path), kb_machine_name, outcome(), end_ps());
}

int replay_run(const struct command_stream *stream, uint64_t *end)
{
    machine_init();
    fastforward_init();
    watchdog_start(&limits, &(struct watchdog_run){.commands = program_commands});
    double began = clock_seconds();
    sim_run(host_run, (void *)stream, 1, launches_deadlocked);
    simulation_s = clock_seconds() - began;
    transfers_count_ahead(-1);
    faults_report_rest();
    watchdog_stop();
    internal_error = conservation_check(result_good() && !watchdog_ended());
    *end = end_ps();
    const char *wrong = why_end(*end, watchdog_ended());
    if (wrong)
        internal_error = wrong;
    if (internal_error)
        return STATUS_HOST_FAILED;
    if (watchdog_ended())
        return watchdog_status();
    return result_good() && !sim_failed() ? STATUS_GOOD : STATUS_RUN_FAILED;
}

const char *replay_error(void)
{
    return internal_error;
}

static int replay_points(const char *path, const char *points, const struct output_files *files)
{
    const char *of_one_run = profile_on ? "profile" : output_files_of_one_run(files);
    if (!sweep_metrics)
        usage_error("--points of a stream needs --metrics");
    if (of_one_run)
        usage_error("--%s is for one run, but --points makes several: run the point by itself", of_one_run);
    if (!strcmp(path, "-") && !strcmp(points, "-"))
        usage_error("replay - and --points - cannot both read standard input");
    return sweep_run(source_given(path), points, files->json ? files->json : "-");
}

static int replay_main(int argc, char **argv)
{
    struct output_files files = {0};
    const char *points = NULL;
    double began = clock_seconds();
    fastforward_on = true;
    for (int letter; (letter = subcommand_option(&replay_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'e': fastforward_on = false; break;
        case 'f': profile_start(); break;
        case 'p': points = optarg; break;
        case 'a': sweep_metrics = true; break;
        default:
            if (!output_files_option(&files, letter, optarg) && !numbers_option(letter, optarg))
                limits_option(letter, optarg);
        }
    numbers_options_end();
    const char *path = subcommand_argument(&replay_subcommand, argc, argv, "one command stream");
    output_files_check(&files);
    if (points)
        return replay_points(path, points, &files);
    if (sweep_metrics)
        usage_error("--metrics says what the answers of --points are; it is not given");
    output_files_probe(&files);
    const struct command_stream *stream = stream_read(path);
    observer_watch(&command_rows_observer, files.json);
    const char *slash = strrchr(path, '/');
    output_files_open(&files, slash ? slash + 1 : path);
    uint64_t end;
    setup_s = clock_seconds() - began;
    int status = replay_run(stream, &end);
    output_files_close(&files, end, write_result, &files);
    FILE *out = output_files_take_standard_output(&files) ? stderr : stdout;
    print_summary(out, path);
    why_print(out);
    if (profile_on)
        profile_print();
    return status;
}
