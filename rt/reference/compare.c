/* compare.c: elements against the values and bounds of a reference, panel by panel; the power of the comparison. */
#include "compare.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/threads.h"
#include "base/vector.h"
#include "kb/arith.h"
#include "product.h"
#include "projection.h"
#include "squares.h"
#include "store/store.h"

/* Bounds are counted by their exponents and first six bits. */
enum { BOUND_SHIFT = 46, BOUND_CLASSES = 1 << (63 - BOUND_SHIFT), PANEL_ELEMENTS = 1 << 16, PIECE = 512 };

/* What a function of f32 may be off by where it or what it is made from is a denormal. */
#define DENORMALS (8 * 0x1p-149)

/* What is found in a panel; those of all panels are added up in order. */
struct tally {
    double max_error, max_share, error_squares, squares;
    uint64_t wrong, position, sampled;
    double got, expected, allowed;                      /* of the first wrong one */
    bool nonzero;                                       /* something else than 0 is expected */
};

struct comparison {
    const struct tensor *tensor;
    struct reference *ref;
    struct projection *projection;                      /* NULL: every element is compared */
    double rms;                                         /* of a given reference */
    uint64_t panels;
    struct tally *tally;                                /* of each panel */
    uint64_t *bounds;                                   /* of each thread: how many elements have a bound of a class */
};

/* ---- bounds */

static unsigned bound_class(double bound)
{
    uint64_t bits;
    memcpy(&bits, &bound, sizeof bits);
    return (unsigned)(bits >> BOUND_SHIFT) & (BOUND_CLASSES - 1);
}

/* The upper end of a class; 0 for that of 0. */
static double class_bound(unsigned class)
{
    uint64_t bits = class ? (uint64_t)(class + 1) << BOUND_SHIFT : 0;
    double bound;
    memcpy(&bound, &bits, sizeof bound);
    return isnan(bound) ? INFINITY : bound;
}

/* Whether a dtype has a value. */
static bool holds(enum dtype dtype, double value)
{
    uint32_t element;
    dtype_from_f64(dtype, &value, &element, 1);
    return dtype_value(dtype, &element) == value;
}

static double bound_of(const struct comparison *c, double expected, double error)
{
    const struct reference *ref = c->ref;
    enum dtype dtype = c->tensor->dtype;
    if (!dtype_is_float(dtype))
        return error_allowance(error);
    double tolerance = dtype_tolerance(dtype), size = fabs(expected);
    if (error_mode == ERRORS_PLAIN)
        return tolerance + tolerance * size;
    if (ref->exact && (ref->dtype == dtype || error == 0))
        return holds(dtype, expected) ? 0 : rounding_bound(dtype, expected);
    if (ref->given)
        return tolerance * (c->rms + size);
    double allowance = error_allowance(error) + DENORMALS;
    return rounding_bound(dtype, size + allowance) + allowance;
}

/* ---- elements */

/* Expected elements from a position on. */
struct expected {
    uint64_t position, count;
    const double *value;
    const float *error;                                 /* NULL: 0 */
};

/* Where what is found about elements goes. */
struct finding {
    struct tally *tally;
    uint64_t *bounds;
    uint64_t copies;                                    /* that hold these elements: each counts as often */
};

/* The distance between two values: 0 between equal infinities and between two NaN, infinite between either of these and
 * any other value. */
static double error_of(double got, double expected)
{
    if (got == expected || (isnan(got) && isnan(expected)))
        return 0;
    double error = fabs(got - expected);
    return isnan(error) ? INFINITY : error;
}

static void compare_element(const struct comparison *c, const struct finding *to, uint64_t position, double got,
                            double expected, double bound)
{
    enum dtype dtype = c->tensor->dtype;
    struct tally *t = to->tally;
    double held = dtype_in_range(dtype, expected), error = error_of(got, held);
    bool close = dtype_close(dtype, got, expected, bound);
    if (!close && error > t->max_share * bound)
        t->max_share = error / bound;
    if (error > t->max_error && (!close || isfinite(error)))
        t->max_error = error;                           /* not the distance of a large number to infinity */
    if (close)
        return;
    if (t->wrong == 0 || position < t->position) {
        t->position = position;
        t->got = got;
        t->expected = held;
        t->allowed = bound;
    }
    t->wrong += to->copies;
}

/* Elements one by one. */
static void compare_each(const struct comparison *c, const struct finding *to, struct expected e, const double *got)
{
    enum dtype dtype = c->tensor->dtype;
    struct tally *t = to->tally;
    bool wraps = c->ref->wraps && !dtype_is_float(dtype);
    for (uint64_t i = 0; i < e.count; i++) {
        double expected = wraps ? dtype_wrapped(dtype, (int64_t)e.value[i]) : e.value[i];
        double bound = bound_of(c, expected, e.error ? (double)e.error[i] : 0), error = fabs(got[i] - expected);
        t->nonzero |= expected != 0;
        if (isfinite(expected)) {
            to->bounds[bound_class(bound)] += to->copies;
            t->squares += expected * expected * (double)to->copies;
        }
        if (isfinite(error))
            t->error_squares += error * error * (double)to->copies;
        if (error <= bound && error < (double)INFINITY) {
            t->max_error = error > t->max_error ? error : t->max_error;
            if (error > t->max_share * bound)
                t->max_share = error / bound;
        } else {
            compare_element(c, to, e.position + i, got[i], expected, bound);
        }
    }
}

/* ---- a piece at once, if all of its elements are usual ones within their bounds */

struct piece {
    double off[PIECE], share[PIECE], bound[PIECE];
};

/* bound_of floats in standard deviations. An error of NULL is 0. */
VECTOR_BODY void measure_body(struct piece *restrict piece, double unit, double least, const double *restrict value,
                              const float *restrict error, const double *restrict got, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        double allowance = ERROR_MARGIN * (error ? (double)error[i] : 0) + DENORMALS, off = fabs(got[i] - value[i]);
        double bound = rounding_bound_by(unit, least, fabs(value[i]) + allowance) + allowance;
        piece->off[i] = off;
        piece->bound[i] = bound;
        piece->share[i] = fabs(off / bound);
    }
}
VECTOR_FUNCTION(measure, (struct piece *piece, double unit, double least, const double *value, const float *error,
                          const double *got, uint64_t count), (piece, unit, least, value, error, got, count))

/* Numbers that are not negative are in the order of their bits; a NaN is the largest. */
VECTOR_BODY void largest_body(const double *values, uint64_t count, double *largest)
{
    int64_t most = 0, bits;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&bits, values + i, sizeof bits);
        most = bits > most ? bits : most;
    }
    memcpy(largest, &most, sizeof most);
}
VECTOR_FUNCTION(largest, (const double *values, uint64_t count, double *largest), (values, count, largest))

/* Whether elements are finite, and exactly what is expected. */
VECTOR_BODY void match_body(const double *value, const double *got, uint64_t count, bool *all)
{
    int64_t others = 0;
    for (uint64_t i = 0; i < count; i++)
        others |= !(got[i] - value[i] == 0);
    *all = !others;
}
VECTOR_FUNCTION(match, (const double *value, const double *got, uint64_t count, bool *all), (value, got, count, all))

static void add_piece(const struct finding *to, struct expected e, const struct piece *piece, double most_share)
{
    struct tally *t = to->tally;
    double most_error, squares;
    largest(piece->off, e.count, &most_error);
    t->max_error = most_error > t->max_error ? most_error : t->max_error;
    t->max_share = most_share > t->max_share ? most_share : t->max_share;
    sum_squares(piece->off, e.count, &squares);
    t->error_squares += squares * (double)to->copies;
    for (uint64_t i = 0; i < e.count; i++)
        to->bounds[bound_class(piece->bound[i])] += to->copies;
}

static void add_expected(const struct finding *to, struct expected e)
{
    double squares;
    sum_squares(e.value, e.count, &squares);
    to->tally->squares += squares * (double)to->copies;
    for (uint64_t i = 0; i < e.count && !to->tally->nonzero; i++)
        to->tally->nonzero = e.value[i] != 0;
}

/* At most PIECE elements. */
static void compare_piece(const struct comparison *c, const struct finding *to, struct expected e, const double *got)
{
    const struct reference *ref = c->ref;
    enum dtype dtype = c->tensor->dtype;
    bool floats = dtype_is_float(dtype), all = false;
    if ((floats ? ref->exact && error_mode != ERRORS_PLAIN && (ref->dtype == dtype || !e.error) : !ref->wraps && !e.error))
        match(e.value, got, e.count, &all);
    if (all) {
        to->bounds[bound_class(0)] += e.count * to->copies;
        add_expected(to, e);
        return;
    }
    struct piece piece;
    double most_share = INFINITY;
    if (floats && error_mode == ERRORS_STATISTICAL && !ref->exact && !ref->given) {
        measure(&piece, error_unit[dtype], error_least[dtype], e.value, e.error, got, e.count);
        largest(piece.share, e.count, &most_share);
    }
    if (most_share < 1) {
        add_piece(to, e, &piece, most_share);
        add_expected(to, e);
    } else {
        compare_each(c, to, e, got);
    }
}

/* ---- rows of a tensor */

/* Calls f for the parts of a shard's rows in [first, end) of the tensor, whose bytes are within reach. */
struct part {
    uint64_t position, count;
    const uint8_t *at;
};

typedef void part_fn(struct part part, void *arg);

static void shard_parts(const struct tensor *tensor, const struct shard *shard, uint64_t first, uint64_t end, part_fn *f,
                        void *arg)
{
    uint64_t low = 0, rows = tensor_rows(shard), high = rows, size = dtype_bytes[tensor->dtype];
    while (low < high) {                                /* the first row that ends after `first` */
        uint64_t middle = low + (high - low) / 2;
        struct tensor_row row = tensor_row(tensor, shard, middle);
        if (row.position + row.count > first)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low < rows; low++) {
        struct tensor_row row = tensor_row(tensor, shard, low);
        if (row.position >= end)
            return;
        uint64_t from = kb_max(row.position, first), to = kb_min(row.position + row.count, end);
        f((struct part){from, to - from,
                        (const uint8_t *)store_at(row.memory, row.offset + (from - row.position) * size)}, arg);
    }
}

static void each_part(const struct tensor *tensor, uint64_t first, uint64_t end, part_fn *f, void *arg)
{
    for (uint32_t i = 0; i < tensor->shards; i++)
        shard_parts(tensor, &tensor->shard[i], first, end, f, arg);
}

/* ---- panels */

struct panel {
    const struct comparison *comparison;
    struct finding finding;
    struct expected expected;
    double *got;                                        /* where elements are copied to, of a whole panel */
};

static void compare_part(struct part part, void *arg)
{
    const struct panel *p = arg;
    double got[PIECE];
    enum dtype dtype = p->comparison->tensor->dtype;
    for (uint64_t done = 0; done < part.count; done += PIECE) {
        uint64_t at = part.position + done - p->expected.position, count = kb_min(PIECE, part.count - done);
        struct expected e = {part.position + done, count, p->expected.value + at,
                             p->expected.error ? p->expected.error + at : NULL};
        dtype_to_f64(dtype, part.at + done * dtype_bytes[dtype], got, count);
        compare_piece(p->comparison, &p->finding, e, got);
    }
}

static void copy_part(struct part part, void *arg)
{
    const struct panel *p = arg;
    dtype_to_f64(p->comparison->tensor->dtype, part.at, p->got + (part.position - p->expected.position), part.count);
}

/* The elements of a copy from a position on, which have no gaps. */
static const void *copy_at(const struct tensor *tensor, uint32_t shard, uint64_t position)
{
    const struct shard *copy = &tensor->shard[shard];
    return store_at(copy->memory, copy->offset + position * dtype_bytes[tensor->dtype]);
}

/* Copies that hold the same bytes as the first one are compared with it. */
static void compare_copies(struct panel *p)
{
    const struct tensor *tensor = p->comparison->tensor;
    uint64_t first = p->expected.position, end = first + p->expected.count, alike = 1;
    for (uint32_t i = 1; i < tensor->shards; i++)
        if (memcmp(copy_at(tensor, i, first), copy_at(tensor, 0, first), (end - first) * dtype_bytes[tensor->dtype]))
            shard_parts(tensor, &tensor->shard[i], first, end, compare_part, p);
        else
            alike++;
    p->finding.copies = alike;
    shard_parts(tensor, &tensor->shard[0], first, end, compare_part, p);
    p->finding.copies = 1;
}

static void compare_expected(struct panel *p)
{
    const struct tensor *tensor = p->comparison->tensor;
    if (tensor->place.split == KB_COPIES)
        compare_copies(p);
    else
        each_part(tensor, p->expected.position, p->expected.position + p->expected.count, compare_part, p);
}

/* Some rows of a deferred reference, element by element. */
static void compare_deferred_rows(struct panel *p, struct row_panel rows)
{
    const struct reference *ref = p->comparison->ref;
    uint64_t count = rows.rows * ref->columns;
    double *value = reference_scratch(count, sizeof *value);
    float *error = ref->exact ? NULL : reference_scratch(count, sizeof *error);
    ref->compute(ref, rows, value, error);
    p->expected = (struct expected){rows.row * ref->columns, count, value, error};
    compare_expected(p);
    free(value), free(error);
}

/* The limits of the blocks of a panel. */
struct limits {
    struct limit {
        double value;
        uint64_t columns;
    } *at;
    uint64_t count;
};

static void add_limit(double limit, uint64_t columns, void *arg)
{
    struct limits *limits = arg;
    limits->at[limits->count++] = (struct limit){limit, columns};
}

/* Looks at a panel element by element; at one of a large product through projections, and at one of its rows, element by element, or
 * at all of them where the projections are off. */
static void compare_deferred(struct panel *p, uint64_t i)
{
    const struct comparison *c = p->comparison;
    struct row_panel rows = deferred_panel(c->ref, i);
    uint64_t first = rows.row * c->ref->columns, count = rows.rows * c->ref->columns;
    if (!c->projection)
        return compare_deferred_rows(p, rows);
    struct projected found = {0};
    p->expected = (struct expected){first, count, NULL, NULL};
    p->got = reference_scratch(count, sizeof *p->got);
    each_part(c->tensor, first, first + count, copy_part, p);
    uint64_t blocks = kb_ceil_div(c->ref->columns, PROJECTION_COLUMNS);
    struct limits limits = {reference_scratch(rows.rows * blocks, sizeof *limits.at), 0};
    if (!projection_passes(c->projection, rows, p->got, &found, add_limit, &limits)) {
        compare_deferred_rows(p, rows);
    } else {
        uint64_t sample = (i * UINT64_C(0x9e3779b97f4a7c15) >> 32) % rows.rows;
        compare_deferred_rows(p, (struct row_panel){rows.row + sample, 1});
        p->finding.tally->sampled = c->ref->columns;
        p->finding.tally->error_squares = found.error_squares;
        p->finding.tally->squares = found.squares;
        for (uint64_t i = 0; i < limits.count; i++)
            p->finding.bounds[bound_class(limits.at[i].value)] += limits.at[i].columns;
    }
    free(limits.at), free(p->got);
}

static void compare_panel(uint64_t i, unsigned thread, void *arg)
{
    const struct comparison *c = arg;
    const struct reference *ref = c->ref;
    struct panel p = {.comparison = c,
                      .finding = {&c->tally[i], c->bounds + thread * (uint64_t)BOUND_CLASSES, 1}};
    if (ref->compute) {
        compare_deferred(&p, i);
    } else {
        uint64_t first = i * PANEL_ELEMENTS, count = kb_min(PANEL_ELEMENTS, ref->elements - first);
        double *values = ref->raw ? reference_scratch(count, sizeof *values) : NULL;
        if (values)
            dtype_to_f64(ref->dtype, ref->raw + first * dtype_bytes[ref->dtype], values, count);
        p.expected = (struct expected){first, count, values ? values : ref->value + first,
                                       ref->error ? ref->error + first : NULL};
        compare_expected(&p);
        free(values);
    }
    if (thread == 0 && ref->compute)
        progress("reference", i, c->panels);
}

/* ---- the whole */

static void add_tally(struct tally *all, const struct tally *one)
{
    all->max_error = fmax(all->max_error, one->max_error);
    all->max_share = fmax(all->max_share, one->max_share);
    all->error_squares += one->error_squares;
    all->squares += one->squares;
    all->sampled += one->sampled;
    all->nonzero |= one->nonzero;
    if (one->wrong && (all->wrong == 0 || one->position < all->position)) {
        all->position = one->position;
        all->got = one->got;
        all->expected = one->expected;
        all->allowed = one->allowed;
    }
    all->wrong += one->wrong;
}

/* The bound that only a thousandth of the elements exceed. */
static double usual_bound(const struct comparison *c, uint64_t *elements)
{
    uint64_t *sum = c->bounds, above = 0;
    *elements = 0;
    for (unsigned class = 0; class < BOUND_CLASSES; class++) {
        for (unsigned thread = 1; thread < thread_count; thread++)
            sum[class] += c->bounds[thread * (uint64_t)BOUND_CLASSES + class];
        *elements += sum[class];
    }
    for (unsigned class = BOUND_CLASSES; class-- > 0;)
        if ((above += sum[class]) > *elements / 1000)
            return class_bound(class);
    return 0;
}

static double rms_of(const struct reference *ref)
{
    double squares = 0;
    for (uint64_t i = 0; i < ref->elements; i++)
        squares += isfinite(ref->value[i]) ? ref->value[i] * ref->value[i] : 0;
    return sqrt(squares / (double)ref->elements);
}

static void conclude(struct verification *v, const struct comparison *c, const struct tally *t)
{
    uint64_t elements;
    double bound = usual_bound(c, &elements);
    v->rms = elements ? sqrt(t->squares / (double)elements) : 0;
    v->max_error = t->max_error;
    v->max_share = t->max_share;
    v->relative = t->squares > 0 ? sqrt(t->error_squares / t->squares) : 0;
    v->power = bound == 0 ? 0 : v->rms > 0 ? bound / v->rms : INFINITY;
    v->wrong = t->wrong;
    v->position = t->position;
    v->got = t->got;
    v->expected = t->expected;
    v->allowed = t->allowed;
    v->sampled = t->sampled;
    if (t->sampled)
        v->missed = fmin(1, pow(sqrt(2 / M_PI) * v->power, PROJECTION_VECTORS));
    v->verdict = t->wrong ? VERDICT_WRONG : !t->nonzero ? VERDICT_ZEROS : v->power >= POWER_LEAST ? VERDICT_WEAK
                                                                                              : VERDICT_OK;
}

static void reach_all(const struct tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        store_reach(shard->memory, shard->offset + shard->elements * dtype_bytes[tensor->dtype]);
    }
}

void compare_tensor(struct verification *v, struct reference *ref)
{
    struct comparison c = {.tensor = v->tensor, .ref = ref};
    struct tally all = {0};
    if (v->tensor->place.split != KB_COPIES || v->tensor->shards == 1)
        c.projection = projection_new(ref, v->tensor->dtype);
    if (ref->given)
        c.rms = rms_of(ref);
    threads_prepare();
    reach_all(v->tensor);
    c.panels = ref->compute ? deferred_panels(ref) : kb_ceil_div(ref->elements, PANEL_ELEMENTS);
    c.tally = reference_alloc(c.panels, sizeof *c.tally);
    c.bounds = reference_alloc((uint64_t)thread_count * BOUND_CLASSES, sizeof *c.bounds);
    threads_run(c.panels, compare_panel, &c);
    progress_end();
    for (uint64_t i = 0; i < c.panels; i++)
        add_tally(&all, &c.tally[i]);
    conclude(v, &c, &all);
    projection_free(c.projection);
    free(c.tally), free(c.bounds);
}
