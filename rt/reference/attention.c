/* attention.c: references of attention: softmax(Q K^T / sqrt(d)) V, with the scores of a panel of queries at a time.
 *
 * A panel has queries of all heads that share K and V. What is made of K and V alone is made once for all of them.
 *
 * A kernel may round the scaled queries, the scores, the weights and the sums of weights to the dtype of Q, and may
 * rescale its sums when a larger score comes (online softmax). The error of a result is that of the weights, by sgemm,
 * which do not move a mean of equal values; what a row has in common; and the accumulation in f32.
 *
 * Operands narrower than f32 are multiplied in slices (slices.h), unless there are few queries. The weights are rounded to f32 before,
 * which is less than a rounding of a slice's sum. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/threads.h"
#include "base/vector.h"
#include "datapass/blas.h"
#include "kb/arith.h"
#include "reference.h"
#include "slices.h"
#include "softmax.h"

enum { QUERY_PANEL = 128, KEY_BLOCK = 128 };

/* What the errors of weights are multiplied with, column beside column: V, its powers; and those of its errors. */
enum part { VALUES, POWERS, ERROR_POWERS, PARTS };

/* K and V of some heads, and what is made of them for all of their queries. */
struct keys {
    uint64_t at;                                        /* of the first element of K and of V */
    double *k, *v;                                      /* keys x d */
    double *terms, *errors;                             /* of each key: roots of sums of squares of powers */
    float *single_k;                                    /* K in f32, if all are narrow */
    float *parts;                                       /* keys x PARTS x d, each part over its unit */
    double unit[PARTS];
    double *value_terms;                                /* sums of squares of V's powers by column, before each block */
};

struct heads {
    struct kb_attention how;
    struct gathered q, k, v;
    bool narrow;                                        /* all of them are narrower than f32, of many queries: multiplied in slices */
    uint64_t queries, keys, d;                          /* of a head: rows of Q, of K and V; columns */
    uint64_t group;                                     /* heads that share K and V */
    uint64_t done, panels;                              /* of all heads; panels of a group */
    struct keys shared;                                 /* of the heads under way */
    uint64_t kv_head;
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

/* ---- K and V of some heads */

/* The roots of the sums of squares of the powers of a row's d values, and of its errors, which begin at `at`. */
static void row_powers(const struct heads *h, const double *row, const struct gathered *g, uint64_t at, double *terms,
                       double *errors)
{
    double sums[4] = {0}, own = 0;
    for (uint64_t c = 0; c < h->d; c++) {
        double value = error_power(row[c]);
        sums[c % 4] += value * value;
    }
    for (uint64_t c = 0; c < h->d && g->error; c++) {
        double error = gathered_power(g, at + c);
        own += error * error;
    }
    *terms = sqrt(sums[0] + sums[1] + (sums[2] + sums[3]));
    *errors = sqrt(own);
}

static double *value_terms_of(const struct heads *h, uint64_t key)
{
    return h->shared.value_terms + key / KEY_BLOCK * h->d;
}

static void add_value_terms(const struct heads *h, uint64_t first, uint64_t end, double *sums)
{
    for (uint64_t j = first; j < end; j++)
        for (uint64_t c = 0; c < h->d; c++) {
            double power = error_power(h->shared.v[j * h->d + c]);
            sums[c] += power * power;
        }
}

/* Turns a block's rows of V into floats over the units. */
static void make_parts(const struct heads *h, uint64_t first, uint64_t end)
{
    const struct keys *keys = &h->shared;
    double of_values = 1 / keys->unit[VALUES], of_powers = 1 / keys->unit[POWERS], of_errors = 1 / keys->unit[ERROR_POWERS];
    for (uint64_t j = first; j < end; j++) {
        uint64_t at = keys->at + j * row_stride(h, 1);
        const double *restrict v = keys->v + j * h->d;
        float *restrict to = keys->parts + j * PARTS * h->d;
        for (uint64_t c = 0; c < h->d; c++) {
            to[c] = (float)(v[c] * of_values);
            to[h->d + c] = (float)(error_power(v[c]) * of_powers);
        }
        for (uint64_t c = 0; c < h->d && h->v.error; c++)
            to[2 * h->d + c] = (float)(gathered_power(&h->v, at + c) * of_errors);
    }
}

static void prepare_blocks(uint64_t block, uint64_t blocks, void *heads)
{
    const struct heads *h = heads;
    const struct keys *keys = &h->shared;
    for (uint64_t first = block * KEY_BLOCK; blocks-- > 0; first += KEY_BLOCK) {
        uint64_t end = kb_min(first + KEY_BLOCK, h->keys);
        if (h->narrow)
            dtype_from_f64(DTYPE_f32, keys->k + first * h->d, keys->single_k + first * h->d, (end - first) * h->d);
        for (uint64_t j = first; j < end; j++)
            row_powers(h, keys->k + j * h->d, &h->k, keys->at + j * row_stride(h, 1), &keys->terms[j], &keys->errors[j]);
        add_value_terms(h, first, end, value_terms_of(h, first) + h->d);
        make_parts(h, first, end);
    }
}

/* The largest magnitudes of V, as a power of two, and of its errors: f32 holds what is over them, and its products. */
static void find_units(struct heads *h)
{
    struct keys *keys = &h->shared;
    double value = 0, error = 0;
    for (uint64_t j = 0; j < h->keys; j++)
        for (uint64_t c = 0; c < h->d; c++) {
            uint64_t at = keys->at + j * row_stride(h, 1) + c;
            double size = fabs(keys->v[j * h->d + c]), own = h->v.error ? (double)h->v.error[at] : 0;
            value = size > value && isfinite(size) ? size : value;
            error = own > error && isfinite(own) ? own : error;
        }
    double above = rounding_bound_by(2, 0, value);      /* the next power of two */
    keys->unit[VALUES] = above > 0 ? above : 1;
    keys->unit[POWERS] = error_power(keys->unit[VALUES]);
    keys->unit[ERROR_POWERS] = error > 0 ? error_power(error) : 1;
}

static void prepare_keys(struct heads *h, uint64_t kv_head)
{
    uint64_t blocks = kb_ceil_div(h->keys, KEY_BLOCK);
    h->kv_head = kv_head;
    h->shared.at = head_at(h, kv_head, 1, h->keys, 0);
    for (uint64_t j = 0; j < h->keys; j++) {
        gathered_copy(&h->k, h->shared.at + j * row_stride(h, 1), h->d, h->shared.k + j * h->d);
        gathered_copy(&h->v, h->shared.at + j * row_stride(h, 1), h->d, h->shared.v + j * h->d);
    }
    find_units(h);
    memset(h->shared.value_terms, 0, (blocks + 1) * h->d * sizeof *h->shared.value_terms);
    reference_each_batch(blocks, KEY_BLOCK * h->d, prepare_blocks, h);
    for (uint64_t i = h->d; i < (blocks + 1) * h->d; i++)
        h->shared.value_terms[i] += h->shared.value_terms[i - h->d];
}

/* ---- a panel of queries: of one head after the other */

struct panel {
    const struct heads *heads;
    uint64_t first, rows, keys;                         /* keys: that any of its rows sees */
    double *q, *o;                                      /* rows x d */
    double *scores;                                     /* rows x keys, then weights */
    float *single;                                      /* Q, then the weights in f32; NULL if they are not narrow */
    float *powers;                                      /* of the errors of the weights */
    double *row_powers;                                 /* of a row's scores, then weights */
};

/* Where a row of the panel begins in Q and in O. */
static uint64_t row_at(const struct heads *h, uint64_t row)
{
    return head_at(h, h->kv_head * h->group + row / h->queries, h->group, h->queries, row % h->queries);
}

static uint64_t keys_seen(const struct heads *h, uint64_t row)
{
    return h->how.causal ? h->keys - h->queries + row % h->queries + 1 : h->keys;
}

static void compute_scores(const struct panel *p)
{
    const struct heads *h = p->heads;
    for (uint64_t i = 0; i < p->rows; i++)
        gathered_copy(&h->q, row_at(h, p->first + i), h->d, p->q + i * h->d);
    if (p->single) {
        dtype_from_f64(DTYPE_f32, p->q, p->single, p->rows * h->d);
        if (slices_multiply(p->rows, p->keys, h->d, SLICE, p->single, h->d, h->shared.single_k, h->d, true, p->scores))
            return;
    }
    blas_dgemm_transposed(p->rows, p->keys, h->d, p->q, h->d, h->shared.k, h->d, p->scores, p->keys);
}

static void compute_values(const struct panel *p)
{
    const struct heads *h = p->heads;
    const double unit = h->shared.unit[VALUES];
    if (p->single) {
        dtype_from_f64(DTYPE_f32, p->scores, p->single, p->rows * p->keys);
        bool finite = slices_multiply(p->rows, h->d, p->keys, SLICE, p->single, p->keys, h->shared.parts, PARTS * h->d, false, p->o);
        for (uint64_t i = 0; i < p->rows * h->d; i++)
            p->o[i] *= unit;
        if (finite)
            return;
    }
    blas_dgemm(p->rows, h->d, p->keys, p->scores, p->keys, h->shared.v, h->d, 0, p->o, h->d);
}

/* Scales the scores of a row. The power of the error of a score: its operands', a rounded query's, and the sum's. */
VECTOR_BODY void scale_scores_in(enum error_mode mode, const struct heads *h, double row_terms, double row_errors,
                                 uint64_t count, double *restrict score, double *restrict power)
{
    enum dtype dtype = h->q.dtype;
    const double *restrict key_terms = h->shared.terms, *restrict key_errors = h->shared.errors;
    double d = (double)h->d, factor = 1 / sqrt(d), factor_power = error_power_in(mode, factor);
    double rounded = rounding_power_in(mode, dtype, 1), roundings = d + (h->narrow ? slices_roundings(h->d) : 0);
    for (uint64_t j = 0; j < count; j++) {
        double terms = row_terms * key_terms[j], scaled = score[j] * factor;
        double all = row_errors * key_terms[j] + (row_terms + row_errors) * key_errors[j] + terms * rounded +
                     accumulation_power_in(mode, DTYPE_f32, roundings, score[j], terms);
        power[j] = all * factor_power + rounding_power_in(mode, dtype, scaled);
        score[j] = scaled;
    }
}
ERROR_FUNCTION(scale_scores, (const struct heads *h, double row_terms, double row_errors, uint64_t count, double *score,
                               double *power), (h, row_terms, row_errors, count, score, power))

/* Turns the scores of a row into weights: a softmax of the keys that it sees; the other weights are 0. */
static void weigh_row(const struct panel *p, uint64_t i)
{
    const struct heads *h = p->heads;
    double *score = p->scores + i * p->keys, row_terms, row_errors;
    float *power = p->powers + i * p->keys;
    uint64_t seen = keys_seen(h, p->first + i);
    row_powers(h, p->q + i * h->d, &h->q, row_at(h, p->first + i), &row_terms, &row_errors);
    scale_scores(h, row_terms, row_errors, seen, score, p->row_powers);
    softmax_row(h->q.dtype, score, p->row_powers, seen);
    for (uint64_t j = 0; j < seen; j++)
        power[j] = (float)p->row_powers[j];
    for (uint64_t j = seen; j < p->keys; j++)
        score[j] = 0, power[j] = 0;
}

/* The power of what the errors of the weights do to o = (sum of p v) / (sum of p): the sum of (error of p (v - o))^2. */
static double weights_power(double own, double of_values, double of_powers, double o)
{
    if (error_mode == ERRORS_WORST)
        return of_powers + own * fabs(o);
    double power = of_powers - 2 * o * of_values + o * o * own, least = 1e-6 * of_powers;      /* sgemm's digits */
    return power > least ? power : least;
}

/* Sums over a row of weights: of the powers of their errors, and of the squares of their own powers. */
VECTOR_BODY void sum_weights_body(const double *weight, const float *power, uint64_t count, double sum[2])
{
    enum { LANES = 4 };
    double own[LANES] = {0}, terms[LANES] = {0};
    uint64_t j = 0;
    for (; j + LANES <= count; j += LANES)
        for (unsigned lane = 0; lane < LANES; lane++) {
            double of_weight = error_power(weight[j + lane]);
            own[lane] += (double)power[j + lane];
            terms[lane] += of_weight * of_weight;
        }
    for (; j < count; j++) {
        own[0] += (double)power[j];
        terms[0] += error_power(weight[j]) * error_power(weight[j]);
    }
    sum[0] = own[0] + own[1] + (own[2] + own[3]);
    sum[1] = terms[0] + terms[1] + (terms[2] + terms[3]);
}
VECTOR_FUNCTION(sum_weights, (const double *weight, const float *power, uint64_t count, double sum[2]),
                (weight, power, count, sum))

/* The powers of the errors of a row of O, of sums over V, its powers and those of its errors. */
static void row_errors(const struct panel *p, uint64_t i, const double *value_terms, const float *sums)
{
    const struct heads *h = p->heads;
    enum dtype dtype = h->q.dtype;
    const double *unit = h->shared.unit;
    double sum[2];
    uint64_t at = row_at(h, p->first + i);
    sum_weights(p->scores + i * p->keys, p->powers + i * p->keys, p->keys, sum);
    double weight_terms = sqrt(sum[1]), roundings = (double)p->keys + (h->narrow ? slices_roundings(p->keys) : 0);
    for (uint64_t c = 0; c < h->d; c++) {
        double o = p->o[i * h->d + c], terms = weight_terms * sqrt(value_terms[c]);
        double all = weights_power(sum[0], (double)sums[c] * unit[VALUES], (double)sums[h->d + c] * unit[POWERS], o) +
                     (h->v.error ? (double)sums[2 * h->d + c] * unit[ERROR_POWERS] : 0);
        /* The sum of weights and the factor that rescales sums are rounded once for a row. */
        all += 2 * rounding_power(dtype, o) + accumulation_power(DTYPE_f32, roundings, o, terms);
        h->value[at + c] = o;
        h->error[at + c] = (float)error_root(all);
    }
}

static void combine_values(const struct panel *p)
{
    const struct heads *h = p->heads;
    const float *parts = h->shared.parts;
    uint64_t wide = PARTS * h->d, last = p->keys / KEY_BLOCK * KEY_BLOCK;
    float *sums = reference_scratch(p->rows * wide, sizeof *sums);
    double *value_terms = reference_alloc(h->d, sizeof *value_terms);
    compute_values(p);
    blas_sgemm(p->rows, 2 * h->d, p->keys, p->powers, p->keys, parts, wide, 0, sums, wide);
    memcpy(value_terms, value_terms_of(h, last), h->d * sizeof *value_terms);
    add_value_terms(h, last, p->keys, value_terms);
    if (h->v.error) {
        float *both = reference_scratch(p->rows * p->keys, sizeof *both);
        for (uint64_t i = 0; i < p->rows * p->keys; i++)
            both[i] = p->powers[i] + (float)error_power(p->scores[i]);
        blas_sgemm(p->rows, h->d, p->keys, both, p->keys, parts + 2 * h->d, wide, 0, sums + 2 * h->d, wide);
        free(both);
    }
    for (uint64_t i = 0; i < p->rows; i++)
        row_errors(p, i, value_terms, sums + i * wide);
    free(sums), free(value_terms);
}

static void attention_panel(uint64_t i, unsigned thread, void *heads)
{
    const struct heads *h = heads;
    uint64_t first = i * QUERY_PANEL;
    struct panel p = {.heads = h, .first = first, .rows = kb_min(QUERY_PANEL, h->group * h->queries - first)};
    for (uint64_t row = first; row < first + p.rows; row++)
        p.keys = kb_max(p.keys, keys_seen(h, row));
    p.scores = reference_scratch(p.rows * p.keys, sizeof *p.scores);
    p.powers = reference_scratch(p.rows * p.keys, sizeof *p.powers);
    p.single = h->narrow ? reference_scratch(p.rows * kb_max(p.keys, h->d), sizeof *p.single) : NULL;
    p.row_powers = reference_scratch(p.keys, sizeof *p.row_powers);
    p.q = reference_scratch(2 * p.rows * h->d, sizeof *p.q);
    p.o = p.q + p.rows * h->d;
    compute_scores(&p);
    for (uint64_t row = 0; row < p.rows; row++)
        weigh_row(&p, row);
    combine_values(&p);
    free(p.scores), free(p.powers), free(p.single), free(p.row_powers), free(p.q);
    if (thread == 0)
        progress("reference", h->done + i, h->how.kv_heads * h->panels);
}

static void attend_all(struct heads *h)
{
    struct keys *keys = &h->shared;
    blas_open();
    enum { FEW = 32 };                                  /* queries, for which copies of K take longer than they save */
    h->group = h->how.heads / h->how.kv_heads;
    h->narrow = dtype_bytes[h->q.dtype] <= 2 && dtype_bytes[h->k.dtype] <= 2 && dtype_bytes[h->v.dtype] <= 2 &&
                h->group * h->queries >= FEW;
    h->panels = kb_ceil_div(h->group * h->queries, QUERY_PANEL);
    keys->k = reference_alloc(2 * h->keys * h->d, sizeof *keys->k);
    keys->v = keys->k + h->keys * h->d;
    keys->single_k = h->narrow ? reference_scratch(h->keys * h->d, sizeof *keys->single_k) : NULL;
    keys->terms = reference_alloc(h->keys, sizeof *keys->terms);
    keys->errors = reference_alloc(h->keys, sizeof *keys->errors);
    keys->parts = reference_alloc(h->keys * PARTS * h->d, sizeof *keys->parts);
    keys->value_terms = reference_alloc((kb_ceil_div(h->keys, KEY_BLOCK) + 1) * h->d, sizeof *keys->value_terms);
    for (uint64_t i = 0; i < h->how.kv_heads; i++, h->done += h->panels) {
        prepare_keys(h, i);
        threads_run(h->panels, attention_panel, h);
    }
    progress_end();
    free(keys->k), free(keys->single_k), free(keys->terms), free(keys->errors), free(keys->parts), free(keys->value_terms);
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
    struct heads h = {.how = how, .q = gather_raw(call, q), .k = gather_raw(call, k), .v = gather_raw(call, v)};
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
