/* faulty.c: y = x x^T + x, block by block on each PE, right or with one mistake; each is caught, by the line. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

enum { SIZE = 13 };                                     /* of a block: no multiple of a tile */

static const char *mistake;

static bool has(const char *name)
{
    return !strcmp(mistake, name);
}

struct faulty_args { kb_tensor x, y; };

KB_KERNEL(faulty, struct faulty_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    struct tl_shard buffer = tl_alloc(tl, KB_f32, SIZE, SIZE), sum = tl_alloc(tl, KB_f32, SIZE, SIZE);
    tl_handle loaded = tl_load_async(tl, buffer, x);
    if (has("stale"))
        tl_data(tl, buffer);                            /* line: stale */
    if (!has("wait"))
        tl_wait(tl, loaded);
    if (has("bounds"))
        tl_part(tl, x, 0, SIZE - 1, 2);                 /* line: bounds */
    if (has("address"))
        x.addr |= 0xfffffff00;
    if (has("address"))
        tl_load_into(tl, sum, x);                       /* line: address */
    if (has("full"))
        for (;;)
            tl_alloc(tl, KB_f32, 1000, 1000);           /* line: full */
    if (has("view"))
        x.stride[0] = 2;
    if (has("view"))
        tl_load(tl, tl_view(tl, x));                    /* line: view */
    bool turned = !has("tile") || tl_pe(tl) != tl_num_pes(tl) - 1;
    tl_dot(tl, sum, buffer, turned ? tl_transposed(tl, buffer, 0, 1) : buffer);
    tl_handle added = tl_math_async(tl, "add", sum, sum, buffer);           /* line: wait race */
    if (has("pending"))
        tl_data(tl, sum);                               /* line: pending */
    if (!has("race"))
        tl_wait(tl, added);
    if (has("freed"))
        tl_free(tl, sum);
    tl_store(tl, y, sum);                               /* line: race freed */
    if (has("tile"))
        tl_store(tl, tl_part(tl, y, 0, 0, 5), tl_part(tl, sum, 0, 0, 5));   /* line: tile */
}

static kb_ref expected(kb_tensor x, uint64_t blocks)
{
    static double values[256 * SIZE * SIZE];
    for (uint64_t row = 0; row < blocks * SIZE; row++)
        for (uint64_t column = 0; column < SIZE; column++) {
            uint64_t other = (row / SIZE * SIZE + column) * SIZE;
            double sum = kb_peek(x, row * SIZE + column);
            for (uint64_t k = 0; k < SIZE; k++)
                sum += kb_peek(x, row * SIZE + k) * kb_peek(x, other + k);
            values[row * SIZE + column] = sum;
        }
    return kb_ref_given(values, kb_2d(blocks * SIZE, SIZE));
}

KB_BENCH(faulty, "blocks with a mistake",
         KB_WORD(what, "none tile wait stale pending bounds address race full view freed", ""), KB_TEXT(pes, "*", ""))
{
    mistake = kb_word(what);
    struct kb_pes pes = kb_pes(kb_text(pes));
    kb_tensor x = kb_tensor_new("x", KB_f32, kb_2d(SIZE * pes.count, SIZE), kb_rows(KB_HBM, pes));
    kb_tensor y = kb_tensor_new("y", KB_f32, kb_2d(SIZE * pes.count, SIZE), kb_rows(KB_HBM, pes));
    kb_fill_uniform(x, -1, 1);
    kb_wait(kb_launch(faulty, pes, &(struct faulty_args){x, y}));
    kb_expect_close(y, expected(x, pes.count));
}
