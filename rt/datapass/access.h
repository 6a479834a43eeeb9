/* access.h: what an operation reads and writes. */
#ifndef KB_ACCESS_H
#define KB_ACCESS_H

#include <stdbool.h>

#include "oplog/oplog.h"

/* Calls f for each view that an operation reads or writes. Not for fills: they write tensors. */
void access_each(const struct op *op, void (*f)(const struct view *view, bool writes, void *arg), void *arg);

#endif
