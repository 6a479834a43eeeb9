/* dtype.h: element types, and conversions between them.
 *
 * To a float type, values are rounded to nearest even, denormals are kept and NaN stays NaN; f8e4m3,
 * which has no infinities, saturates. To an integer type, they are
 * rounded to nearest even and saturate, and NaN becomes 0. */
#ifndef KB_DTYPE_H
#define KB_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tables.h"

extern const uint8_t dtype_bytes[DTYPES];                /* of an element */
extern const char *const dtype_words[DTYPES];           /* "f16" ... */

bool dtype_is_float(enum dtype dtype);

/* Elements of any dtype to and from f32 (i32 is rounded). */
void dtype_to_f32(enum dtype dtype, const void *from, float *to, size_t count);
void dtype_from_f32(enum dtype dtype, const float *from, void *to, size_t count);
/* Integers of any dtype to i32, exactly. */
void dtype_to_i32(enum dtype dtype, const void *from, int32_t *to, size_t count);
/* From i32, rounded once; integers saturate. */
void dtype_from_i32(enum dtype dtype, const int32_t *from, void *to, size_t count);
/* From i32 to an integer dtype, which keeps the low bits. */
void dtype_wrap_i32(enum dtype dtype, const int32_t *from, void *to, size_t count);
/* From f64, rounded once. */
void dtype_from_f64(enum dtype dtype, const double *from, void *to, size_t count);

/* Elements of any dtype to f64, exactly. */
void dtype_to_f64(enum dtype dtype, const void *from, double *to, size_t count);

/* One element's value, exactly. */
double dtype_value(enum dtype dtype, const void *element);

/* A whole number as an integer dtype that wraps has it: its low bits. */
double dtype_wrapped(enum dtype dtype, int64_t whole);

/* A value as the dtype's range allows: beyond it, the nearest end of the range of an integer or of f8e4m3, or an infinity. */
double dtype_in_range(enum dtype dtype, double value);

/* Whether an element's value is what the dtype has for an expected value, or for one that differs from it by at most
 * `allowed`. A number near the end of f16's range may so be infinity; an expected infinity or NaN must be that. */
bool dtype_close(enum dtype dtype, double got, double expected, double allowed);

/* The tolerance of --tolerance plain, relative to the expected value and to 1; 0 for integers. */
double dtype_tolerance(enum dtype dtype);

uint16_t f32_to_f16(float value);
float f16_to_f32(uint16_t half);
uint16_t f32_to_bf16(float value);
float bf16_to_f32(uint16_t half);
uint8_t f32_to_f8e4m3(float value);
float f8e4m3_to_f32(uint8_t byte);
uint8_t f32_to_f8e5m2(float value);
float f8e5m2_to_f32(uint8_t byte);

#endif
