/* tiles.h: tiles of gemm composites, chosen from the machine: the size of its TCM's reserved region, its array.
 *
 * A tile takes a block of the reserved region from the start of its reads on: of those of its inputs that are not
 * pinned, and, at the last tile along k, of its part of C, until that is written. The array is busy if the next tiles
 * are read, and the last one's C is written, while it works. So the region is shared out like this:
 *
 * - One input is pinned and the other one streams by. Four blocks fit at a time: one is being read, one waits, one is
 *   worked on, one is being written. Tiles are one array wide along the streaming side at least, and as deep as fits.
 * - Both inputs are read. C's part of the tile has up to three quarters of the region, since each row of A is read for
 *   every tile along n, and each column of B for every tile along m; the rest holds two tiles of inputs. Of all shapes
 *   of whole arrays, that one is taken which moves the fewest bytes: what all tiles read, and the write of the last
 *   tile's C, which nothing can hide.
 *
 * A matrix is cut into tiles of sizes as even as whole arrays allow. It takes no time. */
#ifndef TILES_H
#define TILES_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/tl.h>

struct tile {
    uint64_t m, k, n;
};

/* A gemm of m x k x n: a and b of one dtype, c of another; which input lies in the TCM. */
struct tile_ask {
    uint64_t m, k, n;
    enum kb_dtype in, out;
    bool pin_a, pin_b;
};

/* The size of even pieces of at most `most` of a size, in whole steps, of which `most` is at least one. */
static inline uint64_t tile_even(uint64_t size, uint64_t step, uint64_t most)
{
    uint64_t steps = kb_ceil_div(size, step), pieces = kb_ceil_div(steps, kb_max(most / step, 1));
    return kb_min(kb_ceil_div(steps, pieces) * step, size);
}

/* Where one input streams by: `across` is the pinned one's side of C, `along` the streaming one's. */
static inline void tile_stream(const struct tile_ask *ask, uint64_t *along, uint64_t along_step, uint64_t *across,
                               uint64_t across_step, uint64_t *k)
{
    uint64_t in = kb_dtype_bytes(ask->in), out = kb_dtype_bytes(ask->out), block = kb_attrs.pe_tcm_reserved_bytes / 4;
    uint64_t step = kb_min(along_step, *along), tiles = 4;
    *across = tile_even(*across, across_step, kb_max(block / 2 / (step * out), 1));
    *k = tile_even(*k, 1, kb_max((block - kb_min(block / 2, step * *across * out)) / (step * in), 1));
    uint64_t most = block / (*k * in + *across * out);
    *along = tile_even(*along, along_step, kb_max(kb_min(most, *along / tiles), 1));
}

/* What all tiles read, and the write of the last one's C, in bytes. */
static inline double tile_bytes(const struct tile_ask *ask, struct tile tile)
{
    double a = (double)ask->m * ask->k * kb_ceil_div(ask->n, tile.n);
    double b = (double)ask->n * ask->k * kb_ceil_div(ask->m, tile.m);
    return (a + b) * kb_dtype_bytes(ask->in) + (double)tile.m * tile.n * kb_dtype_bytes(ask->out);
}

/* Where both are read. */
static inline struct tile tile_both(const struct tile_ask *ask, uint64_t rows, uint64_t cols)
{
    uint64_t region = kb_attrs.pe_tcm_reserved_bytes, most = region / 4 * 3 / kb_dtype_bytes(ask->out);
    struct tile best = {0};
    for (uint64_t m = rows; m == rows || (m < ask->m + rows && m * cols <= most); m += rows) {
        struct tile tile = {.m = tile_even(ask->m, rows, m), .n = tile_even(ask->n, cols, most / m)};
        if (best.m == 0 || tile_bytes(ask, tile) < tile_bytes(ask, best))
            best = tile;
    }
    uint64_t left = region - best.m * best.n * kb_dtype_bytes(ask->out);
    best.k = tile_even(ask->k, 1, kb_max(left / 2 / ((best.m + best.n) * kb_dtype_bytes(ask->in)), 1));
    return best;
}

static inline struct tile tile_of(const struct tile_ask *ask)
{
    uint64_t rows = kb_attrs.pe_gemm_rows, cols = kb_attrs.pe_gemm_cols;
    struct tile tile = {ask->m, ask->k, ask->n};
    while (rows * cols * kb_dtype_bytes(ask->out) > kb_attrs.pe_tcm_reserved_bytes / 4 && rows > 1 && cols > 1)
        rows = kb_ceil_div(rows, 2), cols = kb_ceil_div(cols, 2);       /* a whole array would be too much */
    if (ask->pin_b)
        tile_stream(ask, &tile.m, rows, &tile.n, cols, &tile.k);
    else if (ask->pin_a)
        tile_stream(ask, &tile.n, cols, &tile.m, rows, &tile.k);
    else
        tile = tile_both(ask, rows, cols);
    return tile;
}

/* How many columns of B to keep in `room` bytes of the TCM while A streams by: all, or, so that the next ones can be
 * loaded meanwhile, half of what fits; 0: to read both tile by tile moves less. Nothing hides the load of the first
 * panel. */
static inline uint64_t tile_panel(const struct tile_ask *ask, uint64_t room)
{
    uint64_t in = kb_dtype_bytes(ask->in), cols = kb_attrs.pe_gemm_cols, fit = room / (ask->k * in);
    uint64_t panel = fit >= ask->n ? ask->n : fit / 2 / cols * cols;
    double kept = ((double)ask->m * kb_ceil_div(ask->n, kb_max(panel, 1)) + ask->n + panel) * ask->k * in;
    return panel && kept <= tile_bytes(ask, tile_of(ask)) ? panel : 0;
}

/* ---- in benches */

#define PARAMS_OF_TILE                                                                                                 \
    KB_INT(tile_m, 0, 0, 1 << 24, "rows of a tile; 0: as fits the machine"),                                           \
    KB_INT(tile_k, 0, 0, 1 << 24, "depth of a tile; 0: as fits the machine"),                                          \
    KB_INT(tile_n, 0, 0, 1 << 24, "columns of a tile; 0: as fits the machine")

/* What these parameters ask for, and where they are 0 what was chosen. */
static inline struct tile tile_asked(struct tile chosen)
{
    return (struct tile){kb_int(tile_m) ? kb_int(tile_m) : chosen.m, kb_int(tile_k) ? kb_int(tile_k) : chosen.k,
                         kb_int(tile_n) ? kb_int(tile_n) : chosen.n};
}

#endif
