/* compare.c: `SIM compare`: simulated times of commands against measured ones, and the constants that explain them. */
#include "compare.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "base/output.h"
#include "base/stopwatch.h"
#include "bringup/command_times.h"
#include "bringup/fit.h"
#include "bringup/record_log.h"
#include "common/arena.h"
#include "common/command_line.h"
#include "common/diag.h"
#include "common/fail.h"
#include "common/yaml.h"
#include "fastforward/fastforward.h"
#include "fit_report.h"
#include "host/bench.h"
#include "limits.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "oplog/oplog.h"
#include "process.h"
#include "replay.h"
#include "report/result.h"
#include "session/numbers.h"
#include "session/reset.h"
#include "session/simulation.h"
#include "session/stream.h"
#include "sim/observer.h"
#include "store/fill.h"

static int compare_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'r', "replay", "STREAM.yaml", "the simulated run: a command stream. It is run again and again for the fit"},
    {'b', "bench", "'BENCH NAME=VALUE ...'", "likewise, a bench"},
    {'f', "fit", "KEY ...: none",
     "a number of the topology to fit. Without it, those that explain the measured times;\n"
     "none: no fit"},
    {'t', "tolerance", "SHARE", "a start or a duration diverges if it is off by more: 5% (the default), or a time, 100 ns"},
    {'a', "align", "CLOCKS: first|none",
     "first (the default): the first measured command starts when the simulated one does;\n"
     "none: both clocks begin at the same instant, which is 0 of the simulation"},
    {'c', "clock", "FREQUENCY", "what cycles of the log are counted by, such as 1.2 GHz"},
    {'j', "json", "FILE", "write the answer as JSON; - is standard output"},
    {'s', "seed", "N", "seed of random values of a bench (0)"},
    SET_OPTION,
    LIMIT_OPTIONS,
    {0},
};

const struct subcommand compare_subcommand = {
    "compare", "[SIMULATED] MEASURED", "compares simulated times of commands with measured ones, and fits constants",
    "Compares the times of commands with those of a firmware log. SIMULATED is a trace (--trace), a result (--json), a log\n"
    "(--command-log), or a command stream, which is run. With a stream or a bench, constants of the topology are fitted:\n"
    "those with which the simulated times would be the measured ones.",
    options, compare_main,
};

struct tolerance {
    bool is_share;
    double share, ps;
    const char *text;
};

static struct {
    const char *stream_path, *bench, *measured_path, *simulated_path;
    const char **keys;
    size_t key_count;
    bool no_fit, aligned;
    struct tolerance tolerance;
    uint64_t clock_khz;
    const struct source *stream_text;
    const struct command_stream *stream;                /* for machines with pages of page_bytes */
    uint64_t page_bytes;
} options_given = {.aligned = true};

/* ---- runs */

static const struct command_stream *present_stream(void)
{
    return options_given.page_bytes == kb_attrs.pe_mmu_page_bytes ? options_given.stream : stream_of(options_given.stream_text);
}

static int run_now(void)
{
    uint64_t end_ps;
    struct host_times times = {0};
    if (!options_given.stream)
        return simulation_run(clock_seconds(), &limits, &times);
    const struct command_stream *stream = present_stream();
    return stream ? replay_run(stream, &end_ps) : STATUS_WRONG_USE;
}

/* Runs, and adds the times of all commands. */
static bool run_machine(const struct numbers *numbers, struct command_list *times)
{
    struct arena_mark mark = arena_mark();
    numbers_put(numbers);
    int status = run_now();
    bool good = status == STATUS_GOOD;
    if (status == 128 + SIGINT || status == 128 + SIGTERM)
        fail_exit(status);
    if (good)
        command_list_of_run(times);
    else
        errors_forget();
    simulator_reset();
    arena_release(mark);
    return good;
}

static bool has_run(void)
{
    return options_given.stream_path || options_given.bench;
}

static void prepare_bench(void)
{
    char *words[1 + 1024], *rest = arena_text(options_given.bench, strlen(options_given.bench));
    int count = 0;
    for (char *word; (word = strsep(&rest, " "));) {
        if (!*word)
            continue;
        if (count == (int)COUNT_OF(words))
            usage_error("--bench has more than %zu words", COUNT_OF(words));
        words[count++] = word;
    }
    if (!count)
        usage_error("--bench needs a bench; `%s list` shows them", program_name);
    bench_select(bench_find(words[0]), count - 1, words + 1);
    process_prepare();
    simulation_in_points();
}

static void prepare_run(void)
{
    oplog_on = false;
    fastforward_on = true;
    observer_watch(&command_rows_observer, true);
    if (options_given.bench) {
        prepare_bench();
    } else {
        options_given.stream_text = source_given(options_given.stream_path);
        options_given.stream = stream_of(options_given.stream_text);
        options_given.page_bytes = kb_attrs.pe_mmu_page_bytes;
        errors_end();
    }
}

/* The program of a launch of a PE, in a stream. */
static const struct stream_program *program_of(uint32_t pe, uint32_t launch)
{
    const struct command_stream *stream = options_given.stream;
    for (const struct host_step *step = stream->steps; step < stream->steps + stream->count; step++)
        for (uint32_t p = 0; p < step->launch.count; p++)
            for (uint32_t i = 0; i < step->launch.parts[p].count; i++)
                if (step->launch.parts[p].pes[i] == pe && launch-- == 0)
                    return step->launch.parts[p].program;
    return NULL;
}

static uint32_t find_id(uint32_t pe, uint32_t launch, const char *id)
{
    static struct {
        uint32_t pe, launch;
        const struct stream_program *program;
    } last;
    if (!last.program || last.pe != pe || last.launch != launch) {
        last.pe = pe;
        last.launch = launch;
        last.program = program_of(pe, launch);
    }
    uint32_t number = last.program ? stream_command_number(last.program, id) : UINT32_MAX;
    return last.program && number < last.program->commands ? number : UINT32_MAX;
}

/* ---- comparison */

/* A simulated command and its measured times. */
struct pair {
    const struct command_times *simulated, *measured;
};

/* Differences of one kind: simulated minus measured. */
struct errors {
    const char *word;
    uint64_t count;
    double simulated_ps, measured_ps, sum_ps, absolute_ps, worst_ps;    /* sums; worst_ps is signed */
    const struct pair *worst;
};

struct comparison {
    const struct command_list *simulated, *measured;
    struct pair *pairs;                                 /* by simulated start */
    size_t count, only_simulated, only_measured;
    const struct command_times *first_only_measured;
    int64_t offset_ps;                                  /* from a measured time to a simulated one */
    struct errors kinds[COMMANDS + 1], starts;
    unsigned kind_count;
    const struct pair *divergence;                      /* the first one; NULL: none */
    bool diverges_in_start;
    const struct fit *fit;
};

static int by_start(const void *a, const void *b)
{
    const struct command_times *x = ((const struct pair *)a)->simulated, *y = ((const struct pair *)b)->simulated;
    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    return (x > y) - (x < y);
}

static const char *command_name(const struct command_times *c)
{
    return arena_printf("%s, launch %u, command %u", pe_name(&kb_pe[c->pe]), (unsigned)c->launch, (unsigned)c->number);
}

static void join(struct comparison *c, const struct source *log)
{
    c->pairs = arena_alloc(c->simulated->count + 1, sizeof *c->pairs);
    for (size_t i = 0; i < c->simulated->count; i++) {
        const struct command_times *s = &c->simulated->at[i], *m = command_list_find(c->measured, s);
        if (!m) {
            c->only_simulated++;
            continue;
        }
        c->pairs[c->count++] = (struct pair){s, m};
        if (m->word && s->word && strcmp(m->word, s->word))
            error_at((struct where){log, m->line, 1}, "this is a %s, but in the simulation %s is a %s", m->word, command_name(s), s->word);
    }
    for (size_t i = 0; i < c->measured->count; i++)
        if (!command_list_find(c->simulated, &c->measured->at[i])) {
            const struct command_times *first = c->first_only_measured, *m = &c->measured->at[i];
            c->first_only_measured = !first || m->line < first->line ? m : first;
            c->only_measured++;
        }
    qsort(c->pairs, c->count, sizeof *c->pairs, by_start);
}

static int64_t measured_start(const struct comparison *c, const struct pair *pair)
{
    return pair->measured->start_ps + c->offset_ps;
}

static void align(struct comparison *c)
{
    for (size_t i = 0; options_given.aligned && i < c->count; i++)
        if (c->pairs[i].measured->has_start) {
            c->offset_ps = c->pairs[i].simulated->start_ps - c->pairs[i].measured->start_ps;
            return;
        }
}

static void count_error(struct errors *errors, const struct pair *pair, int64_t simulated_ps, int64_t measured_ps)
{
    double error = (double)(simulated_ps - measured_ps);
    errors->count++;
    errors->simulated_ps += (double)simulated_ps;
    errors->measured_ps += (double)measured_ps;
    errors->sum_ps += error;
    errors->absolute_ps += fabs(error);
    if (!errors->worst || fabs(error) > fabs(errors->worst_ps)) {
        errors->worst = pair;
        errors->worst_ps = error;
    }
}

static struct errors *errors_of(struct comparison *c, const struct pair *pair)
{
    const char *word = pair->simulated->word ? pair->simulated->word : pair->measured->word ? pair->measured->word : "command";
    for (unsigned i = 0; i < c->kind_count; i++)
        if (!strcmp(c->kinds[i].word, word))
            return &c->kinds[i];
    c->kinds[c->kind_count].word = word;
    return &c->kinds[c->kind_count++];
}

/* Whether a time is off by more than the tolerance; a share is one of `whole_ps`. */
static bool is_off(int64_t simulated_ps, int64_t measured_ps, double whole_ps)
{
    const struct tolerance *tolerance = &options_given.tolerance;
    return fabs((double)(simulated_ps - measured_ps)) > (tolerance->is_share ? tolerance->share * whole_ps : tolerance->ps);
}

/* A start is held against the time since the first one, or the command's duration if that is longer. */
static void find_divergence(struct comparison *c, const struct pair *pair, int64_t first_ps)
{
    const struct command_times *s = pair->simulated, *m = pair->measured;
    double took = m->has_took ? (double)m->took_ps : 0;
    int64_t start = measured_start(c, pair);
    bool start_off = m->has_start && is_off(s->start_ps, start, fmax((double)(start - first_ps), took));
    if (c->divergence || !(start_off || (m->has_took && s->has_took && is_off(s->took_ps, m->took_ps, took))))
        return;
    c->divergence = pair;
    c->diverges_in_start = start_off;
}

static void compare_pairs(struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct pair *pair = &c->pairs[i];
        if (pair->simulated->has_took && pair->measured->has_took)
            count_error(errors_of(c, pair), pair, pair->simulated->took_ps, pair->measured->took_ps);
        if (pair->measured->has_start)
            count_error(&c->starts, pair, pair->simulated->start_ps, measured_start(c, pair));
        find_divergence(c, pair, c->pairs[0].simulated->start_ps);
    }
}

/* ---- for people */

static const char *signed_time(double ps)
{
    const char *text = human_time((uint64_t)floor(fabs(ps) + 0.5));
    return ps < -0.5 ? arena_printf("-%s", text) : ps > 0.5 ? arena_printf("+%s", text) : text;
}

static void print_errors(FILE *out, const char *title, const struct errors *e, bool durations)
{
    double n = (double)e->count;
    const char *simulated = durations ? human_time((uint64_t)(e->simulated_ps / n)) : "";
    const char *measured = durations ? human_time((uint64_t)(e->measured_ps / n)) : "";
    const char *share = durations && e->measured_ps > 0 ? arena_printf("%+.2f %%", 100 * e->sum_ps / e->measured_ps) : "";
    fprintf(out, "%-10s %8" PRIu64 "  %11s  %11s  %11s %10s  %11s  %11s  %s\n", title, e->count, simulated, measured, signed_time(e->sum_ps / n), share,
            human_time((uint64_t)(e->absolute_ps / n)), signed_time(e->worst_ps), command_name(e->worst->simulated));
}

/* A time of the simulation's clock, which may be before its 0. */
static const char *instant(int64_t ps)
{
    return arena_printf("%s%s", ps < 0 ? "-" : "", human_time_exact((uint64_t)llabs(ps)));
}

static void print_divergence(FILE *out, const struct comparison *c)
{
    const struct pair *pair = c->divergence;
    if (!pair) {
        fprintf(out, "\nno divergence of more than %s\n", options_given.tolerance.text);
        return;
    }
    const struct command_times *s = pair->simulated, *m = pair->measured;
    const char *word = s->word ? s->word : m->word ? m->word : "command";
    fprintf(out, "\nfirst divergence of more than %s: %s, a %s; line %u of %s\n", options_given.tolerance.text, command_name(s), word, m->line,
            options_given.measured_path);
    if (m->has_start)
        fprintf(out, "  starts     %s simulated, %s measured (%s)\n", instant(s->start_ps), instant(measured_start(c, pair)),
                signed_time((double)(s->start_ps - measured_start(c, pair))));
    if (m->has_took && s->has_took)
        fprintf(out, "  takes      %s simulated, %s measured (%s)\n", human_time_exact((uint64_t)s->took_ps), human_time_exact((uint64_t)m->took_ps),
                signed_time((double)(s->took_ps - m->took_ps)));
}

static void print_comparison(FILE *out, const struct comparison *c)
{
    fprintf(out, "%s on %s against %s: %zu commands", printable(options_given.simulated_path), kb_machine_name,
            printable(options_given.measured_path), c->count);
    if (c->only_simulated)
        fprintf(out, "; %zu simulated ones were not measured", c->only_simulated);
    if (c->only_measured)
        fprintf(out, "; %zu measured ones are not in the simulation (first: line %u)", c->only_measured, c->first_only_measured->line);
    fprintf(out, "\n\n%-10s %8s  %11s  %11s  %11s %10s  %11s  %11s  %s\n", "duration", "commands", "simulated", "measured", "bias", "", "mean error",
            "worst", "at");
    for (unsigned i = 0; i < c->kind_count; i++)
        print_errors(out, c->kinds[i].word, &c->kinds[i], true);
    if (c->starts.count)
        print_errors(out, "start", &c->starts, false);
    print_divergence(out, c);
    if (c->fit)
        fit_print(c->fit, out);
}

/* ---- as JSON */

static void write_command(struct json *json, const struct command_times *s, const struct command_times *m)
{
    json_string(json, "pe", pe_name(&kb_pe[s->pe]));
    json_u64(json, "launch", s->launch);
    json_u64(json, "cmd", s->number);
    json_u64(json, "line", m->line);
}

static void write_errors(struct json *json, const char *key, const struct errors *e)
{
    double n = (double)e->count;
    json_object(json, key);
    if (e->word)
        json_string(json, "do", e->word);
    json_u64(json, "commands", e->count);
    if (e->word) {
        json_double(json, "simulated_ps", e->simulated_ps / n);
        json_double(json, "measured_ps", e->measured_ps / n);
    }
    json_double(json, "bias_ps", e->sum_ps / n);
    json_double(json, "mean_error_ps", e->absolute_ps / n);
    json_object(json, "worst");
    json_double(json, "error_ps", e->worst_ps);
    write_command(json, e->worst->simulated, e->worst->measured);
    json_object_end(json);
    json_object_end(json);
}

static void write_divergence(struct json *json, const struct comparison *c)
{
    const struct pair *pair = c->divergence;
    if (!pair) {
        json_null(json, "divergence");
        return;
    }
    const struct command_times *s = pair->simulated, *m = pair->measured;
    json_object(json, "divergence");
    write_command(json, s, m);
    json_string(json, "of", c->diverges_in_start ? "start" : "duration");
    json_double(json, "start_ps", (double)s->start_ps);
    if (m->has_start)
        json_double(json, "measured_start_ps", (double)measured_start(c, pair));
    if (m->has_took && s->has_took) {
        json_double(json, "duration_ps", (double)s->took_ps);
        json_double(json, "measured_duration_ps", (double)m->took_ps);
    }
    json_object_end(json);
}

static void write_comparison(struct json *json, void *arg)
{
    const struct comparison *c = arg;
    json_string(json, "system", kb_machine_name);
    json_string(json, "topology", kb_topology_hash);
    json_string(json, "simulated", options_given.simulated_path);
    json_string(json, "measured", options_given.measured_path);
    json_u64(json, "commands", c->count);
    json_u64(json, "only_simulated", c->only_simulated);
    json_u64(json, "only_measured", c->only_measured);
    json_double(json, "offset_ps", (double)c->offset_ps);
    json_string(json, "tolerance", options_given.tolerance.text);
    json_array(json, "durations");
    for (unsigned i = 0; i < c->kind_count; i++)
        write_errors(json, NULL, &c->kinds[i]);
    json_array_end(json);
    if (c->starts.count)
        write_errors(json, "starts", &c->starts);
    write_divergence(json, c);
    if (c->fit)
        fit_write(json, c->fit);
}

/* ---- the subcommand */

static struct tolerance parse_tolerance(const char *text)
{
    char *end;
    double share = strspn(text, "0123456789.") ? strtod(text, &end) : 0;
    if (strspn(text, "0123456789.") && !strcmp(end, "%"))
        return (struct tolerance){.is_share = true, .share = share / 100, .text = text};
    return (struct tolerance){.ps = (double)option_quantity("tolerance", text, DIMENSION_time, NULL, "5% or 100 ns"), .text = text};
}

static void add_key(const char *key)
{
    if (!strcmp(key, "none")) {
        options_given.no_fit = true;
        return;
    }
    options_given.keys = arena_grow(options_given.keys, options_given.key_count, sizeof *options_given.keys);
    options_given.keys[options_given.key_count++] = key;
}

static bool parse_align(const char *text)
{
    if (strcmp(text, "first") && strcmp(text, "none"))
        usage_error("--align %s: first or none is needed", text);
    return *text == 'f';
}

static const char *read_options(int argc, char **argv)
{
    const char *json = NULL, *tolerance = "5%";
    for (int letter; (letter = subcommand_option(&compare_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'r': options_given.stream_path = optarg; break;
        case 'b': options_given.bench = optarg; break;
        case 'f': add_key(optarg); break;
        case 't': tolerance = optarg; break;
        case 'a': options_given.aligned = parse_align(optarg); break;
        case 'c': options_given.clock_khz = option_quantity("clock", optarg, DIMENSION_clock, NULL, "1.2 GHz"); break;
        case 'j': json = optarg; break;
        case 's': fill_seed = parse_seed(optarg); break;
        default:
            if (!numbers_option(letter, optarg))
                limits_option(letter, optarg);
        }
    numbers_options_end();
    options_given.tolerance = parse_tolerance(tolerance);
    return json;
}

static bool is_stream(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
}

static void check_options(int given)
{
    if (options_given.stream_path && options_given.bench)
        usage_error("--replay and --bench are two runs; one is needed");
    if (!has_run() && options_given.key_count)
        usage_error("--fit runs the machine again and again: it needs --replay STREAM.yaml or --bench 'BENCH ...'");
    if (options_given.no_fit && options_given.key_count)
        usage_error("--fit none is given beside a fit");
    if (given < 1 || given > 2 || (given == 1 && !has_run()))
        usage_error("compare needs what was simulated and what was measured: compare SIMULATED MEASURED; or, with --replay or --bench, what was measured");
}

static void read_simulated(struct command_list *list, const char *path)
{
    if (path) {
        command_list_read(list, source_given(path), options_given.clock_khz);
        errors_end();
    }
    if (!has_run())
        return;
    struct command_list run = {0};
    if (!run_machine(NULL, &run))
        run_failed("%s does not end well as it is: nothing is compared", options_given.simulated_path);
    bool differs = path && run.count != list->count;
    for (size_t i = 0; path && !differs && i < run.count; i++)
        differs = run.at[i].start_ps != list->at[i].start_ps || run.at[i].took_ps != list->at[i].took_ps;
    if (differs)
        message("%s: %s is of another run or machine than the one that is run now; the fit begins with the latter\n", program_name, path);
    if (!path || (differs && !options_given.no_fit)) {
        array_free(list);
        *list = run;
    } else {
        array_free(&run);
    }
}

static int compare_main(int argc, char **argv)
{
    struct command_list simulated = {0}, measured = {0};
    const char *json = read_options(argc, argv), *path = NULL;
    int given = argc - optind;
    if (given == 2 && is_stream(argv[optind]) && !has_run())
        options_given.stream_path = argv[optind];
    else if (given == 2)
        path = argv[optind];
    check_options(given);
    options_given.measured_path = argv[argc - 1];
    options_given.simulated_path = path ? path : options_given.bench ? options_given.bench : options_given.stream_path;
    if (has_run())
        prepare_run();
    struct output output = {0};
    if (json)
        output = output_open(json);
    read_simulated(&simulated, path);
    const struct source *log = source_given(options_given.measured_path);
    struct comparison c = {.simulated = &simulated, .measured = &measured};
    command_list_read_measured(&measured, log, options_given.clock_khz, &simulated, options_given.stream ? find_id : NULL);
    if (!error_count())
        join(&c, log);
    errors_end();
    if (!c.count)
        usage_error("%s has no command of %s", options_given.measured_path, options_given.simulated_path);
    align(&c);
    compare_pairs(&c);
    if (has_run() && !options_given.no_fit)
        c.fit = fit_constants(run_machine, &simulated, &measured, options_given.keys, options_given.key_count);
    numbers_put(NULL);
    if (!json || strcmp(json, "-"))
        print_comparison(stdout, &c);
    if (json)
        json_write_output(&output, write_comparison, &c);
    return STATUS_GOOD;
}
