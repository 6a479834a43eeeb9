/* transpose.c: y = x transposed, with the rows of x and of y split over the PEs of some SIPs: every PE has a block for every
 * other PE. Most of what several SIPs have crosses the links between them, and the switch handles each block by itself: so
 * x and y lie in as many SIPs as pay by an estimate of the time, most often in one.
 *
 * pe_math and pe_gemm do nothing: DMA and messages move the elements. A load scatters rows of x into the columns of a
 * buffer in the TCM, which costs no more than any other load. The buffer then holds blocks in the order of y. Each
 * block is sent to its PE in messages and received at its place in a panel of y, which is stored.
 *
 *     x: own rows, columns of a group -- load, scattered --> give: columns of the group x own rows -- send by blocks
 *     y: own columns, rows of a group <-- store -- take: own columns x rows of the group <-- receive by blocks
 *
 * A group is the PEs whose blocks share a panel: neighbours in rank. Whole blocks lie side by side in memory, so the runs
 * of bytes there are as long as the group is large; where blocks are cut, each PE's part is loaded or stored by itself. In each
 * step a PE gives blocks to one group, takes blocks from one group, loads what it gives next, and stores what it took before.
 *
 * The bounds: every byte is read once, written once, and crosses the links to its PE. */
#include "collective.h"
#include "sips.h"
#include "transfers.h"
#include <kb/attrs.h>

enum {
    BUFFERS = 4,                                        /* for blocks to give, and for blocks to take */
    STORE_LAG = 2,                                      /* steps until what was taken is stored */
    LEAST_STEPS = 4,                                    /* so that loads, exchanges and stores overlap */
    BLOCKS_MOST = 48,                                   /* of a panel: more take no less time */
    CUT_MOST = 16,                                      /* the same where each is loaded or stored by itself */
    RUNS = 256                                          /* that a load or a store asks for, which then wait at the memory */
};

/* An axis of x, split over all PEs: the longest part of a PE's block that a step moves, and the parts of a block. */
struct split {
    uint64_t n, most, parts;
};

struct transpose_args {
    kb_tensor x, y;                                     /* m x n, n x m */
    struct split rows, cols;                            /* of x */
    uint64_t group, groups, steps;                      /* PEs of a group; groups; all steps */
};

/* What a PE gives and takes in a step. */
struct exchange {
    struct indices to, from;                            /* the PEs that it gives to and takes from */
    uint64_t row_part, col_part;                        /* the part of their blocks */
};

struct panel {
    struct tl_shard buffer;
    struct transfers transfers;                         /* that fill it or read it */
};

static struct exchange exchange_of_step(const struct tl *tl, const struct transpose_args *arg, uint64_t s)
{
    uint64_t place = tl_pe(tl) / arg->group, part = s / arg->groups;
    uint64_t away = (s + arg->groups / 2) % arg->groups;                /* the farthest groups first */
    uint64_t to = (place + away) % arg->groups, from = (place + arg->groups - away) % arg->groups;
    struct indices all = {0, tl_num_pes(tl)};
    return (struct exchange){range_window(all, to * arg->group, arg->group), range_window(all, from * arg->group, arg->group),
                             part / arg->cols.parts, part % arg->cols.parts};
}

/* A part of the blocks of some PEs, which is consecutive: of one PE, or of several whose blocks are not cut. */
static struct indices part_of(const struct tl *tl, const struct split *split, struct indices pes, uint64_t part)
{
    uint64_t p = tl_num_pes(tl), base = part * split->most;
    struct indices first = range_window(block_range(split->n, p, pes.first), base, split->most);
    struct indices last = range_window(block_range(split->n, p, pes.first + pes.count - 1), base, split->most);
    return (struct indices){first.first, last.first + last.count - first.first};
}

static struct indices own_part(const struct tl *tl, const struct split *split, uint64_t part)
{
    return part_of(tl, split, (struct indices){tl_pe(tl), 1}, part);
}

/* Of a group, the PEs from the i-th on whose parts are consecutive. */
static struct indices side_by_side(const struct split *split, struct indices group, uint64_t i)
{
    return (struct indices){group.first + i, split->parts == 1 ? group.count - i : 1};
}

/* The elements of the parts of a group's first PEs, which lie side by side in a panel. */
static uint64_t parts_of_first(const struct tl *tl, const struct split *split, struct indices group, uint64_t pes, uint64_t part)
{
    uint64_t elements = 0;
    for (uint64_t i = 0; i < pes;) {
        struct indices beside = side_by_side(split, (struct indices){group.first, pes}, i);
        elements += part_of(tl, split, beside, part).count;
        i += beside.count;
    }
    return elements;
}

/* Columns of a group in the panel of what a step gives, columns x own rows, behind `at` columns of other blocks of it. */
static struct tl_shard given(struct tl *tl, const struct transpose_args *arg, const struct exchange *step, const struct panel *give,
                             uint64_t at, uint64_t cols)
{
    uint64_t rows = own_part(tl, &arg->rows, step->row_part).count;
    return tl_reshape(tl, tl_part(tl, give->buffer, 0, at * rows, cols * rows), cols, rows);
}

/* Rows of a group in the panel of what a step takes, own columns x rows, behind `at` rows of other blocks of it. Blocks that are
 * cut are not part of one matrix there. */
static struct tl_shard taken(struct tl *tl, const struct transpose_args *arg, const struct exchange *step, const struct panel *take,
                             uint64_t at, uint64_t rows)
{
    uint64_t cols = own_part(tl, &arg->cols, step->col_part).count;
    if (arg->rows.parts > 1)
        return tl_reshape(tl, tl_part(tl, take->buffer, 0, at * cols, cols * rows), cols, rows);
    uint64_t all = part_of(tl, &arg->rows, step->from, 0).count;
    return tl_part(tl, tl_reshape(tl, tl_part(tl, take->buffer, 0, 0, cols * all), cols, all), 1, at, rows);
}

/* Starts to load or store rows of a matrix in memory, some with each command. */
static void move_rows(struct tl *tl, struct panel *panel, struct tl_shard memory, struct tl_shard buffer, bool stores)
{
    for (uint64_t row = 0; row < memory.shape[0]; row += RUNS) {
        uint64_t rows = kb_min(RUNS, memory.shape[0] - row);
        struct tl_shard there = tl_part(tl, memory, 0, row, rows), here = tl_part(tl, buffer, 0, row, rows);
        transfers_add(tl, &panel->transfers, stores ? tl_store_async(tl, there, here) : tl_load_async(tl, here, there));
    }
}

/* Starts to load what a step gives as soon as the panel is free. */
static void load_panel(struct tl *tl, const struct transpose_args *arg, const struct exchange *step, struct panel *give)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    struct indices rows = own_part(tl, &arg->rows, step->row_part), pes;
    uint64_t at = 0;
    transfers_wait(tl, &give->transfers);
    for (uint64_t i = 0; i < step->to.count && rows.count > 0; i += pes.count) {
        pes = side_by_side(&arg->cols, step->to, i);
        struct indices cols = part_of(tl, &arg->cols, pes, step->col_part);
        if (cols.count > 0)
            move_rows(tl, give, submatrix(tl, x, rows.first - x.first[0], rows.count, cols.first, cols.count),
                      tl_transposed(tl, given(tl, arg, step, give, at, cols.count), 0, 1), false);
        at += cols.count;
    }
}

/* Starts to store what a step took as soon as all of it has been received. */
static void store_panel(struct tl *tl, const struct transpose_args *arg, const struct exchange *step, struct panel *take)
{
    struct tl_shard y = tl_my_shard(tl, arg->y);
    struct indices cols = own_part(tl, &arg->cols, step->col_part), pes;
    uint64_t at = 0;
    transfers_wait(tl, &take->transfers);
    for (uint64_t i = 0; i < step->from.count && cols.count > 0; i += pes.count) {
        pes = side_by_side(&arg->rows, step->from, i);
        struct indices rows = part_of(tl, &arg->rows, pes, step->row_part);
        if (rows.count > 0)
            move_rows(tl, take, submatrix(tl, y, cols.first - y.first[0], cols.count, rows.first, rows.count),
                      taken(tl, arg, step, take, at, rows.count), true);
        at += rows.count;
    }
}

/* Sends or receives a block, as many rows in each message as fit. */
static void pass_block(struct tl *tl, struct panel *panel, struct tl_shard block, uint32_t pe, bool sends)
{
    uint64_t rows = tl_slot_bytes(tl) / (block.shape[1] * kb_dtype_bytes(block.dtype));
    for (uint64_t row = 0; row < block.shape[0]; row += rows) {
        struct tl_shard part = tl_part(tl, block, 0, row, kb_min(rows, block.shape[0] - row));
        transfers_add(tl, &panel->transfers, sends ? tl_send_async(tl, pe, part) : tl_recv_async(tl, pe, part));
    }
}

/* Receives what a step takes. A PE begins with another one than its neighbours do, and copies its own block. */
static void take_blocks(struct tl *tl, const struct transpose_args *arg, const struct exchange *step,
                        const struct panel *give, struct panel *take)
{
    uint64_t me = tl_pe(tl), cols = own_part(tl, &arg->cols, step->col_part).count;
    for (uint64_t i = 0; i < step->from.count && cols > 0; i++) {
        uint64_t place = (me + i) % step->from.count, from = step->from.first + place;
        struct indices rows = part_of(tl, &arg->rows, (struct indices){from, 1}, step->row_part);
        if (rows.count == 0)
            continue;
        uint64_t at = parts_of_first(tl, &arg->rows, step->from, place, step->row_part);
        struct tl_shard to = taken(tl, arg, step, take, at, rows.count);
        if (from != me) {
            pass_block(tl, take, to, (uint32_t)from, false);
            continue;
        }
        at = parts_of_first(tl, &arg->cols, step->to, place, step->col_part);
        move_rows(tl, take, given(tl, arg, step, give, at, cols), to, false);
    }
}

/* Sends what a step gives, in the same order. */
static void give_blocks(struct tl *tl, const struct transpose_args *arg, const struct exchange *step, struct panel *give)
{
    uint64_t me = tl_pe(tl), rows = own_part(tl, &arg->rows, step->row_part).count;
    for (uint64_t i = 0; i < step->to.count && rows > 0; i++) {
        uint64_t place = (me + i) % step->to.count, to = step->to.first + place;
        uint64_t cols = part_of(tl, &arg->cols, (struct indices){to, 1}, step->col_part).count;
        uint64_t at = parts_of_first(tl, &arg->cols, step->to, place, step->col_part);
        if (cols > 0 && to != me)
            pass_block(tl, give, given(tl, arg, step, give, at, cols), (uint32_t)to, true);
    }
}

KB_KERNEL(transpose, struct transpose_args)
{
    struct panel give[BUFFERS] = {0}, take[BUFFERS] = {0};
    uint64_t most = arg->rows.most * arg->cols.most * arg->group;
    enum kb_dtype dtype = tl_my_shard(tl, arg->x).dtype;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        give[i].buffer = tl_alloc(tl, dtype, most);
        take[i].buffer = tl_alloc(tl, dtype, most);
    }
    struct exchange next = exchange_of_step(tl, arg, 0);
    load_panel(tl, arg, &next, &give[0]);
    for (uint64_t s = 0; s < arg->steps + STORE_LAG; s++) {
        struct exchange step = next;
        next = exchange_of_step(tl, arg, s + 1);
        if (s + 1 < arg->steps)
            load_panel(tl, arg, &next, &give[(s + 1) % BUFFERS]);
        if (s < arg->steps) {
            transfers_wait(tl, &give[s % BUFFERS].transfers);
            transfers_wait(tl, &take[s % BUFFERS].transfers);
            take_blocks(tl, arg, &step, &give[s % BUFFERS], &take[s % BUFFERS]);
            give_blocks(tl, arg, &step, &give[s % BUFFERS]);
        }
        if (s >= STORE_LAG) {
            struct exchange before = exchange_of_step(tl, arg, s - STORE_LAG);
            store_panel(tl, arg, &before, &take[(s - STORE_LAG) % BUFFERS]);
        }
    }
}

/* ---- the bench */

/* The largest block of a step, and how many PEs a group has. */
struct plan {
    uint64_t rows, cols, group;
};

/* Blocks that a PE has for all PEs: the longest ones. */
struct blocks {
    uint64_t rows, cols, pes, element_bytes;
};

/* The time in ps that a PE takes by a plan, apart from links: pe_dma handles each run of a load and each message that comes
 * in, and an HBM slice gives a short run the time of one over all its pseudo channels, for the runs beside it are in the
 * same ones as often as not. */
static uint64_t plan_ps(const struct plan *plan, const struct blocks *b)
{
    uint64_t load = plan->cols * (plan->cols < b->cols ? 1 : plan->group);
    uint64_t store = plan->rows * (plan->rows < b->rows ? 1 : plan->group);
    uint64_t slot = kb_max(kb_attrs.pe_ipcq_slot_bytes / b->element_bytes, 1), elements = b->rows * b->cols * b->pes;
    uint64_t loads = kb_ceil_div(elements, load), stores = kb_ceil_div(elements, store);
    uint64_t messages = kb_ceil_div(elements, kb_min(plan->rows * plan->cols, slot));
    uint64_t shortest = kb_main_memory() == KB_HBM ? kb_product(kb_attrs.hbm_ctrl_interleave_bytes, kb_attrs.hbm_ctrl_pcs) : 1;
    uint64_t memory_ps = kb_memory_ps(kb_main_memory(), kb_product(loads, kb_max(load * b->element_bytes, shortest)),
                                      kb_product(stores, kb_max(store * b->element_bytes, shortest)));
    return kb_sum(memory_ps, kb_product(loads + messages, kb_attrs.pe_dma_overhead_ps));
}

/* How many blocks of a size a panel may have, so that all receives and sends of a step are submitted before the kernel waits for
 * one: a block of another PE is messages, the PE's own a copy. */
static uint64_t blocks_at_once(uint64_t rows, uint64_t cols, uint64_t slot)
{
    uint64_t messages = kb_ceil_div(cols, slot / rows), copies = kb_ceil_div(cols, RUNS);
    return kb_min(TRANSFERS_MAX / messages, (TRANSFERS_MAX - copies) / messages + 1);
}

/* Chooses the size of blocks and groups that takes the shortest time, and the largest blocks of those. A block is all rows and
 * columns that two PEs share, or is cut. A buffer holds the blocks of a group; a message has at least one row of a block, and
 * a command no more runs than it may have. A group has as many PEs as there are, but leaves LEAST_STEPS steps to overlap. */
static struct plan plan_blocks(const struct blocks *b, uint64_t group)
{
    uint64_t slot = kb_max(kb_attrs.pe_ipcq_slot_bytes / b->element_bytes, 1);
    uint64_t room = needs_tcm_bytes() / (2 * BUFFERS) / 64 * 64, best_ps = UINT64_MAX;
    uint64_t most_rows = kb_min(b->rows, kb_min(slot, TL_RUNS_MOST)), most_cols = kb_min(b->cols, TL_RUNS_MOST);
    struct plan best = {1, 1, 1};
    for (uint64_t rows = most_rows, last_row = 0; rows != last_row; last_row = rows, rows = kb_ceil_div(rows, 2))
        for (uint64_t cols = most_cols, last_col = 0; cols != last_col; last_col = cols, cols = kb_ceil_div(cols, 2)) {
            uint64_t parts = kb_ceil_div(b->rows, rows) * kb_ceil_div(b->cols, cols);
            uint64_t fits = kb_min(room / b->element_bytes / (rows * cols), blocks_at_once(rows, cols, slot));
            fits = kb_min(fits, parts > 1 ? CUT_MOST : BLOCKS_MOST);
            uint64_t pes = group ? kb_min(group, b->pes) : kb_ceil_div(b->pes, kb_ceil_div(LEAST_STEPS, parts));
            struct plan plan = {rows, cols, kb_min(pes, fits)};
            uint64_t ps = fits ? plan_ps(&plan, b) : UINT64_MAX;
            if (ps < best_ps)
                best = plan, best_ps = ps;
        }
    return best;
}

/* The messages: every PE sends a block to every other PE. */
static kb_traffic block_traffic(struct kb_pes pes, uint64_t m, uint64_t n, uint64_t element_bytes)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint32_t i = 0; i < pes.count; i++) {
        uint64_t rows_bytes = block_range(m, pes.count, i).count * element_bytes;
        for (uint32_t j = 0; j < pes.count; j++)
            if (i != j)
                kb_traffic_add(traffic, pes.pe[i], pes.pe[j], rows_bytes * block_range(n, pes.count, j).count);
    }
    return traffic;
}

/* How many SIPs transpose the matrix in the shortest time, of those whose HBM has room for x and y. Several SIPs share what
 * takes one_ps in one SIP, and exchange all blocks but those of their own PEs. */
static uint32_t transpose_sips(uint64_t m, uint64_t n, uint64_t element_bytes)
{
    struct kb_pes one = sips_first("*", 1);
    uint32_t least = sips_least(2 * m * n * element_bytes), best = least;
    if (least == sips_count())
        return least;
    uint64_t one_ps = kb_traffic_ps(block_traffic(one, m, n, element_bytes)), best_ps = UINT64_MAX;
    for (uint32_t i = least; i <= sips_count(); i++) {
        uint64_t pes = (uint64_t)i * one.count, messages = kb_min(pes * (pes - one.count), m * n), ps = one_ps / i;
        uint64_t given = kb_scaled(m * n * element_bytes, i - 1, (uint64_t)i * i);
        if (i > 1)
            ps += kb_max(sips_exchange_ps(given, 1), switch_ps(i, messages));
        if (ps < best_ps)
            best = i, best_ps = ps;
    }
    return best;
}

KB_BENCH(transpose, "y = x transposed, rows of both over the PEs of a SIP, or of several if that pays",
         KB_INT(m, 4096, 1, 1 << 24, "rows of x"),
         KB_INT(n, 8192, 1, 1 << 24, "columns of x"),
         KB_WORD(dtype, "f16 bf16 f32 i32 i8", "dtype of the elements"),
         KB_INT(group, 0, 0, 1 << 24, "PEs whose blocks are loaded and stored together; 0: chosen for the TCM"))
{
    uint64_t m = kb_int(m), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t size = kb_dtype_bytes(dtype);
    needs_tcm((2 * BUFFERS - 1) * 64 + size, "eight buffers of an element", "take a machine that has them");
    struct kb_pes pes = sips_first("*", transpose_sips(m, n, size));

    needs_message(pes.count > 1 ? size : 0);
    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(m, n), kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", dtype, kb_2d(n, m), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(x, -128, 128);

    struct blocks blocks = {block_longest(m, pes.count), block_longest(n, pes.count), pes.count, size};
    struct plan plan = plan_blocks(&blocks, kb_int(group));
    struct split rows = {m, plan.rows, kb_ceil_div(blocks.rows, plan.rows)};
    struct split cols = {n, plan.cols, kb_ceil_div(blocks.cols, plan.cols)};
    uint64_t groups = kb_ceil_div(pes.count, plan.group);
    struct transpose_args arg = {x, y, rows, cols, plan.group, groups, groups * rows.parts * cols.parts};
    param_used("group", kb_int(group), plan.group, "all PEs, what fits into the TCM, or 48");
    kb_future launch = kb_launch(transpose, pes, &arg);
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){ .reads = {x}, .writes = {y} },
                &(struct kb_work){ .traffic = block_traffic(pes, m, n, size) });
    kb_expect_close(y, kb_ref_transpose(x));
}
