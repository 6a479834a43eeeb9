/* elementwise.c: references of math ops element by element, with broadcasting; conversions.
 *
 * An operand that may be off by d has a result that may be off by d times the slope of the op, so errors add up along a
 * chain of references. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/threads.h"
#include "common/diag.h"
#include "datapass/math.h"
#include "evaluator.h"
#include "machine/tiling.h"
#include "reference.h"

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
            return (struct named_op){op_names[op], traits, evaluator_of(op, RELATION_eq)};
    }
    for (unsigned i = 0; name && i < RELATIONS; i++)
        if (operands == 2 && !strcmp(relation_names[i], name))
            return (struct named_op){relation_names[i], op_traits(OP_cmp), evaluator_of(OP_cmp, (enum relation)i)};
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

static struct operands operands_gather(struct call_site call, const struct kb_values *values, unsigned count)
{
    struct operands all = {.count = count, .dims = {.rank = 1, .size = {1}}};
    for (unsigned k = 0; k < count; k++) {
        all.from[k] = gather(call, values[k], true);
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

/* The operands of a row of the result, along its last axis. */
struct operand_row {
    const double *at[MATH_OPERANDS];
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
        of.at[k] = all->from[k].f64 + at;
        of.stride[k] = all->stride[k][last];
    }
    return of;
}

/* ---- dtypes */

/* The dtype of the operands from `first` on, numbers aside, which take that of the others: i32 for different integers. */
static enum dtype common_dtype(struct call_site call, const struct operands *all, unsigned first)
{
    enum dtype dtype = DTYPES;
    for (unsigned k = first; k < all->count; k++) {
        const struct gathered *g = &all->from[k];
        if (g->is_number)
            continue;
        if (dtype != DTYPES && dtype_is_float(dtype) != dtype_is_float(g->dtype))
            misuse_of(call, "integers and floats do not go together: cast '%s' of %s", g->name, dtype_words[g->dtype]);
        dtype = dtype == DTYPES || dtype == g->dtype || dtype_is_float(dtype) ? g->dtype : DTYPE_i32;
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

enum { BATCH_ELEMENTS = 1 << 16 };

/* An op on all elements, in batches of rows for the threads. */
struct work {
    const struct evaluator *evaluator;
    const struct operands *all;
    enum dtype dtype;
    bool floats;
    double *to;
    uint64_t rows, batch_rows;
    double *scales;                                     /* by batch */
};

/* Returns how far off the row's elements may be. */
static double work_row(const struct work *w, uint64_t row)
{
    struct operand_row of = operand_row(w->all, row);
    uint64_t columns = columns_of(w->all);
    double *to = w->to + row * columns, scale = 0, ex = w->all->from[0].error, ey = w->all->from[1].error;
    for (uint64_t i = 0; i < columns; i++) {
        double x = of.at[0][i * of.stride[0]], y = of.at[1] ? of.at[1][i * of.stride[1]] : 0;
        to[i] = w->floats ? w->evaluator->value(x, y, 0)
                          : dtype_wrapped(w->dtype, w->evaluator->whole((int64_t)x, (int64_t)y, 0));
        double off = (ex > 0 ? ex * w->evaluator->slope_x(x, y, to[i]) : 0) +
                     (ey > 0 ? ey * w->evaluator->slope_y(x, y, to[i]) : 0);
        if (off > scale && off < (double)INFINITY)
            scale = off;
    }
    return scale;
}

static void work_batch(uint64_t batch, unsigned thread, void *arg)
{
    (void)thread;
    const struct work *w = arg;
    double scale = 0;
    for (uint64_t i = 0; i < w->batch_rows && batch * w->batch_rows + i < w->rows; i++)
        scale = fmax(scale, work_row(w, batch * w->batch_rows + i));
    w->scales[batch] = scale;
}

/* Computes all elements; returns how far off they may be. */
static double work_all(struct work *w, uint64_t elements)
{
    if (elements == 0)
        return 0;
    uint64_t columns = columns_of(w->all);
    w->rows = elements / columns;
    w->batch_rows = columns < BATCH_ELEMENTS ? BATCH_ELEMENTS / columns : 1;
    uint64_t batches = (w->rows + w->batch_rows - 1) / w->batch_rows;
    w->scales = reference_alloc(batches, sizeof *w->scales);
    threads_run(batches, work_batch, w);
    double scale = 0;
    for (uint64_t i = 0; i < batches; i++)
        scale = fmax(scale, w->scales[i]);
    free(w->scales);
    return scale;
}

static kb_ref elementwise(struct call_site call, const char *name, const struct kb_values *values, unsigned count)
{
    struct named_op op = op_of(call, name, count);
    bool compares = op.traits.domain == DOMAIN_COMPARE;
    reference_begin(call);
    struct operands all = operands_gather(call, values, count);
    enum dtype dtype = dtype_of(call, &op, &all);
    bool floats = dtype_is_float(dtype) || compares;
    uint64_t elements = reference_elements(&all.dims);
    double *to = reference_alloc(elements, sizeof *to);
    double scale = work_all(&(struct work){op.evaluator, &all, dtype, floats, to, 0, 0, NULL}, elements);
    struct reference *ref = reference_computed(all.dims, compares ? DTYPE_u8 : dtype, to, scale);
    ref->exact = (op.traits.exact || !floats) && all.from[0].error == 0 && all.from[1].error == 0;
    ref->wraps = !floats;
    operands_free(&all);
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
    const struct evaluator *evaluator = evaluator_of(OP_where, RELATION_eq);
    reference_begin(call);
    struct operands all = operands_gather(call, (struct kb_values[]){c, x, y}, 3);
    uint64_t elements = reference_elements(&all.dims), columns = columns_of(&all);
    double *to = reference_alloc(elements, sizeof *to), error = fmax(all.from[1].error, all.from[2].error);
    for (uint64_t row = 0; row < (elements ? elements / columns : 0); row++) {
        struct operand_row of = operand_row(&all, row);
        for (uint64_t i = 0; i < columns; i++)
            to[row * columns + i] = evaluator->value(of.at[0][i * of.stride[0]], of.at[1][i * of.stride[1]],
                                                     of.at[2][i * of.stride[2]]);
    }
    struct reference *ref = reference_computed(all.dims, common_dtype(call, &all, 1), to, error);
    ref->exact = error == 0;
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

kb_ref kb_ref_cast_at(struct kb_values x, enum kb_dtype dtype, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_cast", file, line};
    if ((unsigned)dtype >= KB_DTYPES)
        misuse_of(call, "there is no such dtype");
    reference_begin(call);
    struct gathered g = gather(call, x, true);
    for (uint64_t i = 0; i < g.elements; i++)
        g.f64[i] = rounded((enum dtype)dtype, g.f64[i]);
    struct reference *ref = reference_computed(g.dims, (enum dtype)dtype, g.f64, g.error);
    ref->exact = g.exact;
    return reference_end(ref);
}

kb_ref kb_ref_quant_at(struct kb_values x, struct kb_values scale, enum kb_dtype dtype, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_quant", file, line};
    if ((unsigned)dtype >= KB_DTYPES || dtype_is_float((enum dtype)dtype))
        misuse_of(call, "quant gives integers");
    const struct evaluator *evaluator = evaluator_of(OP_quant, RELATION_eq);
    reference_begin(call);
    struct gathered g = gather(call, x, true), by = gather(call, scale, true);
    uint64_t columns = g.dims.size[g.dims.rank - 1];
    gathered_check_row(call, &by, columns, true);
    for (uint64_t i = 0; i < g.elements; i++) {
        double divisor = by.f64[by.elements == 1 ? 0 : i % columns];
        g.f64[i] = rounded((enum dtype)dtype, evaluator->value(g.f64[i], divisor, 0));
    }
    struct reference *ref = reference_computed(g.dims, (enum dtype)dtype, g.f64, g.error);
    ref->exact = g.exact && by.exact;
    gathered_free(&by);
    return reference_end(ref);
}
