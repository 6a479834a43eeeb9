/* dump_model.h: what --dump model prints. */
#ifndef GEN_DUMP_MODEL_H
#define GEN_DUMP_MODEL_H

#include <stdio.h>

#include "model.h"

/* One line a key, in the order of the schema: dotted path, value in base units, its place or `default`. */
void dump_model(FILE *out, const struct model *model);

#endif
