/* layer.c: a transformer layer as in Llama, tensor-parallel over the PEs of as few SIPs as pay: of Llama-3-8B's shapes, or
 * with each dimension divided by a scale.
 *
 *     a = x + attention(rotary(rmsnorm(x) Wq, rmsnorm(x) Wk), rmsnorm(x) Wv) Wo
 *     y = a + (silu(rmsnorm(a) Wgate) * rmsnorm(a) Wup) Wdown
 *
 * Wq, Wk, Wv, Wgate and Wup are split by columns, Wo and Wdown by rows: each PE multiplies all tokens with its own part
 * of the weights, which no other PE reads. After a matrix that is split by rows every PE has partial sums of the whole
 * result. A reduce-scatter adds them up, each PE adds the residual to its rows and normalises them, and an all-gather
 * gives all rows to all PEs: together they are the all-reduce of tensor parallelism. Q, K, V and the result of
 * attention lie in HBM, because the PE that computes a head's columns is not the one that works on its queries.
 *
 * Tokens are processed in chunks that fit into the TCM, in the matrix `wide`: first all chunks up to Q, K and V, then
 * attention, then all chunks through the rest. Weights are read once for each chunk.
 *
 * Another SIP takes over a share of the weights and of the multiply-adds, but the partial sums then cross the links between
 * SIPs. The layer is spread over that number of SIPs for which an estimate of the sum of both times is the shortest.
 *
 * With few tokens the reads of the weights bound the layer, with many tokens the multiply-adds. It reaches neither
 * bound: partial sums of all tokens cross the mesh four times, in steps that wait for one another. The figures say how
 * much of the time the first PE spends in each phase. */
#include "attention.h"
#include "mesh.h"
#include "sips.h"
#include "skinny_gemm.h"

enum { MOST_TOKENS = 4096, HEAD_DIM = 128 };

/* ---- the device side */

enum layer_phase { LAYER_NORM, LAYER_COLLECTIVES, LAYER_WEIGHTS, LAYER_EXCHANGE, LAYER_ATTENTION, LAYER_PHASES };

struct layer_args {
    kb_tensor x, y;                                     /* tokens x d, by rows */
    kb_tensor gain[2], rope;                            /* of d, a copy per PE; head_dim x tokens, a copy per sram */
    kb_tensor qkv, out, gate, up, down;                 /* weights; qkv has the columns of Q, K and V PE by PE */
    struct attention attention;
    struct kb_order order;
    uint64_t tokens, d, chunk, qkv_cols, message_bytes, weight_bytes;
    uint64_t *spent_ps;                                 /* the time of the first PE, by phase */
};

struct layer {
    struct tl *tl;
    const struct layer_args *arg;
    enum kb_dtype dtype;
    struct mesh mesh;
    struct pipeline pipeline;
    struct tl_shard wide;                               /* tokens of a chunk x d */
    uint64_t since_ps;                                  /* when the current phase began */
};

/* Adds the time since the last call to a phase. */
static void end_phase(struct layer *l, enum layer_phase phase)
{
    if (tl_pe(l->tl) == 0)
        l->arg->spent_ps[phase] += tl_now(l->tl) - l->since_ps;
    l->since_ps = tl_now(l->tl);
}

/* Loads a rectangle of a tensor into a new buffer. */
static struct tl_shard load_rect(struct layer *l, kb_tensor tensor, uint64_t row, uint64_t rows, uint64_t col,
                                 uint64_t cols)
{
    struct transfers transfers = {.begun = 0};
    struct tl_shard to = tl_alloc(l->tl, tl_shard(l->tl, tensor, 0).dtype, rows, cols);
    rect_load(l->tl, &transfers, to, (struct rect){tensor, row, col});
    transfers_wait(l->tl, &transfers);
    return to;
}

/* to = x / sqrt(mean(x^2) + eps) * gain, as many rows at a time as fit. */
static void rms_norm(struct layer *l, struct tl_shard to, struct tl_shard x, kb_tensor gains)
{
    struct tl *tl = l->tl;
    struct tl_shard gain = tl_load(tl, tl_my_shard(tl, gains));
    uint64_t some = kb_clamp(tl_room_bytes(tl) / (4 * l->arg->d + 8), 2, x.shape[0] + 1) - 1;
    struct tl_shard scratch = tl_alloc(tl, KB_f32, some, l->arg->d), roots = tl_alloc(tl, KB_f32, some, 1);
    for (uint64_t row = 0; row < x.shape[0]; row += some) {
        uint64_t rows = kb_min(some, x.shape[0] - row);
        struct tl_shard from = tl_part(tl, x, 0, row, rows), f = tl_part(tl, scratch, 0, 0, rows);
        struct tl_shard root = tl_part(tl, roots, 0, 0, rows);
        tl_mul(tl, f, from, from);
        tl_mean(tl, root, f, 1);
        tl_add(tl, root, root, tl_number(1e-5));
        tl_rsqrt(tl, root, root);
        tl_mul(tl, f, from, root);
        tl_mul(tl, tl_part(tl, to, 0, row, rows), f, gain);
    }
    tl_free(tl, roots);
    tl_free(tl, scratch);
    tl_free(tl, gain);
}

/* Normalises this PE's rows, which are those of `wide` from `mine` on, and gathers all PEs' rows in `wide`. */
static void norm_and_gather(struct layer *l, struct tl_shard wide, uint64_t mine, struct tl_shard rows,
                            kb_tensor gain)
{
    if (rows.rank)
        rms_norm(l, tl_part(l->tl, wide, 0, mine, rows.shape[0]), rows, gain);
    end_phase(l, LAYER_NORM);
    mesh_all_gather(&l->pipeline, &l->mesh, wide);
    end_phase(l, LAYER_COLLECTIVES);
}

/* Adds up all PEs' `wide` and adds this PE's rows of the sum to `rows`. */
static void reduce_and_add(struct layer *l, struct tl_shard rows, struct tl_shard wide, uint64_t mine)
{
    end_phase(l, LAYER_WEIGHTS);
    mesh_reduce_scatter(&l->pipeline, &l->mesh, wide);
    end_phase(l, LAYER_COLLECTIVES);
    if (rows.rank)
        tl_add(l->tl, rows, rows, tl_part(l->tl, wide, 0, mine, rows.shape[0]));
}

/* ---- Q, K and V */

/* The columns of a PE: they are split in pairs, because a rotation needs both. The columns of K are followed by those
 * of V, so that some PEs have columns of K and others of V. */
static struct indices pe_columns(uint64_t columns, uint64_t pes, uint64_t pe)
{
    struct indices pairs = block_range(columns / 2, pes, pe);
    return (struct indices){2 * pairs.first, 2 * pairs.count};
}

/* Loads the cosines and sines of a range of columns for the tokens from `first` on: a row of the table for each pair of
 * columns, into the rows of to[0] and to[1] from `row` on. */
static void load_angles(struct layer *l, struct transfers *transfers, struct tl_shard to[2], uint64_t row,
                        uint64_t first, struct indices cols)
{
    struct tl *tl = l->tl;
    struct tl_shard table = tl_shard(tl, l->arg->rope, tl_pe(tl) % tl_shards(l->arg->rope));
    uint64_t head_dim = l->arg->attention.head_dim, count = 0;
    table = tl_part(tl, table, 1, first, to[0].shape[1]);
    for (uint64_t c = cols.first; c < cols.first + cols.count; c += count, row += count / 2) {
        count = kb_min(head_dim - c % head_dim, cols.first + cols.count - c);
        for (uint32_t i = 0; i < 2; i++) {
            struct tl_shard from = tl_part(tl, table, 0, (i * head_dim + c % head_dim) / 2, count / 2);
            transfers_add(tl, transfers, tl_load_async(tl, tl_part(tl, to[i], 0, row, count / 2), from));
        }
    }
}

/* Rotates pairs of columns: (a, b) = (a cos - b sin, b cos + a sin). The angles are pairs x tokens. */
static void rotate_pairs(struct layer *l, struct tl_shard x, struct tl_shard cosines, struct tl_shard sines)
{
    struct tl *tl = l->tl;
    uint64_t tokens = x.shape[0], pairs = x.shape[1] / 2;
    struct tl_shard pair = tl_reshape(tl, x, tokens, pairs, 2);
    struct tl_shard c = tl_alloc(tl, KB_f32, tokens, pairs, 2), s = tl_alloc(tl, KB_f32, tokens, pairs, 2);
    tl_mul(tl, c, pair, tl_reshape(tl, tl_transposed(tl, cosines, 0, 1), tokens, pairs, 1));
    tl_mul(tl, s, pair, tl_reshape(tl, tl_transposed(tl, sines, 0, 1), tokens, pairs, 1));
    tl_sub(tl, tl_part(tl, pair, 2, 0, 1), tl_part(tl, c, 2, 0, 1), tl_part(tl, s, 2, 1, 1));
    tl_add(tl, tl_part(tl, pair, 2, 1, 1), tl_part(tl, c, 2, 1, 1), tl_part(tl, s, 2, 0, 1));
    tl_free(tl, s);
    tl_free(tl, c);
}

/* Rotates x, this PE's columns of Q and then of K, for the tokens from `first` on. */
static void rotate_qk(struct layer *l, struct tl_shard x, uint64_t first, struct indices q, struct indices k)
{
    struct tl *tl = l->tl;
    struct transfers transfers = {.begun = 0};
    struct tl_shard angles[2];
    for (uint32_t i = 0; i < 2; i++)
        angles[i] = tl_alloc(tl, KB_f32, x.shape[1] / 2, x.shape[0]);
    load_angles(l, &transfers, angles, 0, first, q);
    load_angles(l, &transfers, angles, q.count / 2, first, k);
    transfers_wait(tl, &transfers);
    rotate_pairs(l, x, angles[0], angles[1]);
    tl_free(tl, angles[1]);
    tl_free(tl, angles[0]);
}

/* Multiplies the tokens from `first` on with this PE's columns of Wq, Wk and Wv, rotates and stores the results. */
static void project_qkv(struct layer *l, struct tl_shard wide, uint64_t first)
{
    struct tl *tl = l->tl;
    const struct attention *a = &l->arg->attention;
    struct transfers transfers = {.begun = 0};
    uint64_t kv_cols = a->kv_heads * a->head_dim;
    struct indices q = pe_columns(a->heads * a->head_dim, tl_num_pes(tl), tl_pe(tl));
    struct indices kv = pe_columns(2 * kv_cols, tl_num_pes(tl), tl_pe(tl));
    struct indices k = range_window((struct indices){0, kv_cols}, kv.first, kv.count);
    struct indices v = {kv.first + k.count - kv_cols, kv.count - k.count};
    uint64_t all = q.count + kv.count;
    struct tl_shard to = tl_alloc(tl, l->dtype, wide.shape[0], all);
    struct tl_shard w = tl_part(tl, tl_my_shard(tl, l->arg->qkv), 1, 0, all);
    tl_wait(tl, skinny_gemm(tl, to, wide, w, l->arg->weight_bytes, NULL));
    end_phase(l, LAYER_WEIGHTS);
    if (v.count)
        rect_store(tl, &transfers, (struct rect){a->v, first, v.first}, tl_part(tl, to, 1, q.count + k.count, v.count));
    rotate_qk(l, tl_part(tl, to, 1, 0, q.count + k.count), first, q, k);
    rect_store(tl, &transfers, (struct rect){a->q, first, q.first}, tl_part(tl, to, 1, 0, q.count));
    if (k.count)
        rect_store(tl, &transfers, (struct rect){a->k, first, k.first}, tl_part(tl, to, 1, q.count, k.count));
    transfers_wait(tl, &transfers);
    tl_free(tl, to);
    end_phase(l, LAYER_EXCHANGE);
}

/* ---- after attention */

/* wide = this PE's columns of O times its rows of Wo. Loads all columns of the heads that they belong to: whole rows of
 * their shards, because the DMA takes as long for a piece of a row. */
static void project_out(struct layer *l, struct tl_shard wide, uint64_t first)
{
    struct tl_shard w = tl_my_shard(l->tl, l->arg->out);
    uint64_t head_dim = l->arg->attention.head_dim, from = w.first[0] / head_dim * head_dim;
    uint64_t cols = (w.first[0] + w.shape[0] - from + head_dim - 1) / head_dim * head_dim;
    struct tl_shard o = load_rect(l, l->arg->attention.o, first, wide.shape[0], from, cols);
    end_phase(l, LAYER_EXCHANGE);
    struct tl_shard own = tl_part(l->tl, o, 1, w.first[0] - from, w.shape[0]);
    tl_wait(l->tl, skinny_gemm(l->tl, wide, own, w, l->arg->weight_bytes, NULL));
    tl_free(l->tl, o);
}

/* wide = (silu(wide Wgate) * wide Wup) Wdown, for this PE's columns and rows. */
static void feed_forward(struct layer *l, struct tl_shard wide)
{
    struct tl *tl = l->tl;
    struct tl_shard gate = tl_my_shard(tl, l->arg->gate), up = tl_my_shard(tl, l->arg->up);
    struct tl_shard g = tl_alloc(tl, l->dtype, wide.shape[0], gate.shape[1]);
    struct tl_shard u = tl_alloc(tl, l->dtype, wide.shape[0], gate.shape[1]);
    tl_handle gated = skinny_gemm(tl, g, wide, gate, l->arg->weight_bytes, "silu");
    tl_wait(tl, skinny_gemm(tl, u, wide, up, l->arg->weight_bytes, NULL));
    tl_wait(tl, gated);
    tl_mul(tl, g, g, u);
    tl_wait(tl, skinny_gemm(tl, wide, g, tl_my_shard(tl, l->arg->down), l->arg->weight_bytes, NULL));
    tl_free(tl, u);
    tl_free(tl, g);
}

/* ---- the kernel */

/* The tokens [first, first + count) up to Q, K and V. */
static void before_attention(struct layer *l, uint64_t first, uint64_t count)
{
    struct indices mine = mesh_rows(&l->mesh, count, l->mesh.axes);
    struct tl_shard wide = tl_part(l->tl, l->wide, 0, 0, count), x = {.rank = 0};
    if (mine.count)
        x = load_rect(l, l->arg->x, first + mine.first, mine.count, 0, l->arg->d);
    norm_and_gather(l, wide, mine.first, x, l->arg->gain[0]);
    if (mine.count)
        tl_free(l->tl, x);
    project_qkv(l, wide, first);
}

/* The tokens [first, first + count) from O to y. */
static void after_attention(struct layer *l, uint64_t first, uint64_t count)
{
    struct indices mine = mesh_rows(&l->mesh, count, l->mesh.axes);
    struct tl_shard wide = tl_part(l->tl, l->wide, 0, 0, count), x = {.rank = 0};
    struct transfers transfers = {.begun = 0};
    project_out(l, wide, first);
    if (mine.count)
        x = load_rect(l, l->arg->x, first + mine.first, mine.count, 0, l->arg->d);
    reduce_and_add(l, x, wide, mine.first);
    norm_and_gather(l, wide, mine.first, x, l->arg->gain[1]);
    feed_forward(l, wide);
    reduce_and_add(l, x, wide, mine.first);
    if (mine.count) {
        rect_store(l->tl, &transfers, (struct rect){l->arg->y, first + mine.first, 0}, x);
        transfers_wait(l->tl, &transfers);
        tl_free(l->tl, x);
    }
    end_phase(l, LAYER_NORM);
}

KB_KERNEL(transformer_layer, struct layer_args)
{
    struct layer l = {.tl = tl, .arg = arg, .dtype = arg->attention.dtype, .since_ps = tl_now(tl)};
    struct rank_ring ring = ring_of(tl, arg->order);
    uint64_t chunk = kb_min(arg->chunk, arg->tokens);
    mesh_open(&l.mesh, tl);
    pipeline_open(&l.pipeline, tl, l.dtype, "add", arg->message_bytes, chunk * arg->d);

    l.wide = tl_alloc(tl, l.dtype, chunk, arg->d);
    for (uint64_t first = 0; first < arg->tokens; first += chunk)
        before_attention(&l, first, kb_min(chunk, arg->tokens - first));
    tl_free(tl, l.wide);

    dissemination_barrier(tl, &ring);
    end_phase(&l, LAYER_EXCHANGE);
    attention(tl, &arg->attention, attention_share(&arg->attention, tl_pe(tl), tl_num_pes(tl)));
    end_phase(&l, LAYER_ATTENTION);
    dissemination_barrier(tl, &ring);
    end_phase(&l, LAYER_EXCHANGE);

    l.wide = tl_alloc(tl, l.dtype, chunk, arg->d);
    for (uint64_t first = 0; first < arg->tokens; first += chunk)
        after_attention(&l, first, kb_min(chunk, arg->tokens - first));
    tl_free(tl, l.wide);
}

/* ---- the reference */

/* The columns of Wq (0), Wk (1) or Wv (2) in order, which qkv has PE by PE; `turned`: each pair (a, b) as (-b, a). */
static kb_ref weight_columns(const struct layer_args *arg, uint64_t pes, uint32_t which, bool turned)
{
    const struct attention *a = &arg->attention;
    uint64_t all = (which ? a->kv_heads : a->heads) * a->head_dim, before = which == 2 ? all : 0;
    double *values = kb_array(double, arg->d * all);
    for (uint64_t pe = 0; pe < pes; pe++) {
        struct indices q = pe_columns(a->heads * a->head_dim, pes, pe);
        struct indices kv = pe_columns(2 * a->kv_heads * a->head_dim, pes, pe), mine = which ? kv : q;
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

/* The cosine (0) or sine (1) of the angle of every column of some heads. */
static kb_ref column_angles(const struct layer_args *arg, uint64_t heads, uint32_t which)
{
    uint64_t cols = heads * HEAD_DIM;
    double *values = kb_array(double, arg->tokens * cols);
    for (uint64_t i = 0; i < arg->tokens * cols; i++) {
        uint64_t at = i / cols, pair = i % cols % HEAD_DIM / 2;
        values[i] = kb_peek(arg->rope, (which * HEAD_DIM / 2 + pair) * arg->tokens + at);
    }
    return kb_ref_given(values, kb_2d(arg->tokens, cols));
}

/* The rotated Q (0) or K (1). */
static kb_ref rotated(const struct layer_args *arg, kb_ref x, uint64_t pes, uint32_t which)
{
    uint64_t heads = which ? arg->attention.kv_heads : arg->attention.heads;
    kb_ref straight = kb_ref_gemm(x, weight_columns(arg, pes, which, false));
    kb_ref turned = kb_ref_gemm(x, weight_columns(arg, pes, which, true));
    return kb_ref_binary("add", kb_ref_binary("mul", straight, column_angles(arg, heads, 0)),
                         kb_ref_binary("mul", turned, column_angles(arg, heads, 1)));
}

static kb_ref expected(const struct layer_args *arg, uint64_t pes)
{
    const struct attention *a = &arg->attention;
    kb_ref x = kb_ref_rmsnorm(arg->x, arg->gain[0], 1e-5);
    kb_ref o = kb_ref_attention(rotated(arg, x, pes, 0), rotated(arg, x, pes, 1),
                                kb_ref_gemm(x, weight_columns(arg, pes, 2, false)), .heads = a->heads,
                                .kv_heads = a->kv_heads, .causal = true, .side_by_side = true);
    kb_ref sum = kb_ref_binary("add", arg->x, kb_ref_gemm(o, arg->out));
    kb_ref z = kb_ref_rmsnorm(sum, arg->gain[1], 1e-5);
    kb_ref gate = kb_ref_gemm(z, arg->gate);
    kb_ref_unrounded(gate);                             /* silu is an epilogue */
    kb_ref hidden = kb_ref_binary("mul", kb_ref_unary("silu", gate), kb_ref_gemm(z, arg->up));
    return kb_ref_binary("add", sum, kb_ref_gemm(hidden, arg->down));
}

/* ---- the bench */

/* Makes weights of k rows, of a size that keeps the values of x w about as large as those of x. */
static kb_tensor weights_tensor(const char *name, enum kb_dtype dtype, uint64_t k, uint64_t n, struct kb_place place)
{
    kb_tensor tensor = kb_tensor_new(name, dtype, kb_2d(k, n), place);
    if (kb_has_data())
        kb_fill_uniform(tensor, -1.2 / __builtin_sqrt(k), 1.2 / __builtin_sqrt(k));
    return tensor;
}

/* Makes the table of angles: a column for each position, with the cosine of each pair of columns of a head, then the
 * sines. */
static kb_tensor angles_tensor(uint64_t tokens, uint32_t sips)
{
    float *values = kb_has_data() ? kb_array(float, HEAD_DIM * tokens) : NULL;     /* times do not depend on them */
    for (uint64_t pair = 0; values && pair < HEAD_DIM / 2; pair++) {
        double frequency = __builtin_pow(500000, -2.0 * pair / HEAD_DIM);
        for (uint64_t at = 0; at < tokens; at++) {
            values[pair * tokens + at] = __builtin_cos(at * frequency);
            values[(HEAD_DIM / 2 + pair) * tokens + at] = __builtin_sin(at * frequency);
        }
    }
    enum kb_space of_cube = kb_has_space(KB_SRAM) ? KB_SRAM : KB_HBM;
    kb_tensor rope = kb_tensor_new("rope", KB_f32, kb_2d(HEAD_DIM, tokens), kb_copies(of_cube, sips_first("*.pe0", sips)));
    kb_write(rope, values);
    return rope;
}

/* Makes a matrix with a row for each token and HEAD_DIM columns for each head. Of `of` places at equal distances over
 * the PEs, head i is on place `from` + i; with fewer PEs than places, neighbouring heads share a PE. */
static kb_tensor heads_tensor(const char *name, const struct layer_args *arg, struct kb_pes pes, uint64_t heads,
                              uint64_t from, uint64_t of)
{
    uint32_t *pe = kb_array(uint32_t, heads), count = 0;
    for (uint64_t i = from; i < from + heads; i++) {
        uint32_t with = pes.pe[i * pes.count / of];
        if (count == 0 || pe[count - 1] != with)
            pe[count++] = with;
    }
    struct kb_pes owners = {pe, count};
    return kb_tensor_new(name, arg->attention.dtype, kb_2d(arg->tokens, heads * HEAD_DIM),
                         kb_cols(kb_main_memory(), owners));
}

/* The tokens of a chunk that fit into `room` bytes. A token takes a row of `wide`, its share of this PE's rows, and the
 * most that one step needs besides: Q, K and V with their angles and products; O; or gate and up. */
static uint64_t tokens_that_fit(const struct layer_args *arg, uint64_t ffn, uint64_t pes, uint64_t room)
{
    uint64_t size = kb_dtype_bytes(arg->attention.dtype), rows = block_longest(arg->d, pes) * size;
    uint64_t qkv = arg->qkv_cols * (size + 12), o = rows + 2 * HEAD_DIM * size;
    uint64_t mlp = 2 * block_longest(ffn, pes) * size;
    uint64_t a_token = arg->d * size + rows + kb_max(kb_max(qkv, o), mlp), norm = 8 * arg->d * size + 4096;
    return kb_clamp(room > norm ? (room - norm) / a_token : 1, 1, arg->tokens);
}

/* What a token and the buffers of messages take of a TCM: its rows of `wide` and x, and the most that one step needs besides. */
static uint64_t layer_least_bytes(const struct layer_args *arg, uint64_t ffn, uint64_t pes)
{
    uint64_t size = kb_dtype_bytes(arg->attention.dtype), row = tcm_padded(arg->d * size), cols = arg->qkv_cols;
    uint64_t norm = row + tcm_padded(4 * arg->d) + 64, mlp = 2 * tcm_padded(block_longest(ffn, pes) * size);
    uint64_t qkv = tcm_padded(cols * size) + 2 * tcm_padded(2 * cols) + 2 * tcm_padded(4 * cols);
    uint64_t o = tcm_padded((block_longest(arg->d, pes) + 2 * HEAD_DIM) * size);
    uint64_t segment = kb_min(arg->message_bytes * pipeline_chunks(kb_max(arg->message_bytes, 1)), row);
    return 2 * PIPELINE_SEGMENTS * tcm_padded(segment) + row + kb_max(row + kb_max(norm, mlp), kb_max(qkv, o)) + 2 * 64;
}

/* The number of SIPs over which the layer is spread: on each, its PEs do their share of the multiply-adds and read their
 * weights; four times a sum or a gather of all tokens crosses the links between SIPs, in no more steps than there are cubes. */
static uint32_t layer_sips(enum kb_dtype dtype, uint64_t tokens, uint64_t d, uint64_t params)
{
    uint32_t sips = sips_count(), in_sip = kb_pes("sip0.*").count, best = 1;
    uint64_t best_ps = UINT64_MAX, cubes = in_sip / kb_pes("sip0.cube0.*").count;
    for (uint32_t i = 1; i <= sips; i++) {
        uint64_t share = params / (i * in_sip), size = kb_dtype_bytes(dtype);
        uint64_t ps = kb_max(kb_gemm_ps(dtype, tokens * share), kb_memory_ps(kb_main_memory(), share * size, 0));
        if (i > 1)
            ps += 4 * sips_exchange_ps(tokens * d * size, cubes * i);
        if (ps < best_ps)
            best = i, best_ps = ps;
    }
    return best;
}

static void make_tensors(struct layer_args *arg, struct kb_pes pes, uint32_t sips, uint64_t ffn)
{
    enum kb_dtype dtype = arg->attention.dtype;
    struct attention *a = &arg->attention;
    struct kb_place by_rows = kb_rows(kb_main_memory(), pes), by_cols = kb_cols(kb_main_memory(), pes);
    uint64_t d = arg->d;
    arg->x = kb_tensor_new("x", dtype, kb_2d(arg->tokens, d), by_rows);
    arg->y = kb_tensor_new("y", dtype, kb_2d(arg->tokens, d), by_rows);
    kb_fill_uniform(arg->x, -1, 1);
    for (uint32_t i = 0; i < 2; i++) {
        arg->gain[i] = kb_tensor_new("gain", dtype, kb_1d(d), kb_copies(kb_main_memory(), pes));
        kb_fill_uniform(arg->gain[i], 0.5, 1.5);
    }
    a->q = heads_tensor("q", arg, pes, a->heads, 0, a->heads);
    a->k = heads_tensor("k", arg, pes, a->kv_heads, 0, 2 * a->kv_heads);
    a->v = heads_tensor("v", arg, pes, a->kv_heads, a->kv_heads, 2 * a->kv_heads);
    a->o = heads_tensor("o", arg, pes, a->heads, 0, a->heads);
    arg->rope = angles_tensor(arg->tokens, sips);
    arg->qkv = weights_tensor("qkv", dtype, d, pes.count * arg->qkv_cols, by_cols);
    arg->out = weights_tensor("out", dtype, d, d, by_rows);
    arg->gate = weights_tensor("gate", dtype, d, ffn, by_cols);
    arg->up = weights_tensor("up", dtype, d, ffn, by_cols);
    arg->down = weights_tensor("down", dtype, ffn, d, by_rows);
}

KB_BENCH(layer, "a transformer layer, tensor-parallel: Llama-3-8B's shapes, or each dimension divided by a scale",
         KB_INT(tokens, 128, 1, MOST_TOKENS, "tokens of one sequence"),
         KB_WORD(scale, "8 4 2 1", "divisor of each dimension; only 8 is verified"),
         KB_INT(chunk, 0, 0, MOST_TOKENS, "tokens at a time, never more than fit; 0: as many as fit"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of all tensors"), SKINNY_GEMM_PARAM)
{
    uint64_t scale = kb_word(scale)[0] - '0', tokens = kb_int(tokens), d = 4096 / scale, ffn = 14336 / scale;
    uint64_t heads = 32 / scale, kv_heads = 8 / scale, kv_cols = kv_heads * HEAD_DIM;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t params = d * (2 * d + 2 * kv_cols + 3 * ffn);
    uint32_t sips = layer_sips(dtype, tokens, d, params);
    struct kb_pes pes = sips_first("*", sips);
    pes.count = kb_min(pes.count, d / 2);
    struct layer_args args = {
        .order = kb_snake(pes), .tokens = tokens, .d = d, .weight_bytes = kb_size(tile),
        .spent_ps = kb_array(uint64_t, LAYER_PHASES),
        .qkv_cols = 2 * block_longest(d / 2, pes.count) + 2 * block_longest(kv_cols, pes.count),
        .attention = {.heads = heads, .kv_heads = kv_heads, .queries = tokens, .keys = tokens, .head_dim = HEAD_DIM,
                      .dtype = dtype, .causal = true, .side_by_side = true},
    };
    uint64_t room = tcm_allocatable_bytes(), left = room - room * 3 / 16;
    args.message_bytes = room / 128;
    needs_tcm(kb_max(layer_least_bytes(&args, ffn, pes.count), 128 * kb_dtype_bytes(dtype)), "a token", "take a larger scale");
    skinny_gemm_needs();
    needs_message(kb_dtype_bytes(dtype));
    attention_needs(&args.attention, attention_least_bytes(&args.attention) + 4096 + room - left);
    args.chunk = tokens_that_fit(&args, ffn, pes.count, left);
    if (kb_int(chunk))
        args.chunk = param_at_most("chunk", kb_int(chunk), args.chunk, "the tokens or what fits into the TCM");
    attention_plan(&args.attention, pes.count, left - 4096);
    make_tensors(&args, pes, sips, ffn);
    bool verified = kb_has_data() && scale == 8;
    kb_ref want = verified ? expected(&args, pes.count) : NULL;
    kb_future launch = kb_launch(transformer_layer, pes, &args);
    kb_wait(launch);

    uint64_t size = kb_dtype_bytes(dtype), rows = tokens * d * size;
    uint64_t chunks = kb_ceil_div(tokens, args.chunk);  /* each reads all weights */
    uint64_t attended = 2 * rows + 2 * tokens * kv_cols * size;     /* Q, K, V and O */
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = tokens * params + heads * HEAD_DIM * tokens * (tokens + 1),
        .reads = {args.x}, .read_bytes = params * size, .writes = {args.y} }, &(struct kb_work){
        .hbm_read = chunks * params * size + 2 * rows + attended, .hbm_written = rows + attended });
    const char *const names[] = {"norms", "collectives", "weights", "exchange", "attention"};
    for (uint32_t i = 0; i < LAYER_PHASES; i++)
        kb_figure(names[i], args.spent_ps[i], KB_PS);
    if (verified)
        kb_expect_close(args.y, want);
}
