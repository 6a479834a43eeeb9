/* whatif.c: `SIM whatif BENCH`: the run repeated with each number changed alone, and what that gains.
 *
 * The changes are made first, then all runs, in processes forked from this one: each takes the next change that nobody has
 * taken, and leaves its answer in memory that they share. A process that a run has ended costs that one answer. */
#include "whatif.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/human.h"
#include "base/output.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/fail.h"
#include "common/yaml.h"
#include "fastforward/fastforward.h"
#include "host/bench.h"
#include "host/param.h"
#include "limits.h"
#include "machine/emitted.h"
#include "oplog/oplog.h"
#include "process.h"
#include "replay.h"
#include "report/result.h"
#include "session/numbers.h"
#include "session/reset.h"
#include "session/simulation.h"
#include "session/stream.h"
#include "sim/loop.h"
#include "store/fill.h"

static int whatif_main(int argc, char **argv);

static const struct cli_option options[] = {
    {'b', "by", "FACTOR", "how much better each number is: 10% (the default), 2x, or inf: no limit, no time"},
    {'a', "params", NULL, "also change the parameters of the bench that are numbers, up and down"},
    {'r', "replay", "STREAM.yaml", "of a recorded command stream, in place of a bench"},
    {'j', "jobs", "N", "processes that run at a time (one per processor)"},
    {'n', "json", "FILE", "write the answer as JSON; - is standard output"},
    {'s', "seed", "N", "seed of random values (0)"},
    SET_OPTION,
    LIMIT_OPTIONS,
    {0},
};

const struct subcommand whatif_subcommand = {
    "whatif", "BENCH [NAME=VALUE ...]", "shows what each number of the machine would gain",
    "Changes each number of the topology alone, in its better direction, runs the bench again without data, and prints\n"
    "what that gains, the largest gain first. The elasticity is the share of the run's time that is proportional to the\n"
    "number: 1, and a number twice as good halves the run.",
    options, whatif_main,
};

/* ---- changes */

struct change {
    const char *name, *place;                           /* of a key; place NULL: a parameter of the bench */
    const char *value, *changed, *set;                  /* set: the change as --set or the bench takes it, NAME=VALUE */
    const struct numbers *numbers;                      /* NULL: as they are */
    struct kb_value *params;                            /* NULL: as they are */
    double share;                                       /* see struct better_key; of a parameter: its relative change */
    const char *refused;                                /* why the topology cannot have this value; NULL: it can */
};

struct changes {
    struct change *list;
    size_t count;
};

struct whatif {
    const char *by_text;
    struct better_by by;
    bool params;
    const char *stream_path;
    const struct source *stream;                        /* NULL: of a bench */
    uint64_t end_ps;                                    /* of the run as it is */
    struct changes changes;
    const char **best;                                  /* keys that cannot be any better */
    size_t best_count;
};

static struct change *add_change(struct changes *changes, struct change change)
{
    changes->list = arena_grow(changes->list, changes->count, sizeof *changes->list);
    changes->list[changes->count] = change;
    return &changes->list[changes->count++];
}

static void ignore(const char *text, void *arg)
{
    (void)text;
    (void)arg;
}

/* A topology may refuse a value because of another key; that is an answer, not an error. */
static void add_key(struct whatif *whatif, const struct better_key *key)
{
    if (!key->changed) {
        whatif->best = arena_grow(whatif->best, whatif->best_count, sizeof *whatif->best);
        whatif->best[whatif->best_count++] = key->path;
        return;
    }
    struct change *change = add_change(&whatif->changes, (struct change){
        .name = key->path, .place = key->place, .value = key->value, .changed = key->changed, .set = key->set,
        .share = key->share});
    message_set_take(ignore, NULL);
    change->numbers = numbers_of_keys(key->keys);
    message_set_take(NULL, NULL);
    if (!change->numbers)
        change->refused = errors_forget();
}

static void add_keys(struct whatif *whatif)
{
    struct better_keys keys = numbers_better(whatif->by);
    for (size_t i = 0; i < keys.count; i++)
        add_key(whatif, &keys.list[i]);
}

/* Adds a parameter times a factor, if that is another value within its bounds. */
static void add_param(struct whatif *whatif, uint32_t number, double factor)
{
    const struct kb_bench *bench = bench_current;
    const struct kb_param *param = &bench->params[number];
    struct kb_value *values = arena_alloc(bench->count, sizeof *values), *changed = &values[number];
    memcpy(values, bench_values, bench->count * sizeof *values);
    double before = param->type == KB_PARAM_REAL ? changed->real : (double)changed->number, after = before * factor;
    if (before == 0)
        return;
    if (param->type == KB_PARAM_REAL) {
        changed->real = after;
    } else {
        after = factor < 1 ? ceil(after) - (ceil(after) == before) : floor(after) + (floor(after) == before);
        if (after >= 0x1p64)                            /* before it is converted, which would be undefined */
            return;
        changed->number = (uint64_t)after;
    }
    if (before == after || !param_within(param, changed))
        return;
    add_change(&whatif->changes, (struct change){
        .name = param->name, .value = param_text(param, &bench_values[number]), .changed = param_text(param, changed),
        .set = arena_printf("%s=%s", param->name, param_text(param, changed)), .params = values, .share = after / before - 1});
}

static void add_params(struct whatif *whatif)
{
    for (uint32_t i = 0; i < bench_current->count; i++) {
        enum kb_param_type type = bench_current->params[i].type;
        if (type != KB_PARAM_INT && type != KB_PARAM_SIZE && type != KB_PARAM_REAL)
            continue;
        add_param(whatif, i, whatif->by.down);
        add_param(whatif, i, whatif->by.up);
    }
}

/* ---- runs */

enum { WHY_ROOM = 200 };

/* Of a run with a change, in memory that all processes share. */
struct answer {
    bool ended;
    bool refused;                                       /* the stream cannot be run on the changed machine */
    int status;
    uint64_t end_ps;
    char why[WHY_ROOM];
};

struct board {
    uint64_t next;                                      /* the change that is to be taken next */
    struct answer answers[];
};

static int run_bench(uint64_t *end_ps)
{
    struct host_times times = {0};
    int status = simulation_run(clock_seconds(), &limits, &times);
    *end_ps = sim_now_ps();
    return status;
}

/* Reads the stream for the machine as it is now. Returns NULL if that cannot run it. */
static const struct command_stream *read_stream(const struct whatif *whatif)
{
    message_set_take(ignore, NULL);
    const struct command_stream *stream = stream_of(whatif->stream);
    message_set_take(NULL, NULL);
    return stream;
}

/* The run without changes. Returns the exit status. */
static int run_unchanged(struct whatif *whatif)
{
    if (!whatif->stream)
        return run_bench(&whatif->end_ps);
    const struct command_stream *stream = stream_of(whatif->stream);
    errors_end();
    return replay_run(stream, &whatif->end_ps);
}

/* Keeps a text, or its beginning in whole characters of UTF-8 with dots behind it. */
static void keep_why(char why[WHY_ROOM], const char *text)
{
    static const char dots[] = "...";
    size_t length = strlen(text), most = WHY_ROOM - sizeof dots;
    if (length < WHY_ROOM) {
        memcpy(why, text, length + 1);
        return;
    }
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    memcpy(why, text, most);
    memcpy(why + most, dots, sizeof dots);
}

/* Replays the stream, which is read again: what it says may depend on the numbers. */
static const char *answer_of_stream(const struct whatif *whatif, struct answer *answer)
{
    const struct command_stream *stream = read_stream(whatif);
    answer->refused = !stream;
    if (!stream)
        return errors_forget();
    answer->status = replay_run(stream, &answer->end_ps);
    return replay_error();
}

static const char *answer_of_bench(const struct change *change, struct answer *answer)
{
    struct kb_value *params = bench_values;
    if (change->params)
        bench_values = change->params;
    answer->status = run_bench(&answer->end_ps);
    bench_values = params;
    return simulation_error();
}

static void answer(const struct whatif *whatif, const struct change *change, struct answer *answer)
{
    struct arena_mark mark = arena_mark();
    numbers_put(change->numbers);
    const char *why = whatif->stream ? answer_of_stream(whatif, answer) : answer_of_bench(change, answer);
    keep_why(answer->why, why ? why : "");
    simulator_reset();
    arena_release(mark);
    answer->ended = true;
}

static bool is_of_signal(int status)
{
    return status == 128 + SIGINT || status == 128 + SIGTERM;
}

/* Returns the exit status of the process: that of a run which a signal has ended, so that no other one begins. */
static int work(const struct whatif *whatif, struct board *board)
{
    const struct changes *changes = &whatif->changes;
    for (uint64_t i; (i = __atomic_fetch_add(&board->next, 1, __ATOMIC_RELAXED)) < changes->count;) {
        if (changes->list[i].refused || board->answers[i].ended)
            continue;
        answer(whatif, &changes->list[i], &board->answers[i]);
        if (is_of_signal(board->answers[i].status))
            return board->answers[i].status;
    }
    return STATUS_GOOD;
}

/* Starts as many processes as there may be, and waits for all. A signal that ends one of them ends this one, and that
 * ends the others (process_fork). */
static void work_together(const struct whatif *whatif, struct board *board)
{
    fflush(stdout);
    for (unsigned i = 0; i < thread_count; i++) {
        pid_t child = process_fork();
        if (child < 0)
            die("cannot fork:");
        if (child == 0)
            _exit(work(whatif, board));
    }
    for (;;) {
        int ended = 0;
        if (wait(&ended) < 0 && errno != EINTR)
            return;
        int status = WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
        if (is_of_signal(status))
            fail_exit(status);
    }
}

static const struct board *all_answers(const struct whatif *whatif)
{
    size_t count = whatif->changes.count;
    size_t bytes = sizeof(struct board) + count * sizeof(struct answer);
    struct board *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        die("out of memory for %zu bytes:", bytes);
    for (size_t i = 0; i < count; i++)                  /* what the run has not read changes nothing */
        if (whatif->changes.list[i].numbers && !numbers_matter(whatif->changes.list[i].numbers))
            board->answers[i] = (struct answer){.ended = true, .status = STATUS_GOOD, .end_ps = whatif->end_ps};
    while (board->next < count)                         /* again if runs have ended all processes */
        work_together(whatif, board);
    return board;
}

/* ---- the table */

struct row {
    const struct change *change;
    const struct answer *answer;
    size_t number;
    double gain;                                        /* share of the time that it saves */
    double elasticity;
};

struct table {
    struct row *rows;                                   /* those that changed the time, by gain */
    size_t rows_count;
    const struct change **same, **failed;               /* those that did not; those that could not be run, */
    const char **why;                                   /* and why */
    bool *refused;                                      /* of these: the topology or the stream cannot have the value */
    size_t same_count, failed_count;
};

static int by_gain(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->answer->end_ps != y->answer->end_ps)
        return x->answer->end_ps < y->answer->end_ps ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static const char *why_failed(const struct change *change, const struct answer *answer)
{
    if (change->refused)
        return change->refused;
    if (!answer->ended)
        return "the run has ended its process";
    return *answer->why ? answer->why : arena_printf("the run failed, status %d", answer->status);
}

static struct table make_table(const struct whatif *whatif, const struct board *board)
{
    const struct changes *changes = &whatif->changes;
    struct table table = {.rows = arena_alloc(changes->count + 1, sizeof *table.rows),
                          .same = arena_alloc(changes->count + 1, sizeof *table.same),
                          .failed = arena_alloc(changes->count + 1, sizeof *table.failed),
                          .why = arena_alloc(changes->count + 1, sizeof *table.why),
                          .refused = arena_alloc(changes->count + 1, sizeof *table.refused)};
    for (size_t i = 0; i < changes->count; i++) {
        const struct change *change = &changes->list[i];
        const struct answer *of = &board->answers[i];
        if (change->refused || !of->ended || of->refused || of->status != STATUS_GOOD) {
            table.why[table.failed_count] = why_failed(change, of);
            table.refused[table.failed_count] = change->refused || of->refused;
            table.failed[table.failed_count++] = change;
        } else if (of->end_ps == whatif->end_ps) {
            table.same[table.same_count++] = change;
        } else {
            double gain = 1 - (double)of->end_ps / (double)whatif->end_ps;
            table.rows[table.rows_count++] = (struct row){change, of, i, gain,
                                                          (change->place ? gain : -gain) / change->share};
        }
    }
    qsort(table.rows, table.rows_count, sizeof *table.rows, by_gain);
    return table;
}

static int64_t change_ps(const struct whatif *whatif, const struct row *row)
{
    return (int64_t)(row->answer->end_ps - whatif->end_ps);
}

static void print_table(const struct whatif *whatif, const struct table *table, FILE *out)
{
    fprintf(out, "%s on %s: %s simulated; what it gains if each number is better by %s\n",
            whatif->stream ? whatif->stream_path : bench_current->name, kb_machine_name, human_time(whatif->end_ps),
            whatif->by_text);
    if (table->rows_count)
        fprintf(out, "\n%9s %16s %10s  %-12s    %-12s  %-18s %s\n", "end", "end in ps", "elasticity", "value", "changed",
                "place", "key");
    for (size_t i = 0; i < table->rows_count; i++) {
        const struct row *row = &table->rows[i];
        const struct change *c = row->change;
        fprintf(out, "%+7.2f %% %+16" PRId64 " %10.3f  %-12s -> %-12s  %-18s %s\n", -100 * row->gain,
                change_ps(whatif, row), row->elasticity, c->value, c->changed, c->place ? c->place : "parameter", c->name);
    }
    for (size_t i = 0; i < table->failed_count; i++) {
        const struct change *c = table->failed[i];
        fprintf(out, "%s%-10s %s: %s -> %s: %s\n", i ? "" : "\n", table->refused[i] ? "refused" : "fails", c->name, c->value,
                c->changed, table->why[i]);
    }
    if (table->same_count)
        fprintf(out, "\nno change ");
    for (size_t i = 0; i < table->same_count; i++)
        fprintf(out, "%s %s", i ? "," : "", table->same[i]->name);
    if (whatif->best_count)
        fprintf(out, "%s\nbest already ", table->same_count ? "" : "\n");
    for (size_t i = 0; i < whatif->best_count; i++)
        fprintf(out, "%s %s", i ? "," : "", whatif->best[i]);
    fputs(table->same_count || whatif->best_count ? "\n" : "", out);
}

/* ---- as JSON */

struct result {
    const struct whatif *whatif;
    const struct table *table;
};

static void write_change(struct json *json, const struct change *change)
{
    json_string(json, change->place ? "key" : "param", change->name);
    if (change->place)
        json_string(json, "place", change->place);
    json_string(json, "value", change->value);
    json_string(json, "changed", change->changed);
    json_string(json, "set", change->set);
}

static void write_result(struct json *json, void *arg)
{
    const struct whatif *whatif = ((const struct result *)arg)->whatif;
    const struct table *table = ((const struct result *)arg)->table;
    json_string(json, "system", kb_machine_name);
    json_string(json, "topology", kb_topology_hash);
    if (whatif->stream) {
        json_string(json, "stream", whatif->stream_path);
    } else {
        json_string(json, "bench", bench_current->name);
        bench_write_params(json, "params");
        json_u64(json, "seed", fill_seed);
    }
    json_string(json, "by", whatif->by_text);
    json_u64(json, "end_ps", whatif->end_ps);
    json_array(json, "changes");
    for (size_t i = 0; i < table->rows_count; i++) {
        const struct row *row = &table->rows[i];
        json_object(json, NULL);
        write_change(json, row->change);
        json_u64(json, "end_ps", row->answer->end_ps);
        json_double(json, "gain", row->gain);
        json_double(json, "elasticity", row->elasticity);
        json_object_end(json);
    }
    json_array_end(json);
    json_array(json, "failed");
    for (size_t i = 0; i < table->failed_count; i++) {
        json_object(json, NULL);
        write_change(json, table->failed[i]);
        json_string(json, "error", table->why[i]);
        json_bool(json, "refused", table->refused[i]);
        json_object_end(json);
    }
    json_array_end(json);
    json_array(json, "unchanged");
    for (size_t i = 0; i < table->same_count; i++)
        json_string(json, NULL, table->same[i]->name);
    json_array_end(json);
    json_array(json, "best");
    for (size_t i = 0; i < whatif->best_count; i++)
        json_string(json, NULL, whatif->best[i]);
    json_array_end(json);
}

/* ---- the subcommand */

static struct better_by parse_by(const char *text)
{
    if (!strcmp(text, "inf"))
        return (struct better_by){.infinite = true, .up = 1, .down = 1};
    char *end;
    double number = strspn(text, "0123456789.") ? strtod(text, &end) : 0;
    if (number > 0 && number < 100 && !strcmp(end, "%"))
        return (struct better_by){.up = 1 + number / 100, .down = 1 - number / 100};
    if (number > 1 && number <= 1e6 && !strcmp(end, "x"))
        return (struct better_by){.up = number, .down = 1 / number};
    usage_error("--by %s: a share below 100%%, such as 10%%, a factor above 1, such as 2x, or inf is needed", text);
}

static struct whatif read_options(int argc, char **argv, const char **json)
{
    struct whatif read = {.by_text = "10%"};
    fastforward_on = true;
    for (int letter; (letter = subcommand_option(&whatif_subcommand, argc, argv)) != -1;)
        switch (letter) {
        case 'b': read.by_text = optarg; break;
        case 'a': read.params = true; break;
        case 'r': read.stream_path = optarg; break;
        case 'j': threads_option("jobs", optarg); break;
        case 'n': *json = optarg; break;
        case 's': fill_seed = parse_seed(optarg); break;
        default:
            if (!numbers_option(letter, optarg))
                limits_option(letter, optarg);
        }
    numbers_options_end();
    read.by = parse_by(read.by_text);
    if (read.stream_path && optind < argc)
        usage_error("whatif --replay %s takes no bench: '%s'", read.stream_path, argv[optind]);
    if (!read.stream_path && optind == argc)
        usage_error("whatif needs a bench; `%s list` shows them", program_name);
    if (read.params && read.by.infinite)
        usage_error("--params needs a factor or a share; a parameter of a bench cannot be changed by inf");
    if (read.stream_path && read.params)
        usage_error("--params are those of a bench; --replay has none");
    return read;
}

static int whatif_main(int argc, char **argv)
{
    const char *json = NULL;
    struct whatif whatif = read_options(argc, argv, &json);
    oplog_on = false;
    threads_prepare();
    if (whatif.stream_path)
        whatif.stream = source_given(whatif.stream_path);
    else
        bench_select(bench_find(argv[optind]), argc - optind - 1, argv + optind + 1);
    add_keys(&whatif);
    if (whatif.params)
        add_params(&whatif);
    if (!whatif.stream) {
        process_prepare();
        simulation_in_points();
    }
    struct output output = {0};
    if (json)
        output = output_open(json);
    struct arena_mark mark = arena_mark();
    int status = run_unchanged(&whatif);
    if (status != STATUS_GOOD)
        return status;
    simulator_reset();
    arena_release(mark);
    const struct board *board = all_answers(&whatif);
    const struct table table = make_table(&whatif, board);
    bool alone = json && !strcmp(json, "-");
    if (!alone)
        print_table(&whatif, &table, stdout);
    if (json)
        json_write_output(&output, write_result, &(struct result){&whatif, &table});
    return STATUS_GOOD;
}
