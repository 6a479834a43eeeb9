/* evaluator.c: the slopes of kb/ops.def against finite differences of the ops in f64. */
#include <float.h>
#include <math.h>

#include "datapass/math.h"
#include "reference/evaluator.h"
#include "reference/exponential.h"
#include "names.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 1, .slices = 1, .srams = 1, .ops = KNOWN_OPS};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

enum { DRAWS = 4000 };

/* How steep an op is between two close values of one operand, and the larger of its slopes there. */
static void slopes(const struct evaluator *op, double x, double y, bool along_y, double *steep, double *slope)
{
    double h = 1e-5 * (along_y ? y : x), x2 = along_y ? x : x + h, y2 = along_y ? y + h : y, z = 0.5;
    double f = op->value(x, y, z), f2 = op->value(x2, y2, z), noise = 8 * DBL_EPSILON * fmax(1, fabs(f));
    double (*of)(double, double, double) = along_y ? op->slope_y : op->slope_x;
    *slope = fmax(of(x, y, f), of(x2, y2, f2));
    *steep = fmax(fabs(f2 - f) - noise, 0) / fabs(h);
}

/* No draw is steeper than the slope, and some draw is nearly as steep: a slope that is too large allows wrong results. */
static bool slope_bounds(const struct evaluator *op, bool positive, bool along_y)
{
    double nearest = 0, largest = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        double x = (double)(1 + below(4000)) / 1000, y = (double)(1 + below(4000)) / 1000, steep, slope;
        if (!positive) {
            x = below(2) ? x : -x;
            y = below(2) ? y : -y;
        }
        slopes(op, x, y, along_y, &steep, &slope);
        if (steep > slope * 1.001 + 1e-9) {
            printf("# at x = %g, y = %g: %g, bounded by %g\n", x, y, steep, slope);
            return false;
        }
        largest = fmax(largest, slope);
        nearest = slope > 0 ? fmax(nearest, steep / slope) : nearest;
    }
    if (largest > 0 && nearest < 0.98)
        printf("# the bound is never below %g times what is reached\n", 1 / nearest);
    return largest == 0 || nearest >= 0.98;
}

/* Of numbers from a list and of draws: at most 4 units of the last place off. */
static bool exponentials(void)
{
    static const double some[] = {0, -0.0, 1, -1, 0x1p-60, -0x1p-60, 709, -707.99, 0.34657359, -0.34657359};
    bool good = exponential(-INFINITY) == 0 && exponential(-800) == 0 && isnan(exponential(NAN));
    for (unsigned i = 0; i < 100000; i++) {
        double x = i < 10 ? some[i] : (double)below(1 << 20) / (1 << 20) * (i % 2 ? -708 : 4);
        if (fabs(exponential(x) - exp(x)) > 4 * DBL_EPSILON * exp(x)) {
            printf("# of %.17g: %.17g, not %.17g\n", x, exponential(x), exp(x));
            good = false;
        }
    }
    return good;
}

/* The same of the tails of the normal distribution: at most 2.5e-13 of them. */
static bool tails(void)
{
    bool good = normal_tails(INFINITY) == 0 && isnan(normal_tails(NAN));
    for (unsigned i = 0; i < 100000; i++) {
        double x = (double)below(1 << 20) / (1 << 20) * (i % 2 ? 37 : -2), exact = erfc(fabs(x) * M_SQRT1_2);
        if (fabs(normal_tails(x) - exact) > 2.5e-13 * exact) {
            printf("# of %.17g: %.17g, not %.17g\n", x, normal_tails(x), exact);
            good = false;
        }
    }
    return good;
}

/* gelu of what is far from 0, or no number, is what arithmetic with erfc of libm makes of it. */
static bool far_gelus(void)
{
    static const double some[] = {INFINITY, -INFINITY, NAN, 0, -0.0, 5e-324, -5e-324, 41, -41, 3e38, -3e38, DBL_MAX, -30};
    const struct evaluator *gelu = evaluator_of(OP_gelu, RELATION_eq);
    bool good = true;
    for (unsigned i = 0; i < sizeof some / sizeof *some; i++) {
        double x = some[i], made = gelu->value(x, 0, 0), exact = x / 2 * erfc(-x * M_SQRT1_2);
        bool same = made == exact || (isnan(made) && isnan(exact)) || fabs(made - exact) <= 1e-12 * fabs(exact) + DBL_MIN;
        if (!same)
            printf("# of %g: %g, not %g\n", x, made, exact);
        good = good && same;
    }
    return good;
}

int main(void)
{
    expect(far_gelus(), "gelu of infinities, of no number and of far ones is that of libm");
    expect(tails(), "the normal tails of references are those of libm");
    expect(exponentials(), "the exponential of references is that of libm, to a few units of the last place");
    for (uint16_t op = 0; op < KNOWN_OPS; op++) {
        struct op_traits traits = op_traits(op);
        const struct evaluator *evaluator = evaluator_of(op, RELATION_eq);
        bool positive = isnan(evaluator->value(-1, 1, 1));
        if (op == OP_cmp || traits.domain == DOMAIN_QUANT)   /* steps */
            continue;
        expect(slope_bounds(evaluator, positive, false), "the slope of %s in x bounds it and is reached", kb_op_names[op]);
        expect(slope_bounds(evaluator, positive, true), "the slope of %s in y bounds it and is reached", kb_op_names[op]);
    }
    return tests_end();
}
