/* varint.c: integers in 7 bits a byte, and plain bytes, appended to a buffer and read back. */
#include "varint.h"

#include <string.h>

#include "common/array.h"

enum { LONGEST_VARINT = 10 };

static void reserve(struct encoder *to, size_t count)
{
    if (to->count + count > to->capacity)
        to->bytes = array_grown(to->bytes, &to->capacity, to->count + count, sizeof *to->bytes);
}

void encode_u64(struct encoder *to, uint64_t value)
{
    reserve(to, LONGEST_VARINT);
    for (; value >= 0x80; value >>= 7)
        to->bytes[to->count++] = (uint8_t)(value | 0x80);
    to->bytes[to->count++] = (uint8_t)value;
}

void encode_i64(struct encoder *to, int64_t value)
{
    encode_u64(to, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void encode_bytes(struct encoder *to, const void *bytes, size_t count)
{
    reserve(to, count);
    if (count > 0)
        memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
}

void encode_double(struct encoder *to, double value)
{
    encode_bytes(to, &value, sizeof value);
}

uint64_t decode_u64(struct decoder *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t byte = *from->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return from->bad ? 0 : value;
    }
    from->bad = true;
    return 0;
}

int64_t decode_i64(struct decoder *from)
{
    uint64_t value = decode_u64(from);
    return (int64_t)(value >> 1 ^ -(value & 1));
}

const void *decode_bytes(struct decoder *from, size_t count)
{
    const uint8_t *bytes = from->at;
    from->bad |= count > (size_t)(from->end - from->at);
    if (from->bad)
        return NULL;
    from->at += count;
    return bytes;
}

double decode_double(struct decoder *from)
{
    double value = 0;
    const void *bytes = decode_bytes(from, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return value;
}

uint64_t decode_below(struct decoder *from, uint64_t end)
{
    uint64_t value = decode_u64(from);
    from->bad |= value >= end;
    return from->bad ? 0 : value;
}

uint64_t decode_count(struct decoder *from)
{
    uint64_t count = decode_u64(from);
    from->bad |= count > (uint64_t)(from->end - from->at);
    return from->bad ? 0 : count;
}
