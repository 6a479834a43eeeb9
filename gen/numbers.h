/* numbers.h: the part of a topology that needs no compiler: bytes at symbols of the simulator. */
#ifndef GEN_NUMBERS_H
#define GEN_NUMBERS_H

#include <stddef.h>

#include "plan.h"

/* The file that defines the symbols, and nothing else. */
#define NUMBERS_FILE "numbers.c"

struct number {
    const char *symbol;
    char *bytes;
    size_t length;
};

enum { NUMBERS = 6 };

struct numbers {
    struct number list[NUMBERS];
};

/* Requires: a plan with links. */
struct numbers numbers_of(const struct plan *plan);

/* The bytes reserved for a machine's name, its final 0 included; a multiple of a step, so that most names share one
 * structure. */
size_t name_room(const struct model *model);

/* A hash over everything that distinguishes two machines, except their names. */
const char *topology_hash(const struct plan *plan);

#endif
