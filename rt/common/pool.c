/* pool.c: the chunks of free lists. */
#include "pool.h"

#include <stdlib.h>

#include "fail.h"

enum { CHUNK_BYTES = 1 << 15 };

struct pool_chunk {
    struct pool_chunk *older;
    _Alignas(max_align_t) char bytes[];
};

/* A chunk takes up memory of the system page by page, as its objects are taken. */
static void chunk_add(struct pool *pool, size_t stride)
{
    size_t bytes = stride > CHUNK_BYTES ? stride : CHUNK_BYTES / stride * stride;
    struct pool_chunk *chunk = malloc(sizeof *chunk + bytes);
    if (!chunk)
        die("out of memory for %zu bytes:", bytes);
    chunk->older = pool->chunks;
    pool->chunks = chunk;
    pool->next = chunk->bytes;
    pool->end = chunk->bytes + bytes;
}

void *pool_take_new(struct pool *pool, size_t size)
{
    enum { ALIGNMENT = _Alignof(max_align_t) };
    size_t stride = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    assert(size && (!pool->size || pool->size == size));
    pool->size = size;
    if (pool->next == pool->end)
        chunk_add(pool, stride);
    void *object = pool->next;
    pool->next += stride;
    return memset(object, 0, size);
}

void pool_release(struct pool *pool)
{
    for (struct pool_chunk *chunk = pool->chunks, *older; chunk; chunk = older) {
        older = chunk->older;
        free(chunk);
    }
    *pool = (struct pool){0};
}
