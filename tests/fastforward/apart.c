/* apart.c: long composites of PEs that use only their own memory, for the counts of a run. */
#include <kb/host.h>
#include <kb/tl.h>

struct apart_args { kb_tensor a, b, c; uint64_t tile, count, late_ps, wait; };

/* Every PE begins late_ps after the one before. With `wait`, each composite is waited for before the next. */
KB_KERNEL(apart, struct apart_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    if (arg->late_ps)
        tl_delay(tl, tl_pe(tl) * arg->late_ps);
    for (uint64_t i = 0; i < arg->count; i++) {
        tl_handle done = tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[1], .tile = {arg->tile, arg->tile, arg->tile},
            .a = tl_in(a), .b = tl_in(b), .c = tl_out(c) });
        if (arg->wait)
            tl_wait(tl, done);
    }
}

KB_BENCH(apart, "composites of PEs that share nothing",
         KB_INT(m, 256, 1, 1 << 20, "rows of a PE"), KB_INT(k, 256, 1, 1 << 20, "depth"),
         KB_INT(n, 256, 1, 1 << 20, "columns"), KB_INT(tile, 16, 1, 1024, "elements along each side of a tile"),
         KB_INT(count, 1, 1, 100, "composites of a PE"), KB_INT(late_ps, 0, 0, 1 << 30, "of each PE after the one before"),
         KB_INT(wait, 0, 0, 1, "for each composite"))
{
    struct kb_pes all = kb_pes("*");
    uint64_t m = kb_int(m) * all.count, k = kb_int(k), n = kb_int(n);
    struct apart_args args = {
        kb_tensor_new("a", KB_f16, kb_2d(m, k), kb_rows(KB_HBM, all)),
        kb_tensor_new("b", KB_f16, kb_2d(k, n), kb_copies(KB_HBM, all)),
        kb_tensor_new("c", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all)),
        kb_int(tile), kb_int(count), kb_int(late_ps), kb_int(wait) };
    kb_wait(kb_launch(apart, all, &args));
    kb_wait(kb_launch(apart, all, &args));
}
