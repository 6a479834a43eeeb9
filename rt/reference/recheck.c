/* recheck.c: gemms and math ops in f64 and in integers, compared with what the data pass made of them.
 *
 * f64 holds the products and sums of f32 closely enough, and those of i8 exactly, until they wrap. Operands are exact, so
 * the bound of an element has the op's own rounding errors alone (error.h). */
#include "recheck.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/fail.h"
#include "datapass/blas.h"
#include "datapass/gemm.h"
#include "datapass/math.h"
#include "error.h"
#include "evaluator.h"
#include "kb/arith.h"
#include "machine/command.h"

/* ---- gemms */

enum { ROWS = 256, COLUMNS = 512, DEPTH = 2048 };       /* at a time */

/* Rows and columns of C that are computed again. */
struct gemm_check {
    const struct gemm *gemm;
    uint64_t row, rows, column, columns;
    double *a, *b, *sum;
    double *error;                                      /* how far each sum may be off */
    double *row_powers, *column_powers;                 /* sums of squares of the powers of the elements of A, of B */
    double max_a, max_b;
    bool whole;                                         /* the sums are those of i32, which wrap */
};

static double matrix_element(const struct view *m, uint64_t i, uint64_t j)
{
    return dtype_value(m->dtype, view_at(m, i, j));
}

/* Copies rows x columns elements from (i, j) on; raises `max` to their largest magnitude that is finite. */
static void copy_out(const struct view *m, uint64_t i, uint64_t rows, uint64_t j, uint64_t columns, double *to,
                     double *max)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++) {
            double x = to[r * columns + c] = matrix_element(m, i + r, j + c);
            *max = fabs(x) > *max && isfinite(x) ? fabs(x) : *max;
        }
}

/* How far an op of exact operands may be off, before its result is stored. */
static double own_error(uint16_t op, double x, double y, double value)
{
    return error_allowance(error_root(evaluator_power(op, x, y, value)));
}

/* How far a stored value may be off whose computed value may be off by `error`. */
static double stored_error(enum dtype dtype, double value, double error)
{
    return dtype_is_float(dtype) ? rounding_bound(dtype, fabs(value) + error) + error : error;
}

/* An epilogue of x at an element of C. */
static double applied(const struct gemm_check *check, const struct gemm_epilogue *e, double x, uint64_t row,
                      uint64_t column)
{
    const struct evaluator *evaluator = evaluator_of(e->op, RELATION_eq);
    enum op_domain domain = (enum op_domain)op_traits(e->op).domain;
    double y = e->has_operand ? matrix_element(&e->operand, row, column) : e->scalar;
    if (domain == DOMAIN_QUANT || domain == DOMAIN_CAST)
        return dtype_in_range(check->gemm->c.dtype, evaluator->value(x, y, 0));
    return check->whole ? dtype_wrapped(DTYPE_i32, evaluator->whole((int64_t)x, (int64_t)y, 0))
                        : evaluator->value(x, y, 0);
}

/* How far f(x) may be off where x may be off by `error`: as far as it is at both ends, and what f32 or a cast rounds.
 * Beyond the range of f32 it is unbounded. */
static double error_of(const struct gemm_check *check, const struct gemm_epilogue *e, double x, double error,
                       double value, uint64_t row, uint64_t column)
{
    if (check->whole)
        return 0;
    double up = fabs(applied(check, e, x + error, row, column) - value);
    double down = fabs(applied(check, e, x - error, row, column) - value);
    if (isnan(up) || isnan(down) || fabs(value) > FLT_MAX)
        return INFINITY;
    if (op_traits(e->op).domain == DOMAIN_CAST)
        return fmax(up, down) + rounding_bound(check->gemm->c.dtype, value);
    double y = e->has_operand ? matrix_element(&e->operand, row, column) : e->scalar;
    return fmax(up, down) + own_error(e->op, x, y, value);
}

static void apply_epilogue(struct gemm_check *check, const struct gemm_epilogue *e)
{
    const struct gemm *g = check->gemm;
    uint64_t last_m = (g->c.shape[0] - 1) / g->tile_m, last_n = (g->c.shape[1] - 1) / g->tile_n;
    if (gemm_epilogue_makes_floats(e->op, g->c.dtype))
        check->whole = false;
    for (uint64_t i = 0; i < check->rows * check->columns; i++) {
        uint64_t row = check->row + i / check->columns, column = check->column + i % check->columns;
        if (e->scope == SCOPE_ONCE && (row / g->tile_m != last_m || column / g->tile_n != last_n))
            continue;
        double value = applied(check, e, check->sum[i], row, column);
        check->error[i] = error_of(check, e, check->sum[i], check->error[i], value, row, column);
        check->sum[i] = value;
    }
}

static void apply_scope(struct gemm_check *check, enum scope scope)
{
    for (uint32_t i = 0; i < check->gemm->epilogues; i++)
        if (check->gemm->epilogue[i].scope == scope)
            apply_epilogue(check, &check->gemm->epilogue[i]);
}

/* Adds the powers of the rows of A and the columns of B of a slice. */
static void add_powers(struct gemm_check *check, uint64_t depth)
{
    for (uint64_t i = 0; i < check->rows * depth; i++) {
        double power = error_power(check->a[i]);
        check->row_powers[i / depth] += power * power;
    }
    for (uint64_t i = 0; i < depth * check->columns; i++) {
        double power = error_power(check->b[i]);
        check->column_powers[i % check->columns] += power * power;
    }
}

/* Adds to the errors what summing `depth` products may be off by, unbounded if a partial sum may exceed f32. The powers
 * of the products are at most the roots of those of rows and columns (Cauchy-Schwarz). */
static void widen_errors(struct gemm_check *check, uint64_t depth)
{
    bool exceeds = check->max_a * check->max_b * (double)depth > FLT_MAX;
    for (uint64_t i = 0; i < check->rows * check->columns && !check->whole; i++) {
        double powers = sqrt(check->row_powers[i / check->columns] * check->column_powers[i % check->columns]);
        double power = accumulation_power(DTYPE_f32, (double)depth, check->sum[i], powers);
        check->error[i] += exceeds ? (double)INFINITY : error_allowance(error_root(power));
    }
    memset(check->row_powers, 0, check->rows * sizeof *check->row_powers);
    memset(check->column_powers, 0, check->columns * sizeof *check->column_powers);
}

static void compute(struct gemm_check *check)
{
    const struct gemm *g = check->gemm;
    uint64_t depth = g->a.shape[1], tile = gemm_has_k_tile_epilogue(g) ? g->tile_k : depth;
    uint64_t elements = check->rows * check->columns;
    check->whole = !dtype_is_float(g->a.dtype);
    check->max_a = check->max_b = 0;
    memset(check->error, 0, elements * sizeof *check->error);
    memset(check->row_powers, 0, check->rows * sizeof *check->row_powers);
    memset(check->column_powers, 0, check->columns * sizeof *check->column_powers);
    for (uint64_t k = 0, end; k < depth; k = end) {
        uint64_t tile_end = kb_min((k / tile + 1) * tile, depth);
        end = kb_min(k + DEPTH, tile_end);
        copy_out(&g->a, check->row, check->rows, k, end - k, check->a, &check->max_a);
        copy_out(&g->b, k, end - k, check->column, check->columns, check->b, &check->max_b);
        blas_dgemm(check->rows, check->columns, end - k, check->a, end - k, check->b, check->columns, k > 0,
                   check->sum, check->columns);
        add_powers(check, end - k);
        for (uint64_t i = 0; i < elements && check->whole; i++)
            check->sum[i] = dtype_wrapped(DTYPE_i32, (int64_t)check->sum[i]);
        if (end < tile_end)
            continue;
        widen_errors(check, end - (end - 1) / tile * tile);
        apply_scope(check, SCOPE_K_TILE);
    }
    apply_scope(check, SCOPE_OUTPUT_TILE);
    apply_scope(check, SCOPE_ONCE);
}

static struct difference compare(const struct gemm_check *check, const struct op *op)
{
    const struct view *c = &check->gemm->c;
    for (uint64_t i = 0; i < check->rows * check->columns; i++) {
        uint64_t row = check->row + i / check->columns, column = check->column + i % check->columns;
        double expected = check->sum[i], got = matrix_element(c, row, column);
        double allowed = stored_error(c->dtype, expected, check->error[i]);
        if (!isfinite(check->error[i]) || dtype_close(c->dtype, got, expected, allowed))
            continue;
        return (struct difference){.op = op, .index = {row, column}, .got = got, .allowed = allowed,
                                   .expected = dtype_in_range(c->dtype, expected)};
    }
    return (struct difference){0};
}

static struct difference check_gemm(const struct op *op)
{
    const struct gemm *g = &op->gemm;
    uint64_t rows = kb_min(ROWS, g->c.shape[0]), columns = kb_min(COLUMNS, g->c.shape[1]);
    uint64_t depth = kb_min(DEPTH, g->a.shape[1]);
    double *memory = malloc(((rows + columns) * (depth + 1) + 2 * rows * columns) * sizeof *memory);
    if (!memory)
        die("no memory to check a gemm:");
    struct gemm_check check = {.gemm = g, .a = memory, .b = memory + rows * depth};
    check.sum = memory + (rows + columns) * depth;
    check.error = check.sum + rows * columns;
    check.row_powers = check.error + rows * columns;
    check.column_powers = check.row_powers + rows;
    struct difference found = {0};
    for (check.row = 0; check.row < g->c.shape[0] && !found.op; check.row += ROWS)
        for (check.column = 0; check.column < g->c.shape[1] && !found.op; check.column += COLUMNS) {
            check.rows = kb_min(ROWS, g->c.shape[0] - check.row);
            check.columns = kb_min(COLUMNS, g->c.shape[1] - check.column);
            compute(&check);
            found = compare(&check, op);
        }
    free(memory);
    return found;
}

/* ---- math ops */

/* The index of element i of a shape in row-major order. */
static void index_of(const uint64_t shape[VIEW_RANK], uint64_t i, uint64_t index[VIEW_RANK])
{
    for (unsigned axis = VIEW_RANK; axis-- > 0; i /= shape[axis])
        index[axis] = i % shape[axis];
}

static double element(const struct view *view, const uint64_t index[VIEW_RANK])
{
    uint64_t at = 0;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        at += index[axis] * view->stride[axis];
    return dtype_value(view->dtype, store_at(view->memory, view->offset + at * dtype_bytes[view->dtype]));
}

/* Whether an op computes with integers. */
static bool is_whole(const struct math *math)
{
    enum op_domain domain = (enum op_domain)op_traits(math->op).domain;
    return !dtype_is_float(math_subject(math)->dtype) && domain != DOMAIN_CAST && domain != DOMAIN_QUANT &&
           domain != DOMAIN_DEQUANT;
}

/* What an element should be, and how far it may be off before it is stored. */
struct expected {
    double value, error;
};

static struct expected expect_element(const struct math *math, const uint64_t index[VIEW_RANK])
{
    const struct evaluator *evaluator = evaluator_of(math->op, math->relation);
    bool whole = is_whole(math);
    double x[MATH_OPERANDS] = {0};
    if (op_traits(math->op).domain == DOMAIN_LOOKUP) {
        double position = element(&math->operand[1], index);
        bool inside = position >= 0 && position < (double)math->operand[0].shape[0];
        return (struct expected){inside ? element(&math->operand[0], (uint64_t[VIEW_RANK]){(uint64_t)position}) : 0, 0};
    }
    for (unsigned i = 0; i < math->operands; i++)
        if (math->has_scalar && i + 1 == math->operands)
            x[i] = whole ? math->scalar : (double)(float)math->scalar;
        else
            x[i] = element(&math->operand[i], index);
    if (whole)
        return (struct expected){dtype_wrapped(math->to.dtype, evaluator->whole((int64_t)x[0], (int64_t)x[1],
                                                                                (int64_t)x[2])), 0};
    double value = evaluator->value(x[0], x[1], x[2]);
    return (struct expected){value, math->op == OP_cmp ? 0 : own_error(math->op, x[0], x[1], value)};
}

/* Reduces the line of the operand at an index. Its error is infinite if a partial sum may exceed f32. */
static struct expected expect_reduced(const struct math *math, uint64_t index[VIEW_RANK], double *line)
{
    uint64_t depth = math->operand[0].shape[math->axis];
    bool whole = is_whole(math);
    double sizes = 0, powers = 0;
    for (uint64_t k = 0; k < depth; k++) {
        index[math->axis] = k;
        line[k] = element(&math->operand[0], index);
        sizes += fabs(line[k]);
        powers += error_power(line[k]);
    }
    index[math->axis] = 0;
    double value = evaluate_reduction(math->op, whole, (struct line){line, depth, 1});
    if (whole)
        return (struct expected){dtype_wrapped(math->to.dtype, (int64_t)value), 0};
    bool exceeds = !op_traits(math->op).exact && sizes > FLT_MAX;
    double power = reduction_power(math->op, (double)depth, value, powers);
    return (struct expected){value, exceeds ? (double)INFINITY : error_allowance(error_root(power))};
}

static void *memory_for(uint64_t count, size_t size)
{
    void *at = malloc(count * size);
    if (!at)
        die("no memory to check a math op:");
    return at;
}

static void *expect_math(const struct math *math)
{
    uint64_t count = view_elements(&math->to), index[VIEW_RANK];
    struct expected *expected = memory_for(count, sizeof *expected);
    double *line = math->axis == NO_AXIS ? NULL : memory_for(math->operand[0].shape[math->axis], sizeof *line);
    for (unsigned i = 0; i < math_views(math); i++)
        view_reach(&math->operand[i]);
    for (uint64_t i = 0; i < count; i++) {
        index_of(math->to.shape, i, index);
        expected[i] = line ? expect_reduced(math, index, line) : expect_element(math, index);
    }
    free(line);
    return expected;
}

static struct difference check_math(const struct op *op, void *all)
{
    const struct expected *expected = all;
    const struct view *to = &op->math.to;
    uint64_t count = view_elements(to), index[VIEW_RANK];
    struct difference found = {0};
    for (uint64_t i = 0; i < count && !found.op; i++) {
        index_of(to->shape, i, index);
        double want = dtype_in_range(to->dtype, expected[i].value), got = element(to, index);
        double allowed = stored_error(to->dtype, expected[i].value, expected[i].error);
        if (!isfinite(expected[i].error) || dtype_close(to->dtype, got, expected[i].value, allowed))
            continue;
        found = (struct difference){.op = op, .got = got, .expected = want, .allowed = allowed,
                                    .index = {index[0], index[1], index[2], index[3]}};
    }
    free(all);
    return found;
}

const struct exec_check recheck = {expect_math, check_math, check_gemm};
