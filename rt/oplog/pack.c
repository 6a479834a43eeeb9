/* pack.c: numbers and bytes, packed and unpacked. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

enum { LONGEST = 10, FIRST_BYTES = 1 << 12 };           /* of a number */

void pack_room(struct packed *to, size_t count)
{
    size_t room = to->room ? to->room : FIRST_BYTES;
    if (to->count + count <= to->room)
        return;
    while (room < to->count + count)
        room *= 2;
    uint8_t *bytes = realloc(to->bytes, room);
    if (!bytes)
        die("no memory for %zu bytes of records:", room);
    to->bytes = bytes;
    to->room = room;
}

void pack_u64(struct packed *to, uint64_t value)
{
    pack_room(to, LONGEST);
    for (; value >= 0x80; value >>= 7)
        to->bytes[to->count++] = (uint8_t)(value | 0x80);
    to->bytes[to->count++] = (uint8_t)value;
}

void pack_i64(struct packed *to, int64_t value)
{
    pack_u64(to, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void pack_bytes(struct packed *to, const void *bytes, size_t count)
{
    pack_room(to, count);
    if (count > 0)
        memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
}

void pack_double(struct packed *to, double value)
{
    pack_bytes(to, &value, sizeof value);
}

uint64_t unpack_u64(struct unpacking *from)
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

int64_t unpack_i64(struct unpacking *from)
{
    uint64_t value = unpack_u64(from);
    return (int64_t)(value >> 1 ^ -(value & 1));
}

const void *unpack_bytes(struct unpacking *from, size_t count)
{
    const uint8_t *bytes = from->at;
    from->bad |= count > (size_t)(from->end - from->at);
    if (from->bad)
        return NULL;
    from->at += count;
    return bytes;
}

double unpack_double(struct unpacking *from)
{
    double value = 0;
    const void *bytes = unpack_bytes(from, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return value;
}

uint64_t unpack_below(struct unpacking *from, uint64_t end)
{
    uint64_t value = unpack_u64(from);
    from->bad |= value >= end;
    return from->bad ? 0 : value;
}

uint64_t unpack_count(struct unpacking *from)
{
    uint64_t count = unpack_u64(from);
    from->bad |= count > (uint64_t)(from->end - from->at);
    return from->bad ? 0 : count;
}
