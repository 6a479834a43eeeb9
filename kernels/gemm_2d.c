/* gemm_2d.c: C = A B with C in blocks over a grid of PEs: no tensor is replicated.
 *
 * A row of the grid is a cube. The rows of A are split over all PEs in rank order, so that the rows of a block of C lie
 * in the block's own cube; the columns of B are split over all PEs as well, and those of a block lie in other cubes. Each
 * PE sends its columns of B to all PEs that need them at once, as messages, so that they take each link once; with small
 * slots and other SIPs far away, where messages wait for slots, each PE loads the columns that it needs. They come in
 * panels: while one is in use, the next one comes. For each panel a PE reads the rows of A from one neighbour after the
 * other, beginning with its own. Where the TCM has no room for panels as wide as the array, both A and B are read from
 * where they lie.
 *
 * The links between and in the cubes bound the kernel. Of several SIPs each needs all of B, so the grid has the PEs of as
 * many SIPs as pay, by an estimate of the time. */
#include "sips.h"
#include "tiles.h"
#include "transfers.h"
#include <kb/host.h>
#include <kb/measure.h>

enum { PANELS_MOST = 2 };                               /* one is in use, one comes */

struct gemm_2d_args {
    kb_tensor a, b, c;                                  /* m x k; n x k: columns of B; m x n */
    struct gemm_tile tile;
    uint32_t rows, cols;                                /* of the grid of PEs */
    bool loads;                                         /* each PE loads its panels; else they come as messages */
    uint32_t cuts;                                      /* parts of a shard of B, */
    uint32_t kept;                                      /* and how many are in a panel, 1 if shards are cut; 0: B streams */
    uint32_t panels;                                    /* in the TCM at a time */
    uint64_t wide;                                      /* the most columns of a part */
};

/* Multiplies all rows of this PE's block of C with some columns of B, which may lie in the TCM, and which are those from
 * `first` on of C. Adds the composites to `uses`. */
static void multiply_columns(struct tl *tl, const struct gemm_2d_args *arg, struct tl_shard b, bool pin_b,
                             uint64_t first, struct transfers *uses)
{
    uint32_t row = tl_pe(tl) / arg->cols, col = tl_pe(tl) % arg->cols;
    struct tl_shard c = tl_my_shard(tl, arg->c);
    for (uint32_t i = 0; i < arg->cols && b.shape[0]; i++) {            /* there may be more PEs than columns, or rows */
        struct tl_shard a = tl_shard(tl, arg->a, row * arg->cols + (col + i) % arg->cols);
        if (a.shape[0] == 0)
            continue;
        struct tl_shard to = tl_part(tl, tl_part(tl, c, 0, a.first[0] - c.first[0], a.shape[0]), 1,
                                     first - c.first[1], b.shape[0]);
        transfers_add(tl, uses, tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = b.shape[0],
            .tile = {arg->tile.m, arg->tile.k, arg->tile.n}, .a = tl_in(a), .b = tl_in(tl_transposed(tl, b, 0, 1)),
            .pin_b = pin_b, .c = tl_out(to) }));
    }
}

/* Some of the columns of B that this PE's block of C needs: parts [begin, begin + count) of them. */
struct panel {
    struct tl_shard buffer, columns;                    /* columns: the part of the buffer that they take up */
    uint32_t begin, count;
    uint64_t first;                                     /* the first column, in C */
    struct transfers moves, uses;
};

/* Part i of the columns of B from shard `source` on; a shape of 0 if it has none. */
static struct tl_shard part_of_b(struct tl *tl, const struct gemm_2d_args *arg, uint32_t source, uint32_t i)
{
    struct tl_shard shard = tl_shard(tl, arg->b, source + i / arg->cuts);
    uint64_t all = shard.shape[0], first = all * (i % arg->cuts) / arg->cuts, end = all * (i % arg->cuts + 1) / arg->cuts;
    shard.shape[0] = first < end ? all : 0;
    shard.first[0] += first < end ? 0 : first;
    return first < end ? tl_part(tl, shard, 0, first, end - first) : shard;
}

/* The place of a part in the panel's buffer. */
static struct tl_shard panel_place(struct tl *tl, const struct panel *panel, struct tl_shard part)
{
    if (part.shape[0])
        return tl_part(tl, panel->columns, 0, part.first[0] - panel->first, part.shape[0]);
    return part;
}

/* Message number i of the buffer of a part; a shape of 0 if it has fewer. */
static struct tl_shard message_of(struct tl *tl, struct tl_shard buffer, uint64_t i)
{
    uint64_t count = buffer.shape[0] * buffer.shape[1], most = tl_slot_bytes(tl) / kb_dtype_bytes(buffer.dtype);
    struct tl_shard none = {.shape = {0}};
    if (i * most >= count)
        return none;
    return tl_part(tl, tl_reshape(tl, buffer, count), 0, i * most, kb_min(most, count - i * most));
}

/* Loads this PE's part of the panel, into the panel itself if it needs it, and sends its messages to the PEs of the grid's
 * column that needs it; receives those of the other parts. Message by message, the parts come side by side. */
static void panel_move(struct tl *tl, const struct gemm_2d_args *arg, struct panel *panel, struct tl_shard staging)
{
    uint32_t me = tl_pe(tl), to_col = me / arg->rows, mine = me % arg->rows, source = me % arg->cols * arg->rows;
    uint32_t peer[arg->rows], peers = 0, own = kb_max(panel->begin, mine * arg->cuts);
    struct tl_shard from = part_of_b(tl, arg, me - mine, own), none = {.shape = {0}};
    bool gives = own / arg->cuts == mine && own < panel->begin + panel->count && from.shape[0];
    for (uint32_t i = 0; i < arg->rows; i++)
        if (i * arg->cols + to_col != me)
            peer[peers++] = i * arg->cols + to_col;
    if (gives) {
        struct tl_shard to = peers < arg->rows ? panel_place(tl, panel, from) : tl_part(tl, staging, 0, 0, from.shape[0]);
        tl_load_into(tl, to, from);
        from = to;
    }
    for (uint64_t i = 0, more = 1; more; i++) {
        struct tl_shard message = gives && peers ? message_of(tl, from, i) : none;
        more = message.shape[0];
        if (message.shape[0])
            transfers_add(tl, &panel->moves, tl_multicast_async(tl, peer, peers, message));
        for (uint32_t j = panel->begin; j < panel->begin + panel->count; j++) {
            uint32_t pe = source + j / arg->cuts;
            message = pe == me ? none : message_of(tl, panel_place(tl, panel, part_of_b(tl, arg, source, j)), i);
            more |= message.shape[0];
            if (message.shape[0])
                transfers_add(tl, &panel->moves, tl_recv_async(tl, pe, message));
        }
    }
}

/* Loads the parts of a panel, each PE of the grid's column from another one first. */
static void panel_load(struct tl *tl, const struct gemm_2d_args *arg, struct panel *panel)
{
    uint32_t source = tl_pe(tl) % arg->cols * arg->rows, row = tl_pe(tl) / arg->cols;
    for (uint32_t i = 0; i < panel->count; i++) {
        struct tl_shard part = part_of_b(tl, arg, source, panel->begin + (row + i) % panel->count);
        if (part.shape[0])
            transfers_add(tl, &panel->moves, tl_load_async(tl, panel_place(tl, panel, part), part));
    }
}

/* Begins with the panel of the parts from `begin` on, once the last uses of its buffer have ended. */
static void panel_begin(struct tl *tl, const struct gemm_2d_args *arg, struct panel *panel, uint32_t begin,
                        struct tl_shard staging)
{
    uint32_t source = tl_pe(tl) % arg->cols * arg->rows, count = (uint32_t)kb_min(arg->kept, arg->rows * arg->cuts - begin);
    struct tl_shard last = part_of_b(tl, arg, source, begin + count - 1);
    transfers_wait(tl, &panel->uses);
    panel->begin = begin;
    panel->count = count;
    panel->first = part_of_b(tl, arg, source, begin).first[0];
    panel->columns = panel->buffer;
    panel->columns.shape[0] = last.first[0] + last.shape[0] - panel->first;
    if (arg->loads)
        panel_load(tl, arg, panel);
    else
        panel_move(tl, arg, panel, staging);
}

KB_KERNEL(gemm_2d, struct gemm_2d_args)
{
    uint32_t row = tl_pe(tl) / arg->cols, source = tl_pe(tl) % arg->cols * arg->rows, parts = arg->rows * arg->cuts;
    struct transfers uses = {.begun = 0};
    for (uint32_t i = 0; arg->kept == 0 && i < arg->rows; i++) {
        struct tl_shard b = tl_shard(tl, arg->b, source + (row + i) % arg->rows);
        multiply_columns(tl, arg, b, false, b.first[0], &uses);
    }
    if (arg->kept == 0)
        return;
    struct panel panel[PANELS_MOST] = {0};
    struct tl_shard staging = {0}, b = tl_my_shard(tl, arg->b);
    for (uint32_t i = 0; i < arg->panels && i * arg->kept < parts; i++)
        panel[i].buffer = tl_alloc(tl, b.dtype, arg->kept * arg->wide, b.shape[1]);
    if (arg->rows > 1 && !arg->loads)
        staging = tl_alloc(tl, b.dtype, arg->wide, b.shape[1]);
    panel_begin(tl, arg, &panel[0], 0, staging);
    for (uint32_t i = 0; i * arg->kept < parts; i++) {
        struct panel *now = &panel[i % arg->panels];
        transfers_wait(tl, &now->moves);
        multiply_columns(tl, arg, now->columns, true, now->first, &now->uses);
        if ((i + 1) * arg->kept < parts)
            panel_begin(tl, arg, &panel[(i + 1) % arg->panels], (i + 1) * arg->kept, staging);
    }
}

/* What the PEs must send and read: the columns of B once, or to each PE that needs them; the rows of A `times` times. */
static kb_traffic least_traffic(const struct gemm_2d_args *arg, struct kb_pes pes, uint64_t a_bytes, uint64_t b_bytes,
                                uint64_t times)
{
    kb_traffic traffic = kb_traffic_new();
    uint32_t *column = kb_array(uint32_t, arg->rows);
    for (uint32_t from = 0; from < pes.count; from++) {
        uint32_t first = from / arg->cols * arg->cols, others = 0;
        for (uint32_t i = 0; i < arg->cols; i++)
            if (first + i != from)
                kb_traffic_add(traffic, pes.pe[from], pes.pe[first + i], a_bytes * times);
        for (uint32_t i = 0; i < arg->rows; i++)
            if (i * arg->cols + from / arg->rows != from)
                column[others++] = pes.pe[i * arg->cols + from / arg->rows];
        bool at_once = arg->kept && !arg->loads;
        for (uint32_t i = 0; !at_once && i < others; i++)
            kb_traffic_add(traffic, pes.pe[from], column[i], b_bytes);
        if (at_once)
            kb_traffic_multicast(traffic, pes.pe[from], column, others, b_bytes);
    }
    return traffic;
}

/* Chooses what stays in the TCMs: the panels and a part of this PE's columns. Two panels have all columns in as few pairs as
 * fit; for that, shards are cut, as long as parts are as wide as the array. Otherwise there is one panel. A PE alone has all
 * of B or none. */
static void plan_panels(struct gemm_2d_args *arg, uint64_t shard_cols, uint64_t column_bytes)
{
    uint64_t room = tcm_allocatable_bytes(), kept = 0;
    bool alone = arg->rows == 1;
    for (arg->cuts = 1; kept == 0 && arg->cuts <= (alone ? 1 : shard_cols); arg->cuts++) {
        arg->wide = kb_ceil_div(shard_cols, arg->cuts);
        uint64_t fit = room / (arg->wide * column_bytes);
        bool widest = kb_ceil_div(shard_cols, arg->cuts + 1) < kb_attrs.pe_gemm_cols;
        arg->panels = fit > PANELS_MOST && !alone ? PANELS_MOST : 1;
        kept = arg->panels > 1 ? (fit - 1) / arg->panels : fit > !alone && widest;
    }
    arg->cuts = kept ? arg->cuts - 1 : 1;
    if (kept)
        arg->kept = arg->cuts > 1 ? 1 : (uint32_t)kb_ceil_div(arg->rows, kb_ceil_div(arg->rows, kept));
}

/* Panels that a PE takes one after the other. */
static uint64_t panels_of(const struct gemm_2d_args *arg)
{
    return arg->kept ? kb_ceil_div(arg->rows * arg->cuts, arg->kept) : 1;
}

/* Chooses how many SIPs multiply and how B comes, for the shortest time. They share the multiply-adds, and each gets the
 * others' columns of B: once, with a wait for each full ring of slots of a part, or once for each of its cubes. */
static uint32_t plan_sips(struct gemm_2d_args *arg, const struct gemm_problem *gemm, uint64_t bytes)
{
    uint32_t in_sip = kb_machine_pes("sip0.*").count, cubes = in_sip / arg->cols, best_sips = 1;
    uint64_t best_ps = UINT64_MAX, column = gemm->k * kb_dtype_bytes(gemm->in);
    struct gemm_2d_args best = *arg;
    for (uint32_t i = sips_least(bytes); i <= sips_count(); i++)
        for (uint32_t loads = 0; loads < (i > 1 ? 2 : 1); loads++) {
            struct gemm_2d_args trial = {.rows = i * cubes, .cols = arg->cols, .loads = loads};
            plan_panels(&trial, kb_ceil_div(gemm->n, i * in_sip), column);
            uint64_t others = kb_scaled(gemm->n * column, i - 1, i) * (loads || trial.kept == 0 ? cubes : 1);
            uint64_t ring = kb_attrs.pe_ipcq_slots * kb_attrs.pe_ipcq_slot_bytes;
            uint64_t waits = panels_of(&trial) * (loads ? 1 : kb_ceil_div(trial.wide * column, ring));
            uint64_t ps = kb_gemm_ps(gemm->in, kb_ceil_div(gemm->m * gemm->k * gemm->n, (uint64_t)i * in_sip));
            ps = i > 1 ? kb_later(ps, sips_exchange_ps(others, 2 * waits)) : ps;
            if (ps < best_ps)
                best = trial, best_sips = i, best_ps = ps;
        }
    *arg = best;
    return best_sips;
}

KB_BENCH(gemm_2d, "C = A B, blocks of C over a grid of PEs, A and B split over all PEs",
         KB_INT(m, 16384, 1, 1 << 24, "rows of A and C"), KB_INT(k, 1024, 1, 1 << 24, "columns of A, rows of B"),
         KB_INT(n, 8192, 1, 1 << 24, "columns of B and C"),
         KB_WORD(dtype, "f16 bf16 f32 i8 f8e4m3 f8e5m2", "dtype of A, B and C; with i8, C is i32, with an f8 bf16"), TILE_PARAMS)
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = product_dtype(dtype);
    double most = dtype == KB_i8 ? 128 : 1;
    uint64_t column = k * kb_dtype_bytes(dtype), written = m * n * kb_dtype_bytes(out);
    struct gemm_2d_args arg = {.cols = kb_pes("sip0.cube0.*").count};
    struct gemm_problem gemm = {m, k, n, dtype, out, false, false, 0};
    struct kb_pes pes = sips_first("*", plan_sips(&arg, &gemm, (m + n) * column + written));
    arg.a = kb_tensor_new("a", dtype, kb_2d(m, k), kb_rows(kb_main_memory(), pes));
    arg.b = kb_tensor_new("b", dtype, kb_2d(n, k), kb_rows(kb_main_memory(), pes));
    arg.c = kb_tensor_new("c", out, kb_2d(m, n), kb_blocks(kb_main_memory(), pes, arg.rows, arg.cols));
    kb_fill_uniform(arg.a, -most, most);
    kb_fill_uniform(arg.b, -most, most);

    uint64_t tall = kb_ceil_div(m, pes.count), wide = kb_ceil_div(n, pes.count), panels = panels_of(&arg);
    bool at_once = arg.kept && !arg.loads;              /* B is read once */
    kb_traffic traffic = least_traffic(&arg, pes, tall * column, wide * column, panels);
    uint64_t read = tall * arg.cols * panels + wide * (at_once ? 1 : arg.rows);
    struct gemm_problem part = {tall, k, arg.wide * kb_max(arg.kept, 1), dtype, out, false, arg.kept > 0,
                                kb_traffic_ps(traffic) / kb_max(kb_memory_ps(kb_main_memory(), read * column, 0), 1)};
    struct gemm_problem all = part;                     /* of a panel, tile after tile */
    all.m *= arg.kept ? arg.cols : 1;
    needs_message(at_once && arg.rows > 1 ? kb_dtype_bytes(dtype) : 0);
    arg.tile = tile_choose(&all);
    arg.tile.m = kb_min(arg.tile.m, tall);
    arg.tile = tile_params(&part, arg.tile, tall);
    kb_future launch = kb_launch(gemm_2d, pes, &arg);
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = m * k * n, .reads = {arg.a, arg.b}, .writes = {arg.c} }, &(struct kb_work){
        .hbm_read = (m * arg.cols * panels + n * (at_once ? 1 : arg.rows)) * column, .hbm_written = written,
        .traffic = traffic });
    kb_expect_close(arg.c, kb_ref_gemm(arg.a, kb_ref_transpose(arg.b)));
}
