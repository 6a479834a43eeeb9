/* gemm.c: C = A B on all PEs.
 *
 * Rows of A and C lie with the PEs that work on them, and each of these has a copy of B, column after column, as the
 * weights of a layer are kept. A PE loads a panel of columns into its TCM, where they stay while its rows of A stream
 * by. If there is one panel, some first rows of A are kept too, and are multiplied with the columns that are there
 * while the next ones are loaded; if there are several, the next panel is loaded while one is worked on. Where B is so
 * deep that a panel would be narrow, both A and B are read tile by tile.
 *
 * Nothing crosses the fabric. What bounds it is the array, or, where k or n is small, the PE's slice of HBM. */
#include "tiles.h"
#include <kb/host.h>
#include <kb/measure.h>
#include <kb/tl.h>

struct gemm_args {
    kb_tensor a, b, c, bias;                            /* bias: NULL for none */
    struct tile tile;
    uint64_t panel;                                     /* columns of B that are kept in the TCM; 0: none */
    uint64_t head;                                      /* rows of A that are kept while the first panel is loaded, */
    uint64_t step;                                      /* by so many columns */
    bool relu;
};

/* One composite: rows a times columns b, each of which may lie in the TCM, are c. */
static tl_handle multiply(struct tl *tl, const struct gemm_args *arg, struct tl_shard a, bool pin_a, struct tl_shard b,
                          bool pin_b, struct tl_shard c)
{
    struct tl_composite gemm = {
        .op = TL_GEMM, .m = c.shape[0], .k = a.shape[1], .n = c.shape[1],
        .tile = {arg->tile.m, arg->tile.k, arg->tile.n},
        .a = tl_in(a), .pin_a = pin_a, .b = tl_in(tl_transposed(tl, b, 0, 1)), .pin_b = pin_b, .c = tl_out(c),
    };
    if (arg->bias) {
        struct tl_shard row = tl_part(tl, tl_my_shard(tl, arg->bias), 0, c.first[1], c.shape[1]);
        gemm.epilogue[gemm.epilogues++] = (struct tl_epilogue){"bias", TL_OUTPUT_TILE, tl_in(row)};
    }
    if (arg->relu)
        gemm.epilogue[gemm.epilogues++] = (struct tl_epilogue){.op = "relu", .scope = TL_OUTPUT_TILE};
    return tl_composite(tl, &gemm);
}

/* Loads a panel in steps; the first rows, which stay, are multiplied with what is there while the next step loads. */
static void load_panel(struct tl *tl, const struct gemm_args *arg, struct tl_shard head, struct tl_shard kept,
                       struct tl_shard panel, struct tl_shard c)
{
    for (uint64_t first = 0; first < panel.shape[0]; first += arg->step) {
        uint64_t count = tile_least(arg->step, panel.shape[0] - first);
        struct tl_shard columns = tl_part(tl, kept, 0, first, count);
        tl_load_into(tl, columns, tl_part(tl, panel, 0, first, count));
        multiply(tl, arg, head, true, columns, true, tl_part(tl, c, 1, first, count));
    }
}

KB_KERNEL(gemm, struct gemm_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c), kept[2];
    uint64_t rows = c.shape[0], n = c.shape[1], head = tile_least(arg->head, rows / 2);
    if (rows == 0)                                      /* there are more PEs than rows */
        return;
    if (arg->panel == 0)
        multiply(tl, arg, a, false, b, false, c);
    tl_handle done[2];
    for (uint64_t first = 0, i = 0; arg->panel && first < n; first += arg->panel, i++) {
        uint64_t count = tile_least(arg->panel, n - first), top = i == 0 ? head : 0;
        struct tl_shard panel = tl_part(tl, b, 0, first, count), block = tl_part(tl, c, 1, first, count);
        if (i < 2)
            kept[i] = tl_alloc(tl, b.dtype, count, b.shape[1]);
        else
            tl_wait(tl, done[i % 2]);
        struct tl_shard own = tl_part(tl, kept[i % 2], 0, 0, count);
        if (top)
            load_panel(tl, arg, tl_load(tl, tl_part(tl, a, 0, 0, top)), own, panel, tl_part(tl, block, 0, 0, top));
        else
            tl_load_into(tl, own, panel);
        done[i % 2] = multiply(tl, arg, tl_part(tl, a, 0, top, rows - top), false, own, true,
                               tl_part(tl, block, 0, top, rows - top));
    }
}

KB_BENCH(gemm, "C = A B, rows of A and C over all PEs, B with each of them",
         KB_INT(m, 131072, 1, 1 << 24, "rows of A and C"),
         KB_INT(k, 768, 1, 1 << 24, "columns of A, rows of B"),
         KB_INT(n, 1024, 1, 1 << 24, "columns of B and C"),
         KB_WORD(dtype, "f16 bf16 f32 i8", "of A and B, and of C; i8 gives i32"),
         KB_INT(tile_m, 0, 0, 1 << 24, "rows of a tile; 0: as fits the machine"),
         KB_INT(tile_k, 0, 0, 1 << 24, "depth of a tile"),
         KB_INT(tile_n, 0, 0, 1 << 24, "columns of a tile"),
         KB_BOOL(bias, false, "add a row to every row of C"),
         KB_BOOL(relu, false, "no element of C below 0"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    double most = dtype == KB_i8 ? 128 : 1;
    struct kb_pes pes = kb_pes("*");

    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(m, k), kb_rows(KB_HBM, pes));
    kb_tensor b = kb_tensor_new("b", dtype, kb_2d(n, k), kb_copies(KB_HBM, pes));
    kb_tensor c = kb_tensor_new("c", out, kb_2d(m, n), kb_rows(KB_HBM, pes));
    kb_tensor bias = NULL;
    kb_fill_uniform(a, -most, most);
    kb_fill_uniform(b, -most, most);
    if (kb_bool(bias)) {
        bias = kb_tensor_new("bias", out, kb_1d(n), kb_copies(KB_HBM, pes));
        kb_fill_uniform(bias, -most, most);
    }
    uint64_t room = kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes, deep = k * kb_dtype_bytes(dtype);
    struct tile_ask ask = {tile_count(m, pes.count), k, n, dtype, out, false, false};
    uint64_t panel = tile_panel(&ask, room);
    if (panel) {
        ask.n = panel;
        ask.pin_b = true;
    }
    struct tile tile = tile_of(&ask);
    uint64_t head = panel == n ? (room - n * deep) / deep / kb_attrs.pe_gemm_rows * kb_attrs.pe_gemm_rows : 0;
    uint64_t step = tile_even(n, kb_attrs.pe_gemm_cols, tile_count(n, 8));
    tile = (struct tile){kb_int(tile_m) ?: tile.m, kb_int(tile_k) ?: tile.k, kb_int(tile_n) ?: tile.n};

    kb_future launch = kb_launch(gemm, pes, &(struct gemm_args){
        .a = a, .b = b, .c = c, .bias = bias, .tile = tile, .panel = panel,
        .head = head, .step = step, .relu = kb_bool(relu) });
    kb_wait(launch);
    kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){
        .gemm_dtype = dtype, .macs = m * k * n, .hbm_read = (m + n * pes.count) * k * kb_dtype_bytes(dtype),
        .hbm_written = m * n * kb_dtype_bytes(out) });

    kb_ref expected = kb_ref_gemm(a, kb_ref_transpose(b));
    if (bias)
        kb_ref_bias(expected, bias);
    if (kb_bool(relu))
        kb_ref_relu(expected);
    kb_expect_close(c, expected);
}
