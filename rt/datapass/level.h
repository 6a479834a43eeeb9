/* level.h: the operations of one level (depend.h), on all threads of the pool. */
#ifndef KB_LEVEL_H
#define KB_LEVEL_H

#include "oplog/oplog.h"

/* Does operations that depend on one another in no way, given in data order, on `base`; all they touch is within reach.
 * Under --data debug each compute is checked, and the difference of the first one in data order kept. */
void level_run(const struct op *const *ops, uint32_t count);

#endif
