/* math_ops.h: what the math ops are defined on, and what they make of arrays. */
#ifndef KB_MATH_OPS_H
#define KB_MATH_OPS_H

#include <stddef.h>

#include "store/operation.h"
#include "elements.h"

/* x = op(x, y), of `count` elements; y is unused by ops of one operand. */
typedef void math_loop(union lane *x, const union lane *y, size_t count);

/* In f32 or in i32, which wraps; NULL: there is nothing to do. Not of `where`; quant and cast round when they are
 * stored. A relation is only of cmp, which makes 0 or 1. */
math_loop *math_loop_of(uint16_t op, enum relation relation, bool floats);

/* x = x where c is not 0, else y. */
void math_where(const union lane *c, union lane *x, const union lane *y, size_t count);

/* The operand whose dtype an op computes in: the second one of where. */
static inline const struct view *math_subject(const struct math *math)
{
    return &math->operand[math->op == OP_where ? 1 : 0];
}

/* Which arithmetic an op is done in: f32 or i32. */
bool math_in_f32(const struct math *math);

/* How many operands an op has, element by element; 0: it only reduces, or computes nothing that is known here. */
unsigned math_operands(uint16_t op);
bool math_reduces(uint16_t op);

/* A reduction, on `base`, all of it within reach. */
void math_reduce(const struct math *math);

enum { MATH_WHY = 200 };

/* Whether the result lies over a part of an operand, or not just where that lies; a reduction's over any of it. */
bool math_overlaps(const struct math *math);

/* Whether an op is defined on the dtypes of its operands and result; `why` says why it is not. */
bool math_defined(const struct math *math, char why[MATH_WHY]);

#endif
