/* view.c: the bytes that views have. */
#include "view.h"

#include "base/dtype.h"

struct view view_bytes(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    return (struct view){.memory = memory, .dtype = DTYPE_u8, .rank = 1, .offset = offset, .shape = {bytes, 1, 1, 1},
                         .stride = {1}};
}

struct view view_matrix(uint32_t memory, enum dtype dtype, uint64_t offset, uint64_t rows, uint64_t columns,
                        uint64_t ld)
{
    return (struct view){.memory = memory, .dtype = dtype, .rank = 2, .offset = offset, .shape = {rows, columns, 1, 1},
                         .stride = {ld, 1}};
}

struct view view_without_gaps(const struct view *like)
{
    struct view view = *like;
    uint64_t elements = 1;
    for (uint32_t axis = VIEW_RANK; axis-- > 0; elements *= view.shape[axis])
        view.stride[axis] = view.shape[axis] > 1 ? elements : 0;
    return view;
}

/* A walk over the runs of consecutive bytes of a view, or of two views of one shape, in both of which they are
 * consecutive. */
enum { WALKED = 2 };

struct view_walk {
    const struct view *view[WALKED];
    unsigned views;
    int inner;                                          /* innermost axis that a run does not cover; -1: it covers all */
    uint64_t run, index[VIEW_RANK], element[WALKED];
};

static bool follow(const struct view_walk *walk, unsigned axis)
{
    for (unsigned i = 0; i < walk->views; i++)
        if (walk->view[i]->shape[axis] > 1 && walk->view[i]->stride[axis] != walk->run)
            return false;
    return true;
}

static void walk_begin(struct view_walk *walk)
{
    walk->run = 1;
    for (walk->inner = VIEW_RANK - 1; walk->inner >= 0 && follow(walk, walk->inner); walk->inner--)
        walk->run *= walk->view[0]->shape[walk->inner];
}

/* Goes to the next run; returns false if there is none. */
static bool walk_on(struct view_walk *walk)
{
    for (int axis = walk->inner; axis >= 0; axis--) {
        bool more = ++walk->index[axis] < walk->view[0]->shape[axis];
        for (unsigned i = 0; i < walk->views; i++)
            walk->element[i] += walk->view[i]->stride[axis] * (more ? 1 : 1 - walk->index[axis]);
        if (more)
            return true;
        walk->index[axis] = 0;
    }
    return false;
}

void view_each_run(const struct view *view, void (*f)(uint64_t offset, uint64_t bytes, void *arg), void *arg)
{
    struct view_walk walk = {.view = {view}, .views = 1};
    uint64_t size = dtype_bytes[view->dtype];
    if (view_elements(view) == 0)
        return;
    walk_begin(&walk);
    do
        f(view->offset + walk.element[0] * size, walk.run * size, arg);
    while (walk_on(&walk));
}

uint64_t view_runs_of_two(const struct view *to, const struct view *from)
{
    struct view_walk walk = {.view = {to, from}, .views = WALKED};
    if (view_elements(to) == 0)
        return 0;
    walk_begin(&walk);
    return view_elements(to) / walk.run;
}

void view_each_run_of_two(const struct view *to, const struct view *from,
                          void (*f)(uint64_t to_offset, uint64_t from_offset, uint64_t bytes, void *arg), void *arg)
{
    struct view_walk walk = {.view = {to, from}, .views = WALKED};
    uint64_t size = dtype_bytes[to->dtype];
    if (view_elements(to) == 0)
        return;
    walk_begin(&walk);
    do
        f(to->offset + walk.element[0] * size, from->offset + walk.element[1] * size, walk.run * size, arg);
    while (walk_on(&walk));
}

static void copy_run(uint64_t to_offset, uint64_t from_offset, uint64_t bytes, void *arg)
{
    const struct view **pair = arg;
    store_copy(pair[0]->memory, to_offset, pair[1]->memory, from_offset, bytes);
}

void view_copy(const struct view *to, const struct view *from)
{
    view_each_run_of_two(to, from, copy_run, (const struct view *[]){to, from});
}

void view_reach(const struct view *view)
{
    store_reach(view->memory, view->offset + view_span(view));
}

/* ---- common bytes */

struct placed_runs view_placed(const struct view *view)
{
    struct runs runs;
    runs_of(&runs, view->shape, view->stride, dtype_bytes[view->dtype]);
    return runs_placed(&runs, view->offset);
}

bool views_meet(const struct view *x, const struct view *y, uint64_t *first, uint64_t *end)
{
    bool apart = x->memory != y->memory || x->offset >= y->offset + view_span(y) || y->offset >= x->offset + view_span(x);
    if (apart || view_elements(x) == 0 || view_elements(y) == 0)
        return false;
    struct placed_runs xs = view_placed(x), ys = view_placed(y);
    return runs_meet(&xs, &ys, first, end);
}

bool view_overlap(const struct view *x, const struct view *y)
{
    uint64_t first, end;
    return views_meet(x, y, &first, &end);
}

bool view_is_dense(const struct view *view)
{
    struct runs runs;
    return runs_of(&runs, view->shape, view->stride, dtype_bytes[view->dtype]) && runs.axes == 0;
}
