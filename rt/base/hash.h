/* hash.h: spreads keys over tables whose size is a power of two. */
#ifndef KB_HASH_H
#define KB_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `bits` bits of a hash of the key, 1 to 32: multiplicative hashing by 2^64 over the golden ratio. */
static inline uint32_t hash_bits(uint64_t key, unsigned bits)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

/* A hash of bytes behind others: 0 at the start, then what the bytes before gave. For noticing damage, not malice. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (; count > 0; at += 8, count = count > 8 ? count - 8 : 0) {
        uint64_t word = 0;
        memcpy(&word, at, count < 8 ? count : 8);
        hash = (hash ^ word ^ (count < 8 ? count << 56 : 0)) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

#endif
