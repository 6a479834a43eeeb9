/* miscomputed.c: kernels that ask engines for what is not defined, each in its own way; `what` says which. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct miscomputed_args { kb_tensor far; };

static void simple(struct tl *tl)
{
    struct tl_shard x = tl_alloc(tl, KB_f32, 4, 6), y = tl_alloc(tl, KB_f32, 4, 6), row = tl_alloc(tl, KB_f32, 6);
    struct tl_shard i = tl_alloc(tl, KB_i32, 4, 6), i8 = tl_alloc(tl, KB_i8, 4, 6), u8 = tl_alloc(tl, KB_u8, 4, 6);
    struct tl_shard column = tl_alloc(tl, KB_f32, 4, 1), folded = x;
    folded.stride[0] = 0;
    tl_max(tl, i, i, tl_number(INT32_MIN));             /* both ends are numbers of i32 */
    tl_min(tl, i, i, tl_number(INT32_MAX));
    if (is("exp_i32")) tl_exp(tl, i, i);
    if (is("gelu_i8")) tl_gelu(tl, y, i8);
    if (is("to_i32")) tl_add(tl, i, x, x);
    if (is("mixed")) tl_mul(tl, x, x, i);
    if (is("cmp_f32")) tl_cmp(tl, y, x, TL_LT, row);
    if (is("where_f32")) tl_where(tl, y, x, x, y);
    if (is("quant_f32")) tl_quant(tl, y, x, tl_number(2));
    if (is("quant_scale")) tl_quant(tl, i8, x, i);
    if (is("dequant_i8")) tl_dequant(tl, i8, i8, tl_number(2));
    if (is("number_i32")) tl_add(tl, i, i, tl_number(0.5));
    if (is("number_low")) tl_add(tl, i, i, tl_number(INT32_MIN - 1.0));
    if (is("first_number")) tl_sub(tl, x, tl_number(1), x);
    if (is("only_number")) tl_copy(tl, x, tl_number(1));
    if (is("row")) tl_add(tl, y, x, tl_alloc(tl, KB_f32, 5));
    if (is("bias_column")) tl_bias(tl, y, x, column);
    if (is("bias_one")) tl_bias(tl, y, x, tl_number(1)), tl_bias(tl, y, x, tl_alloc(tl, KB_f32, 1));
    if (is("scale_block")) tl_scale(tl, y, x, x);
    if (is("axis")) tl_sum(tl, row, x, 2);
    if (is("low_axis")) tl_sum(tl, row, x, -3);
    if (is("reduced")) tl_sum(tl, row, x, 1);
    if (is("reduced_over")) tl_reduce_max(tl, tl_part(tl, x, 0, 0, 1), x, 0);
    if (is("two_reduced")) tl_compute(tl, &(struct tl_compute){.op = "mean", .to = row, .x = x, .y = x});
    if (is("missing")) tl_compute(tl, &(struct tl_compute){.op = "where", .to = x, .x = u8, .y = x});
    if (is("folded")) tl_exp(tl, folded, x);
    if (is("row_over")) tl_add(tl, x, x, tl_part(tl, x, 0, 1, 1));
    struct tl_shard table = tl_alloc(tl, KB_f32, 20), at = tl_alloc(tl, KB_i32, 6), other = tl_alloc(tl, KB_i32, 6);
    tl_gather(tl, x, table, at);
    tl_gather(tl, other, at, at);                       /* at is both */
    if (is("look_axes")) tl_gather(tl, y, x, at);
    if (is("look_shape")) tl_gather(tl, y, table, tl_part(tl, at, 0, 0, 5));
    if (is("look_dtype")) tl_gather(tl, i, table, at);
    if (is("look_floats")) tl_gather(tl, y, table, row);
    if (is("look_number")) tl_gather(tl, y, table, tl_number(1));
    if (is("look_over")) tl_gather(tl, tl_part(tl, table, 0, 3, 6), table, at);
    if (is("look_pending")) tl_mul(tl, at, at, tl_number(2)), tl_gather(tl, y, table, at);
    if (is("look_self")) tl_gather(tl, at, at, i8);
    if (is("relation")) tl_cmp(tl, u8, x, (enum tl_relation)6, x);
}

static void dots(struct tl *tl)
{
    struct tl_shard a = tl_alloc(tl, KB_f16, 4, 6), b = tl_alloc(tl, KB_f16, 6, 5), c = tl_alloc(tl, KB_f32, 4, 5);
    if (is("dot_shape")) tl_dot(tl, c, a, a);
    if (is("dot_dtypes")) tl_dot(tl, c, a, tl_alloc(tl, KB_f32, 6, 5));
    if (is("dot_i16")) tl_dot(tl, c, tl_alloc(tl, KB_i16, 4, 6), tl_alloc(tl, KB_i16, 6, 5));
    if (is("dot_rank")) tl_dot(tl, c, tl_alloc(tl, KB_f16, 6), b);
    if (is("dot_over")) tl_dot(tl, tl_part(tl, a, 1, 0, 5), a, b);
}

static struct tl_epilogue after(const char *op, struct tl_shard operand)
{
    return (struct tl_epilogue){op, TL_OUTPUT_TILE, tl_in(operand)};
}

static void gemms(struct tl *tl, struct tl_shard far)
{
    struct tl_shard a = tl_part(tl, tl_part(tl, far, 0, 0, 8), 1, 0, 8), c = tl_part(tl, far, 0, 16, 8);
    struct tl_shard i8 = tl_alloc(tl, KB_i8, 8, 8), i32 = tl_alloc(tl, KB_i32, 8, 8), f32 = tl_alloc(tl, KB_f32, 8, 8);
    struct tl_composite ask = {.op = TL_GEMM, .m = 8, .k = 8, .n = 8, .tile = {8, 8, 8}, .a = tl_in(a), .b = tl_in(a),
                               .c = tl_out(tl_part(tl, c, 1, 0, 8)), .epilogues = 1};
    struct tl_composite whole = ask;
    whole.a = whole.b = tl_in(i8);
    whole.c = tl_out(i32);
    if (is("view")) ask.m = 9;
    if (is("e_where")) ask.epilogue[0].op = "where";
    if (is("e_gather")) ask.epilogue[0] = after("gather", a);
    if (is("e_cmp")) ask.epilogue[0] = after("cmp", a);
    if (is("e_scope")) ask.epilogue[0] = (struct tl_epilogue){"relu", (enum tl_scope)3, {0}};
    if (is("e_missing")) ask.epilogue[0].op = "add";
    if (is("e_operand")) ask.epilogue[0] = after("relu", a);
    if (is("e_shape")) ask.epilogue[0] = after("add", tl_part(tl, f32, 0, 0, 7));
    if (is("e_bias")) ask.epilogue[0] = after("bias", f32);
    if (is("e_far")) ask.epilogue[0] = after("add", f32), ask.epilogue[0].operand.addr |= (uint64_t)0xfffffff00;
    if (is("e_over")) ask.epilogue[0] = after("add", tl_part(tl, c, 1, 0, 8));
    if (is("e_quant")) ask.epilogue[0] = after("quant", tl_number(2));
    if (strncmp(what, "w_", 2) && strcmp(what, "view") && strncmp(what, "e_", 2))
        return;
    if (is("w_exp")) whole.epilogue[0].op = "exp", whole.epilogue[0].scope = TL_OUTPUT_TILE;
    if (is("w_bias")) whole.epilogue[0] = after("bias", tl_part(tl, f32, 0, 0, 1));
    if (is("w_number")) whole.epilogue[0] = after("scale", tl_number(0.5));
    if (is("w_once")) whole.epilogue[0] = after("dequant", tl_number(2)), whole.epilogue[0].scope = TL_ONCE;
    tl_composite(tl, what[0] == 'w' ? &whole : &ask);
}

static void maths(struct tl *tl, struct tl_shard far)
{
    struct tl_shard x = tl_part(tl, tl_part(tl, far, 0, 0, 8), 1, 0, 8), y = tl_part(tl, far, 0, 16, 8);
    struct tl_composite ask = {.op = TL_MATH, .math = is("m_gather") ? "gather" : "exp", .m = 8, .n = 8, .tile = {8, 8}, .src = tl_in(x),
                               .dst = tl_out(tl_part(tl, y, 1, 0, 8))};
    if (strncmp(what, "m_", 2))
        return;
    if (is("m_op")) ask.math = NULL;
    if (is("m_sum")) ask.math = "sum";
    if (is("m_where")) ask.math = "where";
    if (is("m_epilogue")) ask.epilogues = 1;
    if (is("m_k")) ask.k = 8;
    if (is("m_tile")) ask.tile[1] = 0;
    if (is("m_missing")) ask.math = "add";
    if (is("m_second")) ask.src2 = tl_in(x);
    if (is("m_row")) ask.math = "add", ask.src2 = tl_in(tl_part(tl, x, 0, 0, 3));
    if (is("m_dtype")) ask.dst.dtype = KB_i32;
    if (is("m_transposed")) ask.src.transposed = true;
    if (is("m_over")) ask.dst = tl_out(tl_part(tl, tl_part(tl, far, 0, 1, 8), 1, 0, 8));
    tl_composite(tl, &ask);
}

KB_KERNEL(miscomputed, struct miscomputed_args)
{
    simple(tl);
    dots(tl);
    gemms(tl, tl_my_shard(tl, arg->far));
    maths(tl, tl_my_shard(tl, arg->far));
}

KB_BENCH(miscomputed, "what is not defined", KB_TEXT(what, "none", "which"))
{
    what = kb_text(what);
    struct kb_pes one = kb_pes("sip0.cube0.pe1");
    kb_tensor far = kb_tensor_new("far", KB_f32, kb_2d(32, 32), kb_on(KB_HBM, one));
    kb_wait(kb_launch(miscomputed, one, &(struct miscomputed_args){far}));
}
