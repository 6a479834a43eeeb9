/* rates.h: times of transfers and cycles, and divisions by attributes. */
#ifndef KB_RATES_H
#define KB_RATES_H

#include <stdint.h>

#include "kb/arith.h"

/* kb/arith.h by shorter names. */
static inline uint64_t sum(uint64_t a, uint64_t b) { return kb_sum(a, b); }
static inline uint64_t product(uint64_t a, uint64_t b) { return kb_product(a, b); }
static inline uint64_t ceil_div(uint64_t a, uint64_t b) { return kb_ceil_div(a, b); }
static inline uint64_t move_ps(uint64_t bytes, uint64_t bw_bps) { return kb_move_ps(bytes, bw_bps); }
static inline uint64_t cycles_ps(uint64_t cycles, uint64_t clock_khz) { return kb_cycles_ps(cycles, clock_khz); }

/* Division by an attribute: a shift if it is a power of two. */
struct divisor {
    uint64_t by;
    unsigned shift;                                     /* 64: not a power of two */
};

static inline struct divisor divisor_of(uint64_t by)
{
    return (struct divisor){by, by & (by - 1) ? 64 : (unsigned)__builtin_ctzll(by)};
}

static inline uint64_t quotient(uint64_t a, struct divisor d)
{
    return d.shift < 64 ? a >> d.shift : a / d.by;
}

static inline uint64_t rest(uint64_t a, struct divisor d)
{
    return d.shift < 64 ? a & (d.by - 1) : a % d.by;
}

#endif
