/* merge.h: a mapping as it was read -> a mapping without duplicate keys and merge keys. */
#ifndef TEXT_MERGE_H
#define TEXT_MERGE_H

#include "node.h"

/* Reports keys that stand twice, and lays what `<<` names under the mapping's own entries. */
void mapping_finish(struct node *mapping);

#endif
