/* ops.c: a bench that has every PE do an op on its part, and holds what comes of it against a reference. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

/* The ops of one kernel, by name: calls of the device library, blocking or not, or one of the functions below. */
struct op_args {
    char op[16], form[16];
    kb_tensor x, y, z, to;
    int axis;
    bool async;
};

static struct tl_shard load(struct tl *tl, kb_tensor tensor)
{
    return tl_load(tl, tl_my_shard(tl, tensor));
}

static struct tl_shard room(struct tl *tl, struct tl_shard like)
{
    return tl_alloc(tl, (enum kb_dtype)like.dtype, like.shape[0], like.shape[1]);
}

static void softmax(struct tl *tl, struct tl_shard to, struct tl_shard x)
{
    struct tl_shard row = tl_alloc(tl, (enum kb_dtype)x.dtype, x.shape[0], 1), shifted = room(tl, x);
    tl_reduce_max(tl, row, x, 1);
    tl_sub(tl, shifted, x, row);
    tl_exp(tl, shifted, shifted);
    tl_sum(tl, row, shifted, 1);
    tl_div(tl, to, shifted, row);
}

static void layernorm(struct tl *tl, struct tl_shard to, struct tl_shard x, struct tl_shard gain, struct tl_shard bias)
{
    struct tl_shard row = tl_alloc(tl, (enum kb_dtype)x.dtype, x.shape[0], 1), rest = room(tl, x), square = room(tl, x);
    tl_mean(tl, row, x, 1);
    tl_sub(tl, rest, x, row);
    tl_mul(tl, square, rest, rest);
    tl_mean(tl, row, square, 1);
    tl_add(tl, row, row, tl_number(1e-5));
    tl_rsqrt(tl, row, row);
    tl_mul(tl, rest, rest, row);
    tl_mul(tl, rest, rest, gain);
    tl_bias(tl, to, rest, bias);
}

#define DO(call, ...)                                                                                                  \
    (arg->async ? tl_wait(tl, tl_##call##_async(tl, to, __VA_ARGS__)) : tl_##call(tl, to, __VA_ARGS__))
#define OP(name, call, ...) if (!strcmp(arg->op, name)) { DO(call, __VA_ARGS__); return; }

static void reduce(struct tl *tl, const struct op_args *arg, struct tl_shard to, struct tl_shard x)
{
    OP("sum", sum, x, arg->axis)
    OP("mean", mean, x, arg->axis)
    OP("max", reduce_max, x, arg->axis)
    OP("min", reduce_min, x, arg->axis)
}

static void unary(struct tl *tl, const struct op_args *arg, struct tl_shard to, struct tl_shard x)
{
    OP("copy", copy, x)
    OP("neg", neg, x)
    OP("abs", abs, x)
    OP("relu", relu, x)
    OP("exp", exp, x)
    OP("log", ln, x)
    OP("sqrt", sqrt, x)
    OP("rsqrt", rsqrt, x)
    OP("recip", recip, x)
    OP("tanh", tanh, x)
    OP("sigmoid", sigmoid, x)
    OP("gelu", gelu, x)
    OP("silu", silu, x)
    OP("cast", cast, x)
    tl_compute(tl, &(struct tl_compute){.op = arg->op, .to = to, .x = x});
}

static void several(struct tl *tl, const struct op_args *arg, struct tl_shard to, struct tl_shard x, struct tl_shard y,
                    struct tl_shard z)
{
    OP("add", add, x, y)
    OP("sub", sub, x, y)
    OP("mul", mul, x, y)
    OP("div", div, x, y)
    OP("max", max, x, y)
    OP("min", min, x, y)
    OP("bias", bias, x, y)
    OP("scale", scale, x, y)
    OP("quant", quant, x, y)
    OP("dequant", dequant, x, y)
    OP("eq", cmp, x, TL_EQ, y)
    OP("ne", cmp, x, TL_NE, y)
    OP("lt", cmp, x, TL_LT, y)
    OP("le", cmp, x, TL_LE, y)
    OP("gt", cmp, x, TL_GT, y)
    OP("ge", cmp, x, TL_GE, y)
    OP("where", where, x, y, z)
    OP("dot", dot, x, y)
    tl_compute(tl, &(struct tl_compute){.op = arg->op, .to = to, .x = x, .y = y});
}

KB_KERNEL(op, struct op_args)
{
    struct tl_shard out = tl_my_shard(tl, arg->to);
    if (out.shape[0] == 0 || out.shape[1] == 0)         /* more PEs than rows or columns */
        return;
    struct tl_shard to = room(tl, out), x = load(tl, arg->x);
    struct tl_shard y = arg->y ? load(tl, arg->y) : tl_number(3), z = arg->z ? load(tl, arg->z) : y;
    if (!strcmp(arg->op, "softmax"))
        softmax(tl, to, x);
    else if (!strcmp(arg->op, "layernorm"))
        layernorm(tl, to, x, y, z);
    else if (!strcmp(arg->form, "reduce"))
        reduce(tl, arg, to, x);
    else if (!strcmp(arg->form, "unary"))
        unary(tl, arg, to, x);
    else
        several(tl, arg, to, x, y, z);
    tl_store(tl, out, to);
}

static kb_ref reference(const char *op, const char *form, const struct op_args *args)
{
    uint32_t axis = (uint32_t)args->axis;
    if (!strcmp(form, "reduce"))
        return !strcmp(op, "sum") ? kb_ref_sum(args->x, axis) : !strcmp(op, "mean") ? kb_ref_mean(args->x, axis)
               : !strcmp(op, "max") ? kb_ref_max(args->x, axis) : kb_ref_min(args->x, axis);
    if (!strcmp(op, "softmax")) return kb_ref_softmax(args->x);
    if (!strcmp(op, "layernorm")) return kb_ref_layernorm(args->x, args->y, args->z, 1e-5);
    if (!strcmp(op, "dot")) return kb_ref_gemm(args->x, args->y);
    if (!strcmp(op, "cast")) return kb_ref_cast(args->x, kb_dtype(kb_text(to)));
    if (!strcmp(op, "quant")) return kb_ref_quant(args->x, args->y, kb_dtype(kb_text(to)));
    if (!strcmp(op, "where")) return kb_ref_where(args->x, args->y, args->z);
    if (!strcmp(form, "unary")) return kb_ref_unary(op, args->x);
    return !strcmp(form, "number") ? kb_ref_binary(op, args->x, 3) : kb_ref_binary(op, args->x, args->y);
}

/* Gives floats the values 1 and 2, in no order: some are equal. */
static void write_few(kb_tensor tensor, enum kb_dtype dtype, uint64_t elements)
{
    uint64_t bytes = kb_dtype_bytes(dtype);
    uint8_t *data = kb_array(uint8_t, elements * bytes);
    static uint32_t random = 1;
    for (uint64_t i = 0; i < elements; i++) {
        random = random * 1664525 + 1013904223;
        uint16_t high = random >> 31 ? 0x4000 : dtype == KB_f16 ? 0x3c00 : 0x3f80;
        memcpy(data + (i + 1) * bytes - 2, &high, 2);
    }
    kb_write(tensor, data);
}

/* An operand: as x, a row, a column, or n x n; random. */
static kb_tensor operand(const char *name, const char *dtype, const char *form, struct kb_pes pes)
{
    uint64_t m = kb_int(m), n = kb_int(n);
    bool row = !strcmp(form, "row"), square = !strcmp(form, "square");
    struct kb_dims dims = row ? kb_1d(n) : square ? kb_2d(n, n) : kb_2d(m, !strcmp(form, "column") ? 1 : n);
    bool whole = dtype[0] == 'i' || dtype[0] == 'u', by_columns = kb_int(axis) == 0;
    kb_tensor made = kb_tensor_new(name, kb_dtype(dtype), dims, row || square ? kb_copies(KB_HBM, pes)
                                   : by_columns ? kb_cols(KB_HBM, pes) : kb_rows(KB_HBM, pes));
    if (!whole && !strcmp(kb_text(op), "eq"))
        write_few(made, kb_dtype(dtype), row ? n : !strcmp(form, "column") ? m : m * n);
    else
        kb_fill_uniform(made, kb_real(low), whole ? 100 : 2);
    return made;
}

KB_BENCH(op, "an op on every PE, against its reference", KB_TEXT(op, "exp", "op"),
         KB_WORD(form, "unary same row column number reduce two_rows square where", "its operands"),
         KB_TEXT(dtype, "f32", "of x"), KB_TEXT(with, "f32", "of the others"), KB_TEXT(to, "f32", "of the result"),
         KB_INT(m, 13, 1, 4096, "rows"), KB_INT(n, 37, 1, 4096, "columns"), KB_INT(axis, 1, 0, 1, "of a reduction"),
         KB_REAL(low, -2, -1000, 2, "least value"), KB_BOOL(async, false, "with _async"), KB_TEXT(pes, "*", "where"))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    const char *form = kb_word(form), *op = kb_text(op);
    struct op_args args = {.axis = (int)kb_int(axis), .async = kb_bool(async),
                           .x = operand("x", kb_text(dtype), "same", pes)};
    strncpy(args.op, op, sizeof args.op - 1);
    strncpy(args.form, form, sizeof args.form - 1);
    bool two = !strcmp(form, "two_rows"), where = !strcmp(form, "where");
    if (two || where || !strcmp(form, "same") || !strcmp(form, "row") || !strcmp(form, "column") ||
        !strcmp(form, "square"))
        args.y = operand("y", kb_text(with), two ? "row" : where ? "same" : form, pes);
    if (two || where)
        args.z = operand("z", kb_text(with), two ? "row" : "column", pes);
    bool reduces = !strcmp(form, "reduce"), by_columns = args.axis == 0;
    struct kb_dims dims = kb_2d(reduces && by_columns ? 1 : kb_int(m), reduces && !by_columns ? 1 : kb_int(n));
    struct kb_place place = by_columns ? kb_cols(KB_HBM, pes) : kb_rows(KB_HBM, pes);
    args.to = kb_tensor_new("to", kb_dtype(kb_text(to)), dims, place);
    kb_wait(kb_launch(op, pes, &args));
    kb_expect_close(args.to, reference(op, form, &args));
}

/* ---- lookups */

struct look_args { kb_tensor x, y, to; bool async, strided, in_place; };

KB_KERNEL(look, struct look_args)
{
    struct tl_shard x = load(tl, arg->x), y = load(tl, arg->y), out = tl_my_shard(tl, arg->to), to = room(tl, out);
    if (arg->strided) {                                 /* every other element of all three, y the other way round */
        struct tl_shard wide = tl_alloc(tl, x.dtype, 2 * x.shape[0]), large = tl_alloc(tl, y.dtype, y.shape[1], y.shape[0]);
        tl_load_into(tl, tl_every(tl, wide, 0, 1, 2), tl_my_shard(tl, arg->x));
        tl_load_into(tl, tl_transposed(tl, large, 0, 1), tl_my_shard(tl, arg->y));
        x = tl_every(tl, wide, 0, 1, 2);
        y = tl_transposed(tl, large, 0, 1);
        to = tl_every(tl, tl_alloc(tl, out.dtype, out.shape[0], 2 * out.shape[1]), 1, 0, 2);
    }
    if (arg->in_place)
        to = y;
    if (arg->async)
        tl_wait(tl, tl_gather_async(tl, to, x, y));
    else
        tl_gather(tl, to, x, y);
    tl_store(tl, out, to);
}

KB_BENCH(look, "elements by their positions", KB_TEXT(dtype, "f32", ""), KB_TEXT(with, "i32", "of the positions"),
         KB_INT(n, 100, 1, 1 << 20, "elements of x"), KB_INT(rows, 7, 1, 4096, ""), KB_INT(cols, 33, 1, 4096, ""),
         KB_BOOL(row, false, "the positions are one row"), KB_BOOL(strided, false, ""), KB_BOOL(async, false, ""),
         KB_INT(past, 0, 0, 1000, "positions beyond x that may be drawn"), KB_BOOL(below, false, "positions below 0"),
         KB_BOOL(in_place, false, "the result takes the place of the positions"), KB_TEXT(pes, "*", ""))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t n = kb_int(n), rows = kb_int(rows), cols = kb_int(cols), all = kb_bool(row) ? 1 : rows;
    enum kb_dtype dtype = kb_dtype(kb_text(dtype));
    kb_tensor x = kb_tensor_new("x", dtype, kb_1d(n), kb_copies(KB_HBM, pes));
    kb_tensor y = kb_tensor_new("y", kb_dtype(kb_text(with)), kb_2d(all, cols), kb_copies(KB_HBM, pes));
    kb_tensor to = kb_tensor_new("to", dtype, kb_2d(rows, cols), kb_copies(KB_HBM, pes));
    kb_fill_uniform(x, dtype == KB_u8 ? 0 : -100, 100);
    kb_fill_uniform(y, kb_bool(below) ? -5 : 0, (double)(n + kb_int(past)));
    double *value = kb_array(double, n), *position = kb_array(double, all * cols), *want = kb_array(double, rows * cols);
    kb_peek_many(x, 0, n, value);
    kb_peek_many(y, 0, all * cols, position);
    kb_wait(kb_launch(look, pes, &(struct look_args){x, y, to, kb_bool(async), kb_bool(strided), kb_bool(in_place)}));
    for (uint64_t i = 0; i < rows * cols; i++)
        want[i] = value[(uint64_t)position[i % (all * cols)]];
    kb_ref given = kb_ref_given(want, kb_2d(rows, cols));
    kb_expect_close(to, kb_ref_exact(kb_ref_cast(given, dtype)));
}
