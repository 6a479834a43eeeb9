/* cc.h: from generated C to a simulator. */
#ifndef GEN_CC_H
#define GEN_CC_H

#include "emit.h"
#include "job.h"

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

/* Requires: complete emission. Leaves: the simulator at its path, made of the emission, the user's files and what was
 * compiled with kbgen; untouched if it was made of the same before. Ends with 2 when a user's file does not compile. */
void build(const struct build *build, const struct emission *emission);

#endif
