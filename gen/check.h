/* check.h: a topology's text -> a checked model. */
#ifndef GEN_CHECK_H
#define GEN_CHECK_H

#include "model.h"
#include "options.h"

/* Reads the topology of the options with the --set options applied, and finds the component models among the files of
 * --impl. Returns the model, or NULL after reporting all errors; errors_end() then exits. */
struct model *check_topology(const struct options *options);

#endif
