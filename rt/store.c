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

#include "address.h"
#include "bits.h"
#include "emitted.h"
#include "text/diag.h"

enum { FIRST_BYTES = 64 << 10 };

static const uint64_t messages_bytes = UINT64_C(1) << 40;

struct map {
    uint8_t *at;
    uint64_t bytes;
};

struct memory {
    struct map base, now;
    struct map pending;                                 /* a bit per byte; beyond the map nothing is pending */
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

static void store_open(void)
{
    uint32_t count = memory_count() + 1;
    memories = calloc(count, sizeof *memories);
    if (!memories)
        die("no room for the table of %u memories:", count);
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        memories[i].file_offset = end;
        memories[i].origin = first_offset(i);
        uint64_t size = i == store_messages() ? messages_bytes : memory_size(i);
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

/* Grows a map to a power of two that holds `bytes`, at most `limit`; anonymous if flags say so. */
static void map_grow(struct map *map, uint64_t bytes, uint64_t first, uint64_t limit, int flags, uint64_t offset)
{
    if (bytes <= map->bytes)
        return;
    uint64_t size = first;
    while (size < bytes)
        size *= 2;
    size = size < limit ? size : limit;
    int source = flags & MAP_ANONYMOUS ? -1 : file;
    void *at = map->at ? mremap(map->at, map->bytes, size, MREMAP_MAYMOVE)
                       : mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, source, (off_t)offset);
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
    for (uint32_t i = 0; memories && i <= store_messages(); i++) {
        map_drop(&memories[i].now);
        map_drop(&memories[i].pending);
    }
    parted = false;
}

void store_reach(enum image image, uint32_t memory, uint64_t end)
{
    struct memory *m = memory_of(memory);
    if (image == IMAGE_NOW && parted)
        map_grow(&m->now, end - m->origin, FIRST_BYTES, m->bytes, MAP_PRIVATE, m->file_offset);
    else
        map_grow(&m->base, end - m->origin, FIRST_BYTES, m->bytes, MAP_SHARED, m->file_offset);
}

void *store_at(enum image image, uint32_t memory, uint64_t offset)
{
    struct memory *m = memory_of(memory);
    return (image == IMAGE_NOW && parted ? m->now.at : m->base.at) + (offset - m->origin);
}

/* ---- pending bytes */

/* Where bit 0 of a memory's shadow stands is its origin. */
static uint64_t bit_of(const struct memory *m, uint64_t offset)
{
    uint64_t bit = offset - m->origin, known = m->pending.bytes * 8;
    return bit < known ? bit : known;                   /* beyond the map nothing is pending */
}

void store_mark(uint32_t memory, uint64_t offset, uint64_t bytes, bool pending)
{
    struct memory *m = memory_of(memory);
    if (pending)
        map_grow(&m->pending, (offset + bytes - m->origin + 7) / 8, FIRST_BYTES / 8, m->bytes / 8,
                 MAP_PRIVATE | MAP_ANONYMOUS, 0);
    uint64_t first = bit_of(m, offset), end = bit_of(m, offset + bytes);
    if (first < end)
        bits_fill(m->pending.at, first, end - first, pending);
}

bool store_pending(uint32_t memory, uint64_t offset, uint64_t bytes, uint64_t *first)
{
    struct memory *m = memory_of(memory);
    uint64_t bit = bit_of(m, offset), end = bit_of(m, offset + bytes);
    if (bit < end)
        bit = bits_find(m->pending.at, bit, end, true);
    *first = m->origin + bit;
    return bit < end;
}

/* Carries pendingness along with a copy of bytes. The source's bits are set aside first: the ranges may overlap. */
static void pending_copy(uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes)
{
    const struct memory *m = memory_of(from);
    uint64_t found;
    if (!store_pending(from, from_offset, bytes, &found)) {
        store_mark(to, to_offset, bytes, false);
        return;
    }
    uint64_t start = (found - m->origin) / 8 * 8, end = bit_of(m, from_offset + bytes), length = end - start;
    uint64_t skew = from_offset - m->origin;            /* bit of the first byte that is copied */
    uint8_t *bits = malloc((length + 7) / 8);
    if (!bits)
        die("no room to copy what is pending:");
    memcpy(bits, m->pending.at + start / 8, (length + 7) / 8);
    store_mark(to, to_offset, bytes, false);
    for (uint64_t at = found - m->origin - start, stop; at < length; at = bits_find(bits, stop, length, true)) {
        stop = bits_find(bits, at, length, false);
        store_mark(to, to_offset + (start + at - skew), stop - at, true);
    }
    free(bits);
}

void store_copy(enum image image, uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes)
{
    store_reach(image, from, from_offset + bytes);
    store_reach(image, to, to_offset + bytes);
    memmove(store_at(image, to, to_offset), store_at(image, from, from_offset), bytes);
    if (image == IMAGE_NOW)
        pending_copy(to, to_offset, from, from_offset, bytes);
}

void store_reset(void)
{
    if (!memories)
        return;
    store_join();
    for (uint32_t i = 0; i <= store_messages(); i++)
        map_drop(&memories[i].base);
    free(memories);
    memories = NULL;
    close(file);
}
