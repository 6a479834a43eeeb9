/* draw.h: random numbers by number: Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror and Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", 2011). Any number of any stream is computed alone. */
#ifndef GEN_SEARCH_DRAW_H
#define GEN_SEARCH_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/* One block of the generator: four words of a counter and two of a key. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* 64 random bits: those with an index, of an item of a stream. Items are points of a search, or children of a
 * generation; indices are axes. */
uint64_t draw_bits(uint64_t seed, uint32_t stream, uint64_t item, uint32_t index);

/* A number below n, from 64 random bits; n is at most 2^32, so no number is more likely than another one by 2^-32 of it. */
static inline uint64_t draw_scale(uint64_t bits, uint64_t n)
{
    return (uint64_t)((unsigned __int128)bits * n >> 64);
}

/* A sequence of numbers: index after index of one item. */
struct draws {
    uint64_t seed, item;
    uint32_t stream, index;
};
uint64_t draw_below(struct draws *draws, uint64_t n);
double draw_real(struct draws *draws);                  /* from 0, below 1 */
bool draw_chance(struct draws *draws, double probability);

/* Streams: uses of the generator do not share numbers. Generation g of nsga2 has stream STREAM_generation + g. */
enum draw_stream { STREAM_point, STREAM_permutation, STREAM_stratum, STREAM_shift, STREAM_fill, STREAM_generation };

/* Element k of a random permutation of 0 to n - 1, n up to 2^32; each (seed, which) is another one. */
uint64_t draw_permuted(uint64_t seed, uint32_t which, uint64_t k, uint64_t n);

#endif
