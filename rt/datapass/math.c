/* math.c: math ops element by element: floats in f32, integers in i32; the result is rounded, saturated or wrapped when it
 * is stored. */
#include "math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/ops.h"
#include "base/vector.h"
#include "functions.h"
#include "machine/runs.h"
#include "machine/tiling.h"
#include "reduce.h"

/* ---- what ops are defined on */

struct op_traits op_traits(uint16_t op)
{
    static const struct op_traits known[KNOWN_OPS] = {
#define OP(name, operands, reduces, domain, second, result, ...)                                                       \
    {operands, REDUCTION_##reduces, DOMAIN_##domain, SECOND_##second, RESULT_##result},
#define RESULT_EXACT true
#define RESULT_ROUNDED false
#include "kb/ops.def"
    };
    return op < KNOWN_OPS ? known[op] : (struct op_traits){0};
}

const struct view *math_subject(const struct math *math)
{
    return &math->operand[op_traits(math->op).domain == DOMAIN_CHOICE ? 1 : 0];
}

static bool refused(char why[MATH_WHY], const char *format, const char *op, const char *a, const char *b)
{
    snprintf(why, MATH_WHY, format, op, a, b);
    return false;
}

/* QUANT and DEQUANT. */
static bool scaling_defined(const struct math *math, bool quant, char why[MATH_WHY])
{
    const char *name = op_name(math->op), *to = dtype_words[math->to.dtype];
    if (dtype_is_float(math->to.dtype) == quant)
        return refused(why, "%s does not give %s, but %s", name, to, quant ? "integers" : "floats");
    if (!math->has_scalar && !dtype_is_float(math->operand[1].dtype))
        return refused(why, "the scale of %s is %s; %s", name, dtype_words[math->operand[1].dtype], "floats are");
    return true;
}

/* LOOKUP. */
static bool lookup_defined(const struct math *math, char why[MATH_WHY])
{
    const char *name = op_name(math->op), *of = dtype_words[math->operand[0].dtype];
    if (math->to.dtype != math->operand[0].dtype)
        return refused(why, "%s of %s does not give %s", name, of, dtype_words[math->to.dtype]);
    if (math->has_scalar || dtype_is_float(math->operand[1].dtype))
        return refused(why, "the positions of %s are %s; a buffer of %s", name,
                       math->has_scalar ? "a number" : dtype_words[math->operand[1].dtype], "integers is needed");
    return true;
}

/* All that is computed with, and the result if it is no truth value, are floats, or all are integers. */
static bool classes_agree(const struct math *math, enum op_domain domain, char why[MATH_WHY])
{
    const char *name = op_name(math->op);
    enum dtype first = math_subject(math)->dtype;
    bool floats = dtype_is_float(first);
    unsigned views = math_views(math);
    for (unsigned i = domain == DOMAIN_CHOICE ? 2 : 1; i < views; i++)
        if (dtype_is_float(math->operand[i].dtype) != floats)
            return refused(why, "%s of %s and %s is not defined: cast one of them first", name, dtype_words[first],
                           dtype_words[math->operand[i].dtype]);
    if (domain != DOMAIN_COMPARE && dtype_is_float(math->to.dtype) != floats)
        return refused(why, "%s of %s does not give %s: cast it", name, dtype_words[first],
                       dtype_words[math->to.dtype]);
    return true;
}

bool math_defined(const struct math *math, char why[MATH_WHY])
{
    enum op_domain domain = (enum op_domain)op_traits(math->op).domain;
    const char *name = op_name(math->op);
    const struct view *x = math_subject(math);
    if (domain == DOMAIN_CAST)
        return true;
    if (domain == DOMAIN_LOOKUP)
        return lookup_defined(math, why);
    if (domain == DOMAIN_QUANT || domain == DOMAIN_DEQUANT)
        return scaling_defined(math, domain == DOMAIN_QUANT, why);
    if (domain == DOMAIN_FLOATS && !dtype_is_float(x->dtype))
        return refused(why, "%s of %s is not defined: cast or dequant it first%s", name, dtype_words[x->dtype], "");
    if (domain == DOMAIN_COMPARE && math->to.dtype != DTYPE_u8)
        return refused(why, "%s gives u8, not %s%s", name, dtype_words[math->to.dtype], "");
    if (domain == DOMAIN_CHOICE && math->operand[0].dtype != DTYPE_u8)
        return refused(why, "the condition of %s is u8, not %s%s", name, dtype_words[math->operand[0].dtype], "");
    if (!classes_agree(math, domain, why))
        return false;
    if (math->has_scalar && !dtype_is_float(x->dtype) &&
        !(math->scalar == nearbyint(math->scalar) && math->scalar >= INT32_MIN && math->scalar <= INT32_MAX))
        return refused(why, "%s of %s and a number that is no i32 is not defined%s", name, dtype_words[x->dtype], "");
    return true;
}

bool math_overlaps(const struct math *math)
{
    const struct view *to = &math->to;
    for (unsigned i = 0; i < math_views(math); i++) {
        const struct view *x = &math->operand[i];
        bool looked_up = i == 0 && op_traits(math->op).domain == DOMAIN_LOOKUP;
        bool same = !looked_up && to->offset == x->offset && dtype_bytes[to->dtype] == dtype_bytes[x->dtype] && math->axis == NO_AXIS;
        for (unsigned axis = 0; same && axis < to->rank; axis++)
            same = to->shape[axis] == 1 || to->stride[axis] == x->stride[axis];
        if (!same && view_overlap(to, x))
            return true;
    }
    return false;
}

bool math_in_f32(const struct math *math)
{
    enum op_domain domain = (enum op_domain)op_traits(math->op).domain;
    return domain == DOMAIN_QUANT || domain == DOMAIN_DEQUANT || dtype_is_float(math_subject(math)->dtype) ||
           (domain == DOMAIN_CAST && dtype_is_float(math->to.dtype));
}

/* ---- loops over arrays */

/* Maxima and the like choose by masks of all bits, without branches: so compilers vectorise them. */
static int32_t choose(bool first, int32_t x, int32_t y)
{
    return (x & -(int32_t)first) | (y & ((int32_t)first - 1));
}

/* Maps the bits of floats to integers in the same order, -0 below 0. */
static int32_t ordered(int32_t bits)
{
    return bits ^ (bits >> 31 & INT32_MAX);
}

static bool is_nan(int32_t bits)
{
    return (bits & INT32_MAX) > 0x7f800000;
}

static int32_t unless_nan(int32_t chosen, int32_t x, int32_t y)
{
    return choose(is_nan(x), x, choose(is_nan(y), y, chosen));
}

static float smaller(float x, float y)
{
    union lane a = {x}, b = {y};
    return (union lane){.i = unless_nan(choose(ordered(a.i) < ordered(b.i), a.i, b.i), a.i, b.i)}.f;
}

static float larger(float x, float y)
{
    union lane a = {x}, b = {y};
    return (union lane){.i = unless_nan(choose(ordered(a.i) > ordered(b.i), a.i, b.i), a.i, b.i)}.f;
}

static float relu(float x)
{
    union lane a = {x};
    return (union lane){.i = choose(is_nan(a.i), a.i, a.i & ~(a.i >> 31))}.f;
}

#define WRAP(x, operator, y) (int32_t)((uint32_t)(x) operator (uint32_t)(y))

typedef float float_lane __attribute__((may_alias));
typedef int32_t int32_t_lane __attribute__((may_alias));

/* Functions, which have much to compute, are compiled for larger vectors as well. */
#define FUNCTION_OF_LANES(name, function)                                                                              \
    function(name, (union lane *lanes, const union lane *second, const union lane *choice, size_t count),              \
             (lanes, second, choice, count))
#define FUNCTION_ALL(name, parameters, arguments)                                                                      \
    static void name parameters                                                                                        \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }
#define FUNCTION_FLOATS VECTOR_FUNCTION
#define FUNCTION_COMPARE FUNCTION_ALL
#define FUNCTION_CHOICE FUNCTION_ALL
#define FUNCTION_CAST FUNCTION_ALL
#define FUNCTION_QUANT FUNCTION_ALL
#define FUNCTION_DEQUANT FUNCTION_ALL
#define FUNCTION_LOOKUP FUNCTION_ALL

/* A loop of an expression of x, y, z: of a CHOICE x is the choice, else z is unused. Compilers vectorise it, but not over
 * arrays of unions, so lanes are accessed as what they hold. */
#define LOOP(name, function, type, is_choice, expression)                                                              \
    VECTOR_BODY void name##_body(union lane *lanes, const union lane *second, const union lane *choice, size_t count)  \
    {                                                                                                                  \
        type##_lane *restrict to = (type##_lane *)lanes;                                                               \
        const type##_lane *restrict with = (const type##_lane *)second;                                                \
        (void)with, (void)choice;                                                                                      \
        for (size_t i = 0; i < count; i++) {                                                                           \
            type x = (is_choice) ? (type)choice[i].i : to[i];                                                          \
            type y = (is_choice) ? to[i] : with[i], z = (is_choice) ? with[i] : 0;                                     \
            (void)x, (void)y, (void)z;                                                                                 \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    FUNCTION_OF_LANES(name, function)
#define OP(name, operands, reduces, domain, second, result, formula, note, f32, i32, ...)                              \
    LOOP(name##_f32, FUNCTION_##domain, float, DOMAIN_##domain == DOMAIN_CHOICE, f32)                                   \
    LOOP(name##_i32, FUNCTION_ALL, int32_t, DOMAIN_##domain == DOMAIN_CHOICE, i32)
#define RELATION(name, operator)                                                                                       \
    LOOP(name##_f32, FUNCTION_ALL, float, false, x operator y)                                                          \
    LOOP(name##_i32, FUNCTION_ALL, int32_t, false, x operator y)
#include "kb/ops.def"

math_loop *math_loop_of(uint16_t op, enum relation relation, bool floats)
{
    static math_loop *const loops[KNOWN_OPS][2] = {
#define OP(name, ...) {name##_i32, name##_f32},
#include "kb/ops.def"
    };
    static math_loop *const relations[RELATIONS][2] = {
#define RELATION(name, operator) {name##_i32, name##_f32},
#include "kb/ops.def"
    };
    return op == OP_cmp ? relations[relation][floats] : loops[op][floats];
}

/* ---- views */

enum { CHUNK = 1024 };                                  /* elements at a time; conversions are done in bulk */
enum { VIEWS = MATH_OPERANDS + 1 };

/* The views of an op with as few axes as possible: neighbouring axes that all views step through as one are one. */
struct iteration {
    const struct math *math;
    const struct view *view[VIEWS];                     /* the operands, then the result */
    unsigned views, axes;
    uint64_t shape[VIEW_RANK], stride[VIEWS][VIEW_RANK], element[VIEWS];
};

static bool joins(const struct iteration *all, unsigned axis)
{
    for (unsigned v = 0; v < all->views; v++) {
        const struct view *view = all->view[v];
        if (all->stride[v][all->axes - 1] != view->shape[axis] * view->stride[axis])
            return false;
    }
    return true;
}

static void add_axis(struct iteration *all, unsigned axis)
{
    uint64_t size = all->view[0]->shape[axis];
    bool joined = all->axes > 0 && joins(all, axis);
    all->axes += !joined;
    all->shape[all->axes - 1] = joined ? all->shape[all->axes - 1] * size : size;
    for (unsigned v = 0; v < all->views; v++)
        all->stride[v][all->axes - 1] = all->view[v]->stride[axis];
}

/* Over the operands from the first one on that are as large as the result. */
static struct iteration iteration_of(const struct math *math, unsigned first)
{
    struct iteration all = {.math = math};
    for (unsigned i = first; i < math_views(math); i++)
        all.view[all.views++] = &math->operand[i];
    all.view[all.views++] = &math->to;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        if (math->to.shape[axis] > 1)
            add_axis(&all, axis);
    if (all.axes == 0)
        all.shape[all.axes++] = 1;
    return all;
}

/* Moves to the next line along the innermost axis. Returns false after the last one. */
static bool next_line(struct iteration *all, uint64_t index[VIEW_RANK])
{
    for (unsigned axis = all->axes - 1; axis-- > 0;) {
        bool more = ++index[axis] < all->shape[axis];
        for (unsigned v = 0; v < all->views; v++)
            all->element[v] += all->stride[v][axis] * (more ? 1 : 1 - all->shape[axis]);
        if (more)
            return true;
        index[axis] = 0;
    }
    return false;
}

/* The elements of a view from `first` on, along the innermost axis. */
static struct elements line_of(const struct iteration *all, unsigned view, uint64_t first)
{
    uint64_t stride = all->stride[view][all->axes - 1];
    return elements_of(all->view[view], all->element[view] + first * stride, stride);
}

static void load(const struct iteration *all, unsigned operand, uint64_t first, bool floats, union lane *to,
                 size_t count)
{
    bool scalar = all->math->has_scalar && operand + 1 == all->math->operands;
    struct elements from = scalar ? (struct elements){.number = all->math->scalar} : line_of(all, operand, first);
    elements_load(&from, floats, to, count);
}

/* At most CHUNK elements. All operands are read before the result is written, which may be in the same place. A cast of
 * i32, which may have more bits than f32, is rounded once, when it is stored. */
static void compute(const struct iteration *all, uint64_t first, size_t count)
{
    const struct math *math = all->math;
    enum op_domain domain = (enum op_domain)op_traits(math->op).domain;
    union lane x[CHUNK], y[CHUNK], choice[CHUNK];
    unsigned subject = domain == DOMAIN_CHOICE ? 1 : 0;
    bool floats = math_in_f32(math) && !(domain == DOMAIN_CAST && math->operand[0].dtype == DTYPE_i32);
    if (domain == DOMAIN_CHOICE)
        load(all, 0, first, false, choice, count);
    load(all, subject, first, floats, x, count);
    if (subject + 1u < math->operands)
        load(all, subject + 1, first, floats, y, count);
    math_loop_of(math->op, math->relation, floats)(x, y, choice, count);
    struct elements to = line_of(all, all->views - 1, first);
    elements_store(&to, floats, domain != DOMAIN_CAST, x, count);
}

/* Looks up at most CHUNK elements. A position beyond the buffer, which no kernel can ask for, gives 0: data that a defect
 * has changed (defect.h) may have one. */
static void look_up(const struct iteration *all, uint64_t first, size_t count)
{
    const struct view *x = &all->math->operand[0];
    uint64_t size = dtype_bytes[x->dtype];
    union lane position[CHUNK];
    struct elements from = line_of(all, 0, first), to = line_of(all, 1, first);
    elements_load(&from, false, position, count);
    for (size_t i = 0; i < count; i++) {
        uint8_t *element = to.at + i * to.stride * size;
        if (position[i].i >= 0 && (uint64_t)position[i].i < x->shape[0])
            memcpy(element, view_at(x, (uint64_t)position[i].i, 0), size);
        else
            memset(element, 0, size);
    }
}

void math_run(const struct math *math)
{
    bool looks_up = op_traits(math->op).domain == DOMAIN_LOOKUP;
    uint64_t index[VIEW_RANK] = {0};
    view_reach(&math->to);
    for (unsigned i = 0; i < math_views(math); i++)
        view_reach(&math->operand[i]);
    if (math->axis != NO_AXIS) {
        math_reduce(math);
        return;
    }
    struct iteration all = iteration_of(math, looks_up);
    uint64_t length = all.shape[all.axes - 1];
    do
        for (uint64_t first = 0; first < length; first += CHUNK)
            (looks_up ? look_up : compute)(&all, first, length - first < CHUNK ? length - first : CHUNK);
    while (next_line(&all, index));
}
