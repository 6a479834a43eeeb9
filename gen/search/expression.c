/* expression.c: expressions of SQLite over the facts of a point.
 *
 * An expression is compiled twice. First against empty tables, one for each TABLE of the facts: SQLite's parser says what
 * is wrong with it, and its authorizer says which columns it reads and calls it no function beyond functions.def. Then
 * against a query of one row that has just these columns, whose values are bound for each point.
 *
 * Names without a table are columns of an inner query, TABLE.COLUMN of the query around it, where each table is there
 * twice under different names: a column without its TABLE is then ambiguous, which is an error. */
#define _GNU_SOURCE                                     /* strcasestr */
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <strings.h>

#include "../../rt/common/arena.h"
#include "facts.h"
#include "space.h"

enum { TEXT_MOST = 10000, UNKNOWN_MOST = 20, STEPS_MOST = 1000000, DEPTH_MOST = 200, VALUE_MOST = 1 << 20 };

static const char plain_table[] = " ";                  /* of names without a table; nobody needs to write it */

/* What an expression reads: a fact, or a derived value after all facts. */
struct reads {
    size_t *list;
    size_t count;
};

/* When an expression can be computed: before the runs of a point, or after them, since it needs metrics. */
enum expression_when { EXPRESSION_BEFORE, EXPRESSION_AFTER };

struct expression {
    const struct expression_text *text;
    const char *what;                                   /* "derive: area_mm2", "where: area_mm2 <= 800" */
    struct reads reads;
    sqlite3_stmt *statement;                            /* parameter i + 1 is reads.list[i] */
    enum expression_when when;
    enum { NEW, VISITED, ORDERED } order;
};

struct expressions {
    const struct space *space;
    const struct facts *facts;
    sqlite3 *db;
    struct expression *list;                            /* derived values, then conditions */
    size_t count;
    size_t *derive_order;                               /* each after those that it reads */
    size_t derive_ordered;
    size_t *objective;                                  /* what each is: a fact, or a derived value after all facts */
    struct reads metrics;
    const char **tables;                                /* of the facts, each once */
    size_t table_count;
    struct reads *reading;                              /* of the expression that is being compiled */
    unsigned selects, selects_most;                     /* queries in what is being compiled */
    const char *refused;                                /* a function that it may not call, or NULL */
    bool is_late;                                       /* the evaluation has used up its first STEPS_MOST steps */
};

/* ---- names */

static size_t name_count(const struct expressions *x)
{
    return x->facts->count + x->space->derive_count;
}

static bool is_derived(const struct expressions *x, size_t i)
{
    return i >= x->facts->count;
}

static const char *table_of(const struct expressions *x, size_t i)
{
    return is_derived(x, i) || !x->facts->list[i].table ? plain_table : x->facts->list[i].table;
}

static const char *column_of(const struct expressions *x, size_t i)
{
    return is_derived(x, i) ? x->space->derive[i - x->facts->count].name : x->facts->list[i].column;
}

/* A fact's path is a column of the plain table as well. */
static const char *path_of(const struct expressions *x, size_t i)
{
    return is_derived(x, i) ? NULL : x->facts->list[i].path;
}

static const char *full_name(const struct expressions *x, size_t i)
{
    return is_derived(x, i) ? column_of(x, i) : fact_name(&x->facts->list[i]);
}

/* Finds what a column of a table is. Returns name_count if the table has no such column. */
static size_t find(const struct expressions *x, const char *table, const char *column)
{
    bool plain = !strcmp(table, plain_table);
    size_t i = 0;
    for (; i < name_count(x); i++)
        if ((!strcasecmp(table_of(x, i), table) && !strcasecmp(column_of(x, i), column))
            || (plain && path_of(x, i) && !strcasecmp(path_of(x, i), column)))
            break;
    return i;
}

static const char *nearest_to(const struct expressions *x, const char *name)
{
    const char **names = NULL;
    size_t count = 0;
    for (size_t i = 0; i < name_count(x); i++) {
        if (!strcasecmp(column_of(x, i), name))
            return full_name(x, i);
        names = arena_grow(names, count, sizeof *names);
        names[count++] = full_name(x, i);
    }
    for (size_t i = 0; i < name_count(x); i++)
        if (path_of(x, i)) {
            names = arena_grow(names, count, sizeof *names);
            names[count++] = path_of(x, i);
        }
    const char *nearest = nearest_name(name, names, count);
    return nearest && strchr(nearest, '.') != strrchr(nearest, '.') ? arena_printf("\"%s\"", nearest) : nearest;
}

static void read_add(struct reads *reads, size_t i)
{
    for (size_t j = 0; j < reads->count; j++)
        if (reads->list[j] == i)
            return;
    reads->list = arena_grow(reads->list, reads->count, sizeof *reads->list);
    reads->list[reads->count++] = i;
}

/* ---- the tables */

static char *quoted(const char *name)
{
    char *text = sqlite3_mprintf("\"%w\"", name), *copy = text ? arena_printf("%s", text) : NULL;
    if (!text)
        die("out of memory");
    sqlite3_free(text);
    return copy;
}

static void execute(struct expressions *x, const char *sql)
{
    if (sqlite3_exec(x->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die("SQLite: %s", sqlite3_errmsg(x->db));
}

/* Whether any expression mentions a name. Only such names become columns of tables, since SQLite allows 2000. */
static bool is_mentioned(const struct expressions *x, const char *name)
{
    for (size_t i = 0; i < x->count; i++)
        if (strcasestr(x->list[i].text->text, name))
            return true;
    return false;
}

static void create_table(struct expressions *x, const char *table)
{
    const char *columns = "\"\"";
    bool plain = !strcmp(table, plain_table);
    for (size_t i = 0; i < name_count(x); i++) {
        bool first = find(x, table_of(x, i), column_of(x, i)) == i;
        if (first && !strcasecmp(table_of(x, i), table) && is_mentioned(x, column_of(x, i)))
            columns = arena_printf("%s, %s", columns, quoted(column_of(x, i)));
        if (plain && path_of(x, i) && find(x, plain_table, path_of(x, i)) == i && is_mentioned(x, path_of(x, i)))
            columns = arena_printf("%s, %s", columns, quoted(path_of(x, i)));
    }
    execute(x, arena_printf("CREATE TABLE %s(%s)", quoted(table), columns));
}

static void create_tables(struct expressions *x)
{
    create_table(x, plain_table);
    for (size_t i = 0; i < x->facts->count; i++) {
        const char *table = x->facts->list[i].table;
        bool known = !table;
        for (size_t j = 0; !known && j < x->table_count; j++)
            known = !strcasecmp(x->tables[j], table);
        if (known)
            continue;
        x->tables = arena_grow(x->tables, x->table_count, sizeof *x->tables);
        x->tables[x->table_count++] = table;
        create_table(x, table);
    }
}

/* ---- what an expression may do */

static bool is_allowed(const char *function)
{
    static const char *const names[] = {
#define FUNCTION(name) #name,
#include "functions.def"
    };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!strcasecmp(names[i], function))
            return true;
    return false;
}

static int authorize(void *arg, int action, const char *first, const char *second, const char *database, const char *by)
{
    struct expressions *x = arg;
    (void)database;
    (void)by;
    switch (action) {
    case SQLITE_SELECT:
        return ++x->selects <= x->selects_most ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_READ: {
        size_t i = x->reading ? find(x, first, second) : name_count(x);
        if (!x->reading || !*second)
            return SQLITE_OK;
        if (i == name_count(x))
            return SQLITE_DENY;
        read_add(x->reading, i);
        return SQLITE_OK;
    }
    case SQLITE_FUNCTION:
        if (is_allowed(second))
            return SQLITE_OK;
        x->refused = arena_printf("%s", second);
        return SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* SQLite calls it after each STEPS_MOST steps of a statement, counted over all its evaluations. */
static int out_of_steps(void *arg)
{
    struct expressions *x = arg;
    bool late = x->is_late;
    x->is_late = true;
    return late;
}

static sqlite3 *open_database(struct expressions *x)
{
    sqlite3 *db;
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        die("SQLite cannot open a database in memory");
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);            /* "name" is a name, never a text */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MOST);
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MOST);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_progress_handler(db, STEPS_MOST, out_of_steps, x);
    return db;
}

/* ---- errors */

/* The place of byte `offset` of an expression, if the file has it there as it is; else where the expression begins. */
static struct where place_within(const struct expression_text *text, size_t offset, size_t length)
{
    struct where where = text->where;
    const char *line = where.file ? where.file->text : "";
    for (unsigned i = where.file ? where.file->lines_before + 1 : 1; i < where.line && line; i++) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line || !where.file || strlen(line) < where.col)
        return where;
    const char *begin = line + where.col - 1;
    begin += *begin == '"' || *begin == '\'';
    if (strlen(begin) >= offset + length && !strncmp(begin, text->text, offset + length))
        where.col = (unsigned)(begin - line + 1) + (unsigned)offset;
    return where;
}

static const char *after(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) ? NULL : text + strlen(prefix);
}

/* What is wrong, in words for people who write expressions and no queries. */
static const char *explained(const struct expressions *x, const char *said)
{
    const char *name;
    if (x->refused)
        return arena_printf("%s() is no function of expressions", x->refused);
    if (x->selects > x->selects_most)
        return "an expression has no queries of its own";
    if ((name = after(said, "ambiguous column name: ")))
        return arena_printf("'%s' needs its table: TABLE.%s", name, name);
    return said;
}

/* Reports an unknown name, and replaces it by a number in `copy`, so that the next one is found. Returns false if the
 * message is another one. */
static bool unknown_name(const struct expressions *x, const struct expression *e, char *copy, const char *said)
{
    const char *name = after(said, "no such column: ");
    char *at = name ? strstr(copy, name) : NULL;
    if (!name)
        return false;
    size_t length = strlen(name);
    if (at && at > copy && at[-1] == '"' && at[length] == '"')
        at--, length += 2;
    struct where where = at ? place_within(e->text, (size_t)(at - copy), length) : e->text->where;
    error_at(where, "%s: unknown name '%s'", e->what, name);
    const char *nearest = nearest_to(x, name);
    if (nearest)
        note_at(where, "did you mean '%s'?", nearest);
    if (!at)
        return false;
    memset(at, ' ', length);
    *at = '0';
    return true;
}

/* ---- compiling */

/* Whether a text contains a name as a word. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at++) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !isalnum((unsigned char)at[length]) && at[length] != '_')
            return true;
    }
    return false;
}

/* The tables that a text mentions, each under two names. */
static const char *mentioned_tables(const struct expressions *x, const char *text)
{
    const char *from = "";
    for (size_t i = 0; i < x->table_count; i++)
        if (has_word(text, x->tables[i]))
            from = arena_printf("%s%s%s, %s AS %s", from, *from ? ", " : " FROM ", quoted(x->tables[i]), quoted(x->tables[i]),
                                quoted(arena_printf("%s ", x->tables[i])));
    return from;
}

/* Compiles a query of one expression, `depth` deep in parentheses. */
static sqlite3_stmt *prepare(struct expressions *x, const char *text, unsigned depth, const char *inner, const char *outer)
{
    sqlite3_stmt *statement = NULL;
    const char *open = &"(("[2 - depth], *close = &"))"[2 - depth], *tail;
    const char *sql = arena_printf("SELECT (SELECT %s%s\n%s%s)%s", open, text, close, inner, outer);
    x->selects = 0;
    x->refused = NULL;
    if (sqlite3_prepare_v2(x->db, sql, -1, &statement, &tail) != SQLITE_OK)
        return NULL;
    return statement;
}

/* Finds what is wrong with an expression and what it reads. It is prepared in one and in two pairs of parentheses: a
 * text that closes the first pair itself, or hides its end in a comment, fails in one of them. */
static bool discover(struct expressions *x, struct expression *e)
{
    unsigned errors = error_count();
    char *copy = arena_printf("%s", e->text->text);
    if (strlen(copy) > TEXT_MOST) {
        error_at(e->text->where, "%s: an expression has at most %d characters", e->what, TEXT_MOST);
        return false;
    }
    const char *outer = mentioned_tables(x, copy), *inner = arena_printf(" FROM %s", quoted(plain_table));
    x->reading = &e->reads;
    x->selects_most = 2;
    for (unsigned depth = 1, tries = 0; depth <= 2;) {
        sqlite3_stmt *statement = prepare(x, copy, depth, inner, outer);
        if (statement) {
            bool single = sqlite3_column_count(statement) == 1 && !sqlite3_bind_parameter_count(statement);
            sqlite3_finalize(statement);
            depth++;
            if (single)
                continue;
            error_at(e->text->where, "%s: an expression has no parameters such as ?1", e->what);
        } else {
            const char *said = arena_printf("%s", sqlite3_errmsg(x->db));
            if (tries++ < UNKNOWN_MOST && unknown_name(x, e, copy, said))
                continue;
            if (!after(said, "no such column: "))
                error_at(e->text->where, "%s: %s", e->what, explained(x, said));
        }
        break;
    }
    x->reading = NULL;
    return error_count() == errors;
}

/* A query of one row, as a subquery, with the columns of a table that an expression reads; "" if there are none. The
 * values are parameters. */
static const char *row_of(const struct expressions *x, const struct expression *e, const char *table)
{
    const char *columns = "";
    bool plain = !strcmp(table, plain_table);
    for (size_t i = 0; i < e->reads.count; i++) {
        size_t read = e->reads.list[i];
        const char *between = *columns ? ", " : "";
        if (!strcasecmp(table_of(x, read), table)) {
            columns = arena_printf("%s%s?%zu AS %s", columns, between, i + 1, quoted(column_of(x, read)));
            between = ", ";
        }
        if (plain && path_of(x, read))
            columns = arena_printf("%s%s?%zu AS %s", columns, between, i + 1, quoted(path_of(x, read)));
    }
    return *columns ? arena_printf("(SELECT %s) AS %s", columns, quoted(table)) : "";
}

static void compile(struct expressions *x, struct expression *e)
{
    const char *inner = row_of(x, e, plain_table), *outer = "";
    for (size_t i = 0; i < x->table_count; i++) {
        const char *row = row_of(x, e, x->tables[i]);
        if (*row)
            outer = arena_printf("%s%s%s", outer, *outer ? ", " : " FROM ", row);
    }
    if (*inner)
        inner = arena_printf(" FROM %s", inner);
    x->selects_most = (unsigned)x->table_count + 3;
    e->statement = prepare(x, e->text->text, 1, inner, outer);
    if (!e->statement)
        error_at(e->text->where, "%s: %s", e->what, explained(x, sqlite3_errmsg(x->db)));
}

/* ---- order */

static void order_derived(struct expressions *x, size_t i, const struct expression *by);

/* Orders what an expression reads before it, and finds when it can be computed. */
static void order_reads(struct expressions *x, struct expression *e)
{
    for (size_t i = 0; i < e->reads.count; i++) {
        size_t read = e->reads.list[i];
        if (is_derived(x, read)) {
            order_derived(x, read - x->facts->count, e);
            if (x->list[read - x->facts->count].when == EXPRESSION_AFTER)
                e->when = EXPRESSION_AFTER;
        } else if (x->facts->list[read].of == FACT_METRIC) {
            read_add(&x->metrics, read);
            e->when = EXPRESSION_AFTER;
        }
    }
}

static void order_derived(struct expressions *x, size_t i, const struct expression *by)
{
    struct expression *e = &x->list[i];
    if (e->order == VISITED) {
        error_at(e->text->name_where, "derive: '%s' depends on itself", e->text->name);
        if (by != e)
            note_at(by->text->where, "through '%s'", by->text->name);
    }
    if (e->order != NEW)
        return;
    e->order = VISITED;
    order_reads(x, e);
    e->order = ORDERED;
    x->derive_order[x->derive_ordered++] = i;
}

/* ---- all of a space */

static void find_objectives(struct expressions *x)
{
    x->objective = arena_alloc(x->space->objective_count, sizeof *x->objective);
    for (size_t i = 0; i < x->space->objective_count; i++) {
        const struct objective *objective = &x->space->objectives[i];
        const char *dot = strchr(objective->name, '.');
        size_t found = find(x, plain_table, objective->name);
        if (found == name_count(x) && dot)
            found = find(x, arena_text(objective->name, (size_t)(dot - objective->name)), dot + 1);
        x->objective[i] = found;
        if (found == name_count(x)) {
            error_at(objective->where, "objectives: unknown name '%s'", objective->name);
            const char *nearest = nearest_to(x, objective->name);
            if (nearest)
                note_at(objective->where, "did you mean '%s'?", nearest);
            else
                note_at(objective->where, "an objective is a metric of a run or a derived value");
        } else if (!is_derived(x, found) && x->facts->list[found].of == FACT_METRIC) {
            read_add(&x->metrics, found);
        }
    }
}

struct expressions *expressions_begin(const struct space *space, const struct facts *facts)
{
    unsigned errors = error_count();
    struct expressions *x = arena_alloc(1, sizeof *x);
    x->space = space;
    x->facts = facts;
    x->count = space->derive_count + space->condition_count;
    x->list = arena_alloc(x->count + 1, sizeof *x->list);
    x->derive_order = arena_alloc(space->derive_count + 1, sizeof *x->derive_order);
    for (size_t i = 0; i < x->count; i++) {
        bool derived = i < space->derive_count;
        struct expression *e = &x->list[i];
        e->text = derived ? &space->derive[i] : &space->conditions[i - space->derive_count];
        e->what = derived ? arena_printf("derive: %s", e->text->name) : "where";
    }
    x->db = open_database(x);
    create_tables(x);
    sqlite3_set_authorizer(x->db, authorize, x);
    for (size_t i = 0; i < x->count; i++)
        discover(x, &x->list[i]);
    find_objectives(x);
    for (size_t i = 0; i < x->count; i++)
        if (i < space->derive_count)
            order_derived(x, i, &x->list[i]);
        else
            order_reads(x, &x->list[i]);
    for (size_t i = 0; error_count() == errors && i < x->count; i++)
        compile(x, &x->list[i]);
    return x;
}

void expressions_end(struct expressions *x)
{
    for (size_t i = 0; i < x->count; i++)
        sqlite3_finalize(x->list[i].statement);
    sqlite3_close(x->db);
}

const size_t *expressions_metrics(const struct expressions *x, size_t *count)
{
    *count = x->metrics.count;
    return x->metrics.list;
}

/* ---- values */

static struct sql_value value_of(const struct expressions *x, size_t read, const struct facts_of_point *point,
                                 const struct judgement *judgement)
{
    return is_derived(x, read) ? judgement->derived[read - x->facts->count] : fact_value(&x->facts->list[read], point);
}

static void bind(sqlite3_stmt *statement, int parameter, struct sql_value value)
{
    switch (value.type) {
    case SQL_NULL: sqlite3_bind_null(statement, parameter); break;
    case SQL_INTEGER: sqlite3_bind_int64(statement, parameter, value.integer); break;
    case SQL_REAL: sqlite3_bind_double(statement, parameter, value.real); break;
    case SQL_TEXT: sqlite3_bind_text(statement, parameter, value.text, -1, SQLITE_STATIC); break;
    }
}

static struct sql_value column_value(sqlite3_stmt *statement)
{
    switch (sqlite3_column_type(statement, 0)) {
    case SQLITE_INTEGER: return (struct sql_value){.type = SQL_INTEGER, .integer = sqlite3_column_int64(statement, 0)};
    case SQLITE_FLOAT: return (struct sql_value){.type = SQL_REAL, .real = sqlite3_column_double(statement, 0)};
    case SQLITE_NULL: return (struct sql_value){.type = SQL_NULL};
    default:
        return (struct sql_value){.type = SQL_TEXT, .text = arena_printf("%s", (const char *)sqlite3_column_text(statement, 0))};
    }
}

static void blame(struct judgement *judgement, const char *why)
{
    if (!judgement->why)
        judgement->why = why;
}

static struct sql_value compute(struct expressions *x, const struct expression *e, const struct facts_of_point *point,
                                struct judgement *judgement)
{
    struct sql_value value = {.type = SQL_NULL};
    for (size_t i = 0; i < e->reads.count; i++)
        bind(e->statement, (int)i + 1, value_of(x, e->reads.list[i], point, judgement));
    x->is_late = false;
    if (sqlite3_step(e->statement) == SQLITE_ROW) {
        value = column_value(e->statement);
    } else {
        blame(judgement, arena_printf("%s: %s", e->what, sqlite3_errmsg(x->db)));
        judgement->failed = true;
    }
    sqlite3_reset(e->statement);
    return value;
}

/* As SQLite has it: a number that is not 0. */
static bool is_true(struct sql_value value)
{
    return value.type == SQL_INTEGER ? value.integer != 0 : value.type == SQL_REAL && value.real != 0;
}

static void judge(struct expressions *x, enum expression_when when, const struct facts_of_point *point,
                  struct judgement *judgement)
{
    const struct space *space = x->space;
    for (size_t i = 0; i < space->derive_count; i++) {
        const struct expression *e = &x->list[x->derive_order[i]];
        if (e->when == when)
            judgement->derived[x->derive_order[i]] = compute(x, e, point, judgement);
    }
    for (size_t i = 0; i < space->condition_count; i++) {
        const struct expression *e = &x->list[space->derive_count + i];
        if (e->when != when || is_true(compute(x, e, point, judgement)))
            continue;
        judgement->met[i] = false;
        judgement->violated++;
        blame(judgement, arena_printf("where: %s", e->text->text));
    }
}

static void find_objective_values(struct expressions *x, const struct facts_of_point *point, struct judgement *judgement)
{
    for (size_t i = 0; i < x->space->objective_count; i++) {
        const struct objective *objective = &x->space->objectives[i];
        struct sql_value value = value_of(x, x->objective[i], point, judgement);
        double number = value.type == SQL_INTEGER ? (double)value.integer : value.type == SQL_REAL ? value.real : NAN;
        judgement->objectives[i] = objective->largest ? -number : number;
        if (isfinite(number))
            continue;
        judgement->failed = true;
        blame(judgement, arena_printf("objectives: %s has no value", objective->name));
    }
}

struct judgement expressions_before(struct expressions *x, const struct facts_of_point *point)
{
    const struct space *space = x->space;
    struct judgement judgement = {
        .derived = arena_alloc(space->derive_count + 1, sizeof *judgement.derived),
        .met = arena_alloc(space->condition_count + 1, sizeof *judgement.met),
        .objectives = arena_alloc(space->objective_count, sizeof *judgement.objectives),
    };
    memset(judgement.met, true, space->condition_count);
    judge(x, EXPRESSION_BEFORE, point, &judgement);
    return judgement;
}

void expressions_after(struct expressions *x, const struct facts_of_point *point, struct judgement *judgement)
{
    judge(x, EXPRESSION_AFTER, point, judgement);
    find_objective_values(x, point, judgement);
}
