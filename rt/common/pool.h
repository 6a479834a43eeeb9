/* pool.h: free lists: objects of one size that come and go. Memory comes in chunks and stays until pool_release. */
#ifndef KB_POOL_H
#define KB_POOL_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define POOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_ASAN 1
#endif
#endif
#ifdef POOL_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(object, bytes) ((void)(object), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(object, bytes) ((void)(object), (void)(bytes))
#endif

/* All 0: an empty pool. The first pool_take fixes the size of its objects. */
struct pool {
    void *unused;                                       /* free list: each object begins with the next one's address */
    char *next, *end;                                   /* part of the newest chunk that was never taken */
    struct pool_chunk *chunks;
    size_t size;
};

/* The slow path of pool_reuse. */
void *pool_take_new(struct pool *pool, size_t size);

/* An object of `size` bytes, aligned for any type: as it was given back, apart from its first 8 bytes, or all 0 if it was
 * never in use. Dies if there is no memory. */
static inline void *pool_reuse(struct pool *pool, size_t size)
{
    void *object = pool->unused;
    if (!object)
        return pool_take_new(pool, size);
    assert(size == pool->size);
    ASAN_UNPOISON_MEMORY_REGION(object, size);
    pool->unused = *(void **)object;
    return object;
}

/* The same, all 0. */
static inline void *pool_take(struct pool *pool, size_t size)
{
    return memset(pool_reuse(pool, size), 0, size);
}

static inline void pool_give_back(struct pool *pool, void *object)
{
    *(void **)object = pool->unused;
    pool->unused = object;
    ASAN_POISON_MEMORY_REGION(object, pool->size);
}

/* Frees all objects, those in use included; the pool is empty again. */
void pool_release(struct pool *pool);

#endif
