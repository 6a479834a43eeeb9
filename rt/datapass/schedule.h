/* schedule.h: which operations of a window may be done at once: a level for each.
 *
 * An operation is of a higher level than all before it, in data order, that it depends on: those that wrote what it
 * reads, those that read or wrote what it writes, and those that it names. So operations of one level depend on one
 * another in no way, and all that they depend on is of lower ones. */
#ifndef KB_DEPEND_H
#define KB_DEPEND_H

#include "oplog/oplog.h"

/* Operations from here on begin a window: all before it are done. At most so many are in one. */
enum { DEPEND_MOST_OPS = 1 << 15 };
void depend_begin(void);

/* The level, from 1 on, of the next operation in data order. */
uint16_t depend_level(const struct op *op);

/* Whether the window should end here, for the room that it takes. */
bool depend_is_full(void);

#endif
