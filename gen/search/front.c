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
#include "file_out.h"
#include "pareto.h"
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
    "as CSV, JSON or an array. Points that failed and points that a condition refuses are not on it.\n",
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

/* ---- the points of the front */

/* What is known of the points of a search. */
struct census {
    size_t points, failed, infeasible, without;         /* without: an objective is no number */
};

struct candidates ARRAY(struct row);
struct values ARRAY(objective_value);

/* Reads an objective of a good point, so that less is better. Returns false if it is no number. */
static bool read_objective(const struct stored_objective *objective, sqlite3_stmt *query, int column, objective_value *value)
{
    int type = sqlite3_column_type(query, column);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return false;
    *value = type == SQLITE_INTEGER ? (objective_value)sqlite3_column_int64(query, column) : (objective_value)sqlite3_column_double(query, column);
    if (objective->largest)
        *value = -*value;
    return true;
}

/* Reads the points that may be on the front, with their objectives. */
static struct census read_candidates(const struct stored *stored, const struct stored_points *points, struct candidates *candidates,
                                     struct values *values)
{
    struct census census = {0};
    const char *list = "";
    for (size_t i = 0; i < stored->objective_count; i++)
        list = arena_printf("%s, %s", list, stored->objectives[i].column->quoted);
    sqlite3_stmt *query = stored_query(stored, "SELECT hash, status = 'ok'%s FROM point", list);
    while (stored_next(stored, query)) {
        struct point_hash hash = stored_hash(stored, query, 0);
        const struct stored_point *known = stored_point(points, hash);
        if (!known)
            continue;
        bool good = sqlite3_column_int(query, 1);
        census.points++;
        census.failed += !good;
        census.infeasible += good && known->infeasible;
        if (!good || known->infeasible)
            continue;
        array_reserve(values, values->count + stored->objective_count);
        bool whole = true;
        for (size_t i = 0; i < stored->objective_count; i++)
            whole &= read_objective(&stored->objectives[i], query, 2 + (int)i, &values->at[values->count + i]);
        census.without += !whole;
        if (!whole)
            continue;
        values->count += stored->objective_count;
        *array_add(candidates) = (struct row){hash, known->number, 1, false};
    }
    return census;
}

static bool is_same(const objective_value *a, const objective_value *b, size_t objectives)
{
    for (size_t i = 0; i < objectives; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static int by_trial(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return (a->trial > b->trial) - (a->trial < b->trial);
}

/* Adds the rows of points with equal objectives, by trial: with `ties` all of them, else the first one. */
static void add_group(const struct candidates *candidates, const uint32_t *members, size_t count, bool ties, struct candidates *front)
{
    size_t first = front->count;
    for (size_t i = 0; i < count; i++) {
        struct row row = candidates->at[members[i]];
        row.same = count;
        *array_add(front) = row;
    }
    qsort(front->at + first, count, sizeof *front->at, by_trial);
    if (!ties)
        front->count = first + 1;
}

/* Lists the front in the order of its objectives; with one objective, the best points. */
static void list_front(const struct candidates *candidates, const struct values *values, const struct front_options *o, size_t objectives,
                       struct candidates *front)
{
    uint32_t *order = malloc((candidates->count + 1) * sizeof *order);
    if (!order)
        die("not enough memory for %zu points", candidates->count);
    size_t count = candidates->count;
    if (objectives == 1)
        pareto_sort(values->at, count, objectives, order);
    else
        count = pareto_front(values->at, count, objectives, order);
    uint64_t most = o->rows ? o->rows : objectives == 1 ? ROWS_OF_ONE : UINT64_MAX;
    for (size_t i = 0, next; i < count && front->count < most; i = next) {
        for (next = i + 1; next < count && is_same(&values->at[order[i] * objectives], &values->at[order[next] * objectives], objectives);)
            next++;
        add_group(candidates, order + i, next - i, o->ties, front);
    }
    if (front->count > most)
        front->count = most;
    free(order);
}

/* Lists all points of the search that have run, by the number of their first trial. */
static void list_all(const struct stored_points *points, const struct front_options *o, struct candidates *all)
{
    array_reserve(all, points->count);
    for (size_t i = 0; i < stored_slots(points); i++)
        if (points->slots[i].used)
            *array_add(all) = (struct row){points->slots[i].hash, points->slots[i].number, 1, points->slots[i].infeasible};
    if (all->count)
        qsort(all->at, all->count, sizeof *all->at, by_trial);
    if (o->rows && all->count > o->rows)
        all->count = o->rows;
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

/* The columns of a table for people: the hash, objectives, how many points a row stands for, and what distinguishes rows. */
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
        fprintf(out, " \"points\": %zu,\n \"failed\": %zu,\n \"infeasible\": %zu,\n \"without\": %zu,\n", census->points,
                census->failed, census->infeasible, census->without);
    fprintf(out, " \"%s\": ", all ? "all" : "front");
    rows_json(out, rows);
    fputs("\n}\n", out);
}

/* Says below a table what it shows. */
static void tell_census(const struct stored *stored, const struct candidates *front, const struct census *census)
{
    fflush(stdout);
    message("%zu %s of %zu points", front->count, stored->objective_count == 1 ? "best" : "on the front", census->points);
    if (census->failed)
        message("; %zu failed", census->failed);
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
    struct candidates candidates = {0}, list = {0};
    struct values values = {0};
    struct census census = {0};
    if (o.all) {
        list_all(&points, &o, &list);
    } else {
        census = read_candidates(&stored, &points, &candidates, &values);
        list_front(&candidates, &values, &o, stored.objective_count, &list);
    }
    stored_points_free(&points);
    array_free(&candidates);
    array_free(&values);

    struct columns columns = {0};
    struct rows rows = {.stored = &stored, .list = list.at, .count = list.count};
    if (o.columns)
        add_named(&columns, &stored, o.columns);
    else if (o.form == FORM_TABLE)
        add_telling(&columns, &stored, &rows, o.all);
    else
        add_complete(&columns, &stored, o.all);
    rows.columns = columns.at;
    rows.column_count = columns.count;
    write_rows(&stored, &o, &rows, &census);
    if (o.form == FORM_TABLE && !o.all)
        tell_census(&stored, &list, &census);
    array_free(&columns);
    array_free(&list);
    stored_close(&stored);
    return STATUS_GOOD;
}
