/* bits.c: runs of bits, whole bytes at a time where they lie so. */
#include "bits.h"

#include <string.h>

static void fill_in_byte(uint8_t *byte, unsigned first, unsigned count, bool value)
{
    uint8_t mask = (uint8_t)(((1u << count) - 1) << first);
    *byte = value ? *byte | mask : *byte & ~mask;
}

void bits_fill(uint8_t *bits, uint64_t first, uint64_t count, bool value)
{
    if (first % 8 && count) {
        unsigned room = 8 - first % 8, head = count < room ? (unsigned)count : room;
        fill_in_byte(&bits[first / 8], first % 8, head, value);
        first += head, count -= head;
    }
    memset(bits + first / 8, value ? 0xff : 0, count / 8);
    if (count % 8)
        fill_in_byte(&bits[(first + count) / 8], 0, count % 8, value);
}

uint64_t bits_find(const uint8_t *bits, uint64_t first, uint64_t end, bool value)
{
    uint8_t without = value ? 0 : 0xff;
    uint64_t words = value ? 0 : UINT64_MAX;
    while (first < end) {
        uint64_t word;
        if (first % 8 == 0 && end - first >= 64 && (memcpy(&word, bits + first / 8, 8), word == words))
            first += 64;
        else if (first % 8 == 0 && bits[first / 8] == without)
            first += 8;
        else if ((bits[first / 8] >> first % 8 & 1) == value)
            return first;
        else
            first++;
    }
    return end;
}
