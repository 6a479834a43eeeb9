/* rmsnorm.c: y = x / sqrt(mean(x^2) + eps) * gain along each row.
 *
 * The rows are split over the PEs' HBM slices and stream through each PE's TCM; each PE has a copy of the gain and
 * reads it once. Squares and their mean are f32, the rest has x's dtype, so that pe_math keeps up with the HBM, which
 * bounds the kernel. A row that does not fit into the TCM is read twice, in pieces: once for its squares, once to be
 * scaled. */
#include "stream.h"

struct rmsnorm_args {
    kb_tensor x, gain, y;
    double eps;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

static void scale_rows(struct tl *tl, struct stream *s, tl_handle done, struct tl_shard factor)
{
    struct tl_shard x = s->in[0], gain = s->in[1];
    stream_then(tl, done, tl_mul_async(tl, x, x, factor));
    stream_then(tl, done, tl_mul_async(tl, x, x, gain));
    tl_wait(tl, done);
}

static void whole_rows(struct tl *tl, struct stream *s, const struct rmsnorm_args *arg)
{
    struct tl_shard wide = tl_alloc(tl, KB_f32, s->block_rows * s->block_cols);
    struct tl_shard means = tl_alloc(tl, KB_f32, s->block_rows, 1);
    while (stream_next(s)) {
        struct tl_shard squares = stream_matrix(s, wide, s->at.rows, s->at.cols);
        struct tl_shard mean = tl_part(tl, means, 0, 0, s->at.rows);
        tl_handle done = tl_mul_async(tl, squares, s->in[0], s->in[0]);
        stream_then(tl, done, tl_mean_async(tl, mean, squares, 1));
        scale_rows(tl, s, stream_reciprocal_root(tl, done, mean, arg->eps), mean);
    }
}

/* Adds up the squares of rows that stream in pieces. */
static void sum_squares(struct tl *tl, struct stream *s, struct tl_shard sums)
{
    struct tl_shard wide = tl_alloc(tl, KB_f32, s->block_rows * s->block_cols);
    struct tl_shard pieces = tl_alloc(tl, KB_f32, s->block_rows, 1);
    while (stream_next(s)) {
        struct tl_shard squares = stream_matrix(s, wide, s->at.rows, s->at.cols);
        struct tl_shard sum = stream_part(s, sums, s->at), piece = tl_part(tl, pieces, 0, 0, s->at.rows);
        tl_handle done = tl_mul_async(tl, squares, s->in[0], s->in[0]);
        stream_then(tl, done, tl_sum_async(tl, s->at.col == 0 ? sum : piece, squares, 1));
        if (s->at.col > 0)
            stream_then(tl, done, tl_add_async(tl, sum, sum, piece));
        tl_wait(tl, done);
    }
    tl_free(tl, pieces);
    tl_free(tl, wide);
}

KB_KERNEL(rmsnorm, struct rmsnorm_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), gain = tl_my_shard(tl, arg->gain), y = tl_my_shard(tl, arg->y);
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct stream plan = {.params = {arg->buffers, arg->block_rows, arg->block_cols},
                          .load = {x, gain}, .store = {y}, .in_place = true, .whole_rows = true,
                          .scratch_bytes = 4, .row_bytes = 4, .ops = 6, .cost = 6};
    struct stream s = stream_of(tl, plan);
    if (stream_whole(&s)) {
        whole_rows(tl, &s, arg);
        return;
    }
    struct stream reads = {.params = {arg->buffers, arg->block_rows, arg->block_cols},
                           .load = {x}, .scratch_bytes = 4, .row_bytes = 4, .ops = 3, .cost = 4};
    struct tl_shard sums = tl_alloc(tl, KB_f32, x.shape[0], 1);
    s = stream_of(tl, reads);
    sum_squares(tl, &s, sums);
    tl_handle done = tl_mul_async(tl, sums, sums, tl_number(1.0 / (double)x.shape[1]));
    done = stream_reciprocal_root(tl, done, sums, arg->eps);
    s = stream_of(tl, plan);
    while (stream_next(&s))
        scale_rows(tl, &s, done, stream_part(&s, sums, s.at));
}

KB_BENCH(rmsnorm, "root mean square norm of each row, rows over all PEs",
         KB_INT(rows, 32768, 1, 1 << 30, "rows"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of x, gain and y"),
         KB_REAL(eps, 1e-5, 0, 1, "added to the mean of the squares"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t size = kb_dtype_bytes(dtype), of_pe = kb_ceil_div(rows, pes.count);
    stream_needs(cols, size, size, 4, 4, tcm_padded(of_pe * 4));

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_tensor gain = kb_tensor_new("gain", dtype, kb_2d(1, cols), kb_copies(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(x, -4, 4);
    kb_fill_uniform(gain, 0.8, 1.2);
    kb_future launch = kb_launch(rmsnorm, pes, &(struct rmsnorm_args){
        .x = x, .gain = gain, .y = y, .eps = kb_real(eps), .buffers = kb_int(buffers),
        .block_rows = kb_int(block_rows), .block_cols = kb_int(block_cols)});
    kb_wait(launch);

    uint64_t bytes = n * kb_dtype_bytes(dtype);
    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = dtype, .math = 2 * n, .math_f32 = 2 * n, .reads = {x, gain}, .writes = {y} },
        &(struct kb_work){ .hbm_read = bytes + pes.count * cols * kb_dtype_bytes(dtype), .hbm_written = bytes });
    kb_expect_close(y, kb_ref_rmsnorm(x, gain, kb_real(eps)));
}
