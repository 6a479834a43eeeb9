/* projection.c: Freivalds' check: random vectors, their products with B, and a panel of C against both. */
#include "projection.h"

#include <stdlib.h>

#include "base/threads.h"
#include "base/vector.h"
#include "datapass/blas.h"
#include "kb/arith.h"
#include "squares.h"

struct projection {
    const struct product *product;
    enum dtype dtype;                                   /* of C */
    uint64_t columns, blocks, width;                    /* of a matrix of C; width: vectors of all blocks */
    double *vectors;                                    /* PROJECTION_VECTORS x columns */
    double *b, *bias;                                   /* for each matrix: depth x width; width */
    double *b_terms;                                    /* for each matrix: by block, the sum over its columns */
};

/* Two independent normal numbers, by Box and Muller. */
static void draw_normal(uint64_t *state, double *x, double *y)
{
    double uniform[2];
    for (unsigned i = 0; i < 2; i++) {
        *state += UINT64_C(0x9e3779b97f4a7c15);         /* splitmix64 */
        uint64_t z = *state;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        uniform[i] = ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
    }
    double radius = sqrt(-2 * log(uniform[0]));
    *x = radius * cos(2 * M_PI * uniform[1]);
    *y = radius * sin(2 * M_PI * uniform[1]);
}

static void draw_vectors(struct projection *p)
{
    uint64_t count = PROJECTION_VECTORS * p->columns, state = count;
    p->vectors = reference_alloc(count + 1, sizeof *p->vectors);
    for (uint64_t i = 0; i < count; i += 2)
        draw_normal(&state, &p->vectors[i], &p->vectors[i + 1]);
}

/* The products of a row's blocks with their vectors: block by block, each with all of its vectors. */
VECTOR_BODY void project_row_body(const double *row, const double *vectors, uint64_t columns, double *to)
{
    enum { LANES = 4 };
    for (uint64_t first = 0; first < columns; first += PROJECTION_COLUMNS) {
        uint64_t end = kb_min(first + PROJECTION_COLUMNS, columns), j = first;
        double sum[PROJECTION_VECTORS][LANES] = {0};
        for (; j + LANES <= end; j += LANES)
            for (unsigned q = 0; q < PROJECTION_VECTORS; q++)
                for (unsigned lane = 0; lane < LANES; lane++)
                    sum[q][lane] += row[j + lane] * vectors[q * columns + j + lane];
        for (unsigned q = 0; q < PROJECTION_VECTORS; q++) {
            for (uint64_t rest = j; rest < end; rest++)
                sum[q][0] += row[rest] * vectors[q * columns + rest];
            *to++ = sum[q][0] + sum[q][1] + (sum[q][2] + sum[q][3]);
        }
    }
}
VECTOR_FUNCTION(project_row, (const double *row, const double *vectors, uint64_t columns, double *to),
                (row, vectors, columns, to))

static void project_b_rows(uint64_t first, uint64_t rows, void *arg)
{
    const struct projection *p = arg;
    double *value = reference_scratch(p->columns, sizeof *value);
    for (uint64_t row = first; row < first + rows; row++) {
        matrix_values(&p->product->b, row * p->columns, p->columns, value);
        project_row(value, p->vectors, p->columns, p->b + row * p->width);
    }
    free(value);
}

static void project_b(struct projection *p)
{
    uint64_t rows = p->product->b.elements / p->columns, matrices = rows / p->product->depth;
    p->b = reference_alloc(rows * p->width, sizeof *p->b);
    p->bias = reference_alloc(p->width, sizeof *p->bias);
    p->b_terms = reference_alloc(matrices * p->blocks, sizeof *p->b_terms);
    reference_each_batch(rows, p->columns, project_b_rows, p);
    for (uint64_t i = 0; i < matrices * p->columns; i++)
        p->b_terms[i / p->columns * p->blocks + i % p->columns / PROJECTION_COLUMNS] += p->product->b_terms[i];
    if (p->product->bias.value)
        project_row(p->product->bias.value, p->vectors, p->columns, p->bias);
}

struct projection *projection_new(const struct reference *ref, enum dtype dtype)
{
    const struct product *product = ref->product;
    if (!product || product->relu || product->a.error || product->b.error || !dtype_is_float(ref->dtype) ||
        !dtype_is_float(dtype) || error_mode != ERRORS_STATISTICAL)
        return NULL;
    struct projection *p = reference_alloc(1, sizeof *p);
    *p = (struct projection){.product = product, .dtype = dtype, .columns = product->columns,
                             .blocks = kb_ceil_div(product->columns, PROJECTION_COLUMNS)};
    p->width = p->blocks * PROJECTION_VECTORS;
    draw_vectors(p);
    project_b(p);
    return p;
}

void projection_free(struct projection *p)
{
    if (!p)
        return;
    free(p->vectors), free(p->b), free(p->bias), free(p->b_terms);
    free(p);
}

/* The limit of |d r| for a block of a row: six times the norm of the bounds of its elements. */
static double block_limit(const struct projection *p, double a_terms, double b_terms, double squares, uint64_t columns)
{
    double unit = error_unit[p->dtype], least = error_least[p->dtype];
    double stored = sqrt(unit * unit * squares) + least * sqrt((double)columns);
    double summed = accumulation_power(DTYPE_f32, (double)p->product->depth, sqrt(squares), a_terms * b_terms);
    return 6 * (stored + error_allowance(sqrt(summed)));
}

bool projection_passes(const struct projection *p, struct row_panel panel, const double *got,
                       struct projected *found, void (*limit)(double limit, uint64_t columns, void *arg), void *arg)
{
    const struct product *product = p->product;
    uint64_t depth = product->depth, matrix = panel.row / product->rows;
    double *a = reference_scratch(panel.rows * depth, sizeof *a), *row = reference_scratch(p->width, sizeof *row);
    double *expected = reference_scratch(panel.rows * p->width, sizeof *expected);
    bool passes = true;
    product_rows(product, panel, a);
    blas_dgemm(panel.rows, p->width, depth, a, depth, p->b + matrix * depth * p->width, p->width, 0, expected, p->width);
    for (uint64_t i = 0; i < panel.rows && passes; i++) {
        double a_terms;
        for (uint64_t k = i * depth; k < (i + 1) * depth; k++)
            a[k] *= a[k];
        sum_squares(a + i * depth, depth, &a_terms);
        project_row(got + i * p->columns, p->vectors, p->columns, row);
        for (uint64_t block = 0; block < p->blocks; block++) {
            uint64_t first = block * PROJECTION_COLUMNS, columns = kb_min(PROJECTION_COLUMNS, p->columns - first);
            double squares;
            sum_squares(got + i * p->columns + first, columns, &squares);
            double most = block_limit(p, sqrt(a_terms), p->b_terms[matrix * p->blocks + block], squares, columns);
            for (uint64_t q = block * PROJECTION_VECTORS; q < (block + 1) * PROJECTION_VECTORS; q++) {
                double off = row[q] - p->bias[q] - expected[i * p->width + q];
                passes &= fabs(off) <= most;            /* a NaN does not pass */
                found->error_squares += off * off / PROJECTION_VECTORS;
            }
            found->squares += squares;
            limit(most / sqrt((double)columns), columns, arg);
        }
    }
    free(a), free(row), free(expected);
    return passes;
}
