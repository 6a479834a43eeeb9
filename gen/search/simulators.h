/* simulators.h: the simulators of a search: builds one for each structure, keeps processes of them, shares out runs.
 *
 * Runs of one structure and one workload go to the same processes, in lines ahead. At most `jobs` processes work at a time,
 * builds included; idle ones are kept for later runs. */
#ifndef GEN_SEARCH_SIMULATORS_H
#define GEN_SEARCH_SIMULATORS_H

#include "worker.h"
#include "workload.h"

struct simulators;

struct simulators_options {
    const struct machines *machines;
    const struct workloads *workloads;                  /* may be set later, before the first run */
    const struct space *space;
    const char *folder;                                 /* where simulators are kept from search to search */
    size_t jobs;
    const char *time_limit, *memory_limit;              /* for --time-limit and --mem-limit; NULL: none */
    double patience_s;                                  /* a process that answers nothing for so long is killed; 0: never */
    const char *copies;                                 /* the folder of node_copies_begin; NULL: simulators run from where they are */
    bool verifies;                                      /* runs have verified data; of streams, every event is simulated */
};

/* `options` stays the caller's and must live as long. */
struct simulators *simulators_begin(const struct simulators_options *options);

/* Builds the simulator of a structure now, and returns its path. Errors of the build end kbgen. */
const char *simulators_program(struct simulators *simulators, struct structure *structure);

/* Has the simulator of a structure built, unless it is there; simulators_turn does so. */
void simulators_prepare(struct simulators *simulators, struct structure *structure);

/* Adds a run of a workload. */
void simulators_add(struct simulators *simulators, struct structure *structure, unsigned workload, struct run *run);

/* How many runs wait for a process, and how many are under way; builds under way, and those to come of
 * simulators_prepare. */
struct simulators_load {
    size_t waiting, running, builds, unbuilt, processes;
};
struct simulators_load simulators_load(const struct simulators *simulators);

/* Waits until something has happened, at most `wait_ms`, or until `other` can be read. Moves the runs that are done to
 * `done`: all have a status. */
void simulators_turn(struct simulators *simulators, int other, int wait_ms, struct run_list *done);

/* From now on nothing that waits is begun. */
void simulators_drain(struct simulators *simulators);

/* Ends all processes. */
void simulators_end(struct simulators *simulators);

#endif
