/* pool.c: the chunks of free lists. */
#include "pool.h"

#include <stdlib.h>

#include "fail.h"

enum { CHUNK_BYTES = 1 << 15 };

/* Lines of the host's caches: objects that are longer begin with one, unless that adds more than an eighth of their size. */
enum { LINE_BYTES = 64 };

struct pool_chunk {
    struct pool_chunk *older;
    _Alignas(LINE_BYTES) char bytes[];
};

/* A chunk takes up memory of the system page by page, as its objects are taken. */
static void chunk_add(struct pool *pool, size_t stride)
{
    size_t bytes = stride > CHUNK_BYTES ? stride : CHUNK_BYTES / stride * stride;
    size_t lines = (bytes + LINE_BYTES - 1) / LINE_BYTES;
    struct pool_chunk *chunk = aligned_alloc(LINE_BYTES, sizeof *chunk + lines * LINE_BYTES);
    if (!chunk)
        die("out of memory for %zu bytes:", bytes);
    chunk->older = pool->chunks;
    pool->chunks = chunk;
    pool->next = chunk->bytes;
    pool->end = chunk->bytes + bytes;
}

void *pool_take_new(struct pool *pool, size_t size)
{
    size_t fewest = _Alignof(max_align_t), lines = (size + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    size_t stride = size > LINE_BYTES && lines - size <= size / 8 ? lines : (size + fewest - 1) / fewest * fewest;
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
