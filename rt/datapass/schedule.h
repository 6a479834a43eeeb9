/* schedule.h: which operations of a window can be done at once: the topological level of each in the dependency graph.
 *
 * An operation depends on the earlier ones, in data order, that wrote what it reads, that read or wrote what it writes,
 * and that it names. Its level is one more than the highest level of these. So operations of one level are independent,
 * and all that they depend on has a lower level. */
#ifndef KB_SCHEDULE_H
#define KB_SCHEDULE_H

#include "oplog/oplog.h"

/* Begins a window: all earlier operations are done. A window has WINDOW_OPS operations at most. */
enum { WINDOW_OPS = 1 << 15 };
void schedule_begin(void);

/* The level, from 1 on, of the next operation in data order. */
uint16_t schedule_level(const struct op *op);

/* Whether the window should end here, because of its operations or of the memory that the levels take. */
bool schedule_is_full(void);

#endif
