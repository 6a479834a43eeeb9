/* reduction.h: what row_reduce.c and col_reduce.c share: the sum, mean, maximum or minimum along an axis. */
#ifndef REDUCTION_H
#define REDUCTION_H

#include "stream.h"

struct reduction {
    const char *along, *merge;                          /* the op along an axis; the op that merges two results */
    bool mean;                                          /* the sum is divided at the end */
};

/* The reduction of a word: sum, mean, max or min. */
static inline struct reduction reduction_of(const char *word)
{
    bool sum = word[0] == 's', mean = word[1] == 'e';
    return (struct reduction){sum || mean ? "sum" : word, sum || mean ? "add" : word, mean};
}

/* The dtype of partial results of elements of a dtype. Sums are wider than what they add up. */
static inline enum kb_dtype reduction_dtype(const struct reduction *reduction, enum kb_dtype dtype)
{
    bool integer = dtype == KB_i8 || dtype == KB_i32, sum = reduction->along[0] == 's';
    return !sum ? dtype : integer ? KB_i32 : KB_f32;
}

static inline void reduction_along(struct tl *tl, const struct reduction *reduction, struct tl_shard to,
                                   struct tl_shard x, int axis)
{
    tl_compute(tl, &(struct tl_compute){.op = reduction->along, .to = to, .x = x, .axis = axis});
}

/* Turns results of `count` elements each, which it overwrites, into what is stored. */
static inline void reduction_finish(struct tl *tl, const struct reduction *reduction, struct tl_shard out,
                                    struct tl_shard results, uint64_t count)
{
    if (reduction->mean)
        tl_div(tl, results, results, tl_number((double)count));
    tl_cast(tl, out, results);
}

/* ---- in benches */

/* Refuses the run if pe_math has no lanes for the partial results, or for what is stored: i32 of i8. */
static inline void reduction_needs(const struct reduction *reduction, enum kb_dtype dtype)
{
    needs_math(reduction_dtype(reduction, dtype));
    needs_math(dtype == KB_i8 ? KB_i32 : dtype);
}

/* Fills x with random values. Sums of integers may wrap, as i32 does. */
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
