/* store.c: the bytes of all memories, as anonymous mappings: made when a memory is first touched, and grown by mremap. */
#define _GNU_SOURCE                                     /* mremap */
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocator.h"
#include "base/address.h"
#include "base/tables.h"
#include "common/fail.h"
#include "contents.h"
#include "operation.h"
#include "written.h"

enum { FIRST_BYTES = 64 << 10 };

static const uint64_t hidden_bytes = UINT64_C(1) << 40; /* of a memory that no address names */

struct memory {
    uint8_t *at;                                        /* of the first mapped byte */
    uint64_t mapped;                                    /* bytes */
    uint64_t first;                                     /* offset of the first byte that can be mapped */
    uint64_t bytes;                                     /* from there on, a whole number of FIRST_BYTES */
};

static struct memory *memories;                         /* NULL before the first use */

/* What the scheduler reserves at the beginning of a TCM has no addresses. */
static uint64_t first_offset(uint32_t memory)
{
    bool tcm = memory >= memory_tcm(0) && memory < memory_sram(0);
    return tcm ? kb_attrs.pe_tcm_reserved_bytes / FIRST_BYTES * FIRST_BYTES : 0;
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
        die("out of memory for the table of %u memories:", count);
    for (uint32_t i = 0; i < count; i++) {
        memories[i].first = first_offset(i);
        memories[i].bytes = (store_bytes(i) - memories[i].first + FIRST_BYTES - 1) / FIRST_BYTES * FIRST_BYTES;
    }
}

bool store_is_used(void)
{
    return memories;
}

static uint64_t mapped_end(uint32_t memory)
{
    return memories && memories[memory].mapped ? memories[memory].first + memories[memory].mapped : 0;
}

bool store_range_is_used(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    return bytes && offset < mapped_end(memory);
}

/* Maps a power of two of bytes, or the whole memory. */
void store_reach(uint32_t memory, uint64_t end)
{
    if (!memories)
        store_open();
    struct memory *m = &memories[memory];
    if (end <= m->first + m->mapped)
        return;
    uint64_t size = FIRST_BYTES;
    while (size < end - m->first)
        size *= 2;
    size = size < m->bytes ? size : m->bytes;
    void *at = m->at ? mremap(m->at, m->mapped, size, MREMAP_MAYMOVE)
               : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        die("cannot map %llu bytes of a simulated memory (a limit on address space?):", (unsigned long long)size);
    m->at = at;
    m->mapped = size;
}

/* Where the system cannot, pages are made as they are touched. */
void store_populate(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    enum { PAGE = 4096 };
    uintptr_t from = (uintptr_t)store_at(memory, offset), first = from / PAGE * PAGE;
#ifdef MADV_POPULATE_WRITE
    madvise((void *)first, from + bytes - first, MADV_POPULATE_WRITE);
#endif
}

void *store_at(uint32_t memory, uint64_t offset)
{
    struct memory *m = &memories[memory];
    return m->at + (offset - m->first);
}

void store_copy(uint32_t to, uint64_t to_offset, uint32_t from, uint64_t from_offset, uint64_t bytes)
{
    store_reach(from, from_offset + bytes);
    store_reach(to, to_offset + bytes);
    memmove(store_at(to, to_offset), store_at(from, from_offset), bytes);
}

void store_read(uint32_t memory, uint64_t offset, uint64_t bytes, void *to)
{
    uint64_t end = mapped_end(memory);
    uint64_t mapped = offset >= end ? 0 : end - offset < bytes ? end - offset : bytes;
    if (mapped)
        memcpy(to, store_at(memory, offset), mapped);
    memset((char *)to + mapped, 0, bytes - mapped);
}

static void memories_forget(void)
{
    for (uint32_t i = 0; memories && i < store_count(); i++)
        if (memories[i].at)
            munmap(memories[i].at, memories[i].mapped);
    free(memories);
    memories = NULL;
}

void store_reset(void)
{
    contents_reset();
    memories_forget();
    allocator_reset();
    written_reset();
    op_refs_reset();
}
