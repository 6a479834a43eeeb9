/* transpose.c: y = x transposed; rows of x and rows of y over all PEs, so every PE has a block for every other one.
 *
 * Nothing is computed: DMA and messages put elements where they belong. A load scatters its rows into the columns of a
 * buffer in the TCM, which costs no more than any load; a block then lies there as the other PE wants it, and goes to
 * it in messages, each of which is received into its place in a panel of y, which is stored.
 *
 *     x: my rows, columns of a group -- load, scattered --> give: columns of the group x my rows -- send, a block each
 *     y: my columns, rows of a group <-- store -- take: my columns x rows of the group <-- receive, a block each
 *
 * The PEs whose blocks share a load or a store are a group: neighbours in rank, so that their blocks lie side by side,
 * and runs of bytes in memory are as long as the group is large. In each step a PE gives to one group and takes from
 * one, loads what it gives next, and stores what it took before.
 *
 * The bounds: every byte is read and written once, and crosses the links on the way to its PE. */
#include "collective.h"
#include "rect.h"
#include <kb/attrs.h>

enum {
    AHEAD = 4,                                          /* buffers of each kind */
    LAG = 2,                                            /* steps until what was taken is stored */
    STEPS = 4                                           /* at least, so that they overlap */
};

struct transpose_args {
    kb_tensor x, y;                                     /* m x n, n x m */
    uint64_t m, n, rows, cols;                          /* of x; of x in a block, at most */
    uint64_t group, groups;                             /* of more than one PE only if blocks are not cut */
    uint64_t col_cuts, steps;                           /* pieces into which each PE's columns are cut */
};

/* Rows and columns of x. In a buffer they lie transposed. */
struct part {
    struct span rows, cols;
};

/* What a PE gives to some PEs and takes from some; row, col: of each PE's rows and columns, from which on. */
struct step {
    struct span to, from;
    uint64_t row, col;
    struct part give, take;
};

struct stage {
    struct tl_shard buffer;
    struct moves moves;
};

/* Of n rows or columns, those of some PEs that a step is about: one after the other. */
static struct span lines(uint64_t n, uint64_t p, struct span pes, uint64_t base, uint64_t most)
{
    struct span first = span_cut(block_of(n, p, pes.first), base, most);
    struct span last = span_cut(block_of(n, p, pes.first + pes.count - 1), base, most);
    return (struct span){first.first, last.first + last.count - first.first};
}

static struct step step_of(const struct tl *tl, const struct transpose_args *arg, uint64_t s)
{
    uint64_t p = tl_num_pes(tl), place = tl_pe(tl) / arg->group, cut = s / arg->groups;
    uint64_t away = (s + arg->groups / 2) % arg->groups;                /* the farthest come first */
    uint64_t to = (place + away) % arg->groups, from = (place + arg->groups - away) % arg->groups;
    struct span me = {tl_pe(tl), 1};
    struct step step = {.row = cut / arg->col_cuts * arg->rows, .col = cut % arg->col_cuts * arg->cols};
    step.to = span_cut((struct span){0, p}, to * arg->group, arg->group);
    step.from = span_cut((struct span){0, p}, from * arg->group, arg->group);
    step.give.rows = lines(arg->m, p, me, step.row, arg->rows);
    step.give.cols = lines(arg->n, p, step.to, step.col, arg->cols);
    step.take.rows = lines(arg->m, p, step.from, step.row, arg->rows);
    step.take.cols = lines(arg->n, p, me, step.col, arg->cols);
    return step;
}

static bool none(struct part part)
{
    return part.rows.count == 0 || part.cols.count == 0;
}

/* A part of x or y, in its shard. */
static struct tl_shard in_shard(struct tl *tl, struct tl_shard shard, struct span rows, struct span cols)
{
    return submatrix(tl, shard, rows.first - shard.first[0], rows.count, cols.first, cols.count);
}

/* A part, in the buffer of a larger one. */
static struct tl_shard in_buffer(struct tl *tl, const struct stage *stage, struct part all, struct part part)
{
    struct tl_shard buffer = tl_part(tl, stage->buffer, 0, 0, all.rows.count * all.cols.count);
    buffer = tl_reshape(tl, buffer, all.cols.count, all.rows.count);
    return submatrix(tl, buffer, part.cols.first - all.cols.first, part.cols.count, part.rows.first - all.rows.first,
                     part.rows.count);
}

static void load(struct tl *tl, const struct transpose_args *arg, struct stage *stage, struct part part)
{
    moves_wait(tl, &stage->moves);
    if (none(part))
        return;
    struct tl_shard x = in_shard(tl, tl_my_shard(tl, arg->x), part.rows, part.cols);
    moves_add(tl, &stage->moves, tl_load_async(tl, tl_transposed(tl, in_buffer(tl, stage, part, part), 0, 1), x));
}

static void store(struct tl *tl, const struct transpose_args *arg, struct stage *stage, struct part part)
{
    moves_wait(tl, &stage->moves);
    if (none(part))
        return;
    struct tl_shard y = in_shard(tl, tl_my_shard(tl, arg->y), part.cols, part.rows);
    moves_add(tl, &stage->moves, tl_store_async(tl, y, in_buffer(tl, stage, part, part)));
}

/* Sends a block or receives it, some of its rows in each message. */
static void pass(struct tl *tl, struct stage *stage, struct tl_shard block, uint32_t pe, bool sends)
{
    uint64_t rows = tl_slot_bytes(tl) / (block.shape[1] * kb_dtype_bytes(block.dtype));
    if (rows == 0)
        tl_fail(tl, 1, "a message of %llu bytes holds no element", (unsigned long long)tl_slot_bytes(tl));
    for (uint64_t row = 0; row < block.shape[0]; row += rows) {
        struct tl_shard part = tl_part(tl, block, 0, row, kb_min(rows, block.shape[0] - row));
        moves_add(tl, &stage->moves, sends ? tl_send_async(tl, pe, part) : tl_recv_async(tl, pe, part));
    }
}

/* The blocks of a step: each PE begins with another one. Its own one it copies. */
static void exchange(struct tl *tl, const struct transpose_args *arg, const struct step *step, struct stage *give,
                     struct stage *take)
{
    uint64_t p = tl_num_pes(tl), me = tl_pe(tl);
    for (uint64_t i = 0; i < step->from.count; i++) {
        struct span from = {step->from.first + (me + i) % step->from.count, 1};
        struct part part = {lines(arg->m, p, from, step->row, arg->rows), step->take.cols};
        if (!none(part) && from.first != me)
            pass(tl, take, in_buffer(tl, take, step->take, part), (uint32_t)from.first, false);
        else if (!none(part))
            moves_add(tl, &take->moves, tl_load_async(tl, in_buffer(tl, take, step->take, part),
                                                      in_buffer(tl, give, step->give, part)));
    }
    for (uint64_t i = 0; i < step->to.count; i++) {
        struct span to = {step->to.first + (me + i) % step->to.count, 1};
        struct part part = {step->give.rows, lines(arg->n, p, to, step->col, arg->cols)};
        if (!none(part) && to.first != me)
            pass(tl, give, in_buffer(tl, give, step->give, part), (uint32_t)to.first, true);
    }
}

KB_KERNEL(transpose, struct transpose_args)
{
    struct stage give[AHEAD] = {0}, take[AHEAD] = {0};
    uint64_t most = arg->rows * arg->cols * arg->group;
    enum kb_dtype dtype = tl_my_shard(tl, arg->x).dtype;
    for (uint32_t i = 0; i < AHEAD; i++) {
        give[i].buffer = tl_alloc(tl, dtype, most);
        take[i].buffer = tl_alloc(tl, dtype, most);
    }
    load(tl, arg, &give[0], step_of(tl, arg, 0).give);
    for (uint64_t s = 0; s < arg->steps + LAG; s++) {
        struct step step = step_of(tl, arg, s);
        if (s + 1 < arg->steps)
            load(tl, arg, &give[(s + 1) % AHEAD], step_of(tl, arg, s + 1).give);
        if (s < arg->steps) {
            moves_wait(tl, &give[s % AHEAD].moves);
            moves_wait(tl, &take[s % AHEAD].moves);
            exchange(tl, arg, &step, &give[s % AHEAD], &take[s % AHEAD]);
        }
        if (s >= LAG)
            store(tl, arg, &take[(s - LAG) % AHEAD], step_of(tl, arg, s - LAG).take);
    }
}

/* ---- the bench */

/* Blocks of all rows and columns that two PEs share, if a buffer holds them and messages of few rows; else cut to size.
 * As many PEs are a group as a buffer has room for, but some steps have to overlap. */
static void choose(struct transpose_args *arg, uint64_t p, uint64_t element_bytes, uint64_t group)
{
    uint64_t slot = kb_max(kb_attrs.pe_ipcq_slot_bytes / element_bytes, 1);
    uint64_t room = (kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes) / (2 * AHEAD) / 64 * 64;
    uint64_t most = kb_min(room / element_bytes, MOST_MOVES / 2 * slot);
    uint64_t rows = longest_block(arg->m, p), cols = longest_block(arg->n, p);
    arg->rows = kb_min(rows, slot);
    arg->cols = cols;
    while (arg->rows * arg->cols > most && arg->rows * arg->cols > 1)
        *(arg->rows > arg->cols ? &arg->rows : &arg->cols) = kb_ceil_div(kb_max(arg->rows, arg->cols), 2);
    bool cut = arg->rows < rows || arg->cols < cols;
    uint64_t fits = cut ? 1 : kb_min(most / (rows * cols), MOST_MOVES);
    arg->group = kb_min(group ? group : kb_ceil_div(p, STEPS), fits);
    arg->groups = kb_ceil_div(p, arg->group);
    arg->col_cuts = kb_ceil_div(cols, arg->cols);
    arg->steps = arg->groups * arg->col_cuts * kb_ceil_div(rows, arg->rows);
}

/* Every PE sends each other one its block. */
static kb_traffic exchanged(struct kb_pes pes, uint64_t m, uint64_t n, uint64_t element_bytes)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint32_t i = 0; i < pes.count; i++)
        for (uint32_t j = 0; j < pes.count; j++)
            if (i != j)
                kb_traffic_add(traffic, pes.pe[i], pes.pe[j],
                               block_of(m, pes.count, i).count * block_of(n, pes.count, j).count * element_bytes);
    return traffic;
}

KB_BENCH(transpose, "y = x transposed, rows of both over all PEs",
         KB_INT(m, 4096, 1, 1 << 24, "rows of x"),
         KB_INT(n, 8192, 1, 1 << 24, "columns of x"),
         KB_WORD(dtype, "f16 bf16 f32 i32 i8", "of the elements"),
         KB_INT(group, 0, 0, 1 << 24, "PEs whose blocks are loaded and stored at once; 0: by the room in the TCM"))
{
    uint64_t m = kb_int(m), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t size = kb_dtype_bytes(dtype);
    struct kb_pes pes = kb_pes("*");

    kb_tensor x = kb_tensor_new("x", dtype, kb_2d(m, n), kb_rows(KB_HBM, pes));
    kb_tensor y = kb_tensor_new("y", dtype, kb_2d(n, m), kb_rows(KB_HBM, pes));
    kb_fill_uniform(x, -128, 128);

    struct transpose_args arg = {.x = x, .y = y, .m = m, .n = n};
    choose(&arg, pes.count, size, kb_int(group));
    kb_future launch = kb_launch(transpose, pes, &arg);
    kb_wait(launch);

    kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){
        .hbm_read = m * n * size, .hbm_written = m * n * size, .traffic = exchanged(pes, m, n, size) });
    kb_expect_close(y, kb_ref_transpose(x));
}
