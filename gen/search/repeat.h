/* repeat.h: what repeats a stored point: its machine as one topology, and the commands that build and run it. */
#ifndef GEN_SEARCH_REPEAT_H
#define GEN_SEARCH_REPEAT_H

#include <stdio.h>

#include "../../rt/common/node.h"
#include "stored.h"

/* The topology of the search, its files and --set options merged, with more of them applied: a mapping without `include`.
 * Errors in it are reported. */
const struct node *repeat_topology(const struct stored *stored, char *const *sets, size_t set_count);

/* A scalar as YAML and, unless it is plain, JSON write it: 512, "a: b". */
const char *repeat_scalar(const struct node *scalar);

/* Writes a tree as YAML in block style. */
void repeat_write(FILE *out, const struct node *mapping);

/* A value of a column as --set and parameters take it; NULL for NULL. */
const char *repeat_value(sqlite3_stmt *row, int column);

/* A word as a shell reads it. */
const char *repeat_quoted(const char *word);

/* A workload of the search. */
struct repeat_workload {
    const char *name;
    const char *verb;                                   /* "run gemm", "replay stream.yaml" */
    const char *fixed;                                  /* " m=512 k=128": parameters that all points share */
};
struct repeat_workloads {
    struct repeat_workload *list;
    size_t count;
};
struct repeat_workloads repeat_workloads(const struct stored *stored);

/* The name under which a workload takes an axis, "tile_m", or NULL. */
const char *repeat_param_name(const struct stored *stored, const struct repeat_workload *workload, const char *axis);

/* The options of kbgen that the search's own kernels and models need: " -k x.c --impl y.c". */
const char *repeat_build_options(const struct stored *stored);

#endif
