/* tiles.h: the tiles of a gemm composite, chosen for the machine: for the reserved region of its TCM, for its array and
 * for its memory.
 *
 * A tile occupies part of the reserved region from the start of its reads: room for those of its inputs that are not
 * pinned and, for the last tile along k, for its block of C until that is written. To keep the array busy, the next
 * tiles are read and the last one's C is written while it works. The first guess divides the region like this:
 *
 * - One input is pinned and the other one streams. Four tiles fit at a time: one is read, one waits, one is computed,
 *   one is written. A tile is at least as wide as the array along the streaming side, and as deep as fits.
 * - Both inputs stream. The block of C has up to three quarters of the region, since each row of A is read for every
 *   tile along n and each column of B for every tile along m; the rest holds the inputs of two tiles. Of all shapes of
 *   whole arrays the one that moves the fewest bytes is taken: what all tiles read, and the write of the last tile's C,
 *   which nothing overlaps.
 *
 * Then tiles of other shapes are tried, of whole arrays and of whole cycles along k. What each of them takes is found by
 * a replay of its first tiles through the region, the memory and the array: a tile that has to wait until others leave
 * room for its C shows there, as do the array's fill and parts of it that are idle.
 *
 * A matrix is cut into tiles whose sizes are as even as whole arrays allow. The choice takes no simulated time. */
#ifndef TILES_H
#define TILES_H

#include "needs.h"
#include "params.h"
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <kb/tl.h>

struct gemm_tile {
    uint64_t m, k, n;
};

/* The dtype that a product of matrices of a dtype has: with i8 the accumulators', with an f8 one in which sums keep their
 * digits. */
static inline enum kb_dtype product_dtype(enum kb_dtype in)
{
    if (in == KB_f8e4m3 || in == KB_f8e5m2)
        return KB_bf16;
    return in == KB_i8 ? KB_i32 : in;
}

/* A gemm of m x k x n: the dtype of A and B, that of C, and which input lies in the TCM. */
struct gemm_problem {
    uint64_t m, k, n;
    enum kb_dtype in, out;
    bool pin_a, pin_b;
    uint64_t slower;                                    /* how many times slower than from its own HBM slice a PE reads
                                                           what streams; 0: as fast */
};

/* ---- the time of a composite, by a replay of its first tiles */

enum { TILE_BLOCKS = 64, TILE_ENGINES = 8, TILE_REPLAYED = 160 };

/* The buffers of a tile in the region. */
struct tile_block {
    uint64_t at, bytes, free_ps;
};

struct tile_replay {
    struct tile_block block[TILE_BLOCKS];               /* by address */
    uint32_t blocks, reads;
    uint64_t read_free_ps[TILE_ENGINES];                /* by engine */
    uint64_t fed_ps, hbm_ps[2], fetch_ps, array_ps, store_ps, write_ps; /* when each is free; the HBM: reads, writes */
};

/* Gives `bytes` of the region to a tile, at the lowest address where they fit, as soon as they do. Returns its place
 * among the blocks; TILE_BLOCKS if they never fit. */
static inline uint32_t tile_replay_feed(struct tile_replay *r, uint64_t bytes)
{
    for (;;) {
        uint64_t at = 0, next_ps = UINT64_MAX;
        uint32_t kept = 0, place = TILE_BLOCKS;
        for (uint32_t i = 0; i < r->blocks; i++)
            if (r->block[i].free_ps > r->fed_ps)
                r->block[kept++] = r->block[i];
        r->blocks = kept;
        for (uint32_t i = 0; i <= kept && place == TILE_BLOCKS; i++) {
            uint64_t end = i < kept ? r->block[i].at : kb_attrs.pe_tcm_reserved_bytes;
            if (end >= at && end - at >= bytes)
                place = i;
            else if (i < kept)
                at = r->block[i].at + r->block[i].bytes;
        }
        for (uint32_t i = 0; i < kept; i++)
            next_ps = kb_min(next_ps, r->block[i].free_ps);
        if (place < TILE_BLOCKS && kept < TILE_BLOCKS) {
            for (uint32_t i = kept; i > place; i--)
                r->block[i] = r->block[i - 1];
            r->block[place] = (struct tile_block){at, bytes, UINT64_MAX};
            r->blocks++;
            return place;
        }
        if (next_ps == UINT64_MAX)
            return TILE_BLOCKS;
        r->fed_ps = next_ps;
    }
}

/* Moves bytes between the HBM and the TCM from `at_ps` on. Returns when they are there. Reads and writes do not wait for
 * each other: the replay comes to the write of a tile before it comes to reads that are earlier. tile_ps counts both. */
static inline uint64_t tile_replay_move(struct tile_replay *r, bool writes, uint64_t at_ps, uint64_t bytes)
{
    uint64_t fixed_ps = kb_attrs.pe_dma_overhead_ps + kb_attrs.hbm_ctrl_access_ps;
    uint64_t start_ps = kb_reserve(&r->hbm_ps[writes], at_ps + fixed_ps, kb_memory_ps(kb_main_memory(), bytes, 0));
    return start_ps + kb_max(kb_memory_ps(kb_main_memory(), bytes, 0), kb_memory_ps(KB_TCM, bytes, 0));
}

/* Reads one input of a tile, on the engine that is free first. */
static inline uint64_t tile_replay_read(struct tile_replay *r, uint64_t bytes, uint64_t slower)
{
    uint32_t engines = (uint32_t)kb_clamp(kb_attrs.pe_dma_rd_engines, 1, TILE_ENGINES);
    uint64_t *free_ps = &r->read_free_ps[r->reads++ % engines];
    return *free_ps = tile_replay_move(r, false, kb_later(r->fed_ps, *free_ps), bytes * kb_max(slower, 1));
}

/* Runs one tile of m x k x n, `last` of those along k. Returns false if it does not fit into the region. */
static inline bool tile_replay_tile(struct tile_replay *r, const struct gemm_problem *gemm, struct gemm_tile tile,
                                    bool last)
{
    uint64_t in = kb_dtype_bytes(gemm->in), a = tile.m * tile.k * in, b = tile.k * tile.n * in;
    uint64_t c = last ? tile.m * tile.n * kb_dtype_bytes(gemm->out) : 0, bytes = c + !gemm->pin_a * a + !gemm->pin_b * b;
    uint32_t place = bytes ? tile_replay_feed(r, bytes) : 0;
    if (place == TILE_BLOCKS)
        return false;
    uint64_t read_ps = r->fed_ps;
    if (!gemm->pin_a)
        read_ps = tile_replay_read(r, a, gemm->slower);
    if (!gemm->pin_b)
        read_ps = kb_later(read_ps, tile_replay_read(r, b, gemm->slower));
    uint64_t fetch_ps = kb_max(kb_memory_ps(KB_TCM, a + b, 0),
                               kb_move_ps(a + b, kb_attrs.links_fetch_store_to_tcm_bw_bps));
    uint64_t array_ps = kb_gemm_tile_ps(gemm->in, tile.m, tile.k, tile.n);
    uint64_t end_ps = kb_reserve(&r->fetch_ps, read_ps, fetch_ps) + fetch_ps;
    end_ps = kb_reserve(&r->array_ps, end_ps, array_ps) + array_ps;
    if (last) {
        uint64_t store_ps = kb_memory_ps(KB_TCM, 0, c);
        end_ps = kb_reserve(&r->store_ps, end_ps, store_ps) + store_ps;
        end_ps = r->write_ps = tile_replay_move(r, true, kb_later(end_ps, r->write_ps), c);
    }
    if (bytes)
        r->block[place].free_ps = end_ps;
    return true;
}

/* The tile of a gemm at (m, k, n), which is smaller at the ends. */
static inline struct gemm_tile tile_at(const struct gemm_problem *gemm, struct gemm_tile tile, uint64_t m, uint64_t k,
                                       uint64_t n)
{
    return (struct gemm_tile){kb_min(tile.m, gemm->m - m), kb_min(tile.k, gemm->k - k), kb_min(tile.n, gemm->n - n)};
}

/* What no order of these tiles can be faster than: the memory, for what they read and write. */
static inline uint64_t tile_memory_ps(const struct gemm_problem *gemm, struct gemm_tile tile)
{
    uint64_t rows = kb_ceil_div(gemm->m, tile.m), cols = kb_ceil_div(gemm->n, tile.n);
    uint64_t read = !gemm->pin_a * gemm->m * gemm->k * cols + !gemm->pin_b * gemm->n * gemm->k * rows;
    return kb_memory_ps(kb_main_memory(), read * kb_max(gemm->slower, 1) * kb_dtype_bytes(gemm->in),
                        gemm->m * gemm->n * kb_dtype_bytes(gemm->out));
}

/* An estimate of the time of a composite with these tiles; what follows the tiles of the replay goes on as their second
 * half did. UINT64_MAX if a tile does not fit into the region. */
static inline uint64_t tile_ps(const struct gemm_problem *gemm, struct gemm_tile tile)
{
    uint64_t depth = kb_ceil_div(gemm->k, tile.k), half_ps = 0, count = 0, ps = 0;
    uint64_t all = kb_product(kb_ceil_div(gemm->m, tile.m), kb_product(kb_ceil_div(gemm->n, tile.n), depth));
    uint64_t most = kb_min(all, kb_max(TILE_REPLAYED / depth, 2) * depth), half = most / depth / 2 * depth;
    struct tile_replay replay = {0};
    for (uint64_t m = 0; m < gemm->m && count < most; m += tile.m)
        for (uint64_t n = 0; n < gemm->n && count < most; n += tile.n)
            for (uint64_t k = 0; k < gemm->k; k += tile.k) {
                if (count++ == half)
                    half_ps = replay.write_ps;
                if (!tile_replay_tile(&replay, gemm, tile_at(gemm, tile, m, k, n), k + tile.k >= gemm->k))
                    return UINT64_MAX;
            }
    ps = kb_sum(replay.write_ps, kb_scaled(replay.write_ps - half_ps, all - most, kb_max(most - half, 1)));
    return kb_max(ps, tile_memory_ps(gemm, tile));
}

/* ---- the choice */

/* Cuts `size` into even pieces of whole steps that have at most `most` elements, or one step if that is more. Returns
 * the size of a piece. */
static inline uint64_t tile_even(uint64_t size, uint64_t step, uint64_t most)
{
    uint64_t steps = kb_ceil_div(size, step), pieces = kb_ceil_div(steps, kb_max(most / step, 1));
    return kb_min(kb_ceil_div(steps, pieces) * step, size);
}

/* Chooses the tile where one input is pinned: `across` is its side of C, `along` the side of the one that streams. */
static inline void tile_one_streams(const struct gemm_problem *gemm, uint64_t *along, uint64_t along_step,
                                    uint64_t *across, uint64_t across_step, uint64_t *k)
{
    uint64_t in = kb_dtype_bytes(gemm->in), out = kb_dtype_bytes(gemm->out), tiles = 4;
    uint64_t quarter = kb_attrs.pe_tcm_reserved_bytes / 4, step = kb_min(along_step, *along);
    *across = tile_even(*across, across_step, kb_max(quarter / 2 / (step * out), 1));
    *k = tile_even(*k, 1, kb_max((quarter - kb_min(quarter / 2, step * *across * out)) / (step * in), 1));
    uint64_t most = quarter / (*k * in + *across * out);
    *along = tile_even(*along, along_step, kb_max(kb_min(most, *along / tiles), 1));
}

/* The bytes that all tiles read, plus the write of the last tile's C. */
static inline double tile_bytes(const struct gemm_problem *gemm, struct gemm_tile tile)
{
    double a = (double)gemm->m * gemm->k * kb_ceil_div(gemm->n, tile.n);
    double b = (double)gemm->n * gemm->k * kb_ceil_div(gemm->m, tile.m);
    return (a + b) * kb_dtype_bytes(gemm->in) + (double)tile.m * tile.n * kb_dtype_bytes(gemm->out);
}

/* Chooses the tile where both inputs stream, in steps of rows x cols. */
static inline struct gemm_tile tile_both_stream(const struct gemm_problem *gemm, uint64_t rows, uint64_t cols)
{
    uint64_t region = kb_attrs.pe_tcm_reserved_bytes, most = region / 4 * 3 / kb_dtype_bytes(gemm->out);
    struct gemm_tile best = {0};
    for (uint64_t m = rows; m == rows || (m < gemm->m + rows && m * cols <= most); m += rows) {
        struct gemm_tile tile = {.m = tile_even(gemm->m, rows, m), .n = tile_even(gemm->n, cols, most / m)};
        if (best.m == 0 || tile_bytes(gemm, tile) < tile_bytes(gemm, best))
            best = tile;
    }
    uint64_t left = region - best.m * best.n * kb_dtype_bytes(gemm->out);
    best.k = tile_even(gemm->k, 1, kb_max(left / 2 / ((best.m + best.n) * kb_dtype_bytes(gemm->in)), 1));
    return best;
}

/* The sizes to try along an axis of `size`: even pieces of whole steps, each about three quarters of the one before. */
static inline uint64_t tile_smaller(uint64_t size, uint64_t step, uint64_t tile)
{
    return tile > step ? tile_even(size, step, kb_min(tile * 3 / 4, tile - 1)) : 0;
}

/* Replaces `best` by a tile that takes less time, if there is one, in steps of rows x deep x cols. */
static inline struct gemm_tile tile_improve(const struct gemm_problem *gemm, struct gemm_tile best, uint64_t rows,
                                            uint64_t deep, uint64_t cols)
{
    uint64_t in = kb_dtype_bytes(gemm->in), out = kb_dtype_bytes(gemm->out), region = kb_attrs.pe_tcm_reserved_bytes;
    uint64_t best_ps = tile_ps(gemm, best);
    struct gemm_tile tile;
    for (tile.m = gemm->m; tile.m; tile.m = tile_smaller(gemm->m, rows, tile.m))
        for (tile.n = gemm->n; tile.n; tile.n = tile_smaller(gemm->n, cols, tile.n)) {
            uint64_t c = tile.m * tile.n * out, side = (!gemm->pin_a * tile.m + !gemm->pin_b * tile.n) * in;
            for (uint64_t inputs = 1; c < region && inputs <= 4; inputs++) {
                tile.k = side ? tile_even(gemm->k, deep, kb_max((region - c) / inputs / side, 1)) : gemm->k;
                if (c + tile.k * side > region || tile_memory_ps(gemm, tile) >= best_ps)
                    continue;
                uint64_t ps = tile_ps(gemm, tile);
                if (ps < best_ps - best_ps / 64) {
                    best = tile;
                    best_ps = ps;
                }
            }
        }
    return best;
}

/* Chooses the tile of a gemm. */
static inline struct gemm_tile tile_choose(const struct gemm_problem *gemm)
{
    uint64_t rows = kb_attrs.pe_gemm_rows, cols = kb_attrs.pe_gemm_cols;
    struct gemm_tile tile = {gemm->m, gemm->k, gemm->n};
    while (rows * cols * kb_dtype_bytes(gemm->out) > kb_attrs.pe_tcm_reserved_bytes / 4 && rows > 1 && cols > 1)
        rows = kb_ceil_div(rows, 2), cols = kb_ceil_div(cols, 2);       /* C of a whole array does not fit */
    if (gemm->pin_b)
        tile_one_streams(gemm, &tile.m, rows, &tile.n, cols, &tile.k);
    else if (gemm->pin_a)
        tile_one_streams(gemm, &tile.n, cols, &tile.m, rows, &tile.k);
    else
        tile = tile_both_stream(gemm, rows, cols);
    return tile_improve(gemm, tile, rows, kb_max(kb_gemm_k_step(gemm->in), 1), cols);
}

/* Chooses how many columns of B to keep in `room` bytes of the TCM while A streams: all of them or, so that the next
 * ones can be loaded meanwhile, half of what fits. Returns 0 if less is moved when both stream. Nothing overlaps the
 * load of the first columns. */
static inline uint64_t tile_panel(const struct gemm_problem *gemm, uint64_t room)
{
    uint64_t in = kb_dtype_bytes(gemm->in), cols = kb_attrs.pe_gemm_cols, fit = room / (gemm->k * in);
    uint64_t panel = fit >= gemm->n ? gemm->n : fit / 2 / cols * cols;
    double kept = ((double)gemm->m * kb_ceil_div(gemm->n, kb_max(panel, 1)) + gemm->n + panel) * gemm->k * in;
    return panel && kept <= tile_bytes(gemm, tile_choose(gemm)) ? panel : 0;
}

/* ---- in benches */

#define TILE_PARAMS                                                                                                    \
    KB_INT(tile_m, 0, 0, 1 << 24, "rows of a tile; 0: chosen for the machine"),                                        \
    KB_INT(tile_k, 0, 0, 1 << 24, "depth of a tile; 0: chosen for the machine"),                                       \
    KB_INT(tile_n, 0, 0, 1 << 24, "columns of a tile; 0: chosen for the machine")

/* What a tile takes of the region, each of its matrices at a multiple of 64. */
static inline uint64_t tile_region_bytes(const struct gemm_problem *gemm, struct gemm_tile tile, bool last)
{
    uint64_t in = kb_dtype_bytes(gemm->in), out = kb_dtype_bytes(gemm->out);
    return !gemm->pin_a * tcm_padded(tile.m * tile.k * in) + !gemm->pin_b * tcm_padded(tile.k * tile.n * in) +
           last * tcm_padded(tile.m * tile.n * out);
}

/* Refuses the run if the region does not hold the tile of a gemm of `rows` rows. */
static inline void tile_needs(const struct gemm_problem *gemm, struct gemm_tile tile, uint64_t rows)
{
    struct gemm_tile first = {kb_min(tile.m, rows), tile.k, tile.n}, last = first;
    last.k = (gemm->k - 1) % tile.k + 1;                /* the one along k that has C too */
    needs_region(kb_max(tile_region_bytes(gemm, last, true), tile_region_bytes(gemm, first, false)), "a tile",
                 "make tile_m, tile_k or tile_n smaller");
}

/* The tile of these parameters for a gemm, at most as large as the gemm; where one is 0, the chosen size. Of the gemm, `rows` rows are
 * multiplied at a time. Refuses the run if pe_gemm does not know the dtype, or if the region does not hold the tile. */
static inline struct gemm_tile tile_params(const struct gemm_problem *gemm, struct gemm_tile chosen, uint64_t rows)
{
    uint64_t m = param_at_most("tile_m", kb_int(tile_m), gemm->m, "the rows of C that a PE multiplies at a time");
    uint64_t k = param_at_most("tile_k", kb_int(tile_k), gemm->k, "the depth that a PE multiplies at a time");
    uint64_t n = param_at_most("tile_n", kb_int(tile_n), gemm->n, "the columns of C that a PE multiplies at a time");
    struct gemm_tile tile = {m ? m : chosen.m, k ? k : chosen.k, n ? n : chosen.n};
    needs_gemm(gemm->in);
    tile_needs(gemm, tile, rows);
    return tile;
}

#endif
