/* front.c: `kbgen front`: prints the best points of a search: its Pareto front, or with one objective the first ones. */
#include "front.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/array.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/json.h"
#include "best.h"
#include "file_out.h"
#include "rows.h"
#include "stored.h"

static int front_main(int argc, char **argv);

enum { ROWS_OF_ONE = 10 };                              /* with one objective, unless --rows says more */
enum { OPTION_OUTPUT = 'o', OPTION_CSV = 'c', OPTION_JSON = 'j', OPTION_NPY = 'n', OPTION_ALL = 'a', OPTION_COLUMNS = 'k', OPTION_ROWS = 'r',
       OPTION_TIES = 't', OPTION_OBJECTIVE = 'g', OPTION_SEARCH = 's' };

static const struct cli_option options[] = {
    {OPTION_OUTPUT, "output", "FILE", "write to FILE instead of standard output"},
    {OPTION_CSV, "csv", NULL, "print CSV"},
    {OPTION_JSON, "json", NULL, "print JSON"},
    {OPTION_NPY, "npy", "FILE", "write a structured array of NumPy to FILE"},
    {OPTION_ALL, "all", NULL, "all points of the search that have run, failed and infeasible ones too, by trial"},
    {OPTION_COLUMNS, "columns", "A,B,...", "these columns, in this order"},
    {OPTION_ROWS, "rows", "N", "at most N rows (default: 10 with one objective, else all)"},
    {OPTION_TIES, "ties", NULL, "a row for each point, also for those with equal objectives"},
    {OPTION_OBJECTIVE, "objective", "NAME:GOAL ...", "min or max of a column, instead of the search's objectives"},
    {OPTION_SEARCH, "search", "N", "search N of the store (default: the last one)"},
    {0},
};

const struct subcommand front_subcommand = {
    "front", "STORE.db", "prints the best points of a store",
    "Prints the Pareto front of a search, or with one objective its best points: as a table, or with all keys and figures\n"
    "as CSV, JSON or an array. Points that failed and points that a condition refuses are not on it.",
    options, front_main,
};

enum form { FORM_TABLE, FORM_CSV, FORM_JSON, FORM_NPY };

struct front_options {
    const char *output, *columns;
    char **objectives;
    size_t objective_count;
    enum form form;
    bool all, ties;
    uint64_t rows;                                      /* 0: by default */
    int64_t search;
};

static void choose_form(struct front_options *o, enum form form)
{
    if (o->form && o->form != form)
        usage_error("front prints one of --csv, --json and --npy");
    o->form = form;
}

static uint64_t read_rows(const char *word)
{
    char *end;
    unsigned long long rows = strtoull(word, &end, 10);
    if (*end || end == word || *word == '-' || rows < 1)
        usage_error("--rows takes a number of rows, 1 or more; not '%s'", word);
    return rows;
}

static void take(struct front_options *o, int letter)
{
    switch (letter) {
    case OPTION_OUTPUT:
    case OPTION_NPY:
        if (o->output)
            usage_error("--npy names its file: -o is for CSV, JSON and tables");
        o->output = optarg;
        if (letter == OPTION_NPY)
            choose_form(o, FORM_NPY);
        break;
    case OPTION_CSV:
    case OPTION_JSON:
        choose_form(o, letter == OPTION_CSV ? FORM_CSV : FORM_JSON);
        break;
    case OPTION_ALL:
        o->all = true;
        break;
    case OPTION_TIES:
        o->ties = true;
        break;
    case OPTION_COLUMNS:
        o->columns = optarg;
        break;
    case OPTION_ROWS:
        o->rows = read_rows(optarg);
        break;
    case OPTION_OBJECTIVE:
        o->objectives = arena_grow(o->objectives, o->objective_count, sizeof *o->objectives);
        o->objectives[o->objective_count++] = optarg;
        break;
    case OPTION_SEARCH:
        o->search = stored_search_number(optarg);
        break;
    }
}

/* Replaces the objectives of the search by those of --objective. */
static void set_objectives(struct stored *stored, const struct front_options *o)
{
    if (!o->objective_count)
        return;
    stored->objectives = arena_alloc(o->objective_count, sizeof *stored->objectives);
    stored->objective_count = o->objective_count;
    for (size_t i = 0; i < o->objective_count; i++) {
        const char *word = o->objectives[i], *goal = strrchr(word, ':');
        if (!goal || (strcmp(goal, ":min") && strcmp(goal, ":max")))
            usage_error("--objective takes NAME:min or NAME:max; not '%s'", word);
        const char *name = arena_text(word, (size_t)(goal - word));
        stored->objectives[i] = (struct stored_objective){stored_column(stored, name, "--objective"), !strcmp(goal, ":max")};
    }
}

static int by_trial(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return (a->trial > b->trial) - (a->trial < b->trial);
}

/* Lists the first points of the search that have run, by their first trial. */
static struct best list_all(const struct stored_points *points, uint64_t most)
{
    struct best all = {.rows = malloc((points->count + 1) * sizeof *all.rows)};
    if (!all.rows)
        die("not enough memory for %zu points", points->count);
    for (size_t i = 0; i < stored_slots(points); i++)
        if (points->slots[i].used)
            all.rows[all.count++] = (struct row){points->slots[i].hash, points->slots[i].number, 1, points->slots[i].infeasible};
    qsort(all.rows, all.count, sizeof *all.rows, by_trial);
    all.count = all.count < most ? all.count : most;
    return all;
}

/* ---- columns */

struct columns ARRAY(struct row_column);

static void add_column(struct columns *columns, struct row_column column)
{
    for (size_t i = 0; i < columns->count; i++)
        if (!strcmp(columns->at[i].name, column.name))
            return;
    *array_add(columns) = column;
}

static void add_stored(struct columns *columns, const struct stored *stored, enum column_role role)
{
    for (size_t i = 0; i < stored->count; i++)
        if (stored->columns[i].role == role && strcmp(stored->columns[i].name, "host_us"))
            add_column(columns, row_column_of(&stored->columns[i]));
}

static void add_named(struct columns *columns, const struct stored *stored, const char *names)
{
    for (const char *end; *names; names = end + (*end == ',')) {
        end = names + strcspn(names, ",");
        const char *name = arena_text(names, (size_t)(end - names));
        const struct row_column *own = !strcmp(name, row_trial.name) ? &row_trial : !strcmp(name, row_same.name) ? &row_same : NULL;
        add_column(columns, own ? *own : row_column_of(stored_column(stored, name, "--columns")));
    }
    if (!columns->count)
        usage_error("--columns takes names of columns, as in --columns hash,end_ps");
}

/* The columns of a table for people: the hash, objectives, the number of points that share a row, and what differs between rows. */
static void add_telling(struct columns *columns, const struct stored *stored, const struct rows *rows, bool all)
{
    add_column(columns, row_column_of(&stored->columns[0]));
    if (all)
        add_named(columns, stored, "trial,status");
    for (size_t i = 0; i < stored->objective_count; i++)
        add_column(columns, row_column_of(stored->objectives[i].column));
    for (size_t i = 0; i < rows->count; i++)
        if (rows->list[i].same > 1)
            add_column(columns, row_same);
    struct columns axes = {0};
    add_stored(&axes, stored, COLUMN_AXIS);
    const bool *vary = rows_vary(&(struct rows){stored, axes.at, axes.count, rows->list, rows->count});
    for (size_t i = 0; i < axes.count; i++)
        if (vary[i])
            add_column(columns, axes.at[i]);
    array_free(&axes);
}

static void add_complete(struct columns *columns, const struct stored *stored, bool all)
{
    add_named(columns, stored, all ? "hash,trial,status,why" : "hash,trial,points");
    for (size_t i = 0; i < stored->objective_count; i++)
        add_column(columns, row_column_of(stored->objectives[i].column));
    add_stored(columns, stored, COLUMN_AXIS);
    add_stored(columns, stored, COLUMN_METRIC);
    add_stored(columns, stored, COLUMN_DERIVED);
}

/* ---- output */

static void write_json(FILE *out, const struct stored *stored, const struct rows *rows, const struct census *census, bool all)
{
    fprintf(out, "{\n \"search\": %" PRId64 ",\n \"objectives\": [", stored->search);
    for (size_t i = 0; i < stored->objective_count; i++)
        fprintf(out, "%s{\"name\": %s, \"goal\": \"%s\"}", i ? ", " : "", json_quoted(printable(stored->objectives[i].column->name)),
                stored->objectives[i].largest ? "max" : "min");
    fputs("],\n", out);
    if (!all)
        fprintf(out, " \"points\": %zu,\n \"failed\": %zu,\n \"partial\": %zu,\n \"infeasible\": %zu,\n \"without\": %zu,\n", census->points,
                census->failed, census->partial, census->infeasible, census->without);
    fprintf(out, " \"%s\": ", all ? "all" : "front");
    rows_json(out, rows);
    fputs("\n}\n", out);
}

/* Says below a table what it shows. */
static void tell_census(const struct stored *stored, const struct best *best)
{
    const struct census *census = &best->census;
    fflush(stdout);
    message("%zu %s of %zu points", best->count, stored->objective_count == 1 ? "best" : "on the front", census->points);
    if (census->failed)
        message("; %zu failed", census->failed);
    if (census->partial)
        message("; %zu at a lower fidelity", census->partial);
    if (census->infeasible)
        message("; %zu infeasible", census->infeasible);
    if (census->without)
        message("; of %zu an objective is no number", census->without);
    if (stored->searches > 1)
        message("; search %" PRId64 " of %" PRId64 " in the store", stored->search, stored->searches);
    message("\n");
}

static void write_rows(const struct stored *stored, const struct front_options *o, const struct rows *rows, const struct census *census)
{
    struct file_out out = file_out_open(o->output, stored->path);
    switch (o->form) {
    case FORM_TABLE:
        rows_table(out.file, rows);
        break;
    case FORM_CSV:
        rows_csv(out.file, rows);
        break;
    case FORM_JSON:
        write_json(out.file, stored, rows, census, o->all);
        break;
    case FORM_NPY:
        rows_npy(out.file, rows);
        break;
    }
    file_out_close(&out);
}

static int front_main(int argc, char **argv)
{
    struct front_options o = {0};
    for (int letter; (letter = subcommand_option(&front_subcommand, argc, argv)) != -1;)
        take(&o, letter);
    if (o.all && (o.objective_count || o.ties))
        usage_error("--all lists points by trial, whatever their objectives: it takes no --objective and no --ties");
    struct stored stored = stored_open(subcommand_argument(&front_subcommand, argc, argv, "a store"), o.search);
    set_objectives(&stored, &o);
    if (!o.all && !stored.objective_count)
        usage_error("search %" PRId64 " of %s has no objective; name one: --objective end_ps:min", stored.search, stored.path);

    struct stored_points points = stored_points(&stored);
    uint64_t most = o.rows ? o.rows : stored.objective_count == 1 && !o.all ? ROWS_OF_ONE : UINT64_MAX;
    struct best best = o.all ? list_all(&points, most) : best_points(&stored, &points, o.ties, most);
    stored_points_free(&points);

    struct columns columns = {0};
    struct rows rows = {.stored = &stored, .list = best.rows, .count = best.count};
    if (o.columns)
        add_named(&columns, &stored, o.columns);
    else if (o.form == FORM_TABLE)
        add_telling(&columns, &stored, &rows, o.all);
    else
        add_complete(&columns, &stored, o.all);
    rows.columns = columns.at;
    rows.column_count = columns.count;
    write_rows(&stored, &o, &rows, &best.census);
    if (o.form == FORM_TABLE && !o.all)
        tell_census(&stored, &best);
    array_free(&columns);
    free(best.rows);
    stored_close(&stored);
    return STATUS_GOOD;
}
