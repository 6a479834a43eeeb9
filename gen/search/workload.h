/* workload.h: the runs of a point: benches with their parameters, or streams; and the hash of a point.
 *
 * Parameters are those that a simulator lists (`SIM list --json`). */
#ifndef GEN_SEARCH_WORKLOAD_H
#define GEN_SEARCH_WORKLOAD_H

#include "machine.h"
#include "value.h"

struct workloads;

/* Checks a space's workloads and its axes that are parameters against what a simulator lists: unknown benches and
 * parameters, and each value by itself. Reports all errors. `listing`: the output of `SIM list --json`, which must stay. */
struct workloads *workloads_begin(struct space *space, const char *listing, size_t length);

/* A parameter of a workload. */
struct param {
    const char *name;
    unsigned workload;
    enum param_kind { PARAM_int, PARAM_size, PARAM_real, PARAM_bool, PARAM_word, PARAM_text } kind;
    int axis;                                           /* -1: it is the same for all points */
    struct sql_value value;                             /* with axis -1; true is 1 */
    const struct node *given;                           /* with axis -1: the space file's value; NULL: the default */
    const struct node *row;                             /* in the listing */
};

/* All parameters, workload by workload, in the order of the listing. */
const struct param *workloads_params(const struct workloads *workloads, size_t *count);

/* The values of all parameters at a vector of levels. */
struct sql_value *workload_values(const struct workloads *workloads, const uint32_t *levels);

/* Replaces a value by the one that a bench has used instead ("used" of its answer). */
void workload_use(const struct workloads *workloads, unsigned workload, const char *name, uint64_t used,
                  struct sql_value *values);

/* The arguments NAME=VALUE of a workload that are the same for all points; and a point's line for --points, without its
 * newline: {"tile_m": 64, "--set": {...}}. */
char **workload_arguments(const struct workloads *workloads, unsigned workload, size_t *count);
const char *workload_line(const struct workloads *workloads, unsigned workload, const uint32_t *levels,
                          const struct machine *machine);

/* A hash of the command stream of a workload, which is no bench. */
const char *workload_stream(const struct workloads *workloads, unsigned workload);

/* The hash of a point: of its machine and of its runs, with what they are simulated by. 32 hexadecimal digits.
 * `values`: those of workload_values, or as the benches have used them. */
const char *point_hash(const struct workloads *workloads, const struct machine *machine, const struct sql_value *values);

#endif
