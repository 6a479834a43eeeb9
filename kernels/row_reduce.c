/* row_reduce.c: the sum, mean, maximum or minimum of each row.
 *
 * The rows are split over the PEs' HBM slices and stream through each PE's TCM; the results stay there and are stored
 * at the end. The kernel hardly writes, so the single read engine of the DMA bounds it: the HBM idles between two of
 * its transfers. Sums of floats are f32, sums of integers i32. Rows that do not fit into the TCM stream in pieces. */
#include "reduction.h"

struct row_reduce_args {
    kb_tensor x, y;
    struct reduction reduction;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
    uint64_t at_once;                                   /* most rows whose results lie in the TCM at a time */
};

enum { RESULT_ROWS = 16384 };

static void reduce_rows(struct tl *tl, const struct row_reduce_args *arg, struct tl_shard x, struct tl_shard y)
{
    const struct reduction *reduction = &arg->reduction;
    enum kb_dtype inner = reduction_dtype(reduction, x.dtype);
    struct tl_shard results = tl_alloc(tl, inner, x.shape[0], 1), out = tl_alloc(tl, y.dtype, x.shape[0], 1);
    struct stream s = stream_of(tl, (struct stream){
        .load = {x}, .whole_rows = true, .row_bytes = 4, .ops = 1, .cost = inner == x.dtype ? 1 : 2,
        .params = {arg->buffers, arg->block_rows, arg->block_cols} });
    struct tl_shard pieces = tl_alloc(tl, inner, s.block_rows, 1);
    while (stream_next(&s)) {
        struct tl_shard result = stream_part(&s, results, s.at), piece = tl_part(tl, pieces, 0, 0, s.at.rows);
        reduction_along(tl, reduction, s.at.col == 0 ? result : piece, s.in[0], 1);
        if (s.at.col > 0)
            tl_math(tl, reduction->merge, result, result, piece);
    }
    reduction_finish(tl, reduction, out, results, x.shape[1]);
    tl_store(tl, y, out);
    tl_free(tl, results);
    tl_free(tl, out);
    tl_free(tl, pieces);
}

KB_KERNEL(row_reduce, struct row_reduce_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    for (uint64_t row = 0; row < x.shape[0]; row += arg->at_once) {
        uint64_t rows = kb_min(x.shape[0] - row, arg->at_once);
        reduce_rows(tl, arg, tl_part(tl, x, 0, row, rows), tl_part(tl, y, 0, row, rows));
    }
}

KB_BENCH(row_reduce, "sum, mean, max or min of each row, rows over all PEs",
         KB_INT(rows, 32768, 1, 1 << 30, "rows of x, elements of y"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns of x"),
         KB_WORD(dtype, "f32 f16 bf16 i32 i8", "dtype of x and y; with i8, y is i32"),
         KB_WORD(op, "sum mean max min", "reduction of a row"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct reduction reduction = reduction_of(kb_word(op));
    uint64_t result = kb_dtype_bytes(reduction_dtype(&reduction, dtype)) + kb_dtype_bytes(out);
    uint64_t left = stream_needs(cols, kb_dtype_bytes(dtype), 0, 0, 4 + 2 * 64 + result, 1);
    reduction_needs(&reduction, dtype);
    left = kb_min(left, tcm_allocatable_bytes() / 2);

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", out, kb_2d(rows, 1), kb_rows(kb_main_memory(), pes));
    reduction_fill(x, dtype);
    kb_future launch = kb_launch(row_reduce, pes, &(struct row_reduce_args){
        x, y, reduction, kb_int(buffers), kb_int(block_rows), kb_int(block_cols),
        kb_clamp(left / result, 1, RESULT_ROWS)});
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = reduction_dtype(&reduction, dtype), .math = n, .reads = {x}, .writes = {y} }, NULL);
    kb_expect_close(y, reduction_expected(x, kb_word(op), 1));
}
