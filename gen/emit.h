/* emit.h: the C that a plan becomes. */
#ifndef GEN_EMIT_H
#define GEN_EMIT_H

#include <stddef.h>

#include "numbers.h"
#include "plan.h"

#define KBGEN_VERSION "0.1.0"

/* A generated file. */
struct emitted {
    const char *name;                                   /* "machine.c" */
    const char *text;
    size_t length;
    const char *code;                                   /* the same, without comments: what is compiled */
};

struct emission {
    struct emitted *files;                              /* by name */
    size_t count;
    struct numbers numbers;                             /* what NUMBERS_FILE among them says */
};

/* Requires: a plan with routes. Leaves: one file for each NAME.in of a folder of templates, as texts; nothing is
 * written. A template with errors is reported, and its file is missing. The banners name `sets`, the --set options. */
struct emission emit(const struct plan *plan, const char *folder, char *const *sets, size_t set_count);

#endif
