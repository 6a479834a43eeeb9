/* col_reduce.c: of each column its sum, mean, maximum or minimum, over rows that lie with many PEs.
 *
 * Each PE reduces its own rows, which stream through its TCM, to one row of results: that is nearly all of the time,
 * and bound by the engine of the DMA that reads. Then the rows of results of all PEs are joined by messages (join.h),
 * which leaves each PE with some columns to store. */
#include "join.h"

struct col_reduce_args {
    kb_tensor x, y;
    uint64_t rows;                                      /* of x */
    struct reduction reduction;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

/* The results of x, which is some columns of a PE's rows. */
static void reduce_own(struct tl *tl, const struct col_reduce_args *arg, struct tl_shard results, struct tl_shard x)
{
    struct stream s = stream_of(tl, (struct stream){
        .load = {x}, .ops = 2, .cost = results.dtype == x.dtype ? 1 : 2, .col_bytes = 4,
        .buffers = arg->buffers, .block_rows = arg->block_rows, .block_cols = arg->block_cols });
    struct tl_shard more = tl_alloc(tl, results.dtype, 1, s.block_cols);
    while (stream_next(&s)) {
        struct tl_shard result = tl_part(tl, results, 1, s.at.col, s.at.cols);
        struct tl_shard block = tl_part(tl, more, 1, 0, s.at.cols);
        reduce_along(tl, &arg->reduction, s.at.row == 0 ? result : block, s.in[0], 0);
        if (s.at.row > 0)
            tl_math(tl, arg->reduction.joins, result, result, block);
    }
    tl_free(tl, more);
}

/* Puts results of the columns from `first` on where they belong. */
static void store(struct tl *tl, kb_tensor y, struct tl_shard results, uint64_t first)
{
    for (uint64_t i = 0; i < tl_shards(y); i++) {
        struct tl_shard to = tl_shard(tl, y, i);
        uint64_t begin = to.first[1] > first ? to.first[1] : first, end = to.first[1] + to.shape[1];
        end = end < first + results.shape[1] ? end : first + results.shape[1];
        if (begin < end)
            tl_store(tl, tl_part(tl, to, 1, begin - to.first[1], end - begin),
                     tl_part(tl, results, 1, begin - first, end - begin));
    }
}

static void reduce_cols(struct tl *tl, const struct col_reduce_args *arg, const struct ranks *ranks, struct tl_shard x,
                        uint64_t first)
{
    struct tl_shard results = tl_alloc(tl, reduction_dtype(&arg->reduction, x.dtype), 1, x.shape[1]);
    reduce_own(tl, arg, results, x);
    struct tl_shard mine = join(tl, ranks, &arg->reduction, results);
    if (mine.shape[1]) {
        struct tl_shard out = tl_alloc(tl, tl_shard(tl, arg->y, 0).dtype, 1, mine.shape[1]);
        reduce_end(tl, &arg->reduction, out, mine, arg->rows);
        store(tl, arg->y, out, first + mine.first[1]);
        tl_free(tl, out);
    }
    tl_free(tl, results);
}

/* Columns at a time: results, and what is received to be joined to them, take a third of the TCM; and a share is of no
 * more messages than a ring has slots. */
static uint64_t columns_at_once(struct tl *tl, const struct ranks *ranks)
{
    uint64_t size = sizeof(float), room = tl_room_bytes(tl) / 3 / (2 * size);
    uint64_t messages = radix_of(ranks->count) * tl_slots(tl) * (tl_slot_bytes(tl) / size);
    return ranks->count > 1 && messages < room ? messages : room;
}

KB_KERNEL(col_reduce, struct col_reduce_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct ranks ranks = ranks_of(tl, x, arg->rows);
    uint64_t most = columns_at_once(tl, &ranks);
    for (uint64_t col = 0; col < x.shape[1]; col += most)
        reduce_cols(tl, arg, &ranks, tl_part(tl, x, 1, col, kb_clamp(x.shape[1] - col, 1, most)), col);
}

KB_BENCH(col_reduce, "sum, mean, max or min of each column, rows over all PEs",
         KB_INT(rows, 32768, 1, 1 << 30, "rows of x"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns of x, elements of y"),
         KB_WORD(dtype, "f32 f16 bf16 i32 i8", "of x, and of y; i8 gives i32"),
         KB_WORD(op, "sum mean max min", "what becomes of a column"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct reduction reduction = reduction_of(kb_word(op));

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(KB_HBM, pes));
    kb_tensor y = kb_tensor_new("y", out, kb_2d(1, cols), kb_cols(KB_HBM, pes));
    reduction_fill(x, dtype);
    kb_future launch = kb_launch(col_reduce, pes, &(struct col_reduce_args){
        x, y, rows, reduction, kb_int(buffers), kb_int(block_rows), kb_int(block_cols)});
    kb_wait(launch);

    kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){
        .math_dtype = reduction_dtype(&reduction, dtype), .math = n,
        .hbm_read = n * kb_dtype_bytes(dtype), .hbm_written = cols * kb_dtype_bytes(out) });
    kb_expect_close(y, reduction_expected(x, kb_word(op), 0));
}
