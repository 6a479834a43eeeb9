/* dtype.c: conversions between element types, against definitions in f64 and against every value of 16 bits. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tap.h"

/* The value of a 16-bit float with so many exponent bits, by its definition. */
static double defined(uint16_t half, int exponent_bits)
{
    int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = half >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = half & ((1 << mantissa_bits) - 1);
    double value = exponent ? ldexp(1 + ldexp(mantissa, -mantissa_bits), exponent - bias)
                            : ldexp(mantissa, 1 - bias - mantissa_bits);
    if (exponent == (1 << exponent_bits) - 1)
        value = mantissa ? NAN : INFINITY;
    return half & 0x8000 ? -value : value;
}

static bool same(double x, double y)
{
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

/* Every value survives both ways, by itself and in bulk. */
static bool exact(enum dtype dtype, float (*widen)(uint16_t), uint16_t (*narrow)(float), int exponent_bits)
{
    static uint16_t all[1 << 16], back[1 << 16];
    static float wide[1 << 16];
    bool good = true;
    for (int i = 0; i < 1 << 16; i++)
        all[i] = (uint16_t)i;
    dtype_to_f32(dtype, all, wide, 1 << 16);
    dtype_from_f32(dtype, wide, back, 1 << 16);
    for (int i = 0; i < 1 << 16; i++) {
        float value = widen(all[i]);
        good &= same(value, defined(all[i], exponent_bits)) && same(wide[i], value);
        good &= isnan(value) ? isnan(widen(back[i])) : back[i] == all[i] && narrow(value) == all[i];
    }
    return good;
}

/* Between two neighbours: the nearer one, halfway the even one; just off halfway, f64 values are told apart too. */
static bool rounds(enum dtype dtype, int exponent_bits, uint16_t greatest)
{
    bool good = true;
    for (uint16_t low = 0; low < greatest; low++) {
        double x = defined(low, exponent_bits), y = defined(low + 1, exponent_bits), half = (x + y) / 2;
        double asked[] = {half, nextafter(half, x), nextafter(half, y), -half};
        uint16_t even = low & 1 ? low + 1 : low, want[] = {even, low, low + 1, even | 0x8000}, got[4];
        dtype_from_f64(dtype, asked, got, 4);
        good &= !memcmp(got, want, sizeof got);
        float single[] = {(float)half, nextafterf((float)half, 0), nextafterf((float)half, INFINITY)};
        dtype_from_f32(dtype, single, got, 3);
        good &= !memcmp(got, want, 3 * sizeof *got);
    }
    return good;
}

/* Many lengths at many alignments give what single conversions give. */
static bool bulk(void)
{
    float from[70], back[70];
    uint16_t to[70];
    bool good = true;
    for (size_t start = 0; start < 9; start++)
        for (size_t count = 0; start + count <= 70; count++) {
            for (size_t i = 0; i < 70; i++)
                from[i] = (float)(rand() - RAND_MAX / 2) * 1e-9f;
            dtype_from_f32(DTYPE_f16, from + start, to + start, count);
            dtype_to_f32(DTYPE_f16, to + start, back + start, count);
            for (size_t i = start; i < start + count; i++)
                good &= to[i] == f32_to_f16(from[i]) && back[i] == f16_to_f32(to[i]);
        }
    return good;
}

/* Any double, or one near the middle between two values of a narrow dtype, near its least or its largest value. */
static double any_double(int i)
{
    static const double scales[] = {1, 100, 0x1p-14, 0x1p-24, 0x1p-126, 0x1p-133, 0x1p-149, 65536, 0x1p31, 0x1p127};
    double value = scales[rand() % 10] * (rand() % 4096 - 2048) / 1024;
    if (i % 3 == 0)
        value *= 1 + ldexp(rand() % 3 - 1, -20 - rand() % 33);
    if (i % 7 == 0) {
        uint64_t bits = (uint64_t)rand() << 62 ^ (uint64_t)rand() << 31 ^ (uint64_t)rand();
        memcpy(&value, &bits, sizeof value);
    }
    return i % 101 ? value : i % 2 ? (double)NAN : (double)-INFINITY;
}

/* Of f64, many give what each by itself gives, in every dtype. */
static bool bulk_f64(void)
{
    enum { COUNT = 600 };
    double from[COUNT];
    uint8_t bulk[4 * COUNT], single[4 * COUNT];
    bool good = true;
    for (int round = 0; round < 200; round++)
        for (enum dtype dtype = 0; dtype < DTYPES; dtype++) {
            for (int i = 0; i < COUNT; i++) {
                from[i] = any_double(i);
                dtype_from_f64(dtype, &from[i], single + i * dtype_bytes[dtype], 1);
            }
            dtype_from_f64(dtype, from, bulk, COUNT);
            good &= !memcmp(bulk, single, COUNT * (size_t)dtype_bytes[dtype]);
        }
    return good;
}

static bool beyond_range(void)
{
    double asked[] = {65519.99, 65520, -1e300, 1e-300, 2.98e-8, 2.99e-8, INFINITY};
    uint16_t got[7], want[] = {0x7bff, 0x7c00, 0xfc00, 0, 0, 1, 0x7c00};
    dtype_from_f64(DTYPE_f16, asked, got, 7);
    return !memcmp(got, want, sizeof got) && isnan(f16_to_f32(f32_to_f16(NAN))) && isnan(bf16_to_f32(f32_to_bf16(NAN)));
}

static bool integers(void)
{
    float asked[] = {2.5f, 3.5f, -2.5f, 127.5f, 1e30f, -1e30f, NAN, -0.4f};
    int8_t i8[8], want8[] = {2, 4, -2, 127, 127, -128, 0, 0};
    uint8_t u8[8], want_u8[] = {2, 4, 0, 128, 255, 0, 0, 0};
    int32_t i32[8], want32[] = {2, 4, -2, 128, INT32_MAX, INT32_MIN, 0, 0};
    dtype_from_f32(DTYPE_i8, asked, i8, 8);
    dtype_from_f32(DTYPE_u8, asked, u8, 8);
    dtype_from_f32(DTYPE_i32, asked, i32, 8);
    return !memcmp(i8, want8, sizeof i8) && !memcmp(u8, want_u8, sizeof u8) && !memcmp(i32, want32, sizeof i32);
}

static bool from_integers(void)
{
    int32_t asked[] = {-129, 128, 40000, 16777217, INT32_MIN};
    int8_t i8[5], want8[] = {-128, 127, 127, 127, -128};
    int16_t i16[5], want16[] = {-129, 128, 32767, 32767, -32768};
    float f32[5];
    uint16_t f16[5];
    dtype_from_i32(DTYPE_i8, asked, i8, 5);
    dtype_from_i32(DTYPE_i16, asked, i16, 5);
    dtype_from_i32(DTYPE_f32, asked, f32, 5);
    dtype_from_i32(DTYPE_f16, asked, f16, 5);
    return !memcmp(i8, want8, sizeof i8) && !memcmp(i16, want16, sizeof i16) && f32[3] == 16777216 &&
           f16_to_f32(f16[2]) == 40000 && isinf(f16_to_f32(f16[3]));
}

static bool close_ones(void)
{
    return !dtype_close(DTYPE_f16, 65504, 65519, 0) && dtype_close(DTYPE_f16, INFINITY, 65519.9, 1) &&
           dtype_close(DTYPE_f16, 65504, 65520, 20) && !dtype_close(DTYPE_f16, 65504, 1e6, 1000) &&
           !dtype_close(DTYPE_f16, -INFINITY, 1e6, 1000) && dtype_close(DTYPE_f16, -INFINITY, -1e6, 0) &&
           !dtype_close(DTYPE_f32, 1, INFINITY, INFINITY) && !dtype_close(DTYPE_f32, NAN, 1, INFINITY) &&
           dtype_close(DTYPE_i8, 127, 300, 0) && !dtype_close(DTYPE_i8, 126, 300, 0);
}

/* ---- the 8-bit formats, by their definition: sign, exponent, mantissa */

struct format {
    int mantissa, bias;
    bool infinities;
};

/* The value of a byte; beyond the largest value, as if the exponent went on. */
static double defined_value(struct format f, unsigned magnitude)
{
    int exponent = (int)(magnitude >> f.mantissa), mantissa = (int)(magnitude & ((1u << f.mantissa) - 1)), one = 1 << f.mantissa;
    return exponent ? ldexp(one + mantissa, exponent - f.bias - f.mantissa) : ldexp(mantissa, 1 - f.bias - f.mantissa);
}

/* The byte that is nearest to a value, the even one of two: found among all. */
static uint8_t defined_byte(struct format f, double value)
{
    unsigned most = f.infinities ? 0x7c : 0x7f, best = 0;
    for (unsigned byte = 1; byte <= most; byte++) {
        double away = fabs(defined_value(f, byte) - fabs(value)), least = fabs(defined_value(f, best) - fabs(value));
        if (away < least || (away == least && byte % 2 == 0))
            best = byte;
    }
    if (!f.infinities && best == 0x7f)
        best = 0x7e;
    return (uint8_t)(best | (signbit(value) ? 0x80 : 0));
}

static bool narrow(enum dtype dtype, struct format f)
{
    bool good = true;
    unsigned most = f.infinities ? 0x7b : 0x7e;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t element = (uint8_t)byte, back;
        double value = dtype_value(dtype, &element), sign = byte & 0x80 ? -1 : 1;
        float single = (float)value;
        dtype_from_f32(dtype, &single, &back, 1);
        if ((byte & 0x7f) <= most)
            good &= value == sign * defined_value(f, byte & 0x7f) && back == byte;
        else if (f.infinities && (byte & 0x7f) == 0x7c)
            good &= isinf(value) && back == byte;
        else
            good &= isnan(value) && (back & 0x7f) > (f.infinities ? 0x7c : 0x7e);
    }
    for (unsigned byte = 0; byte <= most; byte++) {
        double low = defined_value(f, byte), high = defined_value(f, byte + 1);
        float near[] = {(float)low, (float)((low + high) / 2), (float)high, (float)(high * 1.01), (float)(low * 0.99)};
        for (unsigned i = 0; i < 5; i++) {
            float around[] = {nextafterf(near[i], -INFINITY), near[i], nextafterf(near[i], INFINITY)};
            for (unsigned j = 0; j < 6; j++) {
                float value = j < 3 ? around[j] : -around[j - 3];
                double tie = j % 3 == 1 ? value * (1 + 0x1p-40) : value;
                uint8_t got, got_f64;
                dtype_from_f32(dtype, &value, &got, 1);
                dtype_from_f64(dtype, &tie, &got_f64, 1);
                good &= got == defined_byte(f, value) && got_f64 == defined_byte(f, tie);
            }
        }
    }
    float beyond[] = {INFINITY, -INFINITY, 1e30f, NAN};
    uint8_t got[4], infinite = f.infinities ? 0x7c : 0x7e;
    dtype_from_f32(dtype, beyond, got, 4);
    return good && got[0] == infinite && got[1] == (infinite | 0x80) && got[2] == infinite && (got[3] & 0x7f) > infinite;
}

int main(void)
{
    expect(narrow(DTYPE_f8e4m3, (struct format){3, 7, false}), "f8e4m3 is as defined: all values, neighbours, ties, the ends");
    expect(narrow(DTYPE_f8e5m2, (struct format){2, 15, true}), "f8e5m2 is as defined: all values, neighbours, ties, the ends");
    expect(dtype_close(DTYPE_f8e4m3, 448, 1e6, 0) && !dtype_close(DTYPE_f8e4m3, 416, 1e6, 0), "f8e4m3 saturates in comparisons");
    expect(exact(DTYPE_f16, f16_to_f32, f32_to_f16, 5), "every f16 is the same after f32 and back");
    expect(exact(DTYPE_bf16, bf16_to_f32, f32_to_bf16, 8), "every bf16 is the same after f32 and back");
    expect(rounds(DTYPE_f16, 5, 0x7bff), "f16 rounds to nearest even everywhere, from f64 once");
    expect(rounds(DTYPE_bf16, 8, 0x7f7f), "bf16 rounds to nearest even everywhere, from f64 once");
    expect(bulk(), "bulk conversion equals single ones at any length and alignment");
    expect(bulk_f64(), "bulk conversion of f64 equals single ones, near ties and near the ends of the range too");
    expect(beyond_range(), "f16 overflows to infinity, underflows to 0, keeps NaN");
    expect(integers(), "floats to integers round to even and saturate, NaN is 0");
    expect(from_integers(), "i32 to narrower integers saturates, to floats rounds");
    expect(close_ones(), "infinity is close only to numbers that may be rounded to it");
    return tests_end();
}
