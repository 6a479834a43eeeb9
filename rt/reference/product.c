/* product.c: references of gemms with a bias and relu: values in f64, and the error of each.
 *
 * Neither the op log nor the data pass has a part in it: operands are gathered and multiplied as a whole. Those of f32 are
 * multiplied by dgemm. Those of narrower dtypes have products that f32 holds: slices of k are multiplied by sgemm, in half of
 * the time, and added up in f64. The sums of 1,024 products of i8 are exact, and i32 is the sum of all modulo 2^32. Of
 * floats a slice has 128 terms, and its rounding errors are part of the error of the element.
 *
 * An element is the sum of depth terms a b. Its error is
 *     that of the operands     sum of (a^2 eb^2 + ea^2 (b^2 + eb^2)), by sgemm: an error needs few digits;
 *     what they have in common u |sum| for each operand that is itself computed: errors of a row, such as that of the sum
 *                              a softmax divides by, do not average out;
 *     the accumulation         in f32 (error.h), with sum of (a b)^2 <= sqrt(sum of a^4) sqrt(sum of b^4): that of the
 *                              kernel, of depth terms, and that of the slices, as of 128 terms. */
#include "product.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "common/arena.h"
#include "datapass/blas.h"
#include "kb/arith.h"
#include "slices.h"
#include "store/store.h"

enum { MOST_SIZE = 1 << 30 };

enum { PIECE = 1024 };                                  /* elements that are converted at a time */

/* From this many multiplications on, the operands are kept instead of the result. */
static const uint64_t LARGE = UINT64_C(1) << 31;

/* ---- operands */

static void matrix_free(struct matrix *m)
{
    free(m->raw), free(m->value), free(m->error), free(m->single);
}

void matrix_values(const struct matrix *m, uint64_t first, uint64_t count, double *to)
{
    if (m->raw)
        dtype_to_f64(m->dtype, m->raw + first * dtype_bytes[m->dtype], to, count);
    else if (m->single)
        dtype_to_f64(DTYPE_f32, m->single + first, to, count);
    else
        memcpy(to, m->value + first, count * sizeof *to);
}

/* ---- rows of the first operand */

/* Row i of a matrix of patches. */
static void patch_row(const struct matrix *m, uint64_t i, double *to)
{
    const struct patches *p = &m->patches;
    uint64_t x = i % p->out_width * p->stride, y = i / p->out_width % p->out_height * p->stride;
    uint64_t image = i / p->out_width / p->out_height * p->height;
    for (uint64_t ky = 0; ky < p->kernel_h; ky++)
        for (uint64_t kx = 0; kx < p->kernel_w; kx++, to += p->channels) {
            uint64_t row = y + ky - p->pad, column = x + kx - p->pad;       /* beyond the image if they wrap */
            if (row < p->height && column < p->width)
                matrix_values(m, ((image + row) * p->width + column) * p->channels, p->channels, to);
            else
                memset(to, 0, p->channels * sizeof *to);
        }
}

void product_rows(const struct product *product, struct row_panel panel, double *to)
{
    const struct matrix *m = &product->a;
    uint64_t depth = product->depth;
    if (!m->patches.height)
        matrix_values(m, panel.row * depth, panel.rows * depth, to);
    for (uint64_t i = 0; i < panel.rows && m->patches.height; i++)
        patch_row(m, panel.row + i, to + i * depth);
}

/* ---- powers of operands */

/* Adds the squares of the powers of each column. */
VECTOR_BODY void add_squares_in(enum error_mode mode, const double *restrict rows, uint64_t count, uint64_t columns,
                                double *restrict squares)
{
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < columns; j++) {
            double power = error_power_in(mode, rows[i * columns + j]);
            squares[j] += power * power;
        }
}
ERROR_FUNCTION(add_squares, (const double *rows, uint64_t count, uint64_t columns, double *squares),
                (rows, count, columns, squares))

/* The square root of the sum of the squares of a row's powers. */
VECTOR_BODY void row_terms_in(enum error_mode mode, const double *row, uint64_t columns, double *terms)
{
    enum { LANES = 4 };
    double sum[LANES] = {0};
    uint64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        for (unsigned lane = 0; lane < LANES; lane++) {
            double power = error_power_in(mode, row[j + lane]);
            sum[lane] += power * power;
        }
    for (; j < columns; j++)
        sum[0] += error_power_in(mode, row[j]) * error_power_in(mode, row[j]);
    *terms = sqrt(sum[0] + sum[1] + (sum[2] + sum[3]));
}
ERROR_FUNCTION(row_terms, (const double *row, uint64_t columns, double *terms), (row, columns, terms))

/* The sums of the powers of values and errors, over a unit. Raises `most` to the largest that is finite. */
VECTOR_BODY void sum_powers_in(enum error_mode mode, const double *restrict value, const float *restrict error, double unit,
                               float *restrict to, uint64_t count, double *most)
{
    int64_t largest, infinite, bits;                    /* numbers that are not negative are in the order of their bits */
    memcpy(&largest, most, sizeof largest);
    memcpy(&infinite, &(double){INFINITY}, sizeof infinite);
    for (uint64_t i = 0; i < count; i++) {
        double power = error_power_in(mode, value[i]) + error_power_in(mode, (double)error[i]);
        memcpy(&bits, &power, sizeof bits);
        bits = bits < infinite ? bits : 0;
        largest = bits > largest ? bits : largest;
        to[i] = (float)(power / unit);
    }
    memcpy(most, &largest, sizeof largest);
}
ERROR_FUNCTION(sum_powers, (const double *value, const float *error, double unit, float *to, uint64_t count, double *most),
               (value, error, unit, to, count, most))

/* Powers of elements from `first` on: of values, of errors, or the sum of both. */
static struct powers powers_of(const struct matrix *m, uint64_t first, uint64_t count, bool of_values, bool of_errors)
{
    struct powers p = {reference_scratch(count, sizeof *p.of), 0};
    double value[PIECE] = {0}, unit = 1;
    float none[PIECE] = {0};
    for (unsigned pass = 0; pass < 2; pass++, unit = p.unit)
        for (uint64_t i = 0; i < count; i += PIECE) {
            uint64_t some = kb_min(PIECE, count - i);
            if (of_values)
                matrix_values(m, first + i, some, value);
            sum_powers(value, of_errors ? m->error + first + i : none, unit, p.of + i, some, &p.unit);
        }
    return p;
}

/* Adds up the squares of B's columns, some rows at a time. */
static void add_column_squares(const struct product *p)
{
    const struct matrix *b = &p->b;
    uint64_t rows = b->elements / p->columns, some = kb_max(1, PIECE / p->columns), count;
    double *value = reference_scratch(some * p->columns, sizeof *value);
    for (uint64_t row = 0; row < rows; row += count) {
        count = kb_min(some, p->depth - row % p->depth);
        matrix_values(b, row * p->columns, count * p->columns, value);
        add_squares(value, count, p->columns, p->b_terms + row / p->depth * p->columns);
    }
    free(value);
}

/* The sums over B's columns, and the powers that those of A are multiplied with. */
static void prepare(struct product *p)
{
    const struct matrix *b = &p->b;
    uint64_t all = b->elements / p->depth;
    p->b_terms = reference_alloc(all, sizeof *p->b_terms);
    add_column_squares(p);
    for (uint64_t i = 0; i < all; i++)
        p->b_terms[i] = sqrt(p->b_terms[i]);
    if (p->a.error)
        p->b_powers = powers_of(b, 0, b->elements, true, false);
    if (b->error)
        p->b_error_powers = powers_of(b, 0, b->elements, false, true);
}

static void product_free(void *product)
{
    struct product *p = product;
    matrix_free(&p->a);
    matrix_free(&p->b);
    free(p->b_terms), free(p->b_powers.of), free(p->b_error_powers.of), free(p->bias.value), free(p->bias.power);
}

/* ---- a panel */

/* Adds powers of A times powers of B to the powers of the errors of a panel. */
static void add_powers(const struct product *p, struct powers a, const struct powers *b, uint64_t first_b, uint64_t rows,
                       float *sums, double *power)
{
    blas_sgemm(rows, p->columns, p->depth, a.of, p->depth, b->of + first_b, p->columns, 0, sums, p->columns);
    for (uint64_t i = 0; i < rows * p->columns; i++)
        power[i] += (double)sums[i] * a.unit * b->unit;
    free(a.of);
}

/* The powers of what a panel is off by because its operands are. */
static void add_operand_powers(const struct product *p, struct row_panel panel, double *power)
{
    uint64_t first_b = panel.row / p->rows * p->depth * p->columns;
    uint64_t first = panel.row * p->depth, count = panel.rows * p->depth;
    float *sums = reference_scratch(panel.rows * p->columns, sizeof *sums);
    if (p->a.error)
        add_powers(p, powers_of(&p->a, first, count, false, true), &p->b_powers, first_b, panel.rows, sums, power);
    if (p->b.error)
        add_powers(p, powers_of(&p->a, first, count, true, p->a.error), &p->b_error_powers, first_b, panel.rows, sums, power);
    free(sums);
}

/* The errors of a row of sums. */
VECTOR_BODY void row_errors_in(enum error_mode mode, const struct product *p, double a_terms,
                               const double *restrict b_terms, const double *restrict sum, const double *restrict power,
                               float *restrict error)
{
    double roundings = (double)p->depth + (p->b.single ? slices_roundings(p->depth) : 0);
    enum dtype of_a = p->a.dtype, of_b = p->b.dtype;
    bool a_computed = p->a.computed, b_computed = p->b.computed;
    for (uint64_t j = 0; j < p->columns; j++) {
        double all = power[j] + (a_computed ? rounding_power_in(mode, of_a, sum[j]) : 0);
        all += b_computed ? rounding_power_in(mode, of_b, sum[j]) : 0;
        all += accumulation_power_in(mode, DTYPE_f32, roundings, sum[j], a_terms * b_terms[j]);
        error[j] = (float)error_root_in(mode, all);
    }
}
ERROR_FUNCTION(row_errors, (const struct product *p, double a_terms, const double *b_terms, const double *sum,
                             const double *power, float *error), (p, a_terms, b_terms, sum, power, error))

static void panel_errors(const struct product *p, struct row_panel panel, const double *value, float *error)
{
    const double *b_terms = p->b_terms + panel.row / p->rows * p->columns;
    double *power = reference_alloc(panel.rows * p->columns, sizeof *power);
    double *row = reference_scratch(p->depth, sizeof *row);
    if (p->a.error || p->b.error)
        add_operand_powers(p, panel, power);
    for (uint64_t i = 0; i < panel.rows; i++) {
        double a_terms;
        product_rows(p, (struct row_panel){panel.row + i, 1}, row);
        row_terms(row, p->depth, &a_terms);
        row_errors(p, a_terms, b_terms, value + i * p->columns, power + i * p->columns, error + i * p->columns);
    }
    free(power), free(row);
}

/* Adds a bias to a row of floats. */
VECTOR_BODY void bias_floats_in(enum error_mode mode, const struct bias *bias, uint64_t columns, double *restrict value,
                                float *restrict error)
{
    const double *restrict add = bias->value, *restrict power = bias->power;
    for (uint64_t j = 0; j < columns; j++) {
        value[j] += add[j];
        error[j] = (float)error_root_in(mode, error_power_in(mode, (double)error[j]) + power[j] +
                                              rounding_power_in(mode, DTYPE_f32, value[j]));
    }
}
ERROR_FUNCTION(bias_floats, (const struct bias *bias, uint64_t columns, double *value, float *error),
                (bias, columns, value, error))

/* Adds a bias to a row: floats in f32; integers, which have no errors, wrap. */
static void add_bias(const struct bias *bias, uint64_t columns, double *value, float *error)
{
    if (error)
        bias_floats(bias, columns, value, error);
    for (uint64_t j = 0; j < columns && !error; j++)
        value[j] = dtype_wrapped(DTYPE_i32, (int64_t)(value[j] + bias->value[j]));
}

static void relu_row(uint64_t columns, double *value)
{
    for (uint64_t j = 0; j < columns; j++)
        value[j] = value[j] < 0 ? 0 : value[j];
}

/* Multiplies in f64. */
static void multiply_doubles(const struct product *p, struct row_panel panel, double *value)
{
    uint64_t of_b = p->depth * p->columns, matrix = panel.row / p->rows;
    double *a = reference_scratch(panel.rows * p->depth, sizeof *a);
    double *b = p->b.value ? p->b.value + matrix * of_b : reference_scratch(of_b, sizeof *b);
    product_rows(p, panel, a);
    if (!p->b.value)
        matrix_values(&p->b, matrix * of_b, of_b, b);
    blas_dgemm(panel.rows, p->columns, p->depth, a, p->depth, b, p->columns, 0, value, p->columns);
    free(a), free(p->b.value ? NULL : b);
}

/* Copies a panel's rows out as f32. */
static void single_rows(const struct product *p, struct row_panel panel, float *to)
{
    const struct matrix *m = &p->a;
    if (m->raw && !m->patches.height)
        return dtype_to_f32(m->dtype, m->raw + panel.row * p->depth * dtype_bytes[m->dtype], to, panel.rows * p->depth);
    double *row = reference_scratch(p->depth, sizeof *row);
    for (uint64_t i = 0; i < panel.rows; i++) {
        product_rows(p, (struct row_panel){panel.row + i, 1}, row);
        dtype_from_f64(DTYPE_f32, row, to + i * p->depth, p->depth);
    }
    free(row);
}

/* Multiplies slices in f32. Returns false if a sum is not finite. */
static bool multiply_singles(const struct product *p, struct row_panel panel, double *value)
{
    const float *b = p->b.single + panel.row / p->rows * p->depth * p->columns;
    float *a = reference_scratch(panel.rows * p->depth, sizeof *a);
    single_rows(p, panel, a);
    bool finite = slices_multiply(panel.rows, p->columns, p->depth, dtype_is_float(p->a.dtype) ? SLICE : EXACT_SLICE, a, p->depth,
                                  b, p->columns, false, value);
    free(a);
    return finite;
}

static void multiply(const struct product *p, struct row_panel panel, double *value, float *error)
{
    if (!p->b.single || !multiply_singles(p, panel, value))
        multiply_doubles(p, panel, value);
    if (error)
        panel_errors(p, panel, value, error);
    bool wraps = !dtype_is_float(p->a.dtype) && p->depth > INT32_MAX >> 14;     /* a product of i8 is at most 2^14 */
    for (uint64_t i = 0; i < panel.rows * p->columns && wraps; i++)
        value[i] = dtype_wrapped(DTYPE_i32, (int64_t)value[i]);
}

static void product_compute(const struct reference *ref, struct row_panel panel, double *value, float *error)
{
    const struct product *p = ref->product;
    multiply(p, panel, value, error);
    for (uint64_t i = 0; i < panel.rows; i++) {
        if (p->bias.value)
            add_bias(&p->bias, p->columns, value + i * p->columns, error ? error + i * p->columns : NULL);
        if (p->relu)
            relu_row(p->columns, value + i * p->columns);
    }
}

/* ---- all of it */

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

/* Gathers an operand, which the matrix takes over: elements of a tensor remain as they are. */
static struct gathered operand(struct call_site call, struct kb_values from, struct matrix *m)
{
    struct gathered g = gather_raw(call, from);
    if (!g.raw)
        gathered_make_own(&g);
    *m = (struct matrix){.dtype = g.dtype, .computed = !g.exact, .elements = g.elements, .raw = g.raw, .value = g.own_value,
                         .error = g.own_error};
    return g;
}

/* Converts the elements of the second operand: to f32, if products of both fit it closely, else to f64. */
static void convert(struct product *p)
{
    struct matrix *m = &p->b;
    if (dtype_bytes[p->a.dtype] <= 2 && dtype_bytes[m->dtype] <= 2) {
        m->single = reference_scratch(m->elements, sizeof *m->single);
        if (m->raw)
            dtype_to_f32(m->dtype, m->raw, m->single, m->elements);
        else
            dtype_from_f64(DTYPE_f32, m->value, m->single, m->elements);
        free(m->raw), free(m->value);
        m->raw = NULL, m->value = NULL;
    } else if (m->raw) {
        m->value = reference_scratch(m->elements, sizeof *m->value);
        matrix_values(m, 0, m->elements, m->value);
        free(m->raw);
        m->raw = NULL;
    }
}

/* Makes the reference of a product whose operands and sizes are set; computes it at once unless it is large. */
static struct reference *product_new(struct product *p, struct kb_dims dims)
{
    bool floats = dtype_is_float(p->a.dtype);
    struct reference *ref = reference_new(dims, floats ? p->a.dtype : DTYPE_i32, NULL, NULL);
    reference_defer(ref, product_compute, product_free, p);
    ref->product = p;
    ref->matrix_rows = p->rows;
    ref->panel_rows = PRODUCT_ROWS;
    ref->exact = !floats;
    if (ref->elements) {
        blas_open();
        convert(p);
        if (floats)
            prepare(p);
    }
    if (kb_product(ref->elements, p->depth) < LARGE)
        deferred_evaluate(ref);
    return ref;
}

kb_ref kb_ref_gemm_at(struct kb_values a, struct kb_values b, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_gemm", file, line};
    reference_begin(call);
    struct product *p = arena_alloc(1, sizeof *p);
    struct gathered of_a = operand(call, a, &p->a), of_b = operand(call, b, &p->b);
    check_gemm(call, &of_a, &of_b);
    struct kb_dims dims = of_a.dims;
    p->columns = dims.size[dims.rank - 1] = of_b.dims.size[dims.rank - 1];
    p->rows = dims.size[dims.rank - 2];
    p->depth = of_a.dims.size[dims.rank - 1];
    return reference_end(product_new(p, dims));
}

/* ---- convolutions */

/* The positions that a kernel has along an axis. Misuse if it has none. */
static uint64_t positions(struct call_site call, uint64_t size, uint64_t kernel, const struct kb_conv2d *how)
{
    enum { MOST_PAD = 1 << 30 };
    if (how->stride == 0 || kernel == 0 || how->pad > MOST_PAD || size + 2 * how->pad < kernel)
        misuse_of(call, "a kernel of %" PRIu64 " with a stride of %" PRIu64 " has no position in %" PRIu64
                  " elements and a padding of %" PRIu64, kernel, how->stride, size, how->pad);
    return (size + 2 * how->pad - kernel) / how->stride + 1;
}

/* Sets the patches of x, of which w has `depth` elements in each row. */
static void set_patches(struct call_site call, const struct kb_conv2d *how, const struct kb_dims *x, uint64_t depth,
                        struct patches *p)
{
    if (how->height == 0 || x->size[0] % how->height)
        misuse_of(call, "x has %" PRIu64 " rows, which are no images of %" PRIu64, x->size[0], how->height);
    *p = (struct patches){.height = how->height, .width = x->size[1], .channels = x->size[2],
                          .kernel_h = how->kernel_h, .kernel_w = how->kernel_w, .stride = how->stride, .pad = how->pad};
    p->out_height = positions(call, p->height, p->kernel_h, how);
    p->out_width = positions(call, p->width, p->kernel_w, how);
    if (kb_product(kb_product(p->kernel_h, p->kernel_w), p->channels) != depth)
        misuse_of(call, "w has %" PRIu64 " columns; a patch has %" PRIu64 " x %" PRIu64 " x %" PRIu64, depth, p->kernel_h,
                  p->kernel_w, p->channels);
}

kb_ref kb_ref_conv2d_at(kb_tensor x, kb_tensor w, struct kb_conv2d how, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_conv2d", file, line};
    kb_ref columns = kb_ref_transpose_at(kb_values(w), file, line);
    reference_begin(call);
    struct product *p = arena_alloc(1, sizeof *p);
    if (!x)
        misuse_of(call, "there is no tensor x");
    if (x->dims.rank != 3 || columns->dims.rank != 2)
        misuse_of(call, "x has to have 3 axes, and w 2");
    struct gathered of_b = operand(call, kb_values(columns), &p->b), of_a = operand(call, kb_values(x), &p->a);
    struct kb_dims as_rows = kb_2d(1, of_b.dims.size[0]);
    set_patches(call, &how, &of_a.dims, of_b.dims.size[0], &p->a.patches);
    of_a.dims = as_rows;
    check_gemm(call, &of_a, &of_b);
    const struct patches *patches = &p->a.patches;
    struct kb_dims dims = kb_3d(x->dims.size[0] / how.height * patches->out_height, patches->out_width,
                                of_b.dims.size[1]);
    p->rows = dims.size[0] * dims.size[1];
    p->columns = dims.size[2];
    p->depth = of_b.dims.size[0];
    return reference_end(product_new(p, dims));
}

/* ---- bias and relu, in place */

static struct bias bias_of(const struct gathered *row, uint64_t columns)
{
    struct bias bias = {reference_alloc(columns, sizeof *bias.value), reference_alloc(columns, sizeof *bias.power)};
    for (uint64_t j = 0; j < columns; j++) {
        bias.value[j] = row->value[j];
        bias.power[j] = gathered_power(row, j);
    }
    return bias;
}

/* Computes what was made of a reference before this changes; and the reference itself, unless it is a product, which can take
 * the change. */
static void settle(struct reference *ref)
{
    if (ref->epilogued)
        deferred_evaluate(ref->epilogued);
    if (!ref->product)
        deferred_evaluate(ref);
}

void kb_ref_bias_at(kb_ref ref, struct kb_values row, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_bias", file, line};
    reference_begin(call);
    struct gathered g = gather(call, row);
    if (!ref)
        misuse_of(call, "there is no reference");
    gathered_check_row(call, &g, ref->columns, false);
    if (!dtype_is_float(ref->dtype) && dtype_is_float(g.dtype))
        misuse_of(call, "'%s' of %s cannot be added to %s", g.name, dtype_words[g.dtype],
                  dtype_words[ref->dtype]);
    struct bias bias = bias_of(&g, g.elements ? ref->columns : 0);
    gathered_free(&g);
    settle(ref);
    if (ref->product && !ref->product->relu && !ref->product->bias.value) {
        ref->product->bias = bias;
        return (void)reference_end(ref);
    }
    deferred_evaluate(ref);
    ref->exact &= !dtype_is_float(ref->dtype);
    if (!ref->error)
        ref->error = reference_errors(ref->elements, !ref->exact);
    for (uint64_t i = 0; i < ref->elements; i += ref->columns)
        add_bias(&bias, ref->columns, ref->value + i, ref->error ? ref->error + i : NULL);
    free(bias.value), free(bias.power);
    reference_end(ref);
}

void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line)
{
    (void)file, (void)line;
    if (ref)
        settle(ref);
    if (ref && ref->product)
        ref->product->relu = true;
    else if (ref)
        relu_row(ref->elements, ref->value);
}

void kb_ref_unrounded_at(kb_ref ref, const char *file, uint32_t line)
{
    (void)file, (void)line;
    if (ref && ref->epilogued)
        deferred_evaluate(ref->epilogued);
    if (ref)
        ref->stored = true;
}
