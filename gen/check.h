/* check.h: a topology's text -> a checked model. */
#ifndef GEN_CHECK_H
#define GEN_CHECK_H

#include "impl.h"
#include "model.h"

/* Reads the topology at a path with the --set options of `text` applied, lists its files there, and finds the component
 * models among `impls`; NULL: they are not looked for. Returns the model, or NULL after reporting all errors; errors_end() then exits. */
struct model *check_topology(const char *path, struct topology_text *text, const struct impl_files *impls);

/* Reports the errors that the keys of a filled model make together, if it is whole; derives what follows from them. */
void check_model(struct model *model, bool whole);

#endif
