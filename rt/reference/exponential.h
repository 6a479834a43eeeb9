/* exponential.h: e^x and the tails of the normal distribution in f64, as arithmetic that compilers vectorise. */
#ifndef KB_EXPONENTIAL_H
#define KB_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>

#include "base/vector.h"

/* e^x for x <= 709, to two units in the last place; 0 where e^x would be no normal number. x = n ln 2 + r with
 * |r| <= ln 2 / 2, and the series of r. */
VECTOR_BODY double exponential(double x)
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

/* How probable it is that a normal number is farther from 0 than x: erfc(|x| / sqrt(2)), off by at most 2.5e-13 of itself.
 * It is e^(-x^2 / 2) p(t) / (|x| + 5), where p is a Chebyshev series in t = (|x| - 5) / (|x| + 5). */
VECTOR_BODY double normal_tails(double x)
{
    double over = 1 / (fabs(x) + 5), t = 1 - 10 * over, p = -6.476270778022626e-08;
    p = p * t + 3.7211045683469435e-08;
    p = p * t + 7.341170773542777e-07;
    p = p * t - 6.021033845937563e-07;
    p = p * t - 5.390929570652478e-06;
    p = p * t + 7.894981513312721e-06;
    p = p * t + 3.3261350881994737e-05;
    p = p * t - 9.948587406624422e-05;
    p = p * t - 0.00011870820308027099;
    p = p * t + 0.0010897833559528312;
    p = p * t - 0.001595750140049401;
    p = p * t - 0.005986750256264393;
    p = p * t + 0.04159013531645013;
    p = p * t - 0.13823727781254191;
    p = p * t + 0.33004073220838415;
    p = p * t - 0.6270663133203256;
    p = p * t + 0.9906112319439228;
    p = p * t - 1.3307650057804792;
    p = p * t + 1.5383860995001062;
    return exponential(-x * x / 2) * p * over;
}

#endif
