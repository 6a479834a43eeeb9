/* pool.c: free lists: objects are zeroed, apart and aligned, and come back. */
#include "common/pool.h"
#include "tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { OBJECTS = 5000, STEPS = 200000 };

static bool is_filled(const unsigned char *object, size_t size, unsigned char with)
{
    for (size_t i = 0; i < size; i++)
        if (object[i] != with)
            return false;
    return true;
}

/* Random takes and returns; each object in use is filled with a byte that no other object may change. */
static void random_use(size_t size, const char *what)
{
    static unsigned char *object[OBJECTS];
    struct pool pool = {0};
    bool zeroed = true, kept = true, aligned = true;
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rand() % OBJECTS;
        unsigned char fill = (unsigned char)(1 + i % 255);
        if (object[i]) {
            kept &= is_filled(object[i], size, fill);
            pool_give_back(&pool, object[i]);
            object[i] = NULL;
        } else {
            object[i] = pool_take(&pool, size);
            zeroed &= is_filled(object[i], size, 0);
            aligned &= (uintptr_t)object[i] % _Alignof(max_align_t) == 0;
            memset(object[i], fill, size);
        }
    }
    printf("# objects of %zu bytes: %s\n", size, what);
    expect(zeroed, "every object that a pool gives is zeroed");
    expect(kept, "no object changes while it is in use");
    expect(aligned, "every object is aligned for any type");
    pool_release(&pool);
    memset(object, 0, sizeof object);
}

/* The object that was given back last comes first. */
static void reuse(void)
{
    struct pool pool = {0};
    void *a = pool_take(&pool, 48), *b = pool_take(&pool, 48);
    pool_give_back(&pool, a);
    pool_give_back(&pool, b);
    expect(pool_take(&pool, 48) == b && pool_take(&pool, 48) == a,
           "objects that were given back are taken again first");
    pool_release(&pool);
    pool_take(&pool, 8);
    expect(pool.size == 8, "a released pool can have objects of another size");
    pool_release(&pool);
}

int main(void)
{
    random_use(8, "many in a chunk");
    random_use(200, "of a size that is no multiple of the alignment");
    random_use(4104, "a few in a chunk");
    reuse();
    return tests_end();
}
