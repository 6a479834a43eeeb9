/* layernorm.c: y = (x - mean) / sqrt(variance + eps) * gain + bias along each row.
 *
 * The rows are split over the PEs' HBM slices and stream through each PE's TCM; each PE has a copy of gain and bias and
 * reads them once. Squares and their mean are f32, the rest has x's dtype, so that pe_math keeps up with the HBM: both
 * are busy nearly all the time. A row that does not fit into the TCM is read twice, in pieces: once for its mean and
 * variance, which each piece updates as in Chan, Golub, LeVeque 1979, and once to be scaled. */
#include "stream.h"

struct layernorm_args {
    kb_tensor x, gain, bias, y;
    double eps;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

static void scale_rows(struct tl *tl, struct stream *s, tl_handle done, struct tl_shard factor)
{
    struct tl_shard x = s->in[0], gain = s->in[1], bias = s->in[2];
    stream_then(tl, done, tl_mul_async(tl, x, x, factor));
    stream_then(tl, done, tl_mul_async(tl, x, x, gain));
    stream_then(tl, done, tl_add_async(tl, x, x, bias));
    tl_wait(tl, done);
}

static void whole_rows(struct tl *tl, struct stream *s, const struct layernorm_args *arg)
{
    struct tl_shard wide = tl_alloc(tl, KB_f32, s->block_rows * s->block_cols);
    struct tl_shard means = tl_alloc(tl, s->load[0].dtype, s->block_rows, 1);
    struct tl_shard variances = tl_alloc(tl, KB_f32, s->block_rows, 1);
    while (stream_next(s)) {
        struct tl_shard x = s->in[0], squares = stream_matrix(s, wide, s->at.rows, s->at.cols);
        struct tl_shard mean = tl_part(tl, means, 0, 0, s->at.rows);
        struct tl_shard variance = tl_part(tl, variances, 0, 0, s->at.rows);
        tl_handle done = tl_mean_async(tl, mean, x, 1);
        stream_then(tl, done, tl_sub_async(tl, x, x, mean));
        stream_then(tl, done, tl_mul_async(tl, squares, x, x));
        stream_then(tl, done, tl_mean_async(tl, variance, squares, 1));
        scale_rows(tl, s, stream_reciprocal_root(tl, done, variance, arg->eps), variance);
    }
}

/* The moments of rows that stream in pieces, so far: their means, and the sums of (x - mean)^2. */
struct moments {
    struct tl_shard mean, squares;
};

/* Merges the moments `piece` of `more` columns into the moments `all` of `so_far` columns. Overwrites `piece`. */
static tl_handle merge_moments(struct tl *tl, tl_handle done, struct moments all, struct moments piece, uint64_t so_far,
                               uint64_t more)
{
    double part = (double)more / (double)(so_far + more);
    stream_then(tl, done, tl_add_async(tl, all.squares, all.squares, piece.squares));
    stream_then(tl, done, tl_sub_async(tl, piece.mean, piece.mean, all.mean));
    stream_then(tl, done, tl_mul_async(tl, piece.squares, piece.mean, piece.mean));
    stream_then(tl, done, tl_mul_async(tl, piece.squares, piece.squares, tl_number(part * (double)so_far)));
    stream_then(tl, done, tl_add_async(tl, all.squares, all.squares, piece.squares));
    stream_then(tl, done, tl_mul_async(tl, piece.mean, piece.mean, tl_number(part)));
    stream_then(tl, done, tl_add_async(tl, all.mean, all.mean, piece.mean));
    return done;
}

/* Computes the moments of rows that stream in pieces. */
static void compute_moments(struct tl *tl, struct stream *s, struct moments all)
{
    struct tl_shard wide = tl_alloc(tl, KB_f32, s->block_rows * s->block_cols);
    struct moments pieces = {tl_alloc(tl, KB_f32, s->block_rows, 1), tl_alloc(tl, KB_f32, s->block_rows, 1)};
    while (stream_next(s)) {
        struct tl_shard squares = stream_matrix(s, wide, s->at.rows, s->at.cols);
        struct moments row = {stream_part(s, all.mean, s->at), stream_part(s, all.squares, s->at)}, piece = row;
        if (s->at.col > 0)
            piece = (struct moments){tl_part(tl, pieces.mean, 0, 0, s->at.rows),
                                     tl_part(tl, pieces.squares, 0, 0, s->at.rows)};
        tl_handle done = tl_mean_async(tl, piece.mean, s->in[0], 1);
        stream_then(tl, done, tl_sub_async(tl, squares, s->in[0], piece.mean));
        stream_then(tl, done, tl_mul_async(tl, squares, squares, squares));
        stream_then(tl, done, tl_sum_async(tl, piece.squares, squares, 1));
        if (s->at.col > 0)
            done = merge_moments(tl, done, row, piece, s->at.col, s->at.cols);
        tl_wait(tl, done);
    }
    tl_free(tl, wide);
    tl_free(tl, pieces.mean);
    tl_free(tl, pieces.squares);
}

KB_KERNEL(layernorm, struct layernorm_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    struct tl_shard gain = tl_my_shard(tl, arg->gain), bias = tl_my_shard(tl, arg->bias);
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct stream plan = {.params = {arg->buffers, arg->block_rows, arg->block_cols},
                          .load = {x, gain, bias}, .store = {y}, .in_place = true, .whole_rows = true,
                          .scratch_bytes = 4, .row_bytes = 8, .ops = 9, .cost = 9};
    struct stream s = stream_of(tl, plan);
    if (stream_whole(&s)) {
        whole_rows(tl, &s, arg);
        return;
    }
    struct stream reads = {.params = {arg->buffers, arg->block_rows, arg->block_cols},
                           .load = {x}, .scratch_bytes = 4, .row_bytes = 8, .ops = 11, .cost = 8};
    struct moments all = {tl_alloc(tl, KB_f32, x.shape[0], 1), tl_alloc(tl, KB_f32, x.shape[0], 1)};
    s = stream_of(tl, reads);
    compute_moments(tl, &s, all);
    tl_handle done = tl_mul_async(tl, all.squares, all.squares, tl_number(1.0 / (double)x.shape[1]));
    done = stream_reciprocal_root(tl, done, all.squares, arg->eps);
    s = stream_of(tl, plan);
    while (stream_next(&s)) {
        stream_then(tl, done, tl_sub_async(tl, s.in[0], s.in[0], stream_part(&s, all.mean, s.at)));
        scale_rows(tl, &s, done, stream_part(&s, all.squares, s.at));
    }
}

KB_BENCH(layernorm, "layer norm of each row, rows over all PEs",
         KB_INT(rows, 32768, 1, 1 << 30, "rows"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of x, gain, bias and y"),
         KB_REAL(eps, 1e-5, 0, 1, "added to the variance"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t size = kb_dtype_bytes(dtype), of_pe = kb_ceil_div(rows, pes.count);
    stream_needs(cols, size, 2 * size, 4, 8, 2 * tcm_padded(of_pe * 4));

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_tensor gain = kb_tensor_new("gain", dtype, kb_2d(1, cols), kb_copies(kb_main_memory(), pes));
    kb_tensor bias = kb_tensor_new("bias", dtype, kb_2d(1, cols), kb_copies(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(x, -3, 4);
    kb_fill_uniform(gain, 0.8, 1.2);
    kb_fill_uniform(bias, -1, 1);
    kb_future launch = kb_launch(layernorm, pes, &(struct layernorm_args){
        .x = x, .gain = gain, .bias = bias, .y = y, .eps = kb_real(eps), .buffers = kb_int(buffers),
        .block_rows = kb_int(block_rows), .block_cols = kb_int(block_cols)});
    kb_wait(launch);

    uint64_t bytes = n * kb_dtype_bytes(dtype);
    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = dtype, .math = 5 * n, .math_f32 = 2 * n, .reads = {x, gain, bias}, .writes = {y} },
        &(struct kb_work){ .hbm_read = bytes + 2 * pes.count * cols * kb_dtype_bytes(dtype), .hbm_written = bytes });
    kb_expect_close(y, kb_ref_layernorm(x, gain, bias, kb_real(eps)));
}
