/* compute.c: tl_compute and tl_dot: one op on tensors in the TCM, as one command of pe_math or pe_gemm. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/ops.h"
#include "buffer.h"
#include "call.h"
#include "common/array.h"
#include "datapass/math.h"
#include "kb/arith.h"

enum { SHAPE_NAME = 100 };

/* "3 x 5" */
static const char *shape_name(const struct view *view, char name[SHAPE_NAME])
{
    int used = 0;
    for (uint32_t axis = 0; axis < view->rank; axis++)
        used += snprintf(name + used, SHAPE_NAME - (size_t)used, "%s%" PRIu64, axis ? " x " : "", view->shape[axis]);
    return name;
}

/* ---- operands of an op element by element */

static bool is_number(const struct tl_shard *shard)
{
    return shard->rank == 0 && shard->dtype == DTYPES;
}

static bool is_missing(const struct tl_shard *shard)
{
    return shard->rank == 0 && shard->dtype != DTYPES;
}

/* Broadcasts an operand to the shape of the result: its axes of size 1 get a stride of 0. */
static struct view broadcast(const struct call *call, const char *name, const struct tl_shard *shard,
                             const struct view *to)
{
    struct view x;
    call_buffer(call, name, shard, &x);
    struct view wide = {.memory = x.memory, .dtype = x.dtype, .rank = to->rank, .offset = x.offset, .shape = {1, 1, 1, 1}};
    bool fits = x.rank <= to->rank;
    for (unsigned axis = 0; fits && axis < to->rank; axis++) {
        unsigned missing = to->rank - x.rank;
        uint64_t size = axis < missing ? 1 : x.shape[axis - missing];
        wide.shape[axis] = to->shape[axis];
        wide.stride[axis] = size == 1 ? 0 : x.stride[axis - missing];
        fits = size == 1 || size == to->shape[axis];
    }
    if (!fits) {
        char own[SHAPE_NAME], whole[SHAPE_NAME];
        call_error(call, "%s of %s does not fit a result of %s", name, shape_name(&x, own), shape_name(to, whole));
    }
    return wide;
}

/* The second operand of bias, say, is a row; of scale a row or a single element. */
static void check_row(const struct call *call, const struct math *math)
{
    enum op_second second = (enum op_second)op_traits(math->op).second;
    bool row_only = second == SECOND_ROW;
    if (math->has_scalar || second == SECOND_ANY)
        return;
    const struct view *y = &math->operand[1];
    bool row = true, one = true;
    for (unsigned axis = 0; axis < math->to.rank; axis++) {
        row &= y->stride[axis] == 0 || axis + 1 == math->to.rank;
        one &= y->stride[axis] == 0;
    }
    if (!row || (row_only && one && math->to.shape[math->to.rank - 1] > 1))
        call_error(call, "the second operand of %s is not a row%s", op_name(math->op),
                   row_only ? "" : " or single element");
}

/* Reads the positions that a lookup asks for, and checks them: they are of data that the kernel could look at now. As
 * numbers without a sign, negative ones are beyond every buffer; one by one they are only compared if one of many is. */
static void check_positions(const struct call *call, const struct tl_shard *shard, uint64_t count)
{
    enum { MANY = 256 };
    struct view view;
    call_buffer(call, "y", shard, &view);
    uint64_t positions = view_elements(&view), end = kb_min(count, UINT64_C(1) << 31), many;
    static struct ARRAY(uint8_t) bytes;
    static int32_t position[MANY];
    buffer_look(call, &view);
    if (end > 0 && buffer_known_zero(&view))
        return;
    array_reserve(&bytes, view_bytes_of(&view));
    buffer_read(call, &view, bytes.at);
    for (uint64_t first = 0; first < positions; first += many) {
        uint32_t largest = 0;
        many = kb_min(positions - first, MANY);
        dtype_to_i32(view.dtype, bytes.at + first * dtype_bytes[view.dtype], position, many);
        for (uint64_t i = 0; i < many; i++)
            largest = (uint32_t)position[i] > largest ? (uint32_t)position[i] : largest;
        for (uint64_t i = 0; largest >= end && i < many; i++)
            if ((uint32_t)position[i] >= end)
                call_error(call, "position %" PRIu64 " of y is %" PRId32 ", but x has %" PRIu64 " elements", first + i,
                           position[i], count);
    }
}

/* The buffer that a lookup is in. */
static struct view looked_up(const struct call *call, const struct tl_shard *shard)
{
    struct view x;
    call_buffer(call, "x", shard, &x);
    if (x.rank != 1)
        call_error(call, "x has %" PRIu32 " axes; it is a buffer of one", x.rank);
    return x;
}

static void set_operands(const struct call *call, const struct tl_compute *ask, struct math *math)
{
    static const char *const names[] = {"x", "y", "z"};
    const struct tl_shard *given[] = {&ask->x, &ask->y, &ask->z};
    math->operands = op_traits(math->op).operands;
    for (unsigned i = 0; i < MATH_OPERANDS; i++) {
        bool last = i + 1 == math->operands;
        if (is_missing(given[i]) != (i >= math->operands))
            call_error(call, "%s takes %u operand%s, but %s is %s", op_name(math->op), math->operands,
                       math->operands == 1 ? "" : "s", names[i], i < math->operands ? "missing" : "given");
        if (i >= math->operands)
            continue;
        if (i == 0 && op_traits(math->op).domain == DOMAIN_LOOKUP && !is_number(given[i])) {
            math->operand[i] = looked_up(call, given[i]);
            continue;
        }
        if (!is_number(given[i])) {
            math->operand[i] = broadcast(call, names[i], given[i], &math->to);
            continue;
        }
        if (!last || i == 0)
            call_error(call, "%s is a number; only the last of several operands can be one", names[i]);
        math->has_scalar = true;
        memcpy(&math->scalar, &given[i]->addr, sizeof math->scalar);
    }
}

/* ---- operands of a reduction over an axis, which the result keeps with size 1 or drops */

static void set_reduced(const struct call *call, const struct tl_compute *ask, struct math *math)
{
    if (!is_missing(&ask->y) || !is_missing(&ask->z))
        call_error(call, "%s over an axis has one operand", op_name(math->op));
    struct view x, *to = &math->to;
    call_buffer(call, "x", &ask->x, &x);
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
        char from[SHAPE_NAME], result[SHAPE_NAME];
        call_error(call, "a result of %s does not fit %s of %s over axis %d", shape_name(to, result),
                   op_name(math->op), shape_name(&x, from), axis);
    }
    math->axis = (int8_t)axis;
    math->operands = 1;
    math->operand[0] = x;
    *to = whole;
}

/* ---- tl_compute */

/* The op that is made, until it is recorded. */
static struct op op;

static tl_handle submit_math(const struct call *call, const struct tl_compute *ask)
{
    const char *name = ask->op ? ask->op : "";
    op.kind = OPKIND_math;
    op.math = (struct math){.op = op_number(name), .axis = NO_AXIS, .relation = ask->relation};
    struct math *math = &op.math;
    char why[MATH_WHY];
    bool reduces = op_traits(math->op).reduction && is_missing(&ask->y);
    if (!reduces && op_traits(math->op).operands == 0)
        call_error(call, "there is no op '%s' of this form", name);
    if (ask->relation > TL_GE)
        call_error(call, "there is no relation number %d", (int)ask->relation);
    op.name = op_name(math->op);
    call_buffer_distinct(call, "the result", &ask->to, &math->to);
    if (reduces)
        set_reduced(call, ask, math);
    else
        set_operands(call, ask, math);
    if (!math_defined(math, why))
        call_error(call, "%s", why);
    check_row(call, math);
    if (math_overlaps(math))
        call_error(call, "the result overlaps a part of an operand");
    /* The lanes are those of the larger dtype, of the operand or of the result; of a lookup, of the result or of the
     * positions. */
    const struct view *x = math_subject(math), *y = &math->operand[1];
    uint8_t dtype = dtype_bytes[math->to.dtype] > dtype_bytes[x->dtype] ? math->to.dtype : x->dtype;
    if (op_traits(math->op).domain == DOMAIN_LOOKUP) {
        check_positions(call, &ask->y, x->shape[0]);
        dtype = dtype_bytes[y->dtype] > dtype_bytes[dtype] ? y->dtype : dtype;
    }
    static struct request timed;
    timed = (struct request){.kind = COMMAND_math, .dtype = dtype, .op = math->op,
                             .n = view_elements(reduces ? &math->operand[0] : &math->to)};
    return call_submit(call, &timed, &op);
}

void tl_compute_at(struct tl *tl, const struct tl_compute *ask, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_compute", file, line);
    call_wait(&call, submit_math(&call, ask));
}

tl_handle tl_compute_async_at(struct tl *tl, const struct tl_compute *ask, const char *file, uint32_t line)
{
    struct call call = call_of(tl, "tl_compute_async", file, line);
    return submit_math(&call, ask);
}

/* ---- tl_dot */

static void check_matrix(const struct call *call, const char *name, const struct view *view)
{
    if (view->rank != 2)
        call_error(call, "%s has %u axes; a matrix has 2", name, (unsigned)view->rank);
}

static tl_handle submit_gemm(const struct call *call, const struct tl_shard *to, const struct tl_shard *a,
                             const struct tl_shard *b)
{
    struct gemm *g = &op.gemm;
    op.kind = OPKIND_gemm;
    op.gemm = (struct gemm){0};
    call_buffer(call, "a", a, &g->a);
    check_matrix(call, "a", &g->a);
    call_buffer(call, "b", b, &g->b);
    check_matrix(call, "b", &g->b);
    call_buffer_distinct(call, "the result", to, &g->c);
    check_matrix(call, "the result", &g->c);
    if (g->a.shape[1] != g->b.shape[0] || g->a.shape[0] != g->c.shape[0] || g->b.shape[1] != g->c.shape[1]) {
        char left[SHAPE_NAME], right[SHAPE_NAME], result[SHAPE_NAME];
        call_error(call, "a of %s and b of %s do not give %s", shape_name(&g->a, left), shape_name(&g->b, right),
                   shape_name(&g->c, result));
    }
    call_gemm_dtypes(call, g->a.dtype, g->b.dtype);
    if (view_overlap(&g->c, &g->a) || view_overlap(&g->c, &g->b))
        call_error(call, "the result overlaps a or b");
    op.name = gemm_name(g->a.dtype);
    g->tile_m = g->c.shape[0];
    g->tile_k = g->a.shape[1];
    g->tile_n = g->c.shape[1];
    static struct request timed;
    timed = (struct request){.kind = COMMAND_gemm, .dtype = g->a.dtype, .m = g->tile_m, .k = g->tile_k, .n = g->tile_n};
    return call_submit(call, &timed, &op);
}

void tl_dot_at(struct tl *tl, struct tl_shard to, struct tl_shard a, struct tl_shard b, const char *file,
               uint32_t line)
{
    struct call call = call_of(tl, "tl_dot", file, line);
    call_wait(&call, submit_gemm(&call, &to, &a, &b));
}

tl_handle tl_dot_async_at(struct tl *tl, struct tl_shard to, struct tl_shard a, struct tl_shard b, const char *file,
                          uint32_t line)
{
    struct call call = call_of(tl, "tl_dot_async", file, line);
    return submit_gemm(&call, &to, &a, &b);
}
