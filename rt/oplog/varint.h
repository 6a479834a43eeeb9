/* varint.h: integers in 7 bits a byte (LEB128), signed ones in zigzag order, and plain bytes, appended to a buffer and
 * read back. */
#ifndef KB_VARINT_H
#define KB_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer that grows; all 0 at first. */
struct encoder {
    uint8_t *bytes;
    size_t count, capacity;
};

void encode_u64(struct encoder *to, uint64_t value);
void encode_i64(struct encoder *to, int64_t value);     /* one byte from -64 to 63 */
void encode_double(struct encoder *to, double value);   /* as it is in memory */
void encode_bytes(struct encoder *to, const void *bytes, size_t count);

/* Reads from `at` to `end`. A malformed number or the end of the bytes makes it `bad`; all later numbers are 0. */
struct decoder {
    const uint8_t *at, *end;
    bool bad;
};

uint64_t decode_u64(struct decoder *from);
int64_t decode_i64(struct decoder *from);
double decode_double(struct decoder *from);

/* The next `count` bytes, where they are in the buffer; NULL if there are fewer. */
const void *decode_bytes(struct decoder *from, size_t count);

/* A number below `end`; any other is bad. */
uint64_t decode_below(struct decoder *from, uint64_t end);

/* A number of items that follow, each of a byte or more; one larger than the bytes that remain is bad. */
uint64_t decode_count(struct decoder *from);

#endif
