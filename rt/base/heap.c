/* heap.c: a heap that the system backs by huge pages.
 *
 * The first malloc makes the C library extend the data segment far enough that most runs need no more of it. This part
 * begins and ends with a huge page. Only what is touched of it becomes memory, a huge page at a time. All threads take
 * from it: an arena of their own would return memory to the system after each panel of a reference, and the next panel would
 * touch every page anew. */
#define _DEFAULT_SOURCE                                 /* sbrk, madvise */
#include "heap.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__GLIBC__) && defined(MADV_HUGEPAGE) && !defined(__SANITIZE_ADDRESS__)
enum { HUGE_BYTES = 2 << 20, PAGE_BYTES = 4 << 10, HEAP_BYTES = 256 << 20 };
enum { MAPPED_BYTES = 32 << 20 };                       /* glibc takes no more than this */
enum { SMALL_BYTES = 32 << 20 };

static uintptr_t huge_begin, huge_end;                  /* equal: there are none */

static bool limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

void heap_begin(void)
{
    if (limited(RLIMIT_AS) || limited(RLIMIT_DATA))
        return;
    /* The first malloc touches one page, which must not be part of a huge one. */
    uintptr_t start = (uintptr_t)sbrk(0), begin = (start + PAGE_BYTES + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    if (sbrk((intptr_t)(begin - PAGE_BYTES - start)) == (void *)-1)
        return;
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, HEAP_BYTES);
    void *volatile first = malloc(1);                   /* a compiler may leave out what nobody reads */
    free(first);
    uintptr_t end = (uintptr_t)sbrk(0) / HUGE_BYTES * HUGE_BYTES;
    if (end > begin && !madvise((void *)begin, end - begin, MADV_HUGEPAGE)) {
        huge_begin = begin;
        huge_end = end;
    }
    /* When all of it is in use, the largest arrays are mappings of their own: moving them moves pages, not bytes. */
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
    mallopt(M_TRIM_THRESHOLD, HEAP_BYTES);
    mallopt(M_TOP_PAD, HUGE_BYTES);
}

void heap_is_small(void)
{
    if (huge_end - huge_begin > SMALL_BYTES)
        madvise((void *)(huge_begin + SMALL_BYTES), huge_end - huge_begin - SMALL_BYTES, MADV_NOHUGEPAGE);
}
#else
void heap_begin(void)
{
}

void heap_is_small(void)
{
}
#endif
