/* fill.h: YAML nodes to the model's values, key by key as schema.def says. */
#ifndef GEN_FILL_H
#define GEN_FILL_H

#include "../rt/common/node.h"
#include "model.h"
#include "schema.h"

/* Fills the model from a topology's mapping, defaults included; reports all errors of single keys. A value that could
 * not be read has `value.key` NULL. `was`: the mapping that the model was filled from before, whose nodes keep what they
 * have filled; or NULL. */
void fill_model(struct model *model, const struct node *top, const struct node *was);

/* Reports what is wrong with a value of a key, whatever the other keys are. */
void fill_alone(const struct key *key, const struct node *value);

/* The time of a wire that is `times` as long as a key of a filled model says, rounded once. `path`: the dotted path of the
 * key, which is a length. */
uint64_t fill_length(const struct model *model, const char *path, uint64_t times);

#endif
