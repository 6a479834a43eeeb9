/* skinny_gemm.h: a gemm of a few rows in the TCM and weights that stream out of a memory, each of them read once.
 *
 * With few rows the array waits for weights. So a tile of weights is large enough that the DMA's fixed time hardly
 * counts, and small enough that the first and the last tile, which nothing overlaps, are a small part of the time. */
#ifndef SKINNY_GEMM_H
#define SKINNY_GEMM_H

#include "tiles.h"

/* The tiles of the weights: nothing overlaps the load of the first one and the product of the last one, which are so a third of
 * the time at most. The least bytes of one: their load takes several times the fixed time of a command of the DMA. */
enum { SKINNY_TILES = 6, SKINNY_LEAST_BYTES = 32 << 10 };

#define SKINNY_GEMM_PARAM KB_SIZE(tile, 0, 0, 1ull << 36, "bytes of weights in a tile; 0: chosen for the machine")

/* Refuses the run if the region does not hold the least tile: an element of the weights and one of the product. */
static inline void skinny_gemm_needs(void)
{
    needs_region(2 * 64, "a tile", "take a machine that has them");
}

/* Submits to = op(x w) as one composite: x is m x k in this PE's TCM, w is k x n in a memory, `to` is m x n anywhere.
 * The op may be NULL. A tile has about weight_bytes of w; 0: chosen. No weight is read twice if a tile has room for all
 * rows of x. Returns the handle of the composite. */
static inline tl_handle skinny_gemm(struct tl *tl, struct tl_shard to, struct tl_shard x, struct tl_shard w,
                                    uint64_t weight_bytes, const char *op)
{
    uint64_t m = x.shape[0], k = x.shape[1], n = w.shape[1], size = kb_dtype_bytes(w.dtype);
    uint64_t reserved = kb_attrs.pe_tcm_reserved_bytes, cols = kb_attrs.pe_gemm_cols;
    uint64_t rows = tile_even(m, 1, kb_clamp(reserved / 4 / (cols * kb_dtype_bytes(to.dtype)), 1, m));
    uint64_t bytes = weight_bytes ? weight_bytes : kb_clamp(k * n * size / SKINNY_TILES, SKINNY_LEAST_BYTES, reserved / 8);
    uint64_t tile_n = kb_clamp(reserved / 4 / (rows * kb_dtype_bytes(to.dtype)) / cols * cols, 1, n);
    uint64_t most = kb_min(k * tile_n * size, (reserved - tcm_padded(rows * tile_n * kb_dtype_bytes(to.dtype))) / 64 * 64);
    if (weight_bytes > most)
        bytes = param_used("tile", weight_bytes, most, "the weights of a product or what fits into the TCM");
    tile_n = kb_clamp(bytes / size / k / cols * cols, n < cols ? n : cols, tile_n);
    uint64_t tile_k = tile_even(k, 1, kb_clamp(bytes / size / tile_n, 1, k));
    struct tl_composite gemm = {
        .op = TL_GEMM, .m = m, .k = k, .n = n, .tile = {rows, tile_k, tile_n},
        .a = tl_in(x), .pin_a = true, .b = tl_in(w), .c = tl_out(to),
    };
    if (op)
        gemm.epilogue[gemm.epilogues++] = (struct tl_epilogue){.op = op, .scope = TL_OUTPUT_TILE};
    return tl_composite(tl, &gemm);
}

#endif
