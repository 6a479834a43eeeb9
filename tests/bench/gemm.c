/* gemm.c: C = A B for the op log and the data pass: rows of A and C and column blocks of B over all PEs, a composite
 * for each block on each PE. Nothing lies in more than one place: what is computed is one GEMM's worth of bytes. */
#include <kb/host.h>
#include <kb/tl.h>

enum { UNDER_WAY = 4 };                                 /* composites of a PE */

struct spread_args { kb_tensor a, b, c; uint64_t tile[3]; };

KB_KERNEL(spread_gemm, struct spread_args)
{
    struct tl_shard a = tl_load(tl, tl_my_shard(tl, arg->a)), c = tl_my_shard(tl, arg->c);
    tl_handle done[UNDER_WAY] = {0};
    for (uint32_t i = 0; i < tl_shards(arg->b); i++) {
        struct tl_shard b = tl_shard(tl, arg->b, (tl_pe(tl) + i) % tl_shards(arg->b));
        if (i >= UNDER_WAY)
            tl_wait(tl, done[i % UNDER_WAY]);
        done[i % UNDER_WAY] = tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[1],
            .tile = {arg->tile[0], arg->tile[1], arg->tile[2]}, .a = tl_in(a), .pin_a = true, .b = tl_in(b),
            .c = tl_out(tl_part(tl, c, 1, b.first[1], b.shape[1])) });
    }
}

KB_BENCH(spread_gemm, "C = A B, rows of A and C and column blocks of B over all PEs",
         KB_INT(m, 4096, 128, 1 << 20, "rows of A and C"),
         KB_INT(k, 4096, 1, 16384, "columns of A, rows of B"),
         KB_INT(n, 4096, 128, 1 << 20, "columns of B and C"),
         KB_INT(tile_m, 128, 1, 1024, "rows of a tile"),
         KB_INT(tile_k, 1024, 1, 4096, "depth of a tile"),
         KB_INT(tile_n, 128, 1, 1024, "columns of a tile"),
         KB_WORD(dtype, "f16 f32", "of all of them"))
{
    struct kb_pes pes = kb_pes("*");
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(kb_int(m), kb_int(k)), kb_rows(KB_HBM, pes));
    kb_tensor b = kb_tensor_new("b", dtype, kb_2d(kb_int(k), kb_int(n)), kb_cols(KB_HBM, pes));
    kb_tensor c = kb_tensor_new("c", dtype, kb_2d(kb_int(m), kb_int(n)), kb_rows(KB_HBM, pes));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);
    kb_wait(kb_launch(spread_gemm, pes, &(struct spread_args){
        a, b, c, {kb_int(tile_m), kb_int(tile_k), kb_int(tile_n)}}));
    kb_expect_close(c, kb_ref_gemm(a, b));
}
