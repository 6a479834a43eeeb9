/* col_reduce.c: of each column its sum, mean, maximum or minimum, over rows that lie with many PEs.
 *
 * Each PE reduces its own rows, which stream through its TCM, to one row of results: that is nearly all of the time, and
 * bound by the engine of the DMA that reads. Then the rows of results of all PEs are joined by messages, in steps:
 * neighbours, a few at a time, share out the columns, and each gets from the others what they have of its share; then
 * each does the same with those of other groups that have the same share. In the end every PE has some columns, and has
 * sent about as many bytes as a row of results. */
#include "reduce.h"

struct col_reduce_args {
    kb_tensor x, y;
    uint64_t rows;                                      /* of x */
    struct reduction reduction;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

/* ---- one PE's rows */

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

/* ---- all PEs' results */

/* The PEs that have rows, in the order of their rows. */
struct ranks {
    uint64_t count, at;                                 /* at: this PE's place */
    uint64_t pes, rows;                                 /* of the launch, of x */
};

static struct ranks ranks_of(struct tl *tl, struct tl_shard x, uint64_t rows)
{
    uint64_t pes = tl_num_pes(tl);
    return rows < pes ? (struct ranks){rows, x.first[0], pes, rows} : (struct ranks){pes, tl_pe(tl), pes, rows};
}

/* With fewer rows than PEs, row i lies with the last PE whose shard does not begin behind it. */
static uint32_t pe_of(const struct ranks *ranks, uint64_t at)
{
    return (uint32_t)(ranks->rows < ranks->pes ? ((at + 1) * ranks->pes - 1) / ranks->rows : at);
}

/* How many ranks exchange in a step, where so many are still to be joined: a few, for a PE takes in one message at a
 * time; not two, for each step costs a message's latency. */
static uint64_t radix_of(uint64_t ranks)
{
    uint64_t radix = ranks < 4 ? ranks : 4;
    while (ranks % radix != 0)
        radix++;
    return radix;
}

/* Ranks that exchange: `count`, which are `step` apart; this PE is number `self` among them. */
struct party {
    uint64_t step, count, self;
};

static uint32_t member(const struct ranks *ranks, const struct party *party, uint64_t i)
{
    return pe_of(ranks, ranks->at + i * party->step - party->self * party->step);
}

static struct tl_shard share(struct tl *tl, const struct party *party, struct tl_shard row, uint64_t i)
{
    uint64_t n = row.shape[1], first = n * i / party->count, end = n * (i + 1) / party->count;
    if (first < end)
        return tl_part(tl, row, 1, first, end - first);
    row.shape[1] = 0;
    return row;
}

enum { SENDS = 64 };                                    /* under way at a time */

/* Sends the others their shares of a row of results. */
static void send_shares(struct tl *tl, const struct ranks *ranks, const struct party *party, struct tl_shard row)
{
    tl_handle sent[SENDS] = {0};
    for (uint64_t i = 1; i < party->count; i++) {
        uint64_t to = (party->self + i) % party->count;
        struct tl_shard part = share(tl, party, row, to);
        if (sent[i % SENDS])
            tl_wait(tl, sent[i % SENDS]);
        if (part.shape[1])
            sent[i % SENDS] = tl_send_async(tl, member(ranks, party, to), part);
    }
    for (uint32_t i = 0; i < SENDS; i++)
        if (sent[i])
            tl_wait(tl, sent[i]);
}

/* Receives this PE's share of the others' results, and joins it to its own. */
static void join_shares(struct tl *tl, const struct ranks *ranks, const struct party *party,
                        const struct reduction *reduction, struct tl_shard own)
{
    struct tl_shard all = tl_alloc(tl, own.dtype, party->count, own.shape[1]);
    tl_handle copied = tl_copy_async(tl, tl_part(tl, all, 0, party->self, 1), own);
    for (uint64_t i = 1; i < party->count; i++) {
        uint64_t from = (party->self + party->count - i) % party->count;
        tl_recv(tl, member(ranks, party, from), tl_part(tl, all, 0, from, 1));
    }
    tl_wait(tl, copied);
    reduce_along(tl, reduction, own, all, 0);
    tl_free(tl, all);
}

/* Joins all PEs' rows of results; this PE gets the part of the whole that it returns: of a shape of 0 there, none. */
static struct tl_shard join(struct tl *tl, const struct ranks *ranks, const struct reduction *reduction,
                            struct tl_shard row)
{
    struct party party = {.step = 1};
    for (; party.step < ranks->count; party.step *= party.count) {
        party.count = radix_of(ranks->count / party.step);
        party.self = ranks->at / party.step % party.count;
        send_shares(tl, ranks, &party, row);
        row = share(tl, &party, row, party.self);
        if (row.shape[1] == 0)
            break;
        join_shares(tl, ranks, &party, reduction, row);
    }
    return row;
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

/* ---- the kernel */

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

/* Columns whose results are in a quarter of the TCM, with all that joins them, and no share longer than a message. */
static uint64_t columns_at_once(struct tl *tl, const struct ranks *ranks)
{
    uint64_t size = sizeof(float), room = tl_room_bytes(tl) / 4 / (4 * size);
    uint64_t messages = radix_of(ranks->count) * (tl_slot_bytes(tl) / size);
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
        reduce_cols(tl, arg, &ranks, tl_part(tl, x, 1, col, stream_clamp(x.shape[1] - col, 1, most)), col);
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
