/* col_reduce.c: the sum, mean, maximum or minimum of each column, over rows that are split over all PEs.
 *
 * Each PE reduces its own rows, which stream through its TCM, to one row of results. That takes nearly all of the time,
 * and the read engine of the DMA bounds it. A reduce-scatter by messages then merges the PEs' rows of results, and each
 * PE stores some columns of the merged row.
 *
 * With several SIPs, each of them merges its rows like that. Its first PE, the lead, gets the columns of the merged row from the
 * others through its memory, so that one PE of each SIP sends long messages over the switch, and the lead of the first SIP merges
 * those. The bench takes as many SIPs as that pays for. */
#include "levels.h"
#include "reduction.h"
#include "transfers.h"

struct col_reduce_args {
    kb_tensor x, y;
    uint64_t rows;                                      /* of x */
    struct reduction reduction;
    uint32_t buffers;
    uint64_t block_rows, block_cols, room;              /* room: bytes of the TCM beside those of a stream */
    struct levels levels;                               /* of several SIPs, even; else one level */
    kb_tensor merged;                                   /* the merged row of each SIP, with its lead; NULL: one SIP */
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

/* The PEs that have rows, in the order of their rows; with several SIPs, those of this one, all of which have rows. */
struct ranks {
    uint64_t count, at;                                 /* at: this PE's rank */
    uint64_t pes, rows;                                 /* of the launch, of x */
    uint32_t lead;                                      /* the first PE */
};

static struct ranks ranks_of(struct tl *tl, struct tl_shard x, const struct col_reduce_args *arg)
{
    uint64_t pes = tl_num_pes(tl), rows = arg->rows, in_sip = pes / arg->levels.sips, at = tl_pe(tl) % in_sip;
    return rows < pes ? (struct ranks){rows, x.first[0], pes, rows, 0}
                      : (struct ranks){in_sip, at, pes, rows, (uint32_t)(tl_pe(tl) - at)};
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
    return (uint32_t)(ranks->rows < ranks->pes ? block_owner(ranks->rows, ranks->pes, rank) : ranks->lead + rank);
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

/* ---- several SIPs */

/* Each PE of a SIP merges a share of its row; the SIP's lead collects the shares in `row`. Returns whether this PE is the lead. */
static bool gather_shares(struct tl *tl, const struct col_reduce_args *arg, const struct ranks *ranks, struct tl_shard row,
                          struct tl_shard own, uint64_t first)
{
    struct notices notices = notices_open(tl);
    struct tl_shard all = tl_shard(tl, arg->merged, ranks->lead / ranks->count);
    struct peers cube = level_peers(tl, &arg->levels, LEVEL_CUBE), cubes = level_peers(tl, &arg->levels, LEVEL_SIP);
    if (own.shape[1])
        tl_store(tl, tl_part(tl, all, 1, first + own.first[1], own.shape[1]), own);
    peers_gather(tl, &notices, &cube);
    if (cube.at == 0)
        peers_gather(tl, &notices, &cubes);
    notices_close(tl, &notices);
    if (tl_pe(tl) != ranks->lead)
        return false;
    tl_load_into(tl, row, tl_part(tl, all, 1, first, row.shape[1]));
    return true;
}

/* The lead of each SIP sends its merged row to that of the first one, which adds them to its own. Returns false on the others. */
static bool merge_leads(struct tl *tl, const struct col_reduce_args *arg, const struct ranks *ranks, struct tl_shard row)
{
    uint64_t n = row.shape[1], longest = tl_slot_bytes(tl) / kb_dtype_bytes(row.dtype);
    struct transfers sent = {0};
    for (uint64_t col = 0; ranks->lead && col < n; col += longest)
        transfers_add(tl, &sent, tl_send_async(tl, 0, tl_part(tl, row, 1, col, kb_min(longest, n - col))));
    transfers_wait(tl, &sent);
    if (ranks->lead)
        return false;
    struct tl_shard got[2] = {tl_alloc(tl, row.dtype, 1, n), tl_alloc(tl, row.dtype, 1, n)};
    tl_handle merged[2] = {NULL};
    for (uint32_t i = 1; i < arg->levels.sips; i++) {
        if (merged[i % 2])
            tl_wait(tl, merged[i % 2]);
        for (uint64_t col = 0; col < n; col += longest)
            tl_recv(tl, i * (uint32_t)ranks->count, tl_part(tl, got[i % 2], 1, col, kb_min(longest, n - col)));
        if (merged[(i + 1) % 2])
            tl_after(tl, merged[(i + 1) % 2]);
        merged[i % 2] = tl_math_async(tl, arg->reduction.merge, row, row, got[i % 2]);
    }
    tl_wait(tl, merged[(arg->levels.sips - 1) % 2]);
    tl_free(tl, got[1]);
    tl_free(tl, got[0]);
    return true;
}

/* Reduces the columns of x, the first of which is column `first` of the tensor. */
static void reduce_cols(struct tl *tl, const struct col_reduce_args *arg, const struct ranks *ranks, struct tl_shard x,
                        uint64_t first)
{
    struct tl_shard results = tl_alloc(tl, reduction_dtype(&arg->reduction, x.dtype), 1, x.shape[1]);
    reduce_own_rows(tl, arg, results, x);
    struct tl_shard own = reduce_scatter_results(tl, ranks, &arg->reduction, results);
    bool stores = own.shape[1] > 0;
    if (arg->levels.sips > 1) {
        stores = gather_shares(tl, arg, ranks, results, own, first) && merge_leads(tl, arg, ranks, results);
        own = results;
    }
    if (stores) {
        struct tl_shard out = tl_alloc(tl, tl_shard(tl, arg->y, 0).dtype, 1, own.shape[1]);
        reduction_finish(tl, &arg->reduction, out, own, arg->rows);
        store_results(tl, arg->y, out, first + own.first[1]);
        tl_free(tl, out);
    }
    tl_free(tl, results);
}

/* The columns to reduce at a time: the results and what is received to be merged with them take a third of the TCM, of a lead
 * half, and a share has no more messages than there are slots between two PEs. */
static uint64_t columns_at_once(struct tl *tl, const struct col_reduce_args *arg, const struct ranks *ranks)
{
    uint64_t size = sizeof(float), room = kb_min(tl_room_bytes(tl) / 3, arg->room) / (2 * size);
    uint64_t messages = group_size(ranks->count) * tl_slots(tl) * (tl_slot_bytes(tl) / size);
    return ranks->count > 1 && messages < room ? messages : room;
}

KB_KERNEL(col_reduce, struct col_reduce_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct ranks ranks = ranks_of(tl, x, arg);
    uint64_t most = columns_at_once(tl, arg, &ranks);
    for (uint64_t col = 0; col < x.shape[1]; col += most)
        reduce_cols(tl, arg, &ranks, tl_part(tl, x, 1, col, kb_clamp(x.shape[1] - col, 1, most)), col);
}

/* The SIPs for which the reduction of `bytes` takes the shortest time: they share the rows, but their leads send the merged row
 * of `row_bytes` one after the other, behind a few messages within their SIPs. */
static uint32_t sips_that_pay(struct kb_pes pes, struct levels l, uint64_t rows, uint64_t bytes, uint64_t row_bytes)
{
    enum { WAITS = 4 };                                 /* for a store, notices of two levels and a load */
    uint32_t in_sip = l.pes * l.cubes, best = 1;
    uint64_t best_ps = kb_memory_ps(kb_main_memory(), bytes / in_sip, 0), row_ps = l.sips > 1 ? sips_exchange_ps(row_bytes, 0) : 0;
    for (uint32_t i = 2; i <= l.sips && rows >= (uint64_t)i * in_sip; i++) {
        uint64_t ps = kb_memory_ps(kb_main_memory(), bytes / in_sip / i, 0);
        ps += (i - 1) * (kb_max(row_ps, switch_ps(i, 1)) + command_ps());
        ps += WAITS * kb_latency_ps(pes.pe[0], pes.pe[in_sip - 1]) + kb_latency_ps(pes.pe[0], pes.pe[in_sip]);
        if (ps < best_ps || (i <= sips_least(bytes) && best < i))
            best = i, best_ps = ps;
    }
    return best;
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
    uint64_t result = 2 * sizeof(float), left = stream_needs(0, kb_dtype_bytes(dtype), 0, 4, 3 * 64 + result, 0);
    reduction_needs(&reduction, dtype);
    needs_message(pes.count > 1 ? sizeof(float) : 0);      /* results are merged by messages */
    uint64_t row_bytes = cols * kb_dtype_bytes(reduction_dtype(&reduction, dtype));
    struct levels levels = levels_of(pes);
    uint32_t in_sip = levels.pes * levels.cubes, sips = levels.sips;
    if (levels.sips > 1) {
        levels.sips = sips_that_pay(pes, levels, rows, n * kb_dtype_bytes(dtype), row_bytes);
        pes.count = levels.sips * in_sip;
        if (levels.sips < sips)
            kb_note("pes=%s: the PEs of %u of %u SIPs are used, which takes less time", kb_text(pes), levels.sips, sips);
    }
    bool several = levels.sips > 1;

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", out, kb_2d(1, cols), several ? kb_on(kb_main_memory(), ((struct kb_pes){pes.pe, 1}))
                                                                 : kb_cols(kb_main_memory(), pes));
    kb_tensor merged = NULL;
    if (several) {                                      /* y lies with the lead that merges */
        uint32_t *lead = kb_array(uint32_t, levels.sips);
        for (uint32_t i = 0; i < levels.sips; i++)
            lead[i] = pes.pe[i * in_sip];
        merged = kb_tensor_new("merged", reduction_dtype(&reduction, dtype), kb_2d(levels.sips, cols),
                               kb_rows(kb_main_memory(), ((struct kb_pes){lead, levels.sips})));
    }
    reduction_fill(x, dtype);
    kb_future launch = kb_launch(col_reduce, pes, &(struct col_reduce_args){
        x, y, rows, reduction, kb_int(buffers), kb_int(block_rows), kb_int(block_cols), left + result, levels, merged});
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = reduction_dtype(&reduction, dtype), .math = n, .reads = {x}, .writes = {y} }, NULL);
    kb_expect_close(y, reduction_expected(x, kb_word(op), 0));
}
