/* expect.c: expectations: has tensors compared with references, keeps the verdicts, and reports them. */
#include "expect.h"

#include <inttypes.h>
#include <math.h>

#include "base/dtype.h"
#include "base/stopwatch.h"
#include "common/arena.h"
#include "compare.h"
#include "datapass/exec.h"
#include "host/host.h"
#include "host/npy.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "oplog/oplog.h"
#include "races/race.h"
#include "projection.h"
#include "reference.h"
#include "store/written.h"

struct verification *verifications;
void (*expect_compared)(const struct verification *v);

/* Finds the writer of the first wrong element, if that is in this row. */
static void find_writer(struct tensor_row run, void *arg)
{
    struct verification *v = arg;
    if (v->position < run.position || v->position - run.position >= run.count || v->writer)
        return;
    uint64_t at = run.offset + (v->position - run.position) * dtype_bytes[v->tensor->dtype];
    v->writer = op_ref_hold(race_writer(run.memory, at));
}

static void find_overwriter(struct verification *v)
{
    struct written_byte at;
    if (written_over(v->overwritten, &at))
        v->writer = op_ref_hold(race_writer(at.memory, at.offset));
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
    reference_clock_start();
    compare_tensor(v, ref);
    v->unwritten = launches && !written_any(tensor);
    v->overwritten = ref->overwritten;
    if (v->unwritten && v->verdict != VERDICT_WRONG)
        v->verdict = VERDICT_UNWRITTEN;
    else if (v->overwritten && v->verdict != VERDICT_WRONG)
        v->verdict = VERDICT_OVERWRITTEN;
    if (v->verdict == VERDICT_WRONG && races_on)
        tensor_each_row(tensor, false, find_writer, v);
    if (v->verdict == VERDICT_OVERWRITTEN && races_on)
        find_overwriter(v);
    if (v->verdict == VERDICT_OK)
        written_known(tensor);
    if (expect_compared)
        expect_compared(v);
    reference_left();
    phase_leave(before);
}

bool verification_failed(void)
{
    for (const struct verification *v = verifications; v; v = v->next)
        if (v->verdict != VERDICT_OK && v->verdict != VERDICT_SKIPPED)
            return true;
    return false;
}

double verification_error(void)
{
    double most = NAN;
    for (const struct verification *v = verifications; v; v = v->next)
        if (v->verdict != VERDICT_SKIPPED)
            most = fmax(most, v->max_error);            /* fmax ignores a NAN */
    return most;
}

/* ---- what is said */

static void print_writer(FILE *out, const char *what, const struct op_ref *writer)
{
    if (writer)
        fprintf(out, "  %s by %s, command %" PRIu32 " of kernel %s on %s, called at %s:%" PRIu32 "\n", what, writer->name,
                writer->command, writer->kernel, pe_name(&kb_pe[writer->pe]), writer->file, writer->line);
}

static void print_first_wrong(FILE *out, const struct verification *v)
{
    char index[96];
    tensor_index_name(v->tensor, v->position, index);
    fprintf(out, "  %" PRIu64 " of %" PRIu64 " elements are wrong; the first is ", v->wrong, v->tensor->elements);
    fprintf(out, "%s%s: got %.9g, expected %.9g, error %.3g, allowed %.3g\n", v->tensor->name, index, v->got,
            v->expected, fabs(v->got - v->expected), v->allowed);
    if (v->unwritten)
        fprintf(out, "  no kernel has written the tensor\n");
    print_writer(out, "it was written", v->writer);
    if (v->overwritten)
        fprintf(out, "  the reference was made from %s, which kernels had overwritten\n", v->overwritten->name);
}

static void print_verification(FILE *out, const struct verification *v)
{
    static const char *const words[] = {[VERDICT_OK] = "verified", [VERDICT_WRONG] = "WRONG",
                                        [VERDICT_WEAK] = "TOO WEAK", [VERDICT_ZEROS] = "NOT VERIFIED",
                                        [VERDICT_UNWRITTEN] = "NOT VERIFIED", [VERDICT_OVERWRITTEN] = "NOT VERIFIED"};
    if (v->verdict == VERDICT_SKIPPED) {
        fprintf(out, "not checked  %s: --data off\n", v->tensor->name);
        return;
    }
    fprintf(out, "%-12s %s: ", words[v->verdict], v->tensor->name);
    if (v->verdict == VERDICT_ZEROS) {
        fprintf(out, "it holds nothing but zeros, as expected; a memory that no kernel writes does too. Choose data "
                "with another result\n");
        return;
    }
    if (v->verdict == VERDICT_UNWRITTEN) {
        fprintf(out, "no kernel has written it; it holds what is expected without them\n");
        return;
    }
    if (v->verdict == VERDICT_OVERWRITTEN) {
        fprintf(out, "it holds what is expected of %s as kernels had overwritten it. Make the reference before the launch, or "
                "after %s is verified\n", v->overwritten->name, v->overwritten->name);
        print_writer(out, "that was overwritten", v->writer);
        return;
    }
    fprintf(out, "largest error %.3g, %.2g times its bound; |error| / |expected| %.2g; power %.2g %%\n", v->max_error,
            v->max_share, v->relative, 100 * v->power);
    if (v->sampled)
        fprintf(out, "             by %d random projections of each %d columns, and %" PRIu64 " elements one by one: "
                "a tile that is\n             off by the RMS is missed with a probability of %.1g\n",
                PROJECTION_VECTORS, PROJECTION_COLUMNS, v->sampled, v->missed);
    if (v->verdict == VERDICT_WEAK)
        fprintf(out, "  the bounds of its elements reach %.2g %% of their RMS, %.3g: errors below that are not found.\n"
                "  Compare with a reference of fewer steps (kb_ref_exact of one that is verified), or better scaled "
                "data.\n", 100 * v->power, v->rms);
    if (v->verdict == VERDICT_WRONG)
        print_first_wrong(out, v);
}

void verifications_print(FILE *out)
{
    for (const struct verification *v = verifications; v; v = v->next)
        print_verification(out, v);
}

static void write_first_wrong(struct json *json, const struct verification *v)
{
    char index[96];
    tensor_index_name(v->tensor, v->position, index);
    json_object(json, "first_wrong");
    json_string(json, "index", index);
    json_u64(json, "position", v->position);
    json_double(json, "got", v->got);
    json_double(json, "expected", v->expected);
    json_double(json, "allowed", v->allowed);
    if (v->writer) {
        json_string(json, "op", v->writer->name);
        json_string(json, "kernel", v->writer->kernel);
        json_string(json, "file", v->writer->file);
        json_u64(json, "line", v->writer->line);
    }
    json_object_end(json);
    json_u64(json, "wrong", v->wrong);
}

/* What an element is allowed: the rounding of what is stored and a multiple of the standard deviation of its error, or
 * all errors; or plain tolerances. */
static void write_tolerance(struct json *json, enum dtype dtype)
{
    static const char *const words[] = {[ERRORS_STATISTICAL] = "bounds", [ERRORS_WORST] = "worst",
                                        [ERRORS_PLAIN] = "plain"};
    json_object(json, "tolerance");
    json_string(json, "kind", words[error_mode]);
    if (error_mode == ERRORS_STATISTICAL)
        json_double(json, "margin", ERROR_MARGIN);
    if (error_mode == ERRORS_PLAIN) {
        json_double(json, "atol", dtype_tolerance(dtype));
        json_double(json, "rtol", dtype_tolerance(dtype));
    }
    json_object_end(json);
}

static void write_verification(struct json *json, const struct verification *v)
{
    static const char *const words[] = {
        [VERDICT_OK] = "ok",       [VERDICT_WRONG] = "wrong",     [VERDICT_WEAK] = "too weak",
        [VERDICT_ZEROS] = "zeros", [VERDICT_UNWRITTEN] = "unwritten", [VERDICT_OVERWRITTEN] = "overwritten",
        [VERDICT_SKIPPED] = "skipped",
    };
    json_object(json, NULL);
    json_string(json, "tensor", v->tensor->name);
    json_string(json, "status", words[v->verdict]);
    if (v->verdict != VERDICT_SKIPPED) {
        json_bool(json, "written", !v->unwritten);
        json_double(json, "max_err", v->max_error);
        json_double(json, "max_share", v->max_share);
        json_double(json, "relative", v->relative);
        json_double(json, "power", v->power);
        json_double(json, "rms", v->rms);
        write_tolerance(json, v->tensor->dtype);
    }
    if (v->overwritten)
        json_string(json, "overwritten", v->overwritten->name);
    if (v->sampled) {
        json_object(json, "projections");
        json_u64(json, "vectors", PROJECTION_VECTORS);
        json_u64(json, "columns", PROJECTION_COLUMNS);
        json_u64(json, "sampled", v->sampled);
        json_double(json, "missed", v->missed);
        json_object_end(json);
    }
    if (v->verdict == VERDICT_WRONG)
        write_first_wrong(json, v);
    else
        json_null(json, "first_wrong");
    json_object_end(json);
}

void verifications_write(struct json *json)
{
    json_array(json, "verify");
    for (const struct verification *v = verifications; v; v = v->next)
        write_verification(json, v);
    json_array_end(json);
}
