/* ref.c: references of gemms, computed from whole matrices on the host.
 *
 * Nothing of the op log or of the data pass has a part in it: tensors are gathered, multiplied and added to as a whole.
 * f64 holds every product and sum of i8 exactly, so i32 is what remains of it modulo 2^32. */
#include "reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datapass/blas.h"
#include "base/dtype.h"
#include "common/fail.h"
#include "machine/tiling.h"
#include "base/threads.h"
#include "base/progress.h"

enum { PANEL = 256, COLUMN_PANEL = 4096, MOST_SIZE = 1 << 30 };

/* ---- gemm, in panels of C that do not depend on the number of threads */

struct product {
    struct reference *ref;
    struct gathered a, b;
    uint64_t rows, depth;                               /* of a matrix */
    uint64_t panels, of_one, across;                    /* all, those of a matrix, those of a row */
};

static void wrap_panel(const struct product *p, const double *from, uint64_t row, uint64_t rows, uint64_t column,
                       uint64_t columns)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            p->ref->i32[(row + i) * p->ref->columns + column + j] = (int32_t)(uint32_t)(int64_t)from[i * columns + j];
}

static void panel(const struct product *p, uint64_t matrix, uint64_t row, uint64_t column)
{
    struct reference *ref = p->ref;
    uint64_t rows = p->rows - row < PANEL ? p->rows - row : PANEL, n = ref->columns, k = p->depth;
    uint64_t columns = n - column < COLUMN_PANEL ? n - column : COLUMN_PANEL, b = matrix * k * n + column;
    row += matrix * p->rows;
    if (ref->f32) {
        blas_sgemm(rows, columns, k, p->a.f32 + row * k, k, p->b.f32 + b, n, 0, ref->f32 + row * n + column, n);
    } else if (ref->f64) {
        blas_dgemm(rows, columns, k, p->a.f64 + row * k, k, p->b.f64 + b, n, 0, ref->f64 + row * n + column, n);
    } else {
        double *exact = reference_room(rows * columns, sizeof *exact);
        blas_dgemm(rows, columns, k, p->a.f64 + row * k, k, p->b.f64 + b, n, 0, exact, columns);
        wrap_panel(p, exact, row, rows, column, columns);
        free(exact);
    }
}

static void do_panel(uint64_t i, unsigned thread, void *product)
{
    const struct product *p = product;
    uint64_t inside = i % p->of_one;
    panel(p, i / p->of_one, inside / p->across * PANEL, inside % p->across * COLUMN_PANEL);
    if (thread == 0)
        progress("reference", i, p->panels);
}

static void multiply(struct product *p)
{
    blas_open();
    p->across = (p->ref->columns + COLUMN_PANEL - 1) / COLUMN_PANEL;
    p->of_one = (p->rows + PANEL - 1) / PANEL * p->across;
    p->panels = p->ref->rows / p->rows * p->of_one;
    threads_run(p->panels, do_panel, p);
    progress_end();
}

/* Matrices of 8-bit integers, or of floats, or as many of each. */
static void check_gemm(const struct ref_call *call, const struct gathered *a, const struct gathered *b)
{
    uint32_t rank = a->dims.rank;
    if (rank < 2 || rank != b->dims.rank)
        misuse(call->file, call->line, "%s: '%s' and '%s' are to be matrices", call->name, a->name, b->name);
    for (uint32_t axis = 0; axis + 2 < rank; axis++)
        if (a->dims.size[axis] != b->dims.size[axis])
            misuse(call->file, call->line, "%s: '%s' and '%s' are to have as many matrices", call->name, a->name,
                   b->name);
    const uint64_t *a_size = a->dims.size + rank - 2, *b_size = b->dims.size + rank - 2;
    if (a_size[1] != b_size[0])
        misuse(call->file, call->line, "%s: '%s' has %" PRIu64 " columns, '%s' has %" PRIu64 " rows", call->name,
               a->name, a_size[1], b->name, b_size[0]);
    bool floats = dtype_is_float(a->dtype);
    if (floats != dtype_is_float(b->dtype) || (!floats && (a->dtype != DTYPE_i8 || b->dtype != DTYPE_i8)))
        misuse(call->file, call->line, "%s: '%s' of %s and '%s' of %s: both are to be floats, or i8", call->name,
               a->name, dtype_words[a->dtype], b->name, dtype_words[b->dtype]);
    bool large = a_size[0] > MOST_SIZE || a_size[1] > MOST_SIZE || b_size[1] > MOST_SIZE;
    if (large && a->elements)                           /* for who computes it */
        misuse(call->file, call->line, "%s: sizes above 2^30 are too large for a reference", call->name);
}

/* Of operands that may be off themselves, the product is off by so much more. */
static double gemm_scale(const struct product *p)
{
    const struct gathered *a = &p->a, *b = &p->b;
    return sqrt((double)p->depth) * (a->max * b->max + a->error * b->max + a->max * b->error);
}

kb_ref kb_ref_gemm_at(struct kb_values a, struct kb_values b, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_gemm", file, line};
    ref_begin(&call);
    bool half = values_are_half(a) && values_are_half(b);
    struct product p = {.a = gather(&call, a, !half), .b = gather(&call, b, !half)};
    check_gemm(&call, &p.a, &p.b);
    bool floats = dtype_is_float(p.a.dtype);
    struct kb_dims dims = p.a.dims;
    dims.size[dims.rank - 1] = p.b.dims.size[dims.rank - 1];
    struct reference *ref = p.ref = reference_new(dims, floats ? p.a.dtype : DTYPE_i32);
    if (half)
        ref->f32 = reference_room(ref->elements, sizeof *ref->f32);
    else if (floats)
        ref->f64 = reference_room(ref->elements, sizeof *ref->f64);
    else
        ref->i32 = reference_room(ref->elements, sizeof *ref->i32);
    p.rows = dims.size[dims.rank - 2];
    p.depth = p.a.dims.size[dims.rank - 1];
    ref->scale = gemm_scale(&p);
    if (ref->elements)
        multiply(&p);
    gathered_free(&p.a);
    gathered_free(&p.b);
    return ref_end(ref);
}

/* ---- epilogues, in place */

static void set(struct reference *ref, uint64_t i, double x)
{
    if (ref->f32)
        ref->f32[i] = (float)x;
    else if (ref->f64)
        ref->f64[i] = x;
    else
        ref->i32[i] = (int32_t)(uint32_t)(int64_t)x;
}

void kb_ref_bias_at(kb_ref ref, struct kb_values row, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_bias", file, line};
    ref_begin(&call);
    struct gathered g = gather(&call, row, true);
    if (!ref)
        misuse(file, line, "kb_ref_bias: there is no reference");
    gathered_check_row(&call, &g, ref->columns, false);
    if (!dtype_is_float(ref->dtype) && dtype_is_float(g.dtype))
        misuse(file, line, "kb_ref_bias: '%s' of %s cannot be added to %s", g.name, dtype_words[g.dtype],
               dtype_words[ref->dtype]);
    for (uint64_t i = 0; i < ref->elements; i++)
        set(ref, i, reference_value(ref, i) + g.f64[i % ref->columns]);
    ref->exact &= !dtype_is_float(ref->dtype);
    gathered_free(&g);
    ref_end(ref);
}

void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line)
{
    (void)file, (void)line;
    for (uint64_t i = 0; ref && i < ref->elements; i++)
        if (reference_value(ref, i) < 0)
            set(ref, i, 0);
}
