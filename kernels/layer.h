/* layer.h: a transformer layer as Llama's, tensor-parallel over all PEs of a launch; the device side.
 *
 *     a = x + attention(rotary(rmsnorm(x) Wq, rmsnorm(x) Wk), rmsnorm(x) Wv) Wo
 *     y = a + (silu(rmsnorm(a) Wgate) * rmsnorm(a) Wup) Wdown
 *
 * Wq, Wk, Wv, Wgate and Wup are split by columns, Wo and Wdown by rows: each PE multiplies all tokens with its part of
 * the weights, which no other one reads. Behind a matrix that is split by rows all PEs have partial sums of all of the
 * result. A reduce-scatter adds them up, each PE adds and normalises the rows that it is left with, and a gather gives
 * them to all again: the two are the all-reduce of tensor parallelism. Q, K, V and what attention makes of them lie in
 * HBM, for the PE that has a head's columns is not the one that works on its queries.
 *
 * Tokens are taken in chunks that fit the TCM, `wide` there: first all of them up to Q, K and V, then attention, then
 * all of them through the rest. Weights are read once for each chunk. */
#ifndef LAYER_H
#define LAYER_H

#include "attention.h"
#include "matmul.h"
#include "mesh.h"

enum layer_phase { LAYER_NORM, LAYER_COLLECTIVES, LAYER_WEIGHTS, LAYER_EXCHANGE, LAYER_ATTENTION, LAYER_PHASES };

struct layer_args {
    kb_tensor x, y;                                     /* tokens x d, by rows */
    kb_tensor gain[2], rope;                            /* of d, with each PE; head_dim x tokens, in srams */
    kb_tensor qkv, out, gate, up, down;                 /* weights */
    struct attention attention;
    struct kb_order order;
    uint64_t tokens, d, chunk, qkv_cols, message_bytes, weight_bytes;
    uint64_t *spent_ps;                                 /* by the first PE, for each phase */
};

struct layer {
    struct tl *tl;
    const struct layer_args *arg;
    enum kb_dtype dtype;
    struct mesh mesh;
    struct pipe pipe;
    struct tl_shard wide;                               /* tokens of a chunk x d */
    uint64_t since_ps;
};

/* The time since the last call was spent on a phase. */
static inline void layer_spent(struct layer *l, enum layer_phase phase)
{
    if (tl_pe(l->tl) == 0)
        l->arg->spent_ps[phase] += tl_now(l->tl) - l->since_ps;
    l->since_ps = tl_now(l->tl);
}

/* ---- rows */

/* Loads rows of a tensor into a new buffer. */
static inline struct tl_shard layer_load(struct layer *l, kb_tensor tensor, uint64_t row, uint64_t rows, uint64_t col,
                                         uint64_t cols)
{
    struct moves moves = {.begun = 0};
    struct tl_shard to = tl_alloc(l->tl, tl_shard(l->tl, tensor, 0).dtype, rows, cols);
    rect_load(l->tl, &moves, to, (struct rect){tensor, row, col});
    moves_wait(l->tl, &moves);
    return to;
}

/* to = x / sqrt(mean(x^2) + eps) * gain, a few rows at a time. */
static inline void layer_norm(struct layer *l, struct tl_shard to, struct tl_shard x, kb_tensor gains)
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

/* The norm of this PE's rows, to all PEs: into `wide`, in which they lie from row `mine` on. */
static inline void layer_norm_gather(struct layer *l, struct tl_shard wide, uint64_t mine, struct tl_shard rows,
                                     kb_tensor gain)
{
    if (rows.rank)
        layer_norm(l, tl_part(l->tl, wide, 0, mine, rows.shape[0]), rows, gain);
    layer_spent(l, LAYER_NORM);
    mesh_all_gather(&l->pipe, &l->mesh, wide);
    layer_spent(l, LAYER_COLLECTIVES);
}

/* rows += this PE's rows of the sum of all PEs' `wide`. */
static inline void layer_add_sum(struct layer *l, struct tl_shard rows, struct tl_shard wide, uint64_t mine)
{
    layer_spent(l, LAYER_WEIGHTS);
    mesh_reduce_scatter(&l->pipe, &l->mesh, wide);
    layer_spent(l, LAYER_COLLECTIVES);
    if (rows.rank)
        tl_add(l->tl, rows, rows, tl_part(l->tl, wide, 0, mine, rows.shape[0]));
}

/* ---- up to Q, K and V */

/* Columns that a PE has of many: they are shared out in pairs, for a rotation needs both. Those of K are followed by
 * those of V, so that some PEs have columns of K and others of V. */
static inline struct span layer_columns(uint64_t columns, uint64_t pes, uint64_t pe)
{
    struct span pairs = block_of(columns / 2, pes, pe);
    return (struct span){2 * pairs.first, 2 * pairs.count};
}

/* Of a span, what lies in [0, columns). */
static inline uint64_t layer_below(struct span span, uint64_t columns)
{
    return span.first < columns ? kb_min(span.count, columns - span.first) : 0;
}

/* Loads the cosines of pairs for tokens from `first` on, and their sines: the pairs of columns from `col` on of all
 * heads, a row of the table for each, into the rows of `to` from `row` on. */
static inline void layer_turns(struct layer *l, struct moves *moves, struct tl_shard to[2], uint64_t row,
                               uint64_t first, struct span cols)
{
    struct tl *tl = l->tl;
    struct tl_shard table = tl_shard(tl, l->arg->rope, tl_pe(tl) % tl_shards(l->arg->rope));
    uint64_t head_dim = l->arg->attention.head_dim, count = 0;
    table = tl_part(tl, table, 1, first, to[0].shape[1]);
    for (uint64_t c = cols.first; c < cols.first + cols.count; c += count, row += count / 2) {
        count = kb_min(head_dim - c % head_dim, cols.first + cols.count - c);
        for (uint32_t i = 0; i < 2; i++) {
            struct tl_shard from = tl_part(tl, table, 0, (i * head_dim + c % head_dim) / 2, count / 2);
            moves_add(tl, moves, tl_load_async(tl, tl_part(tl, to[i], 0, row, count / 2), from));
        }
    }
}

/* Rotates pairs of columns: (a, b) = (a cos - b sin, b cos + a sin). */
static inline void layer_rotate(struct layer *l, struct tl_shard x, struct tl_shard turn_cos, struct tl_shard turn_sin)
{
    struct tl *tl = l->tl;
    uint64_t tokens = x.shape[0], pairs = x.shape[1] / 2;
    struct tl_shard pair = tl_reshape(tl, x, tokens, pairs, 2);
    struct tl_shard c = tl_alloc(tl, KB_f32, tokens, pairs, 2), s = tl_alloc(tl, KB_f32, tokens, pairs, 2);
    tl_mul(tl, c, pair, tl_reshape(tl, tl_transposed(tl, turn_cos, 0, 1), tokens, pairs, 1));
    tl_mul(tl, s, pair, tl_reshape(tl, tl_transposed(tl, turn_sin, 0, 1), tokens, pairs, 1));
    tl_sub(tl, tl_part(tl, pair, 2, 0, 1), tl_part(tl, c, 2, 0, 1), tl_part(tl, s, 2, 1, 1));
    tl_add(tl, tl_part(tl, pair, 2, 1, 1), tl_part(tl, c, 2, 1, 1), tl_part(tl, s, 2, 0, 1));
    tl_free(tl, s);
    tl_free(tl, c);
}

/* x is columns of Q, then of K. */
static inline void layer_rope(struct layer *l, struct tl_shard x, uint64_t first, struct span q, struct span k)
{
    struct tl *tl = l->tl;
    struct moves moves = {.begun = 0};
    struct tl_shard turns[2];
    for (uint32_t i = 0; i < 2; i++)
        turns[i] = tl_alloc(tl, KB_f32, x.shape[1] / 2, x.shape[0]);
    layer_turns(l, &moves, turns, 0, first, q);
    layer_turns(l, &moves, turns, q.count / 2, first, k);
    moves_wait(tl, &moves);
    layer_rotate(l, x, turns[0], turns[1]);
    tl_free(tl, turns[1]);
    tl_free(tl, turns[0]);
}

static inline void layer_qkv(struct layer *l, struct tl_shard wide, uint64_t first)
{
    struct tl *tl = l->tl;
    const struct attention *a = &l->arg->attention;
    struct moves moves = {.begun = 0};
    uint64_t kv_cols = a->kv_heads * a->head_dim;
    struct span q = layer_columns(a->heads * a->head_dim, tl_num_pes(tl), tl_pe(tl));
    struct span kv = layer_columns(2 * kv_cols, tl_num_pes(tl), tl_pe(tl));
    struct span k = {kv.first, layer_below(kv, kv_cols)}, v = {kv.first + k.count - kv_cols, kv.count - k.count};
    uint64_t all = q.count + kv.count;
    struct tl_shard to = tl_alloc(tl, l->dtype, wide.shape[0], all);
    tl_wait(tl, matmul(tl, to, wide, tl_part(tl, tl_my_shard(tl, l->arg->qkv), 1, 0, all), l->arg->weight_bytes,
                       NULL));
    layer_spent(l, LAYER_WEIGHTS);
    if (v.count)
        rect_store(tl, &moves, (struct rect){a->v, first, v.first}, tl_part(tl, to, 1, q.count + k.count, v.count));
    layer_rope(l, tl_part(tl, to, 1, 0, q.count + k.count), first, q, k);
    rect_store(tl, &moves, (struct rect){a->q, first, q.first}, tl_part(tl, to, 1, 0, q.count));
    if (k.count)
        rect_store(tl, &moves, (struct rect){a->k, first, k.first}, tl_part(tl, to, 1, q.count, k.count));
    moves_wait(tl, &moves);
    tl_free(tl, to);
    layer_spent(l, LAYER_EXCHANGE);
}

/* ---- behind attention */

/* wide = this PE's columns of O times its rows of Wo. All columns of their heads are loaded: whole rows where they lie,
 * for the DMA takes as long for each piece of a row. */
static inline void layer_out(struct layer *l, struct tl_shard wide, uint64_t first)
{
    struct tl_shard w = tl_my_shard(l->tl, l->arg->out);
    uint64_t head_dim = l->arg->attention.head_dim, from = w.first[0] / head_dim * head_dim;
    uint64_t cols = (w.first[0] + w.shape[0] - from + head_dim - 1) / head_dim * head_dim;
    struct tl_shard o = layer_load(l, l->arg->attention.o, first, wide.shape[0], from, cols);
    layer_spent(l, LAYER_EXCHANGE);
    tl_wait(l->tl, matmul(l->tl, wide, tl_part(l->tl, o, 1, w.first[0] - from, w.shape[0]), w,
                              l->arg->weight_bytes, NULL));
    tl_free(l->tl, o);
}

/* wide = (silu(wide Wgate) * wide Wup) Wdown, of this PE's columns and rows. */
static inline void layer_mlp(struct layer *l, struct tl_shard wide)
{
    struct tl *tl = l->tl;
    struct tl_shard gate = tl_my_shard(tl, l->arg->gate), up = tl_my_shard(tl, l->arg->up);
    struct tl_shard g = tl_alloc(tl, l->dtype, wide.shape[0], gate.shape[1]);
    struct tl_shard u = tl_alloc(tl, l->dtype, wide.shape[0], gate.shape[1]);
    tl_handle gated = matmul(tl, g, wide, gate, l->arg->weight_bytes, "silu");
    tl_wait(tl, matmul(tl, u, wide, up, l->arg->weight_bytes, NULL));
    tl_wait(tl, gated);
    tl_mul(tl, g, g, u);
    tl_wait(tl, matmul(tl, wide, g, tl_my_shard(tl, l->arg->down), l->arg->weight_bytes, NULL));
    tl_free(tl, u);
    tl_free(tl, g);
}

/* ---- all of it */

static inline void layer_before_attention(struct layer *l, uint64_t first, uint64_t count)
{
    struct span mine = mesh_span(&l->mesh, count, l->mesh.axes);
    struct tl_shard wide = tl_part(l->tl, l->wide, 0, 0, count), x = {.rank = 0};
    if (mine.count)
        x = layer_load(l, l->arg->x, first + mine.first, mine.count, 0, l->arg->d);
    layer_norm_gather(l, wide, mine.first, x, l->arg->gain[0]);
    if (mine.count)
        tl_free(l->tl, x);
    layer_qkv(l, wide, first);
}

static inline void layer_after_attention(struct layer *l, uint64_t first, uint64_t count)
{
    struct span mine = mesh_span(&l->mesh, count, l->mesh.axes);
    struct tl_shard wide = tl_part(l->tl, l->wide, 0, 0, count), x = {.rank = 0};
    struct moves moves = {.begun = 0};
    layer_out(l, wide, first);
    if (mine.count)
        x = layer_load(l, l->arg->x, first + mine.first, mine.count, 0, l->arg->d);
    layer_add_sum(l, x, wide, mine.first);
    layer_norm_gather(l, wide, mine.first, x, l->arg->gain[1]);
    layer_mlp(l, wide);
    layer_add_sum(l, x, wide, mine.first);
    if (mine.count) {
        rect_store(l->tl, &moves, (struct rect){l->arg->y, first + mine.first, 0}, x);
        moves_wait(l->tl, &moves);
        tl_free(l->tl, x);
    }
    layer_spent(l, LAYER_NORM);
}

static inline void layer_attention(struct layer *l)
{
    const struct attention *a = &l->arg->attention;
    struct ring all = ring_of(l->tl, l->arg->order);
    barrier(l->tl, &all);
    layer_spent(l, LAYER_EXCHANGE);
    attention(l->tl, a, attention_share(a, tl_pe(l->tl), tl_num_pes(l->tl)));
    layer_spent(l, LAYER_ATTENTION);
    barrier(l->tl, &all);
    layer_spent(l, LAYER_EXCHANGE);
}

static inline void layer(struct tl *tl, const struct layer_args *arg)
{
    struct layer l = {.tl = tl, .arg = arg, .dtype = arg->attention.dtype, .since_ps = tl_now(tl)};
    uint64_t chunk = kb_min(arg->chunk, arg->tokens);
    mesh_open(&l.mesh, tl);
    pipe_open(&l.pipe, tl, l.dtype, "add", arg->message_bytes, chunk * arg->d);
    for (uint32_t part = 0; part < 2; part++) {
        l.wide = tl_alloc(tl, l.dtype, chunk, arg->d);
        for (uint64_t first = 0; first < arg->tokens; first += chunk) {
            uint64_t count = kb_min(chunk, arg->tokens - first);
            part ? layer_after_attention(&l, first, count) : layer_before_attention(&l, first, count);
        }
        tl_free(tl, l.wide);
        if (part == 0)
            layer_attention(&l);
    }
}

#endif
