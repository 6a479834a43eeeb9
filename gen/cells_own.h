/* cells_own.h: cells about whose code models a component: built in, or the user's own. */
#ifndef GEN_CELLS_OWN_H
#define GEN_CELLS_OWN_H

#include "hash.h"
#include "plan.h"
#include "tmpl.h"

/* The own model of a component, or NULL. */
const struct impl *own_impl(const struct model *model, enum component part);

/* The functions to call, in the table of one row. */
void fill_services(struct table *once, const struct model *model);

/* The own models; those of memories. */
void fill_own(struct table *own, struct table *memories, const struct plan *plan);

/* The parameters that are whole; those without a unit. */
void fill_own_params(struct table *params, struct table *ratios, const struct model *model);

/* Adds the own models by name, with their parameters. */
void hash_own(struct hash *hash, const struct model *model);

#endif
