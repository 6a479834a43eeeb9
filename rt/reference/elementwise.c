/* elementwise.c: references of math ops element by element, with broadcasting; conversions.
 *
 * The error of a result is that of its operands times the slope of the op, and that of the op itself, which is computed
 * in f32. Where an operand's error is not small, the op is evaluated at both ends of the error instead. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/vector.h"
#include "common/diag.h"
#include "datapass/math.h"
#include "deferred.h"
#include "evaluator.h"

/* ---- ops by name */

static const char *const op_names[KNOWN_OPS] = {
#define OP(name, ...) #name,
#include "kb/ops.def"
};

static const char *const relation_names[RELATIONS] = {
#define RELATION(name, operator) #name,
#include "kb/ops.def"
};

struct named_op {
    const char *name;
    uint16_t number;                                    /* OP_add ... */
    struct op_traits traits;
    const struct evaluator *evaluator;
};

/* Finds what kb_ref_unary or kb_ref_binary can compute: ops of the domains FLOATS, ALL and DEQUANT; relations. */
static struct named_op op_of(struct call_site call, const char *name, unsigned operands)
{
    for (uint16_t op = 0; name && op < KNOWN_OPS; op++) {
        struct op_traits traits = op_traits(op);
        bool usual = traits.domain == DOMAIN_FLOATS || traits.domain == DOMAIN_ALL || traits.domain == DOMAIN_DEQUANT;
        if (usual && traits.operands == operands && !strcmp(op_names[op], name))
            return (struct named_op){op_names[op], op, traits, evaluator_of(op, RELATION_eq)};
    }
    for (unsigned i = 0; name && i < RELATIONS; i++)
        if (operands == 2 && !strcmp(relation_names[i], name))
            return (struct named_op){relation_names[i], OP_cmp, op_traits(OP_cmp), evaluator_of(OP_cmp, (enum relation)i)};
    misuse_of(call, "there is no op '%s' of %s", name ? name : "", operands == 1 ? "one operand" : "two operands");
}

/* ---- broadcasting: axes are aligned at the last one; an axis of size 1 is repeated */

struct operands {
    unsigned count;
    struct gathered from[MATH_OPERANDS];
    uint64_t stride[MATH_OPERANDS][KB_RANK];            /* by the axes of the result */
    struct kb_dims dims;                                /* of the result */
};

/* The size of an axis, counted from the last one. */
static uint64_t size_of(const struct kb_dims *dims, uint32_t from_last)
{
    return from_last < dims->rank ? dims->size[dims->rank - 1 - from_last] : 1;
}

static void join_dims(struct call_site call, struct operands *all, const struct gathered *g)
{
    struct kb_dims joined = {.rank = g->dims.rank > all->dims.rank ? g->dims.rank : all->dims.rank};
    for (uint32_t i = 0; i < joined.rank; i++) {
        uint64_t a = size_of(&all->dims, i), b = size_of(&g->dims, i);
        if (a != b && a != 1 && b != 1)
            misuse_of(call, "the shape of '%s' does not go with the others", g->name);
        joined.size[joined.rank - 1 - i] = a == 1 ? b : a;
    }
    all->dims = joined;
}

static struct operands operands_gather(struct call_site call, const struct kb_values *values, unsigned count,
                                       struct gathered (*gather_one)(struct call_site call, struct kb_values from), bool deferred)
{
    struct operands all = {.count = count, .dims = {.rank = 1, .size = {1}}};
    for (unsigned k = 0; k < count; k++) {
        all.from[k] = deferred && k == 0 ? gathered_shape(call, values[k]) : gather_one(call, values[k]);
        join_dims(call, &all, &all.from[k]);
    }
    for (unsigned k = 0; k < count; k++) {
        uint64_t stride = 1;
        for (uint32_t i = 0; i < all.dims.rank; i++) {
            uint64_t size = size_of(&all.from[k].dims, i);
            all.stride[k][all.dims.rank - 1 - i] = size == 1 ? 0 : stride;
            stride *= size;
        }
    }
    return all;
}

static void operands_free(struct operands *all)
{
    for (unsigned k = 0; k < all->count; k++)
        gathered_free(&all->from[k]);
}

static uint64_t columns_of(const struct operands *all)
{
    return all->dims.size[all->dims.rank - 1];
}

static bool operands_have_errors(const struct operands *all)
{
    bool any = false;
    for (unsigned k = 0; k < all->count; k++)
        any |= all->from[k].error != NULL;
    return any;
}

/* The operands of a row of the result, along its last axis. */
struct operand_row {
    const double *value[MATH_OPERANDS];
    const float *error[MATH_OPERANDS];                  /* NULL: 0 */
    const uint8_t *raw[MATH_OPERANDS];                  /* instead of values */
    enum dtype dtype[MATH_OPERANDS];                    /* of raw elements */
    uint64_t stride[MATH_OPERANDS];
};

static struct operand_row operand_row(const struct operands *all, uint64_t row)
{
    uint32_t last = all->dims.rank - 1;
    struct operand_row of = {0};
    for (unsigned k = 0; k < all->count; k++) {
        uint64_t rest = row, at = 0;
        for (uint32_t axis = last; axis-- > 0; rest /= all->dims.size[axis])
            at += rest % all->dims.size[axis] * all->stride[k][axis];
        of.value[k] = all->from[k].value ? all->from[k].value + at : NULL;
        of.error[k] = all->from[k].error ? all->from[k].error + at : NULL;
        of.dtype[k] = all->from[k].dtype;
        of.raw[k] = all->from[k].raw ? all->from[k].raw + at * dtype_bytes[of.dtype[k]] : NULL;
        of.stride[k] = all->stride[k][last];
    }
    return of;
}

/* ---- dtypes */

/* What two dtypes have in common: the one that rounds more; i32 for different integers. */
static enum dtype joined(enum dtype a, enum dtype b)
{
    if (dtype_is_float(a))
        return error_unit[a] > error_unit[b] ? a : b;
    return a == b ? a : DTYPE_i32;
}

/* The dtype of the operands from `first` on, apart from numbers, which take that of the others. */
static enum dtype common_dtype(struct call_site call, const struct operands *all, unsigned first)
{
    enum dtype dtype = DTYPES;
    for (unsigned k = first; k < all->count; k++) {
        const struct gathered *g = &all->from[k];
        if (g->is_number)
            continue;
        if (dtype != DTYPES && dtype_is_float(dtype) != dtype_is_float(g->dtype))
            misuse_of(call, "integers and floats do not go together: cast '%s' of %s", g->name, dtype_words[g->dtype]);
        dtype = dtype == DTYPES ? g->dtype : joined(dtype, g->dtype);
    }
    return dtype == DTYPES ? DTYPE_f32 : dtype;
}

static enum dtype dtype_of(struct call_site call, const struct named_op *op, const struct operands *all)
{
    if (op->traits.domain == DOMAIN_DEQUANT)
        return DTYPE_f32;
    enum dtype dtype = common_dtype(call, all, 0);
    if (op->traits.domain == DOMAIN_FLOATS && !dtype_is_float(dtype))
        misuse_of(call, "'%s' of %s is not defined: cast or dequant it", op->name, dtype_words[dtype]);
    return dtype;
}

/* ---- one or two operands */

/* An op on all elements. */
struct work {
    struct named_op op;
    struct operands all;
    enum dtype dtype;
    bool floats;
    double *value;
    float *error;                                       /* NULL: of integers, and of exact ops on exact operands */
};

/* An element of an operand. */
struct uncertain {
    double value, error;
};

static struct uncertain operand_at(const struct operand_row *of, unsigned k, uint64_t i)
{
    struct uncertain x = {0};
    if (of->value[k])
        x.value = of->value[k][i * of->stride[k]];
    if (of->error[k])
        x.error = (double)of->error[k][i * of->stride[k]];
    return x;
}

/* The larger distance of two values from f; those that are no numbers are out of the op's domain. */
static double farther(double f, double low, double high)
{
    return fmax(isnan(low) ? 0 : fabs(low - f), isnan(high) ? 0 : fabs(high - f));
}

/* How far f(x, y) is off because x is. */
static double error_along_x(const struct evaluator *of, struct uncertain x, double y, double f)
{
    double linear = x.error * of->slope_x(x.value, y, f);
    if (x.error == 0 || linear < fabs(f) / 8)
        return x.error == 0 ? 0 : linear;
    return farther(f, of->value(x.value - x.error, y, 0), of->value(x.value + x.error, y, 0));
}

static double error_along_y(const struct evaluator *of, double x, struct uncertain y, double f)
{
    double linear = y.error * of->slope_y(x, y.value, f);
    if (y.error == 0 || linear < fabs(f) / 8)
        return y.error == 0 ? 0 : linear;
    return farther(f, of->value(x, y.value - y.error, 0), of->value(x, y.value + y.error, 0));
}

/* The error of a relation: 1 if it may hold as well as not. */
static double relation_error(struct uncertain x, struct uncertain y)
{
    double error = error_root(error_power(x.error) + error_power(y.error));
    return error > 0 && fabs(x.value - y.value) <= error_allowance(error);
}

static double result_error(const struct named_op *op, struct uncertain x, struct uncertain y, double f)
{
    if (op->traits.domain == DOMAIN_COMPARE)
        return relation_error(x, y);
    return error_root(error_power(error_along_x(op->evaluator, x, y.value, f)) +
                      error_power(error_along_y(op->evaluator, x.value, y, f)) +
                      evaluator_power(op->number, x.value, y.value, f));
}

/* ---- floats: some elements of a row at once */

enum { SOME = 256 };

/* Elements of an operand, with their errors. */
struct some {
    const double *value;
    double values[SOME], error[SOME];                   /* values: where they are not found one after another */
};

static void some_load(struct some *some, const struct operand_row *of, unsigned k, uint64_t first, uint64_t count)
{
    const double *value = of->value[k];
    const float *error = of->error[k];
    const uint8_t *raw = of->raw[k];
    enum dtype dtype = of->dtype[k];
    uint64_t stride = of->stride[k];
    some->value = value && stride == 1 ? value + first : some->values;
    if (raw && stride == 1)
        dtype_to_f64(dtype, raw + first * dtype_bytes[dtype], some->values, count);
    for (uint64_t i = 0; some->value == some->values && !(raw && stride == 1) && i < count; i++)
        some->values[i] = raw ? dtype_value(dtype, raw) : value ? value[(first + i) * stride] : 0;
    for (uint64_t i = 0; i < count; i++)
        some->error[i] = error ? (double)error[(first + i) * stride] : 0;
}

/* Adds up the powers of errors; `odd` counts those of operands with errors for which the slope is no good measure. */
VECTOR_BODY void join_errors_in(enum error_mode mode, const double *restrict x_error, const double *restrict slope_x,
                                const double *restrict y_error, const double *restrict slope_y, const double *restrict f,
                                const double *restrict power, float *restrict error, uint64_t count, uint64_t *odd)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        double along_x = x_error[i] * slope_x[i], along_y = y_error[i] * slope_y[i], most = fabs(f[i]) / 8;
        bool x_odd = !(along_x < most) & (x_error[i] != 0), y_odd = !(along_y < most) & (y_error[i] != 0);
        along_x = x_error[i] != 0 ? along_x : 0;
        along_y = y_error[i] != 0 ? along_y : 0;
        error[i] = (float)error_root_in(mode, error_power_in(mode, along_x) + error_power_in(mode, along_y) + power[i]);
        found += x_odd | y_odd;
    }
    *odd = found;
}
ERROR_FUNCTION(join_errors, (const double *x_error, const double *slope_x, const double *y_error, const double *slope_y,
                              const double *f, const double *power, float *error, uint64_t count, uint64_t *odd),
                (x_error, slope_x, y_error, slope_y, f, power, error, count, odd))

static void some_errors(const struct named_op *op, const struct some *x, const struct some *y, const double *f,
                        float *error, uint64_t count)
{
    double slope_x[SOME], slope_y[SOME], power[SOME];
    uint64_t odd;
    op->evaluator->slopes_x(x->value, y->value, f, slope_x, count);
    op->evaluator->slopes_y(x->value, y->value, f, slope_y, count);
    evaluator_powers(op->number, x->value, slope_x, f, power, count);
    join_errors(x->error, slope_x, y->error, slope_y, f, power, error, count, &odd);
    for (uint64_t i = 0; odd && i < count; i++)
        error[i] = (float)result_error(op, (struct uncertain){x->value[i], x->error[i]},
                                       (struct uncertain){y->value[i], y->error[i]}, f[i]);
}

static void work_floats(const struct work *w, const struct operand_row *of, double *value, float *error, uint64_t columns)
{
    struct some x, y;
    for (uint64_t first = 0; first < columns; first += SOME) {
        uint64_t count = columns - first < SOME ? columns - first : SOME;
        some_load(&x, of, 0, first, count);
        some_load(&y, of, 1, first, count);
        w->op.evaluator->values(x.value, y.value, value + first, count);
        if (error)
            some_errors(&w->op, &x, &y, value + first, error + first, count);
    }
}

/* Integers and relations, which have no slopes. */
static void work_each(const struct work *w, const struct operand_row *of, double *value, float *error, uint64_t columns)
{
    const struct evaluator *evaluator = w->op.evaluator;
    for (uint64_t i = 0; i < columns; i++) {
        struct uncertain x = operand_at(of, 0, i), y = operand_at(of, 1, i);
        value[i] = w->floats ? evaluator->value(x.value, y.value, 0)
                             : dtype_wrapped(w->dtype, evaluator->whole((int64_t)x.value, (int64_t)y.value, 0));
        if (error)
            error[i] = (float)result_error(&w->op, x, y, value[i]);
    }
}

static void work_row(const struct work *w, const struct operand_row *of, uint64_t row)
{
    uint64_t columns = columns_of(&w->all);
    bool at_once = w->floats && w->op.traits.domain != DOMAIN_COMPARE;
    (at_once ? work_floats : work_each)(w, of, w->value + row * columns, w->error ? w->error + row * columns : NULL, columns);
}

static void work_rows(uint64_t first, uint64_t rows, void *arg)
{
    const struct work *w = arg;
    for (uint64_t row = first; row < first + rows; row++) {
        struct operand_row of = operand_row(&w->all, row);
        work_row(w, &of, row);
    }
}

/* ---- deferred ones */

static void compute_deferred(const struct reference *ref, struct row_panel panel, double *value, float *error)
{
    struct work work = *(const struct work *)ref->from;
    const struct reference *of = ref->of;
    uint64_t columns = ref->columns, first = panel.row * columns, count = panel.rows * columns;
    double *values = of && !of->value ? reference_scratch(count, sizeof *values) : NULL;
    float *errors = of && !of->exact ? reference_scratch(count, sizeof *errors) : NULL;
    const double *of_value = values ? values : of ? of->value + first : NULL;
    const float *of_error = of && of->value && of->error ? of->error + first : errors;
    if (values)
        of->compute(of, panel, values, errors);
    if (errors && !of->stored) {
        reference_store_errors(of, of_value, of_error, errors, count);
        of_error = errors;
    }
    work.value = value;
    work.error = error;
    for (uint64_t i = 0; i < panel.rows; i++) {
        struct operand_row row = operand_row(&work.all, panel.row + i);
        if (of)
            row.value[0] = of_value + i * columns, row.error[0] = of_error ? of_error + i * columns : NULL;
        work_row(&work, &row, i);
    }
    free(values), free(errors);
}

static void release(void *from)
{
    operands_free(&((struct work *)from)->all);
    free(from);
}

/* Whether an op takes its operands in their own dtypes: floats are converted many at once, and so is what dequant takes. */
static bool leaves_raw(struct call_site call, const struct named_op *op, const struct kb_values *values, unsigned count)
{
    bool floats = op->traits.domain != DOMAIN_COMPARE;
    for (unsigned k = 0; k < count; k++)
        floats &= dtype_is_float(gathered_shape(call, values[k]).dtype);
    return floats || op->traits.domain == DOMAIN_DEQUANT;
}

static bool is_raw(struct kb_values from)
{
    return from.tensor || (from.ref && from.ref->raw);
}

/* Whether an op's first operand is deferred, and no other op on it is, or has raw elements; and the other one is a number, a
 * row, or has raw elements of the same shape. */
static bool is_deferred(struct call_site call, const struct kb_values *values, unsigned count, bool raw)
{
    const struct reference *of = values[0].ref;
    struct gathered first = gathered_shape(call, values[0]);
    if (!first.elements || !(of && of->compute ? !of->epilogued : raw && is_raw(values[0])))
        return false;
    if (count == 1)
        return true;
    struct gathered second = gathered_shape(call, values[1]);
    uint64_t columns = size_of(&first.dims, 0);
    return second.elements == 1 || (second.elements == columns && size_of(&second.dims, 0) == columns) ||
           (raw && is_raw(values[1]) && !memcmp(&first.dims, &second.dims, sizeof first.dims));
}

static void defer(struct reference *ref, struct reference *of, const struct work *work)
{
    struct work *from = reference_alloc(1, sizeof *from);
    *from = *work;
    reference_defer(ref, compute_deferred, release, from);
    if (!of)
        return;
    ref->matrix_rows = of->matrix_rows;
    ref->panel_rows = of->panel_rows;
    ref->of = of;
    of->epilogued = ref;
}

/* ---- the whole */

static kb_ref elementwise(struct call_site call, const char *name, const struct kb_values *values, unsigned count)
{
    struct work work = {.op = op_of(call, name, count)};
    bool compares = work.op.traits.domain == DOMAIN_COMPARE;
    reference_begin(call);
    bool raw = leaves_raw(call, &work.op, values, count), deferred = is_deferred(call, values, count, raw);
    struct reference *of = deferred && values[0].ref && values[0].ref->compute ? values[0].ref : NULL;
    work.all = operands_gather(call, values, count, raw ? gather_raw : gather, of);
    work.dtype = dtype_of(call, &work.op, &work.all);
    work.floats = dtype_is_float(work.dtype) || compares;
    bool uncertain = of && !of->exact;
    bool rounded = work.floats && (!work.op.traits.exact || uncertain || operands_have_errors(&work.all));
    uint64_t elements = reference_elements(&work.all.dims), columns = columns_of(&work.all);
    struct reference *ref = reference_new(work.all.dims, compares ? DTYPE_u8 : work.dtype, NULL, NULL);
    ref->exact = !rounded;
    ref->stored = work.op.traits.exact;
    ref->wraps = !work.floats;
    if (deferred) {
        defer(ref, of, &work);
    } else {
        work.value = ref->value = reference_alloc(elements, sizeof *work.value);
        work.error = ref->error = reference_errors(elements, rounded);
        reference_each_batch(elements / columns, columns, work_rows, &work);
        operands_free(&work.all);
    }
    return reference_end(ref);
}

kb_ref kb_ref_unary_at(const char *op, struct kb_values x, const char *file, uint32_t line)
{
    return elementwise((struct call_site){"kb_ref_unary", file, line}, op, &x, 1);
}

kb_ref kb_ref_binary_at(const char *op, struct kb_values x, struct kb_values y, const char *file, uint32_t line)
{
    return elementwise((struct call_site){"kb_ref_binary", file, line}, op, (struct kb_values[]){x, y}, 2);
}

/* ---- where */

kb_ref kb_ref_where_at(struct kb_values c, struct kb_values x, struct kb_values y, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_where", file, line};
    reference_begin(call);
    struct operands all = operands_gather(call, (struct kb_values[]){c, x, y}, 3, gather, false);
    uint64_t elements = reference_elements(&all.dims), columns = columns_of(&all);
    bool rounded = all.from[1].error || all.from[2].error;
    double *value = reference_alloc(elements, sizeof *value);
    float *error = reference_errors(elements, rounded);
    for (uint64_t row = 0; row < elements / columns; row++) {
        struct operand_row of = operand_row(&all, row);
        for (uint64_t i = 0; i < columns; i++) {
            struct uncertain chosen = operand_at(&of, operand_at(&of, 0, i).value != 0 ? 1 : 2, i);
            value[row * columns + i] = chosen.value;
            if (error)
                error[row * columns + i] = (float)chosen.error;
        }
    }
    struct reference *ref = reference_new(all.dims, common_dtype(call, &all, 1), value, error);
    ref->exact = !rounded;
    ref->stored = true;
    operands_free(&all);
    return reference_end(ref);
}

/* ---- conversions: integers saturate */

/* What a dtype holds of a value. */
static double rounded(enum dtype dtype, double value)
{
    uint32_t element;
    dtype_from_f64(dtype, &value, &element, 1);
    return dtype_value(dtype, &element);
}

/* The error of an integer that a value is rounded to: 0, unless the value's error reaches another integer. */
static double rounded_error(enum dtype dtype, double value, double error)
{
    double most = error_allowance(error), whole = rounded(dtype, value);
    double reached = farther(whole, rounded(dtype, value - most), rounded(dtype, value + most));
    return error_mode == ERRORS_WORST ? reached : reached / ERROR_MARGIN;
}

/* x, or x / scale, in a dtype. Values of exact operands are rounded; others keep their digits until they are stored. */
static kb_ref converted(struct gathered *x, const struct gathered *scale, enum dtype dtype)
{
    const struct evaluator *quotient = evaluator_of(OP_quant, RELATION_eq);
    bool uncertain = x->error || (scale && scale->error), whole = !dtype_is_float(dtype);
    uint64_t columns = x->dims.size[x->dims.rank - 1];
    double *value = reference_alloc(x->elements, sizeof *value);
    float *error = reference_errors(x->elements, uncertain);
    for (uint64_t i = 0; i < x->elements; i++) {
        uint64_t column = scale && scale->elements > 1 ? i % columns : 0;
        double divisor = scale ? scale->value[column] : 1;
        double exact = scale ? quotient->value(x->value[i], divisor, 0) : x->value[i];
        value[i] = uncertain && !whole ? exact : rounded(dtype, exact);
        if (!error)
            continue;
        double of_scale = scale && scale->error ? (double)scale->error[column] * x->value[i] / divisor / divisor : 0;
        double power = error_power(x->error ? (double)x->error[i] / divisor : 0) + error_power(of_scale);
        exact = scale ? x->value[i] / divisor : exact;
        error[i] = (float)(whole ? rounded_error(dtype, exact, error_root(power)) : error_root(power));
    }
    struct reference *ref = reference_new(x->dims, dtype, value, error);
    ref->exact = !uncertain;
    gathered_free(x);
    return reference_end(ref);
}

kb_ref kb_ref_cast_at(struct kb_values x, enum kb_dtype dtype, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_cast", file, line};
    if ((unsigned)dtype >= KB_DTYPES)
        misuse_of(call, "there is no such dtype");
    reference_begin(call);
    struct gathered g = gather(call, x);
    return converted(&g, NULL, (enum dtype)dtype);
}

kb_ref kb_ref_quant_at(struct kb_values x, struct kb_values scale, enum kb_dtype dtype, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_quant", file, line};
    if ((unsigned)dtype >= KB_DTYPES || dtype_is_float((enum dtype)dtype))
        misuse_of(call, "quant gives integers");
    reference_begin(call);
    struct gathered g = gather(call, x), by = gather(call, scale);
    gathered_check_row(call, &by, g.dims.size[g.dims.rank - 1], true);
    kb_ref ref = converted(&g, &by, (enum dtype)dtype);
    gathered_free(&by);
    return ref;
}
