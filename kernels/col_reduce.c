/* col_reduce.c: the sum, mean, maximum or minimum of each column, over rows that are split over all PEs.
 *
 * Each PE reduces its own rows, which stream through its TCM, to one row of results. That takes nearly all of the time,
 * and the read engine of the DMA bounds it. A reduce-scatter by messages then merges the PEs' rows of results, and each
 * PE stores some columns of the merged row. */
#include "collective.h"
#include "reduction.h"
#include "transfers.h"

struct col_reduce_args {
    kb_tensor x, y;
    uint64_t rows;                                      /* of x */
    struct reduction reduction;
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

/* Reduces x, some columns of this PE's rows, to one row of results. */
static void reduce_own_rows(struct tl *tl, const struct col_reduce_args *arg, struct tl_shard results,
                            struct tl_shard x)
{
    struct stream s = stream_of(tl, (struct stream){
        .load = {x}, .ops = 2, .cost = results.dtype == x.dtype ? 1 : 2, .col_bytes = 4,
        .params = {arg->buffers, arg->block_rows, arg->block_cols} });
    struct tl_shard more = tl_alloc(tl, results.dtype, 1, s.block_cols);
    while (stream_next(&s)) {
        struct tl_shard result = tl_part(tl, results, 1, s.at.col, s.at.cols);
        struct tl_shard block = tl_part(tl, more, 1, 0, s.at.cols);
        reduction_along(tl, &arg->reduction, s.at.row == 0 ? result : block, s.in[0], 0);
        if (s.at.row > 0)
            tl_math(tl, arg->reduction.merge, result, result, block);
    }
    tl_free(tl, more);
}

/* ---- the reduce-scatter of the rows of results
 *
 * In each step groups of a few ranks share out the columns that they have: each gets its share from the others of its
 * group and reduces it with its own. The next step does the same among the ranks that hold the same share. Every PE
 * sends about as many bytes as a row has, and waits for the latency of one message per step. */

/* The PEs that have rows, in the order of their rows. */
struct ranks {
    uint64_t count, at;                                 /* at: this PE's rank */
    uint64_t pes, rows;                                 /* of the launch, of x */
};

static struct ranks ranks_of(struct tl *tl, struct tl_shard x, uint64_t rows)
{
    uint64_t pes = tl_num_pes(tl);
    return rows < pes ? (struct ranks){rows, x.first[0], pes, rows} : (struct ranks){pes, tl_pe(tl), pes, rows};
}

/* The ranks that exchange in a step: `count` ranks that are `stride` apart. */
struct exchange_group {
    uint64_t stride, count, self;                       /* self: this rank's number in the group */
};

/* The size of the groups of a step when groups of `ranks` ranks are still to be merged. It is small because a PE takes
 * in one message at a time, but not two, because each step costs the latency of a message. */
static uint64_t group_size(uint64_t ranks)
{
    uint64_t size = kb_min(ranks, 4);
    while (ranks % size != 0)
        size++;
    return size;
}

/* The PE that is number i of a group. With fewer rows than PEs, the PE of row i is the owner of block i. */
static uint32_t group_pe(const struct ranks *ranks, const struct exchange_group *group, uint64_t i)
{
    uint64_t rank = ranks->at + i * group->stride - group->self * group->stride;
    return (uint32_t)(ranks->rows < ranks->pes ? block_owner(ranks->rows, ranks->pes, rank) : rank);
}

/* Number i's share of a row of results; a shape of 0 columns if it has none. */
static struct tl_shard group_share(struct tl *tl, const struct exchange_group *group, struct tl_shard row, uint64_t i)
{
    struct indices cols = block_range(row.shape[1], group->count, i);
    if (cols.count)
        return tl_part(tl, row, 1, cols.first, cols.count);
    row.shape[1] = 0;
    return row;
}

/* Sends each other member its share of a row of results. A share has no more messages than there are slots between two
 * PEs, so no send waits for a receiver that is itself still sending. */
static void send_shares(struct tl *tl, const struct ranks *ranks, const struct exchange_group *group,
                        struct tl_shard row)
{
    uint64_t longest = tl_slot_bytes(tl) / kb_dtype_bytes(row.dtype);
    struct transfers sent = {.begun = 0};
    for (uint64_t i = 1; i < group->count; i++) {
        uint64_t to = (group->self + i) % group->count;
        struct tl_shard share = group_share(tl, group, row, to);
        for (uint64_t col = 0, n = share.shape[1]; col < n; col += longest)
            transfers_add(tl, &sent, tl_send_async(tl, group_pe(ranks, group, to),
                                                   tl_part(tl, share, 1, col, kb_min(longest, n - col))));
    }
    transfers_wait(tl, &sent);
}

/* Receives this PE's share from the others of its group and reduces it with its own. */
static void reduce_shares(struct tl *tl, const struct ranks *ranks, const struct exchange_group *group,
                          const struct reduction *reduction, struct tl_shard own)
{
    uint64_t longest = tl_slot_bytes(tl) / kb_dtype_bytes(own.dtype), n = own.shape[1];
    struct tl_shard all = tl_alloc(tl, own.dtype, group->count, n);
    tl_handle copied = tl_copy_async(tl, tl_part(tl, all, 0, group->self, 1), own);
    for (uint64_t i = 1; i < group->count; i++) {
        uint64_t from = (group->self + group->count - i) % group->count;
        struct tl_shard share = tl_part(tl, all, 0, from, 1);
        for (uint64_t col = 0; col < n; col += longest)
            tl_recv(tl, group_pe(ranks, group, from), tl_part(tl, share, 1, col, kb_min(longest, n - col)));
    }
    tl_wait(tl, copied);
    reduction_along(tl, reduction, own, all, 0);
    tl_free(tl, all);
}

/* Reduces all PEs' rows of results. Returns this PE's share of the reduced row, with a shape of 0 columns if it gets
 * none. */
static struct tl_shard reduce_scatter_results(struct tl *tl, const struct ranks *ranks,
                                              const struct reduction *reduction, struct tl_shard row)
{
    struct exchange_group group = {.stride = 1};
    for (; group.stride < ranks->count; group.stride *= group.count) {
        group.count = group_size(ranks->count / group.stride);
        group.self = ranks->at / group.stride % group.count;
        send_shares(tl, ranks, &group, row);
        row = group_share(tl, &group, row, group.self);
        if (row.shape[1] == 0)
            break;
        reduce_shares(tl, ranks, &group, reduction, row);
    }
    return row;
}

/* ---- the kernel */

/* Stores results of the columns from `first` on into the shards of y that contain them. */
static void store_results(struct tl *tl, kb_tensor y, struct tl_shard results, uint64_t first)
{
    for (uint64_t i = 0; i < tl_shards(y); i++) {
        struct tl_shard to = tl_shard(tl, y, i);
        uint64_t begin = kb_max(to.first[1], first);
        uint64_t end = kb_min(to.first[1] + to.shape[1], first + results.shape[1]);
        if (begin < end)
            tl_store(tl, tl_part(tl, to, 1, begin - to.first[1], end - begin),
                     tl_part(tl, results, 1, begin - first, end - begin));
    }
}

/* Reduces the columns of x, the first of which is column `first` of the tensor. */
static void reduce_cols(struct tl *tl, const struct col_reduce_args *arg, const struct ranks *ranks, struct tl_shard x,
                        uint64_t first)
{
    struct tl_shard results = tl_alloc(tl, reduction_dtype(&arg->reduction, x.dtype), 1, x.shape[1]);
    reduce_own_rows(tl, arg, results, x);
    struct tl_shard own = reduce_scatter_results(tl, ranks, &arg->reduction, results);
    if (own.shape[1]) {
        struct tl_shard out = tl_alloc(tl, tl_shard(tl, arg->y, 0).dtype, 1, own.shape[1]);
        reduction_finish(tl, &arg->reduction, out, own, arg->rows);
        store_results(tl, arg->y, out, first + own.first[1]);
        tl_free(tl, out);
    }
    tl_free(tl, results);
}

/* The columns to reduce at a time: the results and what is received to be merged with them take a third of the TCM, and
 * a share has no more messages than there are slots between two PEs. */
static uint64_t columns_at_once(struct tl *tl, const struct ranks *ranks)
{
    uint64_t size = sizeof(float), room = tl_room_bytes(tl) / 3 / (2 * size);
    uint64_t messages = group_size(ranks->count) * tl_slots(tl) * (tl_slot_bytes(tl) / size);
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
         KB_WORD(dtype, "f32 f16 bf16 i32 i8", "dtype of x and y; with i8, y is i32"),
         KB_WORD(op, "sum mean max min", "reduction of a column"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct reduction reduction = reduction_of(kb_word(op));

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", out, kb_2d(1, cols), kb_cols(kb_main_memory(), pes));
    reduction_fill(x, dtype);
    kb_future launch = kb_launch(col_reduce, pes, &(struct col_reduce_args){
        x, y, rows, reduction, kb_int(buffers), kb_int(block_rows), kb_int(block_cols)});
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = reduction_dtype(&reduction, dtype), .math = n, .reads = {x}, .writes = {y} }, NULL);
    kb_expect_close(y, reduction_expected(x, kb_word(op), 0));
}
