/* replay.c: `SIM replay STREAM.yaml`: runs a recorded command stream. */
#include "replay.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/fail.h"
#include "fastforward/fastforward.h"
#include "host_list.h"
#include "launch/deadlock.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "limits.h"
#include "machine/emitted.h"
#include "machine/state.h"
#include "report/profile.h"
#include "report/result.h"
#include "report/trace.h"
#include "report/usage.h"
#include "sim/loop.h"
#include "stream.h"

static int replay_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'j', "json", "FILE", "write the result as JSON; - is standard output"},
    {'t', "trace", "FILE", "write the trace events, one JSON object a line; - is standard output"},
    {'S', "stats", "FILE",
     "write what each node, link, memory channel and engine served, was busy and waited\n"
     "for, as JSON; - is standard output"},
    {'e', "exact-events", NULL, "simulate every event, skip nothing that repeats: same results, more slowly"},
    {'f', "profile", NULL, "report where the host's time went, by kind of event"},
    LIMIT_OPTIONS,
    {0},
};

const struct subcommand replay_subcommand = {
    "replay", "STREAM.yaml", "runs a recorded command stream", "Runs a recorded command stream in simulated time.",
    options, replay_main,
};

/* ---- the subcommand */

static uint64_t end_ps(void)
{
    return watchdog_ended() ? sim_now_ps() : host_list_end_ps();
}

static void write_result(struct json *json, void *arg)
{
    (void)arg;
    result_write(json, end_ps());
    if (profile_on) {
        json_object(json, "host");
        json_u64(json, "events", event_fired());
        profile_write(json);
        json_object_end(json);
    }
    if (watchdog_ended()) {
        json_bool(json, "interrupted", true);
        json_string(json, "ended_by", watchdog_ended());
    }
}

static void print_summary(const char *path)
{
    for (const struct launch *launch = launches; launch; launch = launch->next)
        if (launch->status == LAUNCH_SKIPPED)
            printf("launch %-24s skipped\n", launch->program);
        else
            printf("launch %-24s %5u PEs  submitted %" PRIu64 " ps  done %" PRIu64 " ps%s%s\n", launch->program,
                   (unsigned)launch->count, launch->submitted_ps, launch->done_ps,
                   launch->status == LAUNCH_OK ? "" : "  FAILED: ",
                   launch->status == LAUNCH_OK ? "" : launch_outcome(launch));
    printf("%s on %s: %s, end %" PRIu64 " ps\n", path, kb_machine_name,
           watchdog_ended() ? "interrupted" : result_good() ? "ok" : "failed", end_ps());
}

static int replay_main(int argc, char **argv)
{
    const char *json_path = NULL, *trace_path = NULL, *stats_path = NULL;
    fastforward_on = true;
    for (int letter; (letter = subcommand_option(&replay_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'j': json_path = optarg; break;
        case 't': trace_path = optarg; break;
        case 'S': stats_path = optarg; break;
        case 'e': fastforward_on = false; break;
        case 'f': profile_start(); break;
        default: limits_option(letter, optarg);
        }
    const char *path = subcommand_argument(&replay_subcommand, argc, argv, "one command stream");
    const char *const outputs[][2] = {{"json", json_path}, {"trace", trace_path}, {"stats", stats_path}};
    check_outputs_differ(outputs, COUNT_OF(outputs));
    const struct command_stream *stream = stream_read(path);
    struct output json = {0};
    observer_watch(&command_rows_observer, json_path);
    if (json_path)                                      /* a path that cannot be written is reported before the run */
        json = output_open(json_path);
    if (trace_path)
        trace_open(trace_path);
    if (stats_path)
        usage_open(stats_path);
    machine_init();
    fastforward_init();
    watchdog_start(&limits, NULL);
    sim_run(host_list_run, (void *)stream, 1, launches_deadlocked);
    faults_report_rest();
    watchdog_stop();
    trace_close();
    usage_close(end_ps());
    if (json_path)
        json_write_output(&json, write_result, NULL);
    if (!is_standard_output(json_path) && !is_standard_output(trace_path) && !is_standard_output(stats_path))
        print_summary(path);
    if (profile_on)
        profile_print();
    if (watchdog_ended())
        return watchdog_status();
    return result_good() && !sim_failed() ? STATUS_GOOD : STATUS_RUN_FAILED;
}
