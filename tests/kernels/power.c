/* power.c: kernels that are wrong in a way that a check without power lets through; `what` says which. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

struct power_args {
    kb_tensor a, b, v, c;
    uint64_t keys;                                      /* that are worked on */
    double off;                                         /* is added to each element */
};

KB_KERNEL(nothing, struct power_args)
{
    (void)tl, (void)arg;
}

KB_KERNEL(shifted_gemm, struct power_args)
{
    struct tl_shard a = tl_load(tl, tl_my_shard(tl, arg->a)), b = tl_load(tl, tl_my_shard(tl, arg->b));
    struct tl_shard to = tl_my_shard(tl, arg->c), sum = tl_alloc(tl, KB_f32, to.shape[0], to.shape[1]);
    struct tl_shard c = tl_alloc(tl, to.dtype, to.shape[0], to.shape[1]);
    tl_dot(tl, sum, a, b);
    tl_add(tl, sum, sum, tl_number(arg->off));
    tl_cast(tl, c, sum);
    tl_store(tl, to, c);
}

/* Attention to the first keys alone, as if the partial results of the others were dropped. */
KB_KERNEL(few_keys, struct power_args)
{
    struct tl_shard q = tl_load(tl, tl_my_shard(tl, arg->a)), to = tl_my_shard(tl, arg->c);
    struct tl_shard k = tl_load(tl, tl_part(tl, tl_my_shard(tl, arg->b), 0, 0, arg->keys));
    struct tl_shard v = tl_load(tl, tl_part(tl, tl_my_shard(tl, arg->v), 0, 0, arg->keys));
    struct tl_shard p = tl_alloc(tl, KB_f16, to.shape[0], arg->keys), o = tl_alloc(tl, KB_f16, to.shape[0], to.shape[1]);
    struct tl_shard most = tl_alloc(tl, KB_f16, to.shape[0], 1), sum = tl_alloc(tl, KB_f32, to.shape[0], 1);
    tl_dot(tl, p, q, tl_transposed(tl, k, 0, 1));
    tl_scale(tl, p, p, tl_number(1 / __builtin_sqrt((double)q.shape[1])));
    tl_reduce_max(tl, most, p, 1);
    tl_sub(tl, p, p, most);
    tl_exp(tl, p, p);
    tl_sum(tl, sum, p, 1);
    tl_recip(tl, sum, sum);
    tl_mul(tl, p, p, sum);
    tl_dot(tl, o, p, v);
    tl_store(tl, to, o);
}

/* C in blocks of 64 x 64, one of them with a wrong part of B. */
KB_KERNEL(wrong_block, struct power_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    uint64_t rows = c.shape[0], columns = c.shape[1], k = a.shape[1];
    tl_wait(tl, tl_composite(tl, &(struct tl_composite){
        .op = TL_GEMM, .m = rows, .k = k, .n = columns, .tile = {64, 64, 64}, .a = tl_in(a), .b = tl_in(b),
        .c = tl_out(c) }));
    if (arg->off == 0)
        return;
    struct tl_shard part = tl_part(tl, tl_part(tl, c, 0, rows / 2, 64), 1, columns - 64, 64);
    tl_wait(tl, tl_composite(tl, &(struct tl_composite){
        .op = TL_GEMM, .m = 64, .k = k - 64, .n = 64, .tile = {64, 64, 64},
        .a = tl_in(tl_part(tl, tl_part(tl, a, 0, rows / 2, 64), 1, 0, k - 64)),
        .b = tl_in(tl_part(tl, tl_part(tl, b, 1, columns - 64, 64), 0, 0, k - 64)), .c = tl_out(part) }));
}

static bool is(const char *name)
{
    return !strcmp(kb_text(what), name);
}

static void gemm(enum kb_dtype dtype, uint64_t m, uint64_t k, uint64_t n, struct kb_place place, double off)
{
    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(m, k), place), b = kb_tensor_new("b", dtype, kb_2d(k, n), place);
    struct power_args args = {.a = a, .b = b, .c = kb_tensor_new("c", dtype, kb_2d(m, n), place), .off = off};
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);
    if (is("zeros"))
        kb_fill(b, 0);
    kb_wait(is("block") ? kb_launch(wrong_block, place.pes, &args) : kb_launch(shifted_gemm, place.pes, &args));
    kb_expect_close(args.c, kb_ref_gemm(a, b));
}

static void attention(uint64_t keys, struct kb_place place)
{
    kb_tensor q = kb_tensor_new("q", KB_f16, kb_2d(16, 64), place), k = kb_tensor_new("k", KB_f16, kb_2d(2048, 64), place);
    kb_tensor v = kb_tensor_new("v", KB_f16, kb_2d(2048, 64), place), o = kb_tensor_new("o", KB_f16, kb_2d(16, 64), place);
    kb_fill_uniform(q, -1.7, 1.7);
    kb_fill_uniform(k, -1.7, 1.7);
    kb_fill_uniform(v, -1, 1);
    struct power_args args = {.a = q, .b = k, .v = v, .c = o, .keys = keys};
    kb_wait(keys ? kb_launch(few_keys, place.pes, &args) : kb_launch(nothing, place.pes, &args));
    kb_ref scores = kb_ref_binary("mul", kb_ref_gemm(q, kb_ref_transpose(k)), is("readme") ? 1 : 0.125);
    kb_expect_close(o, kb_ref_gemm(kb_ref_softmax(scores), v));
}

/* A reference of a dozen products whose errors add up. */
static void chain(struct kb_place place)
{
    kb_tensor x = kb_tensor_new("x", KB_bf16, kb_2d(32, 32), place), y = kb_tensor_new("y", KB_bf16, kb_2d(32, 32), place);
    kb_fill_uniform(x, -0.3, 0.3);
    kb_ref product = kb_ref_gemm(x, x);
    for (unsigned i = 0; i < 10; i++)
        product = kb_ref_unary("exp", kb_ref_gemm(product, x));
    kb_wait(kb_launch(nothing, place.pes, &(struct power_args){.c = y}));
    kb_expect_close(y, product);
}

/* A tensor that holds what is expected without a kernel; or no expectation. */
static void untouched(struct kb_place place, bool expected)
{
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(4, 4), place), c = kb_tensor_new("c", KB_f16, kb_2d(4, 4), place);
    kb_fill(x, 1.5);
    kb_fill(c, 1.5);
    kb_wait(kb_launch(nothing, place.pes, &(struct power_args){.c = c}));
    if (expected)
        kb_expect_close(c, kb_ref_unary("copy", x));
}

KB_BENCH(power, "kernels that are wrong", KB_TEXT(what, "", "how"), KB_WORD(dtype, "f32 f16 bf16", "of a gemm"),
         KB_INT(keys, 16, 0, 2048, "that attention works on; 0: no kernel"),
         KB_INT(m, 64, 1, 1 << 20, "rows of a gemm"), KB_REAL(off, 0, -1, 1, "is added to each element of a gemm"))
{
    struct kb_place place = kb_on(KB_HBM, kb_pes("sip0.cube0.pe1"));
    if (is("attention") || is("readme"))
        attention((uint64_t)kb_int(keys), place);
    else if (is("chain"))
        chain(place);
    else if (is("untouched") || is("unexpected"))
        untouched(place, is("untouched"));
    else if (is("block"))
        gemm(kb_dtype(kb_word(dtype)), (uint64_t)kb_int(m), 1024, 1024, place, kb_real(off));
    else
        gemm(kb_dtype(kb_word(dtype)), (uint64_t)kb_int(m), 1024, 64, place, kb_real(off));
}
