/* wrong.c: wrong results, for the test that they are noticed: a GEMM whose kernel can get one tile of C wrong, and a large
 * tensor. */
#include <kb/host.h>
#include <kb/tl.h>

enum { TILE = 16 };

struct wrong_args {
    kb_tensor a, b, c;
    uint64_t row, column;                               /* the tile that goes wrong, in tiles */
    bool wrong;
};

KB_KERNEL(wrong, struct wrong_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    for (uint64_t i = 0; i < a.shape[0] / TILE; i++)
        for (uint64_t j = 0; j < b.shape[1] / TILE; j++) {
            bool off = arg->wrong && i == arg->row && j == arg->column;
            struct tl_shard rows = tl_part(tl, a, 0, i * TILE, TILE);
            struct tl_shard columns = tl_part(tl, b, 1, (off ? 0 : j) * TILE, TILE);
            struct tl_shard tile = tl_part(tl, tl_part(tl, c, 0, i * TILE, TILE), 1, j * TILE, TILE);
            struct tl_composite gemm = {.op = TL_GEMM, .m = TILE, .k = a.shape[1], .n = TILE,
                                        .tile = {TILE, TILE, TILE},
                                        .a = tl_in(rows), .b = tl_in(columns), .c = tl_out(tile)};
            tl_composite(tl, &gemm);
        }
}

KB_BENCH(wrong, "a GEMM with one tile wrong",
         KB_WORD(dtype, "f16 bf16 f32 i8", "of A and B"), KB_INT(row, 2, 0, 3, "of the wrong tile"),
         KB_INT(column, 1, 0, 4, "of the wrong tile"), KB_BOOL(wrong, true, "get it wrong"))
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = dtype == KB_i8 ? KB_i32 : dtype;
    struct kb_place place = kb_on(KB_HBM, kb_pes("sip0.cube0.pe1"));
    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(4 * TILE, 40), place);
    kb_tensor b = kb_tensor_new("b", dtype, kb_2d(40, 5 * TILE), place);
    kb_tensor c = kb_tensor_new("c", out, kb_2d(4 * TILE, 5 * TILE), place);
    kb_fill_normal(a, 0, 20);
    kb_fill_uniform(b, -30, 30);
    kb_wait(kb_launch(wrong, place.pes, &(struct wrong_args){a, b, c, kb_int(row), kb_int(column), kb_bool(wrong)}));
    kb_expect_close(c, kb_ref_gemm(a, b));
}

KB_BENCH(far_apart, "two wrong elements of a large tensor, in parts that several threads compare")
{
    enum { SIZE = 200000 };
    static double values[SIZE];
    kb_tensor x = kb_tensor_new("x", KB_f32, kb_1d(SIZE), kb_on(KB_HBM, kb_pes("sip0.cube0.pe1")));
    kb_fill(x, 1);
    for (int i = 0; i < SIZE; i++)
        values[i] = i == 70000 || i == 140000 ? 2 : 1;
    kb_expect_close(x, kb_ref_given(values, kb_1d(SIZE)));
}

struct unequal_args {
    kb_tensor y;
    uint64_t first, end;
};

/* Of equal copies, those of some ranks are wrong. */
KB_KERNEL(unequal, struct unequal_args)
{
    struct tl_shard y = tl_alloc(tl, KB_f16, 300);
    bool wrong = tl_pe(tl) >= arg->first && tl_pe(tl) < arg->end;
    tl_add(tl, y, tl_load(tl, tl_my_shard(tl, arg->y)), tl_number(wrong ? 1.5 : 1));
    tl_store(tl, tl_my_shard(tl, arg->y), y);
}

KB_BENCH(unequal, "equal copies, some of them wrong", KB_INT(first, 0, 0, 100, "rank with a wrong copy"),
         KB_INT(end, 1, 0, 100, "the rank behind the last one"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_1d(300), kb_copies(KB_HBM, all));
    kb_fill_uniform(y, -1, 1);
    kb_ref expected = kb_ref_binary("add", y, 1.0);
    kb_wait(kb_launch(unequal, all, &(struct unequal_args){y, kb_int(first), kb_int(end)}));
    kb_expect_close(y, expected);
}

struct twice_args {
    kb_tensor x, y;
    bool spoil, late;
};

/* y = 2 x + 1; x is overwritten by zeros before it is read, or afterwards. */
KB_KERNEL(twice, struct twice_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    if (x.shape[0] == 0)
        return;
    struct tl_shard zeros = tl_alloc(tl, KB_f16, x.shape[0]), sum = tl_alloc(tl, KB_f16, x.shape[0]);
    if (arg->spoil && !arg->late)
        tl_store(tl, x, zeros);
    struct tl_shard loaded = tl_load(tl, x);
    if (arg->spoil && arg->late)
        tl_store(tl, x, zeros);
    tl_add(tl, sum, loaded, loaded);
    tl_add(tl, sum, sum, tl_number(1));
    tl_store(tl, y, sum);
}

static kb_ref twice_and_one(kb_tensor x)
{
    return kb_ref_binary("add", kb_ref_binary("add", x, x), 1);
}

static void launch_twice(kb_tensor x, kb_tensor y, bool spoil, bool late)
{
    kb_wait(kb_launch(twice, kb_pes("*"), &(struct twice_args){x, y, spoil, late}));
}

KB_BENCH(spoils, "y = 2 x + 1, with what is expected made of x at different times",
         KB_BOOL(spoil, true, "the kernel overwrites x"), KB_BOOL(late, false, "after it has read x"),
         KB_BOOL(copies, false, "each PE has all of x and y"),
         KB_WORD(how, "after before refilled looked chained verified inplace stages", "when, and of what"))
{
    struct kb_place place = kb_bool(copies) ? kb_copies(KB_HBM, kb_pes("*")) : kb_rows(KB_HBM, kb_pes("*"));
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(600), place), y = kb_tensor_new("y", KB_f16, kb_1d(600), place);
    kb_tensor z = kb_tensor_new("z", KB_f16, kb_1d(600), place);
    kb_fill_uniform(x, -1, 1);
    kb_ref before = twice_and_one(x);
    char how = kb_word(how)[0];
    bool in_place = how == 'v' || how == 'i', refilled = how == 'r' || how == 'l';
    launch_twice(x, in_place ? x : y, kb_bool(spoil) && how != 's', kb_bool(late));
    if (how == 'v' || how == 's')
        kb_expect_close(how == 'v' ? x : y, before);
    if (how == 'l')
        kb_ref_copy(x);                                 /* runs the data pass */
    if (refilled)
        kb_fill_uniform(x, 1, 2);
    if (in_place || refilled)
        launch_twice(x, y, false, false);
    bool second = how == 'c' || how == 's';
    if (second)
        launch_twice(y, z, kb_bool(spoil) && how == 's', false);
    kb_expect_close(second ? z : y, how == 'b' ? before : twice_and_one(second ? y : x));
}

KB_BENCH(one_row, "a row, which only the first PE has, between tensors that all PEs write",
         KB_BOOL(written, true, "kernels write what is expected"))
{
    struct kb_place place = kb_rows(KB_HBM, kb_pes("*"));
    /* Each PE has lines of 64 bytes of these, without gaps, so that what is written around the row is one range. */
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(512), place), before = kb_tensor_new("before", KB_f16, kb_1d(512), place);
    kb_tensor row = kb_tensor_new("row", KB_f16, kb_1d(1), place), answer = kb_tensor_new("answer", KB_f16, kb_1d(1), place);
    kb_tensor behind = kb_tensor_new("behind", KB_f16, kb_1d(512), place);
    kb_fill_uniform(x, -1, 1);
    kb_fill(row, 2);
    kb_fill(answer, 5);
    launch_twice(x, before, false, false);
    launch_twice(x, behind, false, false);
    if (kb_bool(written))
        launch_twice(row, answer, false, false);
    kb_expect_close(answer, twice_and_one(row));
}
