/* transfers.h: transfers in flight that are waited for together, and rectangles of a matrix that are loaded and stored
 * wherever its shards lie. */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include <kb/arith.h>
#include <kb/tl.h>

/* ---- a group of commands, waited for in the order in which they were submitted */

/* The most commands in flight. One more waits for the oldest first. */
enum { TRANSFERS_MAX = 64 };

/* The most runs that a load or store of rows asks for. Each is a request, and all of them wait at the memory at once. */
enum { RUNS_AT_ONCE = 512 };

struct transfers {
    tl_handle handle[TRANSFERS_MAX];
    uint32_t begun, ended;
};

static inline void transfers_add(struct tl *tl, struct transfers *transfers, tl_handle handle)
{
    if (transfers->begun - transfers->ended == TRANSFERS_MAX)
        tl_wait(tl, transfers->handle[transfers->ended++ % TRANSFERS_MAX]);
    transfers->handle[transfers->begun++ % TRANSFERS_MAX] = handle;
}

static inline void transfers_wait(struct tl *tl, struct transfers *transfers)
{
    while (transfers->ended < transfers->begun)
        tl_wait(tl, transfers->handle[transfers->ended++ % TRANSFERS_MAX]);
}

/* ---- rectangles of a matrix
 *
 * A kernel that works on rows and columns of its own choice need not know how the host has split the matrix: a
 * rectangle moves piece by piece, one command for each shard that contains some of it. */

/* A rectangle of a tensor of two axes, which begins at (row, col) and has the shape of its buffer. */
struct rect {
    kb_tensor tensor;
    uint64_t row, col;
};

static inline struct tl_shard submatrix(struct tl *tl, struct tl_shard x, uint64_t row, uint64_t rows, uint64_t col,
                                        uint64_t cols)
{
    return tl_part(tl, tl_part(tl, x, 0, row, rows), 1, col, cols);
}

/* The first shard that ends after a row, by binary search: shards are in the order of their rows. */
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

/* Loads or stores the intersection of the rectangle and a shard, some rows with each command. Returns the number of its elements. */
static inline uint64_t rect_piece(struct tl *tl, struct transfers *transfers, struct tl_shard buffer, struct rect rect,
                                  struct tl_shard shard, bool is_store)
{
    uint64_t row = kb_max(rect.row, shard.first[0]), col = kb_max(rect.col, shard.first[1]);
    uint64_t row_end = kb_min(rect.row + buffer.shape[0], shard.first[0] + shard.shape[0]);
    uint64_t col_end = kb_min(rect.col + buffer.shape[1], shard.first[1] + shard.shape[1]);
    if (row_end <= row || col_end <= col)
        return 0;
    uint64_t n = col_end - col, most = shard.stride[0] == n ? row_end - row : RUNS_AT_ONCE;
    for (uint64_t at = row, m; at < row_end; at += m) {
        m = kb_min(most, row_end - at);
        struct tl_shard here = submatrix(tl, buffer, at - rect.row, m, col - rect.col, n);
        struct tl_shard there = submatrix(tl, shard, at - shard.first[0], m, col - shard.first[1], n);
        transfers_add(tl, transfers, is_store ? tl_store_async(tl, there, here) : tl_load_async(tl, here, there));
    }
    return (row_end - row) * n;
}

/* Moves all pieces. PEs that want the same rows begin at different shards, so that they do not all read one memory at
 * the same time. Of a tensor in copies, one copy is enough: the loop ends when no elements are left. */
static inline void rect_move(struct tl *tl, struct transfers *transfers, struct tl_shard buffer, struct rect rect,
                             bool is_store)
{
    uint64_t first = shard_of_row(tl, rect.tensor, rect.row), shards = tl_shards(rect.tensor);
    uint64_t last = shard_of_row(tl, rect.tensor, rect.row + buffer.shape[0] - 1);
    while (last < shards && tl_shard(tl, rect.tensor, last).first[0] < rect.row + buffer.shape[0])
        last++;
    uint64_t count = last - first, left = buffer.shape[0] * buffer.shape[1];
    for (uint64_t i = 0; i < count && left > 0; i++) {
        struct tl_shard shard = tl_shard(tl, rect.tensor, first + (tl_pe(tl) + i) % count);
        left -= rect_piece(tl, transfers, buffer, rect, shard, is_store);
    }
    if (left > 0)
        tl_fail(tl, 1, "a rectangle from row %llu, column %llu on is not inside its tensor",
                (unsigned long long)rect.row, (unsigned long long)rect.col);
}

/* Starts to load a rectangle into a buffer of two axes, or to store one from it; transfers_wait waits for all of it.
 * Fails with KERNEL_ERROR if the rectangle is not inside its tensor. */
static inline void rect_load(struct tl *tl, struct transfers *transfers, struct tl_shard to, struct rect from)
{
    rect_move(tl, transfers, to, from, false);
}

static inline void rect_store(struct tl *tl, struct transfers *transfers, struct rect to, struct tl_shard from)
{
    rect_move(tl, transfers, from, to, true);
}

#endif
