/* gemm.c: C = A B of n x n for the data pass: rows of A and C and column blocks of B over all PEs, a composite for each
 * block on each PE. Nothing lies in more than one place, so that what is computed is one GEMM's worth of bytes. */
#include <kb/host.h>
#include <kb/tl.h>

struct spread_args { kb_tensor a, b, c; };

KB_KERNEL(spread_gemm, struct spread_args)
{
    struct tl_shard a = tl_load(tl, tl_my_shard(tl, arg->a)), c = tl_my_shard(tl, arg->c);
    for (uint32_t i = 0; i < tl_shards(arg->b); i++) {
        struct tl_shard b = tl_shard(tl, arg->b, (tl_pe(tl) + i) % tl_shards(arg->b));
        tl_wait(tl, tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[1], .tile = {128, 1024, 128},
            .a = tl_in(a), .pin_a = true, .b = tl_in(b), .c = tl_out(tl_part(tl, c, 1, b.first[1], b.shape[1])) }));
    }
}

KB_BENCH(spread_gemm, "C = A B for the data pass", KB_INT(size, 4096, 128, 16384, "rows and columns"),
         KB_WORD(dtype, "f32 f16", "of all of them"))
{
    struct kb_pes pes = kb_pes("*");
    struct kb_dims dims = kb_2d(kb_int(size), kb_int(size));
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    kb_tensor a = kb_tensor_new("a", dtype, dims, kb_rows(KB_HBM, pes));
    kb_tensor b = kb_tensor_new("b", dtype, dims, kb_cols(KB_HBM, pes));
    kb_tensor c = kb_tensor_new("c", dtype, dims, kb_rows(KB_HBM, pes));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);
    kb_wait(kb_launch(spread_gemm, pes, &(struct spread_args){a, b, c}));
    kb_expect_close(c, kb_ref_gemm(a, b));
}
