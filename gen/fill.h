/* fill.h: nodes -> the model's values, key by key as schema.def says. */
#ifndef GEN_FILL_H
#define GEN_FILL_H

#include "../rt/common/node.h"
#include "model.h"

/* Fills the model from a topology's mapping, defaults in; reports all that a key alone can have wrong. A value that
 * could not be read has no key (`value.key` is NULL). */
void fill_model(struct model *model, const struct node *top);

#endif
