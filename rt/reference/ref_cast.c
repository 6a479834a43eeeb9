/* ref_cast.c: references of conversions, and those whose values are given: by the host, or in a file of NumPy's. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/fail.h"
#include "host/npy.h"
#include "machine/tiling.h"
#include "reference.h"

/* ---- conversions: to integers they saturate */

/* The value that a dtype has for one. */
static double stored(enum dtype dtype, double value)
{
    uint32_t element;
    dtype_from_f64(dtype, &value, &element, 1);
    return dtype_value(dtype, &element);
}

kb_ref kb_ref_cast_at(struct kb_values x, enum kb_dtype dtype, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_cast", file, line};
    if ((unsigned)dtype >= KB_DTYPES)
        misuse(file, line, "kb_ref_cast: there is no such dtype");
    ref_begin(&call);
    struct gathered g = gather(&call, x, true);
    for (uint64_t i = 0; i < g.elements; i++)
        g.f64[i] = stored((enum dtype)dtype, g.f64[i]);
    struct reference *ref = reference_computed(g.dims, (enum dtype)dtype, g.f64, g.error);
    ref->exact = g.exact;
    return ref_end(ref);
}

/* The quotient is rounded to f32 first: where it is next to a half, that decides. */
kb_ref kb_ref_quant_at(struct kb_values x, struct kb_values scale, enum kb_dtype dtype, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_quant", file, line};
    if ((unsigned)dtype >= KB_DTYPES || dtype_is_float((enum dtype)dtype))
        misuse(file, line, "kb_ref_quant: quant gives integers");
    ref_begin(&call);
    struct gathered g = gather(&call, x, true), by = gather(&call, scale, true);
    uint64_t columns = g.dims.size[g.dims.rank - 1];
    gathered_check_row(&call, &by, columns, true);
    for (uint64_t i = 0; i < g.elements; i++) {
        double divisor = by.f64[by.elements == 1 ? 0 : i % columns];
        g.f64[i] = stored((enum dtype)dtype, (double)((float)g.f64[i] / (float)divisor));
    }
    struct reference *ref = reference_computed(g.dims, (enum dtype)dtype, g.f64, g.error);
    ref->exact = g.exact && by.exact;
    gathered_free(&by);
    return ref_end(ref);
}

/* ---- given values */

kb_ref kb_ref_given_at(const double *values, struct kb_dims dims, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_given", file, line};
    if ((!values && kb_has_data()) || dims.rank < 1 || dims.rank > KB_RANK)
        misuse(file, line, "kb_ref_given: values and a shape of 1 to %d axes are needed", KB_RANK);
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < dims.rank; axis++) {
        if (dims.size[axis] == 0)
            misuse(file, line, "kb_ref_given: axis %u has no elements", (unsigned)axis);
        if (__builtin_mul_overflow(elements, dims.size[axis], &elements) || elements >> 60)
            misuse(file, line, "kb_ref_given: 2^60 elements or more");
    }
    ref_begin(&call);
    struct reference *ref = reference_new(dims, DTYPE_f32);
    ref->f64 = reference_room(ref->elements, sizeof *ref->f64);
    if (ref->elements)
        memcpy(ref->f64, values, ref->elements * sizeof *values);
    return ref_end(ref);
}

/* ---- a file */

static _Noreturn void refuse(const struct ref_call *call, const char *path, struct npy_error error)
{
    misuse(call->file, call->line, "%s: %s: byte %" PRIu64 ": %s", call->name, path, error.at, error.what);
}

/* An element of `bytes` bytes, in this machine's order. */
static double element(char kind, uint32_t bytes, const void *at)
{
    if (kind == 'f')
        return bytes == 8 ? *(const double *)at : dtype_value(bytes == 4 ? DTYPE_f32 : DTYPE_f16, at);
    if (kind == 'i')
        return bytes == 8 ? (double)*(const int64_t *)at
                          : dtype_value(bytes == 4 ? DTYPE_i32 : bytes == 2 ? DTYPE_i16 : DTYPE_i8, at);
    uint64_t value = 0;                                 /* u and b */
    memcpy(&value, at, bytes);
    return kind == 'V' ? dtype_value(DTYPE_bf16, at) : (double)value;
}

static void check_file(const struct ref_call *call, const char *path, const struct npy *npy)
{
    if (npy->rank < 1 || npy->rank > KB_RANK || npy->elements == 0)
        refuse(call, path, (struct npy_error){npy->shape_at, "a reference has elements, and 1 to 4 axes"});
    if ((npy->kind == 'V' && npy->bytes != 2) || (npy->kind == 'f' && npy->bytes == 1))
        refuse(call, path, (struct npy_error){npy->descr_at, "there are no such numbers"});
}

kb_ref kb_ref_npy_at(const char *path, const char *file, uint32_t line)
{
    struct ref_call call = {"kb_ref_npy", file, line};
    ref_begin(&call);
    FILE *in = path ? fopen(path, "rb") : NULL;
    if (!in)
        misuse(file, line, "kb_ref_npy: cannot open %s: %s", path ? path : "no file", path ? strerror(errno) : "NULL");
    struct npy npy;
    struct npy_error error;
    if (!npy_read_header(in, &npy, &error))
        refuse(&call, path, error);
    check_file(&call, path, &npy);
    struct kb_dims dims = {.rank = npy.rank};
    memcpy(dims.size, npy.shape, npy.rank * sizeof *npy.shape);
    struct reference *ref = reference_new(dims, DTYPE_f32);
    uint8_t *elements = reference_room(ref->elements, npy.bytes);
    if (ref->elements && !npy_read_elements(in, &npy, elements, &error))
        refuse(&call, path, error);
    fclose(in);
    ref->f64 = reference_room(ref->elements, sizeof *ref->f64);
    for (uint64_t i = 0; i < ref->elements; i++)
        ref->f64[i] = element(npy.kind, npy.bytes, elements + i * npy.bytes);
    free(elements);
    return ref_end(ref);
}
