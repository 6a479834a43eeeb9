/* dot.c: tl_dot: a gemm on tensors in the TCM, as one command of pe_gemm. */
#include "base/ops.h"
#include "tcm_view.h"

static struct view matrix(const struct call *call, const char *name, const struct tl_shard *shard)
{
    struct view view = call_buffer(call, name, shard);
    if (view.rank != 2)
        call_error(call, "%s has %u axes; a matrix has 2", name, (unsigned)view.rank);
    return view;
}

static void check(const struct call *call, const struct gemm *g)
{
    char a[VIEW_SHAPE], b[VIEW_SHAPE], c[VIEW_SHAPE];
    if (g->a.shape[1] != g->b.shape[0] || g->a.shape[0] != g->c.shape[0] || g->b.shape[1] != g->c.shape[1])
        call_error(call, "a of %s and b of %s do not give %s", view_shape_name(&g->a, a), view_shape_name(&g->b, b),
                   view_shape_name(&g->c, c));
    call_gemm_dtypes(call, g->a.dtype, g->b.dtype);
    if (view_overlap(&g->c, &g->a) || view_overlap(&g->c, &g->b))
        call_error(call, "the result lies where a or b does");
}

static tl_handle submit(const struct call *call, const struct tl_shard *to, const struct tl_shard *a,
                        const struct tl_shard *b)
{
    struct op op = {.kind = OPKIND_gemm, .gemm = {.a = matrix(call, "a", a), .b = matrix(call, "b", b),
                                                  .c = tcm_result(call, to)}};
    struct gemm *g = &op.gemm;
    op.name = gemm_name(g->a.dtype);
    if (g->c.rank != 2)
        call_error(call, "the result has %u axes; a matrix has 2", (unsigned)g->c.rank);
    check(call, g);
    g->tile_m = g->c.shape[0];
    g->tile_k = g->a.shape[1];
    g->tile_n = g->c.shape[1];
    struct request timed = {.kind = COMMAND_gemm, .dtype = g->a.dtype, .m = g->tile_m, .k = g->tile_k, .n = g->tile_n};
    return call_submit(call, &timed, &op);
}

void tl_dot_at(struct tl *tl, struct tl_shard to, struct tl_shard a, struct tl_shard b, const char *file,
               uint32_t line)
{
    struct call call = {tl, "tl_dot", file, line};
    call_wait(&call, submit(&call, &to, &a, &b));
}

tl_handle tl_dot_async_at(struct tl *tl, struct tl_shard to, struct tl_shard a, struct tl_shard b, const char *file,
                          uint32_t line)
{
    struct call call = {tl, "tl_dot_async", file, line};
    return submit(&call, &to, &a, &b);
}
