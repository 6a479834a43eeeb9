/* axes.c: operands of composites with axes of their own. */
#include "axes.h"

#include "kb/arith.h"

uint64_t axes_product(const struct tl_axis *axis)
{
    uint64_t product = 1;
    for (unsigned i = 0; i < TL_AXES; i++)
        if (axis[i].size)
            product = kb_product(product, axis[i].size);
    return product;
}

uint64_t axes_reach(const struct tl_axes *axes)
{
    uint64_t reach = 0;
    for (unsigned i = 0; i < TL_AXES; i++)
        for (unsigned of_cols = 0; of_cols < 2; of_cols++) {
            struct tl_axis axis = of_cols ? axes->col[i] : axes->row[i];
            if (axis.size)
                reach = kb_sum(reach, kb_product(axis.size - 1, axis.stride));
        }
    return reach;
}

/* Adds the axes of the rows or of the columns. Two are one if the outer one goes on where the inner one ends. */
static void add(struct axes *all, const struct tl_axis *axis)
{
    uint32_t first = all->count;
    for (unsigned i = 0; i < TL_AXES; i++) {
        uint32_t last = all->count - 1;                 /* not used without axes */
        if (axis[i].size < 2)
            continue;
        if (all->count > first && all->stride[last] == axis[i].size * axis[i].stride) {
            all->size[last] *= axis[i].size;
            all->stride[last] = axis[i].stride;
            continue;
        }
        all->size[all->count] = axis[i].size;
        all->stride[all->count++] = axis[i].stride;
    }
}

struct axes axes_of(const struct tl_axes *axes)
{
    struct axes all = {0};
    add(&all, axes->row);
    all.rows = all.count;
    add(&all, axes->col);
    uint64_t packed = 1;
    for (uint32_t i = all.count; i-- > 0; packed *= all.size[i])
        all.packed[i] = packed;
    return all;
}

bool axes_view(const struct axes *axes, struct view *view)
{
    uint32_t columns = axes->count - axes->rows;
    if (axes->rows > 1 || columns > 1)
        return false;
    *view = view_matrix(view->memory, view->dtype, view->offset, 1, 1, 0);
    view->stride[1] = 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        uint32_t axis = i >= axes->rows;
        view->shape[axis] = axes->size[i];
        view->stride[axis] = axes->stride[i];
    }
    return true;
}

void axes_each_copy(const struct axes *axes, const struct view *from, const struct view *to,
                    void (*f)(const struct view *from, const struct view *to, void *arg), void *arg)
{
    uint32_t outer = axes->count > VIEW_RANK ? axes->count - VIEW_RANK : 0, inner = axes->count - outer;
    uint64_t copies = 1, size = dtype_bytes[from->dtype];
    struct view x = {.memory = from->memory, .dtype = from->dtype, .rank = inner ? inner : 1, .shape = {1, 1, 1, 1}};
    struct view y = {.memory = to->memory, .dtype = from->dtype, .rank = x.rank, .shape = {1, 1, 1, 1}};
    for (uint32_t i = 0; i < inner; i++) {
        x.shape[i] = y.shape[i] = axes->size[outer + i];
        x.stride[i] = axes->stride[outer + i];
        y.stride[i] = axes->packed[outer + i];
    }
    for (uint32_t i = 0; i < outer; i++)
        copies *= axes->size[i];
    for (uint64_t copy = 0; copy < copies; copy++) {
        uint64_t left = copy;
        x.offset = from->offset;
        y.offset = to->offset;
        for (uint32_t i = outer; i-- > 0; left /= axes->size[i]) {
            x.offset += left % axes->size[i] * axes->stride[i] * size;
            y.offset += left % axes->size[i] * axes->packed[i] * size;
        }
        f(&x, &y, arg);
    }
}
