/* merge.c: what several stores have, in one.
 *
 * Each store is attached and read by SQL. Its schema is not trusted: tables and types are those of a store, names of columns
 * are quoted, and nothing that a schema can define, such as a trigger or a view, is run. */
#include "merge.h"

#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/path_error.h"
#include "store.h"

enum { PATIENCE_MS = 600000 };

static int merge_main(int argc, char **argv);

const struct subcommand merge_subcommand = {
    "merge", "NAME.db STORE.db ...", "adds to a store what others have, such as the stores of shards",
    "Adds to the store NAME.db all searches, points and trials that the other stores have and it lacks. It is made if\n"
    "there is none. The others stay as they are. Merging again changes nothing.",
    NULL, merge_main,
};

/* A store that is merged into, with the other one attached as `other`. */
struct merging {
    sqlite3 *db;
    const char *into, *from;
};

static void must(const struct merging *m, int code)
{
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        die("merge %s into %s: %s", m->from, m->into, sqlite3_errmsg(m->db));
}

static sqlite3_stmt *query(const struct merging *m, const char *sql)
{
    sqlite3_stmt *statement;
    must(m, sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL));
    return statement;
}

static void run(const struct merging *m, const char *sql)
{
    must(m, sqlite3_exec(m->db, sql, NULL, NULL, NULL));
}

static bool next(const struct merging *m, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    must(m, code);
    if (code == SQLITE_DONE)
        sqlite3_finalize(statement);
    return code == SQLITE_ROW;
}

static int64_t number(const struct merging *m, const char *sql)
{
    sqlite3_stmt *statement = query(m, sql);
    int64_t value = next(m, statement) ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return value;
}

static void attach(const struct merging *m)
{
    sqlite3_stmt *statement = query(m, "ATTACH ?1 AS other");
    must(m, sqlite3_bind_text(statement, 1, m->from, -1, SQLITE_STATIC));
    int code = sqlite3_step(statement);
    if (code == SQLITE_NOTADB || code == SQLITE_CANTOPEN || code == SQLITE_CORRUPT)
        usage_error("%s is no store of kbgen search: %s", m->from, sqlite3_errmsg(m->db));
    must(m, code);
    sqlite3_finalize(statement);
    if (number(m, "PRAGMA other.application_id") != STORE_APPLICATION)
        usage_error("%s is no store of kbgen search", m->from);
    int64_t version = number(m, "PRAGMA other.user_version");
    if (version < 1 || version > STORE_VERSION)
        usage_error("store %s has version %" PRId64 "; this kbgen reads and writes versions up to %d", m->from, version, STORE_VERSION);
    if (number(m, "SELECT count(*) FROM other.sqlite_schema WHERE type NOT IN ('table', 'index')"))
        usage_error("store %s has been changed: it has triggers or views", m->from);
}

/* Stores with different expressions of one name cannot be merged: their columns differ in meaning. */
static void check_derived(const struct merging *m)
{
    sqlite3_stmt *statement = query(m, "SELECT a.name, a.expression, b.expression FROM other.derived a"
                                       " JOIN main.derived b ON a.name = b.name AND a.expression <> b.expression");
    if (next(m, statement))
        usage_error("'%s' is %s in %s, but %s in %s", printable((const char *)sqlite3_column_text(statement, 0)),
                    printable((const char *)sqlite3_column_text(statement, 1)), m->from,
                    printable((const char *)sqlite3_column_text(statement, 2)), m->into);
}

/* Adds the columns of points that only the other store has. Returns all columns of that store, quoted, with commas. */
static const char *add_columns(const struct merging *m, const char **updates)
{
    const char *all = "";
    *updates = "";
    sqlite3_stmt *statement = query(m, "SELECT o.name, o.type, m.name IS NOT NULL FROM pragma_table_info('point', 'other') o"
                                       " LEFT JOIN pragma_table_info('point', 'main') m ON m.name = o.name");
    while (next(m, statement)) {
        const char *type = (const char *)sqlite3_column_text(statement, 1);
        char *name = sqlite3_mprintf("\"%w\"", sqlite3_column_text(statement, 0));
        if (!name)
            die("out of memory");
        if (strcmp(type, "ANY") && strcmp(type, "INTEGER") && strcmp(type, "REAL") && strcmp(type, "TEXT"))
            usage_error("store %s has been changed: a column has type %s", m->from, printable(type));
        if (!sqlite3_column_int(statement, 2))
            run(m, arena_printf("ALTER TABLE main.point ADD COLUMN %s %s", name, type));
        all = arena_printf("%s%s%s", all, *all ? ", " : "", name);
        *updates = arena_printf("%s%s%s = coalesce(%s, excluded.%s)", *updates, **updates ? ", " : "", name, name, name);
        sqlite3_free(name);
    }
    return all;
}

static void add_rows(const struct merging *m)
{
    const char *updates, *columns = add_columns(m, &updates);
    run(m, "INSERT OR IGNORE INTO main.derived SELECT * FROM other.derived");
    run(m, "INSERT OR IGNORE INTO main.search(hash, space, topology, about, begun, kbgen)"
           " SELECT hash, space, topology, about, begun, kbgen FROM other.search ORDER BY id");
    run(m, arena_printf("INSERT INTO main.point(%s) SELECT %s FROM other.point WHERE true"
                        " ON CONFLICT(hash) DO UPDATE SET %s", columns, columns, updates));
    run(m, "INSERT OR IGNORE INTO main.trial(search, number, hash, status, why, levels)"
           " SELECT mine.id, t.number, t.hash, t.status, t.why, t.levels FROM other.trial t"
           " JOIN other.search theirs ON theirs.id = t.search JOIN main.search mine ON mine.hash = theirs.hash");
    if (number(m, "PRAGMA other.user_version") == 1) {      /* it does not say what was used, nor how large errors were */
        run(m, "INSERT OR IGNORE INTO main.verified(hash, status, why) SELECT hash, status, why FROM other.verified");
        return;
    }
    run(m, "INSERT OR IGNORE INTO main.alias(asked, hash, used) SELECT asked, hash, used FROM other.alias");
    run(m, "INSERT OR IGNORE INTO main.verified(hash, status, why, max_err)"
           " SELECT hash, status, why, max_err FROM other.verified");
}

static void open_store(struct merging *m)
{
    if (sqlite3_open_v2(m->into, &m->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        die("store %s: %s", m->into, sqlite3_errmsg(m->db));
    must(m, sqlite3_db_config(m->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL));
    must(m, sqlite3_busy_timeout(m->db, PATIENCE_MS));
}

/* Whether a store has a write-ahead log, as byte 18 of an SQLite file says. It keeps that; a new one gets none, since its file
 * system may be shared. */
static bool has_log(const char *path)
{
    FILE *file = fopen(path, "rb");
    bool has = file && fseek(file, 18, SEEK_SET) == 0 && getc(file) == 2;
    if (file)
        fclose(file);
    return has;
}

void merge_store(const char *into, const char *from)
{
    struct arena_mark mark = arena_mark();
    struct merging m = {.into = into, .from = from};
    if (access(from, F_OK))
        usage_error("store %s: there is no such file", from);
    if (is_same_file(into, from))
        usage_error("store %s cannot be merged into itself", into);
    store_close(store_open(into, !has_log(into)));      /* makes and checks it */
    open_store(&m);
    attach(&m);
    run(&m, "BEGIN");                                   /* BEGIN IMMEDIATE would lock the other one for writing, too */
    run(&m, "DELETE FROM main.derived WHERE false");    /* waits for its turn to write */
    check_derived(&m);
    add_rows(&m);
    run(&m, "COMMIT");
    must(&m, sqlite3_close(m.db));
    arena_release(mark);
}

static int merge_main(int argc, char **argv)
{
    while (subcommand_option(&merge_subcommand, argc, argv) != -1)
        continue;
    if (argc - optind < 2)
        usage_error("merge needs a store and others to add to it: %s %s", merge_subcommand.name, merge_subcommand.arguments);
    for (int i = optind + 1; i < argc; i++)
        merge_store(argv[optind], argv[i]);
    struct merging m = {.into = argv[optind], .from = argv[optind]};
    open_store(&m);
    printf("%s: %" PRId64 " points, %" PRId64 " trials\n", m.into, number(&m, "SELECT count(*) FROM point"),
           number(&m, "SELECT count(*) FROM trial"));
    must(&m, sqlite3_close(m.db));
    return STATUS_GOOD;
}
