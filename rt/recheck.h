/* recheck.h: what `--data debug` adds: every compute of a data pass is done again, another way. */
#ifndef KB_RECHECK_H
#define KB_RECHECK_H

#include "oplog.h"

/* The first element of an operation's result that is off by more than the tolerances allow. */
struct difference {
    const struct op *op;                                /* NULL: there is none */
    uint64_t row, column;
    double got, expected, allowed;
};

/* Compares the result of a gemm, in `base`, with its reference; its inputs are still there. */
struct difference recheck_gemm(const struct op *op);

#endif
