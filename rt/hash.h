/* hash.h: spreads keys over tables whose size is a power of two. */
#ifndef KB_HASH_H
#define KB_HASH_H

#include <stdint.h>

/* `bits` bits of a hash of the key, 1 to 32: multiplicative hashing by 2^64 over the golden ratio. */
static inline uint32_t hash_bits(uint64_t key, unsigned bits)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

#endif
