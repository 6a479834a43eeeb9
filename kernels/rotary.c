/* rotary.c: rotary position embedding: each head's points are rotated by angles that grow with the token's position.
 *
 * The first and the second half of a head are the two coordinates of head_dim / 2 points, as in Llama. Point i of a
 * token is rotated by position * theta^(-2 i / head_dim).
 *
 * The tokens are split over the PEs' HBM slices and stream through each PE's TCM. A table of cosines and sines in f32
 * is split in the same way and serves all heads. Products are f32 and rounded once. Each element is read once, used by
 * three ops, and written once: the HBM bounds the kernel. */
#include "stream.h"

enum { BLOCK_BYTES = 64 << 10 };                        /* a smaller block has too much fixed time for its transfers */

struct rotary_args {
    kb_tensor x, table, y;                              /* tokens x heads x 2 x points; table: tokens x head_dim */
    uint32_t buffers;
    uint64_t block_rows;
    uint64_t at_once;                                   /* most tokens whose table lies in the TCM at a time */
};

/* Rotates x, tokens x heads x head_dim, in place by a table of tokens x head_dim: in each row the cosines, then the
 * sines. u and v are scratch of as many elements as x. Blocks until it is done. */
static void rotate(struct tl *tl, struct tl_shard x, struct tl_shard table, struct tl_shard u, struct tl_shard v)
{
    uint64_t tokens = x.shape[0], heads = x.shape[1], half = x.shape[2] / 2;
    table = tl_reshape(tl, table, tokens, 1, 2, half);
    u = tl_reshape(tl, u, tokens, heads, 2, half);
    v = tl_reshape(tl, v, tokens, heads, 2, half);
    x = tl_reshape(tl, x, tokens, heads, 2, half);
    tl_handle done = tl_mul_async(tl, u, x, tl_part(tl, table, 2, 0, 1));
    stream_then(tl, done, tl_mul_async(tl, v, x, tl_part(tl, table, 2, 1, 1)));
    stream_then(tl, done, tl_sub_async(tl, tl_part(tl, x, 2, 0, 1), tl_part(tl, u, 2, 0, 1), tl_part(tl, v, 2, 1, 1)));
    tl_after(tl, done);
    tl_add(tl, tl_part(tl, x, 2, 1, 1), tl_part(tl, u, 2, 1, 1), tl_part(tl, v, 2, 0, 1));
}

/* Some tokens of this PE's shard, as rows. */
static struct tl_shard token_rows(struct tl *tl, kb_tensor tensor, uint64_t first, uint64_t count)
{
    struct tl_shard shard = tl_part(tl, tl_my_shard(tl, tensor), 0, first, count);
    return tl_reshape(tl, shard, count, shard.shape[1] * shard.shape[2] * shard.shape[3]);
}

/* Works on some tokens whose table fits into the TCM. */
static void rotate_tokens(struct tl *tl, const struct rotary_args *arg, uint64_t first, uint64_t count)
{
    struct tl_shard x = token_rows(tl, arg->x, first, count), y = token_rows(tl, arg->y, first, count);
    struct tl_shard from = token_rows(tl, arg->table, first, count);
    struct tl_shard table = tl_alloc(tl, KB_f32, count, from.shape[1]);
    uint64_t row = x.shape[1] * kb_dtype_bytes(x.dtype);
    tl_handle loading = tl_load_async(tl, table, from);
    struct stream s = stream_of(tl, (struct stream){
        .load = {x}, .store = {y}, .in_place = true, .whole_rows = true, .ops = 4, .cost = x.dtype == KB_f32 ? 3 : 6,
        .scratch_bytes = 8, .params = {arg->buffers, arg->block_rows, 0},
        .block_rows = BLOCK_BYTES / row });
    struct tl_shard u = tl_alloc(tl, KB_f32, s.block_rows, x.shape[1]);
    struct tl_shard v = tl_alloc(tl, KB_f32, s.block_rows, x.shape[1]);
    while (stream_next(&s)) {
        uint64_t tokens = s.at.rows;
        tl_wait(tl, loading);
        rotate(tl, tl_reshape(tl, s.in[0], tokens, x.shape[1] / table.shape[1], table.shape[1]),
               tl_part(tl, table, 0, s.at.row, tokens), tl_part(tl, u, 0, 0, tokens), tl_part(tl, v, 0, 0, tokens));
    }
    tl_free(tl, u);
    tl_free(tl, v);
    tl_free(tl, table);
}

KB_KERNEL(rotary, struct rotary_args)
{
    struct tl_shard table = tl_my_shard(tl, arg->table);
    for (uint64_t first = 0; first < table.shape[0]; first += arg->at_once)
        rotate_tokens(tl, arg, first, kb_min(arg->at_once, table.shape[0] - first));
}

/* ---- the bench */

/* The table: a row for each position, with the cosines and then the sines of its angles. NULL if nothing is computed:
 * times do not depend on the values. */
static const float *angle_table(uint64_t positions, uint64_t points, double theta)
{
    if (!kb_has_data())
        return NULL;
    double *frequency = kb_array(double, points);
    float *table = kb_array(float, positions * 2 * points);
    for (uint64_t i = 0; i < points; i++)
        frequency[i] = __builtin_pow(theta, -2.0 * (double)i / (double)(2 * points));
    for (uint64_t position = 0; position < positions; position++) {
        float *cosine = table + position * 2 * points, *sine = cosine + points;
        for (uint64_t i = 0; i < points; i++) {
            cosine[i] = (float)__builtin_cos((double)position * frequency[i]);
            sine[i] = (float)__builtin_sin((double)position * frequency[i]);
        }
    }
    return table;
}

/* The reference, from x and the table. */
static kb_ref expected(kb_tensor x, const float *table, struct kb_dims dims)
{
    uint64_t heads = dims.size[1], points = dims.size[3], rows = dims.size[0] * heads;
    double *y = kb_has_data() ? kb_array(double, rows * 2 * points) : NULL;
    for (uint64_t row = 0; y && row < rows; row++) {
        double *first = y + row * 2 * points, *second = first + points;
        const float *cosine = table + row / heads * 2 * points, *sine = cosine + points;
        kb_peek_many(x, row * 2 * points, 2 * points, first);
        for (uint64_t i = 0; i < points; i++) {
            double a = first[i], b = second[i];
            first[i] = a * cosine[i] - b * sine[i];
            second[i] = b * cosine[i] + a * sine[i];
        }
    }
    return kb_ref_given(y, dims);
}

KB_BENCH(rotary, "rotary position embedding, tokens over all PEs",
         KB_INT(tokens, 8192, 1, 1 << 24, "tokens"),
         KB_INT(heads, 32, 1, 1 << 16, "heads of a token"),
         KB_INT(points, 64, 1, 1 << 16, "points of a head: head_dim / 2"),
         KB_REAL(theta, 500000, 1, 1e12, "base of the angles position * theta^(-i / points)"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of x and y"),
         STREAM_ROW_PARAMS)
{
    uint64_t tokens = kb_int(tokens), heads = kb_int(heads), points = kb_int(points), head_dim = 2 * points;
    uint64_t n = tokens * heads * head_dim;
    struct kb_dims dims = kb_4d(tokens, heads, 2, points);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t a_table = 4 * head_dim, held = tcm_padded(a_table);     /* a stream of whole rows beside the table of a token */
    uint64_t left = stream_needs(heads * head_dim, kb_dtype_bytes(dtype), 0, 8, held, STREAM_WHOLE);
    left = kb_min((left + held) / 64 * 64, needs_tcm_bytes() / 4);

    kb_tensor x = kb_tensor_new("x", dtype, dims, kb_rows(kb_main_memory(), pes));
    kb_tensor y = kb_tensor_new("y", dtype, dims, kb_rows(kb_main_memory(), pes));
    kb_tensor table = kb_tensor_new("table", KB_f32, kb_2d(tokens, head_dim), kb_rows(kb_main_memory(), pes));
    const float *angles = angle_table(tokens, points, kb_real(theta));
    kb_fill_uniform(x, -2, 2);
    kb_write(table, angles);
    kb_ref want = expected(x, angles, dims);

    kb_future launch = kb_launch(rotary, pes, &(struct rotary_args){
        x, table, y, kb_int(buffers), kb_int(block_rows), kb_max(left / a_table, 1) });
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = KB_f32, .math = 3 * n, .reads = {x, table}, .writes = {y} }, NULL);
    kb_expect_close(y, want);
}
