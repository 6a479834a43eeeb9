/* tensor_data.c: what a bench does with tensors: it fills them, looks at elements, loads and saves NumPy's files; over
 * the fabric, which takes simulated time, it writes, reads and maps them.
 *
 * NumPy has no bf16. Such a tensor is saved as '<V2', elements of two bytes, as ml_dtypes does. Loading takes the bits
 * of '<V2' and of 16-bit whole numbers, '<u2', as they are. */
#include "tensor_data.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/dtype.h"
#include "base/output.h"
#include "common/arena.h"
#include "common/path_error.h"
#include "datapass/exec.h"
#include "host.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "npy.h"
#include "kb/arith.h"
#include "oplog/oplog.h"
#include "store/contents.h"
#include "tensor_request.h"

/* Records what the host puts into a tensor. */
static void record_fill(struct call_site call, const char *name, const struct fill *fill)
{
    struct op op = {.kind = OPKIND_memory, .name = name, .pe = OP_OF_HOST, .file = call.file, .line = call.line,
                    .fill = *fill};
    oplog_add(&op);
    tensor_filled(fill->tensor);
}

/* ---- fills */

bool kb_has_data(void)
{
    return oplog_on;
}

static void check_number(struct call_site call, const struct tensor *tensor, const char *what, double number)
{
    uint64_t element = 0;
    if (!isfinite(number))
        misuse_of(call, "tensor '%s': %s is %g; it has to be finite", tensor->name, what, number);
    dtype_from_f64(tensor->dtype, &number, &element, 1);
    if (!isfinite(dtype_value(tensor->dtype, &element)))
        misuse_of(call, "tensor '%s': %s is %g, which %s cannot hold", tensor->name, what, number,
                  dtype_words[tensor->dtype]);
}

void kb_fill_at(kb_tensor tensor, enum kb_fill_kind kind, double x, double y, const char *file, uint32_t line)
{
    struct call_site call = {kind == KB_UNIFORM ? "kb_fill_uniform" : kind == KB_NORMAL ? "kb_fill_normal" : "kb_fill",
                             file, line};
    host_only(call);
    tensor_check(call, tensor);
    check_number(call, tensor, kind == KB_UNIFORM ? "low" : kind == KB_NORMAL ? "the mean" : "the value", x);
    check_number(call, tensor, kind == KB_UNIFORM ? "high" : "the deviation", y);
    if (kind == KB_UNIFORM && !(x <= y && isfinite(y - x)))
        misuse_of(call, "tensor '%s': low is %g, high is %g", tensor->name, x, y);
    record_fill(call, "fill", &(struct fill){.tensor = tensor, .kind = kind, .x = x, .y = y});
}

/* ---- elements as they are now */

static bool is_pending(const struct tensor *tensor, struct tensor_row run)
{
    return contents_pending(run.memory, run.offset, run.count * dtype_bytes[tensor->dtype]);
}

static void compute_pending(struct call_site call, const struct tensor *tensor)
{
    if (!oplog_on)
        misuse_of(call, "tensor '%s' holds results, which --data off does not compute", tensor->name);
    exec_data_pass();
}

struct copying {
    const struct tensor *tensor;
    uint8_t *to;
    bool pending;
};

static void find_pending(struct tensor_row run, void *arg)
{
    struct copying *copying = arg;
    copying->pending |= is_pending(copying->tensor, run);
}

static void copy_row(struct tensor_row run, void *arg)
{
    const struct copying *copying = arg;
    uint64_t size = dtype_bytes[copying->tensor->dtype];
    contents_read(run.memory, run.offset, run.count * size, copying->to + run.position * size);
}

void tensor_data_copy(struct call_site call, const struct tensor *tensor, void *to)
{
    struct copying copying = {tensor, to, false};
    oplog_settle(true, OP_OF_HOST);
    tensor_each_row(tensor, false, find_pending, &copying);
    if (copying.pending)
        compute_pending(call, tensor);
    tensor_each_row(tensor, false, copy_row, &copying);
}

/* Returns the place of an element and of those behind it in its row and shard; of copies, in the first one. */
static struct tensor_row run_from(const struct tensor *tensor, uint64_t position)
{
    uint64_t index[KB_RANK];
    uint32_t last = tensor->dims.rank - 1;
    tensor_index(tensor, position, index);
    for (uint32_t i = 0; i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        uint64_t element = 0, end = shard->view.first[last] + shard->view.shape[last];
        uint32_t axis = 0;
        for (; axis < KB_RANK && index[axis] - shard->view.first[axis] < shard->view.shape[axis]; axis++)
            element += (index[axis] - shard->view.first[axis]) * shard->view.stride[axis];
        if (axis == KB_RANK)
            return (struct tensor_row){shard->memory, shard->offset + element * dtype_bytes[tensor->dtype], position,
                                end - index[last]};
    }
    return (struct tensor_row){0};                      /* not reached: the shards hold every position */
}

static void peek(struct call_site call, kb_tensor tensor, uint64_t position, uint64_t count, double *values)
{
    host_only(call);
    tensor_check(call, tensor);
    if (position > tensor->elements || count > tensor->elements - position)
        misuse_of(call, "tensor '%s' has %" PRIu64 " elements, there is no %" PRIu64, tensor->name, tensor->elements,
                  position < tensor->elements ? tensor->elements : position);
    enum { CHUNK = 512 };
    oplog_settle(true, OP_OF_HOST);
    uint64_t size = dtype_bytes[tensor->dtype];
    for (uint64_t end = position + count; position < end;) {
        struct tensor_row run = run_from(tensor, position);
        run.count = run.count < end - position ? run.count : end - position;
        if (is_pending(tensor, run))
            compute_pending(call, tensor);
        for (uint64_t done = 0, chunk; done < run.count; done += chunk) {
            uint8_t elements[CHUNK * 8];
            chunk = kb_min(run.count - done, CHUNK);
            contents_read(run.memory, run.offset + done * size, chunk * size, elements);
            for (uint64_t i = 0; i < chunk; i++)
                *values++ = dtype_value(tensor->dtype, elements + i * size);
        }
        position += run.count;
    }
}

double kb_peek_at(kb_tensor tensor, uint64_t position, const char *file, uint32_t line)
{
    double value = 0;
    peek((struct call_site){"kb_peek", file, line}, tensor, position, 1, &value);
    return value;
}

void kb_peek_many_at(kb_tensor tensor, uint64_t position, uint64_t count, double *values, const char *file,
                     uint32_t line)
{
    peek((struct call_site){"kb_peek_many", file, line}, tensor, position, count, values);
}

/* ---- NumPy's files */

/* By dtype of a tensor: the kinds of elements, of the same size, that are loaded, and the dtype that is saved. */
static const struct npy_dtype {
    const char *kinds, *written;
} npy_dtypes[DTYPES] = {
    [DTYPE_f32] = {"f", "<f4"}, [DTYPE_f16] = {"f", "<f2"}, [DTYPE_bf16] = {"Vu", "<V2"}, [DTYPE_i32] = {"i", "<i4"},
    [DTYPE_i16] = {"i", "<i2"}, [DTYPE_i8] = {"i", "|i1"},  [DTYPE_u8] = {"ub", "|u1"},
    [DTYPE_f8e4m3] = {"Vu", "|V1"}, [DTYPE_f8e5m2] = {"Vu", "|V1"},
};

static void check_npy(struct call_site call, const struct tensor *tensor, const char *path)
{
    host_only(call);
    tensor_check(call, tensor);
    if (!path || !*path)
        misuse_of(call, "tensor '%s' needs a file's name", tensor->name);
}

static _Noreturn void refuse(struct call_site call, const char *path, uint64_t at, const char *why)
{
    misuse_of(call, "%s: byte %" PRIu64 ": %s", path, at, why);
}

static void check_fit(struct call_site call, const char *path, const struct npy *npy, const struct tensor *tensor)
{
    const struct npy_dtype *dtype = &npy_dtypes[tensor->dtype];
    if (npy->bytes != dtype_bytes[tensor->dtype] || !strchr(dtype->kinds, npy->kind))
        refuse(call, path, npy->descr_at,
               arena_printf("elements are '%s', tensor '%s' is of %s: '%s'; nothing is converted", npy->descr,
                            tensor->name, dtype_words[tensor->dtype], dtype->written));
    if (npy->rank != tensor->dims.rank || memcmp(npy->shape, tensor->dims.size, npy->rank * sizeof *npy->shape))
        refuse(call, path, npy->shape_at,
               arena_printf("the shape is %s, that of tensor '%s' is %s", npy_shape_name(npy->rank, npy->shape),
                            tensor->name, npy_shape_name(tensor->dims.rank, tensor->dims.size)));
}

void kb_load_npy_at(kb_tensor tensor, const char *path, const char *file, uint32_t line)
{
    struct call_site call = {"kb_load_npy", file, line};
    check_npy(call, tensor, path);
    FILE *in = fopen(path, "rb");
    if (!in)
        misuse_of(call, "cannot open %s: %s", path, path_error(path));
    struct npy npy;
    struct npy_error error;
    if (!npy_read_header(in, &npy, &error))
        refuse(call, path, error.at, error.what);
    check_fit(call, path, &npy, tensor);
    void *elements = arena_alloc(tensor->elements, dtype_bytes[tensor->dtype]);
    if (!npy_read_elements(in, &npy, elements, &error))
        refuse(call, path, error.at, error.what);
    fclose(in);
    record_fill(call, "load_npy", &(struct fill){.tensor = tensor, .kind = KB_GIVEN, .given = elements});
}

void kb_save_npy_at(kb_tensor tensor, const char *path, const char *file, uint32_t line)
{
    struct call_site call = {"kb_save_npy", file, line};
    check_npy(call, tensor, path);
    void *elements = malloc(tensor->elements * dtype_bytes[tensor->dtype]);
    if (!elements)
        die("no memory for the %" PRIu64 " elements of tensor '%s':", tensor->elements, tensor->name);
    tensor_data_copy(call, tensor, elements);
    struct output out = output_open(path);
    npy_write_header(out.file, npy_dtypes[tensor->dtype].written, tensor->dims.rank, tensor->dims.size);
    fwrite(elements, dtype_bytes[tensor->dtype], tensor->elements, out.file);
    output_close(&out);
    free(elements);
}

/* ---- over the fabric: memory requests */

static void check_request(struct call_site call, const struct tensor *tensor)
{
    host_only(call);
    tensor_check(call, tensor);
    host_check_pes(call, tensor->place.pes);
    host_check_launches(call);
}

static kb_request write_begins(struct call_site call, kb_tensor tensor, const void *data)
{
    check_request(call, tensor);
    if (data)
        record_fill(call, "host_write", &(struct fill){.tensor = tensor, .kind = KB_GIVEN, .given = data});
    return tensor_request_begin(call, tensor, true);
}

static kb_request read_begins(struct call_site call, kb_tensor tensor, void *data)
{
    check_request(call, tensor);
    if (data)
        tensor_data_copy(call, tensor, data);
    return tensor_request_begin(call, tensor, false);
}

void kb_write_at(kb_tensor tensor, const void *data, const char *file, uint32_t line)
{
    struct call_site call = {"kb_write", file, line};
    tensor_request_wait(call, write_begins(call, tensor, data));
}

void kb_read_at(kb_tensor tensor, void *data, const char *file, uint32_t line)
{
    struct call_site call = {"kb_read", file, line};
    tensor_request_wait(call, read_begins(call, tensor, data));
}

kb_request kb_write_async_at(kb_tensor tensor, const void *data, const char *file, uint32_t line)
{
    return write_begins((struct call_site){"kb_write_async", file, line}, tensor, data);
}

kb_request kb_read_async_at(kb_tensor tensor, void *data, const char *file, uint32_t line)
{
    return read_begins((struct call_site){"kb_read_async", file, line}, tensor, data);
}

void kb_wait_request_at(kb_request request, const char *file, uint32_t line)
{
    struct call_site call = {"kb_wait", file, line};
    host_only(call);
    if (!request)
        misuse_of(call, "there is no request to wait for");
    tensor_request_wait(call, request);
}

/* ---- over the fabric: maps */

static int compare_pes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static uint32_t *in_rank_order(struct call_site call, struct kb_pes pes)
{
    if (pes.count == 0)
        misuse_of(call, "there is no PE");
    host_check_pes(call, pes);
    uint32_t *sorted = arena_alloc(pes.count, sizeof *sorted);
    memcpy(sorted, pes.pe, pes.count * sizeof *sorted);
    qsort(sorted, pes.count, sizeof *sorted, compare_pes);
    return sorted;
}

static uint64_t count_pages(struct call_site call, uint64_t va, uint64_t bytes)
{
    uint64_t pages;
    const char *wrong = map_pages(va, bytes, &pages);
    if (wrong)
        misuse_of(call, "%s", wrong);
    return pages;
}

static const struct shard *shard_of_pe(struct call_site call, const struct tensor *tensor, uint32_t pe)
{
    if (tensor->place.split == KB_WHOLE)
        return tensor->shard;
    for (uint32_t i = 0; i < tensor->shards; i++)
        if (tensor->shard[i].pe == pe)
            return &tensor->shard[i];
    misuse_of(call, "tensor '%s' is not placed with %s", tensor->name, pe_name(&kb_pe[pe]));
}

void kb_map_at(struct kb_pes pes, uint64_t va, kb_tensor tensor, const char *file, uint32_t line)
{
    struct call_site call = {"kb_map", file, line};
    host_only(call);
    tensor_check(call, tensor);
    uint32_t *sorted = in_rank_order(call, pes);
    uint64_t *addresses = arena_alloc(pes.count, sizeof *addresses), most = 0;
    for (uint32_t i = 0; i < pes.count; i++) {
        const struct shard *shard = shard_of_pe(call, tensor, sorted[i]);
        uint64_t bytes = shard->elements * dtype_bytes[tensor->dtype];
        addresses[i] = shard->view.addr;
        most = bytes > most ? bytes : most;
    }
    uint64_t pages = count_pages(call, va, most);
    host_check_launches(call);
    fanout_wait(map_request_submit(sorted, addresses, pes.count, va, pages));
}

void kb_unmap_at(struct kb_pes pes, uint64_t va, uint64_t bytes, const char *file, uint32_t line)
{
    struct call_site call = {"kb_unmap", file, line};
    host_only(call);
    uint32_t *sorted = in_rank_order(call, pes);
    uint64_t pages = count_pages(call, va, bytes);
    if (pages == 0)
        misuse_of(call, "there are no bytes to unmap");
    host_check_launches(call);
    fanout_wait(map_request_submit(sorted, NULL, pes.count, va, pages));
}
