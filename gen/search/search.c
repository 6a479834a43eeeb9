/* search.c: `kbgen search`: takes points from a method, has them evaluated, tells how far it is. */
#define _GNU_SOURCE                                     /* sched_getaffinity */
#include "search.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/quantity.h"
#include "../build/compiler.h"
#include "../build/timing.h"
#include "ask.h"
#include "evaluator.h"
#include "method.h"
#include "repeat.h"

static int search_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'o', "output", "NAME.db", "the store (the name of the space file, with .db, in the current folder)"},
    {'j', "jobs", "N", "run N simulators at a time (one per processor)"},
    {'m', "method", "METHOD", "instead of the file's: grid, random, \"{name: nsga2, population: 32}\""},
    {'p', "points", "N", "instead of the file's budget: end after so many points"},
    {'H', "hours", "H", "instead of the file's budget: end after so much time"},
    {'s', "seed", "N", "instead of the file's"},
    {'t', "point-timeout", "TIME", "end a run of a point after this host time, such as 30 s (600 s; 0 s: never)"},
    {'M', "mem-limit", "SIZE", "end a run of a point when its simulator has more memory than this, such as 2 GiB"},
    {'S', "shard", "I/N", "only the points whose number leaves remainder I, of N parts"},
    {'v', "verify-best", "N", "at the end, run the N best points once more with verified data"},
    {0},
};

const struct subcommand search_subcommand = {
    "search", "SPACE.yaml", "searches a space of machines and keeps every result in a store",
    "Searches a space of machines and runs, as a space file describes it, and keeps every result in a store. The\n"
    "same command again goes on where it was. `front`, `point` and `report` read a store, also while a search runs.",
    options, search_main,
};

enum { WINDOW = 4096, WAIT_MS = 200, PROGRESS_MS = 200 };

struct given {
    const char *path, *store, *method, *time_limit, *memory_limit;
    size_t jobs, verified;
    uint64_t points, seed, shard, shards;
    double hours, patience_s;
    bool has_seed;
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

static struct {
    struct given given;
    struct space *space;
    struct method_space *method_space;
    struct method *method;
    struct evaluator *evaluator;
    bool by_batches;                                    /* the method is told evaluations */
    uint64_t next, limit;                               /* numbers */
    unsigned char *is_done;                             /* by number, of trials that the store had; NULL: by batches */
    uint64_t done_room;
    uint64_t total, done, known, run;                   /* trials; METHOD_ENDLESS: not known; run: simulated by this search */
    struct count *counts;                               /* by status */
    size_t count_count;
    struct best *front;
    size_t front_count;
    double began_ms, shown_ms;
    bool stops;
} search;

/* ---- options */

static uint64_t whole_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (!*text || *end || errno || strspn(text, "0123456789") != strlen(text) || number < least || number > most)
        usage_error("%s takes a whole number from %" PRIu64 " to %" PRIu64 "; not '%s'", option, least, most, text);
    return number;
}

/* Returns a time or a size in base units. Simulators are given the text: what they would refuse is refused here. */
static uint64_t quantity_of(const char *option, const char *text, enum dimension dimension, const char *bare, const char *example)
{
    uint64_t number = 0;
    const char *unit, *why;
    mpq_t value;
    mpq_init(value);
    why = quantity_lex(text, value, &unit);
    if (!why)
        why = quantity_scale(value, unit, dimension, unit_named(bare));
    if (why || mpq_sgn(value) < 0 || !quantity_whole(value, &number))
        usage_error("%s %s: %s is needed, such as %s%s%s", option, text, dimension_phrase[dimension], example,
                    why && *why ? "; " : "", why ? why : "");
    mpq_clear(value);
    return number;
}

static double seconds(const char *option, const char *text)
{
    return (double)quantity_of(option, text, DIMENSION_time, "s", "30 s") * 1e-12;
}

static const char *size_text(const char *option, const char *text)
{
    if (!quantity_of(option, text, DIMENSION_size, "B", "2 GiB"))
        usage_error("%s %s: a limit must not be 0", option, text);
    return text;
}

static void shard_option(struct given *given, const char *text)
{
    const char *slash = strchr(text, '/');
    if (!slash)
        usage_error("--shard takes I/N, such as 0/8; not '%s'", text);
    given->shards = whole_number("--shard", slash + 1, 1, 1000000);
    given->shard = whole_number("--shard", arena_text(text, (size_t)(slash - text)), 0, given->shards - 1);
}

static double hours(const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(number > 0))
        usage_error("--hours takes a number above 0; not '%s'", text);
    return number;
}

static size_t processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/* "llama.db" of "studies/llama.yaml". */
static const char *default_store(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    if (!strcmp(path, "-"))
        return "space.db";
    return arena_printf("%s.db", arena_text(name, dot && dot != name ? (size_t)(dot - name) : strlen(name)));
}

static struct given read_options(int argc, char **argv)
{
    struct given given = {.jobs = processors(), .patience_s = 600, .time_limit = "600 s", .shards = 1};
    for (int letter; (letter = subcommand_option(&search_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'o': given.store = optarg; break;
        case 'j': given.jobs = whole_number("-j", optarg, 1, 1024); break;
        case 'm': given.method = optarg; break;
        case 'p': given.points = whole_number("--points", optarg, 1, UINT64_MAX >> 1); break;
        case 'H': given.hours = hours(optarg); break;
        case 's': given.seed = whole_number("--seed", optarg, 0, UINT64_MAX), given.has_seed = true; break;
        case 't': given.patience_s = seconds("--point-timeout", optarg), given.time_limit = optarg; break;
        case 'M': given.memory_limit = size_text("--mem-limit", optarg); break;
        case 'S': shard_option(&given, optarg); break;
        default: given.verified = whole_number("--verify-best", optarg, 1, 1000000); break;
        }
    if (given.patience_s <= 0)
        given.time_limit = NULL;
    given.path = subcommand_argument(&search_subcommand, argc, argv, "one space file");
    if (!given.store)
        given.store = default_store(given.path);
    if (!*given.store)
        usage_error("-o: the store needs a name");
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
    for (size_t i = 0; given->verified && i < space->workload_count; i++)
        if (space->workloads[i].stream)
            usage_error("--verify-best: %s is a command stream, which has no data to verify", space->workloads[i].name);
    enum method_name name = space->method.name;
    if (name == METHOD_ask)
        return;
    search.by_batches = name == METHOD_nsga2 || name == METHOD_halving;
    if (search.by_batches && given->shards > 1)
        usage_error("--shard: the points of %s follow from one another, so they cannot be computed in parts", method_names[name]);
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
    if (search.by_batches)
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
    if (trial->number >= search.done_room) {
        uint64_t room = 2 * trial->number + 1024;
        search.is_done = realloc(search.is_done, room);
        if (!search.is_done)
            die("out of memory");
        memset(search.is_done + search.done_room, 0, room - search.done_room);
        search.done_room = room;
    }
    search.is_done[trial->number] = 1;
    if (trial->number >= search.limit)
        return;
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
    uint64_t shards = search.given.shards;
    search.total = search.limit == METHOD_ENDLESS ? METHOD_ENDLESS
                 : search.limit / shards + (search.given.shard < search.limit % shards);
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
    if (!search.by_batches)
        store_trials(store.store, store.search, names, space->objective_count, found, NULL);
}

/* Begins the next trial. Returns false if there is none now. */
static bool begin_next(uint32_t *levels)
{
    while (search.next < search.limit
           && (search.next % search.given.shards != search.given.shard
               || (search.next < search.done_room && search.is_done[search.next])))
        search.next++;
    if (search.next >= search.limit || search.next >= method_known(search.method) || search.next >= method_total(search.method))
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
    printf("verified  %zu points with data: %zu right, %zu not\n", count, count - wrong, wrong);
    return !wrong;
}

static int search_main(int argc, char **argv)
{
    search.given = read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);                           /* of a simulator that has ended */
    read_space(&search.given);
    enum method_name method = search.space->method.name;
    struct evaluator_options evaluator = {
        .space = search.space, .store = search.given.store, .is_shard = search.given.shards > 1,
        .exact_points = method == METHOD_lhs || method == METHOD_halving,
        .folder = absolute_path(arena_printf("%s.simulators", search.given.store)), .jobs = search.given.jobs,
        .time_limit = search.given.time_limit, .memory_limit = search.given.memory_limit,
        .patience_s = search.given.patience_s > 0 ? 2 * search.given.patience_s + 5 : 0, .ended = ended};
    if (method == METHOD_ask)
        return ask(&evaluator);
    set_limit();
    search.evaluator = evaluator_begin(&evaluator);
    read_stored();
    search.began_ms = now_ms();
    int signal = run_points();
    bool is_right = signal || !search.given.verified || verify_best();
    evaluator_end(search.evaluator);
    print_summary();
    if (signal)
        fprintf(stderr, "kbgen: ended by %s; the same command goes on\n", strsignal(signal));
    return signal ? 128 + signal : is_right ? STATUS_GOOD : STATUS_RUN_FAILED;
}
