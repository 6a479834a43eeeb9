/* hash.h: XXH3 over many pieces, 128 bits, as 32 hexadecimal digits. */
#ifndef GEN_HASH_H
#define GEN_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash;

struct hash *hash_begin(void);

/* Adds a piece. The boundaries between pieces count: "ab", "c" differs from "a", "bc". */
void hash_add(struct hash *hash, const void *bytes, size_t length);
void hash_text(struct hash *hash, const char *text);
void hash_number(struct hash *hash, uint64_t n);

/* Adds a file's base name and content. Dies if the file cannot be read. */
void hash_file(struct hash *hash, const char *path);

const char *hash_end(struct hash *hash);

#endif
