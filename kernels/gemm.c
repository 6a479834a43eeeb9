/* gemm.c: C = A B on all PEs.
 *
 * Rows of A and C lie with the PEs that work on them, column blocks of B are spread over all PEs. Each PE loads its
 * rows of A once, keeps them in its TCM, and takes every block of B in turn. PE p begins with block p, so that no
 * memory is asked by everybody at once. */
#include <kb/host.h>
#include <kb/tl.h>

enum { MOST_IN_FLIGHT = 16 };

struct gemm_args {
    kb_tensor a, b, c, bias;                            /* bias: NULL for none */
    uint64_t tile[3];                                   /* m, k, n */
    uint32_t in_flight;                                 /* composites that a PE has under way */
    bool relu;
};

/* One composite: these rows of C, in the columns of block b. */
static tl_handle block(struct tl *tl, const struct gemm_args *arg, struct tl_shard a, bool pinned, struct tl_shard b,
                       struct tl_shard c)
{
    struct tl_composite gemm = {
        .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[1],
        .tile = {arg->tile[0], arg->tile[1], arg->tile[2]},
        .a = tl_in(a), .pin_a = pinned, .b = tl_in(b),
        .c = tl_out(tl_part(tl, c, 1, b.first[1], b.shape[1])),
    };
    if (arg->bias) {
        struct tl_shard row = tl_part(tl, tl_shard(tl, arg->bias, 0), 0, b.first[1], b.shape[1]);
        gemm.epilogue[gemm.epilogues++] = (struct tl_epilogue){"bias", TL_OUTPUT_TILE, tl_in(row)};
    }
    if (arg->relu)
        gemm.epilogue[gemm.epilogues++] = (struct tl_epilogue){.op = "relu", .scope = TL_OUTPUT_TILE};
    return tl_composite(tl, &gemm);
}

KB_KERNEL(gemm, struct gemm_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), c = tl_my_shard(tl, arg->c);
    if (a.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    bool pinned = a.shape[0] * a.shape[1] * kb_dtype_bytes(a.dtype) <= tl_room_bytes(tl);
    if (pinned)
        a = tl_load(tl, a);
    tl_handle flying[MOST_IN_FLIGHT];
    uint32_t started = 0, blocks = tl_shards(arg->b);
    for (uint32_t i = 0; i < blocks; i++) {
        struct tl_shard b = tl_shard(tl, arg->b, (tl_pe(tl) + i) % blocks);
        if (b.shape[1] == 0)                            /* there are more PEs than columns */
            continue;
        if (started >= arg->in_flight)
            tl_wait(tl, flying[started % arg->in_flight]);
        flying[started++ % arg->in_flight] = block(tl, arg, a, pinned, b, c);
    }
}

KB_BENCH(gemm, "C = A B, rows of A and C and column blocks of B over all PEs",
         KB_INT(m, 16384, 1, 1 << 24, "rows of A and C"),
         KB_INT(k, 2048, 1, 1 << 24, "columns of A, rows of B"),
         KB_INT(n, 8192, 1, 1 << 24, "columns of B and C"),
         KB_WORD(dtype, "f16 bf16 f32 i8", "of A and B, and of C; i8 gives i32"),
         KB_INT(tile_m, 128, 1, 1 << 24, "rows of a tile"),
         KB_INT(tile_k, 1024, 1, 1 << 24, "depth of a tile"),
         KB_INT(tile_n, 128, 1, 1 << 24, "columns of a tile"),
         KB_INT(in_flight, 4, 1, MOST_IN_FLIGHT, "composites that a PE has under way"),
         KB_BOOL(bias, false, "add a row to every row of C"),
         KB_BOOL(relu, false, "no element of C below 0"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    double most = dtype == KB_i8 ? 128 : 1;
    struct kb_pes pes = kb_pes("*");

    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(m, k), kb_rows(KB_HBM, pes));
    kb_tensor b = kb_tensor_new("b", dtype, kb_2d(k, n), kb_cols(KB_HBM, pes));
    kb_tensor c = kb_tensor_new("c", out, kb_2d(m, n), kb_rows(KB_HBM, pes));
    kb_tensor bias = NULL;
    kb_fill_uniform(a, -most, most);
    kb_fill_uniform(b, -most, most);
    if (kb_bool(bias)) {
        bias = kb_tensor_new("bias", out, kb_1d(n), kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")));
        kb_fill_uniform(bias, -most, most);
    }

    kb_wait(kb_launch(gemm, pes, &(struct gemm_args){
        .a = a, .b = b, .c = c, .bias = bias, .tile = {kb_int(tile_m), kb_int(tile_k), kb_int(tile_n)},
        .in_flight = kb_int(in_flight), .relu = kb_bool(relu) }));

    kb_ref expected = kb_ref_gemm(a, b);
    if (bias)
        kb_ref_bias(expected, bias);
    if (kb_bool(relu))
        kb_ref_relu(expected);
    kb_expect_close(c, expected);
}
