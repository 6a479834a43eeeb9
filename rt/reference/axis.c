/* axis.c: references of what joins or moves elements along an axis: reductions, softmax, norms; copies, exchanges and
 * transpositions. In f64; integers wrap.
 *
 * A softmax and the norms are sequences of ops. A kernel may store the result of each in the dtype of x, so each of them
 * is rounded to it; only sums are of f32. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/vector.h"
#include "common/arena.h"
#include "common/diag.h"
#include "datapass/math.h"
#include "deferred.h"
#include "evaluator.h"
#include "exponential.h"
#include "kb/arith.h"
#include "machine/tiling.h"
#include "softmax.h"
#include "squares.h"

/* ---- reductions along an axis */

static uint16_t reduction_of(const char *name)
{
    static const char *const names[KNOWN_OPS] = {
#define OP(name, ...) #name,
#include "kb/ops.def"
    };
    uint16_t op = 0;
    while (strcmp(names[op], name))
        op++;
    return op;
}

struct reduction {
    struct gathered x;
    uint16_t op;
    bool floats, mean;
    uint64_t count, stride;                             /* of the elements of a line */
    double *value;
    float *error;                                       /* NULL: 0 */
};

/* The error of a sum of the line x, whose first element is number `first`. */
static double sum_error(const struct reduction *r, struct line x, uint64_t first, double sum)
{
    double own = 0, powers = 0;
    for (uint64_t i = 0; i < r->count; i++) {
        own += gathered_power(&r->x, first + i * r->stride);
        powers += error_power(x.at[i * x.stride]);
    }
    return error_root(own + accumulation_power(DTYPE_f32, (double)r->count, sum, powers));
}

/* The error of the largest or smallest element: the largest error of those that may be it. */
static double extreme_error(const struct reduction *r, struct line x, uint64_t first, double extreme)
{
    double most = 0;
    for (uint64_t i = 0; i < r->count; i++) {
        double error = (double)r->x.error[first + i * r->stride];
        if (fabs(x.at[i * x.stride] - extreme) <= 2 * error_allowance(error))
            most = fmax(most, error);
    }
    return most;
}

/* Reduces a line, whose first element is number `first`. */
static void reduce_line(const struct reduction *r, uint64_t line, struct line x, uint64_t first)
{
    double value = evaluate_reduction(r->op, !r->floats, x);
    r->value[line] = value;
    if (!r->error)
        return;
    double divisor = r->mean ? (double)r->count : 1, rounded = error_root(rounding_power(DTYPE_f32, value));
    double error = op_traits(r->op).exact ? extreme_error(r, x, first, value) : sum_error(r, x, first, value * divisor);
    r->error[line] = (float)error_root(error_power(error / divisor) + (r->mean ? error_power(rounded) : 0));
}

/* Some lines side by side at a time, whose elements are copied out together. */
static void reduce_lines(uint64_t first_line, uint64_t lines, void *arg)
{
    enum { SIDE_BY_SIDE = 32 };
    const struct reduction *r = arg;
    uint64_t most = kb_min(SIDE_BY_SIDE, r->stride), count;
    double *values = reference_scratch(r->count * most, sizeof *values);
    for (uint64_t line = first_line; line < first_line + lines; line += count) {
        uint64_t first = line / r->stride * r->stride * r->count + line % r->stride;
        count = kb_min(kb_min(most, r->stride - line % r->stride), first_line + lines - line);
        for (uint64_t i = 0; i < r->count; i += most == 1 ? r->count : 1)
            gathered_copy(&r->x, first + i * r->stride, most == 1 ? r->count : count, values + i * count);
        for (uint64_t k = 0; k < count; k++)
            reduce_line(r, line + k, (struct line){values + k, r->count, count}, first + k);
    }
    free(values);
}

kb_ref kb_ref_along_at(const char *name, struct kb_values x, uint32_t axis, const char *file, uint32_t line)
{
    uint16_t op = reduction_of(name);
    struct call_site call = {arena_printf("kb_ref_%s", name), file, line};
    reference_begin(call);
    struct reduction r = {.x = gather_raw(call, x), .op = op, .mean = op_traits(op).reduction == REDUCTION_MEAN, .stride = 1};
    struct kb_dims dims = r.x.dims;
    if (axis >= dims.rank)
        misuse_of(call, "'%s' has %u axes, there is no axis %u", r.x.name, (unsigned)dims.rank, (unsigned)axis);
    r.floats = dtype_is_float(r.x.dtype);
    r.count = dims.size[axis];
    for (uint32_t i = axis + 1; i < dims.rank; i++)
        r.stride *= dims.size[i];
    uint64_t lines = r.x.elements / r.count;
    bool rounded = r.floats && (!op_traits(op).exact || r.x.error);
    r.value = reference_alloc(lines, sizeof *r.value);
    r.error = reference_errors(lines, rounded);
    reference_each_batch(lines, r.count, reduce_lines, &r);
    dims.size[axis] = 1;
    struct reference *ref = reference_new(dims, r.floats ? r.x.dtype : DTYPE_i32, r.value, r.error);
    ref->exact = !rounded;
    ref->stored = op_traits(op).exact;
    ref->wraps = !r.floats;
    gathered_free(&r.x);
    return reference_end(ref);
}

/* ---- along the last axis: softmax */

/* NaN if one of them is. */
VECTOR_BODY void find_largest_body(const double *x, uint64_t count, double *largest)
{
    enum { LANES = 4 };
    double most[LANES] = {x[0], x[0], x[0], x[0]}, sums[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (unsigned lane = 0; lane < LANES; lane++) {
            most[lane] = x[i + lane] > most[lane] ? x[i + lane] : most[lane];
            sums[lane] += 0 * x[i + lane];
        }
    for (; i < count; i++) {
        most[0] = x[i] > most[0] ? x[i] : most[0];
        sums[0] += 0 * x[i];
    }
    for (unsigned lane = 1; lane < LANES; lane++) {
        most[0] = most[lane] > most[0] ? most[lane] : most[0];
        sums[0] += sums[lane];
    }
    *largest = isnan(sums[0]) ? evaluate_reduction(OP_max, false, (struct line){x, count, 1}) : most[0];
}
VECTOR_FUNCTION(find_largest, (const double *x, uint64_t count, double *largest), (x, count, largest))

VECTOR_BODY void exponentials_in(enum error_mode mode, enum dtype dtype, double largest, double *restrict value,
                                 double *restrict power, uint64_t columns)
{
    for (uint64_t i = 0; i < columns; i++) {
        double from = value[i] - largest, to = exponential(from), own = rounding_power_in(mode, dtype, to);
        double of_operand = (rounding_power_in(mode, dtype, from) + power[i]) * error_power_in(mode, to);
        power[i] = own + (to > 0 ? of_operand : 0);
        value[i] = to;
    }
}
ERROR_FUNCTION(exponentials, (enum dtype dtype, double largest, double *value, double *power, uint64_t columns),
                (dtype, largest, value, power, columns))

VECTOR_BODY void sum_body(const double *value, uint64_t count, double *all)
{
    enum { LANES = 4 };
    double sum[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (unsigned lane = 0; lane < LANES; lane++)
            sum[lane] += value[i + lane];
    for (; i < count; i++)
        sum[0] += value[i];
    *all = sum[0] + sum[1] + (sum[2] + sum[3]);
}
VECTOR_FUNCTION(sum, (const double *value, uint64_t count, double *all), (value, count, all))

VECTOR_BODY void divide_body(double total, double *restrict value, double *restrict power, uint64_t columns)
{
    double factor = 1 / total, power_factor = 1 / error_power(total);
    for (uint64_t i = 0; i < columns; i++) {
        power[i] *= power_factor;
        value[i] *= factor;
    }
}
VECTOR_FUNCTION(divide, (double total, double *value, double *power, uint64_t columns), (total, value, power, columns))

double softmax_row(enum dtype dtype, double *value, double *power, uint64_t columns)
{
    double largest, total;
    find_largest(value, columns, &largest);
    exponentials(dtype, largest, value, power, columns);
    sum(value, columns, &total);
    divide(total, value, power, columns);
    /* The sum is rounded, and so is its reciprocal. */
    return 2 * rounding_power(dtype, 1) + accumulation_power(DTYPE_f32, (double)columns, 1, 1);
}

/* The errors of a row, with what comes through the sum. */
VECTOR_BODY void common_errors_in(enum error_mode mode, uint64_t columns, const double *restrict value,
                                  const double *restrict power, double common, float *restrict error)
{
    for (uint64_t i = 0; i < columns; i++) {
        double own = power[i] * (1 - 2 * value[i]) + error_power_in(mode, value[i]) * common;
        error[i] = (float)error_root_in(mode, own > 0 ? own : 0);
    }
}
ERROR_FUNCTION(common_errors, (uint64_t columns, const double *value, const double *power, double common, float *error),
                (columns, value, power, common, error))

/* A row of an operand: its values, and the powers of their errors. */
static void copy_row(const struct gathered *x, uint64_t first, uint64_t columns, double *value, double *power)
{
    gathered_copy(x, first, columns, value);
    memset(power, 0, columns * sizeof *power);
    for (uint64_t j = 0; x->error && j < columns; j++)
        power[j] = gathered_power(x, first + j);
}

static void softmax_rows(const struct reference *ref, struct row_panel panel, double *value, float *error)
{
    const struct gathered *x = ref->from;
    uint64_t columns = ref->columns;
    double *power = reference_scratch(columns, sizeof *power);
    for (uint64_t row = panel.row; row < panel.row + panel.rows; row++, value += columns, error += columns) {
        copy_row(x, row * columns, columns, value, power);
        double common = softmax_row(ref->dtype, value, power, columns), own;
        sum(power, columns, &own);
        common_errors(columns, value, power, common + own, error);
    }
    free(power);
}

static void softmax_release(void *from)
{
    gathered_free(from);
    free(from);
}

/* Defers a reference that is made from an operand x, if its elements are those of a tensor; else computes it. */
static kb_ref defer(const struct gathered *x, compute_panel *compute, void (*release)(void *from), void *from)
{
    struct reference *ref = reference_new(x->dims, x->dtype, NULL, NULL);
    bool raw = x->raw;
    reference_defer(ref, compute, release, from);
    if (!raw)
        deferred_evaluate(ref);
    return reference_end(ref);
}

kb_ref kb_ref_softmax_at(struct kb_values x, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_softmax", file, line};
    reference_begin(call);
    struct gathered *from = reference_alloc(1, sizeof *from);
    *from = gather_floats(call, x);
    return defer(from, softmax_rows, softmax_release, from);
}

/* ---- norms: (x - centre) / size * gain + bias, row by row */

/* Gain or bias: a row, with the powers of its errors. */
struct norm_operand {
    double *value, *power;
    bool is_number;
};

struct norm {
    struct gathered x;
    struct norm_operand gain, bias;
    double eps;
    bool centred;
    uint64_t columns;
};

/* What the errors of a row's elements have in common. */
struct norm_row {
    double centre, size, centre_power, size_power;      /* powers: of the error; of that of the size, relative to it */
};

/* The squares of the distances from the centre, and the powers of their errors. */
VECTOR_BODY void square_distances_in(enum error_mode mode, const struct norm *norm, double centre, const double *restrict x,
                                     const double *restrict power, double *restrict square, double *restrict of_square)
{
    enum dtype dtype = norm->x.dtype;
    double centred = norm->centred;                     /* 1 or 0, as loops with it become vectors */
    for (uint64_t i = 0; i < norm->columns; i++) {
        double d = x[i] - centre, of_d = power[i] + centred * rounding_power_in(mode, dtype, d);
        square[i] = d * d;
        of_square[i] = error_power_in(mode, 2 * d) * of_d + rounding_power_in(mode, dtype, d * d);
    }
}
ERROR_FUNCTION(square_distances, (const struct norm *norm, double centre, const double *x, const double *power, double *square,
                                  double *of_square), (norm, centre, x, power, square, of_square))

/* Of a row and the powers of its errors; `some` has room for two rows. */
static struct norm_row norm_common(const struct norm *norm, const double *x, const double *power, double *some)
{
    enum dtype dtype = norm->x.dtype;
    uint64_t columns = norm->columns;
    double n = (double)columns, squares, all_squares, own, of_squares;
    struct norm_row row = {0};
    if (norm->centred)
        sum(x, columns, &row.centre);
    row.centre /= n;
    square_distances(norm, row.centre, x, power, some, some + columns);
    sum(some, columns, &squares);
    sum(some + columns, columns, &of_squares);
    sum(power, columns, &own);
    sum_squares(x, columns, &all_squares);
    if (norm->centred)
        row.centre_power = own / error_power(n) + rounding_power(dtype, row.centre) +
                           accumulation_power(DTYPE_f32, n, row.centre, all_squares / error_power(n));
    row.size = sqrt(squares / n + norm->eps);
    /* A kernel may subtract the square of the mean from the mean of the squares, in f32. */
    double mean = all_squares / n, of_mean = of_squares / error_power(n) + accumulation_power(DTYPE_f32, n, mean, mean);
    row.size_power = of_mean / error_power(2 * row.size * row.size) + 2 * rounding_power(dtype, 1);
    return row;
}

VECTOR_BODY void norm_elements_in(enum error_mode mode, const struct norm *norm, const struct norm_row *row, const double *restrict x,
                                  const double *restrict power, double *restrict value, float *restrict error)
{
    enum dtype dtype = norm->x.dtype;
    double centred = norm->centred, biased = !norm->bias.is_number;     /* without a bias, a value is rounded when it is stored */
    double centre = row->centre, size = row->size, of_size = error_power_in(mode, size);
    double centre_power = row->centre_power, size_power = row->size_power;
    const double *restrict gain = norm->gain.value, *restrict gain_power = norm->gain.power;
    const double *restrict bias = norm->bias.value, *restrict bias_power = norm->bias.power;
    for (uint64_t i = 0; i < norm->columns; i++) {
        double d = x[i] - centre, z = d / size, of_d = power[i] + centre_power + centred * rounding_power_in(mode, dtype, d);
        double of_z = of_d / of_size + error_power_in(mode, z) * size_power + rounding_power_in(mode, dtype, z);
        double all = of_z * error_power_in(mode, gain[i]) + error_power_in(mode, z) * gain_power[i] + bias_power[i];
        all += biased * rounding_power_in(mode, dtype, z * gain[i]);
        value[i] = z * gain[i] + bias[i];
        error[i] = (float)error_root_in(mode, all);
    }
}
ERROR_FUNCTION(norm_elements, (const struct norm *norm, const struct norm_row *row, const double *x, const double *power, double *value,
                               float *error), (norm, row, x, power, value, error))

static void norm_rows(const struct reference *ref, struct row_panel panel, double *value, float *error)
{
    const struct norm *norm = ref->from;
    uint64_t columns = norm->columns;
    double *x = reference_scratch(4 * columns, sizeof *x), *power = x + columns;
    for (uint64_t i = panel.row; i < panel.row + panel.rows; i++, value += columns, error += columns) {
        copy_row(&norm->x, i * columns, columns, x, power);
        struct norm_row row = norm_common(norm, x, power, power + columns);
        norm_elements(norm, &row, x, power, value, error);
    }
    free(x);
}

static void norm_release(void *from)
{
    struct norm *norm = from;
    gathered_free(&norm->x);
    free(norm->gain.value), free(norm->bias.value);
    free(norm);
}

static struct norm_operand norm_operand(struct call_site call, struct kb_values from, uint64_t columns)
{
    struct gathered g = gather_floats(call, from);
    gathered_check_row(call, &g, columns, true);
    struct norm_operand row = {.value = reference_scratch(2 * columns, sizeof *row.value), .is_number = g.is_number};
    row.power = row.value + columns;
    for (uint64_t i = 0; i < columns && g.elements; i++)
        copy_row(&g, g.elements == 1 ? 0 : i, 1, row.value + i, row.power + i);
    gathered_free(&g);
    return row;
}

static kb_ref normed(struct call_site call, struct norm norm, struct kb_values x, struct kb_values gain, struct kb_values bias)
{
    reference_begin(call);
    struct norm *from = reference_alloc(1, sizeof *from);
    norm.x = gather_floats(call, x);
    norm.columns = norm.x.dims.size[norm.x.dims.rank - 1];
    norm.gain = norm_operand(call, gain, norm.columns);
    norm.bias = norm_operand(call, bias, norm.columns);
    *from = norm;
    return defer(&from->x, norm_rows, norm_release, from);
}

kb_ref kb_ref_layernorm_at(struct kb_values x, struct kb_values gain, struct kb_values bias, double eps,
                           const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_layernorm", file, line};
    return normed(call, (struct norm){.eps = eps, .centred = true}, x, gain, bias);
}

kb_ref kb_ref_rmsnorm_at(struct kb_values x, struct kb_values gain, double eps, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_rmsnorm", file, line};
    struct kb_values none = {.is_number = true};
    return normed(call, (struct norm){.eps = eps}, x, gain, none);
}

/* ---- copies, exchanges, transpositions */

static void check_matrix(struct call_site call, const struct gathered *g)
{
    if (g->dims.rank != 2)
        misuse_of(call, "'%s' is to be a matrix", g->name);
}

/* A reference of the operand's elements, moved to `value` and `error`. */
static kb_ref moved(const struct gathered *g, struct kb_dims dims, double *value, float *error)
{
    struct reference *ref = reference_new(dims, g->dtype, value, error);
    ref->exact = g->exact;
    ref->stored = true;
    return reference_end(ref);
}

static kb_ref moved_in_place(const struct gathered *g)
{
    kb_ref ref = moved(g, g->dims, g->own_value, g->own_error);
    ref->raw = g->raw;
    return ref;
}

/* An operand that can be moved in place: elements of a tensor as they are. */
static struct gathered gather_own(struct call_site call, struct kb_values from)
{
    struct gathered g = gather_raw(call, from);
    if (!g.raw)
        gathered_make_own(&g);
    return g;
}

kb_ref kb_ref_copy_at(struct kb_values from, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_copy", file, line};
    reference_begin(call);
    struct gathered g = gather_own(call, from);
    return moved_in_place(&g);
}

kb_ref kb_ref_exact_at(struct kb_values from, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_exact", file, line};
    reference_begin(call);
    struct gathered g = gather(call, from);
    g.exact = true;
    free(g.own_error);
    g.error = g.own_error = NULL;
    gathered_make_own(&g);
    return moved_in_place(&g);
}

/* Exchanges the elements from a on with those from b on. */
static void exchange(void *elements, uint64_t a, uint64_t b, uint64_t count, uint64_t size)
{
    uint8_t *restrict x = (uint8_t *)elements + a * size, *restrict y = (uint8_t *)elements + b * size;
    for (uint64_t i = 0; i < count * size; i++) {
        uint8_t before = x[i];
        x[i] = y[i];
        y[i] = before;
    }
}

/* Exchanges blocks (i, j) and (j, i) for all j after i. */
static void exchange_rows(uint64_t row, uint64_t rows, void *gathered)
{
    const struct gathered *g = gathered;
    uint64_t blocks = g->dims.size[0], columns = g->dims.size[1], block = columns / blocks;
    for (uint64_t i = row; i < row + rows; i++)
        for (uint64_t j = i + 1; j < blocks; j++) {
            uint64_t a = i * columns + j * block, b = j * columns + i * block;
            if (g->raw)
                exchange(g->raw, a, b, block, dtype_bytes[g->dtype]);
            else
                exchange(g->own_value, a, b, block, sizeof *g->own_value);
            if (g->own_error)
                exchange(g->own_error, a, b, block, sizeof *g->own_error);
        }
}

kb_ref kb_ref_exchange_at(struct kb_values matrix, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_exchange", file, line};
    reference_begin(call);
    struct gathered from = gather_own(call, matrix);
    check_matrix(call, &from);
    uint64_t rows = from.dims.size[0], columns = from.dims.size[1];
    if (columns % rows)
        misuse_of(call, "the %" PRIu64 " columns of '%s' are no blocks for its %" PRIu64 " rows", columns, from.name,
                  rows);
    reference_each_batch(from.elements ? rows : 0, columns, exchange_rows, &from);
    return moved_in_place(&from);
}

/* Elements of some size. */
struct transposition {
    uint64_t tall, wide, size;                          /* of a matrix of the operand */
    const void *from;
    void *to;
};

/* Row and column exchanged; a few rows of the result at a time, which are near in the operand. */
#define TRANSPOSE(type)                                                                                                \
    for (uint64_t j = 0; j < m->tall; j++)                                                                             \
        for (uint64_t k = 0; k < end - i; k++)                                                                         \
            ((type *)m->to)[(i + k) * m->tall + j] = ((const type *)m->from)[first + j * m->wide + k]

static void transpose_rows(uint64_t row, uint64_t rows, void *transposition)
{
    enum { LINE = 64 };                                 /* bytes */
    const struct transposition *m = transposition;
    for (uint64_t i = row, end; i < row + rows; i = end) {
        uint64_t first = i / m->wide * m->tall * m->wide + i % m->wide;
        end = kb_min(kb_min(i + LINE / m->size, row + rows), (i / m->wide + 1) * m->wide);
        switch (m->size) {
        case 1: TRANSPOSE(uint8_t); break;
        case 2: TRANSPOSE(uint16_t); break;
        case 4: TRANSPOSE(uint32_t); break;
        default: TRANSPOSE(uint64_t);
        }
    }
}

/* Transposes all elements of an operand; NULL if there are none. */
static void *transposed(const struct gathered *g, const void *from, uint64_t size)
{
    struct transposition t = {g->dims.size[g->dims.rank - 2], g->dims.size[g->dims.rank - 1], size, from, NULL};
    if (!from)
        return NULL;
    t.to = reference_scratch(g->elements, size);
    reference_each_batch(g->elements / t.tall, t.tall, transpose_rows, &t);
    return t.to;
}

kb_ref kb_ref_transpose_at(struct kb_values from, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_transpose", file, line};
    reference_begin(call);
    struct gathered g = gather_raw(call, from);
    struct kb_dims dims = g.dims;
    if (dims.rank < 2)
        misuse_of(call, "'%s' has one axis", g.name);
    dims.size[dims.rank - 2] = g.dims.size[dims.rank - 1];
    dims.size[dims.rank - 1] = g.dims.size[dims.rank - 2];
    kb_ref ref = moved(&g, dims, transposed(&g, g.value, sizeof *g.value), transposed(&g, g.error, sizeof *g.error));
    ref->raw = transposed(&g, g.raw, dtype_bytes[g.dtype]);
    gathered_free(&g);
    return ref;
}

/* ---- reductions of the rows of a matrix */

static uint16_t row_reduction_of(struct call_site call, const char *name)
{
    static const struct {
        const char *name;
        uint16_t op;
    } reductions[] = {{"add", OP_add}, {"mul", OP_mul}, {"min", OP_min}, {"max", OP_max}};
    for (unsigned i = 0; i < COUNT_OF(reductions); i++)
        if (!strcmp(name, reductions[i].name))
            return reductions[i].op;
    misuse_of(call, "there is no reduction '%s'; add, mul, min and max are", name);
}

/* What is known of columns so far: a sum, and the powers of the rows' errors and of their elements; or a product, and the
 * power of its error relative to it. */
struct column_sums {
    double *value, *own, *powers;
};

/* Adds a row, with the powers of its errors. */
VECTOR_BODY void add_row_in(enum error_mode mode, const double *restrict row, const double *restrict row_power,
                            double *restrict value, double *restrict own, double *restrict powers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        value[i] += row[i];
        own[i] += row_power[i];
        powers[i] += error_power_in(mode, row[i]);
    }
}
ERROR_FUNCTION(add_row, (const double *row, const double *row_power, double *value, double *own, double *powers, uint64_t count),
               (row, row_power, value, own, powers, count))

static void join_row(const struct column_sums *c, uint16_t op, enum dtype dtype, const double *row, const double *row_power, uint64_t count)
{
    const struct evaluator *join = evaluator_of(op, RELATION_eq);
    for (uint64_t i = 0; i < count; i++) {
        double before = c->value[i];
        c->value[i] = join->value(before, row[i], 0);
        if (op == OP_mul)
            c->own[i] += (row_power[i] > 0 ? row_power[i] / error_power(row[i]) : 0) + rounding_power(dtype, 1);
        else if (c->value[i] != before)
            c->own[i] = row_power[i];
    }
}

/* The power of the error of a column of `rows` rows. */
static double column_power(const struct column_sums *c, uint64_t i, uint16_t op, enum dtype dtype, double rows)
{
    if (op == OP_add)
        return c->own[i] + accumulation_power(dtype, rows, c->value[i], c->powers[i]);
    return op == OP_mul ? c->own[i] * error_power(c->value[i]) : c->own[i];
}

struct row_reduction {
    const struct gathered *from;
    uint16_t op;
    double *value;
    float *error;                                       /* NULL: 0 */
};

/* Some columns, a row after the other. Every partial result is rounded to the dtype of the rows, as a reduction by
 * messages does. */
static void reduce_columns(uint64_t first, uint64_t count, void *reduction)
{
    const struct row_reduction *r = reduction;
    const struct gathered *from = r->from;
    uint64_t rows = from->dims.size[0], columns = from->dims.size[1];
    double *row = reference_scratch(4 * count, sizeof *row), *row_power = row + count;
    struct column_sums all = {r->value + first, row_power + count, row_power + 2 * count};
    copy_row(from, first, count, all.value, all.own);
    for (uint64_t i = 0; i < count; i++) {
        all.powers[i] = error_power(all.value[i]);
        if (r->op == OP_mul)
            all.own[i] = all.own[i] > 0 ? all.own[i] / all.powers[i] : 0;
    }
    for (uint64_t i = 1; i < rows; i++) {
        copy_row(from, i * columns + first, count, row, row_power);
        if (r->op == OP_add)
            add_row(row, row_power, all.value, all.own, all.powers, count);
        else
            join_row(&all, r->op, from->dtype, row, row_power, count);
    }
    for (uint64_t i = 0; r->error && i < count; i++)
        r->error[first + i] = (float)error_root(column_power(&all, i, r->op, from->dtype, (double)rows));
    free(row);
}

static void reduce_integers(const struct gathered *from, uint16_t op, double *value)
{
    const struct evaluator *join = evaluator_of(op, RELATION_eq);
    uint64_t rows = from->dims.size[0], columns = from->dims.size[1];
    double *values = reference_scratch(columns, sizeof *values);
    for (uint64_t row = 0; row < rows; row++) {
        const double *y = gathered_values(from, row * columns, columns, values);
        for (uint64_t i = 0; i < columns; i++)
            value[i] = row == 0 ? y[i] : dtype_wrapped(from->dtype, join->whole((int64_t)value[i], (int64_t)y[i], 0));
    }
    free(values);
}

kb_ref kb_ref_reduce_at(struct kb_values matrix, const char *name, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_reduce", file, line};
    uint16_t op = row_reduction_of(call, name);
    reference_begin(call);
    struct gathered from = gather_raw(call, matrix);
    check_matrix(call, &from);
    struct kb_dims dims = kb_2d(1, from.dims.size[1]);
    uint64_t columns = reference_elements(&dims);
    bool floats = dtype_is_float(from.dtype), rounded = floats && (!op_traits(op).exact || from.error);
    double *value = reference_alloc(columns, sizeof *value);
    float *error = reference_errors(columns, rounded);
    if (columns && floats)
        reference_each_batch(columns, kb_min(from.dims.size[0], 256), reduce_columns,
                             &(struct row_reduction){&from, op, value, error});
    else if (columns)
        reduce_integers(&from, op, value);
    struct reference *ref = reference_new(dims, from.dtype, value, error);
    ref->exact = floats ? !rounded : from.exact;
    ref->stored = op_traits(op).exact;
    gathered_free(&from);
    return reference_end(ref);
}
