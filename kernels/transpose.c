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
 * A group is the PEs whose blocks share a load or a store: neighbours in rank, so that their blocks lie side by side
 * and the runs of bytes in memory are as long as the group is large. In each step a PE gives blocks to one group, takes
 * blocks from one group, loads what it gives next, and stores what it took before.
 *
 * The bounds: every byte is read once, written once, and crosses the links to its PE. */
#include "collective.h"
#include "sips.h"
#include "transfers.h"
#include <kb/attrs.h>

enum {
    BUFFERS = 4,                                        /* for blocks to give, and for blocks to take */
    STORE_LAG = 2,                                      /* steps until what was taken is stored */
    LEAST_STEPS = 4                                     /* so that loads, exchanges and stores overlap */
};

struct transpose_args {
    kb_tensor x, y;                                     /* m x n, n x m */
    uint64_t m, n, rows, cols;                          /* the shape of x; the largest block of x */
    uint64_t group, groups;                             /* PEs of a group, which is 1 if blocks are cut; groups */
    uint64_t col_cuts, steps;                           /* pieces that each PE's columns are cut into; all steps */
};

/* A block of x, by its rows and columns of x. In a buffer it is transposed. */
struct matrix_block {
    struct indices rows, cols;
};

/* What a PE gives and takes in a step. */
struct exchange {
    struct indices to, from;                            /* the PEs that it gives to and takes from */
    uint64_t row, col;                                  /* where the step begins in each PE's rows and columns */
    struct matrix_block give, take;
};

struct panel {
    struct tl_shard buffer;
    struct transfers transfers;                         /* that fill it or read it */
};

/* The rows or columns, of n that are split over p PEs, that a step moves for some PEs: of each PE at most `most`, from
 * its `base`-th on. With several PEs they are consecutive, because blocks are not cut then. */
static struct indices step_range(uint64_t n, uint64_t p, struct indices pes, uint64_t base, uint64_t most)
{
    struct indices first = range_window(block_range(n, p, pes.first), base, most);
    struct indices last = range_window(block_range(n, p, pes.first + pes.count - 1), base, most);
    return (struct indices){first.first, last.first + last.count - first.first};
}

static struct exchange exchange_of_step(const struct tl *tl, const struct transpose_args *arg, uint64_t s)
{
    uint64_t p = tl_num_pes(tl), place = tl_pe(tl) / arg->group, cut = s / arg->groups;
    uint64_t away = (s + arg->groups / 2) % arg->groups;                /* the farthest groups first */
    uint64_t to = (place + away) % arg->groups, from = (place + arg->groups - away) % arg->groups;
    struct indices own = {tl_pe(tl), 1};
    struct exchange step = {.row = cut / arg->col_cuts * arg->rows, .col = cut % arg->col_cuts * arg->cols};
    step.to = range_window((struct indices){0, p}, to * arg->group, arg->group);
    step.from = range_window((struct indices){0, p}, from * arg->group, arg->group);
    step.give.rows = step_range(arg->m, p, own, step.row, arg->rows);
    step.give.cols = step_range(arg->n, p, step.to, step.col, arg->cols);
    step.take.rows = step_range(arg->m, p, step.from, step.row, arg->rows);
    step.take.cols = step_range(arg->n, p, own, step.col, arg->cols);
    return step;
}

static bool is_empty(struct matrix_block block)
{
    return block.rows.count == 0 || block.cols.count == 0;
}

/* A block in this PE's shard of x or y. */
static struct tl_shard block_in_shard(struct tl *tl, struct tl_shard shard, struct indices rows, struct indices cols)
{
    return submatrix(tl, shard, rows.first - shard.first[0], rows.count, cols.first, cols.count);
}

/* A block in its buffer: columns x rows. */
static struct tl_shard block_in_buffer(struct tl *tl, const struct panel *panel, struct matrix_block block)
{
    struct tl_shard buffer = tl_part(tl, panel->buffer, 0, 0, block.rows.count * block.cols.count);
    return tl_reshape(tl, buffer, block.cols.count, block.rows.count);
}

/* Starts to load a block as soon as the panel is free. */
static void load_panel(struct tl *tl, const struct transpose_args *arg, struct panel *panel, struct matrix_block block)
{
    transfers_wait(tl, &panel->transfers);
    if (is_empty(block))
        return;
    struct tl_shard x = block_in_shard(tl, tl_my_shard(tl, arg->x), block.rows, block.cols);
    struct tl_shard to = tl_transposed(tl, block_in_buffer(tl, panel, block), 0, 1);
    transfers_add(tl, &panel->transfers, tl_load_async(tl, to, x));
}

/* Starts to store a block as soon as it has been received. */
static void store_panel(struct tl *tl, const struct transpose_args *arg, struct panel *panel, struct matrix_block block)
{
    transfers_wait(tl, &panel->transfers);
    if (is_empty(block))
        return;
    struct tl_shard y = block_in_shard(tl, tl_my_shard(tl, arg->y), block.cols, block.rows);
    transfers_add(tl, &panel->transfers, tl_store_async(tl, y, block_in_buffer(tl, panel, block)));
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

/* The part of a block, in its buffer, that is of some of its rows or columns. */
static struct tl_shard rows_of_block(struct tl *tl, struct tl_shard buffer, struct matrix_block block, struct indices rows)
{
    return tl_part(tl, buffer, 1, rows.first - block.rows.first, rows.count);
}

static struct tl_shard cols_of_block(struct tl *tl, struct tl_shard buffer, struct matrix_block block, struct indices cols)
{
    return tl_part(tl, buffer, 0, cols.first - block.cols.first, cols.count);
}

/* Receives what a step takes. A PE begins with another one than its neighbours do, and copies its own block. */
static void take_blocks(struct tl *tl, const struct transpose_args *arg, const struct exchange *step,
                        const struct panel *give, struct panel *take)
{
    uint64_t p = tl_num_pes(tl), me = tl_pe(tl);
    if (is_empty(step->take))
        return;
    struct tl_shard taken = block_in_buffer(tl, take, step->take);
    for (uint64_t i = 0; i < step->from.count; i++) {
        uint64_t from = step->from.first + (me + i) % step->from.count;
        struct indices rows = range_window(block_range(arg->m, p, from), step->row, arg->rows);
        if (rows.count == 0)
            continue;
        struct tl_shard to = rows_of_block(tl, taken, step->take, rows);
        if (from != me) {
            pass_block(tl, take, to, (uint32_t)from, false);
            continue;
        }
        struct tl_shard own = cols_of_block(tl, block_in_buffer(tl, give, step->give), step->give, step->take.cols);
        transfers_add(tl, &take->transfers, tl_load_async(tl, to, own));
    }
}

/* Sends what a step gives, in the same order. */
static void give_blocks(struct tl *tl, const struct transpose_args *arg, const struct exchange *step, struct panel *give)
{
    uint64_t p = tl_num_pes(tl), me = tl_pe(tl);
    if (is_empty(step->give))
        return;
    struct tl_shard given = block_in_buffer(tl, give, step->give);
    for (uint64_t i = 0; i < step->to.count; i++) {
        uint64_t to = step->to.first + (me + i) % step->to.count;
        struct indices cols = range_window(block_range(arg->n, p, to), step->col, arg->cols);
        if (cols.count > 0 && to != me)
            pass_block(tl, give, cols_of_block(tl, given, step->give, cols), (uint32_t)to, true);
    }
}

KB_KERNEL(transpose, struct transpose_args)
{
    struct panel give[BUFFERS] = {0}, take[BUFFERS] = {0};
    uint64_t most = arg->rows * arg->cols * arg->group;
    enum kb_dtype dtype = tl_my_shard(tl, arg->x).dtype;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        give[i].buffer = tl_alloc(tl, dtype, most);
        take[i].buffer = tl_alloc(tl, dtype, most);
    }
    load_panel(tl, arg, &give[0], exchange_of_step(tl, arg, 0).give);
    for (uint64_t s = 0; s < arg->steps + STORE_LAG; s++) {
        struct exchange step = exchange_of_step(tl, arg, s);
        if (s + 1 < arg->steps)
            load_panel(tl, arg, &give[(s + 1) % BUFFERS], exchange_of_step(tl, arg, s + 1).give);
        if (s < arg->steps) {
            transfers_wait(tl, &give[s % BUFFERS].transfers);
            transfers_wait(tl, &take[s % BUFFERS].transfers);
            take_blocks(tl, arg, &step, &give[s % BUFFERS], &take[s % BUFFERS]);
            give_blocks(tl, arg, &step, &give[s % BUFFERS]);
        }
        if (s >= STORE_LAG)
            store_panel(tl, arg, &take[(s - STORE_LAG) % BUFFERS], exchange_of_step(tl, arg, s - STORE_LAG).take);
    }
}

/* ---- the bench */

/* Chooses the size of blocks and groups. A block is all rows and columns that two PEs share, or is cut so that a buffer
 * holds it, a message has at least one row of it, and a load or a store no more runs than a command may have. A group
 * has as many PEs as a buffer has room for, but leaves LEAST_STEPS steps to overlap. */
static void plan_blocks(struct transpose_args *arg, uint64_t p, uint64_t element_bytes, uint64_t group)
{
    uint64_t slot = kb_max(kb_attrs.pe_ipcq_slot_bytes / element_bytes, 1);
    uint64_t room = needs_tcm_bytes() / (2 * BUFFERS) / 64 * 64;
    uint64_t most = kb_min(room / element_bytes, TRANSFERS_MAX / 2 * slot);
    uint64_t rows = block_longest(arg->m, p), cols = block_longest(arg->n, p);
    arg->rows = kb_min(rows, kb_min(slot, TL_RUNS_MOST));
    arg->cols = kb_min(cols, TL_RUNS_MOST);
    while (arg->rows * arg->cols > most && arg->rows * arg->cols > 1)
        *(arg->rows > arg->cols ? &arg->rows : &arg->cols) = kb_ceil_div(kb_max(arg->rows, arg->cols), 2);
    bool cut = arg->rows < rows || arg->cols < cols;
    uint64_t fits = cut ? 1 : kb_min(most / (rows * cols), TRANSFERS_MAX);
    arg->group = kb_min(group ? kb_min(group, p) : kb_ceil_div(p, LEAST_STEPS), fits);
    arg->groups = kb_ceil_div(p, arg->group);
    arg->col_cuts = kb_ceil_div(cols, arg->cols);
    arg->steps = arg->groups * arg->col_cuts * kb_ceil_div(rows, arg->rows);
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

    struct transpose_args arg = {.x = x, .y = y, .m = m, .n = n};
    plan_blocks(&arg, pes.count, size, kb_int(group));
    param_used("group", kb_int(group), arg.group, "all PEs or what fits into the TCM");
    kb_future launch = kb_launch(transpose, pes, &arg);
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){ .reads = {x}, .writes = {y} },
                &(struct kb_work){ .traffic = block_traffic(pes, m, n, size) });
    kb_expect_close(y, kb_ref_transpose(x));
}
