/* check.h: a topology's text -> a checked model. */
#ifndef GEN_CHECK_H
#define GEN_CHECK_H

#include "model.h"
#include "options.h"

/* Reads the topology of the options, the --set options laid over it, and finds the models of components among the files
 * of --impl. Returns the model; or NULL, with all errors reported: errors_end() then says how many were left out, and
 * exits. */
struct model *check_topology(const struct options *options);

#endif
