/* report.c: `kbgen report`: a page with pictures of a search, which needs nothing else.
 *
 * The page is rt/report/page/search, which the Makefile joins with the parts that it shares with the page of runs. It holds
 * the points as JSON, column by column. */
#define _GNU_SOURCE                                     /* memmem */

#include "report.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/array.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/json.h"
#include "../load.h"
#include "best.h"
#include "file_out.h"
#include "repeat.h"
#include "stored.h"

/* The symbols page and page_end, between which is the page. */
__asm__(".pushsection .rodata\n.globl search_page, search_page_end\n.hidden search_page, search_page_end\n"
        "search_page: .incbin \"" PAGE "\"\nsearch_page_end:\n.popsection\n");
extern const char search_page[], search_page_end[];

static int report_main(int argc, char **argv);

enum { OPTION_OUTPUT = 'o', OPTION_POINTS = 'p', OPTION_SEARCH = 's' };
enum { POINTS_MOST = 20000, FAILURES_MOST = 100 };

static const struct cli_option options[] = {
    {OPTION_OUTPUT, "output", "FILE.html", "the page"},
    {OPTION_POINTS, "points", "N", "at most N points besides the front, drawn at random (default: 20000)"},
    {OPTION_SEARCH, "search", "N", "search N of the store (default: the last one)"},
    {0},
};

const struct subcommand report_subcommand = {
    "report", "STORE.db -o FILE.html", "writes a page with pictures of a search",
    "Writes a page about a search, for a browser: its front, which keys lead where, what each key is worth, failures by\n"
    "reason; and for each point its topology and the commands that repeat it. The page needs no network.",
    options, report_main,
};

/* ---- JSON within a script element: texts without '<' */

/* A text of lines, printable. */
static const char *lines_printable(const char *text)
{
    const char *all = "";
    for (const char *end; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        all = arena_printf("%s%s%s", all, printable(arena_text(text, (size_t)(end - text))), *end ? "\n" : "");
    }
    return all;
}

static void put_text(FILE *out, const char *text)
{
    if (!text) {
        fputs("null", out);
        return;
    }
    for (const char *at = json_quoted(text); *at; at++)
        fputs(*at == '<' ? "\\u003c" : (char[]){*at, 0}, out);
}

static void put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\":", name);
    put_text(out, text ? printable(text) : NULL);
}

/* A value of a statement's row. */
static void put_value(FILE *out, sqlite3_stmt *row, int column)
{
    int type = sqlite3_column_type(row, column);
    double real = sqlite3_column_double(row, column);
    if (type == SQLITE_TEXT)
        put_text(out, printable(stored_text(row, column)));
    else
        fputs(type == SQLITE_NULL || (type == SQLITE_FLOAT && !isfinite(real)) ? "null" : repeat_value(row, column), out);
}

/* A tree as JSON whose scalars are texts as YAML has them. */
static void put_tree(FILE *out, const struct node *node)
{
    if (node->type == NODE_SCALAR)
        return put_text(out, printable(repeat_scalar(node)));
    bool mapping = node->type == NODE_MAPPING;
    fputc(mapping ? '{' : '[', out);
    for (size_t i = 0; i < node->count; i++) {
        if (i)
            fputc(',', out);
        if (mapping) {
            put_text(out, printable(repeat_scalar(node->entries[i].key)));
            fputc(':', out);
        }
        put_tree(out, mapping ? node->entries[i].value : node->items[i]);
    }
    fputc(mapping ? '}' : ']', out);
}

/* ---- which points are shown */

struct shown {
    struct row *list;                                   /* by trial */
    bool *on_front;
    size_t count;
};

static int by_trial(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return (a->trial > b->trial) - (a->trial < b->trial);
}

static bool equal_hashes(struct point_hash a, struct point_hash b)
{
    return a.high == b.high && a.low == b.low;
}

static int by_hash(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->hash.high != b->hash.high)
        return a->hash.high < b->hash.high ? -1 : 1;
    return (a->hash.low > b->hash.low) - (a->hash.low < b->hash.low);
}

/* Chooses the front, and of all points those with the least hashes: as hashes are, they are drawn at random. */
static struct shown choose(const struct stored_points *points, const struct best *front, size_t most)
{
    struct row *all = malloc((points->count + front->count + 1) * sizeof *all);
    if (!all)
        die("not enough memory for %zu points", points->count);
    size_t count = 0;
    for (size_t i = 0; i < stored_slots(points); i++)
        if (points->slots[i].used)
            all[count++] = (struct row){points->slots[i].hash, points->slots[i].number, 1, points->slots[i].infeasible};
    qsort(all, count, sizeof *all, by_hash);
    count = count < most ? count : most;
    if (front->count)
        memcpy(all + count, front->rows, front->count * sizeof *all);
    count += front->count;
    qsort(all, count, sizeof *all, by_trial);
    struct shown shown = {.list = all, .on_front = calloc(count + 1, sizeof(bool))};
    for (size_t i = 0; i < count; i++)
        if (!shown.count || !equal_hashes(all[i].hash, all[shown.count - 1].hash))
            all[shown.count++] = all[i];
    struct row *sorted = malloc((front->count + 1) * sizeof *sorted);
    if (!shown.on_front || !sorted)
        die("not enough memory for %zu points", points->count);
    if (front->count)
        memcpy(sorted, front->rows, front->count * sizeof *sorted);
    qsort(sorted, front->count, sizeof *sorted, by_hash);
    for (size_t i = 0; i < shown.count; i++)
        shown.on_front[i] = bsearch(&all[i], sorted, front->count, sizeof *sorted, by_hash) != NULL;
    free(sorted);
    return shown;
}

/* ---- parts of the data */

struct page {
    FILE *out;
    const struct stored *stored;
    struct shown shown;
    const struct stored_column **columns;               /* that it has */
    size_t column_count;
};

static void list_columns(struct page *page)
{
    const struct stored *stored = page->stored;
    page->columns = arena_alloc(stored->count + 1, sizeof *page->columns);
    for (size_t i = 0; i < stored->count; i++)
        if (stored->columns[i].role == COLUMN_AXIS || stored->columns[i].role == COLUMN_METRIC || stored->columns[i].role == COLUMN_DERIVED)
            page->columns[page->column_count++] = &stored->columns[i];
    for (size_t i = 0; i < stored->objective_count; i++) {
        bool there = false;
        for (size_t j = 0; j < page->column_count; j++)
            there |= page->columns[j] == stored->objectives[i].column;
        if (!there)
            page->columns[page->column_count++] = stored->objectives[i].column;
    }
}

static size_t column_number(const struct page *page, const char *name)
{
    size_t i = 0;
    while (i < page->column_count && strcmp(page->columns[i]->name, name))
        i++;
    return i;
}

/* A name for a column; short unless another column has the same short one. */
static const char *label_of(const struct page *page, size_t column)
{
    const char *label = row_short_name(page->columns[column]->name);
    for (size_t i = 0; i < page->column_count; i++)
        if (i != column && !strcmp(label, row_short_name(page->columns[i]->name)))
            return page->columns[column]->name;
    return label;
}

/* Writes an array of a value for each shown point; `sql` is an expression over its row of `point`. */
static void put_array(const struct page *page, const char *sql)
{
    sqlite3_stmt *query = stored_query(page->stored, "SELECT %s FROM point WHERE hash = ?1", sql);
    for (size_t i = 0; i < page->shown.count; i++) {
        struct arena_mark mark = arena_mark();
        sqlite3_bind_text(query, 1, stored_hash_text(page->shown.list[i].hash), -1, SQLITE_TRANSIENT);
        if (i)
            fputc(',', page->out);
        if (stored_step(page->stored, query))
            put_value(page->out, query, 0);
        else
            fputs("null", page->out);
        sqlite3_reset(query);
        arena_release(mark);
    }
    sqlite3_finalize(query);
}

static void put_columns(const struct page *page)
{
    FILE *out = page->out;
    fputs("\"columns\":[", out);
    for (size_t i = 0; i < page->column_count; i++) {
        fputs(i ? ",\n{" : "\n{", out);
        put_member(out, "name", page->columns[i]->name);
        fputc(',', out);
        put_member(out, "label", label_of(page, i));
        fprintf(out, ",\"role\":\"%s\",\"values\":[", column_role_names[page->columns[i]->role]);
        put_array(page, page->columns[i]->quoted);
        fputs("]}", out);
    }
    fputs("],\n\"objectives\":[", out);
    for (size_t i = 0; i < page->stored->objective_count; i++) {
        const struct stored_objective *objective = &page->stored->objectives[i];
        fprintf(out, "%s{\"column\":%zu,\"goal\":\"%s\"}", i ? "," : "", column_number(page, objective->column->name), objective->largest ? "max" : "min");
    }
    fputs("],\n", out);
}

/* The states of points: the first ones are fixed, the others are the statuses of failed points. */
static void put_points(const struct page *page)
{
    FILE *out = page->out;
    sqlite3_stmt *query = stored_query(page->stored, "SELECT DISTINCT status FROM point WHERE status <> 'ok' ORDER BY status");
    const char *cases = "";
    int states = 3;
    fputs("\"states\":[\"ok\",\"infeasible\",\"ok, at a lower fidelity\"", out);
    while (stored_next(page->stored, query)) {
        fputc(',', out);
        put_text(out, printable(stored_text(query, 0)));
        char *when = sqlite3_mprintf(" WHEN %Q THEN %d", sqlite3_column_text(query, 0), states++);
        cases = arena_printf("%s%s", cases, when);
        sqlite3_free(when);
    }
    fputs("],\n\"points\":{\"hash\":[", out);
    put_array(page, "hash");
    fputs("],\n\"trial\":[", out);
    for (size_t i = 0; i < page->shown.count; i++)
        fprintf(out, "%s%" PRId64, i ? "," : "", page->shown.list[i].trial);
    fputs("],\n\"failed\":[", out);
    put_array(page, arena_printf("CASE status%s ELSE iif(%s, 2, 0) END", *cases ? cases : " WHEN '' THEN 0", page->stored->partial));
    fputs("],\n\"infeasible\":[", out);
    for (size_t i = 0; i < page->shown.count; i++)
        fprintf(out, "%s%d", i ? "," : "", page->shown.list[i].infeasible);
    fputs("],\n\"why\":[", out);
    put_array(page, "why");
    fputs("],\n\"front\":[", out);
    for (size_t i = 0; i < page->shown.count; i++)
        fprintf(out, "%s%d", i ? "," : "", page->shown.on_front[i]);
    fputs("]},\n", out);
}

static void put_failures(const struct page *page)
{
    FILE *out = page->out;
    sqlite3_stmt *query = stored_query(page->stored,
        "SELECT * FROM (SELECT point.status, point.why, count(*) AS count, point.hash, min(trial.number)"
        " FROM trial JOIN point ON point.hash = trial.hash WHERE trial.search = %" PRId64 " AND point.status <> 'ok' GROUP BY 1, 2"
        " UNION ALL SELECT trial.status, why, count(*), hash, min(number) FROM trial WHERE search = %" PRId64 " AND status IS NOT NULL GROUP BY 1, 2)"
        " ORDER BY count DESC, 1, 2 LIMIT %d", page->stored->search, page->stored->search, FAILURES_MOST);
    fprintf(out, "\"failures_most\":%d,\"failures\":[", FAILURES_MOST);
    for (bool first = true; stored_next(page->stored, query); first = false) {
        fputs(first ? "{" : ",\n{", out);
        put_member(out, "status", stored_text(query, 0));
        fputc(',', out);
        put_member(out, "why", stored_text(query, 1));
        fprintf(out, ",\"count\":%" PRId64 ",", (int64_t)sqlite3_column_int64(query, 2));
        put_member(out, "example", stored_text(query, 3));
        fprintf(out, ",\"trial\":%" PRId64 "}", (int64_t)sqlite3_column_int64(query, 4));
    }
    fputs("],\n", out);
}

/* The topology, and those values of keys that are mappings or sequences, as trees. */
static void put_topology(const struct page *page)
{
    FILE *out = page->out;
    const struct node *topology = repeat_topology(page->stored, NULL, 0);
    errors_end();
    fputs("\"topology\":", out);
    put_tree(out, topology);
    fputs(",\n\"trees\":{", out);
    bool first = true;
    for (size_t i = 0; i < page->column_count; i++) {
        if (page->columns[i]->role != COLUMN_AXIS)
            continue;
        bool any = false;
        const char *column = page->columns[i]->quoted;
        sqlite3_stmt *query = stored_query(page->stored, "SELECT DISTINCT %s FROM point WHERE %s GLOB '[{[]*'", column, column);
        while (stored_next(page->stored, query)) {
            const char *value = stored_text(query, 0);
            const struct node *tree = read_set(arena_printf("value=%s", value));
            if (!tree)
                continue;
            if (!any) {
                fputs(first ? "" : ",", out);
                put_text(out, printable(page->columns[i]->name));
            }
            fputs(any ? "," : ":{", out);
            any = true;
            put_text(out, printable(value));
            fputc(':', out);
            put_tree(out, tree->entries[0].value);
        }
        errors_end();
        if (any)
            fputc('}', out);
        first &= !any;
    }
    fputs("},\n", out);
}

static void put_workloads(const struct page *page)
{
    FILE *out = page->out;
    struct repeat_workloads workloads = repeat_workloads(page->stored);
    fputs("\"workloads\":[", out);
    for (size_t i = 0; i < workloads.count; i++) {
        const struct repeat_workload *workload = &workloads.list[i];
        fputs(i ? ",{" : "{", out);
        put_member(out, "name", workload->name);
        fputc(',', out);
        put_member(out, "verb", workload->verb);
        fputc(',', out);
        put_member(out, "fixed", workload->fixed);
        fputs(",\"axes\":[", out);
        bool first = true;
        for (size_t j = 0; j < page->column_count; j++) {
            const char *name = page->columns[j]->role == COLUMN_AXIS ? repeat_param_name(page->stored, workload, page->columns[j]->name) : NULL;
            if (!name)
                continue;
            fprintf(out, "%s{\"column\":%zu,", first ? "" : ",", j);
            put_member(out, "name", name);
            fputc('}', out);
            first = false;
        }
        fputs("]}", out);
    }
    fputs("],\n", out);
    put_member(out, "build", repeat_build_options(page->stored));
}

static void put_search(const struct page *page)
{
    const struct stored *stored = page->stored;
    FILE *out = page->out;
    fprintf(out, "{\"search\":{\"number\":%" PRId64 ",\"searches\":%" PRId64 ",", stored->search, stored->searches);
    sqlite3_stmt *query = stored_query(stored, "SELECT ?1 ->> '$.path', ?1 ->> '$.method', ?1 ->> '$.seed'");
    sqlite3_bind_text(query, 1, stored->about, -1, SQLITE_STATIC);
    stored_step(stored, query);
    put_member(out, "path", stored_text(query, 0));
    fputc(',', out);
    put_member(out, "method", stored_text(query, 1));
    fputc(',', out);
    put_member(out, "seed", stored_text(query, 2));
    sqlite3_finalize(query);
    fputc(',', out);
    put_member(out, "begun", stored->begun);
    fputc(',', out);
    put_member(out, "kbgen", stored->kbgen);
    fputs(",\"space\":", out);
    put_text(out, lines_printable(stored->space));
    fputs("},\n", out);
    const char *slash = strrchr(stored->path, '/');
    put_member(out, "store", slash ? slash + 1 : stored->path);
    fputs(",\n", out);
}

static void put_counts(const struct page *page, const struct best *best, size_t points)
{
    sqlite3_stmt *query = stored_query(page->stored, "SELECT count(*) FROM trial WHERE search = %" PRId64 " AND hash IS NULL", page->stored->search);
    stored_step(page->stored, query);
    fprintf(page->out, "\"counts\":{\"points\":%zu,\"failed\":%zu,\"infeasible\":%zu,\"refused\":%" PRId64 ",\"front\":%zu},\"shown\":%zu,\n",
            points, best->census.failed, best->census.infeasible, (int64_t)sqlite3_column_int64(query, 0), best->count, page->shown.count);
    sqlite3_finalize(query);
}

/* Writes the page from a place to a mark. Returns the place behind the mark. */
static const char *write_to(FILE *out, const char *from, const char *mark)
{
    const char *at = memmem(from, (size_t)(search_page_end - from), mark, strlen(mark));
    fwrite(from, 1, (size_t)(at - from), out);
    return at + strlen(mark);
}

static size_t read_points(const char *word)
{
    char *end;
    unsigned long long points = strtoull(word, &end, 10);
    if (*end || end == word || *word == '-' || points < 1 || points > 10000000)
        usage_error("--points takes a number from 1 to 10000000; not '%s'", word);
    return points;
}

static int report_main(int argc, char **argv)
{
    const char *output = NULL;
    int64_t search = 0;
    size_t most = POINTS_MOST;
    for (int letter; (letter = subcommand_option(&report_subcommand, argc, argv)) != -1;) {
        if (letter == OPTION_OUTPUT)
            output = optarg;
        if (letter == OPTION_POINTS)
            most = read_points(optarg);
        if (letter == OPTION_SEARCH)
            search = stored_search_number(optarg);
    }
    const char *path = subcommand_argument(&report_subcommand, argc, argv, "a store");
    if (!output)
        usage_error("report needs -o FILE.html");
    struct stored stored = stored_open(path, search);
    struct stored_points points = stored_points(&stored);
    struct best best = best_points(&stored, &points, true, UINT64_MAX);
    if (stored.objective_count < 2)
        best.count = 0;
    struct page page = {.stored = &stored, .shown = choose(&points, &best, most)};
    list_columns(&page);

    struct file_out out = file_out_open(output, stored.path);
    page.out = out.file;
    const char *rest = write_to(out.file, search_page, "@CONNECT@");
    fputs("'none'", out.file);
    rest = write_to(out.file, rest, "@DATA@");
    put_search(&page);
    put_counts(&page, &best, points.count);
    put_columns(&page);
    put_points(&page);
    put_failures(&page);
    put_topology(&page);
    put_workloads(&page);
    fputs("}", out.file);
    fwrite(rest, 1, (size_t)(search_page_end - rest), out.file);
    file_out_close(&out);
    stored_points_free(&points);
    free(best.rows);
    free(page.shown.list);
    free(page.shown.on_front);
    stored_close(&stored);
    return STATUS_GOOD;
}
