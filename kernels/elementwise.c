/* elementwise.c: y = act(scale * x + bias) + residual, element by element, in one pass over memory.
 *
 * The rows are split over the PEs' HBM slices. All ops are fused: a block goes through the whole chain in the TCM, so
 * that x and the residual are read once and y is written once, however long the chain is. The HBM bounds the kernel.
 * Floats stay f32 until the last op and are rounded once. */
#include "stream.h"

struct elementwise_args {
    kb_tensor x, bias, residual, y;                     /* bias, residual: NULL if there is none */
    double scale;
    const char *act;                                    /* an op of one operand, or "none" */
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

static bool has_act(const struct elementwise_args *arg)
{
    return arg->act[0] != 'n';
}

/* Submits the ops on a block one after the other. All but the last, which writes y, write `wide`. */
static tl_handle fused_ops(struct tl *tl, const struct elementwise_args *arg, const struct stream *s,
                           struct tl_shard wide)
{
    struct tl_shard y = s->out[0], residual = s->in[1], bias = s->in[arg->residual ? 2 : 1];
    uint32_t left = (arg->bias != NULL) + has_act(arg) + (arg->residual != NULL);
    tl_handle done = tl_mul_async(tl, left ? wide : y, s->in[0], tl_number(arg->scale));
    if (arg->bias)
        stream_then(tl, done, tl_add_async(tl, --left ? wide : y, wide, bias));
    if (has_act(arg))
        stream_then(tl, done, tl_compute_async(tl, &(struct tl_compute){
            .op = arg->act, .to = --left ? wide : y, .x = wide }));
    if (arg->residual)
        stream_then(tl, done, tl_add_async(tl, y, wide, residual));
    return done;
}

KB_KERNEL(elementwise, struct elementwise_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    enum kb_dtype inner = x.dtype == KB_i8 || x.dtype == KB_i32 ? x.dtype : KB_f32;
    if (x.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct stream plan = {.params = {arg->buffers, arg->block_rows, arg->block_cols},
                          .load = {x}, .store = {tl_my_shard(tl, arg->y)}, .in_place = true,
                          .scratch_bytes = kb_dtype_bytes(inner), .ops = 4, .cost = 8};
    uint32_t operands = 1;
    if (arg->residual)
        plan.load[operands++] = tl_my_shard(tl, arg->residual);
    if (arg->bias)
        plan.load[operands] = tl_my_shard(tl, arg->bias);
    struct stream s = stream_of(tl, plan);
    struct tl_shard wide = tl_alloc(tl, inner, s.block_rows * s.block_cols);
    while (stream_next(&s))
        tl_wait(tl, fused_ops(tl, arg, &s, stream_matrix(&s, wide, s.at.rows, s.at.cols)));
}

static kb_ref expected(const struct elementwise_args *arg)
{
    kb_ref y = kb_ref_binary("mul", arg->x, arg->scale);
    if (arg->bias)
        y = kb_ref_binary("add", y, arg->bias);
    if (has_act(arg))
        y = kb_ref_unary(arg->act, y);
    return arg->residual ? kb_ref_binary("add", y, arg->residual) : y;
}

KB_BENCH(elementwise, "act(scale * x + bias) + residual in one pass, rows over all PEs",
         KB_INT(rows, 10240, 1, 1 << 30, "rows"),
         KB_INT(cols, 2048, 1, 1 << 30, "columns"),
         KB_WORD(dtype, "f32 f16 bf16 i32 i8", "dtype of all tensors"),
         KB_REAL(scale, 2, -1024, 1024, "factor of x; a whole number for integers"),
         KB_BOOL(bias, true, "add a bias, one row, to each row"),
         KB_WORD(act, "gelu silu relu tanh sigmoid abs none", "activation; relu, abs or none for integers"),
         KB_BOOL(residual, true, "add a residual, a matrix"),
         STREAM_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    bool whole = dtype == KB_i8 || dtype == KB_i32;
    double most = whole ? 100 : 2;
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t size = kb_dtype_bytes(dtype);
    stream_needs(0, size * (1 + kb_bool(residual)), size * kb_bool(bias), whole ? size : 4, 0, 0);
    needs_math(dtype);
    if (whole && !__builtin_strchr("nra", kb_word(act)[0]))
        kb_refuse("act=%s is not defined for %s: take act=relu, abs or none", kb_word(act), kb_word(dtype));
    struct elementwise_args args = {
        .scale = kb_real(scale), .act = kb_word(act), .buffers = kb_int(buffers), .block_rows = kb_int(block_rows),
        .block_cols = kb_int(block_cols),
        .x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes)),
        .y = kb_tensor_new("y", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes)),
    };
    kb_fill_uniform(args.x, -most, most);
    if (kb_bool(bias)) {
        args.bias = kb_tensor_new("bias", dtype, kb_2d(1, cols), kb_copies(kb_main_memory(), pes));
        kb_fill_uniform(args.bias, -most, most);
    }
    if (kb_bool(residual)) {
        args.residual = kb_tensor_new("residual", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
        kb_fill_uniform(args.residual, -most, most);
    }

    kb_future launch = kb_launch(elementwise, pes, &args);
    kb_wait(launch);

    uint64_t bytes = n * kb_dtype_bytes(dtype), ops = 1 + kb_bool(bias) + kb_bool(residual);
    ops += has_act(&args) ? kb_op_cost(args.act) : 0;
    uint64_t rows_of_bias = kb_bool(bias) ? pes.count < rows ? pes.count : rows : 0;
    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = whole ? dtype : KB_f32, .math = ops * n, .reads = {args.x, args.bias, args.residual},
        .writes = {args.y} }, &(struct kb_work){
        .hbm_written = bytes,
        .hbm_read = bytes * (kb_bool(residual) ? 2 : 1) + rows_of_bias * cols * kb_dtype_bytes(dtype) });
    kb_expect_close(args.y, expected(&args));
}
