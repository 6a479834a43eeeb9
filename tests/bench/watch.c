/* watch.c: a library to load before a program (LD_PRELOAD): counts what it allocates and says how much was resident.
 *
 * At the end of the program the file that KB_WATCH names gets three lines: `allocations N` (calls of malloc and its
 * like), `mappings N` (calls of mmap, mremap, brk and sbrk by others than the allocator), `resident_kib N` (VmHWM).
 * A program that forks or ends by _exit says nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes), *__libc_memalign(size_t alignment, size_t bytes);

static atomic_ullong allocations, mappings;

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    allocations++;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

int posix_memalign(void **result, size_t alignment, size_t bytes)
{
    *result = aligned_alloc(alignment, bytes);
    return *result ? 0 : ENOMEM;
}

/* The C library's own function of a name. */
static void *real(const char *name)
{
    mappings++;
    return dlsym(RTLD_NEXT, name);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return ((void *(*)(void *, size_t, int, int, int, off_t))real("mmap"))(at, bytes, protection, flags, file, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    return mmap(at, bytes, protection, flags, file, offset);
}

void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *at = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    return ((void *(*)(void *, size_t, size_t, int, ...))real("mremap"))(old, old_bytes, bytes, flags, at);
}

int brk(void *end)
{
    return ((int (*)(void *))real("brk"))(end);
}

void *sbrk(intptr_t bytes)
{
    return ((void *(*)(intptr_t))real("sbrk"))(bytes);
}

__attribute__((destructor)) static void tell(void)
{
    unsigned long long allocated = allocations, mapped = mappings;
    const char *path = getenv("KB_WATCH");
    FILE *out = path ? fopen(path, "w") : NULL, *status = fopen("/proc/self/status", "r");
    if (!out || !status)
        return;
    unsigned long resident = 0;
    for (char line[256]; fgets(line, sizeof line, status);)
        if (strncmp(line, "VmHWM:", 6) == 0)
            resident = strtoul(line + 6, NULL, 10);
    fprintf(out, "allocations %llu\nmappings %llu\nresident_kib %lu\n", allocated, mapped, resident);
    fclose(out);
}
