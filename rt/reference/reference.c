/* reference.c: what references have in common: their values, what they are gathered from, the time that they take. */
#include "reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "datapass/exec.h"
#include "host/host.h"
#include "common/fail.h"
#include "oplog/oplog.h"
#include "machine/tiling.h"
#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/diag.h"

double reference_seconds;
static struct reference *references;

static uint64_t shape_elements(const struct kb_dims *dims)
{
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < dims->rank; axis++)
        elements *= dims->size[axis];
    return elements;
}

void *reference_room(uint64_t count, size_t size)
{
    void *at = calloc(count, size);
    if (!at)
        die("no memory for a reference of %" PRIu64 " elements:", count);
    return at;
}

uint64_t reference_elements(const struct kb_dims *dims)
{
    return oplog_on ? shape_elements(dims) : 0;
}

struct reference *reference_new(struct kb_dims dims, enum dtype dtype)
{
    struct reference *ref = arena_alloc(1, sizeof *ref);
    *ref = (struct reference){.dims = dims, .elements = reference_elements(&dims), .dtype = dtype, .scale = 1,
                              .columns = dims.size[dims.rank - 1], .older = references};
    ref->rows = ref->elements / ref->columns;
    return references = ref;
}

struct reference *reference_computed(struct kb_dims dims, enum dtype dtype, double *values, double scale)
{
    struct reference *ref = reference_new(dims, dtype);
    ref->f64 = values;
    ref->scale = fmax(1, scale);
    return ref;
}

void reference_reset(void)
{
    verifications_reset();
    for (struct reference *ref = references; ref; ref = ref->older)
        free(ref->f32), free(ref->f64), free(ref->i32);
    references = NULL;
    reference_seconds = 0;
}

double reference_value(const struct reference *ref, uint64_t i)
{
    return ref->f32 ? ref->f32[i] : ref->f64 ? ref->f64[i] : ref->i32[i];
}

/* ---- a call */

static double began;
static unsigned phase_before;

void ref_begin(const struct ref_call *call)
{
    host_only((struct call_site){call->name, call->file, call->line});
    if (oplog_on)
        exec_data_pass();
    phase_before = phase_enter(PHASE_reference);
    began = clock_seconds();
}

kb_ref ref_end(struct reference *ref)
{
    reference_seconds += clock_seconds() - began;
    phase_leave(phase_before);
    return ref;
}

/* ---- what it is computed from */

bool values_are_half(struct kb_values from)
{
    enum dtype dtype = from.tensor ? from.tensor->dtype : from.ref && from.ref->exact ? from.ref->dtype : DTYPE_f32;
    return dtype == DTYPE_f16 || dtype == DTYPE_bf16;
}

struct gathering {
    struct gathered *to;
    const struct tensor *tensor;
};

static void gather_row(struct run run, void *arg)
{
    const struct gathering *g = arg;
    enum dtype dtype = g->tensor->dtype;
    store_reach(IMAGE_NOW, run.memory, run.offset + run.count * dtype_bytes[dtype]);
    const uint8_t *from = store_at(IMAGE_NOW, run.memory, run.offset);
    if (g->to->f32)
        dtype_to_f32(dtype, from, g->to->f32 + run.position, run.count);
    for (uint64_t i = 0; g->to->f64 && i < run.count; i++)
        g->to->f64[run.position + i] = dtype_value(dtype, from + i * dtype_bytes[dtype]);
}

static double largest(const struct gathered *g)
{
    double most = 0;
    for (uint64_t i = 0; i < g->elements; i++) {
        double size = fabs(g->f64 ? g->f64[i] : g->f32[i]);
        if (size > most && size < (double)INFINITY)
            most = size;
    }
    return most;
}

static struct gathered described(const struct ref_call *call, struct kb_values from)
{
    if (from.tensor)
        return (struct gathered){.name = from.tensor->name, .dims = from.tensor->dims, .dtype = from.tensor->dtype,
                                 .exact = true};
    if (from.ref)
        return (struct gathered){.name = "a reference", .dims = from.ref->dims, .dtype = from.ref->dtype,
                                 .exact = from.ref->exact};
    if (!from.is_number)
        misuse(call->file, call->line, "%s: there is no tensor, nor a reference", call->name);
    return (struct gathered){.name = "a number", .dims = kb_1d(1), .dtype = DTYPE_f32, .exact = true,
                             .is_number = true};
}

struct gathered gather(const struct ref_call *call, struct kb_values from, bool f64)
{
    struct gathered g = described(call, from);
    g.elements = reference_elements(&g.dims);
    if (f64)
        g.f64 = reference_room(g.elements, sizeof *g.f64);
    else
        g.f32 = reference_room(g.elements, sizeof *g.f32);
    if (from.tensor && g.elements)
        tensor_each_row(from.tensor, false, gather_row, &(struct gathering){&g, from.tensor});
    for (uint64_t i = 0; !from.tensor && i < g.elements; i++) {
        double x = from.ref ? reference_value(from.ref, i) : from.number;
        if (f64)
            g.f64[i] = x;
        else
            g.f32[i] = (float)x;
    }
    g.max = largest(&g);
    g.error = g.exact || !dtype_is_float(g.dtype) ? 0 : from.ref->scale + g.max;
    return g;
}

void gathered_free(struct gathered *g)
{
    free(g->f32);
    free(g->f64);
}

void gathered_check_row(const struct ref_call *call, const struct gathered *g, uint64_t columns, bool one)
{
    uint64_t elements = shape_elements(&g->dims);
    if (elements != columns && !(one && elements == 1))
        misuse(call->file, call->line, "%s: '%s' has %" PRIu64 " elements for %" PRIu64 " columns", call->name, g->name,
               elements, columns);
}
