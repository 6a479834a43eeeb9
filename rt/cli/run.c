/* run.c: `SIM run BENCH`: its options, and one run with its report. */
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/bench.h"
#include "base/stopwatch.h"
#include "datapass/exec.h"
#include "store/fill.h"
#include "report/commands.h"
#include "oplog/log.h"
#include "one_run.h"
#include "points.h"
#include "base/threads.h"
#include "report/profile.h"
#include "races/race.h"
#include "report/result.h"
#include "fastforward/periodic.h"
#include "report/summary.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "report/trace.h"
#include "reference/recheck.h"

struct run_options {
    const char *trace, *json, *points, *oplog;
};

static void help(void)
{
    puts("usage: SIM run BENCH [NAME=VALUE ...] [OPTIONS]\n"
         "\n"
         "Runs a bench in simulated time, checks what it computed, and reports. `list` shows benches and parameters.\n"
         "  --data MODE     off: timing alone; verify (the default): compute, and compare results with references;\n"
         "                  debug: compare every operation as well, and name the first that is wrong; look for races\n"
         "  --races         look for races between operations: accesses to the same bytes in no sure order\n"
         "  --threads N     of the data pass; as many as there are processors if absent. Results are the same\n"
         "  --seed N        of random values, 0 if absent\n"
         "  --json FILE     the result as JSON (- for standard output)\n"
         "  --points FILE   a run for each line of FILE (- for standard input), a JSON object of parameters such\n"
         "                  as {\"m\": 64, \"--seed\": 7}; what it leaves out is as the command line says. Each\n"
         "                  answer is a line of JSON, on standard output or in the --json FILE\n"
         "  --trace FILE    the trace events, one JSON object a line (- for standard output)\n"
         "  --oplog FILE    the op log, every tile stage included, for `oplog` and `data` to read later\n"
         "  --oplog-mem SIZE    of an op log without a file, in memory; the rest goes to a temporary file (256 MiB)\n"
         "  --exact-events  simulate every event, skip nothing that repeats itself: same results, more slowly\n"
         "  --profile       where the host's time went, by kind of event, on standard error and in the result\n"
         "Exit status: 0 good, 1 the run failed or a result is wrong, 2 wrong usage, 3 error of the host system.");
}

static uint64_t seed_of(const char *text)
{
    char *end;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 0);
    if (!*text || *end || errno || strspn(text, "0123456789xabcdefABCDEF") != strlen(text))
        usage_error("--seed %s: a whole number below 2^64 is needed", text);
    return seed;
}

/* A size in bytes, with a unit or without. */
static uint64_t size_of(const char *text)
{
    uint64_t size = 0;
    const char *unit, *why;
    mpq_t value;
    mpq_init(value);
    why = quantity_lex(text, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, DIMENSION_size, unit_named("B"));
    if (why || !quantity_whole(value, &size))
        usage_error("--oplog-mem %s: a size such as 64 MiB is needed%s%s", text, why && *why ? ": " : "",
                    why ? why : "");
    mpq_clear(value);
    return size;
}

static void data_mode(const char *text)
{
    bool debug = !strcmp(text, "debug");
    exec_check = debug ? &recheck : NULL;
    races_on |= debug;
    oplog_on = strcmp(text, "off") != 0;
    if (oplog_on && !debug && strcmp(text, "verify"))
        usage_error("--data %s: off, verify or debug is needed", text);
}

static void outputs_differ(const char *one, const char *path, const char *other, const char *other_path)
{
    if (path && other_path && !strcmp(path, other_path))
        usage_error("--%s and --%s cannot both go to %s", one, other, strcmp(path, "-") ? path : "standard output");
}

enum { OPTION_OPLOG = 256, OPTION_OPLOG_MEM };

static struct run_options options_read(int argc, char **argv)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'},    {"seed", required_argument, NULL, 's'},
        {"json", required_argument, NULL, 'j'},    {"trace", required_argument, NULL, 't'},
        {"points", required_argument, NULL, 'p'},  {"profile", no_argument, NULL, 'f'},
        {"threads", required_argument, NULL, 'n'},
        {"oplog", required_argument, NULL, OPTION_OPLOG}, {"oplog-mem", required_argument, NULL, OPTION_OPLOG_MEM},
        {"exact-events", no_argument, NULL, 'e'},  {"races", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},          {0}};
    struct run_options read = {0};
    argv[0] = (char *)program_name;                     /* getopt_long names it in its messages */
    oplog_on = steady_on = true;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'd': data_mode(optarg); break;
        case 's': fill_seed = seed_of(optarg); break;
        case 'n': threads_option(optarg); break;
        case 'j': read.json = optarg; break;
        case 't': read.trace = optarg; break;
        case 'p': read.points = optarg; break;
        case OPTION_OPLOG: read.oplog = optarg; break;
        case OPTION_OPLOG_MEM: log_memory_bytes = size_of(optarg); break;
        case 'e': steady_on = false; break;
        case 'r': races_on = true; break;
        case 'f': profile_start(); break;
        case 'h': help(); exit(0);
        default: fprintf(stderr, "see %s run --help\n", program_name); exit(2);
        }
    }
    if (optind == argc)
        usage_error("run needs a bench; `%s list` shows them", program_name);
    outputs_differ("json", read.json, "trace", read.trace);
    outputs_differ("json", read.json, "oplog", read.oplog);
    outputs_differ("trace", read.trace, "oplog", read.oplog);
    if (read.points && (read.trace || read.oplog || profile_on))
        usage_error("--%s is of one run, --points makes several: run the point by itself",
                    read.trace ? "trace" : read.oplog ? "oplog" : "profile");
    return read;
}

/* One run with the parameters of the command line, and its report. */
static bool run_alone(const struct run_options *options, double began)
{
    struct output json = {0};
    if (options->trace)
        trace_open(options->trace);
    if (options->json)                                  /* what cannot be written is said before the work */
        json = output_open(options->json);
    if (options->oplog) {
        log_open(options->oplog, bench_current->name);
        observer_watch(&services_observer, true);
    }
    struct host_times times = {0};
    bool good = one_run(began, &times);
    trace_close();
    log_close(good);
    if (options->json)
        json_write_output(&json, one_run_write, &times);
    bool quiet = (options->json && !strcmp(options->json, "-")) || (options->trace && !strcmp(options->trace, "-"));
    summary_print(quiet ? stderr : stdout, &times);
    if (profile_on)
        profile_print();
    return good;
}

int run_main(int argc, char **argv)
{
    double began = clock_seconds();
    struct run_options options = options_read(argc, argv);
    bench_select(bench_find(argv[optind]), argc - optind - 1, argv + optind + 1);
    finished_on = options.json || options.points;
    observer_watch(&race_observer, races_on);
    one_run_prepare();                                  /* before the files are opened */
    if (options.points)
        return points_run(options.points, options.json ? options.json : "-");
    return run_alone(&options, began) ? 0 : 1;
}
