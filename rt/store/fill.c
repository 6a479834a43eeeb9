/* fill.c: values that the host writes into a tensor.
 *
 * A random value is a hash of the run's seed, the tensor's number and the element's position, so it depends neither on
 * where the element lies nor on the order of writing. */
#include "fill.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
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

/* In [0, 1). */
static double unit(uint64_t key, uint64_t i)
{
    return (double)(mix(key ^ i * UINT64_C(0xd1342543de82ef95)) >> 11) * 0x1p-53;
}

static double normal(uint64_t key, uint64_t i)
{
    double u = 1 - unit(key, 2 * i), v = unit(key, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static double value(const struct writer *w, uint64_t position)
{
    const struct fill *f = w->fill;
    if (f->kind == KB_NORMAL)
        return f->x + f->y * normal(w->key, position);
    double at = f->x + (f->y - f->x) * unit(w->key, position);
    return dtype_is_float(f->tensor->dtype) ? at : floor(at);
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
    for (uint64_t done = 0; done < count; done += CHUNK) {
        uint64_t chunk = kb_min(count - done, CHUNK);
        for (uint64_t i = 0; i < chunk; i++)
            values[i] = w->fill->kind == KB_CONSTANT ? w->fill->x : value(w, position + done + i);
        dtype_from_f64(dtype, values, elements, chunk);
        memcpy(to + done * size, elements, chunk * size);
    }
}

static void write_row(struct tensor_row row, void *arg)
{
    const struct writer *w = arg;
    store_reach(row.memory, row.offset + row.count * dtype_bytes[w->fill->tensor->dtype]);
    write_elements(w, row.position, row.count, store_at(row.memory, row.offset));
}

void fill_write(const struct fill *fill)
{
    const struct tensor *tensor = fill->tensor;
    const struct shard *shard = tensor->shard;
    struct writer writer = writer_of(fill);
    tensor_each_row(tensor, false, write_row, &writer);
    for (uint32_t i = 1; tensor->place.split == KB_COPIES && i < tensor->shards; i++)
        store_copy(shard[i].memory, shard[i].offset, shard[0].memory, shard[0].offset,
                   shard[i].elements * dtype_bytes[tensor->dtype]);
}

/* Elements of a shard that may begin or end within a row of it. */
static void read_elements(const struct writer *w, const struct shard *shard, uint64_t first, uint64_t count, uint8_t *to)
{
    const struct tensor *tensor = w->fill->tensor;
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
