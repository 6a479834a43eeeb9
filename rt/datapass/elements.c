/* elements.c: lines of elements, from and to arrays of f32 or i32. */
#include "elements.h"

#include <string.h>

#include "base/dtype.h"
#include "machine/tiling.h"

enum { PIECE = 256 };                                   /* elements at a time that are brought together */

struct elements elements_of(const struct view *view, uint64_t element, uint64_t stride)
{
    uint8_t *at = store_at(view->memory, view->offset);
    return (struct elements){.at = at + element * dtype_bytes[view->dtype], .dtype = view->dtype, .stride = stride};
}

static void convert(const struct elements *e, const void *from, bool floats, union lane *to, size_t count)
{
    if (floats)
        dtype_to_f32(e->dtype, from, &to->f, count);
    else
        dtype_to_i32(e->dtype, from, &to->i, count);
}

static void fill(const struct elements *e, bool floats, union lane *to, size_t count)
{
    union lane one;
    if (e->at)
        convert(e, e->at, floats, &one, 1);
    else if (floats)
        one.f = (float)e->number;
    else
        one.i = (int32_t)e->number;
    for (size_t i = 0; i < count; i++)
        to[i] = one;
}

/* Between a line with gaps and a tight one. */
#define SPREAD(name, type)                                                                                             \
    static void gather_##name(const void *from, uint64_t stride, void *to, size_t count)                               \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                                             \
            ((type *)to)[i] = ((const type *)from)[i * stride];                                                        \
    }                                                                                                                  \
    static void scatter_##name(const void *from, void *to, uint64_t stride, size_t count)                              \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                                             \
            ((type *)to)[i * stride] = ((const type *)from)[i];                                                        \
    }
SPREAD(bytes, uint8_t)
SPREAD(halves, uint16_t)
SPREAD(words, uint32_t)
#undef SPREAD

static void gather(const struct elements *e, size_t first, void *to, size_t count)
{
    const uint8_t *from = e->at + first * e->stride * dtype_bytes[e->dtype];
    switch (dtype_bytes[e->dtype]) {
    case 1: gather_bytes(from, e->stride, to, count); break;
    case 2: gather_halves(from, e->stride, to, count); break;
    default: gather_words(from, e->stride, to, count);
    }
}

static void scatter(const struct elements *e, size_t first, const void *from, size_t count)
{
    uint8_t *to = e->at + first * e->stride * dtype_bytes[e->dtype];
    switch (dtype_bytes[e->dtype]) {
    case 1: scatter_bytes(from, to, e->stride, count); break;
    case 2: scatter_halves(from, to, e->stride, count); break;
    default: scatter_words(from, to, e->stride, count);
    }
}

void elements_load(const struct elements *e, bool floats, union lane *to, size_t count)
{
    uint32_t tight[PIECE];
    if (!e->at || e->stride == 0) {
        fill(e, floats, to, count);
        return;
    }
    if (e->stride == 1) {
        convert(e, e->at, floats, to, count);
        return;
    }
    for (size_t i = 0; i < count; i += PIECE) {
        size_t some = count - i < PIECE ? count - i : PIECE;
        gather(e, i, tight, some);
        convert(e, tight, floats, to + i, some);
    }
}

static void convert_back(const struct elements *e, bool floats, bool wraps, const union lane *from, void *to,
                         size_t count)
{
    if (floats)
        dtype_from_f32(e->dtype, &from->f, to, count);
    else if (wraps)
        dtype_wrap_i32(e->dtype, &from->i, to, count);
    else
        dtype_from_i32(e->dtype, &from->i, to, count);
}

void elements_store(const struct elements *e, bool floats, bool wraps, const union lane *from, size_t count)
{
    uint32_t tight[PIECE];
    if (e->stride == 1) {
        convert_back(e, floats, wraps, from, e->at, count);
        return;
    }
    for (size_t i = 0; i < count; i += PIECE) {
        size_t some = count - i < PIECE ? count - i : PIECE;
        convert_back(e, floats, wraps, from + i, tight, some);
        scatter(e, i, tight, some);
    }
}
