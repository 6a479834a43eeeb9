/* tensix.c: a pe_gemm that multiplies a subblock of h x w tiles of 32 x 32, as a Tensix core does. For each product of
 * two tiles one tile is unpacked: of the other operand, one tile stays in the matrix unit while it passes along the subblock.
 *
 * Each of the chip's formats has a dtype in its place: BFLOAT16 (2048 bytes a tile) is bf16, BFLOAT8_B (1088 bytes) is f8e4m3,
 * and BFLOAT4_B (576 bytes) is i8.
 * k_per_cycle is 16, divided by the passes of the math fidelity. Unpackers are as fast as fetch_store_to_tcm_bw_gbs says. */
#include <kb/impl.h>

enum { TILE = 32 };

uint64_t tensix_service(const struct kb_gemm_request *ask)
{
    uint64_t tile_bytes = ask->dtype == KB_bf16 ? 2048 : ask->dtype == KB_i8 ? 576 : 1088;
    uint64_t h = kb_ceil_div(ask->m, TILE), w = kb_ceil_div(ask->n, TILE), deep = kb_ceil_div(ask->k, TILE);
    uint64_t multiplied = h * w * (TILE / 8) * (TILE / 16) * kb_ceil_div(TILE, ask->k_per_cycle);
    uint64_t multiplied_ps = kb_cycles_ps(deep * multiplied, kb_attrs.pe_gemm_clock_khz);
    uint64_t unpacked_ps = kb_move_ps(deep * h * w * tile_bytes, kb_attrs.links_fetch_store_to_tcm_bw_bps);
    return kb_sum(kb_attrs.pe_gemm_overhead_ps, kb_sum(multiplied_ps, unpacked_ps));
}
