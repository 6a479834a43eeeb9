/* functions.c: e^x and erfc(x) of the data pass against libm's of f64, and the two versions of their loops against one another. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "datapass/functions.h"
#include "tap.h"

enum { STEP = 1021, AT_ONCE = 1000 };                   /* between the bits of the floats that are tried */

VECTOR_BODY void exps_body(const float *restrict x, float *restrict to, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = f32_exp(x[i]);
}
VECTOR_FUNCTION(exps, (const float *x, float *to, unsigned count), (x, to, count))

VECTOR_BODY void erfcs_body(const float *restrict x, float *restrict to, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = f32_erfc(x[i]);
}
VECTOR_FUNCTION(erfcs, (const float *x, float *to, unsigned count), (x, to, count))

typedef void loop(const float *x, float *to, unsigned count);

/* Half of a unit in the last place, and what the function may be off by before it is rounded; infinity if it may be that. */
static bool is_close(float got, double exact)
{
    if (isnan(got) || isnan(exact))
        return isnan(got) && isnan(exact);
    int exponent;
    frexp(exact, &exponent);
    double unit = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
    if (isinf(got))
        return got > 0 && exact > (double)FLT_MAX;
    return fabs((double)got - exact) <= 0.6 * unit;
}

static bool all_close(loop *f, double (*exact)(double x))
{
    uint64_t bits = 0;
    while (bits <= UINT32_MAX) {
        float x[AT_ONCE], got[AT_ONCE];
        for (unsigned i = 0; i < AT_ONCE; i++, bits += STEP)
            memcpy(&x[i], &(uint32_t){(uint32_t)bits}, sizeof *x);
        f(x, got, AT_ONCE);
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (!is_close(got[i], exact((double)x[i]))) {
                printf("# of %.9g it is %.9g, not %.12g\n", (double)x[i], (double)got[i], exact((double)x[i]));
                return false;
            }
    }
    return true;
}

static bool same(loop *one, loop *other)
{
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += AT_ONCE * (uint64_t)STEP) {
        float x[AT_ONCE], a[AT_ONCE], b[AT_ONCE];
        for (unsigned i = 0; i < AT_ONCE; i++)
            memcpy(&x[i], &(uint32_t){(uint32_t)(bits + i * (uint64_t)STEP)}, sizeof *x);
        one(x, a, AT_ONCE);
        other(x, b, AT_ONCE);
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (memcmp(&a[i], &b[i], sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
                return false;
    }
    return true;
}

static bool of_each(loop *f, const float *x, const float *expected, unsigned count)
{
    float got[8];
    f(x, got, count);
    for (unsigned i = 0; i < count; i++)
        if (got[i] != expected[i] && !(isnan(got[i]) && isnan(expected[i])))
            return false;
    return true;
}

int main(void)
{
    expect(all_close(exps, exp), "e^x of f32, denormals and numbers beyond the range among them, is off by 0.6 units at most");
    expect(all_close(erfcs, erfc), "erfc(x) is off by 0.6 units at most");
    expect(of_each(exps, (float[]){0, -0.0F, INFINITY, -INFINITY, NAN, 89, -104}, (float[]){1, 1, INFINITY, 0, NAN, INFINITY, 0}, 7),
           "e^x of zeros, infinities and no number");
    expect(of_each(erfcs, (float[]){0, -0.0F, INFINITY, -INFINITY, NAN, 11, -11}, (float[]){1, 1, 0, 2, NAN, 0, 2}, 7),
           "erfc(x) of zeros, infinities and no number");
#if defined(__x86_64__)
    bool wide = vector_has_avx2();
    expect(!wide || (same(exps_avx2, exps_sse2) && same(erfcs_avx2, erfcs_sse2)), "both versions of a loop have the same bits");
#endif
    return tests_end();
}
