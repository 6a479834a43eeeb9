/* fill.c: values that the host writes into a tensor.
 *
 * A random value is a hash of the run's seed, the tensor's number and the element's position, so it depends neither on
 * where the element lies nor on the order of writing. */
#include "fill.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

enum { CHUNK = 512 };

uint64_t fill_seed;

struct writer {
    const struct fill *fill;
    enum image image;
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

static void compute_row(const struct writer *w, struct tensor_row row, uint8_t *to)
{
    enum dtype dtype = w->fill->tensor->dtype;
    double values[CHUNK];
    for (uint64_t done = 0; done < row.count; done += CHUNK) {
        uint64_t count = row.count - done < CHUNK ? row.count - done : CHUNK;
        for (uint64_t i = 0; i < count; i++)
            values[i] = w->fill->kind == KB_CONSTANT ? w->fill->x : value(w, row.position + done + i);
        dtype_from_f64(dtype, values, to + done * dtype_bytes[dtype], count);
    }
}

static void write_row(struct tensor_row row, void *arg)
{
    const struct writer *w = arg;
    enum dtype dtype = w->fill->tensor->dtype;
    uint64_t bytes = row.count * dtype_bytes[dtype];
    store_reach(w->image, row.memory, row.offset + bytes);
    uint8_t *to = store_at(w->image, row.memory, row.offset);
    if (w->fill->kind == KB_GIVEN)
        memcpy(to, (const uint8_t *)w->fill->given + row.position * dtype_bytes[dtype], bytes);
    else
        compute_row(w, row, to);
    if (w->image == IMAGE_NOW)
        store_mark(row.memory, row.offset, bytes, NULL);
}

static void write_copy(const struct writer *w, const struct shard *shard)
{
    const struct tensor *tensor = w->fill->tensor;
    const struct shard *first = &tensor->shard[0];
    uint64_t bytes = shard->elements * dtype_bytes[tensor->dtype];
    store_reach(w->image, shard->memory, shard->offset + bytes);
    memcpy(store_at(w->image, shard->memory, shard->offset), store_at(w->image, first->memory, first->offset), bytes);
    if (w->image == IMAGE_NOW)
        store_mark(shard->memory, shard->offset, bytes, NULL);
}

void fill_write(const struct fill *fill, enum image image)
{
    const struct tensor *tensor = fill->tensor;
    struct writer writer = {fill, image, mix(fill_seed ^ mix(tensor->number))};
    tensor_each_row(tensor, false, write_row, &writer);
    for (uint32_t i = 1; tensor->place.split == KB_COPIES && i < tensor->shards; i++)
        write_copy(&writer, &tensor->shard[i]);
}
