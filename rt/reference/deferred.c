/* deferred.c: panels of references that are computed when their values are needed. */
#include "deferred.h"

#include <stdlib.h>

#include "base/progress.h"
#include "base/threads.h"
#include "kb/arith.h"

void reference_defer(struct reference *ref, compute_panel *compute, void (*release)(void *from), void *from)
{
    enum { PANEL_ELEMENTS = 1 << 16 };
    ref->compute = compute;
    ref->release = release;
    ref->from = from;
    ref->matrix_rows = ref->rows;
    ref->panel_rows = kb_max(1, PANEL_ELEMENTS / ref->columns);
}

uint64_t deferred_panels(const struct reference *ref)
{
    return ref->rows ? ref->rows / ref->matrix_rows * kb_ceil_div(ref->matrix_rows, ref->panel_rows) : 0;
}

struct row_panel deferred_panel(const struct reference *ref, uint64_t i)
{
    uint64_t rows = ref->matrix_rows, of_one = kb_ceil_div(rows, ref->panel_rows), row = i % of_one * ref->panel_rows;
    return (struct row_panel){i / of_one * rows + row, kb_min(ref->panel_rows, rows - row)};
}

struct evaluation {
    const struct reference *ref;
    double *value;
    float *error;
};

static void evaluate_panel(uint64_t i, unsigned thread, void *arg)
{
    const struct evaluation *to = arg;
    const struct reference *ref = to->ref;
    struct row_panel panel = deferred_panel(ref, i);
    uint64_t first = panel.row * ref->columns;
    ref->compute(ref, panel, to->value + first, to->error ? to->error + first : NULL);
    if (thread == 0)
        progress("reference", i, deferred_panels(ref));
}

void deferred_evaluate(struct reference *ref)
{
    if (ref->raw) {
        ref->value = reference_scratch(ref->elements, sizeof *ref->value);
        dtype_to_f64(ref->dtype, ref->raw, ref->value, ref->elements);
        free(ref->raw);
        ref->raw = NULL;
    }
    if (!ref->compute)
        return;
    struct evaluation evaluation = {ref, reference_alloc(ref->elements, sizeof(double)), reference_errors(ref->elements, !ref->exact)};
    threads_run(deferred_panels(ref), evaluate_panel, &evaluation);
    progress_end();
    ref->value = evaluation.value;
    ref->error = evaluation.error;
    deferred_drop(ref);
}

void deferred_drop(struct reference *ref)
{
    if (ref->of)
        ref->of->epilogued = NULL;
    if (ref->compute)
        ref->release(ref->from);
    ref->of = NULL;
    ref->product = NULL;
    ref->compute = NULL;
}
