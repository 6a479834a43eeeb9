/* arith.h: integer arithmetic of sizes and times. Results that do not fit into 64 bits are UINT64_MAX (saturated). */
#ifndef KB_ARITH_H
#define KB_ARITH_H

#include <stdint.h>

static inline uint64_t kb_sum(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_add_overflow(a, b, &c) ? UINT64_MAX : c;
}

static inline uint64_t kb_product(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

/* a / b, rounded up; b is above 0. */
static inline uint64_t kb_ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t kb_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t kb_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* x limited to [least, most]; `most` if it is below `least`. */
static inline uint64_t kb_clamp(uint64_t x, uint64_t least, uint64_t most)
{
    return kb_min(kb_max(x, least), most);
}

/* The later of two times. */
static inline uint64_t kb_later(uint64_t a, uint64_t b)
{
    return kb_max(a, b);
}

/* a * num / den, rounded up; den is above 0. */
static inline uint64_t kb_scaled(uint64_t a, uint64_t num, uint64_t den)
{
    unsigned __int128 work = (unsigned __int128)a * num, whole = work / den + (work % den != 0);
    return whole >> 64 ? UINT64_MAX : (uint64_t)whole;
}

/* The time to move bytes at bw_bps bytes/s, rounded up; a bandwidth of 0 is infinite. */
static inline uint64_t kb_move_ps(uint64_t bytes, uint64_t bw_bps)
{
    if (!bw_bps)
        return 0;
    unsigned __int128 work = (unsigned __int128)bytes * 1000000000000u;
    if (!(work >> 64))
        return kb_ceil_div((uint64_t)work, bw_bps);
    work = (work + bw_bps - 1) / bw_bps;
    return work >> 64 ? UINT64_MAX : (uint64_t)work;
}

/* The time of clock cycles at clock_khz kHz, which is above 0, rounded up. */
static inline uint64_t kb_cycles_ps(uint64_t cycles, uint64_t clock_khz)
{
    unsigned __int128 work = (unsigned __int128)cycles * 1000000000u;
    if (!(work >> 64))
        return kb_ceil_div((uint64_t)work, clock_khz);
    work = (work + clock_khz - 1) / clock_khz;
    return work >> 64 ? UINT64_MAX : (uint64_t)work;
}

/* Reserves a server that is free from *free_ps on, for length_ps, at at_ps or later. Returns the start and sets
 * *free_ps to the end. */
static inline uint64_t kb_reserve(uint64_t *free_ps, uint64_t at_ps, uint64_t length_ps)
{
    uint64_t start_ps = kb_later(*free_ps, at_ps);
    *free_ps = kb_sum(start_ps, length_ps);
    return start_ps;
}

#endif
