/* composite.h: what composites of gemms and of math share. */
#ifndef KB_RT_COMPOSITE_H
#define KB_RT_COMPOSITE_H

#include "composite_part.h"

/* KERNEL_ERROR: 0, or beyond any memory. */
void composite_check_size(const struct call *call, const char *name, uint64_t size);

/* Submits what is timed; `op` is what it does to data, whose result is `written`; not there: it does nothing. */
tl_handle composite_submit(const struct call *call, struct request *timed, struct op *op, const struct part *written,
                           bool there);

/* A composite of TL_MATH. */
tl_handle composite_math(const struct call *call, const struct tl_composite *ask);

#endif
