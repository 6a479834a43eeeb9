/* 4_softmax.c: softmax of each row of a matrix: exp(x - max) / sum, with the max and sum of the row. */
#include <kb/measure.h>

struct softmax_args { kb_tensor x, y; uint64_t block; bool divide; };

KB_KERNEL(softmax_rows, struct softmax_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    for (uint64_t first = 0; first < x.shape[0]; first += arg->block) {
        uint64_t rows = x.shape[0] - first < arg->block ? x.shape[0] - first : arg->block;
        struct tl_shard t = tl_load(tl, tl_part(tl, x, 0, first, rows));
        struct tl_shard most = tl_alloc(tl, KB_f16, rows, 1), sum = tl_alloc(tl, KB_f32, rows, 1);
        tl_reduce_max(tl, most, t, 1);                  /* a column: one number per row */
        tl_sub(tl, t, t, most);                         /* the column is repeated along the rows */
        tl_exp(tl, t, t);
        tl_sum(tl, sum, t, 1);
        if (arg->divide) {
            tl_div(tl, t, t, sum);                      /* rows * columns divisions */
        } else {
            tl_recip(tl, sum, sum);                     /* rows reciprocals, ... */
            tl_mul(tl, t, t, sum);                      /* ... and rows * columns products */
        }
        tl_store(tl, tl_part(tl, y, 0, first, rows), t);
        tl_free(tl, t);
        tl_free(tl, most);
        tl_free(tl, sum);
    }
}

KB_BENCH(softmax_rows, "softmax of each row, one block of rows after the other",
         KB_INT(rows, 8192, 1, 1 << 20, "rows"), KB_INT(columns, 1000, 1, 32768, "columns"),
         KB_INT(block, 128, 1, 1 << 20, "rows per load"), KB_BOOL(divide, false, "divide every element by the sum"))
{
    struct kb_pes all = kb_pes("*");
    uint64_t n = kb_int(rows) * kb_int(columns);
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(kb_int(rows), kb_int(columns)), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(kb_int(rows), kb_int(columns)), kb_rows(KB_HBM, all));
    kb_fill_normal(x, 0, 2);

    kb_future launch = kb_launch(softmax_rows, all, &(struct softmax_args){ x, y, kb_int(block), kb_bool(divide) });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){           /* max, sub, exp, which costs 4, mul; the sum */
        .math_dtype = KB_f16, .math = 7 * n, .math_f32 = n, .reads = {x}, .writes = {y} }, NULL);
    kb_expect_close(y, kb_ref_softmax(x));
}
