/* linear.c: references of gemms, with bias and relu, and of attention: whole matrices by BLAS.
 *
 * Neither the op log nor the data pass has a part in it: tensors are gathered, multiplied and added to as a whole. f64
 * holds every product and sum of i8 exactly; i32 is that modulo 2^32. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/progress.h"
#include "base/threads.h"
#include "datapass/blas.h"
#include "kb/arith.h"
#include "machine/tiling.h"
#include "reference.h"

enum { PANEL = 256, COLUMN_PANEL = 4096, MOST_SIZE = 1 << 30 };

/* ---- gemm, in panels of C whose sizes do not depend on the number of threads */

struct product {
    struct reference *ref;
    struct gathered a, b;
    uint64_t rows, depth;                               /* of one matrix of a batch */
    uint64_t panels, of_one, across;                    /* all; of one matrix; of one of its rows */
};

static void wrap_panel(const struct product *p, const double *from, uint64_t row, uint64_t rows, uint64_t column,
                       uint64_t columns)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            p->ref->i32[(row + i) * p->ref->columns + column + j] = (int32_t)(uint32_t)(int64_t)from[i * columns + j];
}

static void multiply_panel(const struct product *p, uint64_t matrix, uint64_t row, uint64_t column)
{
    struct reference *ref = p->ref;
    uint64_t rows = kb_min(PANEL, p->rows - row), n = ref->columns, k = p->depth;
    uint64_t columns = kb_min(COLUMN_PANEL, n - column), b = matrix * k * n + column;
    row += matrix * p->rows;
    if (ref->f32) {
        blas_sgemm(rows, columns, k, p->a.f32 + row * k, k, p->b.f32 + b, n, 0, ref->f32 + row * n + column, n);
    } else if (ref->f64) {
        blas_dgemm(rows, columns, k, p->a.f64 + row * k, k, p->b.f64 + b, n, 0, ref->f64 + row * n + column, n);
    } else {
        double *exact = reference_alloc(rows * columns, sizeof *exact);
        blas_dgemm(rows, columns, k, p->a.f64 + row * k, k, p->b.f64 + b, n, 0, exact, columns);
        wrap_panel(p, exact, row, rows, column, columns);
        free(exact);
    }
}

static void gemm_panel(uint64_t i, unsigned thread, void *product)
{
    const struct product *p = product;
    uint64_t inside = i % p->of_one;
    multiply_panel(p, i / p->of_one, inside / p->across * PANEL, inside % p->across * COLUMN_PANEL);
    if (thread == 0)
        progress("reference", i, p->panels);
}

static void multiply_all(struct product *p)
{
    blas_open();
    p->across = (p->ref->columns + COLUMN_PANEL - 1) / COLUMN_PANEL;
    p->of_one = (p->rows + PANEL - 1) / PANEL * p->across;
    p->panels = p->ref->rows / p->rows * p->of_one;
    threads_run(p->panels, gemm_panel, p);
    progress_end();
}

/* Both are matrices of floats or of i8, or batches of as many. */
static void check_gemm(struct call_site call, const struct gathered *a, const struct gathered *b)
{
    uint32_t rank = a->dims.rank;
    if (rank < 2 || rank != b->dims.rank)
        misuse_of(call, "'%s' and '%s' are to be matrices", a->name, b->name);
    for (uint32_t axis = 0; axis + 2 < rank; axis++)
        if (a->dims.size[axis] != b->dims.size[axis])
            misuse_of(call, "'%s' and '%s' are to have as many matrices", a->name, b->name);
    const uint64_t *a_size = a->dims.size + rank - 2, *b_size = b->dims.size + rank - 2;
    if (a_size[1] != b_size[0])
        misuse_of(call, "'%s' has %" PRIu64 " columns, '%s' has %" PRIu64 " rows", a->name, a_size[1], b->name,
                  b_size[0]);
    bool floats = dtype_is_float(a->dtype);
    if (floats != dtype_is_float(b->dtype) || (!floats && (a->dtype != DTYPE_i8 || b->dtype != DTYPE_i8)))
        misuse_of(call, "'%s' of %s and '%s' of %s: both are to be floats, or i8", a->name, dtype_words[a->dtype],
                  b->name, dtype_words[b->dtype]);
    bool large = a_size[0] > MOST_SIZE || a_size[1] > MOST_SIZE || b_size[1] > MOST_SIZE;
    if (large && a->elements)                           /* BLAS counts in int */
        misuse_of(call, "sizes above 2^30 are too large for a reference");
}

/* Operands that may be off themselves add to the s of the product. */
static double gemm_scale(const struct product *p)
{
    const struct gathered *a = &p->a, *b = &p->b;
    return sqrt((double)p->depth) * (a->max * b->max + a->error * b->max + a->max * b->error);
}

kb_ref kb_ref_gemm_at(struct kb_values a, struct kb_values b, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_gemm", file, line};
    reference_begin(call);
    bool half = values_are_half(a) && values_are_half(b);
    struct product p = {.a = gather(call, a, !half), .b = gather(call, b, !half)};
    check_gemm(call, &p.a, &p.b);
    bool floats = dtype_is_float(p.a.dtype);
    struct kb_dims dims = p.a.dims;
    dims.size[dims.rank - 1] = p.b.dims.size[dims.rank - 1];
    struct reference *ref = p.ref = reference_new(dims, floats ? p.a.dtype : DTYPE_i32);
    if (half)
        ref->f32 = reference_alloc(ref->elements, sizeof *ref->f32);
    else if (floats)
        ref->f64 = reference_alloc(ref->elements, sizeof *ref->f64);
    else
        ref->i32 = reference_alloc(ref->elements, sizeof *ref->i32);
    p.rows = dims.size[dims.rank - 2];
    p.depth = p.a.dims.size[dims.rank - 1];
    ref->scale = gemm_scale(&p);
    if (ref->elements)
        multiply_all(&p);
    gathered_free(&p.a);
    gathered_free(&p.b);
    return reference_end(ref);
}

/* ---- bias and relu, in place */

static void set_value(struct reference *ref, uint64_t i, double x)
{
    if (ref->f32)
        ref->f32[i] = (float)x;
    else if (ref->f64)
        ref->f64[i] = x;
    else
        ref->i32[i] = (int32_t)(uint32_t)(int64_t)x;
}

void kb_ref_bias_at(kb_ref ref, struct kb_values row, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_bias", file, line};
    reference_begin(call);
    struct gathered g = gather(call, row, true);
    if (!ref)
        misuse_of(call, "there is no reference");
    gathered_check_row(call, &g, ref->columns, false);
    if (!dtype_is_float(ref->dtype) && dtype_is_float(g.dtype))
        misuse_of(call, "'%s' of %s cannot be added to %s", g.name, dtype_words[g.dtype],
                  dtype_words[ref->dtype]);
    for (uint64_t i = 0; i < ref->elements; i++)
        set_value(ref, i, reference_value(ref, i) + g.f64[i % ref->columns]);
    ref->exact &= !dtype_is_float(ref->dtype);
    gathered_free(&g);
    reference_end(ref);
}

void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line)
{
    (void)file, (void)line;
    for (uint64_t i = 0; ref && i < ref->elements; i++)
        if (reference_value(ref, i) < 0)
            set_value(ref, i, 0);
}

/* ---- attention: softmax(Q K^T / sqrt(d)) V, head by head, with the scores of a panel of queries at a time
 *
 * A row of the result is a mean of rows of V: s is the largest of V's magnitudes, and more if the operands may be off
 * themselves. */

enum { QUERY_PANEL = 128 };

struct heads {
    struct kb_attention how;
    struct gathered q, k, v;
    uint64_t queries, keys, d;                          /* of a head: rows of Q, of K and V; columns */
    uint64_t panels;                                    /* of a head */
    double *to;
};

static uint64_t row_stride(const struct heads *h, uint64_t wide)
{
    return (h->how.side_by_side ? h->how.kv_heads : 1) * wide * h->d;
}

/* Where row `row` of a head begins, in a matrix with `wide` heads side by side for each kv head. */
static uint64_t head_at(const struct heads *h, uint64_t head, uint64_t wide, uint64_t rows, uint64_t row)
{
    uint64_t kv_head = head / wide, stride = row_stride(h, wide);
    return (h->how.side_by_side ? row * stride + kv_head * wide * h->d : (kv_head * rows + row) * stride) +
           head % wide * h->d;
}

/* Scores of a row to weights: a softmax of the first `seen` keys; the other weights are 0. */
static void softmax_row(double *row, uint64_t seen, uint64_t keys, double factor)
{
    double most = -INFINITY, total = 0;
    for (uint64_t j = 0; j < seen; j++)
        most = fmax(most, row[j] *= factor);
    for (uint64_t j = 0; j < seen; j++)
        total += row[j] = exp(row[j] - most);
    for (uint64_t j = 0; j < keys; j++)
        row[j] = j < seen ? row[j] / total : 0;
}

static void attention_panel(uint64_t i, unsigned thread, void *heads)
{
    const struct heads *h = heads;
    uint64_t head = i / h->panels, first = i % h->panels * QUERY_PANEL, group = h->how.heads / h->how.kv_heads;
    uint64_t rows = kb_min(QUERY_PANEL, h->queries - first);
    uint64_t seen = h->how.causal ? h->keys - h->queries + first + 1 : h->keys;        /* by the first row */
    uint64_t keys = h->how.causal ? seen + rows - 1 : h->keys, wide = row_stride(h, 1);
    const double *k = h->k.f64 + head_at(h, head / group, 1, h->keys, 0);
    const double *v = h->v.f64 + head_at(h, head / group, 1, h->keys, 0);
    uint64_t at = head_at(h, head, group, h->queries, first), stride = row_stride(h, group);
    double *transposed = reference_alloc(h->d * keys, sizeof *transposed);
    double *scores = reference_alloc(rows * keys, sizeof *scores);
    for (uint64_t j = 0; j < keys; j++)
        for (uint64_t c = 0; c < h->d; c++)
            transposed[c * keys + j] = k[j * wide + c];
    blas_dgemm(rows, keys, h->d, h->q.f64 + at, stride, transposed, keys, 0, scores, keys);
    for (uint64_t row = 0; row < rows; row++)
        softmax_row(scores + row * keys, h->how.causal ? seen + row : keys, keys, 1 / sqrt((double)h->d));
    blas_dgemm(rows, h->d, keys, scores, keys, v, wide, 0, h->to + at, stride);
    free(transposed);
    free(scores);
    if (thread == 0)
        progress("reference", i, h->how.heads * h->panels);
}

static void attend_all(struct heads *h)
{
    blas_open();
    h->panels = (h->queries + QUERY_PANEL - 1) / QUERY_PANEL;
    threads_run(h->how.heads * h->panels, attention_panel, h);
    progress_end();
}

/* Checks a matrix with `wide` heads for each kv head, and sets the columns of a head. Returns the rows of a head. */
static uint64_t rows_of(struct call_site call, const struct gathered *g, struct heads *h, uint64_t wide)
{
    uint64_t kv_heads = h->how.kv_heads, rows = g->dims.size[0], cols = g->dims.size[1];
    if (g->dims.rank != 2 || !dtype_is_float(g->dtype))
        misuse_of(call, "'%s' is to be a matrix of floats", g->name);
    uint64_t *split = h->how.side_by_side ? &cols : &rows, d = cols / (h->how.side_by_side ? kv_heads * wide : wide);
    if (*split % kv_heads || cols % wide || (h->d && h->d != d))
        misuse_of(call, "'%s' has not as many rows and columns as %" PRIu64 " heads, %" PRIu64 " of K and V",
                  g->name, h->how.heads, kv_heads);
    h->d = d;
    return h->how.side_by_side ? rows : rows / kv_heads;
}

static void check_heads(struct call_site call, struct heads *h)
{
    if (h->how.kv_heads == 0 || h->how.heads == 0 || h->how.heads % h->how.kv_heads)
        misuse_of(call, "%" PRIu64 " heads are no multiple of %" PRIu64 " of K and V", h->how.heads,
                  h->how.kv_heads);
    h->queries = rows_of(call, &h->q, h, h->how.heads / h->how.kv_heads);
    h->keys = rows_of(call, &h->k, h, 1);
    if (rows_of(call, &h->v, h, 1) != h->keys)
        misuse_of(call, "'%s' and '%s' have other numbers of rows", h->k.name, h->v.name);
    if (h->how.causal && h->keys < h->queries)
        misuse_of(call, "of %" PRIu64 " queries the first ones see none of %" PRIu64 " keys", h->queries,
                  h->keys);
}

kb_ref kb_ref_attention_at(struct kb_values q, struct kb_values k, struct kb_values v, struct kb_attention how,
                           const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_attention", file, line};
    reference_begin(call);
    struct heads h = {.how = how, .q = gather(call, q, true), .k = gather(call, k, true),
                      .v = gather(call, v, true)};
    check_heads(call, &h);
    h.to = reference_alloc(h.q.elements, sizeof *h.to);
    if (h.q.elements)
        attend_all(&h);
    double score_error = h.q.error * h.k.max + h.q.max * h.k.error;     /* over sqrt(d), of a sum of d */
    struct reference *ref = reference_computed(h.q.dims, h.q.dtype, h.to, (h.v.max + h.v.error) * (1 + score_error));
    gathered_free(&h.q);
    gathered_free(&h.k);
    gathered_free(&h.v);
    return reference_end(ref);
}
