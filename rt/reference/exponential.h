/* exponential.h: e^x in f64 as arithmetic that compilers vectorise, to two units in the last place. */
#ifndef KB_EXPONENTIAL_H
#define KB_EXPONENTIAL_H

#include <stdint.h>

/* e^x for x <= 709; 0 where e^x would be no normal number. x = n ln 2 + r with |r| <= ln 2 / 2, and the series of r. */
static inline double exponential(double x)
{
    const double least = -708, round = 0x1.8p52, ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    double within = x < least ? least : x;
    union {
        double value;
        uint64_t bits;
    } n = {within * 0x1.71547652b82fep0 + round}, scale;
    double whole = n.value - round, r = within - whole * ln2_high - whole * ln2_low, sum = 1.0 / 6227020800;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1;
    sum = sum * r + 1;
    scale.bits = (n.bits + 1023) << 52;                 /* 2^n */
    double result = sum * scale.value;
    return x < least ? 0 : result;
}

#endif
