/* batch.h: many topologies in one call. */
#ifndef GEN_BATCH_H
#define GEN_BATCH_H

#include "../model.h"
#include "../options.h"

/* Makes every topology of the options, each in a process of its own, as many at a time as the options say. Prints the
 * messages in the order of the topologies. `make` makes one and returns the exit status of its process. Returns the
 * worst exit status. */
int make_batch(const struct options *options, int (*make)(struct options *options));

/* In such a process: reports an error if an earlier topology has the same name, since both would be written to one
 * place. */
void claim_name(const struct model *model);

#endif
