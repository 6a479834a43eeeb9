/* cc.h: from generated C to a simulator. */
#ifndef GEN_CC_H
#define GEN_CC_H

#include <stdbool.h>

#include "emit.h"
#include "job.h"

struct making;

struct build {
    const char *path;                                   /* of the simulator */
    const char *cc;                                     /* the compiler, and arguments of its own */
    const char *level;                                  /* of optimisation, or NULL: as kbgen was built */
    char *const *kernels;                               /* the user's kernel files */
    size_t kernel_count;
    const struct impl *impls;                           /* the user's own models */
    size_t impl_count;
    size_t jobs;                                        /* at a time, at most */
};

/* The compiler that kbgen was built with. */
extern const char cc_default[];

/* A job for the compiler on an own model's file, which stands in its standard input between what own.h declares and,
 * as aliases, what it has to define. What to make of it is left to add. */
struct job own_job(const struct build *build, const struct impl *impl, const struct emission *emission);

/* A hash over kbgen, what was compiled with it and the headers beside it: the same for all topologies, read once. */
const char *structure_of_home(void);

/* Begins to make a simulator of an emission that is complete, the user's files and what was compiled with kbgen. */
struct making *making_begin(const struct build *build, const struct emission *emission);

/* Whether it can be made without asking the compiler for anything; then the user's files are those that compiled. */
bool making_is_known(struct making *making);

/* Leaves the simulator at its path; untouched if it was made of the same before. Ends with 2 when a user's file does
 * not compile. */
void build(struct making *making);

#endif
