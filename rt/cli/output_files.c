/* output_files.c: the files that `run` and `replay` write: result, trace, statistics, op log. */
#include "output_files.h"

#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/command_line.h"
#include "common/fail.h"
#include "launch/watchdog.h"
#include "limits.h"
#include "machine/emitted.h"
#include "probe/matrix.h"
#include "report.h"
#include "report/activity.h"
#include "report/command_log.h"
#include "report/plan_dump.h"
#include "report/profile.h"
#include "report/trace.h"
#include "report/usage.h"
#include "session/numbers.h"
#include "session/reset.h"
#include "sim/observer.h"
#include "timeline/timeline.h"
#include "timeline/waves.h"
#include "timeline/window.h"
#include "why/why.h"

static bool is_standard_output(const char *path)
{
    return path && !strcmp(path, "-");
}

/* A time of the window, which the formats bound. */
static uint64_t window_time(const char *option, const char *text)
{
    uint64_t t_ps = parse_time(option, text);
    return t_ps < INT64_MAX ? t_ps : INT64_MAX;
}

/* Takes an option that says what timeline and waves show. Returns false if the letter is not one of these. */
static bool window_option(int letter, const char *argument)
{
    switch (letter) {
    case 'B': window.from_ps = window_time("timeline-from", argument); return true;
    case 'C': window.to_ps = window_time("timeline-to", argument); return true;
    case 'G': window.pes = argument; return true;
    case 'N': window.slices = option_whole("timeline-slices", argument, 0, UINT64_MAX); return true;
    default: return false;
    }
}

bool output_files_option(struct output_files *files, int letter, const char *argument)
{
    switch (letter) {
    case 'j': files->json = argument; return true;
    case 't': files->trace = argument; return true;
    case 'F': files->commands = argument; return true;
    case 'A': files->trace_all = true; return true;
    case 'S': files->stats = argument; return true;
    case 'E': files->timeline = argument; return true;
    case 'W': files->waves = argument; return true;
    case 'R': files->report = argument; return true;
    case 'Q': files->pairs = argument; return true;
    case 'X': why_on = why_launches = true; return true;
    case 'Y': why_on = true; return true;
    case 'D':
        if (strcmp(argument, "plan"))
            usage_error("--dump %s: plan is needed", argument);
        files->plans = true;
        return true;
    default:
        files->windowed |= window_option(letter, argument);
        return strchr("BCGN", letter);
    }
}

const char *output_files_of_one_run(const struct output_files *files)
{
    return files->trace ? "trace" : files->commands ? "command-log" : files->stats ? "stats" : files->oplog ? "oplog" : files->timeline ? "timeline"
           : files->waves ? "waves" : files->report ? "report" : files->pairs ? "probe-matrix"
           : files->plans ? "dump" : why_on ? "why" : NULL;
}

static void window_check(const struct output_files *files)
{
    if (!files->windowed)
        return;
    if (!files->timeline && !files->waves)
        usage_error("--timeline-from, --timeline-to, --timeline-pes and --timeline-slices say what --timeline and"
                    " --waves show; neither is given");
    if (window.from_ps > window.to_ps)
        usage_error("--timeline-from is after --timeline-to: %" PRIu64 " ps, %" PRIu64 " ps", window.from_ps,
                    window.to_ps);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        if (window_has_pe(pe))
            return;
    usage_error("--timeline-pes %s: no PE of %s has such a name; they are called sip0.cube0.pe0", window.pes,
                kb_machine_name);
}

void output_files_check(const struct output_files *files)
{
    const char *const options[][2] = {
        {"json", files->json}, {"trace", files->trace}, {"command-log", files->commands},
        {"stats", files->stats}, {"oplog", files->oplog},
        {"timeline", files->timeline}, {"waves", files->waves},
        {"report", files->report}, {"dump", files->plans ? "-" : NULL}};
    for (size_t i = 0; i < COUNT_OF(options); i++)
        for (size_t j = i + 1; j < COUNT_OF(options); j++) {
            const char *path = options[i][1], *other_path = options[j][1];
            if (path && other_path && !strcmp(path, other_path))
                usage_error("--%s and --%s cannot both go to %s", options[i][0], options[j][0],
                            is_standard_output(path) ? "standard output" : path);
        }
    window_check(files);
    if (files->trace_all && !files->trace && !files->oplog)
        usage_error("--trace-all says what is in the file of --trace or --oplog; neither is given");
    if (files->pairs && !files->json && !files->report)
        usage_error("--probe-matrix says what is in the result of --json or --report; neither is given");
}

/* ---- the matrix of probes */

static const struct matrix *probes;

void output_files_probe(const struct output_files *files)
{
    if (!files->pairs)
        return;
    observer_watch(&profile_observer, false);
    probes = matrix_measure(files->pairs, &(struct probe){.load = 1}, simulator_reset);
    observer_watch(&profile_observer, profile_on);
}

void output_files_write_probes(struct json *json)
{
    if (probes)
        matrix_write(json, "probe_matrix", probes, false);
}

/* ---- opening and closing */

void output_files_open(struct output_files *files, const char *what)
{
    if (files->json)
        files->json_file = output_open(files->json);
    if (files->trace)
        trace_open(files->trace, files->trace_all);
    if (files->commands)
        command_log_open(files->commands);
    if (files->stats)
        usage_open(files->stats);
    if (files->timeline)
        timeline_open(files->timeline, arena_printf("%s on %s", what, kb_machine_name));
    if (files->waves)
        waves_open(files->waves);
    if (files->report) {
        files->report_file = output_open(files->report);
        activity_watch();
    }
    observer_watch(&plan_observer, files->plans);
    why_key_place = numbers_place;
    why_begin(what);
}

void output_files_close(struct output_files *files, uint64_t end_ps, void (*fill)(struct json *, void *), void *arg)
{
    outputs_begin_closing();
    trace_close();
    command_log_close();
    usage_close(end_ps);
    why_write_track();
    timeline_close(end_ps);
    waves_close(end_ps);
    if (files->json)
        json_write_output(&files->json_file, fill, arg);
    if (files->report)
        report_write(&files->report_file, fill, arg);
    outputs_end_closing();
}

bool output_files_take_standard_output(const struct output_files *files)
{
    return files->plans || is_standard_output(files->json) || is_standard_output(files->trace)
           || is_standard_output(files->commands)
           || is_standard_output(files->stats) || is_standard_output(files->timeline)
           || is_standard_output(files->waves) || is_standard_output(files->report);
}
