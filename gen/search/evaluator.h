/* evaluator.h: vectors of levels in, results out: machines are made, runs done, results stored, each point once.
 *
 *     expressions before a run -> hash -> known? -> runs of all workloads -> expressions after them -> store */
#ifndef GEN_SEARCH_EVALUATOR_H
#define GEN_SEARCH_EVALUATOR_H

#include "expression.h"
#include "simulators.h"
#include "store.h"

/* What has become of a trial, which is in the store by then. */
struct result {
    uint64_t number;
    const uint32_t *levels;
    const char *hash;                                   /* NULL: it was not run, since conditions are not met */
    const char *status;                                 /* "ok", "infeasible", or another word of status.def */
    const char *why;                                    /* NULL if it is ok */
    bool is_known;                                      /* another trial had the same point, or the store */
    const struct judgement *judgement;                  /* NULL unless it is ok or infeasible */
    const int64_t *metrics;                             /* evaluator_metric's; NULL unless its runs are good */
};

struct evaluator_options {
    struct space *space;
    const char *store;                                  /* path */
    bool is_shard;                                      /* of a search on several hosts: a store without write-ahead log */
    bool exact_points;                                  /* the number of points is part of what the search is */
    const char *folder;                                 /* for simulators */
    const char *copies;                                 /* as simulators.h has it */
    size_t jobs;
    const char *time_limit, *memory_limit;              /* of a point, as a simulator takes them; NULL: none */
    double patience_s;
    void (*ended)(const struct result *result, void *arg);  /* once the trial is stored */
    void *arg;
};

struct evaluator;

/* Checks the whole space, builds the first simulator, opens the store. All errors of the space end kbgen with status 2,
 * before anything is written. */
struct evaluator *evaluator_begin(const struct evaluator_options *options);

/* Ends all processes, and writes what is complete. */
void evaluator_end(struct evaluator *evaluator);

/* Has the simulator of a trial built, unless it will not be run; evaluator_turn does so. */
void evaluator_prepare(struct evaluator *evaluator, const uint32_t *levels);

/* Begins a trial. */
void evaluator_add(struct evaluator *evaluator, uint64_t number, const uint32_t *levels);

/* Trials that have not ended. */
size_t evaluator_pending(const struct evaluator *evaluator);

/* Works for `wait_ms`, or until something has happened, or `other` can be read. */
void evaluator_turn(struct evaluator *evaluator, int other, int wait_ms);

/* Nothing new is begun, what runs is finished; returns whether something still runs. */
bool evaluator_drains(struct evaluator *evaluator);

/* Stores the points that have ended. */
void evaluator_flush(struct evaluator *evaluator);

struct simulators_load evaluator_load(const struct evaluator *evaluator);

/* The store, and the number of the search in it. */
struct evaluator_store {
    struct store *store;
    int64_t search;
};
struct evaluator_store evaluator_store(const struct evaluator *evaluator);

/* The name of a metric in result.metrics: "end_ps", "prefill.end_ps"; NULL behind the last one. */
const char *evaluator_metric(const struct evaluator *evaluator, size_t metric);

/* The metrics that the store has: of a point that was known, result.metrics has no others. */
const size_t *evaluator_kept(const struct evaluator *evaluator, size_t *count);

/* Runs a stored point once more, with data that are verified, or every event of a command stream, and stores the outcome.
 * Returns whether it is right, and has the metrics that it had. */
bool evaluator_verify(struct evaluator *evaluator, const char *hash);

#endif
