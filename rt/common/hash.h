/* hash.h: hashes: of keys for hash tables, of bytes as checksums, and of many pieces as names of what they make up. */
#ifndef KB_HASH_H
#define KB_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- tables whose size is a power of two */

/* `bits` bits of a hash of the key, 1 to 32: multiplicative hashing by 2^64 over the golden ratio. */
static inline uint32_t hash_bits(uint64_t key, unsigned bits)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

/* ---- checksums */

/* Continues a hash by more bytes; it begins as 0. Detects damage, not malice. */
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

/* ---- names: XXH3 of many pieces, 128 bits */

struct hash;

struct hash *hash_begin(void);

/* Adds a piece. The boundaries between pieces count: "ab", "c" differs from "a", "bc". */
void hash_add(struct hash *hash, const void *bytes, size_t length);
void hash_text(struct hash *hash, const char *text);
void hash_number(struct hash *hash, uint64_t n);

/* Adds a file's base name and content. Dies if the file cannot be read. */
void hash_file(struct hash *hash, const char *path);

/* Ends the hash: 32 hexadecimal digits, in the arena. */
const char *hash_end(struct hash *hash);

#endif
