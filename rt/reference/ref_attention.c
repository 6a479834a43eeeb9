/* ref_attention.c: the reference of attention: softmax(Q K^T / sqrt(d)) V, head by head, in f64.
 *
 * The scores of a panel of queries are there at a time. A row of the result is a mean of rows of V: s is the largest of
 * V's magnitudes, and more if the operands may be off themselves. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "datapass/blas.h"
#include "base/dtype.h"
#include "common/fail.h"
#include "machine/tiling.h"
#include "base/threads.h"
#include "base/progress.h"
#include "reference.h"

enum { PANEL = 128 };

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

/* Where row `row` of a head begins; a row of its kv head has `wide` heads side by side. */
static uint64_t head_at(const struct heads *h, uint64_t head, uint64_t wide, uint64_t rows, uint64_t row)
{
    uint64_t kv_head = head / wide, stride = row_stride(h, wide);
    return (h->how.side_by_side ? row * stride + kv_head * wide * h->d : (kv_head * rows + row) * stride) +
           head % wide * h->d;
}

/* Scores to weights: of a row, those of its first keys; the others are 0. */
static void soften(double *row, uint64_t seen, uint64_t keys, double factor)
{
    double most = -INFINITY, total = 0;
    for (uint64_t j = 0; j < seen; j++)
        most = fmax(most, row[j] *= factor);
    for (uint64_t j = 0; j < seen; j++)
        total += row[j] = exp(row[j] - most);
    for (uint64_t j = 0; j < keys; j++)
        row[j] = j < seen ? row[j] / total : 0;
}

static void do_panel(uint64_t i, unsigned thread, void *heads)
{
    const struct heads *h = heads;
    uint64_t head = i / h->panels, first = i % h->panels * PANEL, group = h->how.heads / h->how.kv_heads;
    uint64_t rows = h->queries - first < PANEL ? h->queries - first : PANEL;
    uint64_t least = h->how.causal ? h->keys - h->queries + first + 1 : h->keys;        /* keys of the first row */
    uint64_t keys = h->how.causal ? least + rows - 1 : h->keys, wide = row_stride(h, 1);
    const double *k = h->k.f64 + head_at(h, head / group, 1, h->keys, 0);
    const double *v = h->v.f64 + head_at(h, head / group, 1, h->keys, 0);
    uint64_t at = head_at(h, head, group, h->queries, first), stride = row_stride(h, group);
    double *turned = reference_room(h->d * keys, sizeof *turned), *scores = reference_room(rows * keys, sizeof *scores);
    for (uint64_t j = 0; j < keys; j++)
        for (uint64_t c = 0; c < h->d; c++)
            turned[c * keys + j] = k[j * wide + c];
    blas_dgemm(rows, keys, h->d, h->q.f64 + at, stride, turned, keys, 0, scores, keys);
    for (uint64_t row = 0; row < rows; row++)
        soften(scores + row * keys, h->how.causal ? least + row : keys, keys, 1 / sqrt((double)h->d));
    blas_dgemm(rows, h->d, keys, scores, keys, v, wide, 0, h->to + at, stride);
    free(turned);
    free(scores);
    if (thread == 0)
        progress("reference", i, h->how.heads * h->panels);
}

static void compute(struct heads *h)
{
    blas_open();
    h->panels = (h->queries + PANEL - 1) / PANEL;
    threads_run(h->how.heads * h->panels, do_panel, h);
    progress_end();
}

/* A matrix with so many heads for each kv head; gives the rows of each, and sets the columns. */
static uint64_t rows_of(const struct ref_call *call, const struct gathered *g, struct heads *h, uint64_t wide)
{
    uint64_t kv_heads = h->how.kv_heads, rows = g->dims.size[0], cols = g->dims.size[1];
    if (g->dims.rank != 2 || !dtype_is_float(g->dtype))
        misuse(call->file, call->line, "%s: '%s' is to be a matrix of floats", call->name, g->name);
    uint64_t *split = h->how.side_by_side ? &cols : &rows, d = cols / (h->how.side_by_side ? kv_heads * wide : wide);
    if (*split % kv_heads || cols % wide || (h->d && h->d != d))
        misuse(call->file, call->line, "%s: '%s' has not as many rows and columns as %" PRIu64 " heads, %" PRIu64 " of "
               "K and V", call->name, g->name, h->how.heads, kv_heads);
    h->d = d;
    return h->how.side_by_side ? rows : rows / kv_heads;
}

static void check(const struct ref_call *call, struct heads *h)
{
    if (h->how.kv_heads == 0 || h->how.heads == 0 || h->how.heads % h->how.kv_heads)
        misuse(call->file, call->line, "%s: %" PRIu64 " heads are no multiple of %" PRIu64 " of K and V", call->name,
               h->how.heads, h->how.kv_heads);
    h->queries = rows_of(call, &h->q, h, h->how.heads / h->how.kv_heads);
    h->keys = rows_of(call, &h->k, h, 1);
    if (rows_of(call, &h->v, h, 1) != h->keys)
        misuse(call->file, call->line, "%s: '%s' and '%s' have other numbers of rows", call->name, h->k.name,
               h->v.name);
    if (h->how.causal && h->keys < h->queries)
        misuse(call->file, call->line, "%s: of %" PRIu64 " queries the first ones see none of %" PRIu64 " keys",
               call->name, h->queries, h->keys);
}

kb_ref kb_ref_attention_at(struct kb_values q, struct kb_values k, struct kb_values v, struct kb_attention how,
                           const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_attention", file, line};
    ref_begin(&call);
    struct heads h = {.how = how, .q = gather(&call, q, true), .k = gather(&call, k, true),
                      .v = gather(&call, v, true)};
    check(&call, &h);
    h.to = reference_room(h.q.elements, sizeof *h.to);
    if (h.q.elements)                                   /* there are data */
        compute(&h);
    double score_error = h.q.error * h.k.max + h.q.max * h.k.error;     /* over sqrt(d), of a sum of d */
    struct reference *ref = reference_computed(h.q.dims, h.q.dtype, h.to, (h.v.max + h.v.error) * (1 + score_error));
    gathered_free(&h.q);
    gathered_free(&h.k);
    gathered_free(&h.v);
    return ref_end(ref);
}
