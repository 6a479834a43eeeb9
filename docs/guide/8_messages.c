/* 8_messages.c: the sums of the columns of a matrix whose rows are split over the PEs.
 *
 * Each PE adds up its own rows. A tree reduction then adds the sums: in each round one PE of each pair sends its sums,
 * and the other PE adds them to its own. */
#include <kb/measure.h>

struct tree_args { kb_tensor x, sum; };

KB_KERNEL(tree, struct tree_args)
{
    struct tl_shard x = tl_load(tl, tl_my_shard(tl, arg->x));
    struct tl_shard own = tl_alloc(tl, KB_f32, 1, x.shape[1]), other = tl_alloc(tl, KB_f32, 1, x.shape[1]);
    uint32_t me = tl_pe(tl), pes = tl_num_pes(tl);
    tl_sum(tl, own, x, 0);
    for (uint32_t step = 1; step < pes; step *= 2) {
        if (me % (2 * step)) {
            tl_send(tl, me - step, own);
            return;                                     /* a PE sends its sums once */
        }
        if (me + step < pes) {
            tl_recv(tl, me + step, other);
            tl_add(tl, own, own, other);
        }
    }
    tl_store(tl, tl_shard(tl, arg->sum, 0), own);
}

KB_BENCH(tree, "sums of columns by a tree reduction over the PEs",
         KB_INT(rows, 1024, 128, 65536, "rows, at least one for each PE"),
         KB_INT(columns, 1000, 1, 4096, "columns; a row of f32 must fit into a slot"))
{
    struct kb_pes all = kb_pes("*");
    uint64_t n = kb_int(rows) * kb_int(columns);
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(kb_int(rows), kb_int(columns)), kb_rows(KB_HBM, all));
    kb_tensor sum = kb_tensor_new("sum", KB_f32, kb_2d(1, kb_int(columns)), kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")));
    kb_fill_uniform(x, -1, 1);

    kb_future launch = kb_launch(tree, all, &(struct tree_args){ x, sum });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){ .math_dtype = KB_f32, .math = n, .reads = {x}, .writes = {sum} }, NULL);
    kb_expect_close(sum, kb_ref_sum(x, 0));
}
