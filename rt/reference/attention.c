/* attention.c: references of attention: softmax(Q K^T / sqrt(d)) V, head by head, with the scores of a panel of queries at
 * a time.
 *
 * A kernel may round the scaled queries, the scores, the weights and the sums of weights to the dtype of Q, and may
 * rescale its sums when a larger score comes (online softmax). The error of a result is that of the weights, by sgemm,
 * which do not move a mean of equal values; what a row has in common; and the accumulation in f32. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/threads.h"
#include "datapass/blas.h"
#include "kb/arith.h"
#include "reference.h"
#include "softmax.h"

enum { QUERY_PANEL = 128 };

struct heads {
    struct kb_attention how;
    struct gathered q, k, v;
    uint64_t queries, keys, d;                          /* of a head: rows of Q, of K and V; columns */
    uint64_t panels;                                    /* of a head */
    double *value;
    float *error;
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

/* ---- a panel: queries of a head */

struct panel {
    const struct heads *heads;
    uint64_t rows, seen, keys, at, kv_at;               /* seen: keys of the first row; at: of Q and O; kv_at: of K, V */
    double *scores;                                     /* rows x keys, then weights */
    float *errors;
    double *by_key;                                     /* K transposed; then scratch */
    double *row_terms, *row_errors, *key_terms, *key_errors;
};

/* The roots of the sums of squares of the powers of a row's d values, and of its errors. */
static void row_powers(const struct heads *h, const struct gathered *g, uint64_t at, double *terms, double *errors)
{
    *terms = *errors = 0;
    for (uint64_t c = 0; c < h->d; c++) {
        double value = error_power(g->value[at + c]), error = gathered_power(g, at + c);
        *terms += value * value;
        *errors += error * error;
    }
    *terms = sqrt(*terms);
    *errors = sqrt(*errors);
}

static void compute_scores(const struct panel *p)
{
    const struct heads *h = p->heads;
    uint64_t wide = row_stride(h, 1), stride = row_stride(h, h->how.heads / h->how.kv_heads);
    for (uint64_t j = 0; j < p->keys; j++) {
        row_powers(h, &h->k, p->kv_at + j * wide, &p->key_terms[j], &p->key_errors[j]);
        for (uint64_t c = 0; c < h->d; c++)
            p->by_key[c * p->keys + j] = h->k.value[p->kv_at + j * wide + c];
    }
    for (uint64_t i = 0; i < p->rows; i++)
        row_powers(h, &h->q, p->at + i * stride, &p->row_terms[i], &p->row_errors[i]);
    blas_dgemm(p->rows, p->keys, h->d, h->q.value + p->at, stride, p->by_key, p->keys, 0, p->scores, p->keys);
}

/* The power of the error of a score, before it is scaled: its operands, a rounded query, and the sum. */
static double score_power(const struct panel *p, uint64_t i, uint64_t j, double score)
{
    enum dtype dtype = p->heads->q.dtype;
    double terms = p->row_terms[i] * p->key_terms[j];
    return p->row_errors[i] * p->key_terms[j] + (p->row_terms[i] + p->row_errors[i]) * p->key_errors[j] +
           terms * rounding_power(dtype, 1) + accumulation_power(DTYPE_f32, (double)p->heads->d, score, terms);
}

/* Turns the scores of a row into weights: a softmax of the keys that it sees; the other weights are 0. */
static void weigh_row(const struct panel *p, uint64_t i)
{
    enum dtype dtype = p->heads->q.dtype;
    double *score = p->scores + i * p->keys, factor = 1 / sqrt((double)p->heads->d);
    float *error = p->errors + i * p->keys;
    uint64_t seen = p->heads->how.causal ? p->seen + i : p->keys;
    for (uint64_t j = 0; j < seen; j++) {
        double power = score_power(p, i, j, score[j]) * error_power(factor);
        score[j] *= factor;
        error[j] = (float)error_root(power + rounding_power(dtype, score[j]));
    }
    softmax_row(dtype, (struct softmax_line){score, error}, seen, score, error);
    for (uint64_t j = seen; j < p->keys; j++)
        score[j] = 0, error[j] = 0;
}

/* A matrix of f32: what it holds is `unit` times that. */
struct scaled {
    float *at;
    double unit;
};

/* Turns f64 into f32, over the largest magnitude. */
static struct scaled scaled_of(const double *from, uint64_t count)
{
    struct scaled s = {reference_alloc(count, sizeof *s.at), 0};
    for (uint64_t i = 0; i < count; i++)
        s.unit = fabs(from[i]) > s.unit && isfinite(from[i]) ? fabs(from[i]) : s.unit;
    for (uint64_t i = 0; i < count; i++)
        s.at[i] = (float)(from[i] / (s.unit > 0 ? s.unit : 1));
    return s;
}

enum part { ERRORS, ERRORS_AND_WEIGHTS };
enum values { VALUES, POWERS, ERROR_POWERS };

/* The powers of the weights' errors, or of them and the weights, times what is asked for of V: rows x d. */
static double *weighted(const struct panel *p, enum part part, enum values of)
{
    const struct heads *h = p->heads;
    uint64_t wide = row_stride(h, 1), count = p->rows * p->keys;
    double *from = reference_alloc(kb_max(kb_max(count, p->keys * h->d), p->rows * h->d), sizeof *from);
    for (uint64_t i = 0; i < count; i++)
        from[i] = error_power((double)p->errors[i]) + (part == ERRORS ? 0 : error_power(p->scores[i]));
    struct scaled a = scaled_of(from, count);
    for (uint64_t i = 0; i < p->keys * h->d; i++) {
        uint64_t at = p->kv_at + i / h->d * wide + i % h->d;
        double v = h->v.value[at];
        from[i] = of == VALUES ? v : of == POWERS ? error_power(v) : gathered_power(&h->v, at);
    }
    struct scaled b = scaled_of(from, p->keys * h->d);
    float *sums = reference_alloc(p->rows * h->d, sizeof *sums);
    blas_sgemm(p->rows, h->d, p->keys, a.at, p->keys, b.at, h->d, 0, sums, h->d);
    for (uint64_t i = 0; i < p->rows * h->d; i++)
        from[i] = (double)sums[i] * a.unit * b.unit;
    free(a.at), free(b.at), free(sums);
    return from;
}

/* The power of what the errors of the weights do to o = (sum of p v) / (sum of p): the sum of (error of p (v - o))^2. */
static double weights_power(double own, double of_values, double of_powers, double o)
{
    if (error_mode == ERRORS_WORST)
        return of_powers + own * fabs(o);
    double power = of_powers - 2 * o * of_values + o * o * own, least = 1e-6 * of_powers;      /* sgemm's digits */
    return power > least ? power : least;
}

/* For each column of V, the root of the sum of the squares of its powers. */
static double *value_terms_of(const struct panel *p)
{
    const struct heads *h = p->heads;
    double *terms = reference_alloc(h->d, sizeof *terms);
    for (uint64_t j = 0; j < p->keys; j++)
        for (uint64_t c = 0; c < h->d; c++) {
            double power = error_power(h->v.value[p->kv_at + j * row_stride(h, 1) + c]);
            terms[c] += power * power;
        }
    for (uint64_t c = 0; c < h->d; c++)
        terms[c] = sqrt(terms[c]);
    return terms;
}

static void combine_values(const struct panel *p)
{
    const struct heads *h = p->heads;
    enum dtype dtype = h->q.dtype;
    uint64_t wide = row_stride(h, 1), stride = row_stride(h, h->how.heads / h->how.kv_heads);
    blas_dgemm(p->rows, h->d, p->keys, p->scores, p->keys, h->v.value + p->kv_at, wide, 0, h->value + p->at, stride);
    double *of_values = weighted(p, ERRORS, VALUES), *of_powers = weighted(p, ERRORS, POWERS);
    double *of_errors = h->v.error ? weighted(p, ERRORS_AND_WEIGHTS, ERROR_POWERS) : NULL;
    double *value_terms = value_terms_of(p);
    for (uint64_t i = 0; i < p->rows; i++) {
        double own = 0, weight_terms = 0;
        for (uint64_t j = 0; j < p->keys; j++) {
            double power = error_power(p->scores[i * p->keys + j]);
            own += error_power((double)p->errors[i * p->keys + j]);
            weight_terms += power * power;
        }
        weight_terms = sqrt(weight_terms);
        for (uint64_t c = 0; c < h->d; c++) {
            uint64_t at = i * h->d + c;
            double o = h->value[p->at + i * stride + c], terms = weight_terms * value_terms[c];
            double all = weights_power(own, of_values[at], of_powers[at], o) + (of_errors ? of_errors[at] : 0);
            /* The sum of weights and the factor that rescales sums are rounded once for a row. */
            all += 2 * rounding_power(dtype, o) + accumulation_power(DTYPE_f32, (double)p->keys, o, terms);
            h->error[p->at + i * stride + c] = (float)error_root(all);
        }
    }
    free(of_values), free(of_powers), free(of_errors), free(value_terms);
}

static void attention_panel(uint64_t i, unsigned thread, void *heads)
{
    const struct heads *h = heads;
    uint64_t head = i / h->panels, first = i % h->panels * QUERY_PANEL, group = h->how.heads / h->how.kv_heads;
    struct panel p = {.heads = h, .rows = kb_min(QUERY_PANEL, h->queries - first), .keys = h->keys,
                      .at = head_at(h, head, group, h->queries, first),
                      .kv_at = head_at(h, head / group, 1, h->keys, 0)};
    if (h->how.causal) {
        p.seen = h->keys - h->queries + first + 1;
        p.keys = p.seen + p.rows - 1;
    }
    p.scores = reference_alloc(p.rows * p.keys, sizeof *p.scores);
    p.errors = reference_alloc(p.rows * p.keys, sizeof *p.errors);
    p.by_key = reference_alloc(h->d * p.keys, sizeof *p.by_key);
    double *terms = p.row_terms = reference_alloc(2 * (p.rows + p.keys), sizeof *terms);
    p.row_errors = terms + p.rows;
    p.key_terms = terms + 2 * p.rows;
    p.key_errors = p.key_terms + p.keys;
    compute_scores(&p);
    for (uint64_t row = 0; row < p.rows; row++)
        weigh_row(&p, row);
    combine_values(&p);
    free(p.scores), free(p.errors), free(p.by_key), free(terms);
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
    struct heads h = {.how = how, .q = gather(call, q), .k = gather(call, k), .v = gather(call, v)};
    check_heads(call, &h);
    h.value = reference_alloc(h.q.elements, sizeof *h.value);
    h.error = reference_errors(h.q.elements, true);
    if (h.q.elements)
        attend_all(&h);
    gathered_free(&h.q);
    gathered_free(&h.k);
    gathered_free(&h.v);
    return reference_end(reference_new(h.q.dims, h.q.dtype, h.value, h.error));
}
