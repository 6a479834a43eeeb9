/* compiler.h: the compiler's command lines, and what its refusals mean. */
#ifndef GEN_COMPILER_H
#define GEN_COMPILER_H

#include <stdbool.h>

#include "../emit.h"
#include "process.h"

/* What to build and how, as the command line says. */
struct build_options {
    const char *path;                                   /* of the simulator, or the folder of the library */
    const char *library, *hash;                         /* the machine's name and hash: make a library; or NULL */
    const char *cc;                                     /* the compiler, maybe with arguments */
    const char *level;                                  /* of optimisation, or NULL: as kbgen was built */
    char *const *kernels;                               /* the user's kernel files */
    size_t kernel_count;
    const struct impl *impls;                           /* the user's component models */
    size_t impl_count;
    size_t jobs;                                        /* compilers at a time, at most */
};

/* A file to compile. */
struct translation_unit {
    const char *name;                                   /* for messages */
    const char *path;                                   /* absolute */
    const char *object;                                 /* what the compiler makes of it */
    bool users;                                         /* a file of the user's, not a generated one */
    bool tables;                                        /* generated, with the numbers */
    const struct impl *impl;                            /* the component model that it is, or NULL */
    const char *fingerprint;                            /* of its content and of all that it includes */
    struct words includes;                              /* the files that it includes, and itself */
    const char *includes_name, *includes_memo;          /* these, to cache for the next call; or NULL */
};

/* `path` as an absolute one. */
const char *absolute_path(const char *path);

/* The compiler as the user named it, with its arguments; then with all flags, except those that name files. */
struct words compiler_named(const struct build_options *options);
struct words compiler_with_flags(const struct build_options *options);

/* Compiles one file: everything but what to make of it, which the caller adds. */
struct process compile_command(const struct build_options *options, const struct translation_unit *unit);

/* The same for checks of a file of the user's. A component model is read from standard input, between the declarations
 * of the generated own.h, which a wrong signature contradicts, and aliases of the names that it must define. */
struct process check_command(const struct build_options *options, const struct translation_unit *unit,
                             const struct emission *emission);

/* Ends kbgen after a compiler's refusal, which the compiler has explained on standard error: status 2 for a file of the
 * user's, 3 for any other. */
_Noreturn void compiler_refused(const struct process *compiler, const struct translation_unit *unit);

/* Requires: an emission. Compiles each of the user's component models once and reports, at the topology's `impl`, those
 * that do not compile or do not define the functions of rt/kb/impl.h. */
void check_models(const struct model *model, const struct build_options *options, const struct emission *emission);

#endif
