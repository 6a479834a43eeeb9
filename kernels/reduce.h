/* reduce.h: what reductions of rows and of columns share: sum, mean, maximum and minimum. */
#ifndef REDUCE_H
#define REDUCE_H

#include "stream.h"

struct reduction {
    const char *along, *joins;                          /* the op along an axis, and that of two results */
    bool mean;                                          /* divided in the end */
};

static inline struct reduction reduction_of(const char *word)
{
    bool sum = word[0] == 's', mean = word[1] == 'e';
    return (struct reduction){sum || mean ? "sum" : word, sum || mean ? "add" : word, mean};
}

/* In which results are joined: sums have more bits than what is added up. */
static inline enum kb_dtype reduction_dtype(const struct reduction *reduction, enum kb_dtype dtype)
{
    bool whole = dtype == KB_i8 || dtype == KB_i32, sum = reduction->along[0] == 's';
    return !sum ? dtype : whole ? KB_i32 : KB_f32;
}

static inline void reduce_along(struct tl *tl, const struct reduction *reduction, struct tl_shard to, struct tl_shard x,
                                int axis)
{
    tl_compute(tl, &(struct tl_compute){.op = reduction->along, .to = to, .x = x, .axis = axis});
}

/* What was joined, of so many elements each, as it is stored. */
static inline void reduce_end(struct tl *tl, const struct reduction *reduction, struct tl_shard out, struct tl_shard in,
                              uint64_t count)
{
    if (reduction->mean)
        tl_div(tl, in, in, tl_number((double)count));
    tl_cast(tl, out, in);
}

/* ---- in benches */

/* Sums of integers may wrap, as i32 does. */
static inline void reduction_fill(kb_tensor x, enum kb_dtype dtype)
{
    double most = dtype == KB_i32 ? 1 << 16 : dtype == KB_i8 ? 128 : 1;
    kb_fill_uniform(x, -most, most);
}

static inline kb_ref reduction_expected(kb_tensor x, const char *word, uint32_t axis)
{
    switch (word[1]) {
    case 'u': return kb_ref_sum(x, axis);
    case 'e': return kb_ref_mean(x, axis);
    case 'a': return kb_ref_max(x, axis);
    default: return kb_ref_min(x, axis);
    }
}

#endif
