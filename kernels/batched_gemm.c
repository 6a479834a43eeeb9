/* batched_gemm.c: C[i] = A[i] B[i] for every i of a batch, each product on one PE.
 *
 * A PE submits many products at once: the tiles of the next product are read while the C of the previous one is
 * written. Small matrices have little reuse of A and B, so the PE's slice of HBM bounds the kernel. */
#include "tiles.h"
#include "transfers.h"
#include <kb/host.h>
#include <kb/measure.h>

struct batched_gemm_args {
    kb_tensor a, b, c;                                  /* batch x m x k; batch x k x n; batch x m x n */
    struct gemm_tile tile;
};

static struct tl_shard matrix(struct tl *tl, struct tl_shard all, uint64_t i)
{
    return tl_reshape(tl, tl_part(tl, all, 0, i, 1), all.shape[1], all.shape[2]);
}

KB_KERNEL(batched_gemm, struct batched_gemm_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    struct transfers products = {.begun = 0};
    for (uint64_t i = 0; i < c.shape[0]; i++)
        transfers_add(tl, &products, tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = c.shape[1], .k = a.shape[2], .n = c.shape[2],
            .tile = {arg->tile.m, arg->tile.k, arg->tile.n}, .a = tl_in(matrix(tl, a, i)),
            .b = tl_in(matrix(tl, b, i)), .c = tl_out(matrix(tl, c, i)) }));
}

KB_BENCH(batched_gemm, "C[i] = A[i] B[i], the batch over all PEs",
         KB_INT(batch, 512, 1, 1 << 24, "products in the batch"), KB_INT(m, 256, 1, 1 << 24, "rows of each A and C"),
         KB_INT(k, 256, 1, 1 << 24, "columns of A, rows of B"), KB_INT(n, 256, 1, 1 << 24, "columns of B and C"),
         KB_WORD(dtype, "f16 bf16 f32 i8 f8e4m3 f8e5m2", "dtype of A, B and C; with i8, C is i32, with an f8 bf16"), TILE_PARAMS)
{
    uint64_t batch = kb_int(batch), m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = product_dtype(dtype);
    double most = dtype == KB_i8 ? 128 : 1;
    struct kb_pes pes = kb_pes("*");
    kb_tensor a = kb_tensor_new("a", dtype, kb_3d(batch, m, k), kb_rows(kb_main_memory(), pes));
    kb_tensor b = kb_tensor_new("b", dtype, kb_3d(batch, k, n), kb_rows(kb_main_memory(), pes));
    kb_tensor c = kb_tensor_new("c", out, kb_3d(batch, m, n), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(a, -most, most);
    kb_fill_uniform(b, -most, most);

    struct gemm_problem one = {m, k, n, dtype, out, false, false, 0};
    struct gemm_tile tile = tile_params(&one, tile_choose(&one), m);
    kb_future launch = kb_launch(batched_gemm, pes, &(struct batched_gemm_args){a, b, c, tile});
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = batch * m * k * n, .reads = {a, b}, .writes = {c} }, NULL);
    kb_expect_close(c, kb_ref_gemm(a, b));
}
