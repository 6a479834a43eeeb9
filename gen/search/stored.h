/* stored.h: reads a store of kbgen search: one of its searches, and what its points have. Nothing is written.
 *
 * All of it is one snapshot: a search that goes on in another process changes nothing that is read here. Texts are in the arena. */
#ifndef GEN_SEARCH_STORED_H
#define GEN_SEARCH_STORED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a column of `point` says. */
enum column_role { COLUMN_FIXED, COLUMN_AXIS, COLUMN_METRIC, COLUMN_DERIVED, COLUMN_OTHER, COLUMN_ROLES };
extern const char *const column_role_names[COLUMN_ROLES];

struct stored_column {
    const char *name;                                   /* "hash", "cube.noc.link_bw_gbs", "end_ps" */
    const char *quoted;                                 /* as SQL takes it: point."end_ps" */
    enum column_role role;                              /* in the chosen search; OTHER: a column of other searches */
};

struct stored_objective {
    const struct stored_column *column;
    bool largest;                                       /* max; else min */
};

/* A store, and one of its searches. */
struct stored {
    sqlite3 *db;
    const char *path;
    int64_t search, searches;                           /* its number; how many there are */
    const char *about, *space, *begun, *kbgen;          /* columns of its row */
    const char *topology;                               /* for read_topology */
    struct stored_column *columns;                      /* hash first, then axes, metrics, derived values, the others */
    size_t count;
    struct stored_objective *objectives;
    size_t objective_count;
    const char *partial;                                /* a condition of SQL: a point is below the last fidelity */
};

/* Opens a store and chooses a search by its number; 0: the last one that was begun. A path that is no such store, a damaged
 * store, one of another version, and a search that it does not have are usage errors. */
struct stored stored_open(const char *path, int64_t search);
void stored_close(struct stored *stored);

/* Reads the number of a search, the argument of --search. */
int64_t stored_search_number(const char *word);

/* Finds a column; a usage error, with the nearest name, if there is none. `option` names who asks: "--columns". */
const struct stored_column *stored_column(const struct stored *stored, const char *name, const char *option);

/* Prepares a statement; its text is a printf format. */
sqlite3_stmt *stored_query(const struct stored *stored, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Steps to the next row. Returns false at the end, when the statement is finalized. */
bool stored_next(const struct stored *stored, sqlite3_stmt *query);

/* The same without finalizing it. */
bool stored_step(const struct stored *stored, sqlite3_stmt *query);

/* A column of the row: its text in the arena, NULL for NULL. */
const char *stored_text(sqlite3_stmt *query, int column);

/* A hash of a point: 32 hexadecimal digits. */
struct point_hash {
    uint64_t high, low;
};
struct point_hash stored_hash(const struct stored *stored, sqlite3_stmt *query, int column);
const char *stored_hash_text(struct point_hash hash);

/* The points of the search, for look-ups by hash. */
struct stored_point {
    struct point_hash hash;
    int64_t number;                                     /* of its first trial */
    bool infeasible;                                    /* a condition of the search refused it after its runs */
    bool used;                                          /* false: an empty slot of the table */
};

struct stored_points {
    struct stored_point *slots;
    unsigned bits;                                      /* 2^bits slots */
    size_t count;
};
static inline size_t stored_slots(const struct stored_points *points)
{
    return points->slots ? (size_t)1 << points->bits : 0;
}
struct stored_points stored_points(const struct stored *stored);
const struct stored_point *stored_point(const struct stored_points *points, struct point_hash hash);
void stored_points_free(struct stored_points *points);

#endif
