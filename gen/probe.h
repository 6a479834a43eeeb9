/* probe.h: whether the files of the user's own models hold what they have to. */
#ifndef GEN_PROBE_H
#define GEN_PROBE_H

#include "cc.h"
#include "emit.h"

/* Requires: an emission. Reports, at the topology's `impl`, every own model whose file does not compile or does not
 * define its functions as rt/kb/impl.h says, with what the compiler has to say. */
void probe_impls(const struct model *model, const struct build *build, const struct emission *emission);

#endif
