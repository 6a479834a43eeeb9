/* expect.c: expectations: compares tensors with references, element by element, and keeps the verdicts. */
#include "expect.h"

#include <inttypes.h>
#include <math.h>

#include "base/dtype.h"
#include "base/stopwatch.h"
#include "common/arena.h"
#include "datapass/exec.h"
#include "host/host.h"
#include "host/npy.h"
#include "machine/tiling.h"
#include "oplog/oplog.h"
#include "races/race.h"
#include "reference.h"

struct verification *verifications;

/* The distance between two values: 0 between equal infinities and between two NaN, infinite between either of these and
 * any other value. */
static double error_of(double got, double expected)
{
    if (got == expected || (isnan(got) && isnan(expected)))
        return 0;
    double error = fabs(got - expected);
    return isnan(error) ? INFINITY : error;
}

struct comparison {
    struct verification *verification;
    const struct reference *ref;
};

static void compare(struct verification *v, uint64_t position, double got, double expected)
{
    enum dtype dtype = v->tensor->dtype;
    double held = dtype_in_range(dtype, expected), error = error_of(got, held);
    double allowed = v->atol * v->scale + v->rtol * fabs(expected);
    bool close = dtype_close(dtype, got, expected, allowed);
    if (error > v->max_error && (!close || isfinite(error)))
        v->max_error = error;                           /* not the distance of a large number to infinity */
    if (close)
        return;
    if (v->wrong++ == 0 || position < v->position) {
        v->position = position;
        v->got = got;
        v->expected = held;
        v->allowed = allowed;
    }
}

static void compare_row(struct tensor_row run, void *arg)
{
    const struct comparison *c = arg;
    enum dtype dtype = c->verification->tensor->dtype;
    uint64_t size = dtype_bytes[dtype];
    store_reach(IMAGE_NOW, run.memory, run.offset + run.count * size);
    const uint8_t *at = store_at(IMAGE_NOW, run.memory, run.offset);
    for (uint64_t i = 0; i < run.count; i++) {
        double expected = reference_value(c->ref, run.position + i), got = dtype_value(dtype, at + i * size);
        double error = error_of(got, expected);
        if (error <= c->verification->max_error && error <= c->verification->atol * c->verification->scale)
            continue;                                   /* the quick way for nearly all */
        if (c->ref->wraps && !dtype_is_float(dtype))
            expected = dtype_wrapped(dtype, (int64_t)expected);
        compare(c->verification, run.position + i, got, expected);
    }
}

/* Finds the writer of the first wrong element, if that is in this row. */
static void find_writer(struct tensor_row run, void *arg)
{
    struct verification *v = arg;
    if (v->position < run.position || v->position - run.position >= run.count || v->writer)
        return;
    uint64_t at = run.offset + (v->position - run.position) * dtype_bytes[v->tensor->dtype];
    v->writer = op_ref_hold(race_writer(run.memory, at));
}

/* Whether two shapes are equal apart from axes of size 1. */
static bool same_shape(const struct kb_dims *a, const struct kb_dims *b)
{
    uint32_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->rank && a->size[i] == 1)
            i++;
        while (j < b->rank && b->size[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->size[i] != b->size[j])
            return false;
    }
}

void kb_expect_close_at(kb_tensor tensor, kb_ref ref, const char *file, uint32_t line)
{
    struct call_site call = {"kb_expect_close", file, line};
    host_only(call);
    tensor_check(call, tensor);
    if (!ref && oplog_on)
        misuse_of(call, "there is no reference for tensor '%s'", tensor->name);
    struct verification *v = arena_alloc(1, sizeof *v);
    struct verification **last = &verifications;
    while (*last)
        last = &(*last)->next;
    *last = v;
    v->tensor = tensor;
    v->verdict = VERDICT_SKIPPED;
    if (!ref)
        return;
    if (!same_shape(&tensor->dims, &ref->dims))
        misuse_of(call, "the reference is %s, tensor '%s' is %s", npy_shape_name(ref->dims.rank, ref->dims.size),
                  tensor->name, npy_shape_name(tensor->dims.rank, tensor->dims.size));
    if (!oplog_on)
        return;
    exec_data_pass();
    unsigned before = phase_enter(PHASE_reference);
    double began = clock_seconds();
    bool equal = ref->exact && ref->dtype == tensor->dtype;
    v->atol = v->rtol = equal ? 0 : dtype_tolerance(tensor->dtype);
    v->scale = ref->scale;
    struct comparison comparison = {v, ref};
    tensor_each_row(tensor, true, compare_row, &comparison);
    v->verdict = v->wrong ? VERDICT_WRONG : VERDICT_OK;
    if (v->wrong && races_on)
        tensor_each_row(tensor, false, find_writer, v);
    reference_seconds += clock_seconds() - began;
    phase_leave(before);
}

bool verification_failed(void)
{
    for (const struct verification *v = verifications; v; v = v->next)
        if (v->verdict == VERDICT_WRONG)
            return true;
    return false;
}
