/* twice.c: D = (A B) B, tile by tile on all PEs, for tests/exec.t, which compares its bytes. */
#include <kb/host.h>
#include <kb/tl.h>

struct twice_args {
    kb_tensor a, b, c;
};

/* Rows of C by rows of A, each column block of B by itself. */
KB_KERNEL(twice, struct twice_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), c = tl_my_shard(tl, arg->c);
    if (a.shape[0] == 0)
        return;
    a = tl_load(tl, a);
    tl_handle last = {0};
    for (uint32_t i = 0; i < tl_shards(arg->b); i++) {
        struct tl_shard b = tl_shard(tl, arg->b, (tl_pe(tl) + i) % tl_shards(arg->b));
        if (b.shape[1] == 0)
            continue;
        last = tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[1], .tile = {16, 32, 16},
            .a = tl_in(a), .pin_a = true, .b = tl_in(b), .c = tl_out(tl_part(tl, c, 1, b.first[1], b.shape[1])) });
    }
    tl_wait(tl, last);
}

KB_BENCH(twice, "D = (A B) B, its bits in a file",
         KB_INT(m, 50, 1, 1 << 20, "rows of A"),
         KB_INT(n, 70, 1, 1 << 20, "columns of A, rows and columns of B"),
         KB_WORD(dtype, "f32 f16 bf16", "of all"),
         KB_TEXT(file, "d.npy", "where D goes"))
{
    uint64_t m = kb_int(m), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes("*");
    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(m, n), kb_rows(KB_HBM, pes));
    kb_tensor b = kb_tensor_new("b", dtype, kb_2d(n, n), kb_cols(KB_HBM, pes));
    kb_tensor c = kb_tensor_new("c", dtype, kb_2d(m, n), kb_rows(KB_HBM, pes));
    kb_tensor d = kb_tensor_new("d", dtype, kb_2d(m, n), kb_rows(KB_HBM, pes));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);
    kb_wait(kb_launch(twice, pes, &(struct twice_args){a, b, c}));
    kb_wait(kb_launch(twice, pes, &(struct twice_args){c, b, d}));
    kb_save_npy(d, kb_text(file));
}
