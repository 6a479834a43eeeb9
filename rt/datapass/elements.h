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

/* Elements at a stride, which may be 0; or, without a place, a number again and again. */
struct elements {
    uint8_t *at;
    enum dtype dtype;
    uint64_t stride;                                    /* in elements */
    double number;
};

/* Those of a view in `base` from so many elements behind its first on. */
struct elements elements_of(const struct view *view, uint64_t element, uint64_t stride);

/* Those `count` further on. */
struct elements elements_behind(const struct elements *e, uint64_t count);

/* Into f32 or i32. What is a float is not loaded into i32. */
void elements_load(const struct elements *e, bool floats, union lane *to, size_t count);

/* From f32: rounded to nearest even; of an integer dtype saturated. From i32: wrapped or saturated. */
void elements_store(const struct elements *e, bool floats, bool wraps, const union lane *from, size_t count);

#endif
