/* reduce.c: reductions of an axis: elements are joined in pairs, then pairs of pairs, in f32 or i32.
 *
 * The first 2^n elements make one partial result, for every n, and so do the next 2^n: the rounding error of a sum grows
 * with the logarithm of its length, and its bits depend on the elements alone, not on where they lie. */
#include "reduce.h"

#include <string.h>

#include "base/dtype.h"
#include "kb/arith.h"
#include "math.h"

enum { LEAF = 1024, RESULTS = 256, LEVELS = 48 };       /* LEAF is a power of two */

/* Results along one axis, each of `depth` elements along the axis that is reduced. */
struct reduction {
    const struct math *math;
    math_loop *join;
    bool floats;
    uint64_t depth, depth_stride;
    uint64_t from, from_stride, to, to_stride, results; /* elements of the views */
};

/* Partial results, of more elements first: one for each bit that is 1 in the number of elements so far. */
struct partials {
    union lane lane[LEVELS][RESULTS];
    unsigned count;
    size_t width;
};

static void join_last(struct partials *p, math_loop *join)
{
    p->count--;
    join(p->lane[p->count - 1], p->lane[p->count], NULL, p->width);
}

/* After element i was added, counted from 0: joins partial results of the same number of elements. */
static void join_equal(struct partials *p, math_loop *join, uint64_t i)
{
    for (; i & 1; i >>= 1)
        join_last(p, join);
}

static void store(const struct reduction *r, union lane *x, uint64_t first, size_t count)
{
    for (size_t i = 0; op_traits(r->math->op).reduction == REDUCTION_MEAN && i < count; i++)
        if (r->floats)
            x[i].f /= (float)r->depth;
        else
            x[i].i = (int32_t)(x[i].i / (int64_t)r->depth);
    struct elements to = elements_of(&r->math->to, r->to + first * r->to_stride, r->to_stride);
    elements_store(&to, r->floats, true, x, count);
}

/* Makes `count` results side by side; each step adds one element to each. */
static void reduce_across(const struct reduction *r, uint64_t first, size_t count)
{
    struct partials p;
    p.count = 0;
    p.width = count;
    for (uint64_t k = 0; k < r->depth; k++) {
        uint64_t at = r->from + first * r->from_stride + k * r->depth_stride;
        struct elements from = elements_of(&r->math->operand[0], at, r->from_stride);
        elements_load(&from, r->floats, p.lane[p.count++], count);
        join_equal(&p, r->join, k);
    }
    while (p.count > 1)
        join_last(&p, r->join);
    store(r, p.lane[0], first, count);
}

/* Joins at most LEAF elements to one. */
static void fold(union lane *x, size_t count, math_loop *join)
{
    union lane even[LEAF / 2], odd[LEAF / 2];
    for (size_t half; count > 1; count = half + count % 2) {
        half = count / 2;
        for (size_t i = 0; i < half; i++) {
            even[i] = x[2 * i];
            odd[i] = x[2 * i + 1];
        }
        join(even, odd, NULL, half);
        x[half] = x[count - 1];                         /* of an odd number, the last has no partner */
        memcpy(x, even, half * sizeof *x);
    }
}

/* Makes one result of elements that follow one another; each step adds LEAF of them. */
static void reduce_along(const struct reduction *r, uint64_t result)
{
    struct partials p;
    union lane x[LEAF];
    p.count = 0;
    p.width = 1;
    for (uint64_t k = 0; k < r->depth; k += LEAF) {
        size_t count = kb_min(LEAF, r->depth - k);
        struct elements from = elements_of(&r->math->operand[0], r->from + result * r->from_stride + k, 1);
        elements_load(&from, r->floats, x, count);
        fold(x, count, r->join);
        p.lane[p.count++][0] = x[0];
        join_equal(&p, r->join, k / LEAF);
    }
    while (p.count > 1)
        join_last(&p, r->join);
    store(r, p.lane[0], result, 1);
}

static void reduce_line(const struct reduction *r)
{
    if (r->depth_stride == 1)
        for (uint64_t i = 0; i < r->results; i++)
            reduce_along(r, i);
    else
        for (uint64_t i = 0; i < r->results; i += RESULTS)
            reduce_across(r, i, kb_min(RESULTS, r->results - i));
}

/* The axis along which results are made together: the innermost one that is not reduced and is longer than 1. */
static unsigned line_axis(const struct math *math)
{
    for (unsigned axis = VIEW_RANK; axis-- > 0;)
        if ((int)axis != math->axis && math->to.shape[axis] > 1)
            return axis;
    return math->axis == 0 ? 1 : 0;
}

void math_reduce(const struct math *math)
{
    const struct view *from = &math->operand[0], *to = &math->to;
    unsigned along = line_axis(math), axis = (unsigned)math->axis;
    bool floats = math_in_f32(math);
    struct reduction r = {.math = math, .floats = floats, .join = math_loop_of(math->op, RELATION_eq, floats),
                          .depth = from->shape[axis], .depth_stride = from->stride[axis],
                          .from_stride = from->stride[along], .to_stride = to->stride[along],
                          .results = to->shape[along]};
    uint64_t index[VIEW_RANK] = {0};
    for (bool more = true; more;) {
        r.from = r.to = 0;
        for (unsigned i = 0; i < VIEW_RANK; i++) {
            r.from += index[i] * from->stride[i];
            r.to += index[i] * to->stride[i];
        }
        reduce_line(&r);
        more = false;
        for (unsigned i = VIEW_RANK; i-- > 0 && !more;)
            if (i != along && i != axis)
                index[i] = (more = index[i] + 1 < to->shape[i]) ? index[i] + 1 : 0;
    }
}
