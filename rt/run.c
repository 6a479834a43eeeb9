/* run.c: `SIM run BENCH`: a bench on the simulated machine, its data pass, its report. */
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"
#include "emitted.h"
#include "exec.h"
#include "host_program.h"
#include "launch.h"
#include "reference.h"
#include "result.h"
#include "sim.h"
#include "steady.h"
#include "summary.h"
#include "text/diag.h"
#include "trace.h"
#include "trap.h"

struct run_options {
    const char *trace, *json;
};

static void help(void)
{
    puts("usage: SIM run BENCH [NAME=VALUE ...] [OPTIONS]\n"
         "\n"
         "Runs a bench in simulated time, checks what it computed, and reports. `list` shows benches and parameters.\n"
         "  --data MODE     off: timing alone; verify (the default): compute, and compare results with references;\n"
         "                  debug: compare every operation as well, and name the first that is wrong\n"
         "  --seed N        of random values, 0 if absent\n"
         "  --json FILE     the result as JSON (- for standard output)\n"
         "  --trace FILE    the trace events, one JSON object a line (- for standard output)\n"
         "  --exact-events  simulate every event, skip no steady periods: same results, more slowly\n"
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

static void data_mode(const char *text)
{
    exec_debug = !strcmp(text, "debug");
    oplog_on = strcmp(text, "off") != 0;
    if (oplog_on && !exec_debug && strcmp(text, "verify"))
        usage_error("--data %s: off, verify or debug is needed", text);
}

enum { OPTION_OPLOG = 256, OPTION_OPLOG_MEM };

static struct run_options options_read(int argc, char **argv)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'},    {"seed", required_argument, NULL, 's'},
        {"json", required_argument, NULL, 'j'},    {"trace", required_argument, NULL, 't'},
        {"oplog", required_argument, NULL, OPTION_OPLOG}, {"oplog-mem", required_argument, NULL, OPTION_OPLOG_MEM},
        {"exact-events", no_argument, NULL, 'e'},  {"help", no_argument, NULL, 'h'},          {0}};
    struct run_options read = {0};
    argv[0] = (char *)program_name;                     /* getopt_long names it in its messages */
    oplog_on = steady_on = true;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'd': data_mode(optarg); break;
        case 's': fill_seed = seed_of(optarg); break;
        case 'j': read.json = optarg; break;
        case 't': read.trace = optarg; break;
        case OPTION_OPLOG: usage_error("--oplog is not supported: the op log stays in memory, for the data pass alone");
        case OPTION_OPLOG_MEM: usage_error("--oplog-mem is not supported: the op log stays in memory");
        case 'e': steady_on = false; break;
        case 'h': help(); exit(0);
        default: fprintf(stderr, "see %s run --help\n", program_name); exit(2);
        }
    }
    if (optind == argc)
        usage_error("run needs a bench; `%s list` shows them", program_name);
    if (read.json && read.trace && !strcmp(read.json, read.trace))
        usage_error("--json and --trace cannot both go to %s",
                    strcmp(read.json, "-") ? read.json : "standard output");
    return read;
}

/* A host program: the bench, and whatever it launched without waiting for it. */
static void host(void *arg)
{
    bench_run(arg);
    program_wait_for_launches();
}

static void stuck(void)
{
    launches_deadlocked();
    programs_deadlocked();
}

static void fill_json(struct json *json, void *arg)
{
    json_string(json, "bench", bench_current->name);
    bench_write_params(json, "params");
    json_u64(json, "seed", fill_seed);
    result_write(json);
    summary_write(json);
    summary_write_host(json, arg);
}

static bool finished;

/* A kernel or bench that calls exit() must not look like a good run. */
static void left(int status, void *arg)
{
    (void)arg;
    if (finished || status)
        return;
    fprintf(stderr, "%s: the bench or a kernel called exit() at %" PRIu64 " ps; the run did not end\n", program_name,
            sim_now_ps());
    _exit(1);
}

int run_main(int argc, char **argv)
{
    double began = clock_seconds();
    struct run_options options = options_read(argc, argv);
    const struct kb_bench *bench = bench_find(argv[optind]);
    bench_take(bench, argc - optind - 1, argv + optind + 1);
    on_exit(left, NULL);                                /* before the files, so that it acts behind their removal */
    if (options.trace)
        trace_open(options.trace);
    struct output json = {0};
    if (options.json)                                   /* what cannot be written is said before the work */
        json = output_open(options.json);
    sim_init();
    traps_catch();
    bool good = sim_run(host, (void *)bench, bench->per_sip ? kb_shape.sips : 1, stuck) && result_good();
    if (exec_debug && good)                             /* what no expectation asked for is checked too */
        exec_data_pass();
    finished = true;
    trace_close();
    struct host_times times = {.total = clock_seconds() - began};
    times.simulation = times.total - exec_stats.seconds - reference_seconds;
    if (options.json)
        json_write_output(&json, fill_json, &times);
    bool quiet = (options.json && !strcmp(options.json, "-")) || (options.trace && !strcmp(options.trace, "-"));
    summary_print(quiet ? stderr : stdout, &times);
    return good && !verification_failed() && !exec_difference.op ? 0 : 1;
}
