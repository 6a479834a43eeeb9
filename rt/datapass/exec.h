/* exec.h: the data pass (pass 2): repeats all operations of the op log, computes included. */
#ifndef KB_EXEC_H
#define KB_EXEC_H

#include "oplog/oplog.h"

/* Repeats the interval in data order, on the image `base`; then the images `now` and `base` are one, nothing is pending,
 * and the next interval begins. Of what timing decides, results depend on the order of calls alone. */
void exec_data_pass(void);

/* What the data passes of this run did, and the host's seconds. */
extern struct exec_stats {
    uint64_t ops, computes;                             /* computes: gemms and math ops */
    double seconds;
} exec_stats;

/* The first element of an operation's result that is off by more than `allowed`. */
struct difference {
    const struct op *op;                                /* NULL: there is none */
    uint64_t index[VIEW_RANK];
    double got, expected, allowed;
};

/* How every compute is checked; several threads call these. */
struct exec_check {
    /* Before a math op, which may overwrite its operands: what it should give. */
    void *(*expect_math)(const struct math *math);
    /* After it: compares its result with that, and frees it. */
    struct difference (*math)(const struct op *op, void *expected);
    /* After a gemm, whose operands are unchanged. */
    struct difference (*gemm)(const struct op *op);
};

/* NULL: computes are not checked. Set before the start. */
extern const struct exec_check *exec_check;

/* The first operation in data order whose check failed. */
extern struct difference exec_difference;

/* Where the data pass gets the operations from: oplog_next, unless a defect is put in (defect.h). */
extern struct op *(*exec_next)(struct oplog_reader *reader);

/* Called before each data pass over an interval that has operations; NULL: nothing is. */
extern void (*exec_begins)(void);

/* No data pass is under way any more: one that was left in its middle has taken the time up to now. */
void exec_left(void);

/* Forgets what data passes did and found. */
void datapass_reset(void);

#endif
