/* fill.c: values that the host writes into a tensor.
 *
 * A random value is a hash of the run's seed, the tensor's number and the element's position, so it depends neither on
 * where the element lies nor on the order of writing. */
#include "fill.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/progress.h"
#include "base/threads.h"
#include "base/vector.h"
#include "common/array.h"
#include "kb/arith.h"
#include "store.h"

enum { CHUNK = 512 };

uint64_t fill_seed;

struct writer {
    const struct fill *fill;
    uint64_t key;
};

/* The finaliser of SplitMix64: every bit of x changes half of the bits. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The bits below 2^53 as a double: the halves become fractions of 2^84 and 2^52, which are then subtracted. */
static double whole(uint64_t bits)
{
    union {
        uint64_t bits;
        double value;
    } low = {(bits & UINT32_MAX) | UINT64_C(0x4330000000000000)}, high = {bits >> 32 | UINT64_C(0x4530000000000000)};
    return high.value - (0x1p84 + 0x1p52) + low.value;
}

/* In [0, 1). */
static double unit_of(uint64_t x)
{
    return whole(mix(x) >> 11) * 0x1p-53;
}

/* Element i of a tensor. */
static const uint64_t STEP = UINT64_C(0xd1342543de82ef95);

static double unit(uint64_t key, uint64_t i)
{
    return unit_of(key ^ i * STEP);
}

VECTOR_BODY void uniform_body(uint64_t key, uint64_t position, double low, double width, double *to, size_t count)
{
    uint64_t step = position * STEP;                    /* added up, because vectors of 64 bits are slow to multiply */
    for (size_t i = 0; i < count; i++, step += STEP)
        to[i] = low + width * unit_of(key ^ step);
}
VECTOR_FUNCTION(uniform, (uint64_t key, uint64_t position, double low, double width, double *to, size_t count),
                (key, position, low, width, to, count))

VECTOR_BODY void round_down_body(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = floor(values[i]);
}
VECTOR_FUNCTION(round_down, (double *values, size_t count), (values, count))

static double normal(uint64_t key, uint64_t i)
{
    double u = 1 - unit(key, 2 * i), v = unit(key, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static void random_values(const struct writer *w, uint64_t position, double *to, size_t count)
{
    const struct fill *f = w->fill;
    if (f->kind == KB_NORMAL) {
        for (size_t i = 0; i < count; i++)
            to[i] = f->x + f->y * normal(w->key, position + i);
        return;
    }
    uniform(w->key, position, f->x, f->y - f->x, to, count);
    if (!dtype_is_float(f->tensor->dtype))
        round_down(to, count);
}

static struct writer writer_of(const struct fill *fill)
{
    return (struct writer){fill, mix(fill_seed ^ mix(fill->tensor->number))};
}

/* Elements at consecutive positions, which `to` need not be aligned for. */
static void write_elements(const struct writer *w, uint64_t position, uint64_t count, uint8_t *to)
{
    enum dtype dtype = w->fill->tensor->dtype;
    uint64_t size = dtype_bytes[dtype];
    double values[CHUNK];
    uint64_t elements[CHUNK];
    if (w->fill->kind == KB_GIVEN) {
        memcpy(to, (const uint8_t *)w->fill->given + position * size, count * size);
        return;
    }
    bool constant = w->fill->kind == KB_CONSTANT;
    for (uint64_t i = 0; constant && i < CHUNK; i++)
        values[i] = w->fill->x;
    for (uint64_t done = 0; done < count; done += CHUNK) {
        uint64_t chunk = kb_min(count - done, CHUNK);
        if (!constant)
            random_values(w, position + done, values, chunk);
        if (!constant || done == 0)
            dtype_from_f64(dtype, values, elements, chunk);
        memcpy(to + done * size, elements, chunk * size);
    }
}

/* ---- into the store, on all threads */

enum { BATCH_ELEMENTS = 1 << 15, WORTH_WAKING = 4 * BATCH_ELEMENTS, WORTH_POPULATING = 64 << 10 };

/* Rows [first, end) of a shard. */
struct batch {
    const struct shard *shard;
    uint64_t first, end;
};

struct batches {
    struct ARRAY(struct batch) all;
    struct writer writer;
};

static void add_batches(struct batches *batches, const struct shard *shard)
{
    uint64_t rows = tensor_rows(shard), at_once = rows ? BATCH_ELEMENTS / kb_ceil_div(shard->elements, rows) + 1 : 1;
    for (uint64_t first = 0; first < rows; first += at_once)
        *array_add(&batches->all) = (struct batch){shard, first, kb_min(first + at_once, rows)};
}

static void populate(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    if (bytes >= WORTH_POPULATING)
        store_populate(memory, offset, bytes);
}

static void write_batch(uint64_t i, unsigned thread, void *arg)
{
    const struct batches *batches = arg;
    const struct tensor *tensor = batches->writer.fill->tensor;
    const struct batch *batch = &batches->all.at[i];
    struct tensor_row first = tensor_row(tensor, batch->shard, batch->first);
    if (thread == 0)
        progress_part("fill", i, batches->all.count);
    populate(first.memory, first.offset, (batch->end - batch->first) * first.count * dtype_bytes[tensor->dtype]);
    for (uint64_t i = batch->first; i < batch->end; i++) {
        struct tensor_row row = tensor_row(tensor, batch->shard, i);
        write_elements(&batches->writer, row.position, row.count, store_at(row.memory, row.offset));
    }
}

struct copies {
    const struct tensor *tensor;
    struct ARRAY(uint32_t) shards;                      /* that get what the first one has */
};

static void write_copy(uint64_t i, unsigned thread, void *arg)
{
    const struct copies *copies = arg;
    const struct tensor *tensor = copies->tensor;
    const struct shard *from = &tensor->shard[0], *to = &tensor->shard[copies->shards.at[i]];
    uint64_t bytes = to->elements * dtype_bytes[tensor->dtype];
    if (thread == 0)
        progress_part("copies of a fill", i, copies->shards.count);
    populate(to->memory, to->offset, bytes);
    store_copy(to->memory, to->offset, from->memory, from->offset, bytes);
}

static void on_threads(uint64_t elements, uint64_t count, void (*f)(uint64_t i, unsigned thread, void *arg), void *arg)
{
    if (elements >= WORTH_WAKING)
        threads_run(count, f, arg);
    else
        for (uint64_t i = 0; i < count; i++)
            f(i, 0, arg);
}

/* The other shards get what the first one has; where they can, they share its pages. */
static void write_copies(const struct tensor *tensor)
{
    const struct shard *from = tensor->shard;
    struct copies rest = {.tensor = tensor};
    struct shared_pages pages;
    bool shares = tensor->shards > 1
                  && shared_pages_make(&pages, from->memory, from->offset, from->elements * dtype_bytes[tensor->dtype]);
    for (uint32_t i = 1; i < tensor->shards; i++)
        if (!shares || !shared_pages_map(&pages, from[i].memory, from[i].offset))
            *array_add(&rest.shards) = i;
    if (shares)
        shared_pages_drop(&pages);
    on_threads(tensor->elements * rest.shards.count, rest.shards.count, write_copy, &rest);
    array_free(&rest.shards);
}

void fill_write(const struct fill *fill)
{
    struct tensor *tensor = fill->tensor;
    struct batches batches = {.writer = writer_of(fill)};
    bool copies = tensor->place.split == KB_COPIES && tensor->shards > 0;
    for (uint32_t i = 0; i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        if (shard->elements)
            store_reach(shard->memory, shard->offset + shard->elements * dtype_bytes[tensor->dtype]);
        if (!copies || i == 0)
            add_batches(&batches, shard);
    }
    on_threads(tensor->elements, batches.all.count, write_batch, &batches);
    if (copies)
        write_copies(tensor);
    array_free(&batches.all);
    progress_part(NULL, 0, 0);
}

/* Elements of a shard that may begin or end within a row of it; NULL: of the tensor. */
static void read_elements(const struct writer *w, const struct shard *shard, uint64_t first, uint64_t count, uint8_t *to)
{
    const struct tensor *tensor = w->fill->tensor;
    if (!shard) {
        write_elements(w, first, count, to);
        return;
    }
    uint64_t columns = shard->view.shape[shard->view.rank - 1];
    while (count) {
        uint64_t column = first % columns, run = kb_min(columns - column, count);
        struct tensor_row row = tensor_row(tensor, shard, first / columns);
        write_elements(w, row.position + column, run, to);
        to += run * dtype_bytes[tensor->dtype];
        first += run;
        count -= run;
    }
}

void fill_read(const struct fill *fill, const struct shard *shard, uint64_t offset, uint64_t bytes, void *to)
{
    struct writer writer = writer_of(fill);
    uint64_t size = dtype_bytes[fill->tensor->dtype], first = offset / size, skip = offset % size;
    uint8_t *out = to, element[8];
    if (skip) {                                         /* the range begins within an element */
        uint64_t part = kb_min(size - skip, bytes);
        read_elements(&writer, shard, first++, 1, element);
        memcpy(out, element + skip, part);
        out += part;
        bytes -= part;
    }
    read_elements(&writer, shard, first, bytes / size, out);
    if (bytes % size) {
        read_elements(&writer, shard, first + bytes / size, 1, element);
        memcpy(out + bytes / size * size, element, bytes % size);
    }
}
