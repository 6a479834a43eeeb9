/* composites.c: benches of gemms and math as composites, in every form of their operands, against references. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdlib.h>
#include <string.h>

struct composite_args {
    kb_tensor a, b, c, row, block;
    const char *epilogues;                              /* "scale bias gelu": in this order */
    enum tl_scope scope;
    bool unscoped;
    bool transposed_a, transposed_b, pinned;
    uint64_t tile;
};

/* The second operand of an epilogue: a number for scales, a row for a bias, else a block. */
static struct tl_operand second(struct tl *tl, const struct composite_args *arg, const char *op)
{
    if (!strcmp(op, "scale") || !strcmp(op, "quant") || !strcmp(op, "div"))
        return tl_in(tl_number(3));
    if (!strcmp(op, "bias") || !strcmp(op, "dequant"))
        return tl_in(tl_my_shard(tl, arg->row));
    if (!strcmp(op, "add") || !strcmp(op, "sub") || !strcmp(op, "mul") || !strcmp(op, "max") || !strcmp(op, "min"))
        return tl_in(tl_my_shard(tl, arg->block));
    return (struct tl_operand){0};
}

/* The words of a text, one after the other, each in a place of its own. */
static const char *next_word(const char **text, char word[16])
{
    size_t length = strcspn(*text += strspn(*text, " "), " ");
    memcpy(word, *text, length);
    word[length] = 0;
    *text += length;
    return length ? word : NULL;
}

KB_KERNEL(gemm_of, struct composite_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    if (arg->transposed_a)
        a = tl_transposed(tl, a, 0, 1);
    if (arg->transposed_b)
        b = tl_transposed(tl, b, 0, 1);
    if (a.shape[0] == 0)
        return;
    if (arg->pinned) {
        struct tl_shard far = b;
        b = tl_load(tl, far);
        tl_after(tl, tl_load_async(tl, b, far));
    }
    struct tl_composite ask = {.op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = c.shape[1],
                               .tile = {arg->tile, arg->tile, arg->tile}, .a = tl_in(a), .b = tl_in(b),
                               .c = tl_out(c), .pin_b = arg->pinned};
    char words[TL_EPILOGUES][16];
    const char *rest = arg->epilogues, *word;
    while ((word = next_word(&rest, words[ask.epilogues]))) {
        struct tl_epilogue unscoped = {.op = word, .operand = second(tl, arg, word)}, scoped = unscoped;
        scoped.scope = arg->scope;
        ask.epilogue[ask.epilogues++] = arg->unscoped ? unscoped : scoped;
    }
    tl_wait(tl, tl_composite(tl, &ask));
}

static kb_ref followed(kb_ref ref, const struct composite_args *args)
{
    char word[16];
    const char *rest = args->epilogues, *op;
    while ((op = next_word(&rest, word))) {
        bool row = !strcmp(op, "bias") || !strcmp(op, "dequant");
        kb_ref_unrounded(ref);
        if (!strcmp(op, "quant"))
            ref = kb_ref_quant(ref, 3, kb_dtype(kb_text(out)));
        else if (!strcmp(op, "cast"))
            ref = kb_ref_cast(ref, kb_dtype(kb_text(out)));
        else if (!strcmp(op, "scale") || !strcmp(op, "div"))
            ref = kb_ref_binary(op, ref, 3);
        else if (row)
            ref = kb_ref_binary(op, ref, args->row);
        else if (strstr("add sub mul max min", op))
            ref = kb_ref_binary(op, ref, args->block);
        else
            ref = kb_ref_unary(op, ref);
    }
    return ref;
}

static kb_tensor filled(const char *name, const char *dtype, struct kb_dims dims, struct kb_place place)
{
    kb_tensor made = kb_tensor_new(name, kb_dtype(dtype), dims, place);
    kb_fill_uniform(made, dtype[0] == 'i' ? -100 : dtype[0] == 'u' ? 0 : -1, strchr("iu", dtype[0]) ? 100 : 1);
    return made;
}

KB_BENCH(gemm_of, "a gemm with epilogues", KB_TEXT(dtype, "f16", "of a and b"), KB_TEXT(out, "f16", "of c"),
         KB_TEXT(with, "f32", "of rows and blocks"), KB_INT(m, 70, 1, 4096, ""), KB_INT(k, 45, 1, 4096, ""),
         KB_INT(n, 51, 1, 4096, ""), KB_INT(tile, 16, 1, 4096, ""), KB_TEXT(epilogues, "", "one after the other"),
         KB_INT(scope, TL_OUTPUT_TILE, 0, 2, "of all of them: enum tl_scope"),
         KB_BOOL(unscoped, false, "the epilogues are given without a scope"), KB_BOOL(ta, false, "a is transposed"),
         KB_BOOL(tb, false, "b is transposed"), KB_BOOL(pinned, false, "b is loaded and pinned"),
         KB_TEXT(pes, "*", ""))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    bool ta = kb_bool(ta), tb = kb_bool(tb);
    kb_tensor a = filled("a", kb_text(dtype), ta ? kb_2d(k, m) : kb_2d(m, k), ta ? kb_cols(KB_HBM, pes)
                         : kb_rows(KB_HBM, pes));
    kb_tensor b = filled("b", kb_text(dtype), tb ? kb_2d(n, k) : kb_2d(k, n), kb_copies(KB_HBM, pes));
    struct composite_args args = {
        .a = a, .b = b, .c = kb_tensor_new("c", kb_dtype(kb_text(out)), kb_2d(m, n), kb_rows(KB_HBM, pes)),
        .row = filled("row", kb_text(with), kb_1d(n), kb_copies(KB_HBM, pes)),
        .block = filled("block", kb_text(with), kb_2d(m, n), kb_rows(KB_HBM, pes)),
        .epilogues = kb_text(epilogues), .scope = (enum tl_scope)kb_int(scope), .unscoped = kb_bool(unscoped),
        .transposed_a = ta, .transposed_b = tb, .pinned = kb_bool(pinned), .tile = kb_int(tile)};
    kb_wait(kb_launch(gemm_of, pes, &args));
    if (args.scope != TL_OUTPUT_TILE)                   /* what --data debug checks is all */
        return;
    kb_ref product = kb_ref_gemm(ta ? kb_ref_transpose(a) : kb_ref_copy(a), tb ? kb_ref_transpose(b) : kb_ref_copy(b));
    kb_ref expected = followed(product, &args);
    kb_ref_unrounded(expected);
    bool whole = kb_text(out)[0] == 'i' || kb_text(out)[0] == 'u';
    kb_expect_close(args.c, whole ? kb_ref_cast(expected, kb_dtype(kb_text(out))) : expected);
}

/* ---- operands with axes of their own */

struct axes_args { kb_tensor x, y, c; struct tl_axes axes; uint64_t tile; bool of_b; };

/* The rows, or the columns. */
static uint64_t all_of(const struct tl_axis *axis)
{
    uint64_t all = 1;
    for (uint32_t i = 0; i < TL_AXES; i++)
        all *= axis[i].size ? axis[i].size : 1;
    return all;
}

/* How far index i of the rows or columns is behind the first. */
static uint64_t distance(const struct tl_axis *axis, uint64_t i)
{
    uint64_t far = 0;
    for (uint32_t at = TL_AXES; at-- > 0;) {
        far += axis[at].size ? i % axis[at].size * axis[at].stride : 0;
        i /= axis[at].size ? axis[at].size : 1;
    }
    return far;
}

KB_KERNEL(axes_of, struct axes_args)
{
    struct tl_shard x = tl_load(tl, tl_my_shard(tl, arg->x)), y = tl_my_shard(tl, arg->y), c = tl_my_shard(tl, arg->c);
    struct tl_operand with_axes = tl_in_axes(tl_part(tl, x, 0, 3, x.shape[0] - 3), &arg->axes);
    struct tl_composite ask = {.op = TL_GEMM, .m = c.shape[0], .k = arg->of_b ? y.shape[1] : y.shape[0],
                               .n = c.shape[1], .tile = {arg->tile, arg->tile, arg->tile}, .c = tl_out(c),
                               .a = arg->of_b ? tl_in(y) : with_axes, .b = arg->of_b ? with_axes : tl_in(y),
                               .pin_a = !arg->of_b, .pin_b = arg->of_b};
    for (int i = 0; i < 2; i++)                         /* the second time over what the first has brought together */
        tl_wait(tl, tl_composite(tl, &ask));
}

/* "3*14 2*1": sizes and strides. */
static void axes_in(struct tl_axis axis[TL_AXES], const char *text)
{
    char *at = (char *)text;
    for (uint32_t i = 0; i < TL_AXES && *at; i++) {
        axis[i].size = strtoull(at, &at, 10);
        axis[i].stride = strtoull(at + 1, &at, 10);
    }
}

KB_BENCH(axes_of, "a gemm of an operand with axes of its own", KB_TEXT(dtype, "f16", "of a and b"),
         KB_TEXT(out, "f16", "of c"), KB_TEXT(rows, "2*9 3*1", ""), KB_TEXT(cols, "5*1", ""),
         KB_INT(other, 7, 1, 4096, "columns of b, or rows of a"), KB_INT(tile, 8, 1, 4096, ""),
         KB_BOOL(of_b, false, "it is b"), KB_TEXT(pes, "*", ""))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct axes_args args = {.tile = kb_int(tile), .of_b = kb_bool(of_b)};
    axes_in(args.axes.row, kb_text(rows));
    axes_in(args.axes.col, kb_text(cols));
    uint64_t rows = all_of(args.axes.row), cols = all_of(args.axes.col), other = kb_int(other);
    uint64_t last = distance(args.axes.row, rows - 1) + distance(args.axes.col, cols - 1), count = last + 4;
    args.x = filled("x", kb_text(dtype), kb_1d(count), kb_copies(KB_HBM, pes));
    args.y = filled("y", kb_text(dtype), args.of_b ? kb_2d(other, rows) : kb_2d(cols, other), kb_copies(KB_HBM, pes));
    args.c = kb_tensor_new("c", kb_dtype(kb_text(out)), args.of_b ? kb_2d(other, cols) : kb_2d(rows, other),
                           kb_copies(KB_HBM, pes));
    double *x = kb_array(double, count), *matrix = kb_array(double, rows * cols);
    kb_peek_many(args.x, 0, count, x);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            matrix[i * cols + j] = x[3 + distance(args.axes.row, i) + distance(args.axes.col, j)];
    kb_wait(kb_launch(axes_of, pes, &args));
    kb_ref given = kb_ref_given(matrix, kb_2d(rows, cols));
    if (kb_text(dtype)[0] == 'i')
        given = kb_ref_cast(given, KB_i8);
    given = kb_ref_exact(given);
    kb_expect_close(args.c, args.of_b ? kb_ref_gemm(args.y, given) : kb_ref_gemm(given, args.y));
}

/* ---- math */

struct math_args { kb_tensor x, y, to; const char *op; bool column, in_place; };

KB_KERNEL(math_of, struct math_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), to = tl_my_shard(tl, arg->to);
    if (x.shape[0] == 0)
        return;
    struct tl_composite ask = {.op = TL_MATH, .math = arg->op, .m = x.shape[0], .n = x.shape[1], .tile = {7, 16},
                               .src = tl_in(x), .dst = tl_out(arg->in_place ? x : to), .relation = TL_LT};
    if (arg->y)
        ask.src2 = tl_in(tl_my_shard(tl, arg->y));
    tl_wait(tl, tl_composite(tl, &ask));
    if (arg->in_place)
        tl_store(tl, to, tl_load(tl, x));
}

KB_BENCH(math_of, "math on tiles", KB_TEXT(op, "exp", ""), KB_WORD(form, "unary block row column one", "of src2"),
         KB_TEXT(dtype, "f16", "of src"), KB_TEXT(with, "f16", "of src2"), KB_TEXT(to, "f16", "of dst"),
         KB_INT(m, 70, 1, 4096, ""), KB_INT(n, 51, 1, 4096, ""), KB_BOOL(in_place, false, "dst is src"),
         KB_TEXT(pes, "*", ""))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t m = kb_int(m), n = kb_int(n);
    const char *form = kb_word(form), *op = kb_text(op);
    struct kb_place rows = kb_rows(KB_HBM, pes), copies = kb_copies(KB_HBM, pes);
    struct math_args args = {.x = filled("x", kb_text(dtype), kb_2d(m, n), rows), .op = op,
                             .to = kb_tensor_new("to", kb_dtype(kb_text(to)), kb_2d(m, n), rows),
                             .in_place = kb_bool(in_place)};
    if (strcmp(form, "unary"))
        args.y = !strcmp(form, "block") ? filled("y", kb_text(with), kb_2d(m, n), rows)
                 : !strcmp(form, "column") ? filled("y", kb_text(with), kb_2d(m, 1), rows)
                 : filled("y", kb_text(with), kb_1d(!strcmp(form, "row") ? n : 1), copies);
    kb_ref expected = !strcmp(op, "cast") ? kb_ref_cast(args.x, kb_dtype(kb_text(to)))
                      : !strcmp(op, "quant") ? kb_ref_quant(args.x, args.y, kb_dtype(kb_text(to)))
                      : !strcmp(op, "cmp") ? kb_ref_binary("lt", args.x, args.y)
                      : args.y ? kb_ref_binary(op, args.x, args.y) : kb_ref_unary(op, args.x);
    kb_wait(kb_launch(math_of, pes, &args));
    kb_expect_close(args.to, expected);
}
