/* dtype.c: conversions between element types, with f16 instructions where the processor has them.
 *
 * With and without them the bits are the same, NaN payloads included. */
#include "dtype.h"

#include <math.h>
#include <string.h>

#include "vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

const uint8_t dtype_bytes[] = {
#define DTYPE(name, bytes, is_float) bytes,
#include "kb/dtypes.def"
#undef DTYPE
};

const char *const dtype_words[] = {
#define DTYPE(name, bytes, is_float) #name,
#include "kb/dtypes.def"
#undef DTYPE
};

static uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Shifts right, rounding to nearest even. */
static uint32_t shift_to_even(uint32_t bits, unsigned shift)
{
    uint32_t half = UINT32_C(1) << (shift - 1), odd = bits >> shift & 1;
    return (bits + half - 1 + odd) >> shift;
}

uint16_t f32_to_f16(float value)
{
    uint32_t bits = f32_bits(value), magnitude = bits & 0x7fffffff;
    uint16_t sign = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000)
        return sign | 0x7e00 | (magnitude >> 13 & 0x3ff);
    if (magnitude >= 0x47800000)                        /* 2^16 and infinity */
        return sign | 0x7c00;
    if (magnitude >= 0x38800000)                        /* 2^-14: normal; rounding may carry up to infinity */
        return sign | shift_to_even(magnitude - (112u << 23), 13);
    if (magnitude < 0x33000000)                         /* below half of the smallest denormal */
        return sign;
    unsigned exponent = magnitude >> 23;
    return sign | shift_to_even((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
}

float f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 0x1f)
        return f32_of(sign | 0x7f800000 | (mantissa ? 0x400000 : 0) | mantissa << 13);
    if (exponent)
        return f32_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float value = (float)mantissa * 0x1p-24f;
    return sign ? -value : value;
}

uint16_t f32_to_bf16(float value)
{
    uint32_t bits = f32_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return bits >> 16 | 0x40;
    uint32_t odd = bits >> 16 & 1;
    return (bits + 0x7fff + odd) >> 16;
}

float bf16_to_f32(uint16_t half)
{
    return f32_of((uint32_t)half << 16);
}

/* ---- OCP 8-bit formats: e4m3 has no infinities and saturates at 448, e5m2 is the upper half of an f16 */

/* Rounds a magnitude that is no NaN to a float of some bits of mantissa, whose exponent has a bias: the bits of f32's
 * exponents from `normal` on stay normal. May carry beyond the largest value. */
static uint32_t narrow_magnitude(uint32_t magnitude, unsigned mantissa, unsigned normal)
{
    unsigned shift = 23 - mantissa, exponent = magnitude >> 23;
    if (exponent >= normal)
        return shift_to_even(magnitude - ((normal - 1) << 23), shift);
    if (exponent + mantissa + 1 < normal)               /* below half of the smallest denormal */
        return 0;
    return shift_to_even((magnitude & 0x7fffff) | 0x800000, shift + normal - exponent);
}

uint8_t f32_to_f8e4m3(float value)
{
    uint32_t bits = f32_bits(value), magnitude = bits & 0x7fffffff;
    uint8_t sign = bits >> 24 & 0x80;
    if (magnitude > 0x7f800000)
        return sign | 0x7f;
    uint32_t narrow = narrow_magnitude(magnitude, 3, 121);
    return sign | (narrow < 0x7e ? narrow : 0x7e);
}

uint8_t f32_to_f8e5m2(float value)
{
    uint32_t bits = f32_bits(value), magnitude = bits & 0x7fffffff;
    uint8_t sign = bits >> 24 & 0x80;
    if (magnitude > 0x7f800000)
        return sign | 0x7e | (magnitude >> 21 & 3);
    uint32_t narrow = narrow_magnitude(magnitude, 2, 113);
    return sign | (narrow < 0x7c ? narrow : 0x7c);
}

float f8e4m3_to_f32(uint8_t byte)
{
    uint32_t sign = (uint32_t)(byte & 0x80) << 24, exponent = byte >> 3 & 0xf, mantissa = byte & 7;
    if ((byte & 0x7f) == 0x7f)
        return f32_of(sign | 0x7fc00000);
    if (exponent)
        return f32_of(sign | (exponent + 120) << 23 | mantissa << 20);
    float value = (float)mantissa * 0x1p-9f;
    return sign ? -value : value;
}

float f8e5m2_to_f32(uint8_t byte)
{
    return f16_to_f32((uint16_t)(byte << 8));
}

bool dtype_is_float(enum dtype dtype)
{
    static const bool is_float[] = {
#define DTYPE(name, bytes, is_float) is_float,
#include "kb/dtypes.def"
#undef DTYPE
    };
    return is_float[dtype];
}

/* ---- f16 in bulk */

/* gcc leaves the upper halves of registers in use here; then SSE instructions take 20 times as long on some processors. */
#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static void f16_to_f32_f16c(const uint16_t *from, float *to, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    _mm256_zeroupper();
    for (; i < count; i++)
        to[i] = f16_to_f32(from[i]);
}

__attribute__((target("avx,f16c"))) static void f32_to_f16_f16c(const float *from, uint16_t *to, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(to + i), halves);
    }
    _mm256_zeroupper();
    for (; i < count; i++)
        to[i] = f32_to_f16(from[i]);
}
#endif

static void f16_to_f32_all(const uint16_t *from, float *to, size_t count)
{
#if defined(__x86_64__)
    if (vector_has_avx2()) {
        f16_to_f32_f16c(from, to, count);
        return;
    }
#endif
    for (size_t i = 0; i < count; i++)
        to[i] = f16_to_f32(from[i]);
}

static void f32_to_f16_all(const float *from, uint16_t *to, size_t count)
{
#if defined(__x86_64__)
    if (vector_has_avx2()) {
        f32_to_f16_f16c(from, to, count);
        return;
    }
#endif
    for (size_t i = 0; i < count; i++)
        to[i] = f32_to_f16(from[i]);
}

/* ---- all dtypes */

static double limited(double value, double least, double most)
{
    if (isnan(value))
        return 0;
    value = nearbyint(value);
    return value < least ? least : value > most ? most : value;
}

/* An f32 that rounds to narrower floats as `value` does: rounding to odd keeps the bit that decides a tie. */
static float f32_odd(double value)
{
    float near = (float)value;
    if ((double)near == value || isnan(value) || isinf(near) || f32_bits(near) & 1)
        return near;
    bool up = fabs((double)near) < fabs(value);
    return f32_of(f32_bits(near) + (up ? 1 : -1));
}

static void put(enum dtype dtype, double value, void *to, size_t i)
{
    switch (dtype) {
    case DTYPE_f32: ((float *)to)[i] = (float)value; break;
    case DTYPE_f16: ((uint16_t *)to)[i] = f32_to_f16(f32_odd(value)); break;
    case DTYPE_bf16: ((uint16_t *)to)[i] = f32_to_bf16(f32_odd(value)); break;
    case DTYPE_f8e4m3: ((uint8_t *)to)[i] = f32_to_f8e4m3(f32_odd(value)); break;
    case DTYPE_f8e5m2: ((uint8_t *)to)[i] = f32_to_f8e5m2(f32_odd(value)); break;
    case DTYPE_i32: ((int32_t *)to)[i] = (int32_t)limited(value, INT32_MIN, INT32_MAX); break;
    case DTYPE_i16: ((int16_t *)to)[i] = (int16_t)limited(value, INT16_MIN, INT16_MAX); break;
    case DTYPE_i8: ((int8_t *)to)[i] = (int8_t)limited(value, INT8_MIN, INT8_MAX); break;
    case DTYPE_u8: ((uint8_t *)to)[i] = (uint8_t)limited(value, 0, UINT8_MAX); break;
    case DTYPES: break;
    }
}

static double get(enum dtype dtype, const void *from, size_t i)
{
    switch (dtype) {
    case DTYPE_f32: return ((const float *)from)[i];
    case DTYPE_f16: return f16_to_f32(((const uint16_t *)from)[i]);
    case DTYPE_bf16: return bf16_to_f32(((const uint16_t *)from)[i]);
    case DTYPE_f8e4m3: return f8e4m3_to_f32(((const uint8_t *)from)[i]);
    case DTYPE_f8e5m2: return f8e5m2_to_f32(((const uint8_t *)from)[i]);
    case DTYPE_i32: return ((const int32_t *)from)[i];
    case DTYPE_i16: return ((const int16_t *)from)[i];
    case DTYPE_i8: return ((const int8_t *)from)[i];
    case DTYPE_u8: return ((const uint8_t *)from)[i];
    case DTYPES: break;
    }
    return 0;
}

double dtype_value(enum dtype dtype, const void *element)
{
    return get(dtype, element, 0);
}

/* Whole numbers of at most 16 bits. Adding and subtracting 1.5 * 2^23 rounds to even; NaN becomes 0. */
static int32_t narrow_whole(float value, float least, float most)
{
    const float no_fraction = 0x1.8p23f;
    value = value >= least ? value : value < least ? least : 0;
    value = value <= most ? value : most;
    return (int32_t)(value + no_fraction - no_fraction);
}

static int32_t limited_whole(int32_t value, int32_t least, int32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* As f32_odd, for many. What the rounding leaves over decides; multiplied, it is no denormal that f32 would lose. */
VECTOR_BODY void f32_odd_all_body(const double *restrict from, float *restrict to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float near = (float)from[i], rest = (float)((from[i] - (double)near) * 0x1p100);
        uint32_t bits = f32_bits(near), sign = f32_bits(rest) ^ bits, finite = (bits & 0x7f800000) != 0x7f800000;
        uint32_t step = (uint32_t)(f32_bits(rest) << 1 != 0) & finite & ~bits, down = (uint32_t)((int32_t)sign >> 31);
        to[i] = f32_of(bits + (((step & 1) ^ down) - down));
    }
}
VECTOR_FUNCTION(f32_odd_all, (const double *from, float *to, size_t count), (from, to, count))

/* Whole numbers of at most 32 bits, as limited() gives them. */
VECTOR_BODY void limited_all_body(const double *restrict from, double least, double most, int32_t *restrict to,
                                  size_t count)
{
    const double no_fraction = 0x1.8p52;
    for (size_t i = 0; i < count; i++) {
        double value = from[i];
        value = value >= least ? value : value < least ? least : 0;
        value = value <= most ? value : most;
        to[i] = (int32_t)(value + no_fraction - no_fraction);
    }
}
VECTOR_FUNCTION(limited_all, (const double *from, double least, double most, int32_t *to, size_t count),
                (from, least, most, to, count))

VECTOR_BODY void widen_all_body(const float *restrict from, double *restrict to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (double)from[i];
}
VECTOR_FUNCTION(widen_all, (const float *from, double *to, size_t count), (from, to, count))

enum { AT_ONCE = 256 };                                 /* elements that go by way of another type */

/* A loop for each dtype. */
#define EACH(name, statement)                                                                                          \
    case DTYPE_##name:                                                                                                 \
        for (size_t i = 0; i < count; i++)                                                                             \
            statement;                                                                                                 \
        break
#define FROM(type) ((const type *)from)[i]
#define TO(type) ((type *)to)[i]

void dtype_to_f32(enum dtype dtype, const void *from, float *to, size_t count)
{
    switch (dtype) {
    case DTYPE_f32: memcpy(to, from, count * sizeof(float)); break;
    case DTYPE_f16: f16_to_f32_all(from, to, count); break;
    EACH(bf16, to[i] = bf16_to_f32(FROM(uint16_t)));
    EACH(f8e4m3, to[i] = f8e4m3_to_f32(FROM(uint8_t)));
    EACH(f8e5m2, to[i] = f8e5m2_to_f32(FROM(uint8_t)));
    EACH(i32, to[i] = (float)FROM(int32_t));
    EACH(i16, to[i] = FROM(int16_t));
    EACH(i8, to[i] = FROM(int8_t));
    EACH(u8, to[i] = FROM(uint8_t));
    case DTYPES: break;
    }
}

void dtype_to_f64(enum dtype dtype, const void *from, double *to, size_t count)
{
    if (dtype == DTYPE_i32) {
        for (size_t i = 0; i < count; i++)
            to[i] = FROM(int32_t);
        return;
    }
    float some[AT_ONCE];
    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t n = count - first < AT_ONCE ? count - first : AT_ONCE;
        dtype_to_f32(dtype, (const uint8_t *)from + first * dtype_bytes[dtype], some, n);
        widen_all(some, to + first, n);
    }
}

void dtype_from_f32(enum dtype dtype, const float *from, void *to, size_t count)
{
    switch (dtype) {
    case DTYPE_f32: memcpy(to, from, count * sizeof(float)); break;
    case DTYPE_f16: f32_to_f16_all(from, to, count); break;
    EACH(bf16, TO(uint16_t) = f32_to_bf16(from[i]));
    EACH(f8e4m3, TO(uint8_t) = f32_to_f8e4m3(from[i]));
    EACH(f8e5m2, TO(uint8_t) = f32_to_f8e5m2(from[i]));
    EACH(i32, put(DTYPE_i32, from[i], to, i));
    EACH(i16, TO(int16_t) = (int16_t)narrow_whole(from[i], INT16_MIN, INT16_MAX));
    EACH(i8, TO(int8_t) = (int8_t)narrow_whole(from[i], INT8_MIN, INT8_MAX));
    EACH(u8, TO(uint8_t) = (uint8_t)narrow_whole(from[i], 0, UINT8_MAX));
    case DTYPES: break;
    }
}

void dtype_to_i32(enum dtype dtype, const void *from, int32_t *to, size_t count)
{
    switch (dtype) {
    case DTYPE_i32: memcpy(to, from, count * sizeof(int32_t)); break;
    EACH(i16, to[i] = FROM(int16_t));
    EACH(i8, to[i] = FROM(int8_t));
    EACH(u8, to[i] = FROM(uint8_t));
    default: break;
    }
}

void dtype_from_i32(enum dtype dtype, const int32_t *from, void *to, size_t count)
{
    switch (dtype) {
    case DTYPE_i32: memcpy(to, from, count * sizeof(int32_t)); break;
    EACH(i16, TO(int16_t) = (int16_t)limited_whole(from[i], INT16_MIN, INT16_MAX));
    EACH(i8, TO(int8_t) = (int8_t)limited_whole(from[i], INT8_MIN, INT8_MAX));
    EACH(u8, TO(uint8_t) = (uint8_t)limited_whole(from[i], 0, UINT8_MAX));
    EACH(f32, TO(float) = (float)from[i]);
    EACH(f16, put(DTYPE_f16, from[i], to, i));
    EACH(bf16, put(DTYPE_bf16, from[i], to, i));
    EACH(f8e4m3, put(DTYPE_f8e4m3, from[i], to, i));
    EACH(f8e5m2, put(DTYPE_f8e5m2, from[i], to, i));
    case DTYPES: break;
    }
}

void dtype_wrap_i32(enum dtype dtype, const int32_t *from, void *to, size_t count)
{
    switch (dtype) {
    case DTYPE_i32: memcpy(to, from, count * sizeof(int32_t)); break;
    EACH(i16, TO(uint16_t) = (uint16_t)from[i]);
    EACH(i8, TO(uint8_t) = (uint8_t)from[i]);
    EACH(u8, TO(uint8_t) = (uint8_t)from[i]);
    default: break;
    }
}

/* At most AT_ONCE. */
static void from_f64(enum dtype dtype, const double *from, void *to, size_t count)
{
    static const double least[DTYPES] = {[DTYPE_i32] = INT32_MIN, [DTYPE_i16] = INT16_MIN, [DTYPE_i8] = INT8_MIN};
    static const double most[DTYPES] = {[DTYPE_i32] = INT32_MAX, [DTYPE_i16] = INT16_MAX, [DTYPE_i8] = INT8_MAX,
                                        [DTYPE_u8] = UINT8_MAX};
    union {
        float odd[AT_ONCE];
        int32_t whole[AT_ONCE];
    } some;
    if (dtype_is_float(dtype)) {
        f32_odd_all(from, some.odd, count);
        dtype_from_f32(dtype, some.odd, to, count);
    } else {
        limited_all(from, least[dtype], most[dtype], some.whole, count);
        dtype_wrap_i32(dtype, some.whole, to, count);
    }
}

void dtype_from_f64(enum dtype dtype, const double *from, void *to, size_t count)
{
    enum { FEW = 8 };                                   /* which take longer in bulk */
    if (dtype == DTYPE_f32 || count < FEW)
        for (size_t i = 0; i < count; i++)
            put(dtype, from[i], to, i);
    else
        for (size_t i = 0; i < count; i += AT_ONCE)
            from_f64(dtype, from + i, (uint8_t *)to + i * dtype_bytes[dtype], count - i < AT_ONCE ? count - i : AT_ONCE);
}

double dtype_wrapped(enum dtype dtype, int64_t whole)
{
    uint64_t bits = (uint64_t)whole;
    switch (dtype) {
    case DTYPE_i16: return (int16_t)(uint16_t)bits;
    case DTYPE_i8: return (int8_t)(uint8_t)bits;
    case DTYPE_u8: return (uint8_t)bits;
    default: return (int32_t)(uint32_t)bits;
    }
}

double dtype_in_range(enum dtype dtype, double value)
{
    uint32_t element;
    dtype_from_f64(dtype, &value, &element, 1);
    double stored = dtype_value(dtype, &element);
    bool saturates = dtype == DTYPE_f8e4m3 && fabs(value) > 448;
    return dtype_is_float(dtype) && isfinite(stored) && !saturates ? value : stored;
}

bool dtype_close(enum dtype dtype, double got, double expected, double allowed)
{
    if (got == dtype_in_range(dtype, expected) || (isnan(got) && isnan(expected)))
        return true;
    return isfinite(expected) && got >= dtype_in_range(dtype, expected - allowed) &&
           got <= dtype_in_range(dtype, expected + allowed);
}

double dtype_tolerance(enum dtype dtype)
{
    static const double by_dtype[DTYPES] = {[DTYPE_f32] = 1e-5, [DTYPE_f16] = 1e-3, [DTYPE_bf16] = 1e-2,
                                            [DTYPE_f8e4m3] = 0.125, [DTYPE_f8e5m2] = 0.25};
    return by_dtype[dtype];
}
