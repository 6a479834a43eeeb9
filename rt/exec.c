/* exec.c: the data pass: operation after operation in data order, on one thread. */
#include "exec.h"

#include <stdlib.h>

#include "blas.h"
#include "clock.h"
#include "grid.h"
#include "progress.h"
#include "stopwatch.h"
#include "text/diag.h"

struct exec_stats exec_stats;
bool exec_debug;
struct difference exec_difference;

/* An op may overwrite its operands, so what it should give is found first. */
static void replay_math(const struct op *op)
{
    double *expected = exec_debug && !exec_difference.op ? recheck_math_expect(&op->math) : NULL;
    exec_math(&op->math);
    if (expected)
        exec_difference = recheck_math(op, expected);
}

static void *gemm_scratch(void)
{
    static void *scratch;
    if (!scratch && !(scratch = aligned_alloc(64, grid_scratch_bytes)))
        die("no memory for the blocks of a gemm:");
    return scratch;
}

static void replay(const struct op *op)
{
    if (op->kind == OPKIND_gemm) {
        blas_open();
        exec_gemm(&op->gemm, gemm_scratch());
        if (exec_debug && !exec_difference.op)
            exec_difference = recheck_gemm(op);
    } else if (op->kind == OPKIND_math) {
        replay_math(op);
    } else if (op->pe == OP_OF_HOST) {
        fill_write(&op->fill, IMAGE_BASE);
    } else {
        view_copy(IMAGE_BASE, &op->copy.to, &op->copy.from);
    }
}

void exec_data_pass(void)
{
    unsigned before = phase_enter(PHASE_data);
    double began = clock_seconds();
    oplog_settle(true, OP_OF_HOST);
    struct oplog_reader reader;
    struct op *op;
    oplog_read(&reader);
    for (uint64_t i = 0; (op = oplog_next(&reader)); i++) {
        replay(op);
        progress("data pass", i, oplog_count());
        if (exec_difference.op != op)                   /* which names it */
            free(op);
    }
    progress_end();
    exec_stats.ops += oplog_count();
    oplog_restart();
    exec_stats.seconds += clock_seconds() - began;
    phase_leave(before);
}

void exec_reset(void)
{
    exec_stats = (struct exec_stats){0};
    exec_difference = (struct difference){0};
}
