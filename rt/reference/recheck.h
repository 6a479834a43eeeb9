/* recheck.h: what --data debug adds: every gemm and math op of a data pass is computed again, in f64. */
#ifndef KB_RECHECK_H
#define KB_RECHECK_H

#include "datapass/exec.h"

extern const struct exec_check recheck;

#endif
