/* bits.h: runs of bits in an array of bytes; bit i is bit i % 8 of byte i / 8. */
#ifndef KB_BITS_H
#define KB_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets bits [first, first + count) to a value. */
void bits_fill(uint8_t *bits, uint64_t first, uint64_t count, bool value);

/* The first bit in [first, end) that has the value; end if there is none. */
uint64_t bits_find(const uint8_t *bits, uint64_t first, uint64_t end, bool value);

#endif
