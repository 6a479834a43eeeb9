/* gemm_2d.c: C = A B with C in blocks over a grid of PEs: no tensor is replicated.
 *
 * A row of the grid is a cube. The rows of A are split over all PEs in rank order, so that the rows of a block of C lie
 * in the block's own cube; the columns of B are split over all PEs as well, and those of a block lie in other cubes. A
 * PE loads B's columns of its block into its TCM, as many as fit, and reads the rows of A from one neighbour after the
 * other, beginning with its own. The links between and in the cubes bound the kernel. */
#include "tiles.h"
#include <kb/host.h>
#include <kb/measure.h>

struct gemm_2d_args {
    kb_tensor a, b, c;                                  /* m x k; n x k: columns of B; m x n */
    struct gemm_tile tile;
    uint32_t rows, cols;                                /* of the grid of PEs */
    uint32_t kept;                                      /* shards of B in the TCM at a time; 0: none, B streams */
};

/* Multiplies all rows of this PE's block of C with some columns of B, which may lie in the TCM. `first` is the index of
 * those columns in C. */
static void multiply_columns(struct tl *tl, const struct gemm_2d_args *arg, struct tl_shard b, bool pin_b,
                             uint64_t first)
{
    uint32_t row = tl_pe(tl) / arg->cols, col = tl_pe(tl) % arg->cols;
    struct tl_shard c = tl_my_shard(tl, arg->c);
    tl_handle done[arg->cols];
    for (uint32_t i = 0; i < arg->cols; i++) {
        struct tl_shard a = tl_shard(tl, arg->a, row * arg->cols + (col + i) % arg->cols);
        done[i] = NULL;
        if (a.shape[0] == 0)                            /* there are more PEs than rows */
            continue;
        struct tl_shard to = tl_part(tl, tl_part(tl, c, 0, a.first[0] - c.first[0], a.shape[0]), 1,
                                     first - c.first[1], b.shape[0]);
        done[i] = tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[0],
            .tile = {arg->tile.m, arg->tile.k, arg->tile.n}, .a = tl_in(a), .b = tl_in(tl_transposed(tl, b, 0, 1)),
            .pin_b = pin_b, .c = tl_out(to) });
    }
    for (uint32_t i = 0; pin_b && i < arg->cols; i++)
        if (done[i])
            tl_wait(tl, done[i]);
}

KB_KERNEL(gemm_2d, struct gemm_2d_args)
{
    uint32_t row = tl_pe(tl) / arg->cols, first = tl_pe(tl) % arg->cols * arg->rows;
    struct tl_shard c = tl_my_shard(tl, arg->c), panel = {0};
    for (uint32_t i = 0; arg->kept == 0 && i < arg->rows; i++) {
        struct tl_shard b = tl_shard(tl, arg->b, first + (row + i) % arg->rows);
        if (b.shape[0])                                 /* there are not more PEs than columns */
            multiply_columns(tl, arg, b, false, b.first[0]);
    }
    for (uint32_t i = 0; arg->kept && i < arg->rows; i += arg->kept) {
        uint32_t count = (uint32_t)kb_min(arg->kept, arg->rows - i);
        struct tl_shard last = tl_shard(tl, arg->b, first + i + count - 1);
        uint64_t from = tl_shard(tl, arg->b, first + i).first[0], wide = last.first[0] + last.shape[0] - from;
        if (wide == 0 || c.shape[0] == 0)
            continue;
        panel = tl_alloc(tl, last.dtype, wide, last.shape[1]);
        for (uint32_t j = 0; j < count; j++) {
            struct tl_shard b = tl_shard(tl, arg->b, first + i + (row + j) % count);
            if (b.shape[0])
                tl_load_into(tl, tl_part(tl, panel, 0, b.first[0] - from, b.shape[0]), b);
        }
        multiply_columns(tl, arg, panel, true, from);
        tl_free(tl, panel);
    }
}

/* What each PE must read from the other PEs. */
static kb_traffic least_traffic(const struct gemm_2d_args *arg, struct kb_pes pes, uint64_t a_bytes, uint64_t b_bytes)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint32_t to = 0; to < pes.count; to++) {
        for (uint32_t i = 0; i < arg->cols; i++)
            if (to / arg->cols * arg->cols + i != to)
                kb_traffic_add(traffic, pes.pe[to / arg->cols * arg->cols + i], pes.pe[to], a_bytes);
        for (uint32_t i = 0; i < arg->rows; i++)
            if (to % arg->cols * arg->rows + i != to)
                kb_traffic_add(traffic, pes.pe[to % arg->cols * arg->rows + i], pes.pe[to], b_bytes);
    }
    return traffic;
}

KB_BENCH(gemm_2d, "C = A B, blocks of C over a grid of PEs, A and B split over all PEs",
         KB_INT(m, 16384, 1, 1 << 24, "rows of A and C"), KB_INT(k, 1024, 1, 1 << 24, "columns of A, rows of B"),
         KB_INT(n, 8192, 1, 1 << 24, "columns of B and C"),
         KB_WORD(dtype, "f16 bf16 f32 i8", "dtype of A, B and C; with i8, C is i32"), TILE_PARAMS)
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    double most = dtype == KB_i8 ? 128 : 1;
    struct kb_pes pes = kb_pes("*");
    struct gemm_2d_args arg = {.cols = kb_pes("sip0.cube0.*").count};
    arg.rows = pes.count / arg.cols;
    arg.a = kb_tensor_new("a", dtype, kb_2d(m, k), kb_rows(KB_HBM, pes));
    arg.b = kb_tensor_new("b", dtype, kb_2d(n, k), kb_rows(KB_HBM, pes));
    arg.c = kb_tensor_new("c", out, kb_2d(m, n), kb_blocks(KB_HBM, pes, arg.rows, arg.cols));
    kb_fill_uniform(arg.a, -most, most);
    kb_fill_uniform(arg.b, -most, most);

    uint64_t room = kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes, wide = kb_ceil_div(n, pes.count);
    uint64_t tall = kb_ceil_div(m, pes.count), column = k * kb_dtype_bytes(dtype);
    arg.kept = (uint32_t)kb_min(room / (wide * column), arg.rows);
    struct gemm_problem part = {tall, k, arg.kept ? wide * arg.kept : wide, dtype, out, false, arg.kept > 0};
    arg.tile = tile_params(&part, tile_choose(&part));
    kb_future launch = kb_launch(gemm_2d, pes, &arg);
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = m * k * n, .reads = {arg.a, arg.b}, .writes = {arg.c} }, &(struct kb_work){
        .hbm_read = (m * arg.cols + n * arg.rows) * column, .hbm_written = m * n * kb_dtype_bytes(out),
        .traffic = least_traffic(&arg, pes, tall * column, wide * column) });
    kb_expect_close(arg.c, kb_ref_gemm(arg.a, kb_ref_transpose(arg.b)));
}
