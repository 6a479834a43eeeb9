/* given.c: references whose values are given, by the bench or a file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "common/path_error.h"
#include "host/npy.h"
#include "kb/arith.h"
#include "reference.h"

kb_ref kb_ref_given_at(const double *values, struct kb_dims dims, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_given", file, line};
    if ((!values && kb_has_data()) || dims.rank < 1 || dims.rank > KB_RANK)
        misuse_of(call, "values and a shape of 1 to %d axes are needed", KB_RANK);
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < dims.rank; axis++) {
        if (dims.size[axis] == 0)
            misuse_of(call, "axis %u has no elements", (unsigned)axis);
        if (__builtin_mul_overflow(elements, dims.size[axis], &elements) || elements >> 60)
            misuse_of(call, "2^60 elements or more");
    }
    reference_begin(call);
    elements = reference_elements(&dims);
    struct reference *ref = reference_new(dims, DTYPE_f32, reference_alloc(elements, sizeof *values), NULL);
    ref->given = true;
    if (elements)
        memcpy(ref->value, values, elements * sizeof *values);
    return reference_end(ref);
}

static _Noreturn void refuse_file(struct call_site call, const char *path, struct npy_error error)
{
    misuse_of(call, "%s: byte %" PRIu64 ": %s", path, error.at, error.what);
}

static void check_file(struct call_site call, const char *path, const struct npy *npy)
{
    if (npy->rank < 1 || npy->rank > KB_RANK || npy->elements == 0)
        refuse_file(call, path, (struct npy_error){npy->shape_at, "a reference has elements, and 1 to 4 axes"});
    if ((npy->kind == 'V' && npy->bytes != 2) || (npy->kind == 'f' && npy->bytes == 1))
        refuse_file(call, path, (struct npy_error){npy->descr_at, "there are no such numbers"});
}

/* An element of a file, in this machine's byte order; raw bytes are bf16. */
static double file_element(char kind, uint32_t bytes, const void *at)
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

kb_ref kb_ref_npy_at(const char *path, const char *file, uint32_t line)
{
    struct call_site call = {"kb_ref_npy", file, line};
    reference_begin(call);
    FILE *in = path ? fopen(path, "rb") : NULL;
    if (!in)
        misuse_of(call, "cannot open %s: %s", path ? path : "no file", path ? path_error(path) : "NULL");
    struct npy npy;
    struct npy_error error;
    if (!npy_read_header(in, &npy, &error))
        refuse_file(call, path, error);
    check_file(call, path, &npy);
    struct kb_dims dims = {.rank = npy.rank};
    memcpy(dims.size, npy.shape, npy.rank * sizeof *npy.shape);
    struct reference *ref = reference_new(dims, DTYPE_f32, NULL, NULL);
    ref->given = true;
    uint8_t *elements = reference_alloc(ref->elements, npy.bytes);
    if (ref->elements && !npy_read_elements(in, &npy, elements, &error))
        refuse_file(call, path, error);
    fclose(in);
    ref->value = reference_alloc(ref->elements, sizeof *ref->value);
    for (uint64_t i = 0; i < ref->elements; i++)
        ref->value[i] = file_element(npy.kind, npy.bytes, elements + i * npy.bytes);
    free(elements);
    return reference_end(ref);
}
