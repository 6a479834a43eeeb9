/* numbers.h: what a topology says that no compiler has to know: bytes at symbols of the simulator. */
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

/* Bytes that a machine's name has in its simulator, with its end; names of about one length have the same. */
size_t name_room(const struct model *model);

/* A hash over all that tells two machines apart; their names do not. */
const char *topology_hash(const struct plan *plan);

#endif
