/* check.h: a topology's text -> a checked model. */
#ifndef GEN_CHECK_H
#define GEN_CHECK_H

#include <stddef.h>

#include "model.h"

/* Reads the topology at `path`, the --set options laid over it. Returns the model; or NULL, with all errors reported:
 * errors_end() then says how many were left out, and exits. */
struct model *check_topology(const char *path, char *const *sets, size_t set_count);

#endif
