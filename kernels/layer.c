/* layer.c: a transformer layer of Llama-3-8B's shapes, or of a part of each of its dimensions (layer.h).
 *
 * All weights have to be read, by the PE beside whose HBM they lie: with few tokens that bounds the layer, with many
 * the multiply-adds do. What stops it is neither: partial sums of all tokens go through links of the mesh four times,
 * in steps that wait for one another. The figures say how much of the time the first PE spends on what. */
#include "layer.h"

enum { LAYER_TOKENS = 4096, HEAD_DIM = 128 };

KB_KERNEL(transformer_layer, struct layer_args)
{
    layer(tl, arg);
}

/* ---- what the layer should give */

/* Columns of the weights of Q (0), K (1) or V (2), which lie PE by PE; or each pair (a, b) of them as (-b, a). */
static kb_ref columns_of(const struct layer_args *arg, uint64_t pes, uint32_t which, bool turned)
{
    const struct attention *a = &arg->attention;
    uint64_t all = (which ? a->kv_heads : a->heads) * a->head_dim, before = which == 2 ? all : 0;
    double *values = kb_array(double, arg->d * all);
    for (uint64_t pe = 0; pe < pes; pe++) {
        struct span q = layer_columns(a->heads * a->head_dim, pes, pe);
        struct span kv = layer_columns(2 * a->kv_heads * a->head_dim, pes, pe), mine = which ? kv : q;
        for (uint64_t i = 0; i < arg->d * mine.count; i++) {
            uint64_t row = i / mine.count, col = i % mine.count, to = mine.first + col - before;
            uint64_t from = pe * arg->qkv_cols + (which ? q.count : 0) + (turned ? col ^ 1 : col);
            if (to < all)
                values[row * all + to] = (turned && col % 2 == 0 ? -1 : 1) *
                                         kb_peek(arg->qkv, row * pes * arg->qkv_cols + from);
        }
    }
    return kb_ref_given(values, kb_2d(arg->d, all));
}

/* cos (0) or sin (1) of the angles of every column of some heads. */
static kb_ref turns_of(const struct layer_args *arg, uint64_t heads, uint32_t which)
{
    uint64_t cols = heads * HEAD_DIM;
    double *values = kb_array(double, arg->tokens * cols);
    for (uint64_t i = 0; i < arg->tokens * cols; i++) {
        uint64_t at = i / cols, pair = i % cols % HEAD_DIM / 2;
        values[i] = kb_peek(arg->rope, (which * HEAD_DIM / 2 + pair) * arg->tokens + at);
    }
    return kb_ref_given(values, kb_2d(arg->tokens, cols));
}

static kb_ref rotated(const struct layer_args *arg, kb_ref x, uint64_t pes, uint32_t which)
{
    uint64_t heads = which ? arg->attention.kv_heads : arg->attention.heads;
    kb_ref straight = kb_ref_gemm(x, columns_of(arg, pes, which, false));
    kb_ref turned = kb_ref_gemm(x, columns_of(arg, pes, which, true));
    return kb_ref_binary("add", kb_ref_binary("mul", straight, turns_of(arg, heads, 0)),
                         kb_ref_binary("mul", turned, turns_of(arg, heads, 1)));
}

/* Bounds of what each step is off by would add up to anything: the tolerance is that of the last matrix product. */
static kb_ref expected(const struct layer_args *arg, uint64_t pes)
{
    const struct attention *a = &arg->attention;
    kb_ref x = kb_ref_rmsnorm(arg->x, arg->gain[0], 1e-5);
    kb_ref o = kb_ref_attention(rotated(arg, x, pes, 0), rotated(arg, x, pes, 1),
                                kb_ref_gemm(x, columns_of(arg, pes, 2, false)), .heads = a->heads,
                                .kv_heads = a->kv_heads, .causal = true, .side_by_side = true);
    kb_ref sum = kb_ref_binary("add", arg->x, kb_ref_gemm(o, arg->out));
    kb_ref z = kb_ref_rmsnorm(sum, arg->gain[1], 1e-5);
    kb_ref hidden = kb_ref_binary("mul", kb_ref_unary("silu", kb_ref_gemm(z, arg->gate)), kb_ref_gemm(z, arg->up));
    return kb_ref_binary("add", kb_ref_exact(sum), kb_ref_gemm(kb_ref_exact(hidden), arg->down));
}

/* ---- the bench */

/* Weights, of which a row of k gives values of about the size of what it is multiplied with. */
static kb_tensor weights(const char *name, enum kb_dtype dtype, uint64_t k, uint64_t n, struct kb_place place)
{
    kb_tensor tensor = kb_tensor_new(name, dtype, kb_2d(k, n), place);
    if (kb_has_data())
        kb_fill_uniform(tensor, -1.7 / __builtin_sqrt(k), 1.7 / __builtin_sqrt(k));
    return tensor;
}

/* A column for each position: cosines of its angles, one for each pair of columns of a head, then sines. */
static kb_tensor angles(uint64_t tokens)
{
    float *values = kb_array(float, HEAD_DIM * tokens);
    for (uint64_t i = 0; i < tokens * HEAD_DIM / 2; i++) {
        uint64_t pair = i / tokens, at = i % tokens;
        double angle = at * __builtin_pow(500000, -2.0 * pair / HEAD_DIM);
        values[i] = __builtin_cos(angle);
        values[HEAD_DIM / 2 * tokens + i] = __builtin_sin(angle);
    }
    kb_tensor rope = kb_tensor_new("rope", KB_f32, kb_2d(HEAD_DIM, tokens), kb_copies(KB_SRAM, kb_pes("*.pe0")));
    kb_write(rope, values);
    return rope;
}

/* A matrix with a row for each token, of heads that are each with one PE: of so many PEs at equal distances those in
 * [from, from + heads), or as many as there are. */
static kb_tensor heads_of(const char *name, const struct layer_args *arg, struct kb_pes pes, uint64_t heads,
                          uint64_t from, uint64_t of)
{
    uint32_t *pe = kb_array(uint32_t, heads), count = 0;
    for (uint64_t i = from; i < from + heads; i++) {
        uint32_t with = pes.pe[i * pes.count / of];
        if (count == 0 || pe[count - 1] != with)
            pe[count++] = with;
    }
    struct kb_pes owners = {pe, count};
    return kb_tensor_new(name, arg->attention.dtype, kb_2d(arg->tokens, heads * HEAD_DIM), kb_cols(KB_HBM, owners));
}

/* Tokens of a chunk that fit into so many bytes: a row of `wide`, this PE's share of rows, and the most that one step
 * has beside them: Q, K and V with their angles and products; O; gate and up. */
static uint64_t tokens_that_fit(const struct layer_args *arg, uint64_t ffn, uint64_t pes, uint64_t room)
{
    uint64_t size = kb_dtype_bytes(arg->attention.dtype), rows = longest_block(arg->d, pes) * size;
    uint64_t qkv = arg->qkv_cols * (size + 12), o = rows + 2 * HEAD_DIM * size;
    uint64_t mlp = 2 * longest_block(ffn, pes) * size;
    uint64_t a_token = arg->d * size + rows + kb_max(kb_max(qkv, o), mlp), norm = 8 * arg->d * size + 4096;
    return kb_clamp(room > norm ? (room - norm) / a_token : 1, 1, arg->tokens);
}

static void tensors(struct layer_args *arg, struct kb_pes pes, uint64_t ffn)
{
    enum kb_dtype dtype = arg->attention.dtype;
    struct attention *a = &arg->attention;
    struct kb_place by_rows = kb_rows(KB_HBM, pes), by_cols = kb_cols(KB_HBM, pes);
    uint64_t d = arg->d;
    arg->x = kb_tensor_new("x", dtype, kb_2d(arg->tokens, d), by_rows);
    arg->y = kb_tensor_new("y", dtype, kb_2d(arg->tokens, d), by_rows);
    kb_fill_uniform(arg->x, -1, 1);
    for (uint32_t i = 0; i < 2; i++) {
        arg->gain[i] = kb_tensor_new("gain", dtype, kb_1d(d), kb_copies(KB_HBM, pes));
        kb_fill_uniform(arg->gain[i], 0.5, 1.5);
    }
    a->q = heads_of("q", arg, pes, a->heads, 0, a->heads);
    a->k = heads_of("k", arg, pes, a->kv_heads, 0, 2 * a->kv_heads);
    a->v = heads_of("v", arg, pes, a->kv_heads, a->kv_heads, 2 * a->kv_heads);
    a->o = heads_of("o", arg, pes, a->heads, 0, a->heads);
    arg->rope = angles(arg->tokens);
    arg->qkv = weights("qkv", dtype, d, pes.count * arg->qkv_cols, by_cols);
    arg->out = weights("out", dtype, d, d, by_rows);
    arg->gate = weights("gate", dtype, d, ffn, by_cols);
    arg->up = weights("up", dtype, d, ffn, by_cols);
    arg->down = weights("down", dtype, ffn, d, by_rows);
}

KB_BENCH(layer, "a transformer layer, tensor-parallel: Llama-3-8B's shapes, or a part of each dimension",
         KB_INT(tokens, 128, 1, LAYER_TOKENS, "of one sequence"),
         KB_WORD(scale, "8 4 2 1", "what each dimension is divided by; 8 is verified"),
         KB_INT(chunk, 0, 0, LAYER_TOKENS, "tokens at a time, if so many fit; 0: all that do"),
         KB_WORD(dtype, "f16 bf16 f32", "of all tensors"), PARAM_OF_MATMUL)
{
    uint64_t scale = kb_word(scale)[0] - '0', tokens = kb_int(tokens), d = 4096 / scale, ffn = 14336 / scale;
    uint64_t heads = 32 / scale, kv_heads = 8 / scale, kv_cols = kv_heads * HEAD_DIM;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes("*");
    pes.count = kb_min(pes.count, d / 2);
    struct layer_args args = {
        .order = kb_snake(pes), .tokens = tokens, .d = d, .weight_bytes = kb_size(tile),
        .spent_ps = kb_array(uint64_t, LAYER_PHASES),
        .qkv_cols = 2 * longest_block(d / 2, pes.count) + 2 * longest_block(kv_cols, pes.count),
        .attention = {.heads = heads, .kv_heads = kv_heads, .queries = tokens, .keys = tokens, .head_dim = HEAD_DIM,
                      .dtype = dtype, .causal = true, .side_by_side = true},
    };
    uint64_t room = kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes, left = room - room * 3 / 16;
    args.message_bytes = room / 128;
    args.chunk = tokens_that_fit(&args, ffn, pes.count, left);
    args.chunk = kb_int(chunk) ? kb_min(kb_int(chunk), args.chunk) : args.chunk;
    attention_plan(&args.attention, pes.count, left - 4096);
    tensors(&args, pes, ffn);
    kb_future launch = kb_launch(transformer_layer, pes, &args);
    kb_wait(launch);

    uint64_t size = kb_dtype_bytes(dtype), params = d * (2 * d + 2 * kv_cols + 3 * ffn);
    kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){
        .gemm_dtype = dtype, .macs = tokens * params + heads * HEAD_DIM * tokens * (tokens + 1),
        .hbm_read = (params + tokens * d) * size, .hbm_written = tokens * d * size });
    const char *const names[] = {"norms", "collectives", "weights", "exchange", "attention"};
    for (uint32_t i = 0; i < LAYER_PHASES; i++)
        kb_figure(names[i], args.spent_ps[i], KB_PS);
    if (kb_has_data() && scale == 8)
        kb_expect_close(args.y, expected(&args, pes.count));
}
