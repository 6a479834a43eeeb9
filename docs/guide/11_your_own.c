/* 11_your_own.c: y = rmsnorm(x w + residual) * gain; rows over the PEs stream through the TCM in blocks. */
#include "stream.h"
#include "tiles.h"

struct args { kb_tensor x, w, residual, gain, y; };

KB_KERNEL(gemm_rmsnorm, struct args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), w = tl_my_shard(tl, arg->w), y = tl_my_shard(tl, arg->y);
    uint64_t k = w.shape[0], n = w.shape[1];
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    bool keep = 2 * k * n <= tl_room_bytes(tl) / 2;     /* else w is read again for each block */
    w = keep ? tl_load(tl, w) : w;
    struct stream s = stream_of(tl, (struct stream){    /* scratch: 3 blocks of x, squares, means */
        .load = {tl_my_shard(tl, arg->residual), tl_my_shard(tl, arg->gain)}, .store = {y}, .in_place = true,
        .whole_rows = true, .scratch_bytes = 4, .row_bytes = 3 * 2 * k + 4, .ops = 7, .cost = 7,
        .buffers = 3, .block_rows = kb_attrs.pe_gemm_rows });
    struct stream xs = stream_of(tl, (struct stream){
        .load = {x}, .buffers = 3, .block_rows = s.block_rows, .block_cols = k });
    if (!stream_whole(&s) || !stream_whole(&xs))
        tl_fail(tl, 1, "rows of %lu and %lu elements do not fit into the TCM", k, n);
    struct tl_shard wide = tl_alloc(tl, KB_f32, s.block_rows, n), means = tl_alloc(tl, KB_f32, s.block_rows, 1);
    struct gemm_tile t = tile_choose(&(struct gemm_problem){ s.block_rows, k, n, KB_f16, KB_f32, .pin_a = true });
    while (stream_next(&s) && stream_next(&xs)) {
        struct tl_shard h = s.in[0], gain = s.in[1], a = xs.in[0];
        struct tl_shard sum = tl_part(tl, wide, 0, 0, s.at.rows), mean = tl_part(tl, means, 0, 0, s.at.rows);
        if (keep)
            tl_dot(tl, sum, a, w);
        else
            tl_wait(tl, tl_composite(tl, &(struct tl_composite){ .op = TL_GEMM, .m = s.at.rows, .k = k, .n = n,
                .tile = {t.m, t.k, t.n}, .a = tl_in(a), .pin_a = true, .b = tl_in(w), .c = tl_out(sum) }));
        tl_add(tl, h, sum, h);
        tl_mul(tl, sum, h, h);
        tl_mean(tl, mean, sum, 1);
        tl_add(tl, mean, mean, tl_number(1e-5));
        tl_rsqrt(tl, mean, mean);
        tl_mul(tl, h, h, mean);
        tl_mul(tl, h, h, gain);
    }
}

KB_BENCH(gemm_rmsnorm, "y = rmsnorm(x w + residual) * gain", KB_INT(m, 16384, 1, 1 << 20, "rows of x and y"),
         KB_INT(k, 384, 1, 65536, "columns of x, rows of w"), KB_INT(n, 768, 1, 1 << 20, "columns of w and y"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(m, k), kb_rows(KB_HBM, all));
    kb_tensor w = kb_tensor_new("w", KB_f16, kb_2d(k, n), kb_copies(KB_HBM, all));
    kb_tensor residual = kb_tensor_new("residual", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all));
    kb_tensor gain = kb_tensor_new("gain", KB_f16, kb_2d(1, n), kb_copies(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all));
    kb_fill_normal(x, 0, 1);
    kb_fill_normal(w, 0, 0.1);
    kb_fill_normal(residual, 0, 1);
    kb_fill_uniform(gain, 0.5, 1.5);

    kb_future launch = kb_launch(gemm_rmsnorm, all, &(struct args){ x, w, residual, gain, y });
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = KB_f16, .macs = m * k * n, .math_dtype = KB_f16, .math = 2 * m * n, .math_f32 = 3 * m * n,
        .reads = {x, w, residual, gain}, .writes = {y} }, &(struct kb_work){
        .hbm_read = 2 * (m * k + m * n + all.count * (k + 1) * n), .hbm_written = 2 * m * n });
    kb_expect_close(y, kb_ref_rmsnorm(kb_ref_binary("add", kb_ref_gemm(x, w), residual), gain, 1e-5));
}
