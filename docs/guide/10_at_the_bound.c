/* 10_at_the_bound.c: the softmax of step 4 with triple buffering: while one block of rows is computed, the next one is
 * loaded and the previous one is stored. The size of a block follows from the room in the TCM. */
#include <kb/measure.h>

struct softmax_args { kb_tensor x, y; uint64_t block; };

enum { SLOTS = 3 };                                     /* one is loaded, one computed, one stored */

struct slot {
    struct tl_shard t, y;                               /* a block of rows, and the part of y for its softmax */
    tl_handle loaded, stored;
};

static void load(struct tl *tl, struct slot *slot, struct tl_shard buffer, const struct softmax_args *arg,
                 uint64_t first, uint64_t rows)
{
    if (slot->stored)
        tl_wait(tl, slot->stored);
    slot->t = tl_part(tl, buffer, 0, 0, rows);
    slot->y = tl_part(tl, tl_my_shard(tl, arg->y), 0, first, rows);
    slot->loaded = tl_load_async(tl, slot->t, tl_part(tl, tl_my_shard(tl, arg->x), 0, first, rows));
}

static void softmax_and_store(struct tl *tl, struct slot *slot, struct tl_shard most, struct tl_shard sum)
{
    struct tl_shard t = slot->t, max = tl_part(tl, most, 0, 0, t.shape[0]), one = tl_part(tl, sum, 0, 0, t.shape[0]);
    tl_wait(tl, slot->loaded);
    tl_reduce_max(tl, max, t, 1);
    tl_sub(tl, t, t, max);
    tl_exp(tl, t, t);
    tl_sum(tl, one, t, 1);
    tl_recip(tl, one, one);
    tl_mul(tl, t, t, one);
    slot->stored = tl_store_async(tl, slot->y, t);
}

KB_KERNEL(softmax_at_the_bound, struct softmax_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), buffer[SLOTS];
    struct slot slot[SLOTS] = {0};
    uint64_t n = x.shape[0], columns = x.shape[1], row_bytes = SLOTS * 2 * columns + 6;
    uint64_t most = (tl_room_bytes(tl) - 4096) / row_bytes, size = arg->block && arg->block < most ? arg->block : most;
    if (most == 0)
        tl_fail(tl, 1, "%d rows of %lu elements do not fit into the TCM", SLOTS, columns);
    for (int i = 0; i < SLOTS; i++)
        buffer[i] = tl_alloc(tl, KB_f16, size, columns);
    struct tl_shard max = tl_alloc(tl, KB_f16, size, 1), sum = tl_alloc(tl, KB_f32, size, 1);
    uint64_t blocks = (n + size - 1) / size;
    for (uint64_t i = 0; i <= blocks; i++) {
        if (i < blocks)
            load(tl, &slot[i % SLOTS], buffer[i % SLOTS], arg, i * size, i + 1 < blocks ? size : n - i * size);
        if (i > 0)
            softmax_and_store(tl, &slot[(i - 1) % SLOTS], max, sum);
    }
}

KB_BENCH(softmax_at_the_bound, "softmax of each row; loads, compute and stores at the same time",
         KB_INT(rows, 8192, 1, 1 << 20, "rows"), KB_INT(columns, 1000, 1, 1 << 20, "columns"),
         KB_INT(block, 0, 0, 1 << 20, "rows per load; 0: as many as fit"))
{
    struct kb_pes all = kb_pes("*");
    uint64_t n = kb_int(rows) * kb_int(columns);
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(kb_int(rows), kb_int(columns)), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(kb_int(rows), kb_int(columns)), kb_rows(KB_HBM, all));
    kb_fill_normal(x, 0, 2);

    kb_future launch = kb_launch(softmax_at_the_bound, all, &(struct softmax_args){ x, y, kb_int(block) });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){           /* max, sub, exp, which costs 4, mul; the sum */
        .math_dtype = KB_f16, .math = 7 * n, .math_f32 = n, .reads = {x}, .writes = {y} }, NULL);
    kb_expect_close(y, kb_ref_softmax(x));
}
