/* batch.h: many topologies in one call. */
#ifndef GEN_BATCH_H
#define GEN_BATCH_H

#include "../model.h"
#include "../options.h"

/* Makes every topology of the options, in a process each and as many at a time as the options say; prints what they say
 * in the order of the topologies. `make` makes one, in a process of its own, which ends with what it returns.
 * Returns the worst of the exit statuses. */
int make_batch(const struct options *options, int (*make)(struct options *options));

/* In such a process: an error if a topology before this one has the same name, and would be made at the same place. */
void claim_name(const struct model *model);

#endif
