/* softmax.c: y = exp(x - max) / sum(exp(x - max)) along each row.
 *
 * The rows are split over the PEs' HBM slices and stream through each PE's TCM, read once and written once. pe_math
 * passes over each block five times, in x's dtype, so that it keeps up with the HBM, which bounds the kernel; only the
 * sums are f32.
 *
 * A row that does not fit into the TCM is read twice, in pieces: once for its maximum and its sum, which each piece
 * updates (online softmax), and once for the quotients. That moves 1.5 times the bytes. */
#include "stream.h"
#include <kb/host.h>

struct softmax_args {
    kb_tensor x, y;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

static void whole_rows(struct tl *tl, struct stream *s)
{
    struct tl_shard maxima = tl_alloc(tl, s->load[0].dtype, s->block_rows, 1);
    struct tl_shard sums = tl_alloc(tl, KB_f32, s->block_rows, 1);
    while (stream_next(s)) {
        struct tl_shard x = s->in[0], max = tl_part(tl, maxima, 0, 0, s->at.rows);
        struct tl_shard sum = tl_part(tl, sums, 0, 0, s->at.rows);
        tl_handle done = tl_reduce_max_async(tl, max, x, 1);
        stream_then(tl, done, tl_sub_async(tl, x, x, max));
        stream_then(tl, done, tl_exp_async(tl, x, x));
        stream_then(tl, done, tl_sum_async(tl, sum, x, 1));
        stream_then(tl, done, tl_recip_async(tl, sum, sum));
        stream_then(tl, done, tl_mul_async(tl, x, x, sum));
        tl_wait(tl, done);
    }
}

/* The first pass over rows in pieces: each piece updates its rows' maxima and their sums of exp(x - maximum). */
static void max_and_sum(struct tl *tl, struct stream *s, struct tl_shard maxima, struct tl_shard sums)
{
    struct tl_shard new_maxima = tl_alloc(tl, maxima.dtype, s->block_rows, 1);
    struct tl_shard new_sums = tl_alloc(tl, KB_f32, s->block_rows, 1);
    while (stream_next(s)) {
        uint64_t rows = s->at.rows;
        struct tl_shard x = s->in[0], max = stream_part(s, maxima, s->at), sum = stream_part(s, sums, s->at);
        struct tl_shard new_max = tl_part(tl, new_maxima, 0, 0, rows), new_sum = tl_part(tl, new_sums, 0, 0, rows);
        bool first = s->at.col == 0;
        tl_handle done = tl_reduce_max_async(tl, first ? max : new_max, x, 1);
        if (!first) {                                   /* rescale the sum so far to the new maximum */
            stream_then(tl, done, tl_max_async(tl, new_max, new_max, max));
            stream_then(tl, done, tl_sub_async(tl, max, max, new_max));
            stream_then(tl, done, tl_exp_async(tl, max, max));
            stream_then(tl, done, tl_mul_async(tl, sum, sum, max));
            stream_then(tl, done, tl_copy_async(tl, max, new_max));
        }
        stream_then(tl, done, tl_sub_async(tl, x, x, max));
        stream_then(tl, done, tl_exp_async(tl, x, x));
        stream_then(tl, done, tl_sum_async(tl, first ? sum : new_sum, x, 1));
        if (!first)
            stream_then(tl, done, tl_add_async(tl, sum, sum, new_sum));
        tl_wait(tl, done);
    }
    tl_free(tl, new_maxima);
    tl_free(tl, new_sums);
}

/* The second pass over rows in pieces. */
static void quotients(struct tl *tl, struct stream *s, struct tl_shard maxima, struct tl_shard sums)
{
    tl_recip(tl, sums, sums);
    while (stream_next(s)) {
        struct tl_shard x = s->in[0];
        tl_handle done = tl_sub_async(tl, x, x, stream_part(s, maxima, s->at));
        stream_then(tl, done, tl_exp_async(tl, x, x));
        stream_then(tl, done, tl_mul_async(tl, x, x, stream_part(s, sums, s->at)));
        tl_wait(tl, done);
    }
}

KB_KERNEL(softmax, struct softmax_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct stream plan = {.params = {arg->buffers, arg->block_rows, arg->block_cols},
                          .load = {x}, .in_place = true, .whole_rows = true, .row_bytes = 8,
                          .ops = 6, .cost = 5 + kb_op_cost("exp")}, reads = plan;
    plan.store[0] = y;
    struct stream s = stream_of(tl, plan);
    if (stream_whole(&s)) {
        whole_rows(tl, &s);
        return;
    }
    struct tl_shard maxima = tl_alloc(tl, x.dtype, x.shape[0], 1), sums = tl_alloc(tl, KB_f32, x.shape[0], 1);
    reads.ops = 10;
    s = stream_of(tl, reads);
    max_and_sum(tl, &s, maxima, sums);
    plan.ops = 3;
    plan.cost = 2 + kb_op_cost("exp");
    s = stream_of(tl, plan);
    quotients(tl, &s, maxima, sums);
}

KB_BENCH(softmax, "softmax of each row, rows over all PEs",
         KB_INT(rows, 32768, 1, 1 << 30, "rows"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of x and y"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t of_pe = kb_ceil_div(rows, pes.count), size = kb_dtype_bytes(dtype);
    stream_needs(cols, size, 0, 0, 8, tcm_padded(of_pe * size) + tcm_padded(of_pe * 4));

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    double most = dtype == KB_bf16 ? 0.5 : 40;          /* few elements have most of a row's sum; bf16 is too coarse for it */
    kb_fill_uniform(x, -most, most);
    kb_future launch = kb_launch(softmax, pes, &(struct softmax_args){
        x, y, kb_int(buffers), kb_int(block_rows), kb_int(block_cols)});
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = dtype, .math = (3 + kb_op_cost("exp")) * n, .math_f32 = n, .reads = {x}, .writes = {y} }, NULL);
    kb_expect_close(y, kb_ref_softmax(x));
}
