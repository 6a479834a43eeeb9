/* col_reduce.c: of each column its sum, mean, maximum or minimum, over rows that lie with many PEs.
 *
 * Each PE reduces its own rows, which stream through its TCM, to one row of results: that is nearly all of the time, and
 * bound by the engine of the DMA that reads. Then the p rows of results are joined by messages, in two steps. The PEs
 * are a grid, whose rows are of neighbours: in the first step each row of the grid shares out the columns, and each PE
 * gets from the others what they have of its share; in the second step those of each column of the grid do the same
 * with that share. So a PE sends about as many bytes as its results have, by about 2 sqrt(p) messages. */
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

/* The PEs that have rows, as a grid. */
struct grid {
    uint64_t rows, cols;                                /* of the grid */
    uint64_t at;                                        /* this PE's place, row-major */
    uint64_t pes, all;                                  /* of the launch, and rows of x */
};

static struct grid grid_of(struct tl *tl, struct tl_shard x, uint64_t all)
{
    struct grid grid = {.pes = tl_num_pes(tl), .all = all};
    uint64_t p = all < grid.pes ? all : grid.pes;
    grid.at = all < grid.pes ? x.first[0] : tl_pe(tl);
    for (uint64_t cols = 1; cols * cols <= p; cols++)
        if (p % cols == 0)
            grid.cols = cols;
    grid.rows = p / grid.cols;
    return grid;
}

/* With fewer rows than PEs, row i lies with the last PE whose shard does not begin behind it. */
static uint32_t pe_at(const struct grid *grid, uint64_t i)
{
    return (uint32_t)(grid->all < grid->pes ? ((i + 1) * grid->pes - 1) / grid->all : i);
}

struct span {
    uint64_t first, count;
};

/* Of n columns, the share of place `at` after the second step; before it, that of its column of the grid. */
static struct span share(const struct grid *grid, uint64_t n, uint64_t at, bool ended)
{
    uint64_t p = grid->rows * grid->cols, i = at % grid->cols * grid->rows + (ended ? at / grid->cols : 0);
    uint64_t first = n * i / p, end = n * (i + (ended ? 1 : grid->rows)) / p;
    return (struct span){first, end - first};
}

/* PEs of the grid that exchange shares: `count` places, `step` apart. */
struct party {
    uint64_t first, step, count;
};

enum { SENDS = 64 };                                    /* under way at a time */

/* Sends the others of a party their shares of the results. */
static void send_shares(struct tl *tl, const struct grid *grid, struct party party, struct tl_shard results, bool ends)
{
    uint64_t self = (grid->at - party.first) / party.step;
    tl_handle sent[SENDS] = {0};
    for (uint64_t i = 1; i < party.count; i++) {
        uint64_t place = party.first + (self + i) % party.count * party.step;
        struct span to = share(grid, results.shape[1], place, ends);
        if (sent[i % SENDS])
            tl_wait(tl, sent[i % SENDS]);
        if (to.count)
            sent[i % SENDS] = tl_send_async(tl, pe_at(grid, place), tl_part(tl, results, 1, to.first, to.count));
    }
    for (uint32_t i = 0; i < SENDS; i++)
        if (sent[i])
            tl_wait(tl, sent[i]);
}

/* Receives this PE's share of the others' results, and joins it to its own. */
static void join_shares(struct tl *tl, const struct grid *grid, struct party party, const struct reduction *reduction,
                        struct tl_shard own)
{
    uint64_t self = (grid->at - party.first) / party.step;
    struct tl_shard all = tl_alloc(tl, own.dtype, party.count, own.shape[1]);
    tl_handle copied = tl_copy_async(tl, tl_part(tl, all, 0, self, 1), own);
    for (uint64_t i = 1; i < party.count; i++) {
        uint64_t from = (self + party.count - i) % party.count;
        tl_recv(tl, pe_at(grid, party.first + from * party.step), tl_part(tl, all, 0, from, 1));
    }
    tl_wait(tl, copied);
    reduce_along(tl, reduction, own, all, 0);
    tl_free(tl, all);
}

static void exchange(struct tl *tl, const struct grid *grid, struct party party, const struct reduction *reduction,
                     struct tl_shard results, bool ends)
{
    struct span mine = share(grid, results.shape[1], grid->at, ends);
    send_shares(tl, grid, party, results, ends);
    if (mine.count && party.count > 1)
        join_shares(tl, grid, party, reduction, tl_part(tl, results, 1, mine.first, mine.count));
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

static void reduce_cols(struct tl *tl, const struct col_reduce_args *arg, const struct grid *grid, struct tl_shard x,
                        uint64_t first)
{
    uint64_t n = x.shape[1];
    struct tl_shard results = tl_alloc(tl, reduction_dtype(&arg->reduction, x.dtype), 1, n);
    reduce_own(tl, arg, results, x);
    exchange(tl, grid, (struct party){grid->at - grid->at % grid->cols, 1, grid->cols}, &arg->reduction, results, false);
    exchange(tl, grid, (struct party){grid->at % grid->cols, grid->cols, grid->rows}, &arg->reduction, results, true);
    struct span mine = share(grid, n, grid->at, true);
    if (mine.count) {
        struct tl_shard out = tl_alloc(tl, tl_shard(tl, arg->y, 0).dtype, 1, mine.count);
        reduce_end(tl, &arg->reduction, out, tl_part(tl, results, 1, mine.first, mine.count), grid->all);
        store(tl, arg->y, out, first + mine.first);
        tl_free(tl, out);
    }
    tl_free(tl, results);
}

/* Columns whose results and messages fit: a quarter of the TCM, and no share longer than a message. */
static uint64_t columns_at_once(struct tl *tl, const struct grid *grid, uint64_t bytes)
{
    uint64_t slots = grid->cols > 1 ? grid->cols : grid->rows, room = tl_room_bytes(tl) / 4 / (4 * bytes);
    uint64_t messages = tl_slot_bytes(tl) / bytes * slots;
    return room < messages || slots == 1 ? room : messages;
}

KB_KERNEL(col_reduce, struct col_reduce_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct grid grid = grid_of(tl, x, arg->rows);
    uint64_t most = columns_at_once(tl, &grid, 4);
    for (uint64_t col = 0; col < x.shape[1]; col += most)
        reduce_cols(tl, arg, &grid, tl_part(tl, x, 1, col, stream_clamp(x.shape[1] - col, 1, most)), col);
}

KB_BENCH(col_reduce, "sum, mean, max or min of each column, rows over all PEs",
         KB_INT(rows, 32768, 1, 1 << 30, "rows of x"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns of x, elements of y"),
         KB_WORD(dtype, "f16 bf16 f32 i32 i8", "of x, and of y; i8 gives i32"),
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
