/* math.c: what math ops compute: elementwise, f32, f16 and bf16 in f32, integers in i32, rounded or wrapped when they
 * are stored.
 *
 * An op is a row of the table below: a loop over floats and one over whole numbers. */
#include <math.h>
#include <string.h>

#include "dtype.h"
#include "exec.h"
#include "plan.h"

enum { CHUNK = 1024 };                                  /* elements at a time; conversions are done in bulk */

/* ---- the ops */

/* Sums and products wrap: an i32 of unsigned arithmetic; a narrower result is its low bits. */
#define ADD_WHOLE(x, y) (int32_t)((uint32_t)(x) + (uint32_t)(y))
#define MUL_WHOLE(x, y) (int32_t)((uint32_t)(x) * (uint32_t)(y))
#define MIN_WHOLE(x, y) ((x) < (y) ? (x) : (y))
#define MAX_WHOLE(x, y) ((x) > (y) ? (x) : (y))

/* NaN wins, whichever it is; of the two zeros -0 is the smaller. */
static float min_float(float x, float y)
{
    if (isnan(x) || isnan(y))
        return x + y;
    return x < y || (x == y && signbit(x)) ? x : y;
}

static float max_float(float x, float y)
{
    if (isnan(x) || isnan(y))
        return x + y;
    return x > y || (x == y && !signbit(x)) ? x : y;
}

/* BINARY(name, result of floats x and y, of whole numbers x and y) */
#define BINARIES                                                                                                       \
    BINARY(add, x + y, ADD_WHOLE(x, y))                                                                                \
    BINARY(mul, x * y, MUL_WHOLE(x, y))                                                                                \
    BINARY(min, min_float(x, y), MIN_WHOLE(x, y))                                                                      \
    BINARY(max, max_float(x, y), MAX_WHOLE(x, y))

#define BINARY(name, of_floats, of_whole)                                                                              \
    static void name##_floats(float *to, const float *with, size_t count)                                              \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            float x = to[i], y = with[i];                                                                              \
            to[i] = of_floats;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_whole(int32_t *to, const int32_t *with, size_t count)                                           \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            int32_t x = to[i], y = with[i];                                                                            \
            to[i] = of_whole;                                                                                          \
        }                                                                                                              \
    }
BINARIES
#undef BINARY

/* `to` holds x, and the result in its place. */
static const struct row {
    uint16_t op;
    uint8_t operands;
    void (*floats)(float *to, const float *with, size_t count);
    void (*whole)(int32_t *to, const int32_t *with, size_t count);
} rows[] = {
#define BINARY(name, of_floats, of_whole) {OP_##name, 2, name##_floats, name##_whole},
    BINARIES
#undef BINARY
};

static const struct row *row_of(uint16_t op, uint32_t operands)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].op == op && rows[i].operands == operands)
            return &rows[i];
    return NULL;
}

bool exec_has_math(uint16_t op, uint32_t operands)
{
    return row_of(op, operands);
}

/* ---- whole numbers of any width */

static void widen(enum dtype dtype, const void *from, int32_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        switch (dtype) {
        case DTYPE_i16: to[i] = ((const int16_t *)from)[i]; break;
        case DTYPE_i8: to[i] = ((const int8_t *)from)[i]; break;
        case DTYPE_u8: to[i] = ((const uint8_t *)from)[i]; break;
        default: to[i] = ((const int32_t *)from)[i];
        }
}

static void narrow(enum dtype dtype, const int32_t *from, void *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        switch (dtype) {
        case DTYPE_i16: ((uint16_t *)to)[i] = (uint16_t)from[i]; break;
        case DTYPE_i8:
        case DTYPE_u8: ((uint8_t *)to)[i] = (uint8_t)from[i]; break;
        default: ((int32_t *)to)[i] = from[i];
        }
}

/* ---- a row of a matrix, and all of them */

/* At most CHUNK elements. All operands are read before the result is written: it may lie where one of them does. */
static void compute(const struct math *math, const struct row *op, uint64_t row, uint64_t column, size_t count)
{
    const struct view *x = &math->operand[0], *y = &math->operand[1], *to = &math->to;
    if (dtype_is_float(to->dtype)) {
        float a[CHUNK], b[CHUNK];
        dtype_to_f32(x->dtype, view_at(IMAGE_BASE, x, row, column), a, count);
        dtype_to_f32(y->dtype, view_at(IMAGE_BASE, y, row, column), b, count);
        op->floats(a, b, count);
        dtype_from_f32(to->dtype, a, view_at(IMAGE_BASE, to, row, column), count);
    } else {
        int32_t a[CHUNK], b[CHUNK];
        widen(x->dtype, view_at(IMAGE_BASE, x, row, column), a, count);
        widen(y->dtype, view_at(IMAGE_BASE, y, row, column), b, count);
        op->whole(a, b, count);
        narrow(to->dtype, a, view_at(IMAGE_BASE, to, row, column), count);
    }
}

void exec_math(const struct math *math)
{
    const struct row *op = row_of(math->op, math->operands);
    view_reach(IMAGE_BASE, &math->to);
    for (uint32_t i = 0; i < math->operands; i++)
        view_reach(IMAGE_BASE, &math->operand[i]);
    for (uint64_t row = 0; row < math->to.shape[0]; row++)
        for (uint64_t column = 0; column < math->to.shape[1]; column += CHUNK) {
            uint64_t rest = math->to.shape[1] - column;
            compute(math, op, row, column, rest < CHUNK ? rest : CHUNK);
        }
}
