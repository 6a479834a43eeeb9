/* array.c: the memory of growing arrays. */
#include "array.h"

#include <stdlib.h>

#include "fail.h"

enum { FIRST_BYTES = 64 };                              /* an array begins with so many, or with the elements that it needs */

void *array_grown(void *at, size_t *room, size_t n, size_t size)
{
    size_t more = *room ? 2 * *room : FIRST_BYTES / size, bytes;
    more = more < n ? n : more;
    if (__builtin_mul_overflow(more, size, &bytes) || !(at = realloc(at, bytes)))
        die("out of memory for an array of %zu elements of %zu bytes", more, size);
    *room = more;
    return at;
}

void *array_zeros(size_t n, size_t size)
{
    void *at = calloc(n ? n : 1, size);
    if (!at)
        die("out of memory for an array of %zu elements of %zu bytes", n, size);
    return at;
}

void *array_freed(void *at)
{
    free(at);
    return NULL;
}
