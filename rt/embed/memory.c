/* memory.c: an allocator of pages, and on top of it blocks of sizes that are classes.
 *
 *     pages     runs of free pages, by address, each with its head in its first page; then the part that was never used
 *     blocks    4 classes per power of two, each with a free list; a large block is a run of pages
 *
 * Fresh pages are 0, and freed ones are given back to the system, which makes them 0 again. The threads of a data pass
 * share it: a lock, which nobody holds for long. */
#define _GNU_SOURCE                                     /* mremap */
#include "memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/pool.h"

/* The linker would export what the C library has as well. */
#pragma GCC visibility push(hidden)

enum { PAGE = 4096, SLAB_BYTES = 1 << 17, LARGE_BYTES = SLAB_BYTES / 2, ALIGNMENT = 16, CLASSES = 64 };

/* Free pages. */
struct run {
    struct run *next;
    uint64_t bytes;
};

/* The head before a block. */
struct block {
    uint64_t bytes;                                     /* with this head */
    uint32_t class;                                     /* CLASSES: it is a run of pages */
    uint32_t before;                                    /* bytes from the head of the block to this one, its second */
};
_Static_assert(sizeof(struct block) == ALIGNMENT, "what is behind the head is aligned");

static struct {
    char *base, *end, *fresh;                           /* fresh: the first byte that was never used */
    struct run *runs;                                   /* by address */
    struct block *unused[CLASSES];                      /* each with the next one's address behind its head */
    char *slab, *slab_end;                              /* the rest of the newest slab */
    struct image_host *host;                            /* NULL: before memory_begin */
    atomic_flag locked;
} memory = {.locked = ATOMIC_FLAG_INIT};

uint64_t memory_used(void)
{
    return (uint64_t)(memory.fresh - memory.base);
}

void memory_begin(struct image_host *host)
{
    memory.host = host;
    memory.base = memory.fresh = host->memory;
    memory.end = host->memory + host->memory_bytes;
}

void memory_end(void)
{
    ASAN_UNPOISON_MEMORY_REGION(memory.base, memory_used());
}

bool memory_open(uint64_t bytes)
{
    return mprotect(memory.base, bytes, PROT_READ | PROT_WRITE) == 0;
}

void memory_forget(uint64_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(memory.base, bytes);
}

void memory_close(uint64_t bytes)
{
    mprotect(memory.fresh, bytes - memory_used(), PROT_NONE);
}

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&memory.locked, memory_order_acquire))
        continue;
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&memory.locked, memory_order_release);
}

static uint64_t rounded(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) & -to;
}

/* ---- pages */

/* Takes pages out of a free run, from `at` on. */
static void run_cut(struct run **place, char *at, uint64_t bytes)
{
    struct run *run = *place, all = *run;
    char *end = (char *)run + all.bytes;
    *place = all.next;
    if (end > at + bytes) {
        struct run *rest = (struct run *)(at + bytes);
        *rest = (struct run){*place, (uint64_t)(end - at) - bytes};
        *place = rest;
    }
    if (at > (char *)run) {
        *run = (struct run){*place, (uint64_t)(at - (char *)run)};
        *place = run;
    } else {
        *run = (struct run){0};
    }
}

/* Pages that are 0; NULL: there are none. */
static char *pages_take(uint64_t bytes, int protection)
{
    for (struct run **place = &memory.runs; *place; place = &(*place)->next) {
        char *at = (char *)*place;
        if ((*place)->bytes < bytes)
            continue;
        run_cut(place, at, bytes);
        return protection == (PROT_READ | PROT_WRITE) || mprotect(at, bytes, protection) == 0 ? at : NULL;
    }
    char *at = memory.fresh;
    if (!at || (uint64_t)(memory.end - at) < bytes || (protection != PROT_NONE && mprotect(at, bytes, protection))) {
        if (memory.host)
            memory.host->exhausted = true;
        return NULL;
    }
    memory.fresh = at + bytes;
    return at;
}

/* Gives pages back. A free run can be written, and is 0 apart from its head. */
static void pages_give_back(char *at, uint64_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(at, bytes);
    madvise(at, bytes, MADV_DONTNEED);
    if (mprotect(at, bytes, PROT_READ | PROT_WRITE))
        return;
    struct run **place = &memory.runs, *before = NULL;
    while (*place && (char *)*place < at) {
        before = *place;
        place = &before->next;
    }
    struct run *run = (struct run *)at, *after = *place;
    *run = (struct run){after, bytes};
    *place = run;
    if (after && at + bytes == (char *)after) {
        *run = (struct run){after->next, bytes + after->bytes};
        *after = (struct run){0};
    }
    if (before && (char *)before + before->bytes == at) {
        *before = (struct run){run->next, before->bytes + run->bytes};
        *run = (struct run){0};
    }
}

/* ---- mappings of the runtime */

static void *refused(void)
{
    errno = ENOMEM;
    return MAP_FAILED;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    (void)offset;
    if (file >= 0 || at || (flags & MAP_SHARED))
        return refused();
    lock();
    char *pages = pages_take(rounded(bytes, PAGE), protection);
    unlock();
    return pages ? pages : refused();
}

/* There are no files to map. */
int memfd_create(const char *name, unsigned flags)
{
    (void)name, (void)flags;
    errno = ENOSYS;
    return -1;
}

int munmap(void *at, size_t bytes)
{
    lock();
    pages_give_back(at, rounded(bytes, PAGE));
    unlock();
    return 0;
}

/* Moves pages without a copy, and reserves anew where they were. */
void *mremap(void *from, size_t bytes, size_t new_bytes, int flags, ...)
{
    (void)flags;
    bytes = rounded(bytes, PAGE);
    new_bytes = rounded(new_bytes, PAGE);
    uint64_t moved = bytes < new_bytes ? bytes : new_bytes;
    char *to = mmap(NULL, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED || syscall(SYS_mremap, from, moved, moved, MREMAP_MAYMOVE | MREMAP_FIXED, to) == -1
        || syscall(SYS_mmap, from, moved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == -1)
        return refused();
    munmap(from, bytes);
    return to;
}

/* ---- blocks */

/* The class of blocks of at least `bytes`: 4 per power of two, from 32 bytes on. */
static unsigned class_of(uint64_t bytes, uint64_t *size)
{
    if (bytes <= 32) {
        *size = 32;
        return 0;
    }
    unsigned power = 63 - (unsigned)__builtin_clzll(bytes - 1);     /* 2^power < bytes <= 2^(power + 1) */
    uint64_t least = UINT64_C(1) << power, step = least / 4, steps = (bytes - least + step - 1) / step;
    *size = rounded(least + steps * step, ALIGNMENT);
    return 4 * (power - 5) + (unsigned)steps;
}

static struct block **next_of(struct block *block)
{
    return (struct block **)(block + 1);
}

static struct block *run_take(uint64_t bytes)
{
    uint64_t size = rounded(bytes, PAGE);
    struct block *block = (struct block *)pages_take(size, PROT_READ | PROT_WRITE);
    if (block)
        *block = (struct block){size, CLASSES, 0};
    return block;
}

static struct block *slab_cut(uint64_t size, unsigned class)
{
    if ((uint64_t)(memory.slab_end - memory.slab) < size) {
        char *slab = pages_take(SLAB_BYTES, PROT_READ | PROT_WRITE);
        if (!slab)
            return NULL;
        memory.slab = slab;
        memory.slab_end = slab + SLAB_BYTES;
    }
    struct block *block = (struct block *)memory.slab;
    memory.slab += size;
    *block = (struct block){size, class, 0};
    return block;
}

/* Returns what is behind the head of a block, or NULL; *is_new: that is 0. */
static void *take(uint64_t bytes, bool *is_new)
{
    struct block *block = NULL;
    uint64_t size;
    *is_new = true;
    lock();
    if (bytes > LARGE_BYTES && bytes < UINT64_MAX / 2) {
        block = run_take(bytes + sizeof *block);
    } else if (bytes <= LARGE_BYTES) {
        unsigned class = class_of(bytes + sizeof *block, &size);
        block = memory.unused[class];
        if (block)
            memory.unused[class] = *next_of(block);
        *is_new = !block;
        if (!block)
            block = slab_cut(size, class);
    }
    unlock();
    if (block)
        return block + 1;
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    bool is_new;
    return take(bytes, &is_new);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    bool is_new;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;                               /* more than there can be */
    void *at = take(bytes, &is_new);
    return at && !is_new ? memset(at, 0, bytes) : at;
}

/* The block that malloc has returned as `at`. Any other pointer ends the caller, as in the C library. */
static struct block *block_of(void *at)
{
    struct block *head = (struct block *)at - 1;
    bool inside = (char *)head >= memory.base && (char *)at <= memory.fresh && (uintptr_t)at % ALIGNMENT == 0;
    if (!inside || head->before % ALIGNMENT || head->before > (uint64_t)((char *)head - memory.base))
        abort();
    struct block *block = (struct block *)((char *)head - head->before);
    if (block->class > CLASSES || block->bytes > memory_used() || block->bytes < sizeof *block)
        abort();
    return block;
}

void free(void *at)
{
    if (!at)
        return;
    struct block *block = block_of(at);
    lock();
    if (block->class == CLASSES) {
        pages_give_back((char *)block, block->bytes);
    } else {
        ASAN_UNPOISON_MEMORY_REGION(block, block->bytes);
        *next_of(block) = memory.unused[block->class];
        memory.unused[block->class] = block;
    }
    unlock();
}

void *realloc(void *at, size_t bytes)
{
    if (!at)
        return malloc(bytes);
    block_of(at);
    const struct block *head = (struct block *)at - 1;
    uint64_t held = head->bytes - sizeof *head;
    if (bytes <= held && bytes >= held / 2)
        return at;
    void *to = malloc(bytes);
    if (!to)
        return NULL;
    memcpy(to, at, bytes < held ? bytes : held);
    free(at);
    return to;
}

/* A second head is before the aligned bytes. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    char *at = malloc(alignment > ALIGNMENT ? bytes + alignment : bytes);
    char *aligned = (char *)rounded((uintptr_t)at, alignment);
    if (!at || alignment <= ALIGNMENT || aligned == at)
        return at;
    const struct block *block = (struct block *)at - 1;
    uint32_t before = (uint32_t)(aligned - at);
    ((struct block *)aligned)[-1] = (struct block){block->bytes - before, CLASSES, before};
    return aligned;
}

int posix_memalign(void **at, size_t alignment, size_t bytes)
{
    *at = aligned_alloc(alignment, bytes);
    return *at ? 0 : ENOMEM;
}
