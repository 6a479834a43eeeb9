/* simple.c: simple compute: one op on tensors in the TCM, as one command of pe_math. */
#include <inttypes.h>
#include <string.h>

#include "datapass/math_ops.h"
#include "base/ops.h"
#include "tcm_view.h"

/* ---- operands */

static bool is_number(const struct tl_shard *shard)
{
    return shard->rank == 0 && shard->dtype == DTYPES;
}

static bool is_missing(const struct tl_shard *shard)
{
    return shard->rank == 0 && shard->dtype != DTYPES;
}

/* The operand with the shape of the result, along whose axes its sizes of 1 are repeated. */
static struct view spread(const struct call *call, const char *name, const struct tl_shard *shard,
                          const struct view *to)
{
    struct view x = call_buffer(call, name, shard), wide = {.memory = x.memory, .dtype = x.dtype, .rank = to->rank,
                                                         .offset = x.offset, .shape = {1, 1, 1, 1}};
    bool fits = x.rank <= to->rank;
    for (unsigned axis = 0; fits && axis < to->rank; axis++) {
        unsigned missing = to->rank - x.rank;
        uint64_t size = axis < missing ? 1 : x.shape[axis - missing];
        wide.shape[axis] = to->shape[axis];
        wide.stride[axis] = size == 1 ? 0 : x.stride[axis - missing];
        fits = size == 1 || size == to->shape[axis];
    }
    if (!fits) {
        char own[VIEW_SHAPE], whole[VIEW_SHAPE];
        call_error(call, "%s of %s does not fit a result of %s", name, view_shape_name(&x, own),
                   view_shape_name(to, whole));
    }
    return wide;
}

/* A row, or for what can be a scale one element: nothing is repeated along the last axis then, or all is. */
static void check_row(const struct call *call, const struct math *math)
{
    bool bias = math->op == OP_bias || math->op == OP_bias_add;
    if (math->has_scalar || !(bias || math->op == OP_scale || math->op == OP_quant || math->op == OP_dequant))
        return;
    const struct view *y = &math->operand[1];
    bool row = true, one = true;
    for (unsigned axis = 0; axis < math->to.rank; axis++) {
        row &= y->stride[axis] == 0 || axis + 1 == math->to.rank;
        one &= y->stride[axis] == 0;
    }
    if (!row || (bias && one && math->to.shape[math->to.rank - 1] > 1))
        call_error(call, "the second operand of %s is no row%s", op_name(math->op), bias ? "" : " or single element");
}

/* ---- element by element */

static void take_operands(const struct call *call, const struct tl_compute *ask, struct math *math)
{
    static const char *const names[] = {"x", "y", "z"};
    const struct tl_shard *given[] = {&ask->x, &ask->y, &ask->z};
    math->operands = math_operands(math->op);
    for (unsigned i = 0; i < MATH_OPERANDS; i++) {
        bool last = i + 1 == math->operands;
        if (is_missing(given[i]) != (i >= math->operands))
            call_error(call, "operands of %s: %u, but %s is %s", op_name(math->op), math->operands, names[i],
                       i < math->operands ? "missing" : "given");
        if (i < math->operands && is_number(given[i]) && !(last && i > 0))
            call_error(call, "%s is a number; only the last of several operands can be one", names[i]);
        if (i < math->operands && is_number(given[i])) {
            math->has_scalar = true;
            memcpy(&math->scalar, &given[i]->addr, sizeof math->scalar);
        } else if (i < math->operands) {
            math->operand[i] = spread(call, names[i], given[i], &math->to);
        }
    }
}

/* ---- over an axis */

static void take_reduced(const struct call *call, const struct tl_compute *ask, struct math *math)
{
    if (!is_missing(&ask->y) || !is_missing(&ask->z))
        call_error(call, "%s over an axis has one operand", op_name(math->op));
    struct view x = call_buffer(call, "x", &ask->x), *to = &math->to;
    int axis = ask->axis < 0 ? ask->axis + (int)x.rank : ask->axis;
    if (axis < 0 || axis >= (int)x.rank)
        call_error(call, "x has %" PRIu32 " axes, there is no axis %d", x.rank, ask->axis);
    bool kept = to->rank == x.rank, dropped = to->rank + 1 == x.rank;
    struct view whole = *to;
    whole.rank = x.rank;
    for (unsigned i = x.rank; dropped && i-- > 0;) {
        unsigned from = i > (unsigned)axis ? i - 1 : i;
        whole.shape[i] = (int)i == axis ? 1 : to->shape[from];
        whole.stride[i] = (int)i == axis ? 0 : to->stride[from];
    }
    bool fits = kept || dropped;
    for (unsigned i = 0; fits && i < x.rank; i++)
        fits = whole.shape[i] == ((int)i == axis ? 1 : x.shape[i]);
    if (!fits) {
        char from[VIEW_SHAPE], result[VIEW_SHAPE];
        call_error(call, "a result of %s does not fit %s of %s over axis %d", view_shape_name(to, result),
                   op_name(math->op), view_shape_name(&x, from), axis);
    }
    math->axis = (int8_t)axis;
    math->operands = 1;
    math->operand[0] = x;
    *to = whole;
}

/* ---- the command */

/* The lanes of a dtype work on the larger one of x and the result. */
static uint8_t timed_dtype(const struct math *math)
{
    const struct view *x = math_subject(math);
    return view_size(&math->to) > view_size(x) ? math->to.dtype : x->dtype;
}

static tl_handle submit(const struct call *call, const struct tl_compute *ask)
{
    const char *name = ask->op ? ask->op : "";
    struct op op = {.kind = OPKIND_math, .math = {.op = op_number(name), .axis = NO_AXIS, .relation = ask->relation}};
    struct math *math = &op.math;
    char why[MATH_WHY];
    bool reduces = math_reduces(math->op) && is_missing(&ask->y);
    if (!reduces && math_operands(math->op) == 0)
        call_error(call, "there is no op '%s' of this form", name);
    if (ask->relation > TL_GE)
        call_error(call, "relation number %d is none", (int)ask->relation);
    op.name = op_name(math->op);
    math->to = tcm_result(call, &ask->to);
    if (reduces)
        take_reduced(call, ask, math);
    else
        take_operands(call, ask, math);
    if (!math_defined(math, why))
        call_error(call, "%s", why);
    check_row(call, math);
    if (math_overlaps(math))
        call_error(call, "the result lies over a part of an operand");
    struct request timed = {.kind = COMMAND_math, .dtype = timed_dtype(math), .op = math->op,
                            .n = view_elements(reduces ? &math->operand[0] : &math->to)};
    return call_submit(call, &timed, &op);
}

void tl_compute_at(struct tl *tl, const struct tl_compute *ask, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_compute", file, line};
    call_wait(&call, submit(&call, ask));
}

tl_handle tl_compute_async_at(struct tl *tl, const struct tl_compute *ask, const char *file, uint32_t line)
{
    struct call call = {tl, "tl_compute_async", file, line};
    return submit(&call, ask);
}
