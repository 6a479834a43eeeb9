/* xla_gemm.c: C = A B on one TensorCore, and two products one after another, in the manner of XLA for TPUs.
 *
 * The rule, for all shapes: weights stay in the matrix units, so tiles have 256 x 512 weights, and all rows that are at
 * hand pass over them. What is not for tiles in the VMEM holds whole operands:
 * - A and B, if both fit: they are copied there before the product begins.
 * - B, if it fits with two panels of rows of A, which follow one another: one is loaded while another one is multiplied.
 *   Two panels of A and two of C are as large as the VMEM for tiles.
 * - Two panels of A, if B does not fit. B streams past each of them, tile by tile.
 * Each tile of C is stored as soon as it is complete.
 *
 * The matrix units do not compute products of one row. XLA's strength reduction turns them into work of the vector unit, which
 * multiplies B by the row, and adds.
 *
 * Of two products, the second one's B is copied while the first one is computed, and the result of the first one stays in the
 * VMEM, if all operands fit there. If they do not, it goes by way of HBM. */
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>

enum { WEIGHT_ROWS = 256, WEIGHT_COLS = 512, SUBLANES = 16, PIECES = 16, VECTOR_ELEMENTS = 1 << 20 };

/* How a product is done: rows of A and columns of B that are in the VMEM at a time. B streams if cols is 0. */
struct plan {
    uint64_t rows, cols;
};

/* A copy of a matrix to the VMEM, in pieces: what has come is written while the rest is on its way. */
struct copy {
    tl_handle piece[PIECES];
};

static struct copy copy_begin(struct tl *tl, struct tl_shard to, struct tl_shard from)
{
    struct copy copy = {0};
    uint64_t rows = from.shape[0], piece = kb_ceil_div(rows, PIECES);
    for (uint64_t i = 0; i * piece < rows; i++) {
        uint64_t count = kb_min(piece, rows - i * piece);
        copy.piece[i] = tl_load_async(tl, tl_part(tl, to, 0, i * piece, count), tl_part(tl, from, 0, i * piece, count));
    }
    return copy;
}

static void copy_end(struct tl *tl, const struct copy *copy)
{
    for (unsigned i = 0; i < PIECES; i++)
        if (copy->piece[i])
            tl_wait(tl, copy->piece[i]);
}

/* Multiplies rows of A, which are in the VMEM, by columns of B, which stream if they are not there. */
static tl_handle multiply(struct tl *tl, struct tl_shard rows, struct tl_shard cols, struct tl_shard c, bool streams)
{
    uint64_t m = c.shape[0], k = rows.shape[1], n = c.shape[1];
    return tl_composite(tl, &(struct tl_composite){
        .op = TL_GEMM, .m = m, .k = k, .n = n, .tile = {m, kb_min(WEIGHT_ROWS, k), kb_min(WEIGHT_COLS, n)},
        .a = tl_in(rows), .pin_a = true, .b = tl_in(tl_transposed(tl, cols, 0, 1)), .pin_b = !streams, .c = tl_out(c) });
}

/* Panel i of the rows of A or C. */
static struct tl_shard panel_of(struct tl *tl, struct plan plan, struct tl_shard all, uint64_t i)
{
    uint64_t first = i * plan.rows;
    return tl_part(tl, all, 0, first, kb_min(plan.rows, all.shape[0] - first));
}

static void matrix_product(struct tl *tl, struct tl_shard a, struct tl_shard b, struct tl_shard c, struct plan plan)
{
    uint64_t panels = kb_ceil_div(a.shape[0], plan.rows), halves = kb_min(panels, 2);
    struct tl_shard weights = b, buffer[2];
    struct copy copied = {0}, loaded[2];
    tl_handle done[2] = {0};
    if (plan.cols)
        weights = tl_alloc(tl, b.dtype, b.shape[0], b.shape[1]);
    for (uint64_t i = 0; i < halves; i++)
        buffer[i] = tl_alloc(tl, a.dtype, plan.rows, a.shape[1]);
    if (plan.cols)
        copied = copy_begin(tl, weights, b);
    for (uint64_t i = 0; i <= panels; i++) {
        if (i < panels) {
            struct tl_shard rows = panel_of(tl, plan, a, i);
            if (done[i % 2])
                tl_wait(tl, done[i % 2]);
            loaded[i % 2] = copy_begin(tl, tl_part(tl, buffer[i % 2], 0, 0, rows.shape[0]), rows);
        }
        if (i == 0) {
            copy_end(tl, &copied);
            continue;
        }
        struct tl_shard to = panel_of(tl, plan, c, i - 1);
        copy_end(tl, &loaded[(i - 1) % 2]);
        done[(i - 1) % 2] = multiply(tl, tl_part(tl, buffer[(i - 1) % 2], 0, 0, to.shape[0]), weights, to, !plan.cols);
    }
    for (uint64_t i = 0; i < halves; i++) {
        tl_wait(tl, done[i]);
        tl_free(tl, buffer[i]);
    }
    if (plan.cols)
        tl_free(tl, weights);
}

/* One row by columns of B, both in the VMEM: a chunk's products wait for nothing but their sums. */
static void vector_multiply(struct tl *tl, struct tl_shard row, struct tl_shard weights, struct tl_shard sums)
{
    uint64_t n = weights.shape[0], k = weights.shape[1], chunk = kb_min(kb_max(VECTOR_ELEMENTS / k, 1), n), chunks = kb_ceil_div(n, chunk);
    struct tl_shard product[] = {tl_alloc(tl, KB_f32, chunk, k), tl_alloc(tl, KB_f32, chunk, k)};
    tl_handle multiplied[2] = {0}, summed[2] = {0};
    for (uint64_t i = 0; i <= chunks; i++) {
        if (i < chunks) {
            uint64_t cols = kb_min(chunk, n - i * chunk);
            if (summed[i % 2])
                tl_wait(tl, summed[i % 2]);
            multiplied[i % 2] = tl_mul_async(tl, tl_part(tl, product[i % 2], 0, 0, cols), tl_part(tl, weights, 0, i * chunk, cols), row);
        }
        if (i > 0) {
            uint64_t before = i - 1, cols = kb_min(chunk, n - before * chunk);
            tl_wait(tl, multiplied[before % 2]);
            summed[before % 2] = tl_sum_async(tl, tl_part(tl, sums, 0, before * chunk, cols), tl_part(tl, product[before % 2], 0, 0, cols), 1);
        }
    }
    for (uint64_t i = 0; i < 2; i++) {
        if (summed[i])
            tl_wait(tl, summed[i]);
        tl_free(tl, product[i]);
    }
}

/* A product of one row. B is copied whole; if it has no room, parts of it are: one while another one is multiplied. */
static void vector_product(struct tl *tl, struct tl_shard a, struct tl_shard b, struct tl_shard c, struct plan plan)
{
    uint64_t parts = kb_ceil_div(b.shape[0], plan.cols), halves = kb_min(parts, 2);
    struct tl_shard row = tl_alloc(tl, a.dtype, 1, a.shape[1]), sums = tl_alloc(tl, c.dtype, b.shape[0], 1), weights[2];
    struct copy loaded[2], loaded_row = copy_begin(tl, row, a);
    for (uint64_t i = 0; i < halves; i++)
        weights[i] = tl_alloc(tl, b.dtype, plan.cols, b.shape[1]);
    for (uint64_t i = 0; i <= parts; i++) {
        if (i < parts) {
            uint64_t first = i * plan.cols, cols = kb_min(plan.cols, b.shape[0] - first);
            loaded[i % 2] = copy_begin(tl, tl_part(tl, weights[i % 2], 0, 0, cols), tl_part(tl, b, 0, first, cols));
        }
        if (i == 0)
            continue;
        uint64_t first = (i - 1) * plan.cols, cols = kb_min(plan.cols, b.shape[0] - first);
        copy_end(tl, &loaded[(i - 1) % 2]);
        if (i == 1)
            copy_end(tl, &loaded_row);
        vector_multiply(tl, row, tl_part(tl, weights[(i - 1) % 2], 0, 0, cols), tl_part(tl, sums, 0, first, cols));
    }
    tl_store(tl, c, tl_reshape(tl, sums, 1, b.shape[0]));
    for (uint64_t i = 0; i < halves; i++)
        tl_free(tl, weights[i]);
    tl_free(tl, sums);
    tl_free(tl, row);
}

static void product(struct tl *tl, kb_tensor a, kb_tensor b, kb_tensor c, struct plan plan)
{
    struct tl_shard rows = tl_my_shard(tl, a);
    (rows.shape[0] == 1 ? vector_product : matrix_product)(tl, rows, tl_my_shard(tl, b), tl_my_shard(tl, c), plan);
}

/* ---- plans */

/* The bytes of the VMEM for whole operands, and for tiles. */
static uint64_t whole_bytes(void)
{
    return kb_attrs.pe_tcm_size_bytes - kb_attrs.pe_tcm_reserved_bytes;
}

static uint64_t at_most(uint64_t rows, uint64_t m)
{
    return kb_min(m, kb_max(rows / SUBLANES * SUBLANES, SUBLANES));
}

/* The bytes of the products of a row of k with two chunks of columns. */
static uint64_t vector_bytes(uint64_t k)
{
    return 2 * kb_max(VECTOR_ELEMENTS, k) * kb_dtype_bytes(KB_f32);
}

static struct plan plan_of(uint64_t m, uint64_t k, uint64_t n, uint64_t element)
{
    uint64_t whole = whole_bytes() / element, tiles = kb_attrs.pe_tcm_reserved_bytes / element;
    uint64_t rows_of_tiles = at_most(tiles / (2 * WEIGHT_COLS), m), rows = at_most(tiles / (2 * (k + n)), m);
    if (m == 1) {
        uint64_t rest = whole - kb_min(whole, k + n + vector_bytes(k) / element);
        return (struct plan){1, n * k <= rest ? n : kb_max(kb_min(n, rest / 2 / k), 1)};
    }
    if ((m + n) * k < whole && rows_of_tiles == m)
        return (struct plan){m, n};
    if ((n + 2 * rows) * k < whole)
        return (struct plan){rows, n};
    return (struct plan){kb_min(rows_of_tiles, at_most(whole / (2 * k), m)), 0};
}

/* ---- one product */

struct xla_gemm_args {
    kb_tensor a, b, c;                                  /* m x k, n x k, m x n */
    struct plan plan;
};

KB_KERNEL(xla_gemm, struct xla_gemm_args)
{
    product(tl, arg->a, arg->b, arg->c, arg->plan);
}

static kb_tensor filled(const char *name, enum kb_dtype dtype, uint64_t rows, uint64_t cols, struct kb_pes pes)
{
    kb_tensor tensor = kb_tensor_new(name, dtype, kb_2d(rows, cols), kb_on(KB_HBM, pes));
    if (kb_has_data())
        kb_fill_uniform(tensor, -1, 1);
    return tensor;
}

KB_BENCH(xla_gemm, "C = A B on one TensorCore as XLA does it",
         KB_INT(m, 1024, 1, 1 << 24, "rows of A and C"), KB_INT(k, 2048, 1, 1 << 20, "columns of A, rows of B"),
         KB_INT(n, 2048, 1, 1 << 20, "columns of B and C"), KB_WORD(dtype, "bf16", "dtype of A, B and C"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes("*");
    kb_tensor a = filled("a", dtype, m, k, pes), b = filled("b", dtype, n, k, pes);
    kb_tensor c = kb_tensor_new("c", dtype, kb_2d(m, n), kb_on(KB_HBM, pes));
    kb_future launch = kb_launch(xla_gemm, pes, &(struct xla_gemm_args){a, b, c, plan_of(m, k, n, kb_dtype_bytes(dtype))});
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = m * k * n, .reads = {a, b}, .writes = {c} }, NULL);
    kb_expect_close(c, kb_ref_gemm(a, kb_ref_transpose(b)));
}

/* ---- two products */

struct xla_ffn_args {
    kb_tensor x, up, h, down, y;                        /* m x k, n x k, m x n, k x n, m x k */
    struct plan plan_up, plan_down;
    bool whole;                                         /* all operands fit into the VMEM */
};

KB_KERNEL(xla_ffn, struct xla_ffn_args)
{
    if (!arg->whole) {
        product(tl, arg->x, arg->up, arg->h, arg->plan_up);
        product(tl, arg->h, arg->down, arg->y, arg->plan_down);
        return;
    }
    struct tl_shard x = tl_my_shard(tl, arg->x), up = tl_my_shard(tl, arg->up), down = tl_my_shard(tl, arg->down);
    struct tl_shard rows = tl_alloc(tl, x.dtype, x.shape[0], x.shape[1]), h = tl_alloc(tl, x.dtype, x.shape[0], up.shape[0]);
    struct tl_shard weights[] = {tl_alloc(tl, up.dtype, up.shape[0], up.shape[1]), tl_alloc(tl, down.dtype, down.shape[0], down.shape[1])};
    struct copy loaded = copy_begin(tl, rows, x), copied[] = {copy_begin(tl, weights[0], up), copy_begin(tl, weights[1], down)};
    copy_end(tl, &loaded);
    copy_end(tl, &copied[0]);
    if (x.shape[0] == 1) {
        struct tl_shard sums = tl_alloc(tl, x.dtype, down.shape[0], 1);
        vector_multiply(tl, rows, weights[0], tl_reshape(tl, h, up.shape[0], 1));
        copy_end(tl, &copied[1]);
        vector_multiply(tl, h, weights[1], sums);
        tl_store(tl, tl_my_shard(tl, arg->y), tl_reshape(tl, sums, 1, down.shape[0]));
        return;
    }
    tl_wait(tl, multiply(tl, rows, weights[0], h, false));
    copy_end(tl, &copied[1]);
    tl_wait(tl, multiply(tl, h, weights[1], tl_my_shard(tl, arg->y), false));
}

KB_BENCH(xla_ffn, "Y = (X U) D on one TensorCore as XLA does it: a feed-forward block without its activation",
         KB_INT(m, 1024, 1, 1 << 24, "rows of X and Y"), KB_INT(k, 2048, 1, 1 << 20, "columns of X and Y"),
         KB_INT(n, 8192, 1, 1 << 20, "columns of U, rows of D"), KB_WORD(dtype, "bf16", "dtype of all tensors"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    uint64_t element = kb_dtype_bytes(dtype);
    struct kb_pes pes = kb_pes("*");
    kb_tensor x = filled("x", dtype, m, k, pes), up = filled("up", dtype, n, k, pes), down = filled("down", dtype, k, n, pes);
    kb_tensor h = kb_tensor_new("h", dtype, kb_2d(m, n), kb_on(KB_HBM, pes)), y = kb_tensor_new("y", dtype, kb_2d(m, k), kb_on(KB_HBM, pes));
    struct plan plan_up = plan_of(m, k, n, element), plan_down = plan_of(m, n, k, element);
    uint64_t bytes = (m * (k + n) + 2 * k * n) * element + (m == 1 ? k * element + vector_bytes(kb_max(k, n)) : 0);
    bool whole = bytes < whole_bytes() && plan_up.rows == m && plan_down.rows == m;
    kb_future launch = kb_launch(xla_ffn, pes, &(struct xla_ffn_args){x, up, h, down, y, plan_up, plan_down, whole});
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = 2 * m * k * n, .reads = {x, up, down}, .writes = {y} }, NULL);
    kb_ref hidden = kb_ref_gemm(x, kb_ref_transpose(up));
    kb_expect_close(y, kb_ref_gemm(hidden, kb_ref_transpose(down)));
}
