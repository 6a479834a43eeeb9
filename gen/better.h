/* better.h: the numbers of a machine, and a better one for each. */
#ifndef GEN_BETTER_H
#define GEN_BETTER_H

#include "../rt/common/renumber.h"
#include "model.h"

/* The number keys of a checked model that need no build, in the order of schema.def. */
struct better_keys better_keys_of(const struct model *model, struct better_by by);

/* A place in a topology: "ref_sip.yaml:54", "--set", "default" if it is in no file. */
const char *place_text(struct where where);

#endif
