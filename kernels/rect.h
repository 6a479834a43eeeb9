/* rect.h: rectangles of a matrix between its shards, wherever they lie, and a buffer in the TCM.
 *
 * A kernel that works on rows or columns of its own choosing need not know how the host split the matrix: a rectangle
 * is loaded and stored piece by piece, a command for each shard that has some of it. */
#ifndef RECT_H
#define RECT_H

#include "moves.h"
#include <kb/arith.h>

/* Part of a tensor of two axes, from an element on; the buffer's shape says how much. */
struct rect {
    kb_tensor tensor;
    uint64_t row, col;
};

static inline struct tl_shard submatrix(struct tl *tl, struct tl_shard x, uint64_t row, uint64_t rows, uint64_t col,
                                        uint64_t cols)
{
    return tl_part(tl, tl_part(tl, x, 0, row, rows), 1, col, cols);
}

/* The first shard that ends behind a row; shards are in the order of their rows. */
static inline uint64_t shard_of_row(struct tl *tl, kb_tensor tensor, uint64_t row)
{
    uint64_t low = 0, high = tl_shards(tensor);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct tl_shard shard = tl_shard(tl, tensor, middle);
        if (shard.first[0] + shard.shape[0] <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* From where to where two ranges of an axis overlap; nothing: to <= from. */
struct overlap {
    uint64_t from, to;
};

static inline struct overlap overlap_of(uint64_t a, uint64_t a_count, uint64_t b, uint64_t b_count)
{
    return (struct overlap){kb_max(a, b), kb_min(a + a_count, b + b_count)};
}

/* Loads or stores what a shard and the rectangle have in common; gives the number of elements. */
static inline uint64_t rect_piece(struct tl *tl, struct moves *moves, struct tl_shard buffer, struct rect rect,
                                  struct tl_shard shard, bool is_store)
{
    struct overlap rows = overlap_of(rect.row, buffer.shape[0], shard.first[0], shard.shape[0]);
    struct overlap cols = overlap_of(rect.col, buffer.shape[1], shard.first[1], shard.shape[1]);
    if (rows.to <= rows.from || cols.to <= cols.from)
        return 0;
    uint64_t m = rows.to - rows.from, n = cols.to - cols.from;
    struct tl_shard here = submatrix(tl, buffer, rows.from - rect.row, m, cols.from - rect.col, n);
    struct tl_shard there = submatrix(tl, shard, rows.from - shard.first[0], m, cols.from - shard.first[1], n);
    moves_add(tl, moves, is_store ? tl_store_async(tl, there, here) : tl_load_async(tl, here, there));
    return m * n;
}

/* PEs that want the same rows begin with different shards, so that no memory is asked by all of them at once. Of
 * copies one is enough. */
static inline void rect_move(struct tl *tl, struct moves *moves, struct tl_shard buffer, struct rect rect,
                             bool is_store)
{
    uint64_t first = shard_of_row(tl, rect.tensor, rect.row), shards = tl_shards(rect.tensor);
    uint64_t last = shard_of_row(tl, rect.tensor, rect.row + buffer.shape[0] - 1);
    while (last < shards && tl_shard(tl, rect.tensor, last).first[0] < rect.row + buffer.shape[0])
        last++;
    uint64_t count = last - first, left = buffer.shape[0] * buffer.shape[1];
    for (uint64_t i = 0; i < count && left > 0; i++) {
        struct tl_shard shard = tl_shard(tl, rect.tensor, first + (tl_pe(tl) + i) % count);
        left -= rect_piece(tl, moves, buffer, rect, shard, is_store);
    }
    if (left > 0)
        tl_fail(tl, 1, "a rectangle from row %llu, column %llu on is not inside its tensor",
                (unsigned long long)rect.row, (unsigned long long)rect.col);
}

/* Begins to fill a buffer of two axes with a rectangle, and the other way round; moves_wait waits for all of it. */
static inline void rect_load(struct tl *tl, struct moves *moves, struct tl_shard to, struct rect from)
{
    rect_move(tl, moves, to, from, false);
}

static inline void rect_store(struct tl *tl, struct moves *moves, struct rect to, struct tl_shard from)
{
    rect_move(tl, moves, from, to, true);
}

#endif
