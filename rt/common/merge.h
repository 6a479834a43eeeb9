/* merge.h: duplicate keys and merge keys of a mapping. */
#ifndef KB_MERGE_H
#define KB_MERGE_H

#include "node.h"

/* Reports duplicate keys and drops them, and adds the entries that `<<` names behind the mapping's own. */
void mapping_finish(struct node *mapping);

#endif
