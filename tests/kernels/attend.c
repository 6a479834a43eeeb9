/* attend.c: an attention whose K lies row by row, as its tiles are read, or column by column, which --why shall name. */
#include <kb/host.h>
#include <kb/tl.h>

struct attend_args { kb_tensor q, k, v, o; uint64_t tile; bool by_columns; };

struct tile {
    struct tl_shard k, v;
    tl_handle k_loaded, v_loaded;
};

static void begin_tile(struct tl *tl, struct tile *tile, struct tl_shard k, struct tl_shard v, uint64_t first)
{
    tile->k_loaded = tl_load_async(tl, tile->k, tl_part(tl, k, 0, first, tile->k.shape[0]));    /* K */
    tile->v_loaded = tl_load_async(tl, tile->v, tl_part(tl, v, 0, first, tile->v.shape[0]));    /* V */
}

/* O = exp(Q K^T) V, each row over the sum of its exponentials; Q is scaled. Loads of the next tile are under way. */
KB_KERNEL(attend, struct attend_args)
{
    struct tl_shard k = tl_my_shard(tl, arg->k), v = tl_my_shard(tl, arg->v), to = tl_my_shard(tl, arg->o);
    uint64_t rows = to.shape[0], keys = v.shape[0], dim = v.shape[1];
    struct tile tiles[2];
    for (unsigned i = 0; i < 2; i++)
        tiles[i] = (struct tile){.k = tl_alloc(tl, v.dtype, arg->tile, dim), .v = tl_alloc(tl, v.dtype, arg->tile, dim)};
    if (arg->by_columns)
        k = tl_transposed(tl, k, 0, 1);
    begin_tile(tl, &tiles[0], k, v, 0);
    struct tl_shard q = tl_load(tl, tl_my_shard(tl, arg->q)), scores = tl_alloc(tl, v.dtype, rows, arg->tile);
    struct tl_shard o = tl_alloc(tl, KB_f32, rows, dim), part = tl_alloc(tl, KB_f32, rows, dim);
    struct tl_shard sum = tl_alloc(tl, KB_f32, rows, 1), more = tl_alloc(tl, KB_f32, rows, 1);
    tl_scale(tl, q, q, tl_number(1 / __builtin_sqrt((double)dim)));
    for (uint64_t first = 0, i = 0; first < keys; first += arg->tile, i++) {
        struct tile *tile = &tiles[i % 2];
        if (first + arg->tile < keys)
            begin_tile(tl, &tiles[(i + 1) % 2], k, v, first + arg->tile);
        tl_wait(tl, tile->k_loaded);
        tl_dot(tl, scores, q, tl_transposed(tl, tile->k, 0, 1));
        tl_exp(tl, scores, scores);
        tl_wait(tl, tile->v_loaded);
        tl_sum(tl, i ? more : sum, scores, 1);
        tl_dot(tl, i ? part : o, scores, tile->v);
        if (i) {
            tl_add(tl, o, o, part);
            tl_add(tl, sum, sum, more);
        }
    }
    tl_recip(tl, sum, sum);
    struct tl_shard out = tl_alloc(tl, v.dtype, rows, dim);
    tl_mul(tl, out, o, sum);
    tl_store(tl, to, out);
}

KB_BENCH(attend, "softmax(Q K^T / sqrt(dim)) V of one head", KB_WORD(layout, "rows columns", "how K lies in HBM"),
         KB_INT(queries, 128, 1, 4096, "rows of Q and O"), KB_INT(keys, 256, 1, 4096, "rows of K and V"),
         KB_INT(dim, 64, 1, 256, "columns of all"), KB_INT(tile, 64, 1, 4096, "keys of a tile; divides keys"))
{
    struct kb_pes pes = kb_pes("*");
    bool by_columns = kb_word(layout)[0] == 'c';
    struct kb_dims of_q = kb_2d(kb_int(queries), kb_int(dim)), of_v = kb_2d(kb_int(keys), kb_int(dim));
    struct attend_args arg = {
        .q = kb_tensor_new("q", KB_f16, of_q, kb_rows(KB_HBM, pes)),
        .k = kb_tensor_new("k", KB_f16, by_columns ? kb_2d(kb_int(dim), kb_int(keys)) : of_v, kb_copies(KB_HBM, pes)),
        .v = kb_tensor_new("v", KB_f16, of_v, kb_copies(KB_HBM, pes)),
        .o = kb_tensor_new("o", KB_f16, of_q, kb_rows(KB_HBM, pes)), .tile = kb_int(tile), .by_columns = by_columns};
    kb_fill_uniform(arg.q, -1.7, 1.7);
    kb_fill_uniform(arg.k, -1.7, 1.7);
    kb_fill_uniform(arg.v, -1, 1);
    kb_wait(kb_launch(attend, pes, &arg));
    kb_expect_close(arg.o, by_columns ? kb_ref_attention(arg.q, kb_ref_transpose(arg.k), arg.v, .heads = 1, .kv_heads = 1)
                                      : kb_ref_attention(arg.q, arg.k, arg.v, .heads = 1, .kv_heads = 1));
}
