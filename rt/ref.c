/* ref.c: references: what a tensor should hold, computed from whole matrices on the host.
 *
 * Nothing of the op log or of the data pass has a part in it: tensors are gathered, multiplied and added to as a whole.
 * f64 holds every product and sum of i8 exactly, so i32 is what remains of it modulo 2^32. */
#include "reference.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blas.h"
#include "clock.h"
#include "dtype.h"
#include "exec.h"
#include "misuse.h"
#include "plan.h"
#include "progress.h"
#include "stopwatch.h"
#include "text/base.h"
#include "text/diag.h"

enum { PANEL = 256, COLUMN_PANEL = 4096, MOST_THREADS = 8, MOST_SIZE = 1 << 30 };

double reference_seconds;
static struct reference *references;

static void *room(uint64_t count, size_t size)
{
    void *at = calloc(count, size);
    if (!at)
        die("no memory for a reference of %" PRIu64 " elements:", count);
    return at;
}

struct reference *reference_new(uint64_t rows, uint64_t columns)
{
    struct reference *ref = arena_alloc(1, sizeof *ref);
    *ref = (struct reference){.rows = rows, .columns = columns, .older = references};
    return references = ref;
}

void references_reset(void)
{
    for (struct reference *ref = references; ref; ref = ref->older)
        free(ref->f32), free(ref->f64), free(ref->i32);
    references = NULL;
    reference_seconds = 0;
}

/* ---- gathering */

/* A tensor's elements in one piece, as f32 or as f64. */
struct gathered {
    const struct tensor *tensor;
    float *f32;
    double *f64;
    double max;                                         /* of their magnitudes */
};

static void gather_row(struct run run, void *arg)
{
    struct gathered *g = arg;
    enum dtype dtype = g->tensor->dtype;
    store_reach(IMAGE_NOW, run.memory, run.offset + run.count * dtype_bytes[dtype]);
    const uint8_t *from = store_at(IMAGE_NOW, run.memory, run.offset);
    if (g->f32)
        dtype_to_f32(dtype, from, g->f32 + run.position, run.count);
    for (uint64_t i = 0; i < run.count; i++) {
        double x = g->f32 ? g->f32[run.position + i] : dtype_value(dtype, from + i * dtype_bytes[dtype]);
        if (g->f64)
            g->f64[run.position + i] = x;
        if (fabs(x) > g->max)
            g->max = fabs(x);
    }
}

static struct gathered gather(const struct tensor *tensor, bool f64)
{
    struct gathered g = {.tensor = tensor};
    if (f64)
        g.f64 = room(tensor->elements, sizeof *g.f64);
    else
        g.f32 = room(tensor->elements, sizeof *g.f32);
    tensor_each_row(tensor, false, gather_row, &g);
    return g;
}

/* ---- gemm, in panels of C that threads take in turn; the panels do not depend on how many there are */

struct product {
    struct reference *ref;
    struct gathered a, b;
    uint64_t depth;
    uint64_t taken;                                     /* panels */
    pthread_t first;                                    /* the thread that shows how far it is */
};

static void wrap_panel(const struct product *p, const double *from, uint64_t row, uint64_t rows, uint64_t column,
                       uint64_t columns)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            p->ref->i32[(row + i) * p->ref->columns + column + j] = (int32_t)(uint32_t)(int64_t)from[i * columns + j];
}

static void panel(const struct product *p, uint64_t row, uint64_t column)
{
    struct reference *ref = p->ref;
    uint64_t rows = ref->rows - row < PANEL ? ref->rows - row : PANEL, n = ref->columns, k = p->depth;
    uint64_t columns = n - column < COLUMN_PANEL ? n - column : COLUMN_PANEL;
    if (ref->f32) {
        blas_sgemm(rows, columns, k, p->a.f32 + row * k, k, p->b.f32 + column, n, 0, ref->f32 + row * n + column, n);
    } else if (ref->f64) {
        blas_dgemm(rows, columns, k, p->a.f64 + row * k, k, p->b.f64 + column, n, 0, ref->f64 + row * n + column, n);
    } else {
        double *exact = room(rows * columns, sizeof *exact);
        blas_dgemm(rows, columns, k, p->a.f64 + row * k, k, p->b.f64 + column, n, 0, exact, columns);
        wrap_panel(p, exact, row, rows, column, columns);
        free(exact);
    }
}

static void *panels(void *arg)
{
    struct product *p = arg;
    uint64_t across = (p->ref->columns + COLUMN_PANEL - 1) / COLUMN_PANEL;
    uint64_t all = (p->ref->rows + PANEL - 1) / PANEL * across;
    for (uint64_t i; (i = __atomic_fetch_add(&p->taken, 1, __ATOMIC_RELAXED)) < all;) {
        panel(p, i / across * PANEL, i % across * COLUMN_PANEL);
        if (pthread_equal(pthread_self(), p->first))
            progress("reference", i, all);
    }
    return NULL;
}

static void multiply(struct product *p)
{
    pthread_t threads[MOST_THREADS];
    p->first = pthread_self();
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int started = 0;
    while (started + 1 < processors && started < MOST_THREADS - 1 &&
           p->ref->rows > PANEL * (uint64_t)(started + 1) &&
           !pthread_create(&threads[started], NULL, panels, p))
        started++;
    panels(p);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    progress_end();
}

static void check_gemm(kb_tensor a, kb_tensor b, const char *file, uint32_t line)
{
    if (a->dims.rank != 2 || b->dims.rank != 2)
        misuse(file, line, "kb_ref_gemm: '%s' and '%s' are to be matrices", a->name, b->name);
    if (a->dims.size[1] != b->dims.size[0])
        misuse(file, line, "kb_ref_gemm: '%s' has %" PRIu64 " columns, '%s' has %" PRIu64 " rows", a->name,
               a->dims.size[1], b->name, b->dims.size[0]);
    if (a->dtype != b->dtype || !(dtype_is_float(a->dtype) || a->dtype == DTYPE_i8))
        misuse(file, line, "kb_ref_gemm: '%s' of %s and '%s' of %s: both are to be f32, f16, bf16 or i8", a->name,
               dtype_words[a->dtype], b->name, dtype_words[b->dtype]);
    if (a->dims.size[0] > MOST_SIZE || a->dims.size[1] > MOST_SIZE || b->dims.size[1] > MOST_SIZE)
        misuse(file, line, "kb_ref_gemm: sizes above 2^30 are too large for a reference");
}

kb_ref kb_ref_gemm_at(kb_tensor a, kb_tensor b, const char *file, uint32_t line)
{
    tensor_check(a, "kb_ref_gemm", file, line);
    tensor_check(b, "kb_ref_gemm", file, line);
    check_gemm(a, b, file, line);
    if (!oplog_on)
        return NULL;
    exec_data_pass();
    unsigned before = phase_enter(PHASE_reference);
    double began = clock_seconds();
    struct reference *ref = reference_new(a->dims.size[0], b->dims.size[1]);
    uint64_t elements = ref->rows * ref->columns;
    if (a->dtype == DTYPE_f32)
        ref->f64 = room(elements, sizeof *ref->f64);
    else if (a->dtype == DTYPE_i8)
        ref->i32 = room(elements, sizeof *ref->i32);
    else
        ref->f32 = room(elements, sizeof *ref->f32);
    struct product p = {.ref = ref, .a = gather(a, !ref->f32), .b = gather(b, !ref->f32), .depth = a->dims.size[1]};
    ref->scale = sqrt((double)p.depth) * p.a.max * p.b.max;
    blas_open();
    multiply(&p);
    free(p.a.f32), free(p.a.f64), free(p.b.f32), free(p.b.f64);
    reference_seconds += clock_seconds() - began;
    phase_leave(before);
    return ref;
}

/* ---- elementwise */

double reference_value(const struct reference *ref, uint64_t i)
{
    return ref->f32 ? ref->f32[i] : ref->f64 ? ref->f64[i] : ref->i32[i];
}

static void set(struct reference *ref, uint64_t i, double x)
{
    if (ref->f32)
        ref->f32[i] = (float)x;
    else if (ref->f64)
        ref->f64[i] = x;
    else
        ref->i32[i] = (int32_t)(uint32_t)(int64_t)x;
}

void kb_ref_bias_at(kb_ref ref, kb_tensor row, const char *file, uint32_t line)
{
    tensor_check(row, "kb_ref_bias", file, line);
    if (!ref)
        return;
    if (row->elements != ref->columns)
        misuse(file, line, "kb_ref_bias: '%s' has %" PRIu64 " elements for %" PRIu64 " columns", row->name,
               row->elements, ref->columns);
    if (ref->i32 && dtype_is_float(row->dtype))
        misuse(file, line, "kb_ref_bias: '%s' of %s cannot be added to i32", row->name, dtype_words[row->dtype]);
    exec_data_pass();
    struct gathered g = gather(row, true);
    for (uint64_t i = 0; i < ref->rows * ref->columns; i++)
        set(ref, i, reference_value(ref, i) + g.f64[i % ref->columns]);
    free(g.f64);
}

void kb_ref_relu_at(kb_ref ref, const char *file, uint32_t line)
{
    (void)file, (void)line;
    for (uint64_t i = 0; ref && i < ref->rows * ref->columns; i++)
        if (reference_value(ref, i) < 0)
            set(ref, i, 0);
}
