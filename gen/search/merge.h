/* merge.h: `kbgen merge`: what several stores have, in one. */
#ifndef GEN_SEARCH_MERGE_H
#define GEN_SEARCH_MERGE_H

#include "../../rt/common/subcommand.h"

extern const struct subcommand merge_subcommand;

/* Adds to a store what another one has and it lacks: searches, points, trials. The store is made if there is none. One
 * transaction: all of it, or nothing. Merging again changes nothing. A file that is no store, or gives a
 * derived value another expression, is a usage error. */
void merge_store(const char *into, const char *from);

#endif
