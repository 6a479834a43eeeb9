/* functions.h: e^x and erfc(x) of f32, as arithmetic in f64 that compilers vectorise: off by at most 0.6 units in the last
 * place, with the same bits on all processors. References have other ones. */
#ifndef KB_FUNCTIONS_H
#define KB_FUNCTIONS_H

#include <math.h>
#include <stdint.h>

#include "base/vector.h"

/* 2^y, to 2.6e-9 of itself; f32 holds none beyond |y| = 200. y = n + r with |r| <= 1/2, and a Chebyshev series in r. */
VECTOR_BODY double power_of_two(double y)
{
    const double most = 200, round = 0x1.8p52;
    double within = y > most ? most : y < -most ? -most : y;
    union {
        double value;
        uint64_t bits;
    } n = {within + round}, scale;
    double r = within - (n.value - round), p = 0.00015461444698569129;
    p = p * r + 0.0013400428177615838;
    p = p * r + 0.0096180566785246381;
    p = p * r + 0.055503272266703021;
    p = p * r + 0.24022650922288758;
    p = p * r + 0.6931472067028326;
    p = p * r + 1;
    scale.bits = (n.bits + 1023) << 52;                 /* 2^n */
    return p * scale.value;
}

VECTOR_BODY float f32_exp(float x)
{
    return (float)power_of_two((double)x * M_LOG2E);
}

/* erfc(|x|) is e^(-x^2) p(t) / (|x| + 3), where p is a Chebyshev series in t = (|x| - 3) / (|x| + 3), to 6e-10 of itself. */
VECTOR_BODY float f32_erfc(float x)
{
    double size = fabs((double)x), over = 1 / (size + 3), t = 1 - 6 * over, p = -1.06863214649e-5;
    p = p * t + 1.963095191982e-5;
    p = p * t + 9.989217933013e-5;
    p = p * t - 0.0002649144635918;
    p = p * t - 0.0005439258933265;
    p = p * t + 0.003027355091628;
    p = p * t - 0.001213662086043;
    p = p * t - 0.0268253395332;
    p = p * t + 0.1195279147931;
    p = p * t - 0.3104674948281;
    p = p * t + 0.5902283516526;
    p = p * t - 0.8833944449069;
    p = p * t + 1.074006907088;
    double tail = power_of_two(-size * size * M_LOG2E) * p * over;
    return (float)(x < 0 ? 2 - tail : tail);
}

#endif
