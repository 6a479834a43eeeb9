/* elements.h: elements of a view, a line of them at a time, from and to arrays in which ops compute. */
#ifndef KB_ELEMENTS_H
#define KB_ELEMENTS_H

#include <stddef.h>

#include "store/view.h"

/* What ops compute with: f32, for the float dtypes, or i32, for the integers. */
union lane {
    float f;
    int32_t i;
};

/* Elements at a stride, which may be 0; or, without an address, a number that is repeated. */
struct elements {
    uint8_t *at;
    enum dtype dtype;
    uint64_t stride;                                    /* in elements */
    double number;
};

/* The elements of a view in `base`, from the one that lies `element` elements behind its first on. */
struct elements elements_of(const struct view *view, uint64_t element, uint64_t stride);

/* Loads elements as f32 or as i32; floats only as f32. */
void elements_load(const struct elements *e, bool floats, union lane *to, size_t count);

/* Stores elements. From f32 they are rounded to nearest even, and saturated if the dtype is an integer; from i32 they are
 * wrapped or saturated. */
void elements_store(const struct elements *e, bool floats, bool wraps, const union lane *from, size_t count);

#endif
