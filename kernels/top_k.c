/* top_k.c: the k largest elements of each row, in descending order, and their columns; of equal elements those in the
 * first columns.
 *
 * Rows are split over the PEs and stream through each TCM. k times the kernel finds the maximum of each row and the
 * first column that has it, and removes that element: six passes over a block for each k, whatever the data are, so
 * pe_math bounds the kernel. The fixed time of each of those commands keeps it from the bound, so blocks are as large
 * as the TCM allows. Column numbers are f16, which has twice the lanes of f32 and holds every whole number up to 2,048;
 * longer rows stream in pieces of that many columns, and the k largest elements of a piece are merged with those of the
 * pieces before it.
 *
 * Elements must be numbers above -inf. */
#include "column_numbers.h"
#include "stream.h"
#include "transfers.h"

enum { PIECE = 2048, MOST_K = 256 };                    /* columns of a piece; largest k */
enum { AHEAD = 8 };                                     /* elements; commands are submitted for twice as many ahead, at most */

/* What a row of a block has in the TCM to be merged. */
#define ROW_BYTES(k, size) (2 * (k) * ((size) + 4 + 1 + 4 + 1))

struct top_k_args {
    kb_tensor x, values, columns;
    uint64_t k;
    uint32_t buffers;
    uint64_t block_rows;
    uint64_t at_once;                                   /* most rows whose results lie in the TCM at a time */
};

struct top_k {
    struct tl *tl;
    uint64_t k;
    struct tl_shard positions;                          /* a row of f16 */
    tl_handle numbered;                                 /* the command that ends it */
    struct tl_shard hits, found, places;                /* of a block: u8, f16; k columns within a piece, in f16 */
    struct tl_shard values, columns;                    /* the k largest of each row so far; columns in f32 */
    struct tl_shard both_values, both_columns, both_hits, both_found;   /* of a block: 2 k of each row, to be merged */
};

/* Selects the largest elements of each row of x, as many as `values` has columns, and sets them to -inf in x. `names`
 * has a number for each element of x, or one row of numbers for all rows; `named` gets the numbers of the selected
 * elements, the smallest number first where elements are equal. hits and found are scratch of x's shape. */
static void select_largest(struct tl *tl, struct tl_shard x, struct tl_shard names, struct tl_shard hits,
                           struct tl_shard found, struct tl_shard values, struct tl_shard named)
{
    tl_handle done = NULL, earlier = NULL;
    for (uint64_t i = 0; i < values.shape[1]; i++) {
        if (i % AHEAD == 0) {
            if (earlier)
                tl_wait(tl, earlier);
            earlier = done;
        }
        struct tl_shard top = tl_part(tl, values, 1, i, 1), name = tl_part(tl, named, 1, i, 1);
        if (done)
            tl_after(tl, done);
        done = tl_reduce_max_async(tl, top, x, 1);
        stream_then(tl, done, tl_cmp_async(tl, hits, x, TL_EQ, top));
        stream_then(tl, done, tl_where_async(tl, found, hits, names, tl_number(__builtin_inf())));
        stream_then(tl, done, tl_reduce_min_async(tl, name, found, 1));
        stream_then(tl, done, tl_cmp_async(tl, hits, names, TL_NE, name));
        stream_then(tl, done, tl_where_async(tl, x, hits, x, tl_number(-__builtin_inf())));
    }
    tl_wait(tl, done);
}

/* Selects the largest elements of a piece of some rows and merges them with those of the columns before it. */
static void merge_piece(struct top_k *t, struct tl_shard x, struct stream_block at)
{
    struct tl *tl = t->tl;
    uint64_t rows = at.rows, held = kb_min(t->k, at.col), more = kb_min(t->k, at.cols), both = held + more;
    struct tl_shard values = submatrix(tl, t->both_values, 0, rows, 0, both);
    struct tl_shard columns = submatrix(tl, t->both_columns, 0, rows, 0, both);
    struct tl_shard places = submatrix(tl, t->places, 0, rows, 0, more);
    if (held == 0) {
        values = submatrix(tl, t->values, at.row, rows, 0, more);
        columns = submatrix(tl, t->columns, at.row, rows, 0, more);
    }
    select_largest(tl, x, tl_part(tl, t->positions, 1, 0, at.cols), submatrix(tl, t->hits, 0, rows, 0, at.cols),
                   submatrix(tl, t->found, 0, rows, 0, at.cols), tl_part(tl, values, 1, held, more), places);
    tl_add(tl, tl_part(tl, columns, 1, held, more), places, tl_number((double)at.col));
    if (held == 0)
        return;
    uint64_t now = kb_min(t->k, both);
    tl_copy(tl, tl_part(tl, values, 1, 0, held), submatrix(tl, t->values, at.row, rows, 0, held));
    tl_copy(tl, tl_part(tl, columns, 1, 0, held), submatrix(tl, t->columns, at.row, rows, 0, held));
    select_largest(tl, values, columns, submatrix(tl, t->both_hits, 0, rows, 0, both),
                   submatrix(tl, t->both_found, 0, rows, 0, both), submatrix(tl, t->values, at.row, rows, 0, now),
                   submatrix(tl, t->columns, at.row, rows, 0, now));
}

/* Works on some rows whose results fit into the TCM. */
static void top_k_of_rows(struct tl *tl, const struct top_k_args *arg, struct tl_shard positions, tl_handle numbered,
                          uint64_t row, uint64_t rows)
{
    struct tl_shard x = tl_part(tl, tl_my_shard(tl, arg->x), 0, row, rows);
    struct tl_shard values = tl_part(tl, tl_my_shard(tl, arg->values), 0, row, rows);
    struct tl_shard columns = tl_part(tl, tl_my_shard(tl, arg->columns), 0, row, rows);
    struct top_k t = {.tl = tl, .k = arg->k, .positions = positions, .numbered = numbered};
    t.values = tl_alloc(tl, x.dtype, rows, t.k);
    t.columns = tl_alloc(tl, KB_f32, rows, t.k);
    struct tl_shard counted = tl_alloc(tl, KB_i32, rows, t.k);
    struct stream s = stream_of(tl, (struct stream){
        .load = {x}, .ops = 6 * (uint32_t)t.k, .cost = (x.dtype == KB_f32 ? 5 : 6) * (uint32_t)t.k,
        .scratch_bytes = 3, .row_bytes = ROW_BYTES(t.k, kb_dtype_bytes(x.dtype)),
        .even = true, .params = {arg->buffers, arg->block_rows, 0}, .buffers = 2, .block_cols = kb_min(x.shape[1], PIECE),
        .block_rows = rows });
    t.hits = tl_alloc(tl, KB_u8, s.block_rows, s.block_cols);
    t.found = tl_alloc(tl, KB_f16, s.block_rows, s.block_cols);
    t.places = tl_alloc(tl, KB_f16, s.block_rows, t.k);
    t.both_values = tl_alloc(tl, x.dtype, s.block_rows, 2 * t.k);
    t.both_columns = tl_alloc(tl, KB_f32, s.block_rows, 2 * t.k);
    t.both_hits = tl_alloc(tl, KB_u8, s.block_rows, 2 * t.k);
    t.both_found = tl_alloc(tl, KB_f32, s.block_rows, 2 * t.k);
    while (stream_next(&s)) {
        tl_wait(tl, t.numbered);                        /* while the first block was loaded */
        merge_piece(&t, s.in[0], s.at);
    }
    tl_cast(tl, counted, t.columns);
    tl_handle stored = tl_store_async(tl, values, t.values);
    tl_store(tl, columns, counted);
    tl_wait(tl, stored);
    struct tl_shard all[] = {t.values, t.columns, counted, t.hits, t.found, t.places, t.both_values, t.both_columns,
                             t.both_hits, t.both_found};
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        tl_free(tl, all[i]);
}

KB_KERNEL(top_k, struct top_k_args)
{
    uint64_t rows = tl_my_shard(tl, arg->x).shape[0];
    if (rows == 0)                                      /* there are more PEs than rows */
        return;
    struct tl_shard positions = tl_alloc(tl, KB_f16, 1, kb_min(tl_my_shard(tl, arg->x).shape[1], PIECE));
    struct tl_shard none = tl_alloc(tl, KB_u8, 1, 1);
    tl_handle numbered = column_numbers(tl, positions, none);
    for (uint64_t row = 0; row < rows; row += arg->at_once)
        top_k_of_rows(tl, arg, positions, numbered, row, kb_min(arg->at_once, rows - row));
}

/* ---- the bench */

/* The reference: the k largest of a row, by insertion. */
static void insert_largest(const double *x, uint64_t n, uint64_t k, double *values, double *columns)
{
    for (uint64_t col = 0, held = 0; col < n; col++) {
        if (held == k && x[col] <= values[k - 1])
            continue;
        uint64_t at = held < k ? held++ : k - 1;
        for (; at > 0 && values[at - 1] < x[col]; at--) {
            values[at] = values[at - 1];
            columns[at] = columns[at - 1];
        }
        values[at] = x[col];
        columns[at] = (double)col;
    }
}

struct expected {
    kb_ref values, columns;
};

static struct expected expected(const struct top_k_args *arg, uint64_t rows, uint64_t cols)
{
    uint64_t held = kb_has_data() ? rows * arg->k : 0;
    double *x = kb_array(double, held ? cols : 0), *values = kb_array(double, held), *columns = kb_array(double, held);
    for (uint64_t row = 0; row * arg->k < held; row++) {
        kb_peek_many(arg->x, row * cols, cols, x);
        insert_largest(x, cols, arg->k, values + row * arg->k, columns + row * arg->k);
    }
    return (struct expected){kb_ref_exact(kb_ref_given(values, kb_2d(rows, arg->k))),
                             kb_ref_exact(kb_ref_given(columns, kb_2d(rows, arg->k)))};
}

KB_BENCH(top_k, "the k largest elements of each row and their columns, rows over all PEs",
         KB_INT(rows, 65536, 1, 1 << 30, "rows"),
         KB_INT(cols, 256, 1, 1 << 24, "columns"),
         KB_INT(k, 8, 1, MOST_K, "elements to select of each row; never more than its columns"),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of the rows"),
         KB_BOOL(alike, false, "draw from few different values, so that many are equal"),
         STREAM_ROW_PARAMS)
{
    uint64_t rows = kb_int(rows), cols = kb_int(cols), k = param_at_most("k", kb_int(k), cols, "all columns"), n = rows * cols;
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes(kb_text(pes));
    uint64_t size = kb_dtype_bytes(dtype), result = k * (size + 4 + 4), numbers = tcm_padded(2 * kb_min(cols, PIECE)) + 64;
    uint64_t left = stream_needs(1, size, 0, 3, ROW_BYTES(k, size) + numbers + result + 10 * 64, STREAM_WHOLE);
    left = kb_min(left + result, (needs_tcm_bytes() - numbers) / 4);

    struct top_k_args arg = {.k = k, .buffers = kb_int(buffers), .block_rows = kb_int(block_rows),
                             .at_once = kb_max(left / result, 1)};
    arg.x = kb_tensor_new("x", dtype, kb_2d(rows, cols), kb_rows(kb_main_memory(), pes));
    arg.values = kb_tensor_new("values", dtype, kb_2d(rows, k), kb_rows(kb_main_memory(), pes));
    arg.columns = kb_tensor_new("columns", KB_i32, kb_2d(rows, k), kb_rows(kb_main_memory(), pes));
    kb_fill_uniform(arg.x, kb_bool(alike) ? 1024 : -1, kb_bool(alike) ? 1032 : 1);
    struct expected want = expected(&arg, rows, cols);
    kb_future launch = kb_launch(top_k, pes, &arg);
    kb_wait(launch);

    uint64_t passes = k * n * (kb_op_cost("cmp") + kb_op_cost("where") + kb_op_cost("max"));
    kb_roofline(launch, &(struct kb_problem){           /* looks at each element once */
        .math_dtype = KB_f16, .math = dtype == KB_f32 ? 0 : n * kb_op_cost("max"),
        .math_f32 = dtype == KB_f32 ? n * kb_op_cost("max") : 0, .reads = {arg.x}, .writes = {arg.values, arg.columns} },
        &(struct kb_work){ .math = dtype == KB_f32 ? passes : 2 * passes, .math_f32 = dtype == KB_f32 ? passes : 0 });
    kb_expect_close(arg.values, want.values);
    if (cols > 1)                                       /* the only column is 0, which proves nothing */
        kb_expect_close(arg.columns, want.columns);
}
