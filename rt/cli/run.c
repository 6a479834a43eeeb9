/* run.c: `SIM run BENCH`: its options, and one run with its report. */
#include "run.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/fail.h"
#include "data.h"
#include "datapass/exec.h"
#include "fastforward/fastforward.h"
#include "host/bench.h"
#include "injection.h"
#include "limits.h"
#include "oplog/log.h"
#include "output_files.h"
#include "process.h"
#include "races/race.h"
#include "reference/error.h"
#include "reference/recheck.h"
#include "report/profile.h"
#include "report/summary.h"
#include "session/numbers.h"
#include "session/simulation.h"
#include "sim/loop.h"
#include "store/fill.h"
#include "sweep.h"
#include "why/why.h"

static int run_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'d', "data", "MODE: off|verify|debug",
     "off: simulate time alone, without data;\n"
     "verify (the default): compute, and compare results with references;\n"
     "debug: also compare every operation, name the first wrong one"},
    {'l', "tolerance", "KIND: bounds|worst|plain",
     "what an element may be off by. bounds (the default): by its error analysis\n"
     "(docs/data.md); worst: the same with all errors added up; plain: 1e-5, 1e-3 or\n"
     "1e-2 of f32, f16 or bf16, relative to the expected value and to 1"},
    {'r', "races", "WHICH: on|off",
     "look for races, accesses to the same bytes that nothing orders: on; off; or a\n"
     "number: among the first operations. By default 1048576 with data, else off"},
    {'i', "inject", "N",
     "put N defects into the data pass, one at a time, and count those that the\n"
     "verification finds; drawn by --seed"},
    {'n', "threads", "N", "threads that compute data (all processors); results do not depend on it"},
    {'s', "seed", "N", "seed of random values (0)"},
    {'p', "points", "FILE",
     "sweep: one run for each line of FILE, - is standard input. A line is a JSON\n"
     "object of parameters, such as {\"m\": 64, \"--seed\": 7}; the command line gives\n"
     "the others, and \"--set\": {\"cube.noc.link_bw_gbs\": 512} replaces numbers. Each\n"
     "answer is a line of JSON, on standard output or in --json"},
    {'a', "metrics", NULL, "of --points: each answer is a short line, with metrics alone (`schema metrics`)"},
    SET_OPTION,
    OUTPUT_OPTIONS,
    {'o', "oplog", "FILE", "write the op log, with every stage of every tile, for `oplog` and `data`"},
    {'m', "oplog-mem", "SIZE", "memory for an op log without a file (256 MiB); the rest is in a temporary file"},
    {'e', "exact-events", NULL, "simulate every event, skip nothing that repeats: same results, more slowly"},
    {'f', "profile", NULL, "report where the host's time went, by kind of event"},
    LIMIT_OPTIONS,
    {0},
};

const struct subcommand run_subcommand = {
    "run", "BENCH [NAME=VALUE ...]", "runs a bench, verifies its results, reports",
    "Runs a bench in simulated time, compares its results with references, and reports. `list` shows the benches\n"
    "and their parameters.",
    options, run_main,
};

struct run_options {
    struct output_files files;
    const char *points;
};

static void set_data_mode(const char *text)
{
    bool debug = !strcmp(text, "debug");
    exec_check = debug ? &recheck : NULL;
    oplog_on = strcmp(text, "off") != 0;
    if (oplog_on && !debug && strcmp(text, "verify"))
        usage_error("--data %s: off, verify or debug is needed", text);
    if (!oplog_on)
        heap_is_small();
}

static struct run_options read_options(int argc, char **argv)
{
    struct run_options read = {0};
    struct output_files *files = &read.files;
    oplog_on = fastforward_on = true;
    for (int letter; (letter = subcommand_option(&run_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'd': set_data_mode(optarg); break;
        case 's': fill_seed = parse_seed(optarg); break;
        case 'n': threads_option("threads", optarg); break;
        case 'p': read.points = optarg; break;
        case 'o': files->oplog = optarg; break;
        case 'm': log_memory_bytes = parse_size("oplog-mem", optarg); break;
        case 'a': sweep_metrics = true; break;
        case 'e': fastforward_on = false; break;
        case 'l': error_mode_option(optarg); break;
        case 'r': races_option(optarg); break;
        case 'f': profile_start(); break;
        case 'i': injection_option(optarg); break;
        default:
            if (!output_files_option(files, letter, optarg) && !numbers_option(letter, optarg))
                limits_option(letter, optarg);
        }
    numbers_options_end();
    if (optind == argc)
        usage_error("run needs a bench; `%s list` shows them", program_name);
    output_files_check(files);
    const char *of_one_run = output_files_of_one_run(files);
    if (!of_one_run && profile_on)
        of_one_run = "profile";
    if (sweep_metrics && !read.points)
        usage_error("--metrics says what the answers of --points are; it is not given");
    if (read.points && of_one_run)
        usage_error("--%s is for one run, but --points makes several: run the point by itself", of_one_run);
    if (injection_count && (read.points || of_one_run))
        usage_error("--inject repeats the data pass: use it without --%s", read.points ? "points" : of_one_run);
    if (injection_count && !oplog_on)
        usage_error("--inject needs a data pass, which --data off leaves out");
    return read;
}

/* Runs the bench once and reports. Returns the exit status. */
static int run_and_report(struct output_files *files, double began)
{
    output_files_open(files, bench_current->name);
    if (files->oplog) {
        log_open(files->oplog, bench_current->name);
        observer_watch(&services_observer, true);
        observer_watch(&reservations_observer, files->trace_all);
    }
    struct host_times times = {0};
    injection_begin();
    int status = simulation_run(began, &limits, &times);
    injection_run_ended(status);
    log_close(status == STATUS_GOOD);
    output_files_close(files, sim_now_ps(), simulation_write, &times);
    FILE *out = output_files_take_standard_output(files) ? stderr : stdout;
    summary_print(out, &times);
    why_print(out);
    injection_print(out);
    if (profile_on)
        profile_print();
    simulation_print_end(out, status);
    return status;
}

static int run_main(int argc, char **argv)
{
    double began = clock_seconds();
    struct run_options given = read_options(argc, argv);
    output_files_probe(&given.files);
    bench_select(bench_find(argv[optind]), argc - optind - 1, argv + optind + 1);
    observer_watch(&command_rows_observer, given.files.json || (given.points && !sweep_metrics));
    simulation_extras.pass_done = data_record_hashes;
    simulation_extras.write_checks = injection_write;
    simulation_extras.write_probes = output_files_write_probes;
    process_prepare();
    if (given.points)
        return sweep_run(NULL, given.points, given.files.json ? given.files.json : "-");
    return run_and_report(&given.files, began);
}
