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
#include <kb/attrs.h>

enum {
    AHEAD = 4,                                          /* buffers of each kind */
    LAG = 2,                                            /* steps until what was taken is stored */
    STEPS = 4,                                          /* at least, so that they overlap */
    UNDER_WAY = 64                                      /* commands at a time with a buffer, at most */
};

struct transpose_args {
    kb_tensor x, y;                                     /* m x n, n x m */
    uint64_t m, n, rows, cols;                          /* of x; of x in a block, at most */
    uint64_t group;                                     /* PEs; of more than 1 only if blocks are not cut */
};

/* Rows and columns of x. In a buffer they lie transposed. */
struct part {
    struct span rows, cols;
};

/* What a PE gives to the PEs from `to` on and takes from those from `from` on. */
struct step {
    uint64_t to, to_end, from, from_end, row, col;      /* row, col: of each PE's, those before are done */
    struct part give, take;
};

struct stage {
    struct tl_shard buffer;
    tl_handle under_way[UNDER_WAY];
    uint32_t count;
};

/* Of n rows or columns, those of some PEs that a step is about: one after the other. */
static struct span lines(uint64_t n, uint64_t p, uint64_t pe, uint64_t end, uint64_t base, uint64_t most)
{
    struct span first = span_cut(block_of(n, p, pe), base, most), last = span_cut(block_of(n, p, end - 1), base, most);
    return (struct span){first.first, last.first + last.count - first.first};
}

static struct step step_of(const struct tl *tl, const struct transpose_args *arg, uint64_t s)
{
    uint64_t p = tl_num_pes(tl), me = tl_pe(tl), groups = ceil_of(p, arg->group), place = me / arg->group;
    uint64_t cuts = ceil_of(longest_block(arg->n, p), arg->cols), cut = s / groups;
    uint64_t row = cut / cuts * arg->rows, col = cut % cuts * arg->cols;
    uint64_t away = (s + groups / 2) % groups;          /* groups; the farthest come first */
    uint64_t to = (place + away) % groups * arg->group, from = (place + groups - away) % groups * arg->group;
    uint64_t to_end = least(to + arg->group, p), from_end = least(from + arg->group, p);
    return (struct step){
        to, to_end, from, from_end, row, col,
        {lines(arg->m, p, me, me + 1, row, arg->rows), lines(arg->n, p, to, to_end, col, arg->cols)},
        {lines(arg->m, p, from, from_end, row, arg->rows), lines(arg->n, p, me, me + 1, col, arg->cols)},
    };
}

static uint64_t steps_of(const struct tl *tl, const struct transpose_args *arg)
{
    uint64_t p = tl_num_pes(tl);
    return ceil_of(p, arg->group) * ceil_of(longest_block(arg->m, p), arg->rows) *
           ceil_of(longest_block(arg->n, p), arg->cols);
}

static bool none(struct part part)
{
    return part.rows.count == 0 || part.cols.count == 0;
}

/* A part of x or y, in its shard. */
static struct tl_shard in_shard(struct tl *tl, struct tl_shard shard, struct span rows, struct span cols)
{
    shard = tl_part(tl, shard, 0, rows.first - shard.first[0], rows.count);
    return tl_part(tl, shard, 1, cols.first, cols.count);
}

/* A part in the buffer of a larger one. */
static struct tl_shard in_buffer(struct tl *tl, struct tl_shard buffer, struct part all, struct part part)
{
    buffer = tl_part(tl, buffer, 0, 0, all.rows.count * all.cols.count);
    buffer = tl_reshape(tl, buffer, all.cols.count, all.rows.count);
    buffer = tl_part(tl, buffer, 0, part.cols.first - all.cols.first, part.cols.count);
    return tl_part(tl, buffer, 1, part.rows.first - all.rows.first, part.rows.count);
}

static void settle(struct tl *tl, struct stage *stage)
{
    while (stage->count > 0)
        tl_wait(tl, stage->under_way[--stage->count]);
}

static void load(struct tl *tl, const struct transpose_args *arg, struct stage *stage, struct part part)
{
    settle(tl, stage);
    if (none(part))
        return;
    struct tl_shard to = tl_transposed(tl, in_buffer(tl, stage->buffer, part, part), 0, 1);
    stage->under_way[stage->count++] =
        tl_load_async(tl, to, in_shard(tl, tl_my_shard(tl, arg->x), part.rows, part.cols));
}

static void store(struct tl *tl, const struct transpose_args *arg, struct stage *stage, struct part part)
{
    settle(tl, stage);
    if (none(part))
        return;
    struct tl_shard y = in_shard(tl, tl_my_shard(tl, arg->y), part.cols, part.rows);
    stage->under_way[stage->count++] = tl_store_async(tl, y, in_buffer(tl, stage->buffer, part, part));
}

/* Rows of a block that a message holds. */
static uint64_t message_rows(struct tl *tl, struct tl_shard block)
{
    uint64_t rows = tl_slot_bytes(tl) / (block.shape[1] * kb_dtype_bytes(block.dtype));
    if (rows == 0)
        tl_fail(tl, 1, "a message of %llu bytes holds no element", (unsigned long long)tl_slot_bytes(tl));
    return rows;
}

static void give(struct tl *tl, const struct transpose_args *arg, const struct step *step, struct stage *stage,
                 uint64_t pe)
{
    struct span cols = lines(arg->n, tl_num_pes(tl), pe, pe + 1, step->col, arg->cols);
    struct part part = {step->give.rows, cols};
    if (none(part))
        return;
    struct tl_shard block = in_buffer(tl, stage->buffer, step->give, part);
    for (uint64_t row = 0, rows = message_rows(tl, block); row < cols.count; row += rows)
        stage->under_way[stage->count++] =
            tl_send_async(tl, pe, tl_part(tl, block, 0, row, least(rows, cols.count - row)));
}

/* Its own block a PE takes from the buffer of those that it gives. */
static void take(struct tl *tl, const struct transpose_args *arg, const struct step *step, struct stage *stage,
                 uint64_t pe, const struct stage *own)
{
    struct part part = {lines(arg->m, tl_num_pes(tl), pe, pe + 1, step->row, arg->rows), step->take.cols};
    if (none(part))
        return;
    struct tl_shard block = in_buffer(tl, stage->buffer, step->take, part);
    if (pe == tl_pe(tl)) {
        stage->under_way[stage->count++] = tl_load_async(tl, block, in_buffer(tl, own->buffer, step->give, part));
        return;
    }
    for (uint64_t row = 0, rows = message_rows(tl, block); row < part.cols.count; row += rows)
        stage->under_way[stage->count++] =
            tl_recv_async(tl, pe, tl_part(tl, block, 0, row, least(rows, part.cols.count - row)));
}

KB_KERNEL(transpose, struct transpose_args)
{
    struct stage gives[AHEAD] = {0}, takes[AHEAD] = {0};
    uint64_t steps = steps_of(tl, arg), me = tl_pe(tl), most = arg->rows * arg->cols * arg->group;
    enum kb_dtype dtype = tl_my_shard(tl, arg->x).dtype;
    for (uint32_t i = 0; i < AHEAD; i++) {
        gives[i].buffer = tl_alloc(tl, dtype, most);
        takes[i].buffer = tl_alloc(tl, dtype, most);
    }
    struct step step = step_of(tl, arg, 0);
    load(tl, arg, &gives[0], step.give);
    for (uint64_t s = 0; s < steps; s++) {
        struct stage *out = &gives[s % AHEAD], *in = &takes[s % AHEAD];
        struct step next = step_of(tl, arg, s + 1);
        if (s + 1 < steps)
            load(tl, arg, &gives[(s + 1) % AHEAD], next.give);
        settle(tl, out);
        settle(tl, in);
        for (uint64_t i = 0; i < step.from_end - step.from; i++)
            take(tl, arg, &step, in, step.from + (me + i) % (step.from_end - step.from), out);
        for (uint64_t i = 0; i < step.to_end - step.to; i++)
            if (step.to + (me + i) % (step.to_end - step.to) != me)
                give(tl, arg, &step, out, step.to + (me + i) % (step.to_end - step.to));
        if (s >= LAG)
            store(tl, arg, &takes[(s - LAG) % AHEAD], step_of(tl, arg, s - LAG).take);
        step = next;
    }
    for (uint64_t s = steps >= LAG ? steps - LAG : 0; s < steps; s++)
        store(tl, arg, &takes[s % AHEAD], step_of(tl, arg, s).take);
}

/* ---- the bench */

/* Blocks of all rows and columns that two PEs share, if a buffer holds them and messages of few rows; else cut to size.
 * As many PEs are a group as a buffer has room for, but some steps have to overlap. */
static void choose(struct transpose_args *arg, uint64_t p, uint64_t element_bytes, uint64_t group)
{
    uint64_t slot = kb_attrs.pe_ipcq_slot_bytes / element_bytes;
    uint64_t room = (kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes) / (2 * AHEAD) / 64 * 64;
    uint64_t most = least(room / element_bytes, UNDER_WAY / 2 * slot);
    uint64_t rows = longest_block(arg->m, p), cols = longest_block(arg->n, p);
    arg->rows = least(rows, slot);
    arg->cols = cols;
    while (arg->rows * arg->cols > most && arg->rows * arg->cols > 1)
        *(arg->rows > arg->cols ? &arg->rows : &arg->cols) = ceil_of(greatest(arg->rows, arg->cols), 2);
    bool cut = arg->rows < rows || arg->cols < cols;
    uint64_t fits = cut ? 1 : least(most / (rows * cols), UNDER_WAY);
    arg->group = least(group ? group : ceil_of(p, STEPS), fits);
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
