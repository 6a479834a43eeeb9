/* search.c: `kbgen search`: takes points from a method, has them evaluated, tells how far it is. */
#include "search.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/command_line.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/processors.h"
#include "../build/compiler.h"
#include "../build/timing.h"
#include "../options.h"
#include "ask.h"
#include "evaluator.h"
#include "merge.h"
#include "method.h"
#include "node_copy.h"
#include "repeat.h"
#include "shard.h"
#include "slurm.h"

static int search_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'o', "output", "NAME.db", "the store (the name of the space file, with .db, in the current folder)"},
    {'j', "jobs", "N", "run N simulators at a time (one per processor)"},
    {'m', "method", "METHOD", "instead of the file's: grid, random, \"{name: nsga2, population: 32}\""},
    {'p', "points", "N", "instead of the file's budget: end after that number of points"},
    {'H', "hours", "H", "instead of the file's budget: end after that time"},
    {'s', "seed", "N", "instead of the file's"},
    {'t', "point-timeout", "TIME", "end a run of a point after this host time, such as 30 s (600 s; 0 s: never)"},
    {'M', "mem-limit", "SIZE", "end a run of a point when its simulator has more memory than this, such as 2 GiB"},
    {'S', "shard", "I/N", "only the points whose number leaves remainder I, of N parts, to NAME.I-of-N.db beside the store;\n"
                          "auto, auto/N: the part of this task of a job array (Slurm, LSF, Kubernetes ...)"},
    {'e', "engine", "ENGINE: slurm", "slurm: as jobs of Slurm instead of processes of this host"},
    {'T', "tasks", "N", "of the array of jobs (16)"},
    {'b', "sbatch", "WORDS", "further options for sbatch, such as \"--partition=x --time=1:00:00\""},
    {'d', "dry-run", NULL, "print the scripts and commands of --engine and stop"},
    {'c', "node-copies", NULL, "run copies of the simulators in $SLURM_TMPDIR, or $TMPDIR: tasks do not read a shared disk"},
    {'v', "verify-best", "N", "at the end, run the N best points once more with verified data; of a command stream, with every event"},
    {0},
};

const struct subcommand search_subcommand = {
    "search", "SPACE.yaml", "searches a space of machines and keeps every result in a store",
    "Searches a space of machines and runs, as a space file describes it, and keeps every result in a store. The\n"
    "same command again goes on where it was. `front`, `point` and `report` read a store, also while a search runs.",
    options, search_main,
};

enum { FRUITLESS_MOST = 3, PLANNED_MOST = 4000000, WINDOW = 4096, WAIT_MS = 200, PROGRESS_MS = 200 };

struct given {
    const char *path, *store, *method, *time_limit, *memory_limit, *engine, *sbatch, *tasks;
    size_t jobs, verified;
    uint64_t points, seed;
    struct shard shard;
    double hours, patience_s;
    bool has_seed, is_dry, copies;
};

/* A trial that no other one is better than in all objectives. */
struct best {
    uint64_t number;
    char hash[33];
    double *objectives;
};

struct count {
    const char *status;
    uint64_t count;
};

enum { STORED = 1, TOLD };                              /* TOLD: the method has its evaluation as well */

static struct {
    struct given given;
    struct space *space;
    struct method_space *method_space;
    struct method *method;
    struct evaluator *evaluator;
    bool by_batches;                                    /* the method is told evaluations */
    uint64_t next, limit;                               /* numbers */
    unsigned char *stored;                              /* by number: what is known of trials that the store had */
    uint64_t stored_room, news;                         /* news: how many those are */
    uint64_t total, done, known, run;                   /* trials; METHOD_ENDLESS: not known; run: simulated by this search */
    struct count *counts;                               /* by status */
    size_t count_count;
    struct best *front;
    size_t front_count;
    double began_ms, shown_ms;
    bool stops;
} search;

/* ---- options */

static double seconds(const char *option, const char *text)
{
    return (double)option_quantity(option, text, DIMENSION_time, "s", "30 s") * 1e-12;
}

static const char *size_text(const char *option, const char *text)
{
    if (!option_quantity(option, text, DIMENSION_size, "B", "2 GiB"))
        usage_error("--%s %s: a limit must not be 0", option, text);
    return text;
}

static double hours(const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(number > 0))
        usage_error("--hours takes a number above 0; not '%s'", text);
    return number;
}

/* "llama.db" of "studies/llama.yaml". */
static const char *default_store(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    if (!strcmp(path, "-"))
        return "space.db";
    return arena_printf("%s.db", arena_text(name, dot && dot != name ? (size_t)(dot - name) : strlen(name)));
}

/* The driver of an engine evaluates no part itself. */
static void check_engine(struct given *given)
{
    if (!given->engine && (given->tasks || given->sbatch || given->is_dry))
        usage_error("--tasks, --sbatch and --dry-run need --engine slurm");
    if (!given->engine)
        return;
    if (strcmp(given->engine, "slurm"))
        usage_error("--engine takes slurm; not '%s'; other engines run kbgen search with --shard auto", given->engine);
    if (given->shard.count > 1)
        usage_error("--engine and --shard: a shard is what a task of the engine evaluates");
    if (!strcmp(given->path, "-"))
        usage_error("--engine slurm needs a space file that its tasks can read; not standard input");
    uint64_t tasks = given->tasks ? option_whole("tasks", given->tasks, 1, 100000) : 16;
    given->shard = (struct shard){tasks, tasks};
}

static struct given read_options(int argc, char **argv)
{
    struct given given = {.jobs = processor_count(), .patience_s = 600, .time_limit = "600 s", .shard = {0, 1}};
    for (int letter; (letter = subcommand_option(&search_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'o': given.store = optarg; break;
        case 'j': given.jobs = option_whole("jobs", optarg, 1, 1024); break;
        case 'm': given.method = optarg; break;
        case 'p': given.points = option_whole("points", optarg, 1, UINT64_MAX >> 1); break;
        case 'H': given.hours = hours(optarg); break;
        case 's': given.seed = option_whole("seed", optarg, 0, UINT64_MAX), given.has_seed = true; break;
        case 't': given.patience_s = seconds("point-timeout", optarg), given.time_limit = optarg; break;
        case 'M': given.memory_limit = size_text("mem-limit", optarg); break;
        case 'S': given.shard = shard_read(optarg); break;
        case 'e': given.engine = optarg; break;
        case 'T': given.tasks = optarg; break;
        case 'b': given.sbatch = optarg; break;
        case 'd': given.is_dry = true; break;
        case 'c': given.copies = true; break;
        default: given.verified = option_whole("verify-best", optarg, 1, 1000000); break;
        }
    given.path = subcommand_argument(&search_subcommand, argc, argv, "one space file");
    if (!given.store)
        given.store = default_store(given.path);
    if (!*given.store)
        usage_error("-o: the store needs a name");
    check_engine(&given);
    return given;
}

static void read_space(const struct given *given)
{
    struct space *space = search.space = space_read(given->path, given->method);
    if (!space)
        errors_end();
    if (given->has_seed)
        space->seed = given->seed;
    if (given->points || given->hours > 0) {
        space->budget_points = given->points;
        space->budget_hours = given->hours;
    }
    space_check_budget(space);
    errors_end();
    search.method_space = method_space_of(space);
    errors_end();
    enum method_name name = space->method.name;
    if (name == METHOD_ask && given->shard.count > 1)
        usage_error("--method ask: the program that asks shares its points out, so there is no --shard and no --engine");
    if (name == METHOD_ask)
        return;
    search.by_batches = method_orders[name] == ORDER_BY_BATCHES;
    search.method = method_begin(search.method_space);
}

/* ---- what has become of trials */

static void count_status(const char *status)
{
    for (size_t i = 0; i < search.count_count; i++)
        if (!strcmp(search.counts[i].status, status)) {
            search.counts[i].count++;
            return;
        }
    arena_keep_begin();
    search.counts = arena_grow(search.counts, search.count_count, sizeof *search.counts);
    search.counts[search.count_count++] = (struct count){arena_text(status, strlen(status)), 1};
    arena_keep_end();
}

static uint64_t count_of(const char *status)
{
    for (size_t i = 0; i < search.count_count; i++)
        if (!strcmp(search.counts[i].status, status))
            return search.counts[i].count;
    return 0;
}

/* Whether `a` is as good as `b` in all objectives. */
static bool covers(const double *a, const double *b)
{
    for (size_t i = 0; i < search.space->objective_count; i++)
        if (!(a[i] <= b[i]))
            return false;
    return true;
}

/* Of equals, the trial of the least number stays. */
static void add_to_front(uint64_t number, const char *hash, const double *objectives)
{
    size_t count = search.space->objective_count, kept = 0;
    for (size_t i = 0; i < search.front_count; i++)
        if (covers(search.front[i].objectives, objectives)
            && (search.front[i].number < number || !covers(objectives, search.front[i].objectives)))
            return;
    for (size_t i = 0; i < search.front_count; i++) {
        if (covers(objectives, search.front[i].objectives))
            free(search.front[i].objectives);
        else
            search.front[kept++] = search.front[i];
    }
    search.front_count = kept + 1;
    search.front = realloc(search.front, search.front_count * sizeof *search.front);
    double *copy = malloc((count + 1) * sizeof *copy);
    if (!search.front || !copy)
        die("out of memory");
    memcpy(copy, objectives, count * sizeof *copy);
    search.front[kept].objectives = copy;
    search.front[kept].number = number;
    snprintf(search.front[kept].hash, sizeof search.front[kept].hash, "%s", hash);
}

static void ended(const struct result *result, void *arg)
{
    (void)arg;
    bool is_good = !strcmp(result->status, "ok");
    search.done++;
    search.run += result->hash && !result->is_known;
    search.known += result->is_known;
    count_status(result->status);
    if (is_good && method_is_result(search.method, result->levels))
        add_to_front(result->number, result->hash, result->judgement->objectives);
    if (!search.by_batches)
        return;
    if (result->number < search.stored_room)
        search.stored[result->number] = TOLD;
    method_tell(search.method, result->number, &(struct evaluation){
            .failed = !is_good && (!result->judgement || !result->judgement->violated),
            .violated = result->judgement ? result->judgement->violated : 0,
            .objectives = is_good ? result->judgement->objectives : NULL});
}

/* A trial that the store has: the same as one that ends, without its evaluation. */
static void found(const struct stored_trial *trial, void *arg)
{
    (void)arg;
    const struct space *space = search.space;
    if (trial->number >= search.limit)
        return;
    if (trial->number >= search.stored_room) {
        uint64_t room = 2 * trial->number + 1024;
        search.stored = realloc(search.stored, room);
        if (!search.stored)
            die("out of memory");
        memset(search.stored + search.stored_room, 0, room - search.stored_room);
        search.stored_room = room;
    }
    if (search.stored[trial->number])
        return;                                         /* it was found before */
    search.stored[trial->number] = STORED;
    search.news++;
    if (search.by_batches)
        return;                                         /* it will be evaluated again, for the method */
    search.done++;
    search.known++;
    count_status(trial->status);
    if (strcmp(trial->status, "ok"))
        return;
    double *objectives = arena_alloc(space->objective_count, sizeof *objectives);
    for (size_t i = 0; i < space->objective_count; i++) {
        const struct sql_value *value = &trial->values[i];
        double number = value->type == SQL_INTEGER ? (double)value->integer : value->real;
        objectives[i] = space->objectives[i].largest ? -number : number;
    }
    add_to_front(trial->number, trial->hash, objectives);
}

/* ---- the loop */

static void set_limit(void)
{
    uint64_t all = method_total(search.method), budget = search.space->budget_points;
    search.limit = budget && budget < all ? budget : all;
    struct shard shard = search.given.shard;
    if (search.limit == METHOD_ENDLESS || (search.by_batches && shard.count > 1))
        search.total = METHOD_ENDLESS;
    else if (shard.index == shard.count)
        search.total = search.limit;
    else
        search.total = search.limit / shard.count + (shard.index < search.limit % shard.count);
    if (search.limit == METHOD_ENDLESS && !(search.space->budget_hours > 0))
        usage_error("%s: the method has no end, and there is no budget of points or hours", search.given.path);
}

static void read_stored(void)
{
    const struct space *space = search.space;
    struct evaluator_store store = evaluator_store(search.evaluator);
    const char **names = arena_alloc(space->objective_count + 1, sizeof *names);
    for (size_t i = 0; i < space->objective_count; i++)
        names[i] = space->objectives[i].name;
    if (!search.by_batches || search.given.shard.count > 1)
        store_trials(store.store, store.search, names, space->objective_count, found, NULL);
}

/* Whether this process evaluates a trial. Of other shards, it evaluates again what is stored, if the method has to be told. */
static bool is_taken(uint64_t number)
{
    unsigned char stored = number < search.stored_room ? search.stored[number] : 0;
    return stored ? search.by_batches && stored != TOLD : number % search.given.shard.count == search.given.shard.index;
}

/* The numbers below this one can be computed now, and are asked for. */
static uint64_t known_limit(void)
{
    uint64_t known = method_known(search.method), total = method_total(search.method);
    known = known < total ? known : total;
    return known < search.limit ? known : search.limit;
}

/* Begins the next trial. Returns false if there is none now. */
static bool begin_next(uint32_t *levels)
{
    uint64_t limit = known_limit();
    while (search.next < limit && !is_taken(search.next))
        search.next++;
    if (search.next >= limit)
        return false;
    method_point(search.method, search.next, levels);
    evaluator_add(search.evaluator, search.next++, levels);
    return true;
}

static const char *duration(double s)
{
    return s < 60 ? arena_printf("%.0f s", s) : s < 3600 ? arena_printf("%.0f min", s / 60) : arena_printf("%.1f h", s / 3600);
}

static const char *number_text(double number)
{
    return arena_printf(number == (double)(int64_t)number ? "%.0f" : "%.6g", number);
}

/* "end_ps 487200000 area_mm2 612.4" of the first of the front. */
static const char *best_text(void)
{
    const char *text = "";
    for (size_t i = 0; search.front_count && i < search.space->objective_count; i++) {
        const struct objective *objective = &search.space->objectives[i];
        double number = search.front[0].objectives[i];
        text = arena_printf("%s%s%s %s", text, i ? " " : "", objective->name, number_text(objective->largest ? -number : number));
    }
    return text;
}

static uint64_t failures(void)
{
    uint64_t all = 0;
    for (size_t i = 0; i < search.count_count; i++)
        all += search.counts[i].count;
    return all - count_of("ok") - count_of("infeasible");
}

static const char *time_left(double rate)
{
    double spent_s = (now_ms() - search.began_ms) / 1e3, left_s = search.space->budget_hours * 3600 - spent_s;
    double points_s = search.total != METHOD_ENDLESS && rate > 0 ? (double)(search.total - search.done) / rate : -1;
    if (search.space->budget_hours > 0 && (points_s < 0 || left_s < points_s))
        points_s = left_s;
    return points_s >= 0 ? arena_printf(", %s left", duration(points_s)) : "";
}

/* The line of a terminal: how far the search is. */
static void show_progress(bool last)
{
    if (!isatty(STDERR_FILENO) || (!last && now_ms() - search.shown_ms < PROGRESS_MS))
        return;
    struct arena_mark mark = arena_mark();
    struct winsize size = {0};
    search.shown_ms = now_ms();
    double rate = (double)(search.done - search.known) / ((search.shown_ms - search.began_ms) / 1e3);
    struct simulators_load load = evaluator_load(search.evaluator);
    const char *of = search.total == METHOD_ENDLESS ? "" : arena_printf(" / %" PRIu64, search.total);
    const char *best = !search.front_count ? "" : search.space->objective_count == 1 ? arena_printf(", best %s", best_text())
                     : arena_printf(", front of %zu", search.front_count);
    const char *work = load.builds ? arena_printf(", %zu builds", load.builds) : "";
    const char *line = arena_printf("%" PRIu64 "%s points, %.1f/s, %" PRIu64 " failed%s%s; %zu simulators with %zu runs%s%s",
                                    search.done, of, rate, failures(), best, time_left(rate), load.processes, load.running,
                                    work, search.stops ? ", ending" : "");
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col - 1 : 79;
    fprintf(stderr, "\r\033[K%.*s%s", columns, last ? "" : line, "");
    arena_release(mark);
}

static sigset_t end_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

static int signals_begin(void)
{
    sigset_t set = end_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    int file = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (file < 0)
        die("watch signals:");
    return file;
}

/* Returns the signal that has come, or 0. */
static int signal_of(int file)
{
    struct signalfd_siginfo info;
    return read(file, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

static bool is_over_time(void)
{
    double h = search.space->budget_hours;
    return h > 0 && now_ms() - search.began_ms > h * 3600e3;
}

/* Evaluates all points. Returns the signal that has ended it, or 0. */
static int run_points(void)
{
    uint32_t *levels = arena_alloc(search.space->axis_count + 1, sizeof *levels);
    int signals = signals_begin(), ended_by = 0;
    for (;;) {
        while (!search.stops && evaluator_pending(search.evaluator) < WINDOW && begin_next(levels))
            continue;
        if (!evaluator_pending(search.evaluator))
            break;
        evaluator_turn(search.evaluator, signals, WAIT_MS);
        int signal = signal_of(signals);
        if (signal && ended_by)
            break;                                      /* at once */
        if (signal)
            ended_by = signal;
        search.stops |= signal || is_over_time();
        if (search.stops && !evaluator_drains(search.evaluator))
            break;
        show_progress(false);
    }
    show_progress(true);
    evaluator_flush(search.evaluator);
    close(signals);
    return ended_by;
}

/* ---- the end */

static void print_summary(void)
{
    printf("%s: %" PRIu64, search.given.store, search.done);
    if (search.total != METHOD_ENDLESS)
        printf(" of %" PRIu64, search.total);
    printf(" points: %" PRIu64 " ok, %" PRIu64 " infeasible, %" PRIu64 " failed; %" PRIu64 " were known, %" PRIu64 " run\n",
           count_of("ok"), count_of("infeasible"), failures(), search.known, search.run);
    for (size_t i = 0; i < search.count_count; i++)
        if (strcmp(search.counts[i].status, "ok") && strcmp(search.counts[i].status, "infeasible"))
            printf("failed  %" PRIu64 " %s\n", search.counts[i].count, search.counts[i].status);
    if (search.space->objective_count == 1 && search.front_count)
        printf("best    %s  %s\n", best_text(), search.front[0].hash);
    else if (search.front_count)
        printf("front   %zu points: kbgen front %s\n", search.front_count, repeat_quoted(search.given.store));
}

static bool is_result(const uint32_t *levels, const void *method)
{
    return method_is_result(method, levels);
}

/* The hashes of the best points; of several objectives, of points of the front. */
static size_t best_points(const char **hashes, size_t most)
{
    const struct objective *objective = search.space->objectives;
    struct evaluator_store store = evaluator_store(search.evaluator);
    if (search.space->objective_count == 1)
        return store_best(store.store, store.search, objective->name, objective->largest,
                          &(struct store_filter){search.space->axis_count, is_result, search.method}, hashes, most);
    size_t count = search.front_count < most ? search.front_count : most;
    for (size_t i = 0; i < count; i++)
        hashes[i] = search.front[i].hash;
    return count;
}

/* Verifies the best points. Returns whether all are right. All points are stored by now: a signal ends it at once. */
static bool verify_best(void)
{
    sigset_t signals = end_signals();
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    const char **hashes = arena_alloc(search.given.verified, sizeof *hashes);
    size_t wrong = 0, count = best_points(hashes, search.given.verified);
    for (size_t i = 0; i < count; i++)
        wrong += !evaluator_verify(search.evaluator, hashes[i]);
    printf("verified  %zu points: %zu right, %zu not\n", count, count - wrong, wrong);
    return !wrong;
}

/* ---- on an engine */

/* The options of this command that its tasks need, as a shell reads them. */
static const char *task_options(const struct given *given)
{
    const char *text = "";
    if (given->method)
        text = arena_printf("%s --method %s", text, repeat_quoted(given->method));
    if (given->points)
        text = arena_printf("%s --points %" PRIu64, text, given->points);
    if (given->hours > 0)
        text = arena_printf("%s --hours %.17g", text, given->hours);
    if (given->has_seed)
        text = arena_printf("%s --seed %" PRIu64, text, given->seed);
    if (given->time_limit)
        text = arena_printf("%s --point-timeout %s", text, repeat_quoted(given->time_limit));
    if (given->memory_limit)
        text = arena_printf("%s --mem-limit %s", text, repeat_quoted(given->memory_limit));
    if (given->copies)
        text = arena_printf("%s --node-copies", text);
    return text;
}

/* The tasks that have to evaluate something now. */
static struct slurm_round next_round(uint64_t *tasks, unsigned char *has_work)
{
    uint64_t count = search.given.shard.count, limit = known_limit(), missing = 0;
    struct slurm_round round = {tasks, 0};
    memset(has_work, 0, count);
    for (uint64_t number = search.by_batches ? method_first(search.method) : 0; number < limit && missing < count; number++)
        if (number >= search.stored_room || !search.stored[number]) {
            missing += !has_work[number % count];
            has_work[number % count] = 1;
        }
    for (uint64_t i = 0; i < count; i++)
        if (has_work[i])
            tasks[round.count++] = i;
    return round;
}

/* Reads what the store has by now. Returns a signal that has come, or 0. */
static int catch_up(void)
{
    read_stored();
    if (!search.by_batches)
        return 0;
    search.next = method_first(search.method);
    return run_points();
}

/* Builds the simulators that the trials of a round need, so that no two tasks build the same one. Returns a signal that has
 * come, or 0. */
static int build_round(int signals)
{
    uint32_t *levels = arena_alloc(search.space->axis_count + 1, sizeof *levels);
    uint64_t first = search.by_batches ? method_first(search.method) : 0, limit = known_limit();
    for (uint64_t number = first; number < limit && number - first < PLANNED_MOST; number++)
        if (number >= search.stored_room || !search.stored[number]) {
            method_point(search.method, number, levels);
            evaluator_prepare(search.evaluator, levels);
        }
    struct simulators_load load;
    while (load = evaluator_load(search.evaluator), load.builds + load.unbuilt > 0) {
        evaluator_turn(search.evaluator, signals, WAIT_MS);
        int signal = signal_of(signals);
        if (signal)
            return signal;
        show_progress(false);
    }
    show_progress(true);
    return 0;
}

/* Submits round after round until the store has all points. A controller that was killed may have lost its jobs, so a round
 * without a new point is tried again. Returns the signal that has ended it, or 0. */
static int run_rounds(const struct slurm *slurm)
{
    uint64_t *tasks = arena_alloc(slurm->tasks, sizeof *tasks), before = UINT64_MAX;
    unsigned char *has_work = arena_alloc(slurm->tasks, 1);
    unsigned fruitless = 0;
    int signals = signals_begin(), ended_by = 0;
    slurm_prepare(slurm);
    while (!ended_by && !is_over_time() && !(ended_by = catch_up())) {
        struct slurm_round round = next_round(tasks, has_work);
        if (!round.count)
            break;
        fruitless = search.news == before ? fruitless + 1 : 0;
        if (fruitless == FRUITLESS_MOST)
            die("the last jobs have stored no point; %s.slurm has their logs", slurm->store);
        before = search.news;
        ended_by = build_round(signals);
        if (!ended_by)
            ended_by = slurm_run(slurm, &round, signals);
        if (ended_by)
            read_stored();
    }
    close(signals);
    return ended_by;
}

static int search_main(int argc, char **argv)
{
    search.given = read_options(argc, argv);
    struct given *given = &search.given;
    signal(SIGPIPE, SIG_IGN);                           /* of a simulator that has ended */
    read_space(given);
    enum method_name method = search.space->method.name;
    const char *store = absolute_path(given->store);
    struct slurm slurm = {absolute_path(given->path), store, task_options(given), given->sbatch, given->shard.count};
    bool is_shard = given->shard.count > 1 && !given->engine;
    if (is_shard)
        given->store = shard_store(given->store, given->shard);
    struct evaluator_options evaluator = {
        .space = search.space, .store = given->store, .is_shard = given->shard.count > 1,
        .exact_points = method_budgets[method] == BUDGET_POINTS,
        .folder = arena_printf("%s.simulators", store), .jobs = given->jobs,
        .copies = given->copies && !given->engine ? node_copies_begin() : NULL,
        .time_limit = given->patience_s > 0 ? given->time_limit : NULL, .memory_limit = given->memory_limit,
        .patience_s = given->patience_s > 0 ? 2 * given->patience_s + 5 : 0, .ended = ended};
    if (method == METHOD_ask)
        return ask(&evaluator);
    set_limit();
    if (given->is_dry) {
        slurm_print(&slurm);
        return STATUS_GOOD;
    }
    if (search.by_batches && is_shard && access(store, F_OK) == 0)
        merge_store(given->store, store);
    search.evaluator = evaluator_begin(&evaluator);
    search.began_ms = now_ms();
    if (!given->engine)
        read_stored();
    int signal = given->engine ? run_rounds(&slurm) : run_points();
    bool is_right = signal || !search.given.verified || verify_best();
    evaluator_end(search.evaluator);
    print_summary();
    if (signal)
        fprintf(stderr, "kbgen: ended by %s; the same command goes on\n", strsignal(signal));
    return signal ? 128 + signal : is_right ? STATUS_GOOD : STATUS_RUN_FAILED;
}
