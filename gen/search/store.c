/* store.c: the results of searches in an SQLite file.
 *
 * A point and its trial are written in one transaction, and neither twice: whenever a search is killed, what it has
 * committed is complete, and the rest is done again. */
#include "store.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/fail.h"

enum { PATIENCE_MS = 600000, LOG_TRIES = 1000, LOG_WAIT_NS = 10000000, FIXED_COLUMNS = 6, VARINT_MOST = 5 };

struct store {
    sqlite3 *file;
    const char *path;
    size_t values, metrics;                             /* columns of points */
    sqlite3_stmt *point, *put_point, *alias, *put_alias, *put_trial, *put_verified;
    bool has_changes;                                   /* a transaction is open */
};

static const char schema[] =
    "CREATE TABLE search(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, space TEXT NOT NULL, topology TEXT NOT NULL,"
    " about TEXT NOT NULL, begun TEXT NOT NULL, kbgen TEXT NOT NULL) STRICT;"
    "CREATE TABLE point(hash TEXT PRIMARY KEY, structure TEXT, status TEXT NOT NULL, why TEXT, exit INTEGER,"
    " host_us INTEGER) STRICT, WITHOUT ROWID;"
    "CREATE TABLE trial(search INTEGER NOT NULL, number INTEGER NOT NULL, hash TEXT, status TEXT, why TEXT, levels BLOB,"
    " PRIMARY KEY(search, number)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE alias(asked TEXT PRIMARY KEY, hash TEXT NOT NULL, used TEXT) STRICT, WITHOUT ROWID;"
    "CREATE TABLE derived(name TEXT PRIMARY KEY, expression TEXT NOT NULL) STRICT;"
    "CREATE TABLE verified(hash TEXT PRIMARY KEY, status TEXT NOT NULL, why TEXT, max_err REAL) STRICT, WITHOUT ROWID;";

/* What a store of version 1 lacks. */
static const char since_1[] = "ALTER TABLE alias ADD COLUMN used TEXT; ALTER TABLE verified ADD COLUMN max_err REAL;";

/* ---- SQLite */

static _Noreturn void broken(const struct store *store)
{
    die("store %s: %s", store->path, sqlite3_errmsg(store->file));
}

static void must(const struct store *store, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        broken(store);
}

static void run(const struct store *store, const char *sql)
{
    must(store, sqlite3_exec(store->file, sql, NULL, NULL, NULL));
}

static sqlite3_stmt *prepare(const struct store *store, const char *sql)
{
    sqlite3_stmt *statement;
    must(store, sqlite3_prepare_v3(store->file, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

/* The first column of the first row of a statement as a number. */
static int64_t number_of(const struct store *store, const char *sql)
{
    sqlite3_stmt *statement = prepare(store, sql);
    must(store, sqlite3_step(statement));
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static void bind_text(const struct store *store, sqlite3_stmt *statement, int at, const char *text)
{
    must(store, sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC));
}

static void bind_value(const struct store *store, sqlite3_stmt *statement, int at, const struct sql_value *value)
{
    switch (value->type) {
    case SQL_INTEGER:
        must(store, sqlite3_bind_int64(statement, at, value->integer));
        break;
    case SQL_REAL:
        must(store, sqlite3_bind_double(statement, at, value->real));
        break;
    case SQL_TEXT:
        bind_text(store, statement, at, value->text);
        break;
    default:
        must(store, sqlite3_bind_null(statement, at));
    }
}

/* Runs a statement that returns nothing, and makes it ready for the next time. */
static void finish(const struct store *store, sqlite3_stmt *statement)
{
    must(store, sqlite3_step(statement));
    must(store, sqlite3_reset(statement));
}

static char *column_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? arena_text(text, strlen(text)) : NULL;
}

/* A name in SQL's double quotes. */
static const char *quoted(const char *name)
{
    char *text = sqlite3_mprintf("\"%w\"", name);
    if (!text)
        die("out of memory");
    const char *kept = arena_text(text, strlen(text));
    sqlite3_free(text);
    return kept;
}

/* ---- opening */

static void check_kind(const struct store *store)
{
    int64_t application = number_of(store, "PRAGMA application_id"), version = number_of(store, "PRAGMA user_version");
    if (application != STORE_APPLICATION)
        usage_error("%s is an SQLite file, but no store of kbgen search", store->path);
    if (version < 1 || version > STORE_VERSION)
        usage_error("store %s has version %lld; this kbgen reads and writes versions up to %d", store->path, (long long)version,
                    STORE_VERSION);
}

/* Makes the tables of a new file, and brings one of version 1 up to date. Another search may be doing the same. */
static void make_tables(struct store *store)
{
    run(store, "BEGIN IMMEDIATE");
    if (!number_of(store, "SELECT count(*) FROM sqlite_schema")) {
        run(store, schema);
        run(store, arena_printf("PRAGMA application_id = %d; PRAGMA user_version = %d", STORE_APPLICATION, STORE_VERSION));
    }
    check_kind(store);
    if (number_of(store, "PRAGMA user_version") == 1)
        run(store, arena_printf("%s PRAGMA user_version = %d", since_1, STORE_VERSION));
    run(store, "COMMIT");
}

/* SQLite takes ":memory:" and "file:x" for something else than names of files. */
static const char *file_name(const char *path)
{
    return *path == '/' ? path : arena_printf("./%s", path);
}

/* Opens a file that is a store, or is to become one. */
static struct store *open_file(const char *path, int flags)
{
    struct store *store = arena_alloc(1, sizeof *store);
    store->path = path;
    if (sqlite3_open_v2(file_name(path), &store->file, flags, NULL) != SQLITE_OK)
        usage_error("store %s: %s", path, sqlite3_errmsg(store->file));
    must(store, sqlite3_busy_timeout(store->file, PATIENCE_MS));
    int code = sqlite3_exec(store->file, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
    if (code == SQLITE_NOTADB)
        usage_error("%s is no SQLite file", path);
    must(store, code);
    if (number_of(store, "SELECT count(*) FROM sqlite_schema"))
        check_kind(store);                              /* before the log's kind of another program's file is changed */
    return store;
}

void store_check(const char *path)
{
    if (access(path, F_OK) != 0)
        return;
    struct store *store = open_file(path, SQLITE_OPEN_READWRITE);
    must(store, sqlite3_close(store->file));
}

/* Opens a file with this kind of log. SQLite does not wait for others when it changes the kind: it is refused at once while
 * they have the file open, and two that wait for each other with the file open would wait for ever. */
static struct store *open_with_log(const char *path, const char *pragma)
{
    for (int tries = 1;; tries++) {
        struct store *store = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
        int code = sqlite3_exec(store->file, pragma, NULL, NULL, NULL);
        if (code != SQLITE_BUSY || tries == LOG_TRIES) {
            must(store, code);
            return store;
        }
        must(store, sqlite3_close(store->file));
        nanosleep(&(struct timespec){0, LOG_WAIT_NS}, NULL);
    }
}

struct store *store_open(const char *path, bool shared)
{
    struct store *store = open_with_log(path, shared ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL");
    run(store, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536");
    make_tables(store);
    store->alias = prepare(store, "SELECT hash, used FROM alias WHERE asked = ?1 AND used IS NOT NULL");
    store->put_alias = prepare(store, "INSERT OR REPLACE INTO alias(asked, hash, used) VALUES(?1, ?2, ?3)");
    store->put_trial = prepare(store, "INSERT OR IGNORE INTO trial VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
    store->put_verified = prepare(store, "INSERT OR REPLACE INTO verified(hash, status, why, max_err) VALUES(?1, ?2, ?3, ?4)");
    return store;
}

void store_close(struct store *store)
{
    sqlite3_stmt *all[] = {store->point, store->put_point, store->alias, store->put_alias, store->put_trial,
                           store->put_verified};
    store_commit(store);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        sqlite3_finalize(all[i]);
    must(store, sqlite3_close(store->file));
}

void store_begin(struct store *store)
{
    if (!store->has_changes)
        run(store, "BEGIN IMMEDIATE");
    store->has_changes = true;
}

void store_commit(struct store *store)
{
    if (store->has_changes)
        run(store, "COMMIT");
    store->has_changes = false;
}

/* ---- searches */

static const char *now_text(void)
{
    char text[sizeof "2000-01-01T00:00:00Z"];
    time_t now = time(NULL);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return arena_text(text, strlen(text));
}

int64_t store_search(struct store *store, const struct store_search *search)
{
    const char *texts[] = {search->hash, search->space, search->topology, search->about, now_text(), search->kbgen};
    sqlite3_stmt *insert = prepare(store, "INSERT OR IGNORE INTO search(hash, space, topology, about, begun, kbgen)"
                                   " VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        bind_text(store, insert, (int)i + 1, texts[i]);
    store_begin(store);
    finish(store, insert);
    sqlite3_finalize(insert);
    sqlite3_stmt *find = prepare(store, "SELECT id FROM search WHERE hash = ?1");
    bind_text(store, find, 1, search->hash);
    must(store, sqlite3_step(find));
    int64_t id = sqlite3_column_int64(find, 0);
    sqlite3_finalize(find);
    return id;
}

const char *store_derived(struct store *store, const char *name, const char *expression)
{
    store_begin(store);
    sqlite3_stmt *insert = prepare(store, "INSERT OR IGNORE INTO derived VALUES(?1, ?2)");
    bind_text(store, insert, 1, name);
    bind_text(store, insert, 2, expression);
    finish(store, insert);
    sqlite3_finalize(insert);
    sqlite3_stmt *find = prepare(store, "SELECT expression FROM derived WHERE name = ?1 AND expression <> ?2");
    bind_text(store, find, 1, name);
    bind_text(store, find, 2, expression);
    must(store, sqlite3_step(find));
    const char *other = column_text(find, 0);
    sqlite3_finalize(find);
    return other;
}

static bool has_column(const struct store *store, const char *name)
{
    sqlite3_stmt *find = prepare(store, "SELECT 1 FROM pragma_table_info('point') WHERE name = ?1 COLLATE NOCASE");
    bind_text(store, find, 1, name);
    int code = sqlite3_step(find);
    must(store, code);
    sqlite3_finalize(find);
    return code == SQLITE_ROW;
}

void store_columns(struct store *store, const char *const *names, size_t values, size_t metrics)
{
    const char *read = "", *columns = "", *marks = "", *update = "";
    store->values = values;
    store->metrics = metrics;
    store_begin(store);
    for (size_t i = 0; i < values + metrics; i++) {
        const char *name = quoted(names[i]);
        if (!has_column(store, names[i]))
            run(store, arena_printf("ALTER TABLE point ADD COLUMN %s %s", name, i < values ? "ANY" : "INTEGER"));
        columns = arena_printf("%s, %s", columns, name);
        marks = arena_printf("%s, ?%zu", marks, FIXED_COLUMNS + 1 + i);
        update = arena_printf("%s%s%s = coalesce(%s, excluded.%s)", update, i ? ", " : "", name, name, name);
        if (i >= values)
            read = arena_printf("%s, %s", read, name);
    }
    store->point = prepare(store, arena_printf("SELECT hash, structure, status, why, exit, host_us%s FROM point"
                                               " WHERE hash = ?1", read));
    store->put_point = prepare(store, arena_printf(
        "INSERT INTO point(hash, structure, status, why, exit, host_us%s) VALUES(?1, ?2, ?3, ?4, ?5, ?6%s)"
        " ON CONFLICT(hash) DO %s%s", columns, marks, values + metrics ? "UPDATE SET " : "NOTHING", update));
}

/* ---- points and trials */

static void read_metrics(const struct store *store, struct store_point *point)
{
    for (size_t i = 0; i < store->metrics; i++)
        point->metrics[i] = sqlite3_column_int64(store->point, FIXED_COLUMNS + (int)i);
}

static bool has_metrics(const struct store *store)
{
    for (size_t i = 0; i < store->metrics; i++)
        if (sqlite3_column_type(store->point, FIXED_COLUMNS + (int)i) == SQLITE_NULL)
            return false;
    return true;
}

bool store_point(struct store *store, const char *hash, struct store_point *point)
{
    sqlite3_stmt *find = store->point;
    bind_text(store, find, 1, hash);
    int code = sqlite3_step(find);
    must(store, code);
    bool found = code == SQLITE_ROW;
    if (found) {
        point->hash = column_text(find, 0);
        point->structure = column_text(find, 1);
        point->status = column_text(find, 2);
        point->why = column_text(find, 3);
        point->exit = sqlite3_column_type(find, 4) == SQLITE_NULL ? -1 : sqlite3_column_int(find, 4);
        point->host_us = (uint64_t)sqlite3_column_int64(find, 5);
        found = strcmp(point->status, "ok") || has_metrics(store);
        read_metrics(store, point);
    }
    must(store, sqlite3_reset(find));                   /* a statement that is not at its end keeps others from writing */
    return found;
}

void store_put_point(struct store *store, const struct store_point *point)
{
    sqlite3_stmt *put = store->put_point;
    bool is_good = !strcmp(point->status, "ok");
    store_begin(store);
    bind_text(store, put, 1, point->hash);
    bind_text(store, put, 2, point->structure);
    bind_text(store, put, 3, point->status);
    bind_text(store, put, 4, point->why);
    bind_value(store, put, 5, &(struct sql_value){point->exit < 0 ? SQL_NULL : SQL_INTEGER, point->exit, 0, NULL});
    bind_value(store, put, 6, &(struct sql_value){point->exit < 0 ? SQL_NULL : SQL_INTEGER, (int64_t)point->host_us, 0, NULL});
    for (size_t i = 0; i < store->values; i++)
        bind_value(store, put, FIXED_COLUMNS + 1 + (int)i, &point->values[i]);
    for (size_t i = 0; i < store->metrics; i++)
        bind_value(store, put, FIXED_COLUMNS + 1 + (int)(store->values + i),
                   &(struct sql_value){is_good ? SQL_INTEGER : SQL_NULL, is_good ? point->metrics[i] : 0, 0, NULL});
    finish(store, put);
}

const char *store_alias(struct store *store, const char *asked, const char **used)
{
    bind_text(store, store->alias, 1, asked);
    must(store, sqlite3_step(store->alias));
    const char *hash = column_text(store->alias, 0);
    *used = column_text(store->alias, 1);
    must(store, sqlite3_reset(store->alias));
    return hash;
}

void store_put_alias(struct store *store, const char *asked, const char *hash, const char *used)
{
    store_begin(store);
    bind_text(store, store->put_alias, 1, asked);
    bind_text(store, store->put_alias, 2, hash);
    bind_text(store, store->put_alias, 3, used);
    finish(store, store->put_alias);
}

/* Levels as varints: one in most axes is one byte. */
static size_t pack(const uint32_t *levels, size_t count, unsigned char *bytes)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t rest = levels[i];
        for (; rest >= 128; rest >>= 7)
            bytes[length++] = (unsigned char)(rest | 128);
        bytes[length++] = (unsigned char)rest;
    }
    return length;
}

void store_put_trial(struct store *store, const struct store_trial *trial)
{
    sqlite3_stmt *put = store->put_trial;
    struct arena_mark mark = arena_mark();
    unsigned char *bytes = arena_alloc(trial->axes + 1, VARINT_MOST);
    store_begin(store);
    must(store, sqlite3_bind_int64(put, 1, trial->search));
    must(store, sqlite3_bind_int64(put, 2, (int64_t)trial->number));
    bind_text(store, put, 3, trial->hash);
    bind_text(store, put, 4, trial->status);
    bind_text(store, put, 5, trial->why);
    must(store, sqlite3_bind_blob(put, 6, bytes, (int)pack(trial->levels, trial->axes, bytes), SQLITE_STATIC));
    finish(store, put);
    arena_release(mark);
}

static struct sql_value column_value(sqlite3_stmt *statement, int column)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        return (struct sql_value){SQL_INTEGER, sqlite3_column_int64(statement, column), 0, NULL};
    case SQLITE_FLOAT:
        return (struct sql_value){SQL_REAL, 0, sqlite3_column_double(statement, column), NULL};
    case SQLITE_TEXT:
        return (struct sql_value){SQL_TEXT, 0, 0, column_text(statement, column)};
    default:
        return (struct sql_value){SQL_NULL, 0, 0, NULL};
    }
}

void store_trials(struct store *store, int64_t search, const char *const *columns, size_t count,
                  void (*each)(const struct stored_trial *trial, void *arg), void *arg)
{
    enum { FIRST = 3 };
    const char *names = "";
    for (size_t i = 0; i < count; i++)
        names = arena_printf("%s, point.%s", names, quoted(columns[i]));
    sqlite3_stmt *all = prepare(store, arena_printf(
        "SELECT number, trial.hash, coalesce(trial.status, point.status)%s FROM trial LEFT JOIN point"
        " ON point.hash = trial.hash WHERE search = ?1 ORDER BY number", names));
    must(store, sqlite3_bind_int64(all, 1, search));
    for (int code; (code = sqlite3_step(all)) != SQLITE_DONE;) {
        must(store, code);
        struct arena_mark mark = arena_mark();
        struct sql_value *values = arena_alloc(count + 1, sizeof *values);
        for (size_t i = 0; i < count; i++)
            values[i] = column_value(all, FIRST + (int)i);
        each(&(struct stored_trial){(uint64_t)sqlite3_column_int64(all, 0), column_text(all, 1), column_text(all, 2), values},
             arg);
        arena_release(mark);
    }
    sqlite3_finalize(all);
}

static void unpack(const unsigned char *bytes, size_t length, uint32_t *levels, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        levels[i] = 0;
        for (unsigned shift = 0; at < length; shift += 7) {
            levels[i] |= (uint32_t)(bytes[at] & 127) << shift;
            if (bytes[at++] < 128)
                break;
        }
    }
}

bool store_levels(struct store *store, int64_t search, const char *hash, uint32_t *levels, size_t axes)
{
    sqlite3_stmt *find = prepare(store, "SELECT levels FROM trial WHERE search = ?1 AND hash = ?2 ORDER BY number LIMIT 1");
    must(store, sqlite3_bind_int64(find, 1, search));
    bind_text(store, find, 2, hash);
    int code = sqlite3_step(find);
    must(store, code);
    if (code == SQLITE_ROW)
        unpack(sqlite3_column_blob(find, 0), (size_t)sqlite3_column_bytes(find, 0), levels, axes);
    sqlite3_finalize(find);
    return code == SQLITE_ROW;
}

static bool is_among(const char *hash, const char *const *hashes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(hash, hashes[i]))
            return true;
    return false;
}

size_t store_best(struct store *store, int64_t search, const char *column, bool largest, const struct store_filter *filter,
                  const char **hashes, size_t most)
{
    size_t count = 0;
    uint32_t *levels = arena_alloc(filter->axes + 1, sizeof *levels);
    sqlite3_stmt *best = prepare(store, arena_printf(
        "SELECT hash, levels FROM trial JOIN point USING(hash) WHERE search = ?1 AND trial.status IS NULL"
        " AND point.status = 'ok' ORDER BY point.%s%s, number", quoted(column), largest ? " DESC" : ""));
    must(store, sqlite3_bind_int64(best, 1, search));
    for (int code; count < most && (code = sqlite3_step(best)) != SQLITE_DONE;) {
        must(store, code);
        const char *hash = (const char *)sqlite3_column_text(best, 0);
        unpack(sqlite3_column_blob(best, 1), (size_t)sqlite3_column_bytes(best, 1), levels, filter->axes);
        if (filter->takes(levels, filter->arg) && !is_among(hash, hashes, count))
            hashes[count++] = arena_text(hash, strlen(hash));
    }
    sqlite3_finalize(best);
    return count;
}

void store_put_verified(struct store *store, const struct store_verified *verified)
{
    sqlite3_stmt *put = store->put_verified;
    store_begin(store);
    bind_text(store, put, 1, verified->hash);
    bind_text(store, put, 2, verified->status);
    bind_text(store, put, 3, verified->why);
    must(store, sqlite3_bind_double(put, 4, verified->max_err));        /* NAN is NULL */
    finish(store, put);
}
