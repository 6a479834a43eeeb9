/* math.c: math ops of the data pass against their definition, for all dtypes and shapes, element by element. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "datapass/math.h"
#include "machine/tiling.h"
#include "reference/recheck.h"
#include "definition.h"
#include "names.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1, .ops = KNOWN_OPS};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

/* ---- views */

static uint8_t *place(const struct view *v, const uint64_t index[VIEW_RANK])
{
    uint64_t at = 0;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        at += index[axis] * v->stride[axis];
    store_reach(v->memory, UINT64_C(8) << 20);
    return (uint8_t *)store_at(v->memory, v->offset) + at * dtype_bytes[v->dtype];
}

static double at(const struct view *v, const uint64_t index[VIEW_RANK])
{
    return dtype_value(v->dtype, place(v, index));
}

static void index_of(const uint64_t shape[VIEW_RANK], uint64_t i, uint64_t index[VIEW_RANK])
{
    for (unsigned axis = VIEW_RANK; axis-- > 0; i /= shape[axis])
        index[axis] = i % shape[axis];
}

/* A view of a shape in a memory of its own, with its axes in any order there and gaps between its elements; spread:
 * axes of its own are repeated, which bits say. */
static struct view view(uint32_t memory, enum dtype dtype, const uint64_t shape[VIEW_RANK], unsigned spread)
{
    struct view v = {.memory = memory, .dtype = dtype, .rank = VIEW_RANK, .offset = 64 * below(5)};
    uint64_t stride = 1 + below(2);
    unsigned first = (unsigned)below(2) ? 0 : (unsigned)below(VIEW_RANK);
    memcpy(v.shape, shape, sizeof v.shape);
    for (unsigned i = 0; i < VIEW_RANK; i++) {
        unsigned axis = (VIEW_RANK - 1 - i + first) % VIEW_RANK;
        v.stride[axis] = spread >> axis & 1 || shape[axis] == 1 ? 0 : stride;
        if (v.stride[axis])
            stride = stride * shape[axis] + below(3);
    }
    return v;
}

/* Values of every size, and those at which something may go wrong. */
static double value(enum dtype dtype)
{
    static const double special[] = {0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, INFINITY, -INFINITY, NAN, 1e-40, 1e30, 127.5,
                                     -128.5, 255.5, 32767.5, 2147483647, -2147483648.0, 65504, 6e-8};
    double uniform = (double)below(1000001) / 1000000 * 2 - 1;
    switch (below(4)) {
    case 0: return special[below(sizeof special / sizeof special[0])];
    case 1: return dtype_is_float(dtype) ? uniform : uniform * 200;
    case 2: return uniform * 100;
    default: return dtype_is_float(dtype) ? ldexp(uniform, (int)below(30) - 15) : uniform * 2147483647;
    }
}

static void fill(const struct view *v, bool tame)
{
    uint64_t index[VIEW_RANK];
    for (uint64_t i = 0; i < view_elements(v); i++) {
        index_of(v->shape, i, index);
        double x = value(v->dtype);
        while (tame && !(fabs(x) < 1000))
            x = value(v->dtype);
        dtype_from_f64(v->dtype, &x, place(v, index), 1);
    }
}

/* ---- the definition, of exact operands, in long double or whole numbers */

static bool stands(unsigned relation, long double x, long double y)
{
    const bool answers[] = {x == y, x != y, x < y, x <= y, x > y, x >= y};
    return answers[relation];
}

static int64_t whole(uint16_t op, int64_t x, int64_t y)
{
    switch (op) {
    case OP_add: case OP_bias: case OP_bias_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul: case OP_scale: return x * y;
    case OP_div: return y ? x / y : 0;
    case OP_max: return x > y ? x : y;
    case OP_min: return x < y ? x : y;
    default: return (int64_t)op_defined(op, x, y);
    }
}

static double kept(enum dtype dtype, int64_t x)
{
    const int64_t bits = 8 * dtype_bytes[dtype], low = x & ((INT64_C(1) << bits) - 1);
    return (double)(dtype != DTYPE_u8 && low >> (bits - 1) ? low - (INT64_C(1) << bits) : low);
}

static bool in_whole(const struct math *m)
{
    bool converts = m->op == OP_cast || m->op == OP_quant || m->op == OP_dequant;
    return !converts && !dtype_is_float(m->operand[m->op == OP_where].dtype);
}

/* The value before it is stored; a whole one as it is stored. */
static long double defined(const struct math *m, const double x[MATH_OPERANDS])
{
    if (m->op == OP_cmp)
        return stands(m->relation, x[0], x[1]);
    if (m->op == OP_where)
        return in_whole(m) ? kept(m->to.dtype, (int64_t)x[x[0] != 0 ? 1 : 2]) : (long double)x[x[0] != 0 ? 1 : 2];
    if (in_whole(m))
        return kept(m->to.dtype, whole(m->op, (int64_t)x[0], (int64_t)x[1]));
    return op_defined(m->op, x[0], m->operands == 1 ? 0 : x[1]);
}

/* Half of the smallest denormal. */
static const double least_of[DTYPES] = {[DTYPE_f8e4m3] = 0x1p-10, [DTYPE_f8e5m2] = 0x1p-17};

/* Exact, but for one rounding of a result to f32 and another one to its dtype, and what libm is off by. */
static bool is_close(const struct math *m, double got, long double want)
{
    static const double by_dtype[DTYPES] = {[DTYPE_f32] = 4e-6, [DTYPE_f16] = 6e-4, [DTYPE_bf16] = 4.1e-3,
                                            [DTYPE_f8e4m3] = 0.0626, [DTYPE_f8e5m2] = 0.126};
    double stored = dtype_in_range(m->to.dtype, (double)want), most = fabs(stored);
    if (got == stored || (isnan(got) && isnan((double)want)) || (m->op == OP_silu && isnan(got) && isinf((double)want)))
        return true;
    if ((m->op == OP_silu || m->op == OP_gelu) && isnan((double)want))
        return got == 0 || isnan(got);
    return fabs(got - stored) <= by_dtype[m->to.dtype] * most + (dtype_is_float(m->to.dtype) ? 6e-7 : 0)
               + least_of[m->to.dtype]
        || (isinf(got) && fabs(stored) > 3.3e38);
}

/* ---- one op */

static bool say(const struct math *m, const uint64_t *i, double got, double want)
{
    printf("# %s of %s to %s, axis %d: element %lu %lu %lu %lu is %.9g, not %.9g\n", kb_op_names[m->op],
           dtype_words[m->operand[m->op == OP_where].dtype], dtype_words[m->to.dtype], (int)m->axis, i[0], i[1], i[2],
           i[3], got, want);
    return false;
}

static bool right(const struct math *m)
{
    uint64_t count = view_elements(&m->to), index[VIEW_RANK];
    long double *want = malloc(count * sizeof *want);
    for (uint64_t i = 0; i < count; i++) {
        double x[MATH_OPERANDS] = {0};
        index_of(m->to.shape, i, index);
        for (unsigned j = 0; j < m->operands; j++)
            x[j] = m->has_scalar && j + 1 == m->operands ? m->scalar : at(&m->operand[j], index);
        want[i] = defined(m, x);
    }
    struct op op = {.kind = OPKIND_math, .math = *m};
    double *expected = recheck.expect_math(m);
    math_run(m);
    bool good = !recheck.math(&op, expected).op;
    if (!good)
        printf("# %s of %s: the check of every operation objects\n", kb_op_names[m->op], dtype_words[m->to.dtype]);
    for (uint64_t i = 0; i < count && good; i++) {
        index_of(m->to.shape, i, index);
        double got = at(&m->to, index);
        if (!is_close(m, got, want[i]))
            good = say(m, index, got, (double)want[i]);
    }
    free(want);
    return good;
}

static const uint64_t shapes[][VIEW_RANK] = {{1, 1, 1, 1}, {7, 1, 1, 1}, {1, 1, 1, 1025}, {3, 5, 1, 1}, {13, 1, 1, 7},
                                             {2, 3, 5, 7}, {1, 3, 1, 341}, {5, 1, 2, 1}};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* An op of some dtypes in all shapes, its second operand spread along any axes or a number, in place or not. */
static bool elementwise(uint16_t op, enum dtype from, enum dtype to)
{
    bool good = true;
    for (unsigned times = 0; times < 6 * SHAPES && good; times++) {
        const uint64_t *shape = shapes[times % SHAPES];
        bool scaled = op == OP_quant || op == OP_dequant;
        struct math m = {.op = op, .operands = op_traits(op).operands, .axis = NO_AXIS,
                         .relation = (uint8_t)below(RELATIONS), .to = view(3, to, shape, 0)};
        for (unsigned i = 0; i < m.operands; i++) {
            enum dtype dtype = op == OP_where && i == 0 ? DTYPE_u8 : scaled && i ? DTYPE_f32 : from;
            m.operand[i] = view(i, dtype, shape, i > (op == OP_where) ? (unsigned)below(16) : 0);
            fill(&m.operand[i], false);
        }
        if (m.operands > 1 && below(4) == 0) {
            m.has_scalar = true;
            m.scalar = dtype_is_float(from) || scaled ? 0.375 : (double)below(200) - 100;
        }
        if (from == to && below(3) == 0)
            m.to = m.operand[op == OP_where];
        good = right(&m);
    }
    return good;
}

static void elementwise_ops(void)
{
    for (uint16_t op = 0; op < KNOWN_OPS; op++) {
        if (op == OP_gather)
            continue;
        bool good = op_traits(op).operands > 0 || op_traits(op).reduction;
        unsigned pairs = 0;
        for (unsigned from = 0; from < DTYPES && op_traits(op).operands; from++)
            for (unsigned to = 0; to < DTYPES; to++) {
                char why[MATH_WHY] = "";
                struct math m = {.op = op, .operands = op_traits(op).operands, .to.dtype = to};
                for (unsigned i = 0; i < m.operands; i++)
                    m.operand[i].dtype = from;
                if (op == OP_where)
                    m.operand[0].dtype = DTYPE_u8;
                if (op == OP_quant || op == OP_dequant)
                    m.operand[1].dtype = DTYPE_f32;
                bool is_defined = math_defined(&m, why);
                good &= is_defined == !why[0];
                pairs += is_defined;
                good &= !is_defined || elementwise(op, from, to);
            }
        expect(good, "elements are right of the op %s, of %u pairs of dtypes", kb_op_names[op], pairs);
    }
}

/* ---- lookups */

/* Fills positions of `count` elements: the first, the last, any. */
static void fill_positions(const struct view *v, uint64_t count)
{
    uint64_t index[VIEW_RANK];
    for (uint64_t i = 0; i < view_elements(v); i++) {
        index_of(v->shape, i, index);
        double position = (double)(i == 0 ? count - 1 : i == 1 ? 0 : below(count));
        dtype_from_f64(v->dtype, &position, place(v, index), 1);
    }
}

/* Lookups of a dtype by positions of another one in all shapes; in place of the positions where the dtypes agree. */
static bool looks_up(enum dtype of, enum dtype by)
{
    bool good = true;
    for (unsigned times = 0; times < 6 * SHAPES && good; times++) {
        const uint64_t *shape = shapes[times % SHAPES], line[VIEW_RANK] = {1 + below(by == DTYPE_i8 ? 127 : 255), 1, 1, 1};
        struct math m = {.op = OP_gather, .operands = 2, .axis = NO_AXIS, .to = view(3, of, shape, 0),
                         .operand = {view(0, of, line, 0), view(1, by, shape, 0)}};
        char why[MATH_WHY];
        fill(&m.operand[0], false);
        fill_positions(&m.operand[1], line[0]);
        if (of == by && below(3) == 0)
            m.to = m.operand[1];
        uint64_t count = view_elements(&m.to), index[VIEW_RANK];
        double *want = malloc(count * sizeof *want);
        for (uint64_t i = 0; i < count; i++) {
            index_of(shape, i, index);
            want[i] = at(&m.operand[0], (const uint64_t[VIEW_RANK]){(uint64_t)at(&m.operand[1], index)});
        }
        double *expected = recheck.expect_math(&m);
        struct op op = {.kind = OPKIND_math, .math = m};
        good = math_defined(&m, why);
        math_run(&m);
        good &= !recheck.math(&op, expected).op;
        for (uint64_t i = 0; i < count && good; i++) {
            index_of(shape, i, index);
            double got = at(&m.to, index);
            if (got != want[i] && !(isnan(got) && isnan(want[i])))
                good = say(&m, index, got, want[i]);
        }
        free(want);
    }
    return good;
}

static void lookups(void)
{
    for (unsigned of = 0; of < DTYPES; of++) {
        bool good = true;
        for (unsigned by = 0; by < DTYPES; by++) {
            struct math m = {.op = OP_gather, .operands = 2, .to.dtype = of, .operand = {{.dtype = of}, {.dtype = by}}};
            char why[MATH_WHY] = "";
            good &= math_defined(&m, why) == !dtype_is_float(by);
            good &= dtype_is_float(by) || looks_up(of, by);
        }
        expect(good, "elements are looked up: %s by positions of every integer dtype", dtype_words[of]);
    }
}

/* ---- reductions */

static bool reduces(uint16_t op, enum dtype from, enum dtype to, const uint64_t shape[VIEW_RANK], unsigned axis)
{
    uint64_t reduced[VIEW_RANK], index[VIEW_RANK];
    memcpy(reduced, shape, sizeof reduced);
    reduced[axis] = 1;
    struct math m = {.op = op, .operands = 1, .axis = (int8_t)axis, .to = view(3, to, reduced, 0),
                     .operand = {view(0, from, shape, 0)}};
    fill(&m.operand[0], op == OP_sum || op == OP_mean);
    double *expected = recheck.expect_math(&m);
    math_run(&m);
    struct op record = {.kind = OPKIND_math, .math = m};
    bool good = !recheck.math(&record, expected).op, is_whole = !dtype_is_float(from);
    for (uint64_t i = 0; i < view_elements(&m.to) && good; i++) {
        long double sum = 0, most = -INFINITY, least = INFINITY, sizes = 0;
        bool nan = false;
        index_of(reduced, i, index);
        double got = at(&m.to, index);
        for (index[axis] = 0; index[axis] < shape[axis]; index[axis]++) {
            double x = at(&m.operand[0], index);
            nan |= isnan(x);
            sum += x;
            sizes += fabs(x);
            most = x > most ? x : most;
            least = x < least ? x : least;
        }
        int32_t wrapped = (int32_t)(uint32_t)(int64_t)(is_whole ? sum : 0);
        double depth = (double)shape[axis], mean = is_whole ? wrapped / (int64_t)depth : (double)sum / depth;
        double want = op == OP_max ? (double)most : op == OP_min ? (double)least : op == OP_mean ? mean : (double)sum;
        want = is_whole ? kept(to, op == OP_sum ? wrapped : (int64_t)want) : nan ? (double)NAN : want;
        double stored = dtype_in_range(to, want);
        double allowed = dtype_tolerance(to) * (fabs(stored) + 1e-2 * (double)sizes) + 1e-7 + least_of[to];
        if (got != stored && !(isnan(got) && nan) && !(fabs(got - stored) <= allowed))
            good = say(&m, index, got, stored);
    }
    return good;
}

static void reductions(void)
{
    static const uint16_t ops[] = {OP_sum, OP_mean, OP_max, OP_min};
    static const uint64_t deep[] = {1, 9, 1, 2049}, wide[] = {700, 1, 2, 3};
    for (unsigned o = 0; o < 4; o++)
        for (unsigned from = 0; from < DTYPES; from++) {
            bool good = true;
            for (unsigned to = 0; to < DTYPES; to++)
                for (unsigned s = 0; s < SHAPES + 2u * (from == to) && dtype_is_float(from) == dtype_is_float(to); s++)
                    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
                        good = good && reduces(ops[o], from, to, s < SHAPES ? shapes[s] : s == SHAPES ? deep : wide,
                                               axis);
            expect(good, "reductions over an axis are right: %s of %s", kb_op_names[ops[o]], dtype_words[from]);
        }
}

/* The bits of a sum are those of its order, wherever its elements lie. */
static void same_bits(void)
{
    bool good = true;
    for (uint64_t depth = 1; depth < 5000 && good; depth += 1 + depth / 3) {
        struct view row = view_matrix(0, DTYPE_f32, 0, 3, depth, depth), column = row;
        struct view sums = view_matrix(1, DTYPE_f32, 0, 3, 1, 1), others = view_matrix(1, DTYPE_f32, 64, 1, 3, 3);
        column.shape[0] = depth;
        column.shape[1] = 3;
        column.stride[0] = 1;
        column.stride[1] = depth;
        fill(&row, true);
        math_run(&(struct math){.op = OP_sum, .operands = 1, .axis = 1, .to = sums, .operand = {row}});
        struct view spread = column, with_gaps = view_matrix(2, DTYPE_f32, 0, depth, 3, 5);
        math_run(&(struct math){.op = OP_copy, .operands = 1, .axis = NO_AXIS, .to = with_gaps, .operand = {spread}});
        math_run(&(struct math){.op = OP_sum, .operands = 1, .axis = 0, .to = others, .operand = {with_gaps}});
        good = !memcmp(view_at(&sums, 0, 0), view_at(&others, 0, 0), 12);
    }
    expect(good, "a sum has the same bits along rows and along columns");
}

/* A result that is wrong is found, at its index. */
static void rechecked(void)
{
    static const uint64_t shape[] = {2, 3, 5, 7};
    struct view x = view(0, DTYPE_i16, shape, 0);
    struct op op = {.kind = OPKIND_math, .math = {.op = OP_mul, .operands = 2, .axis = NO_AXIS, .to = x,
                                                  .operand = {x, x}}};
    fill(&x, true);
    double *expected = recheck.expect_math(&op.math);
    math_run(&op.math);
    *(int16_t *)place(&x, (const uint64_t[]){1, 0, 3, 2}) ^= 4;
    struct difference found = recheck.math(&op, expected);
    expect(found.op == &op && found.index[0] == 1 && found.index[1] == 0 && found.index[2] == 3 && found.index[3] == 2,
           "the first wrong element of an op is found");
}

int main(void)
{
    elementwise_ops();
    lookups();
    reductions();
    same_bits();
    rechecked();
    return tests_end();
}
