/* hash.c: XXH3 over many pieces. */
#include "hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "arena.h"
#include "fail.h"

struct hash {
    XXH3_state_t *state;
};

struct hash *hash_begin(void)
{
    struct hash *hash = arena_alloc(1, sizeof *hash);
    hash->state = XXH3_createState();
    if (!hash->state)
        die("out of memory");
    XXH3_128bits_reset(hash->state);
    return hash;
}

void hash_add(struct hash *hash, const void *bytes, size_t length)
{
    uint64_t size = length;
    XXH3_128bits_update(hash->state, &size, sizeof size);
    XXH3_128bits_update(hash->state, bytes, length);
}

void hash_text(struct hash *hash, const char *text)
{
    hash_add(hash, text, strlen(text));
}

void hash_number(struct hash *hash, uint64_t n)
{
    hash_add(hash, &n, sizeof n);
}

void hash_file(struct hash *hash, const char *path)
{
    size_t length;
    const char *text = read_file(path, &length);
    if (!text)
        die("read %s:", path);
    const char *slash = strrchr(path, '/');
    hash_text(hash, slash ? slash + 1 : path);
    hash_add(hash, text, length);
}

const char *hash_end(struct hash *hash)
{
    XXH128_hash_t value = XXH3_128bits_digest(hash->state);
    XXH3_freeState(hash->state);
    return arena_printf("%016llx%016llx", (unsigned long long)value.high64, (unsigned long long)value.low64);
}
