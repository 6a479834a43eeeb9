/* reduce.h: reductions of an axis. */
#ifndef KB_REDUCE_H
#define KB_REDUCE_H

#include "store/operation.h"

/* Does a reduction on `base`, all of it within reach. */
void math_reduce(const struct math *math);

#endif
