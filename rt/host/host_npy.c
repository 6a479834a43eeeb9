/* host_npy.c: tensors from and to NumPy's files.
 *
 * NumPy has no bf16. A tensor of it is written as '<V2', elements of two bytes, as ml_dtypes does; from there and from
 * 16-bit whole numbers, '<u2', its bits are taken as they are. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "host_program.h"
#include "look.h"
#include "common/fail.h"
#include "npy.h"
#include "oplog/oplog.h"
#include "base/output.h"
#include "machine/tiling.h"
#include "common/arena.h"
#include "common/diag.h"

/* The dtypes of a file that fit a tensor's: kinds in the order of preference, all of the same bytes. */
static const struct fit {
    const char *kinds, *written;
} fits[DTYPES] = {
    [DTYPE_f32] = {"f", "<f4"},  [DTYPE_f16] = {"f", "<f2"}, [DTYPE_bf16] = {"Vu", "<V2"}, [DTYPE_i32] = {"i", "<i4"},
    [DTYPE_i16] = {"i", "<i2"}, [DTYPE_i8] = {"i", "|i1"},  [DTYPE_u8] = {"ub", "|u1"},
};

/* The call that is being worked off. */
struct call {
    const char *name, *path, *file;
    uint32_t line;
};

static _Noreturn void refuse(const struct call *call, struct npy_error error)
{
    misuse(call->file, call->line, "%s: %s: byte %" PRIu64 ": %s", call->name, call->path, error.at, error.what);
}

static void check(const struct call *call, const struct tensor *tensor)
{
    host_only(call->name, call->file, call->line);
    tensor_check(tensor, call->name, call->file, call->line);
    if (!call->path || !*call->path)
        misuse(call->file, call->line, "%s: tensor '%s' needs a file's name", call->name, tensor->name);
}

/* ---- loading */

static void check_fit(const struct call *call, const struct npy *npy, const struct tensor *tensor)
{
    const struct fit *fit = &fits[tensor->dtype];
    if (npy->bytes != dtype_bytes[tensor->dtype] || !strchr(fit->kinds, npy->kind))
        refuse(call, (struct npy_error){npy->descr_at, arena_printf("elements are '%s', tensor '%s' is of %s: '%s'; "
                                        "nothing is converted", npy->descr, tensor->name, dtype_words[tensor->dtype],
                                        fit->written)});
    if (npy->rank != tensor->dims.rank || memcmp(npy->shape, tensor->dims.size, npy->rank * sizeof *npy->shape))
        refuse(call, (struct npy_error){npy->shape_at, arena_printf("the shape is %s, that of tensor '%s' is %s",
                                        npy_shape_name(npy->rank, npy->shape), tensor->name,
                                        npy_shape_name(tensor->dims.rank, tensor->dims.size))});
}

void kb_load_npy_at(kb_tensor tensor, const char *path, const char *file, uint32_t line)
{
    struct call call = {"kb_load_npy", path, file, line};
    check(&call, tensor);
    FILE *in = fopen(path, "rb");
    if (!in)
        misuse(file, line, "kb_load_npy: cannot open %s: %s", path, strerror(errno));
    struct npy npy;
    struct npy_error error;
    if (!npy_read_header(in, &npy, &error))
        refuse(&call, error);
    check_fit(&call, &npy, tensor);
    void *elements = arena_alloc(tensor->elements, dtype_bytes[tensor->dtype]);
    if (!npy_read_elements(in, &npy, elements, &error))
        refuse(&call, error);
    fclose(in);
    struct op op = {.kind = OPKIND_memory, .name = "load_npy", .pe = OP_OF_HOST, .file = file, .line = line,
                    .fill = {.tensor = tensor, .kind = KB_GIVEN, .given = elements}};
    oplog_add(&op);
}

/* ---- saving */

void kb_save_npy_at(kb_tensor tensor, const char *path, const char *file, uint32_t line)
{
    struct call call = {"kb_save_npy", path, file, line};
    check(&call, tensor);
    void *elements = malloc(tensor->elements * dtype_bytes[tensor->dtype]);
    if (!elements)
        die("no memory for the %" PRIu64 " elements of tensor '%s':", tensor->elements, tensor->name);
    look(tensor, elements, call.name, file, line);
    struct output out = output_open(path);
    npy_write_header(out.file, fits[tensor->dtype].written, tensor->dims.rank, tensor->dims.size);
    fwrite(elements, dtype_bytes[tensor->dtype], tensor->elements, out.file);
    output_close(&out);
    free(elements);
}
