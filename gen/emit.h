/* emit.h: the C that a plan becomes. */
#ifndef GEN_EMIT_H
#define GEN_EMIT_H

#include <stddef.h>

#include "../rt/common/version.h"
#include "numbers.h"
#include "plan.h"

/* A generated file. */
struct emitted {
    const char *name;                                   /* "machine.c" */
    const char *text;
    size_t length;
    const char *code;                                   /* the text without comments, which is compiled */
};

struct emission {
    struct emitted *files;                              /* by name */
    size_t count;
    struct numbers numbers;                             /* the numbers that the file NUMBERS_FILE defines */
};

/* Requires: a plan with routes. Leaves: for each NAME.in of the folder of templates, the text of a file NAME; nothing
 * is written to disk. A template with errors is reported and gives no file. The banners name the --set options. */
struct emission emit(const struct plan *plan, const char *folder);

#endif
