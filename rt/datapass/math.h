/* math.h: the math ops of kb/ops.def: what they are defined on, and what the data pass makes of arrays and views. */
#ifndef KB_DATAPASS_MATH_H
#define KB_DATAPASS_MATH_H

#include <stddef.h>

#include "elements.h"
#include "store/operation.h"

/* ---- the columns of kb/ops.def */

enum op_reduction { REDUCTION_NO, REDUCTION_JOIN, REDUCTION_MEAN };
enum op_domain { DOMAIN_FLOATS, DOMAIN_ALL, DOMAIN_COMPARE, DOMAIN_CHOICE, DOMAIN_CAST, DOMAIN_QUANT, DOMAIN_DEQUANT,
                 DOMAIN_LOOKUP };
enum op_second { SECOND_ANY, SECOND_ROW, SECOND_SCALE };

struct op_traits {
    uint8_t operands;                                   /* element by element; 0: it only reduces, or is unknown */
    uint8_t reduction, domain, second;
    bool exact;
};

/* All 0 for an op that computes nothing: one that the topology added, or that the machine lacks. */
struct op_traits op_traits(uint16_t op);

enum { MATH_WHY = 200 };

/* Whether an op is defined on the dtypes of its operands and result; if not, `why` says why. */
bool math_defined(const struct math *math, char why[MATH_WHY]);

/* Whether the result overlaps an operand other than element on element; a reduction's whether it does at all. */
bool math_overlaps(const struct math *math);

/* The operand whose dtype an op computes in: y of `where`, else x. */
const struct view *math_subject(const struct math *math);

/* Whether an op computes in f32, not in i32. */
bool math_in_f32(const struct math *math);

/* ---- computing */

/* x = op(x, y) for `count` elements; op(choice, x, y) if the op is a CHOICE. An op of one operand does not read y. */
typedef void math_loop(union lane *x, const union lane *y, const union lane *choice, size_t count);

/* In f32, or in i32, which wraps. CAST and QUANT round when the result is stored. A relation is only for cmp. */
math_loop *math_loop_of(uint16_t op, enum relation relation, bool floats);

/* Does an op on `base`. Several threads may do several at once if all views are within reach. */
void math_run(const struct math *math);

#endif
