/* exec.h: the data pass (pass 2): does again, on the memory as the interval began, all that the op log records. */
#ifndef KB_EXEC_H
#define KB_EXEC_H

#include "machine/tiling.h"
#include "reference/recheck.h"
#include "store/store.h"

/* Replays the interval in data order, computes included; then its memory is the running kernels' as well, nothing is
 * pending any more, and the next interval begins. Depends on nothing that timing decides but the order of calls. */
void exec_data_pass(void);

/* No data pass was done, nothing was found. */
void datapass_reset(void);

/* A gemm, on `base`, block after block: gemm.c, with scratch as for a grid (grid.h). */
void exec_gemm(const struct gemm *gemm, void *scratch);

/* One math op, on `base`: math.c. Several threads may do several at once, when all operands are within reach. */
void exec_math(const struct math *math);

/* Whether every compute is checked as it is done, and the first one that was wrong. */
extern bool exec_debug;
extern struct difference exec_difference;

/* What the data passes of this run did, and the host's seconds. */
extern struct exec_stats {
    uint64_t ops;
    double seconds;
} exec_stats;

#endif
