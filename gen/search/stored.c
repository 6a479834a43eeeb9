/* stored.c: reads a store of kbgen search. */
#define _GNU_SOURCE                                     /* vasprintf */

#include "stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../rt/common/arena.h"
#include "../../rt/common/diag.h"
#include "../../rt/common/hash.h"
#include "../../rt/common/path_error.h"
#include "store.h"

enum {
    BUSY_MS = 5000,
    TOPOLOGY_END = 4,                                   /* a kept topology is followed by this many 0 bytes, however it ends */
};

const char *const column_role_names[COLUMN_ROLES] = {"fixed", "axis", "metric", "derived", "other"};

static _Noreturn void failed(const struct stored *stored)
{
    switch (sqlite3_errcode(stored->db)) {
    case SQLITE_NOTADB:
        usage_error("%s is not a store of kbgen search: it is no SQLite file", stored->path);
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
        usage_error("%s is damaged: %s", stored->path, printable(sqlite3_errmsg(stored->db)));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        die("%s is locked by another program; try again when it is done", stored->path);
    default:
        die("cannot read %s: %s", stored->path, sqlite3_errmsg(stored->db));
    }
}

sqlite3_stmt *stored_query(const struct stored *stored, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *sql;
    if (vasprintf(&sql, format, args) < 0)
        die("not enough memory");
    va_end(args);
    sqlite3_stmt *query;
    if (sqlite3_prepare_v2(stored->db, sql, -1, &query, NULL) != SQLITE_OK)
        failed(stored);
    free(sql);
    return query;
}

bool stored_step(const struct stored *stored, sqlite3_stmt *query)
{
    int code = sqlite3_step(query);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        failed(stored);
    return code == SQLITE_ROW;
}

bool stored_next(const struct stored *stored, sqlite3_stmt *query)
{
    bool row = stored_step(stored, query);
    if (!row)
        sqlite3_finalize(query);
    return row;
}

const char *stored_text(sqlite3_stmt *query, int column)
{
    const char *text = (const char *)sqlite3_column_text(query, column);
    return text ? arena_printf("%s", text) : NULL;
}

/* The number that a statement gives, which names no parameter but ?1: the search. 0: it gives none. */
static int64_t number_of(const struct stored *stored, const char *sql)
{
    sqlite3_stmt *query = stored_query(stored, "%s", sql);
    if (sqlite3_bind_parameter_count(query))
        sqlite3_bind_int64(query, 1, stored->search);
    if (!stored_next(stored, query))
        return 0;
    int64_t number = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return number;
}

/* A URI for a path, which says that no one writes the file. */
static const char *immutable_uri(const char *path)
{
    char *uri = arena_alloc(3 * strlen(path) + 32, 1), *to = uri + sprintf(uri, "file:");
    for (; *path; path++)
        to += strchr("%?#", *path) ? sprintf(to, "%%%02x", *path) : sprintf(to, "%c", *path);
    strcpy(to, "?immutable=1");
    return uri;
}

static void open_file(struct stored *stored)
{
    if (access(stored->path, R_OK))
        usage_error("cannot read %s: %s", stored->path, path_error(stored->path));
    /* Readers of a store share memory in a file beside it. Where none can be made, nobody else writes the store either. */
    bool alone = access(arena_printf("%s-wal", stored->path), F_OK) && access(arena_printf("%s-shm", stored->path), F_OK);
    char *real = realpath(stored->path, NULL);
    char *folder = real ? real : arena_printf("%s", stored->path);
    const char *path = folder;
    char *slash = strrchr(folder, '/');
    bool writable = !slash || !access(slash == folder ? "/" : arena_text(folder, (size_t)(slash - folder)), W_OK);
    if (alone && !writable)
        path = immutable_uri(path);
    /* A search that was killed has left a log, from which SQLite restores the shared memory: it writes then. */
    int flags = path == folder ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    if (sqlite3_open_v2(path, &stored->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        failed(stored);
    free(real);
    sqlite3_busy_timeout(stored->db, BUSY_MS);
    /* The file may come from anybody: its views and triggers call nothing, and no name in quotes becomes a text. */
    sqlite3_db_config(stored->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(stored->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(stored->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
}

static void check_kind(const struct stored *stored)
{
    int64_t application = number_of(stored, "PRAGMA application_id");
    if (application != STORE_APPLICATION)
        usage_error("%s is not a store of kbgen search: it is %s", stored->path,
                    number_of(stored, "SELECT count(*) FROM sqlite_schema") ? "a SQLite file of another program" : "empty");
    int64_t version = number_of(stored, "PRAGMA user_version");
    if (version < 1 || version > STORE_VERSION)
        usage_error("%s is a store of version %" PRId64 "; this kbgen reads versions up to %d", stored->path, version, STORE_VERSION);
}

static void choose_search(struct stored *stored, int64_t search)
{
    stored->searches = number_of(stored, "SELECT count(*) FROM search");
    if (!stored->searches)
        usage_error("%s has no search yet", stored->path);
    sqlite3_stmt *query = stored_query(stored, "SELECT id, about, space, topology, begun, kbgen FROM search"
                                               " WHERE ?1 IN (0, id) ORDER BY id DESC LIMIT 1");
    sqlite3_bind_int64(query, 1, search);
    if (!stored_next(stored, query))
        usage_error("%s has no search %" PRId64 ", but %" PRId64 " others", stored->path, search, stored->searches);
    stored->search = sqlite3_column_int64(query, 0);
    stored->about = stored_text(query, 1);
    stored->space = stored_text(query, 2);
    size_t length = (size_t)sqlite3_column_bytes(query, 3);
    char *topology = arena_alloc(length + TOPOLOGY_END, 1);
    if (length)
        memcpy(topology, sqlite3_column_blob(query, 3), length);
    for (size_t i = 0; i < length; i++)                 /* texts of it end in record separators */
        if (topology[i] == 0x1e)
            topology[i] = 0;
    stored->topology = topology;
    stored->begun = stored_text(query, 4);
    stored->kbgen = stored_text(query, 5);
    sqlite3_finalize(query);
    query = stored_query(stored, "SELECT json_valid(?1)");
    sqlite3_bind_text(query, 1, stored->about, -1, SQLITE_STATIC);
    if (!stored_next(stored, query) || !sqlite3_column_int(query, 0))
        usage_error("%s is damaged: `about` of search %" PRId64 " is no JSON", stored->path, stored->search);
    sqlite3_finalize(query);
}

/* Lists the columns: those of the search in the order of their roles, then the others. */
static void list_columns(struct stored *stored)
{
    sqlite3_stmt *query = stored_query(stored,
        "WITH named(name, role, place) AS ("
        " VALUES('hash', 0, 0), ('structure', 0, 1), ('status', 0, 2), ('why', 0, 3), ('exit', 0, 4), ('host_us', 0, 5)"
        " UNION ALL SELECT value ->> 'name', 1, key FROM json_each(?1, '$.axes')"
        " UNION ALL SELECT value, 2, key FROM json_each(?1, '$.metrics')"
        " UNION ALL SELECT value ->> 'name', 3, key FROM json_each(?1, '$.derive'))"
        "SELECT info.name, min(coalesce(role, 4)) AS role FROM pragma_table_info('point') AS info LEFT JOIN named ON named.name = info.name "
        "GROUP BY info.cid ORDER BY role, coalesce(place, info.cid)");
    sqlite3_bind_text(query, 1, stored->about, -1, SQLITE_STATIC);
    while (stored_next(stored, query)) {
        stored->columns = arena_grow(stored->columns, stored->count, sizeof *stored->columns);
        char *quoted = sqlite3_mprintf("point.\"%w\"", sqlite3_column_text(query, 0));
        stored->columns[stored->count++] = (struct stored_column){
            .name = stored_text(query, 0), .quoted = arena_printf("%s", quoted), .role = (enum column_role)sqlite3_column_int(query, 1)};
        sqlite3_free(quoted);
    }
    if (!stored->count || strcmp(stored->columns[0].name, "hash"))
        usage_error("%s is damaged: its table `point` has no hashes", stored->path);
}

const struct stored_column *stored_column(const struct stored *stored, const char *name, const char *option)
{
    const char **names = arena_alloc(stored->count + 1, sizeof *names);
    for (size_t i = 0; i < stored->count; i++) {
        names[i] = stored->columns[i].name;
        if (!strcmp(names[i], name))
            return &stored->columns[i];
    }
    const char *nearest = nearest_name(name, names, stored->count);
    if (nearest)
        usage_error("%s: points have no '%s'; did you mean '%s'?", option, printable(name), printable(nearest));
    const char *list = "";
    for (size_t i = 0; i < stored->count; i++)
        list = arena_printf("%s%s%s", list, i ? ", " : "", printable(names[i]));
    usage_error("%s: points have no '%s'; they have %s", option, printable(name), list);
}

static void list_objectives(struct stored *stored)
{
    sqlite3_stmt *query = stored_query(stored, "SELECT value ->> 'name', value ->> 'goal' FROM json_each(?1, '$.objectives')");
    sqlite3_bind_text(query, 1, stored->about, -1, SQLITE_STATIC);
    while (stored_next(stored, query)) {
        const char *name = stored_text(query, 0), *goal = stored_text(query, 1);
        if (!name || !goal)
            usage_error("%s is damaged: search %" PRId64 " has an objective without a name or a goal", stored->path, stored->search);
        stored->objectives = arena_grow(stored->objectives, stored->objective_count, sizeof *stored->objectives);
        stored->objectives[stored->objective_count++] =
            (struct stored_objective){stored_column(stored, name, stored->path), !strcmp(goal, "max")};
    }
}

static void run(const struct stored *stored, const char *sql)
{
    if (sqlite3_exec(stored->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        failed(stored);
}

/* Successive halving: points below the last fidelity are no results. */
static void read_fidelity(struct stored *stored)
{
    sqlite3_stmt *query = stored_query(stored, "SELECT value ->> 'name', value ->> 'value' "
                                               "FROM (SELECT ?1 -> '$.fidelity' AS value) WHERE value IS NOT NULL");
    sqlite3_bind_text(query, 1, stored->about, -1, SQLITE_STATIC);
    stored->partial = "0";
    while (stored_next(stored, query)) {
        const char *name = stored_text(query, 0), *value = stored_text(query, 1);
        if (!name || !value)
            continue;
        char *unequal = sqlite3_mprintf("CAST(%s AS TEXT) IS NOT %Q", stored_column(stored, name, stored->path)->quoted, value);
        stored->partial = arena_printf("%s", unequal);
        sqlite3_free(unequal);
    }
}

struct stored stored_open(const char *path, int64_t search)
{
    struct stored stored = {.path = path};
    open_file(&stored);
    run(&stored, "PRAGMA query_only = 1");
    run(&stored, "PRAGMA mmap_size = 1073741824");
    run(&stored, "BEGIN");
    check_kind(&stored);
    choose_search(&stored, search);
    list_columns(&stored);
    list_objectives(&stored);
    read_fidelity(&stored);
    return stored;
}

void stored_close(struct stored *stored)
{
    sqlite3_close(stored->db);
}

int64_t stored_search_number(const char *word)
{
    char *end;
    long long number = strtoll(word, &end, 10);
    if (*end || end == word || number < 1)
        usage_error("--search takes the number of a search, 1 or more; not '%s'", word);
    return number;
}

/* ---- hashes, and the points of the search */

static bool read_hex(const char *text, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < 16; i++) {
        unsigned digit = (unsigned)(text[i] - '0') < 10 ? (unsigned)(text[i] - '0')
                       : (unsigned)(text[i] - 'a') < 6 ? (unsigned)(text[i] - 'a') + 10 : 16;
        if (digit > 15)
            return false;
        *value = *value << 4 | digit;
    }
    return true;
}

struct point_hash stored_hash(const struct stored *stored, sqlite3_stmt *query, int column)
{
    struct point_hash hash;
    const char *text = (const char *)sqlite3_column_text(query, column);
    if (!text || sqlite3_column_bytes(query, column) != 32 || !read_hex(text, &hash.high) || !read_hex(text + 16, &hash.low))
        usage_error("%s is damaged: '%s' is no hash of a point", stored->path, text ? printable(text) : "");
    return hash;
}

const char *stored_hash_text(struct point_hash hash)
{
    return arena_printf("%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

/* Returns the slot of a hash, or the empty one where it belongs. */
static struct stored_point *slot_of(const struct stored_points *points, struct point_hash hash)
{
    size_t mask = ((size_t)1 << points->bits) - 1, at = hash_bits(hash.high ^ hash.low, points->bits);
    while (points->slots[at].used && (points->slots[at].hash.high != hash.high || points->slots[at].hash.low != hash.low))
        at = (at + 1) & mask;
    return &points->slots[at];
}

/* Makes a table of 2^bits slots of what another one holds. */
static void rehash(struct stored_points *points, unsigned bits)
{
    struct stored_points old = *points;
    points->bits = bits;
    points->slots = calloc((size_t)1 << bits, sizeof *points->slots);
    if (!points->slots)
        die("not enough memory for %zu points", old.count);
    for (size_t i = 0; i < stored_slots(&old); i++)
        if (old.slots[i].used)
            *slot_of(points, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

struct stored_points stored_points(const struct stored *stored)
{
    enum { FIRST_BITS = 12, EXPECTED_MOST = 1 << 22 };
    struct stored_points points = {0};
    int64_t expected = number_of(stored, "SELECT max(number) FROM trial WHERE search = ?1");
    unsigned bits = FIRST_BITS;
    while (expected < EXPECTED_MOST && 1 << bits < 2 * expected)
        bits++;
    rehash(&points, bits);
    sqlite3_stmt *query = stored_query(stored, "SELECT hash, number, status IS NOT NULL FROM trial WHERE search = %" PRId64
                                       " AND hash IS NOT NULL", stored->search);
    while (stored_next(stored, query)) {
        struct point_hash hash = stored_hash(stored, query, 0);
        struct stored_point *slot = slot_of(&points, hash);
        if (slot->used)
            continue;
        *slot = (struct stored_point){hash, sqlite3_column_int64(query, 1), sqlite3_column_int(query, 2), true};
        if (2 * ++points.count > stored_slots(&points))
            rehash(&points, points.bits + 1);
    }
    return points;
}

const struct stored_point *stored_point(const struct stored_points *points, struct point_hash hash)
{
    const struct stored_point *slot = slot_of(points, hash);
    return slot->used ? slot : NULL;
}

void stored_points_free(struct stored_points *points)
{
    free(points->slots);
}
