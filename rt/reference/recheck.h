/* recheck.h: what --data debug adds: every compute of a data pass is done again, another way. */
#ifndef KB_RECHECK_H
#define KB_RECHECK_H

#include "datapass/exec.h"

extern const struct exec_check recheck;

/* Compares the result of a gemm, in `base`, with its reference; its inputs are still there. */
struct difference recheck_gemm(const struct op *op);

/* What a math op should give, element by element, and the s of the tolerance behind them; for recheck_math, which frees
 * it. The operands are still there. */
double *recheck_math_expect(const struct math *math);

/* Compares the result of a math op, in `base`, with that. */
struct difference recheck_math(const struct op *op, double *expected);

#endif
