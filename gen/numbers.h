/* numbers.h: the part of a topology that needs no compiler: bytes at symbols of the simulator. */
#ifndef GEN_NUMBERS_H
#define GEN_NUMBERS_H

#include <stddef.h>

#include "../rt/common/renumber.h"
#include "impl.h"
#include "plan.h"

/* The file that defines the symbols, and nothing else. */
#define NUMBERS_FILE "numbers.c"

/* Requires: a plan with nodes. Leaves out NUMBER_topology. */
struct numbers numbers_of(const struct plan *plan);

/* The topology's files, --set options and files of models as they are kept in a simulator, for read_topology. The paths of
 * files begin at the folder of the topology. */
struct number topology_number(const struct model *model);

/* What topology_number has written. *impls: the files of models. Returns the topology's path. */
const char *read_topology(const char *kept, struct topology_text *text, struct impl_files *impls);

/* The bytes reserved for a machine's name, its final 0 included; a multiple of a step, so that most names share one
 * structure. */
size_t name_room(const struct model *model);

/* A hash over everything that distinguishes two machines, except their names. */
const char *topology_hash(const struct plan *plan);

#endif
