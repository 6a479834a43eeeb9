/* access.c: what an operation reads and writes. */
#include "access.h"

typedef void access_fn(const struct view *view, bool writes, void *arg);

static void of_gemm(const struct gemm *g, access_fn *f, void *arg)
{
    f(&g->a, false, arg);
    f(&g->b, false, arg);
    for (uint32_t i = 0; i < g->epilogues; i++)
        if (g->epilogue[i].has_operand)
            f(&g->epilogue[i].operand, false, arg);
    f(&g->c, true, arg);
}

static void of_math(const struct math *math, access_fn *f, void *arg)
{
    for (unsigned i = 0; i < math_views(math); i++)
        f(&math->operand[i], false, arg);
    f(&math->to, true, arg);
}

void access_each(const struct op *op, access_fn *f, void *arg)
{
    if (op->kind == OPKIND_gemm) {
        of_gemm(&op->gemm, f, arg);
    } else if (op->kind == OPKIND_math) {
        of_math(&op->math, f, arg);
    } else if (op->pe != OP_OF_HOST) {
        f(&op->copy.from, false, arg);
        f(&op->copy.to, true, arg);
    }
}
