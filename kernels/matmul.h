/* matmul.h: a few rows in the TCM times weights that stream out of a memory, each of them read once.
 *
 * With few rows the array waits for weights, so their tiles are long enough that the DMA's fixed time hardly counts,
 * and short enough that the first and the last one, which nothing overlaps, are a small part of all. */
#ifndef MATMUL_H
#define MATMUL_H

#include "tiles.h"

#define PARAM_OF_MATMUL KB_SIZE(tile, 0, 0, 1ull << 36, "weights of a tile; 0: as fits them and the machine")

/* to = op(x w), in one composite: x is m x k in this PE's TCM, w is k x n in a memory; `to` is anywhere. The op may be
 * NULL. A tile has about weight_bytes of w; 0: chosen. If it has room for all rows, no weight is read twice. */
static inline tl_handle matmul(struct tl *tl, struct tl_shard to, struct tl_shard x, struct tl_shard w,
                               uint64_t weight_bytes, const char *op)
{
    uint64_t m = x.shape[0], k = x.shape[1], n = w.shape[1], size = kb_dtype_bytes(w.dtype);
    uint64_t reserved = kb_attrs.pe_tcm_reserved_bytes, cols = kb_attrs.pe_gemm_cols;
    uint64_t rows = tile_even(m, 1, kb_clamp(reserved / 4 / (cols * kb_dtype_bytes(to.dtype)), 1, m));
    uint64_t bytes = weight_bytes ? weight_bytes : kb_clamp(k * n * size / 6, 32 << 10, reserved / 8);
    uint64_t tile_n = kb_clamp(reserved / 4 / (rows * kb_dtype_bytes(to.dtype)) / cols * cols, 1, n);
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
