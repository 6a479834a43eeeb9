/* draw.c: random numbers and permutations that are computed alone. */
#include "draw.h"

enum { ROUNDS = 10 };

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], low = key[0], high = key[1];
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t x = UINT64_C(0xd2511f53) * a, y = UINT64_C(0xcd9e8d57) * c;
        a = (uint32_t)(y >> 32) ^ b ^ low;
        b = (uint32_t)y;
        c = (uint32_t)(x >> 32) ^ d ^ high;
        d = (uint32_t)x;
        low += UINT32_C(0x9e3779b9);
        high += UINT32_C(0xbb67ae85);
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

uint64_t draw_bits(uint64_t seed, uint32_t stream, uint64_t item, uint32_t index)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)item, (uint32_t)(item >> 32), index, stream};
    uint32_t out[4];
    philox(counter, key, out);
    return (uint64_t)out[1] << 32 | out[0];
}

static uint64_t draw_next(struct draws *draws)
{
    return draw_bits(draws->seed, draws->stream, draws->item, draws->index++);
}

uint64_t draw_below(struct draws *draws, uint64_t n)
{
    return draw_scale(draw_next(draws), n);
}

double draw_real(struct draws *draws)
{
    return (double)(draw_next(draws) >> 11) * 0x1p-53;
}

bool draw_chance(struct draws *draws, double probability)
{
    return draw_real(draws) < probability;
}

/* A Feistel network permutes the numbers of an even number of bits. Cycle walking: a result of n or more is permuted
 * again, which gives a permutation of the numbers below n; at most one in four numbers is below n. */
uint64_t draw_permuted(uint64_t seed, uint32_t which, uint64_t k, uint64_t n)
{
    enum { FEISTEL_ROUNDS = 6 };
    unsigned half = 1;
    while (half < 16 && n > UINT64_C(1) << 2 * half)
        half++;
    const uint32_t mask = (UINT32_C(1) << half) - 1;
    do {
        uint32_t left = (uint32_t)(k >> half), right = (uint32_t)k & mask;
        for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
            uint64_t bits = draw_bits(seed, STREAM_permutation, (uint64_t)which << 32 | right, round);
            uint32_t next = left ^ ((uint32_t)bits & mask);
            left = right;
            right = next;
        }
        k = (uint64_t)left << half | right;
    } while (k >= n);
    return k;
}
