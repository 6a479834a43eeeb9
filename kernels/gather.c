/* gather.c: embedding gather: row t of y is row ids[t] of a table whose rows are split over all PEs.
 *
 * Each PE has some tokens and their rows of y. It loads their ids, reads them, and loads the rows from the memories of the
 * PEs that have them, some rows with each command and several commands ahead of the stores; rows too long for all the
 * buffers are moved in pieces.
 *
 * The bounds: every row is read once, written once, and crosses the links. All rows of a command are requested at once,
 * one after the other by pe_dma, so their latencies overlap. */
#include "collective.h"

enum { BUFFERS = 4, COMMANDS = 8 };                     /* commands that load the rows of a PE, at least */
enum { ROWS = 128 };                                    /* the most that a command loads: enough to hide their latency */
enum { IDS = 1 << 12, KNOWN = 1 << 9 };                 /* the most that a TCM or the host has; that a kernel knows at a time */

struct gather_args {
    kb_tensor table, ids, y;                            /* vocab x dim; tokens; tokens x dim */
};

/* Copies a range of columns of the rows of some ids, which are in the TCM, one for each row of y, `most` rows at a time. */
static void copy_rows(struct tl *tl, const struct gather_args *arg, struct tl_shard ids, struct tl_shard y,
                      struct indices cols, uint64_t most)
{
    int32_t id[KNOWN];
    struct tl_shard buffer[BUFFERS];
    tl_handle load[BUFFERS], store[BUFFERS] = {NULL};
    uint64_t parts = kb_ceil_div(y.shape[0], most), known = KNOWN / most * most;
    struct tl_rows table = tl_rows_part(arg->table, cols.first, cols.count);
    y = tl_part(tl, y, 1, cols.first, cols.count);
    for (uint32_t i = 0; i < BUFFERS; i++)
        buffer[i] = tl_alloc(tl, y.dtype, most, cols.count);
    for (uint64_t i = 0; i < parts + BUFFERS / 2; i++) {
        uint64_t at = i % BUFFERS, done = (i + BUFFERS / 2) % BUFFERS, first = (i - BUFFERS / 2) * most;
        if (i < parts) {
            uint64_t token = i * most, left = y.shape[0] - token, count = kb_min(most, left);
            if (store[at])
                tl_wait(tl, store[at]);
            if (token % known == 0)
                tl_data_into(tl, id, tl_part(tl, ids, 0, token, kb_min(known, left)));
            load[at] = tl_load_rows_async(tl, tl_part(tl, buffer[at], 0, 0, count), table, id + token % known);
        }
        if (i >= BUFFERS / 2) {
            uint64_t count = kb_min(most, y.shape[0] - first);
            tl_wait(tl, load[done]);
            store[done] = tl_store_async(tl, tl_part(tl, y, 0, first, count), tl_part(tl, buffer[done], 0, 0, count));
        }
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        if (store[i])
            tl_wait(tl, store[i]);
        tl_free(tl, buffer[i]);
    }
}

KB_KERNEL(gather, struct gather_args)
{
    struct tl_shard ids = tl_my_shard(tl, arg->ids), y = tl_my_shard(tl, arg->y);
    uint64_t size = kb_dtype_bytes(y.dtype), dim = y.shape[1], room = tl_room_bytes(tl) / 2;
    uint64_t some = kb_min(kb_min(room, 2 * room - BUFFERS * 64) / kb_dtype_bytes(ids.dtype), IDS);
    uint64_t a_buffer = kb_max(room / BUFFERS / size, 65) - 64;
    uint64_t wide = kb_min(dim, a_buffer), most = kb_min(kb_ceil_div(y.shape[0], COMMANDS), a_buffer / wide);
    for (uint64_t token = 0; token < y.shape[0]; token += some) {
        uint64_t count = kb_min(some, y.shape[0] - token);
        struct tl_shard loaded = tl_load(tl, tl_part(tl, ids, 0, token, count));
        for (uint64_t col = 0; col < dim; col += wide)
            copy_rows(tl, arg, loaded, tl_part(tl, y, 0, token, count), (struct indices){col, kb_min(wide, dim - col)}, kb_min(most, ROWS));
        tl_free(tl, loaded);
    }
}

/* ---- the bench */

/* The ids of all tokens. The host has those of `count` tokens from `first` on. */
struct ids {
    kb_tensor tensor;
    uint64_t tokens, first, count;
    double *id;
};

static uint64_t id_of(struct ids *ids, uint64_t token)
{
    if (token - ids->first >= ids->count) {
        ids->first = token;
        ids->count = kb_min(IDS, ids->tokens - token);
        kb_peek_many(ids->tensor, token, ids->count, ids->id);
    }
    return (uint64_t)ids->id[token - ids->first];
}

/* The rows that cross links. A response takes the route of its request in the other direction, so it is added from the
 * PE that reads to the PE that owns the row. */
static kb_traffic row_traffic(struct kb_pes pes, struct ids *ids, uint64_t vocab, uint64_t row_bytes)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint64_t pe = 0; pe < pes.count; pe++) {
        struct indices own = block_range(ids->tokens, pes.count, pe);
        for (uint64_t t = own.first; t < own.first + own.count; t++) {
            uint64_t owner = block_owner(vocab, pes.count, id_of(ids, t));
            if (owner != pe)
                kb_traffic_add(traffic, pes.pe[pe], pes.pe[owner], row_bytes);
        }
    }
    return traffic;
}

static kb_ref expected(kb_tensor table, struct ids *ids, uint64_t dim)
{
    double *rows = kb_has_data() ? kb_array(double, ids->tokens * dim) : NULL;
    for (uint64_t t = 0; rows && t < ids->tokens; t++)
        kb_peek_many(table, id_of(ids, t) * dim, dim, rows + t * dim);
    return kb_ref_exact(kb_ref_given(rows, kb_2d(ids->tokens, dim)));
}

/* How many different rows of the table the ids name. It counts some millions of rows at a time, with a bit for each. */
static uint64_t rows_named(struct ids *ids, uint64_t vocab)
{
    uint64_t bytes = kb_min(kb_ceil_div(vocab, 8), 1 << 20), rows = 0;
    uint8_t *named = kb_array(uint8_t, bytes);
    for (uint64_t first = 0; first < vocab; first += 8 * bytes) {
        for (uint64_t i = 0; i < bytes; i++)
            named[i] = 0;
        for (uint64_t t = 0; t < ids->tokens; t++) {
            uint64_t row = id_of(ids, t) - first;
            if (row >= 8 * bytes || named[row / 8] >> row % 8 & 1)
                continue;
            named[row / 8] |= 1 << row % 8;
            rows++;
        }
    }
    return rows;
}

/* The SIPs over which the gather takes the shortest time: those that hold the table and y at least. With i SIPs, a
 * SIP has one in i of the rows that it needs; the others come from other SIPs, each row in a message of its own. */
static uint32_t gather_sips(uint64_t tokens, uint64_t vocab, uint64_t row_bytes)
{
    struct kb_pes one = sips_first("*", 1);
    uint64_t bytes = tokens * row_bytes, best_ps = UINT64_MAX;
    uint32_t least = sips_least((tokens + vocab) * row_bytes), best = least;
    if (least == sips_count())
        return least;
    kb_traffic within = kb_traffic_new();
    for (uint32_t from = 0; from < one.count; from++)
        for (uint32_t to = 0; to < one.count; to++)
            if (from != to)
                kb_traffic_add(within, one.pe[from], one.pe[to], kb_ceil_div(bytes, (uint64_t)one.count * one.count));
    for (uint32_t i = least; i <= sips_count(); i++) {
        uint64_t far = bytes / i - bytes / i / i, rows = tokens - tokens / i;
        uint64_t of_pe = bytes / i / one.count, ps = kb_memory_ps(kb_main_memory(), of_pe, of_pe);
        ps = kb_max(ps, kb_traffic_ps(within) / i / i);
        if (i > 1)
            ps = kb_max(ps, kb_max(sips_exchange_ps(far, 1), switch_ps(i, rows)));
        if (ps < best_ps)
            best = i, best_ps = ps;
    }
    return best;
}

KB_BENCH(gather, "rows of a table that is split over all PEs, by ids in memory",
         KB_INT(vocab, 4096, 1, INT32_MAX, "rows of the table"),
         KB_INT(dim, 8192, 1, 1 << 24, "columns of the table"),
         KB_INT(tokens, 4096, 1, 1 << 24, "ids, rows of y"),
         KB_INT(used, 0, 0, INT32_MAX, "draw ids from this many first rows; 0: from all"),
         KB_WORD(dtype, "f16 bf16 f32 i32 i16 i8 u8", "dtype of the table"))
{
    uint64_t vocab = kb_int(vocab), dim = kb_int(dim), tokens = kb_int(tokens);
    uint64_t used = param_at_most("used", kb_int(used), vocab, "all rows of the table");
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t row_bytes = dim * kb_dtype_bytes(dtype);
    struct kb_pes pes = sips_first("*", gather_sips(tokens, vocab, row_bytes));
    needs_tcm((BUFFERS + 1) * 64, "four buffers and ids", "take a machine that has them");

    kb_tensor table = kb_tensor_new("table", dtype, kb_2d(vocab, dim), kb_rows(kb_main_memory(), pes));
    kb_tensor ids = kb_tensor_new("ids", KB_i32, kb_1d(tokens), kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", dtype, kb_2d(tokens, dim), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(table, 0, 128);
    kb_fill_uniform(ids, 0, (double)(used ? used : vocab));
    struct ids known = {.tensor = ids, .tokens = tokens, .id = kb_array(double, IDS)};
    uint64_t read_bytes = rows_named(&known, vocab) * row_bytes;
    kb_traffic traffic = row_traffic(pes, &known, vocab, row_bytes);
    kb_ref want = expected(table, &known, dim);
    kb_future launch = kb_launch(gather, pes, &(struct gather_args){table, ids, y});
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){ .reads = {ids}, .read_bytes = read_bytes, .writes = {y} },
                &(struct kb_work){ .hbm_read = tokens * (row_bytes + 4), .hbm_written = tokens * row_bytes,
                                   .traffic = traffic });
    kb_expect_close(y, want);
}
