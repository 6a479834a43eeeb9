/* store.c: the bytes of all memories, and of the messages under way, as ranges of one sparse file that has no name.
 *
 * `base` maps the file shared, `now` maps the same range privately: copy on write is the operating system's, and
 * joining the views is an munmap. While they have not parted, `now` is `base` itself. A mapping is made at a memory's
 * first touch and grows with mremap, which keeps the private pages that were written. */
#define _GNU_SOURCE                                     /* memfd_create, mremap */
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocator.h"
#include "base/address.h"
#include "machine/emitted.h"
#include "common/diag.h"
#include "view.h"

enum { FIRST_BYTES = 64 << 10 };

static const uint64_t hidden_bytes = UINT64_C(1) << 40; /* of those that no address names */

struct map {
    uint8_t *at;
    uint64_t bytes;
};

struct memory {
    struct map base, now;
    struct pending pending;
    uint64_t origin;                                    /* the offset that stands first in the maps */
    uint64_t file_offset, bytes;                        /* from there on, a whole number of FIRST_BYTES */
};

static struct memory *memories;
static int file;                                        /* while there are memories */
static bool parted;

/* Nobody can address what the scheduler reserves at the beginning of a TCM. */
static uint64_t first_offset(uint32_t memory)
{
    bool tcm = memory >= memory_tcm(0) && memory < memory_sram(0);
    return tcm ? kb_attrs.pe_tcm_reserved_bytes / FIRST_BYTES * FIRST_BYTES : 0;
}

uint32_t store_messages(void)
{
    return memory_count();
}

uint32_t store_staging(void)
{
    return memory_count() + 1;
}

uint32_t store_count(void)
{
    return memory_count() + 2;
}

uint64_t store_bytes(uint32_t memory)
{
    return memory < store_messages() ? memory_size(memory) : hidden_bytes;
}

static void store_open(void)
{
    uint32_t count = store_count();
    memories = calloc(count, sizeof *memories);
    if (!memories)
        die("no room for the table of %u memories:", count);
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        memories[i].file_offset = end;
        memories[i].origin = first_offset(i);
        uint64_t size = store_bytes(i);
        memories[i].bytes = (size - first_offset(i) + FIRST_BYTES - 1) / FIRST_BYTES * FIRST_BYTES;
        end += memories[i].bytes;
    }
    file = memfd_create("memories", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)end))
        die("cannot make a sparse file of %llu bytes for the simulated memories:", (unsigned long long)end);
}

static struct memory *memory_of(uint32_t memory)
{
    if (!memories)
        store_open();
    return &memories[memory];
}

/* Grows a map of a memory to a power of two that holds `bytes`. */
static void map_grow(const struct memory *m, struct map *map, uint64_t bytes, int flags)
{
    if (bytes <= map->bytes)
        return;
    uint64_t size = FIRST_BYTES;
    while (size < bytes)
        size *= 2;
    size = size < m->bytes ? size : m->bytes;
    void *at = map->at ? mremap(map->at, map->bytes, size, MREMAP_MAYMOVE)
                       : mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, (off_t)m->file_offset);
    if (at == MAP_FAILED)
        die("no room to map %llu bytes of a simulated memory (a limit on address space?):", (unsigned long long)size);
    *map = (struct map){at, size};
}

static void map_drop(struct map *map)
{
    if (map->at)
        munmap(map->at, map->bytes);
    *map = (struct map){NULL, 0};
}

void store_part(void)
{
    parted = true;
}

void store_join(void)
{
    for (uint32_t i = 0; memories && i < store_count(); i++) {
        map_drop(&memories[i].now);
        pending_clear(&memories[i].pending);
    }
    parted = false;
}

void store_reach(enum image image, uint32_t memory, uint64_t end)
{
    struct memory *m = memory_of(memory);
    if (image == IMAGE_NOW && parted)
        map_grow(m, &m->now, end - m->origin, MAP_PRIVATE);
    else
        map_grow(m, &m->base, end - m->origin, MAP_SHARED);
}

/* A system that cannot do that does it one by one. */
void store_populate(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    enum { PAGE = 4096 };
    uintptr_t from = (uintptr_t)store_at(IMAGE_BASE, memory, offset), first = from / PAGE * PAGE;
#ifdef MADV_POPULATE_WRITE
    madvise((void *)first, from + bytes - first, MADV_POPULATE_WRITE);
#endif
}

void *store_at(enum image image, uint32_t memory, uint64_t offset)
{
    struct memory *m = memory_of(memory);
    return (image == IMAGE_NOW && parted ? m->now.at : m->base.at) + (offset - m->origin);
}

/* ---- pending bytes */

void store_mark(uint32_t memory, uint64_t offset, uint64_t bytes, struct origin *maker)
{
    pending_set(&memory_of(memory)->pending, offset, bytes, maker);
}

void store_mark_view(const struct view *view, struct origin *maker)
{
    pending_mark(&memory_of(view->memory)->pending, view, maker);
}

bool store_pending(uint32_t memory, uint64_t offset, uint64_t bytes, uint64_t *first)
{
    return pending_find(&memory_of(memory)->pending, offset, bytes, first);
}

struct origin *store_maker(uint32_t memory, uint64_t offset)
{
    uint64_t first;
    return pending_find(&memory_of(memory)->pending, offset, 1, &first);
}

void store_copy(enum image image, uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes)
{
    store_reach(image, from, from_offset + bytes);
    store_reach(image, to, to_offset + bytes);
    memmove(store_at(image, to, to_offset), store_at(image, from, from_offset), bytes);
    if (image == IMAGE_NOW)
        pending_copy(&memories[to].pending, to_offset, &memories[from].pending, from_offset, bytes);
}

static void memories_forget(void)
{
    if (!memories)
        return;
    store_join();
    for (uint32_t i = 0; i < store_count(); i++)
        map_drop(&memories[i].base);
    pendings_reset();
    free(memories);
    memories = NULL;
    close(file);
}

void store_reset(void)
{
    memories_forget();
    room_reset();
    origins_reset();
}
