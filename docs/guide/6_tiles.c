/* 6_tiles.c: C = A B by one composite: tiles flow from HBM through the array and back, several at a time.
 *
 * If A is pinned, a PE loads its rows of A once and keeps them in its TCM; otherwise each tile loads its part of A. */
#include <kb/measure.h>

struct tiles_args { kb_tensor a, b, c; uint64_t tile[3]; bool pin; };

KB_KERNEL(tiles, struct tiles_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    if (c.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    if (arg->pin)
        a = tl_load(tl, a);
    tl_composite(tl, &(struct tl_composite){            /* the kernel ends when it is complete */
        .op = TL_GEMM, .m = c.shape[0], .k = a.shape[1], .n = c.shape[1],
        .tile = {arg->tile[0], arg->tile[1], arg->tile[2]},
        .a = tl_in(a), .pin_a = arg->pin, .b = tl_in(b), .c = tl_out(c) });
}

KB_BENCH(tiles, "C = A B by one composite", KB_INT(m, 2048, 1, 65536, "rows of A and C"),
         KB_INT(k, 1024, 1, 65536, "columns of A, rows of B"), KB_INT(n, 4096, 1, 65536, "columns of B and C"),
         KB_INT(tile_m, 128, 1, 65536, "rows of a tile"), KB_INT(tile_k, 1024, 1, 65536, "depth of a tile"),
         KB_INT(tile_n, 128, 1, 65536, "columns of a tile"), KB_BOOL(pin, false, "keep A in the TCM"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    struct kb_pes all = kb_pes("*");
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(m, k), kb_rows(KB_HBM, all));
    kb_tensor b = kb_tensor_new("b", KB_f16, kb_2d(k, n), kb_copies(KB_HBM, all));
    kb_tensor c = kb_tensor_new("c", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);

    kb_future launch = kb_launch(tiles, all, &(struct tiles_args){
        a, b, c, {kb_int(tile_m), kb_int(tile_k), kb_int(tile_n)}, kb_bool(pin) });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = KB_f16, .macs = m * k * n, .reads = {a, b}, .writes = {c} }, &(struct kb_work){
        .hbm_read = 2 * (m * k + all.count * k * n), .hbm_written = 2 * m * n });
    kb_expect_close(c, kb_ref_gemm(a, b));
}
