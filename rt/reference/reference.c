/* reference.c: what all references share: their values, the operands they are made from, the time they take. */
#include "reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/dtype.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "common/arena.h"
#include "datapass/exec.h"
#include "deferred.h"
#include "expect.h"
#include "host/host.h"
#include "kb/arith.h"
#include "oplog/oplog.h"
#include "store/written.h"

double reference_seconds;

static struct {
    struct reference *newest;
    double began;                                       /* the call under way */
    const struct tensor *overwritten;                   /* by kernels, of what this call's reference is made from */
    unsigned phase_before;
} all;

/* Large arrays are in huge pages, if the system has them: half of the time of a short computation goes into small ones. */
void *reference_alloc(uint64_t count, size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    char *at = calloc(count, size);
    if (!at)
        die("no memory for a reference of %" PRIu64 " elements:", count);
    if (count * size >= 2 * HUGE_PAGE) {
        uintptr_t inside = ((uintptr_t)at + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        madvise((void *)inside, (count * size - (inside - (uintptr_t)at)) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return at;
}

void *reference_scratch(uint64_t count, size_t size)
{
    void *at = malloc(count * size + 1);
    if (!at)
        die("no memory for a reference of %" PRIu64 " elements:", count);
    return at;
}

static uint64_t shape_elements(const struct kb_dims *dims)
{
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < dims->rank; axis++)
        elements *= dims->size[axis];
    return elements;
}

uint64_t reference_elements(const struct kb_dims *dims)
{
    return oplog_on ? shape_elements(dims) : 0;
}

struct reference *reference_new(struct kb_dims dims, enum dtype dtype, double *value, float *error)
{
    struct reference *ref = arena_alloc(1, sizeof *ref);
    *ref = (struct reference){.dims = dims, .elements = reference_elements(&dims), .dtype = dtype, .value = value,
                              .error = error, .columns = dims.size[dims.rank - 1], .older = all.newest};
    ref->rows = ref->elements / ref->columns;
    return all.newest = ref;
}

float *reference_errors(uint64_t elements, bool rounded)
{
    return rounded ? reference_alloc(elements, sizeof(float)) : NULL;
}

void reference_reset(void)
{
    verifications = NULL;
    for (struct reference *ref = all.newest; ref; ref = ref->older)
        free(ref->value), free(ref->error), free(ref->raw), deferred_drop(ref);
    all.newest = NULL;
    reference_seconds = 0;
}

void reference_begin(struct call_site call)
{
    host_only(call);
    if (oplog_on)
        exec_data_pass();
    all.phase_before = phase_enter(PHASE_reference);
    all.overwritten = NULL;
    reference_clock_start();
}

kb_ref reference_end(struct reference *ref)
{
    reference_left();
    phase_leave(all.phase_before);
    if (all.overwritten)
        ref->overwritten = all.overwritten;
    return ref;
}

void reference_clock_start(void)
{
    all.began = clock_seconds();
}

void reference_left(void)
{
    if (all.began > 0)
        reference_seconds += clock_seconds() - all.began;
    all.began = 0;
}

/* ---- batches */

enum { BATCH_ELEMENTS = 1 << 16 };

struct batches {
    uint64_t rows, at_once;
    void (*f)(uint64_t row, uint64_t rows, void *arg);
    void *arg;
};

static void run_batch(uint64_t i, unsigned thread, void *arg)
{
    (void)thread;
    const struct batches *all = arg;
    uint64_t row = i * all->at_once;
    all->f(row, kb_min(all->at_once, all->rows - row), all->arg);
}

void reference_each_batch(uint64_t rows, uint64_t columns, void (*f)(uint64_t row, uint64_t rows, void *arg), void *arg)
{
    struct batches all = {rows, columns < BATCH_ELEMENTS ? BATCH_ELEMENTS / columns : 1, f, arg};
    threads_run((rows + all.at_once - 1) / all.at_once, run_batch, &all);
}

/* ---- operands */

static const uint8_t *row_elements(struct tensor_row run, uint64_t size)
{
    store_reach(run.memory, run.offset + run.count * size);
    return store_at(run.memory, run.offset);
}

static void gather_row(struct tensor_row run, void *gathered)
{
    struct gathered *g = gathered;
    dtype_to_f64(g->dtype, row_elements(run, dtype_bytes[g->dtype]), g->own_value + run.position, run.count);
}

static void gather_raw_row(struct tensor_row run, void *gathered)
{
    struct gathered *g = gathered;
    uint64_t size = dtype_bytes[g->dtype];
    memcpy(g->raw + run.position * size, row_elements(run, size), run.count * size);
}

struct gathered gathered_shape(struct call_site call, struct kb_values from)
{
    struct gathered g = {.name = "a number", .dims = kb_1d(1), .dtype = DTYPE_f32, .exact = true, .is_number = from.is_number};
    if (from.tensor)
        g = (struct gathered){.name = from.tensor->name, .dims = from.tensor->dims, .dtype = from.tensor->dtype, .exact = true};
    else if (from.ref)
        g = (struct gathered){.name = "a reference", .dims = from.ref->dims, .dtype = from.ref->dtype,
                              .exact = from.ref->exact || !dtype_is_float(from.ref->dtype)};
    else if (!from.is_number)
        misuse_of(call, "there is no tensor, nor a reference");
    g.elements = reference_elements(&g.dims);
    if (from.tensor && written_over(from.tensor, NULL))
        all.overwritten = from.tensor;
    else if (from.ref && from.ref->overwritten)
        all.overwritten = from.ref->overwritten;
    return g;
}

/* The errors of a reference's values once they are stored: rounded to its dtype. */
struct storing {
    const struct reference *ref;
    float *error;
};

static void store_batch(uint64_t first, uint64_t count, void *arg)
{
    const struct storing *s = arg;
    const float *before = s->ref->error ? s->ref->error + first : NULL;
    reference_store_errors(s->ref, s->ref->value + first, before, s->error + first, count);
}

/* `before` and `error` may be one array. */
VECTOR_BODY void add_rounding_in(enum error_mode mode, enum dtype dtype, const double *restrict value, const float *before, float *error,
                                 uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        error[i] = (float)error_root_in(mode, error_power_in(mode, (double)before[i]) + rounding_power_in(mode, dtype, value[i]));
}
ERROR_FUNCTION(add_rounding, (enum dtype dtype, const double *value, const float *before, float *error, uint64_t count),
               (dtype, value, before, error, count))

void reference_store_errors(const struct reference *ref, const double *value, const float *before, float *error, uint64_t count)
{
    if (!before)
        memset(error, 0, count * sizeof *error);
    add_rounding(ref->dtype, value, before ? before : error, error, count);
}

static float *stored_errors(const struct reference *ref)
{
    struct storing storing = {ref, reference_alloc(ref->elements, sizeof *storing.error)};
    reference_each_batch(ref->elements, 1, store_batch, &storing);
    return storing.error;
}

struct gathered gather(struct call_site call, struct kb_values from)
{
    struct gathered g = gathered_shape(call, from);
    if (from.ref) {
        deferred_evaluate(from.ref);
        g.value = from.ref->value;
        bool rounds = !g.exact && !from.ref->stored;
        if (rounds)
            g.own_error = stored_errors(from.ref);
        g.error = rounds ? g.own_error : from.ref->error;
        return g;
    }
    g.value = g.own_value = reference_alloc(g.elements, sizeof *g.value);
    if (from.tensor && g.elements)
        tensor_each_row(from.tensor, false, gather_row, &g);
    else if (g.elements)
        g.own_value[0] = from.number;
    return g;
}

struct gathered gather_raw(struct call_site call, struct kb_values from)
{
    if (!from.tensor && !(from.ref && from.ref->raw))
        return gather(call, from);
    struct gathered g = gathered_shape(call, from);
    g.raw = reference_scratch(g.elements, dtype_bytes[g.dtype]);
    if (from.ref)
        memcpy(g.raw, from.ref->raw, g.elements * dtype_bytes[g.dtype]);
    else if (g.elements)
        tensor_each_row(from.tensor, false, gather_raw_row, &g);
    return g;
}

const double *gathered_values(const struct gathered *g, uint64_t first, uint64_t count, double *to)
{
    if (g->value)
        return g->value + first;
    dtype_to_f64(g->dtype, g->raw + first * dtype_bytes[g->dtype], to, count);
    return to;
}

void gathered_copy(const struct gathered *g, uint64_t first, uint64_t count, double *to)
{
    const double *values = gathered_values(g, first, count, to);
    if (values != to)
        memcpy(to, values, count * sizeof *to);
}

void gathered_make_own(struct gathered *g)
{
    if (!g->own_value) {
        g->own_value = reference_scratch(g->elements, sizeof *g->own_value);
        memcpy(g->own_value, g->value, g->elements * sizeof *g->own_value);
    }
    if (g->error && !g->own_error) {
        g->own_error = reference_scratch(g->elements, sizeof *g->own_error);
        memcpy(g->own_error, g->error, g->elements * sizeof *g->own_error);
    }
    g->value = g->own_value;
    g->error = g->own_error;
}

void gathered_free(struct gathered *g)
{
    free(g->own_value);
    free(g->own_error);
    free(g->raw);
}

struct gathered gather_floats(struct call_site call, struct kb_values from)
{
    struct gathered g = gather_raw(call, from);
    if (!dtype_is_float(g.dtype))
        misuse_of(call, "'%s' is of %s; floats are needed", g.name, dtype_words[g.dtype]);
    return g;
}

void gathered_check_row(struct call_site call, const struct gathered *g, uint64_t columns, bool one)
{
    uint64_t elements = shape_elements(&g->dims);
    if (elements != columns && !(one && elements == 1))
        misuse_of(call, "'%s' has %" PRIu64 " elements for %" PRIu64 " columns", g->name, elements, columns);
}
