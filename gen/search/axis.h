/* axis.h: a key of a space: a key of the topology or a parameter, and its levels. */
#ifndef GEN_SEARCH_AXIS_H
#define GEN_SEARCH_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../rt/common/node.h"
#include "../schema.h"

#define AXIS_LEVELS_MOST (UINT64_C(1) << 32)

/* Names of parameters begin so. */
#define AXIS_PARAMS "params."

/* Levels are numbered from 0. */
struct axis {
    const char *name;                                   /* "cube.noc.link_bw_gbs", "params.tile_m", "params.prefill.tile_m" */
    struct where where;
    const struct key *key;                              /* of the topology; NULL: a parameter */
    const char *entry;                                  /* of a key that holds numbers by name: "f16", "exp"; else NULL */
    const char *param, *workload;                       /* "tile_m", "prefill"; workload NULL: of all that have it */
    uint64_t count;                                     /* levels: 1 to AXIS_LEVELS_MOST */
    bool ordered;                                       /* all levels are numbers, and ascend or descend */
    const struct node **list;                           /* the levels; NULL: a range too long to list */
    struct axis_range *range;                           /* NULL: the file lists the levels */
    struct axis_number *numbers;                        /* for axis_find */
};

/* Reads an axis from its entry in `space`; reports all errors that need no simulator. Returns false if there are any. */
bool axis_read(struct axis *axis, const struct node *name, const struct node *values);

/* Says that a parameter takes whole numbers alone: levels in between are rounded. Reports an error if two levels become
 * equal. */
void axis_make_whole(struct axis *axis);

/* A level as a node at its place in the file, and as a text in YAML's flow style, which --set takes: "512", "64 KiB", "~",
 * "{f16: 32}". */
const struct node *axis_node(const struct axis *axis, uint64_t level);
const char *axis_text(const struct axis *axis, uint64_t level);

/* Finds the level that has a value. Returns false if no level has it. */
bool axis_find(const struct axis *axis, const struct node *value, uint64_t *level);

#endif
