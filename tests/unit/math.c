/* math.c: math ops of the data pass against their definition, element by element and bit by bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "emitted.h"
#include "exec.h"
#include "plan.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

uint64_t sim_now_ps(void)
{
    return 0;
}

static int tests;

static void expect(bool good, const char *what, const char *more)
{
    printf("%s %d - %s%s\n", good ? "ok" : "not ok", ++tests, what, more);
}

static void *bytes_of(const struct view *m, uint64_t i)
{
    store_reach(IMAGE_BASE, m->memory, UINT64_C(8) << 20);
    uint64_t at = i / m->shape[1] * m->stride[0] + i % m->shape[1];
    return (uint8_t *)store_at(IMAGE_BASE, m->memory, m->offset) + at * dtype_bytes[m->dtype];
}

/* Any bits at all: NaN, infinities and denormals among them, and whole numbers near the ends of their range. */
static void random_bits(const struct view *m)
{
    static const uint32_t special[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001, 1, 0x7f7fffff, 0x3f800000};
    for (uint64_t i = 0; i < m->shape[0] * m->shape[1]; i++) {
        uint32_t bits = (uint32_t)rand() * 2654435761u;
        if (m->dtype == DTYPE_f32 && i % 3 == 0)
            bits = special[(uint32_t)rand() % 8];
        if (m->dtype == DTYPE_bf16 && i % 3 == 0)
            bits = special[(uint32_t)rand() % 8] >> 16;
        memcpy(bytes_of(m, i), &bits, dtype_bytes[m->dtype]);
    }
}

/* In i64, or in f64 rounded once; both exact for what is checked here, but for the rounding itself. */
static uint32_t defined(enum dtype dtype, uint16_t op, double x, double y)
{
    uint32_t bits = 0;
    if (!dtype_is_float(dtype)) {
        int64_t a = (int64_t)x, b = (int64_t)y;
        bits = (uint32_t)(op == OP_add ? a + b : op == OP_mul ? a * b : op == OP_min ? (a < b ? a : b) : a > b ? a : b);
        return bits & (uint32_t)((UINT64_C(1) << 8 * dtype_bytes[dtype]) - 1);
    }
    bool swap = x == y ? signbit(x) && !signbit(y) : x < y;     /* y is the larger */
    double value = op == OP_add ? x + y : op == OP_mul ? x * y : isnan(x) || isnan(y) ? (double)NAN
                   : (op == OP_max) == swap ? y : x;
    dtype_from_f64(dtype, &value, &bits, 1);
    return bits;
}

/* The product of two bf16 may be denormal in f32, and is then rounded twice. */
static bool is_close(enum dtype dtype, uint32_t got, uint32_t want)
{
    double a = dtype_value(dtype, &got), b = dtype_value(dtype, &want);
    if (got == want || (isnan(a) && isnan(b)))
        return true;
    return dtype == DTYPE_bf16 && fabs(a) < 0x1p-125 && abs((int)got - (int)want) <= 1;
}

static bool right(enum dtype dtype, uint16_t op, uint64_t rows, uint64_t columns, uint64_t gap, unsigned place)
{
    uint64_t ld = columns + gap, count = rows * columns, wrong = 0;
    struct view x = view_matrix(0, dtype, 64, rows, columns, ld), y = view_matrix(1, dtype, 4, rows, columns, ld);
    struct view to = place == 0 ? view_matrix(2, dtype, 8, rows, columns, ld) : place == 1 ? x : y;
    random_bits(&x);
    random_bits(&y);
    uint32_t *want = malloc(count * sizeof *want), got = 0;
    for (uint64_t i = 0; i < count; i++)
        want[i] = defined(dtype, op, dtype_value(dtype, bytes_of(&x, i)), dtype_value(dtype, bytes_of(&y, i)));
    uint8_t *behind = (uint8_t *)bytes_of(&to, count - 1) + dtype_bytes[dtype], kept = *behind;
    exec_math(&(struct math){.op = op, .operands = 2, .to = to, .operand = {x, y}});
    for (uint64_t i = 0; i < count && !wrong; i++) {
        memcpy(&got, bytes_of(&to, i), dtype_bytes[dtype]);
        wrong = is_close(dtype, got, want[i]) ? 0 : i + 1;
    }
    if (wrong)
        printf("# %s, op %d, %lu x %lu: element %lu is 0x%x, not 0x%x\n", dtype_words[dtype], (int)op, rows, columns,
               wrong - 1, got, want[wrong - 1]);
    free(want);
    return !wrong && *behind == kept;
}

/* An expectation of debug mode is the same value, and a wrong result is found. */
static void rechecked(void)
{
    struct view x = view_matrix(0, DTYPE_i16, 64, 1, 5, 5);
    struct op op = {.kind = OPKIND_math, .math = {.op = OP_mul, .operands = 2, .to = x, .operand = {x, x}}};
    random_bits(&x);
    double *expected = recheck_math_expect(&op.math);
    exec_math(&op.math);
    expect(!recheck_math(&op, expected).op, "a square in place is as expected", "");
    expected = recheck_math_expect(&op.math);
    exec_math(&op.math);
    *(int16_t *)bytes_of(&x, 3) ^= 4;
    struct difference found = recheck_math(&op, expected);
    expect(found.op == &op && found.column == 3, "and a bit that is wrong is found", "");
}

int main(void)
{
    static const uint16_t ops[] = {OP_add, OP_mul, OP_min, OP_max};
    static const uint64_t sizes[][3] = {{1, 1, 0}, {1, 7, 0}, {1, 1023, 0}, {1, 1024, 0}, {1, 1025, 0}, {1, 5000, 0},
                                        {3, 5, 2}, {2, 1030, 1}};
    for (unsigned dtype = 0; dtype < DTYPES; dtype++) {
        bool good = true;
        for (unsigned i = 0; i < 4; i++)
            for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (unsigned place = 0; place < 3; place++)
                    good &= right(dtype, ops[i], sizes[s][0], sizes[s][1], sizes[s][2], place);
        expect(good, "add, mul, min, max of ", dtype_words[dtype]);
    }
    expect(!exec_has_math(OP_exp, 2) && !exec_has_math(OP_add, 1) && exec_has_math(OP_max, 2), "which ops there are",
           "");
    rechecked();
    printf("1..%d\n", tests);
    return 0;
}
