/* rotary.c: rotary position embedding: y = x with each head's points turned by angles that grow with the position.
 *
 * The tokens are split over the PEs' HBM slices and stream through each PE's TCM; a table of cosines and sines, of f32,
 * lies beside them, and serves all heads. Products are taken in f32 and rounded once. Each element is read once, worked
 * on three times, and written once: the HBM bounds it. */
#include "rotary.h"
#include "stream.h"

enum { BLOCK_BYTES = 64 << 10 };                        /* smaller ones take as long for what a transfer begins with */

struct rotary_args {
    kb_tensor x, table, y;                              /* x, y: tokens x heads x 2 x points */
    uint32_t buffers;
    uint64_t block_rows;
};

/* Tokens as rows. */
static struct tl_shard rows_of(struct tl *tl, kb_tensor tensor, uint64_t first, uint64_t count)
{
    struct tl_shard shard = tl_part(tl, tl_my_shard(tl, tensor), 0, first, count);
    return tl_reshape(tl, shard, count, shard.shape[1] * shard.shape[2] * shard.shape[3]);
}

/* Some tokens, whose table the TCM has room for. */
static void stretch(struct tl *tl, const struct rotary_args *arg, uint64_t first, uint64_t count)
{
    struct tl_shard x = rows_of(tl, arg->x, first, count), y = rows_of(tl, arg->y, first, count);
    struct tl_shard from = rows_of(tl, arg->table, first, count), table = tl_alloc(tl, KB_f32, count, from.shape[1]);
    uint64_t row = x.shape[1] * kb_dtype_bytes(x.dtype);
    tl_handle loading = tl_load_async(tl, table, from);
    struct stream s = stream_of(tl, (struct stream){
        .load = {x}, .store = {y}, .in_place = true, .whole_rows = true, .ops = 4, .cost = x.dtype == KB_f32 ? 3 : 6,
        .scratch_bytes = 8, .buffers = arg->buffers,
        .block_rows = arg->block_rows ? arg->block_rows : BLOCK_BYTES / row });
    if (!stream_whole(&s))
        tl_fail(tl, 1, "the TCM does not hold the heads of a token");
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
    uint64_t most = tl_room_bytes(tl) / 4 / (kb_dtype_bytes(table.dtype) * table.shape[1]);
    if (most == 0)
        tl_fail(tl, 1, "the TCM does not hold the table of a token");
    for (uint64_t first = 0; first < table.shape[0]; first += most)
        stretch(tl, arg, first, kb_clamp(most, 1, table.shape[0] - first));
}

/* ---- the bench */

/* What y should hold, from x and the table. */
static kb_ref turned(kb_tensor x, const float *table, struct kb_dims dims)
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

KB_BENCH(rotary, "rotary position embedding of tokens, which are split over all PEs",
         KB_INT(tokens, 8192, 1, 1 << 24, "tokens"),
         KB_INT(heads, 32, 1, 1 << 16, "heads of a token"),
         KB_INT(points, 64, 1, 1 << 16, "of a head: head_dim / 2"),
         KB_REAL(theta, 500000, 1, 1e12, "of the angles position * theta^(-i / points)"),
         KB_WORD(dtype, "f16 bf16 f32", "of x and y"),
         STREAM_PARAMS_OF_ROWS)
{
    uint64_t tokens = kb_int(tokens), heads = kb_int(heads), points = kb_int(points), head_dim = 2 * points;
    uint64_t n = tokens * heads * head_dim;
    struct kb_dims dims = kb_4d(tokens, heads, 2, points);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes(kb_text(pes));

    kb_tensor x = kb_tensor_new("x", dtype, dims, kb_rows(KB_HBM, pes));
    kb_tensor y = kb_tensor_new("y", dtype, dims, kb_rows(KB_HBM, pes));
    kb_tensor table = kb_tensor_new("table", KB_f32, kb_2d(tokens, head_dim), kb_rows(KB_HBM, pes));
    float *angles = kb_array(float, tokens * head_dim);
    for (uint64_t token = 0; token < tokens; token++)
        rotary_row(angles + token * head_dim, token, head_dim, kb_real(theta));
    kb_fill_uniform(x, -2, 2);
    kb_write(table, angles);

    kb_future launch = kb_launch(rotary, pes, &(struct rotary_args){
        x, table, y, kb_int(buffers), kb_int(block_rows) });
    kb_wait(launch);
    kb_roofline(kb_kernels_ps(launch), pes, &(struct kb_work){
        .math_dtype = KB_f32, .math = 3 * n, .hbm_read = n * kb_dtype_bytes(dtype) + 4 * tokens * head_dim,
        .hbm_written = n * kb_dtype_bytes(dtype) });
    kb_expect_close(y, turned(x, angles, dims));
}
