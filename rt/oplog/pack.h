/* pack.h: numbers and bytes, packed one after the other, and unpacked again. A number takes 7 bits a byte. */
#ifndef KB_PACK_H
#define KB_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is packed; all 0 at first. */
struct packed {
    uint8_t *bytes;
    size_t count, room;
};

/* Room for some more bytes, at `bytes + count`. */
void pack_room(struct packed *to, size_t count);

void pack_u64(struct packed *to, uint64_t value);
void pack_i64(struct packed *to, int64_t value);        /* near 0 is short */
void pack_double(struct packed *to, double value);
void pack_bytes(struct packed *to, const void *bytes, size_t count);

/* What is unpacked, from `at` to `end`. Once it is bad, by a wrong number or by its end, all numbers are 0. */
struct unpacking {
    const uint8_t *at, *end;
    bool bad;
};

uint64_t unpack_u64(struct unpacking *from);
int64_t unpack_i64(struct unpacking *from);
double unpack_double(struct unpacking *from);

/* So many bytes where they stand; NULL: there are not so many. */
const void *unpack_bytes(struct unpacking *from, size_t count);

/* A number below `end`. */
uint64_t unpack_below(struct unpacking *from, uint64_t end);

/* A number of things that follow, of at least a byte each. */
uint64_t unpack_count(struct unpacking *from);

#endif
