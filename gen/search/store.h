/* store.h: the results of searches: one SQLite file (docs/search.md, The store).
 *
 * All functions die with status 3 if the system fails, such as when the disk is full. What was committed before stays. */
#ifndef GEN_SEARCH_STORE_H
#define GEN_SEARCH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "value.h"

enum { STORE_APPLICATION = 0x6b62676e, STORE_VERSION = 2 };    /* application_id "kbgn", user_version */

struct store;

/* Opens a store, or makes a new one. Another kind of file, or another version, is a usage error. `shared`: the file system
 * may be shared by several hosts, so the store has no write-ahead log. */
struct store *store_open(const char *path, bool shared);
void store_close(struct store *store);

/* Waits for other searches on the store; changes up to store_commit are one transaction. */
void store_begin(struct store *store);
void store_commit(struct store *store);

/* What a search is (the table `search`). */
struct store_search {
    const char *hash;                                   /* 32 hexadecimal digits */
    const char *space, *topology, *about, *kbgen;
};

/* Returns the number of a search, which is new or was begun before. */
int64_t store_search(struct store *store, const struct store_search *search);

/* Records the expression of a derived value. Returns the other one that the store has under this name, or NULL. */
const char *store_derived(struct store *store, const char *name, const char *expression);

/* Makes the columns of points that the rest of this search reads and writes: keys and derived values, then metrics. */
void store_columns(struct store *store, const char *const *names, size_t values, size_t metrics);

/* Ends kbgen with status 2 if there is a file that is no store which store_open would take. Writes nothing. */
void store_check(const char *path);

/* A point. The texts of one that was read are in the arena. */
struct store_point {
    const char *hash, *structure;                       /* structure NULL: the machine was refused */
    const char *status, *why;
    int exit;                                           /* status of the simulator; -1: there was none */
    uint64_t host_us;
    const struct sql_value *values;                     /* by column; not read */
    int64_t *metrics;                                   /* by column; of a good point */
};

/* Reads a point by its hash. Returns false if there is none, or if it is good but lacks a metric. `metrics` of the point
 * has room for all. */
bool store_point(struct store *store, const char *hash, struct store_point *point);

/* Writes a point. One that is there stays; metrics that it lacks are added. */
void store_put_point(struct store *store, const struct store_point *point);

/* The point that a hash of parameters as asked for leads to: the one of the parameters that were used, `used`, a text of the
 * caller's. NULL: itself. */
const char *store_alias(struct store *store, const char *asked, const char **used);
void store_put_alias(struct store *store, const char *asked, const char *hash, const char *used);

struct store_trial {
    int64_t search;
    uint64_t number;
    const char *hash;                                   /* NULL: it was not run */
    const char *status, *why;                           /* "infeasible", or NULL: feasible */
    const uint32_t *levels;
    size_t axes;
};
void store_put_trial(struct store *store, const struct store_trial *trial);

/* What the store has of a trial. */
struct stored_trial {
    uint64_t number;
    const char *hash;                                   /* NULL: it was not run */
    const char *status;                                 /* "infeasible", or the word of its point */
    const struct sql_value *values;                     /* of the columns that were asked for */
};

/* Calls a function with each trial of a search, in the order of numbers. */
void store_trials(struct store *store, int64_t search, const char *const *columns, size_t count,
                  void (*each)(const struct stored_trial *trial, void *arg), void *arg);

/* Reads the levels of the first trial of a point. Returns false if there is none. */
bool store_levels(struct store *store, int64_t search, const char *hash, uint32_t *levels, size_t axes);

struct store_filter {
    size_t axes;
    bool (*takes)(const uint32_t *levels, const void *arg);
    const void *arg;
};

/* Lists the hashes of up to `most` good points of a search that the filter takes, the best ones by a column first; in the
 * arena. Returns how many there are. */
size_t store_best(struct store *store, int64_t search, const char *column, bool largest, const struct store_filter *filter,
                  const char **hashes, size_t most);

/* What the run of a point once more has found. */
struct store_verified {
    const char *hash, *status, *why;
    double max_err;                                     /* the largest error of an element; NAN: none was compared */
};
void store_put_verified(struct store *store, const struct store_verified *verified);

#endif
