/* rotary.h: rotary position embedding of what lies in the TCM, and its table.
 *
 * The first and the second half of each head are the two coordinates of head_dim / 2 points, as Llama has them. Point i
 * of a token turns by the angle position * theta^(-2 i / head_dim). */
#ifndef ROTARY_H
#define ROTARY_H

#include <kb/tl.h>

/* x, of tokens x heads x head_dim, turned in place, by a table of tokens x head_dim: in each row the cosines, then the
 * sines. u, v: scratch of as many elements as x. Blocks until it is done. */
static inline void rotate(struct tl *tl, struct tl_shard x, struct tl_shard table, struct tl_shard u, struct tl_shard v)
{
    uint64_t tokens = x.shape[0], heads = x.shape[1], half = x.shape[2] / 2;
    table = tl_reshape(tl, table, tokens, 1, 2, half);
    u = tl_reshape(tl, u, tokens, heads, 2, half);
    v = tl_reshape(tl, v, tokens, heads, 2, half);
    x = tl_reshape(tl, x, tokens, heads, 2, half);
    tl_handle done = tl_mul_async(tl, u, x, tl_part(tl, table, 2, 0, 1));
    tl_after(tl, done);
    done = tl_mul_async(tl, v, x, tl_part(tl, table, 2, 1, 1));
    tl_after(tl, done);
    done = tl_sub_async(tl, tl_part(tl, x, 2, 0, 1), tl_part(tl, u, 2, 0, 1), tl_part(tl, v, 2, 1, 1));
    tl_after(tl, done);
    tl_add(tl, tl_part(tl, x, 2, 1, 1), tl_part(tl, u, 2, 1, 1), tl_part(tl, v, 2, 0, 1));
}

/* A row of the table, for a position. */
static inline void rotary_row(float *row, uint64_t position, uint64_t head_dim, double theta)
{
    for (uint64_t i = 0; i < head_dim / 2; i++) {
        double angle = (double)position * __builtin_pow(theta, -2.0 * (double)i / (double)head_dim);
        row[i] = (float)__builtin_cos(angle);
        row[head_dim / 2 + i] = (float)__builtin_sin(angle);
    }
}

#endif
