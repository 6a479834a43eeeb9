/* math.c: what a math op makes of its operands, element by element: floats in f32, integers in i32, rounded, saturated
 * or wrapped when they are stored. reduce.c has what reduces an axis. */
#include "base/dtype.h"
#include "exec.h"
#include "math_ops.h"

enum { CHUNK = 1024 };                                  /* elements at a time; conversions are done in bulk */

enum { VIEWS = MATH_OPERANDS + 1 };

/* The views of an op with as few axes as will do: those that are walked as one are one. */
struct walk {
    const struct math *math;
    const struct view *view[VIEWS];                     /* the operands, then the result */
    unsigned views, axes;
    uint64_t shape[VIEW_RANK], stride[VIEWS][VIEW_RANK], element[VIEWS];
};

static bool joins(const struct walk *walk, unsigned axis)
{
    for (unsigned v = 0; v < walk->views; v++) {
        const struct view *view = walk->view[v];
        if (walk->stride[v][walk->axes - 1] != view->shape[axis] * view->stride[axis])
            return false;
    }
    return true;
}

static void add_axis(struct walk *walk, unsigned axis)
{
    uint64_t size = walk->view[0]->shape[axis];
    bool joined = walk->axes > 0 && joins(walk, axis);
    walk->axes += !joined;
    walk->shape[walk->axes - 1] = joined ? walk->shape[walk->axes - 1] * size : size;
    for (unsigned v = 0; v < walk->views; v++)
        walk->stride[v][walk->axes - 1] = walk->view[v]->stride[axis];
}

static struct walk walk_of(const struct math *math)
{
    struct walk walk = {.math = math};
    for (unsigned i = 0; i < math_views(math); i++)
        walk.view[walk.views++] = &math->operand[i];
    walk.view[walk.views++] = &math->to;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        if (math->to.shape[axis] > 1)
            add_axis(&walk, axis);
    if (walk.axes == 0)
        walk.shape[walk.axes++] = 1;
    return walk;
}

/* ---- a line along the innermost axis */

static struct elements line(const struct walk *walk, unsigned view, uint64_t first)
{
    uint64_t stride = walk->stride[view][walk->axes - 1];
    return elements_of(walk->view[view], walk->element[view] + first * stride, stride);
}

static struct elements operand(const struct walk *walk, unsigned i, uint64_t first)
{
    if (walk->math->has_scalar && i + 1 == walk->math->operands)
        return (struct elements){.number = walk->math->scalar};
    return line(walk, i, first);
}

/* An i32 may have more bits than f32, and is rounded once. */
static bool cast_of_i32(const struct math *math)
{
    return math->op == OP_cast && math->operand[0].dtype == DTYPE_i32;
}

/* At most CHUNK elements. All operands are read before the result is written: it may lie where one of them does. */
static void compute(const struct walk *walk, uint64_t first, size_t count)
{
    const struct math *math = walk->math;
    union lane x[CHUNK], y[CHUNK], c[CHUNK];
    bool where = math->op == OP_where, floats = math_in_f32(math) && !cast_of_i32(math);
    struct elements from = operand(walk, where ? 1 : 0, first), to = line(walk, walk->views - 1, first);
    math_loop *loop = math_loop_of(math->op, math->relation, floats);
    elements_load(&from, floats, x, count);
    if (math->operands > 1) {
        from = operand(walk, math->operands - 1, first);
        elements_load(&from, floats, y, count);
    }
    if (where) {
        from = operand(walk, 0, first);
        elements_load(&from, false, c, count);
        math_where(c, x, y, count);
    } else if (loop) {
        loop(x, y, count);
    }
    elements_store(&to, floats, math->op != OP_cast, x, count);
}

/* Goes to the next line; false: that was the last. */
static bool next_line(struct walk *walk, uint64_t index[VIEW_RANK])
{
    for (unsigned axis = walk->axes - 1; axis-- > 0;) {
        bool more = ++index[axis] < walk->shape[axis];
        for (unsigned v = 0; v < walk->views; v++)
            walk->element[v] += walk->stride[v][axis] * (more ? 1 : 1 - walk->shape[axis]);
        if (more)
            return true;
        index[axis] = 0;
    }
    return false;
}

static void reach(const struct math *math)
{
    view_reach(IMAGE_BASE, &math->to);
    for (unsigned i = 0; i < math_views(math); i++)
        view_reach(IMAGE_BASE, &math->operand[i]);
}

void exec_math(const struct math *math)
{
    uint64_t index[VIEW_RANK] = {0};
    reach(math);
    if (math->axis != NO_AXIS) {
        math_reduce(math);
        return;
    }
    struct walk walk = walk_of(math);
    uint64_t length = walk.shape[walk.axes - 1];
    do
        for (uint64_t first = 0; first < length; first += CHUNK)
            compute(&walk, first, length - first < CHUNK ? length - first : CHUNK);
    while (next_line(&walk, index));
}
