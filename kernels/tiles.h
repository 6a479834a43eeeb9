/* tiles.h: the tiles of a gemm composite, chosen for the machine: for the reserved region of its TCM and for its array.
 *
 * A tile occupies part of the reserved region from the start of its reads: room for those of its inputs that are not
 * pinned and, for the last tile along k, for its block of C until that is written. To keep the array busy, the next
 * tiles are read and the last one's C is written while it works. The region is therefore divided like this:
 *
 * - One input is pinned and the other one streams. Four tiles fit at a time: one is read, one waits, one is computed,
 *   one is written. A tile is at least as wide as the array along the streaming side, and as deep as fits.
 * - Both inputs stream. The block of C has up to three quarters of the region, since each row of A is read for every
 *   tile along n and each column of B for every tile along m; the rest holds the inputs of two tiles. Of all shapes of
 *   whole arrays the one that moves the fewest bytes is taken: what all tiles read, and the write of the last tile's C,
 *   which nothing overlaps.
 *
 * A matrix is cut into tiles whose sizes are as even as whole arrays allow. The choice takes no simulated time. */
#ifndef TILES_H
#define TILES_H

#include "params.h"
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/tl.h>

struct gemm_tile {
    uint64_t m, k, n;
};

/* A gemm of m x k x n: the dtype of A and B, that of C, and which input lies in the TCM. */
struct gemm_problem {
    uint64_t m, k, n;
    enum kb_dtype in, out;
    bool pin_a, pin_b;
};

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
    return tile;
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

/* The tile of these parameters for a gemm, at most as large as the gemm; where one is 0, the chosen size. */
static inline struct gemm_tile tile_params(const struct gemm_problem *gemm, struct gemm_tile chosen)
{
    uint64_t m = param_at_most("tile_m", kb_int(tile_m), gemm->m, "the rows of C that a PE multiplies at a time");
    uint64_t k = param_at_most("tile_k", kb_int(tile_k), gemm->k, "the depth that a PE multiplies at a time");
    uint64_t n = param_at_most("tile_n", kb_int(tile_n), gemm->n, "the columns of C that a PE multiplies at a time");
    return (struct gemm_tile){m ? m : chosen.m, k ? k : chosen.k, n ? n : chosen.n};
}

#endif
