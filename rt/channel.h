/* channel.h: how long bytes take, and reservations of what carries one thing at a time. */
#ifndef KB_CHANNEL_H
#define KB_CHANNEL_H

#include <stdint.h>

#include "event.h"

/* Time to move bytes at so many bytes/s, rounded up; 0 bytes/s is infinite. */
static inline uint64_t move_ps(uint64_t bytes, uint64_t bw_bps)
{
    if (!bw_bps)
        return 0;
    unsigned __int128 work = (unsigned __int128)bytes * 1000000000000u;
    if (!(work >> 64))
        return (uint64_t)work / bw_bps + ((uint64_t)work % bw_bps != 0);
    work = (work + bw_bps - 1) / bw_bps;
    return work >> 64 ? UINT64_MAX : (uint64_t)work;
}

/* Time of clock cycles at so many kHz, rounded up. */
static inline uint64_t cycles_ps(uint64_t cycles, uint64_t clock_khz)
{
    unsigned __int128 work = ((unsigned __int128)cycles * 1000000000u + clock_khz - 1) / clock_khz;
    return work >> 64 ? UINT64_MAX : (uint64_t)work;
}

/* Takes a channel that is free at *free_ps for a length of time, from at_ps (it may lie in the future) on; returns the
 * start and leaves the end in *free_ps. */
static inline uint64_t reserve(uint64_t *free_ps, uint64_t at_ps, uint64_t length_ps)
{
    uint64_t start = *free_ps > at_ps ? *free_ps : at_ps;
    *free_ps = time_after(start, length_ps);
    return start;
}

/* Products and quotients of sizes; a product that does not fit is the largest number. */
static inline uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

static inline uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_add_overflow(a, b, &c) ? UINT64_MAX : c;
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

#endif
