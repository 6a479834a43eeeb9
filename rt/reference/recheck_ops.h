/* recheck_ops.h: the math ops by their definition, one element at a time, in f64 and in whole numbers. */
#ifndef KB_RECHECK_OPS_H
#define KB_RECHECK_OPS_H

#include "store/operation.h"

/* Of floats, or of integers, which wrap as i32. An op of fewer operands leaves the others alone; of `where` they are
 * the condition and the two values. A quotient of quant is rounded, not saturated. */
double recheck_float(uint16_t op, enum relation relation, const double operand[MATH_OPERANDS]);
double recheck_whole(uint16_t op, enum relation relation, const double operand[MATH_OPERANDS]);

#endif
