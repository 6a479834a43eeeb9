/* store.c: the bytes of all memories, as anonymous mappings: made when a memory is first touched, and grown by mremap.
 * Copies of a large tensor are private mappings of one file that lives in memory. */
#define _GNU_SOURCE                                     /* mremap, memfd_create */
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocator.h"
#include "base/address.h"
#include "base/tables.h"
#include "common/array.h"
#include "common/fail.h"
#include "contents.h"
#include "operation.h"
#include "written.h"

enum { FIRST_BYTES = 64 << 10, PAGE = 4096 };

static const uint64_t hidden_bytes = UINT64_C(1) << 40; /* of a memory that no address names */

struct memory {
    uint8_t *at;                                        /* of the first mapped byte */
    uint64_t mapped;                                    /* bytes */
    uint64_t first;                                     /* offset of the first byte that can be mapped */
    uint64_t bytes;                                     /* from there on, a whole number of FIRST_BYTES */
    struct ARRAY(uint64_t) cuts;                        /* where its mappings may end, from `at` on, in order */
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

static uint32_t all_cuts;

static void cut_add(struct memory *m, uint64_t at)
{
    size_t i = m->cuts.count;
    while (i > 0 && m->cuts.at[i - 1] > at)
        i--;
    if (i > 0 && m->cuts.at[i - 1] == at)
        return;
    array_reserve(&m->cuts, m->cuts.count + 1);
    memmove(&m->cuts.at[i + 1], &m->cuts.at[i], (m->cuts.count++ - i) * sizeof *m->cuts.at);
    m->cuts.at[i] = at;
    all_cuts++;
}

static void *map_new(uint64_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Moves what is mapped to a larger mapping, which is returned. Before Linux 6.17 mremap takes one mapping at a time. */
static void *map_larger(struct memory *m, uint64_t size)
{
    if (!m->cuts.count)
        return mremap(m->at, m->mapped, size, MREMAP_MAYMOVE);
    cut_add(m, m->mapped);                              /* there the rest of the larger one begins */
    uint8_t *at = map_new(size);
    for (uint64_t i = 0, from = 0, to; at != MAP_FAILED && from < m->mapped; i++, from = to) {
        to = m->cuts.at[i];
        if (to > from && mremap(m->at + from, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, at + from) == MAP_FAILED)
            return MAP_FAILED;
    }
    return at;
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
    void *at = m->at ? map_larger(m, size) : map_new(size);
    if (at == MAP_FAILED)
        die("cannot map %llu bytes of a simulated memory (a limit on address space?):", (unsigned long long)size);
    m->at = at;
    m->mapped = size;
}

/* Where the system cannot, pages are made as they are touched. */
void store_populate(uint32_t memory, uint64_t offset, uint64_t bytes)
{
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

/* ---- copies that share pages */

enum { SHARED_LEAST = 256 << 10, CUTS_MOST = 1 << 14 }; /* bytes that are worth it; by default a process has 65,530 mappings */

bool shared_pages_make(struct shared_pages *pages, uint32_t memory, uint64_t offset, uint64_t bytes)
{
    if (bytes < SHARED_LEAST || sysconf(_SC_PAGESIZE) != PAGE)
        return false;
    *pages = (struct shared_pages){memfd_create("kbgen copies", MFD_CLOEXEC), offset % PAGE, bytes};
    if (pages->file < 0)
        return false;
    const uint8_t *from = store_at(memory, offset);
    for (uint64_t done = 0; done < bytes;) {
        ssize_t part = pwrite(pages->file, from + done, bytes - done, (off_t)(pages->phase + done));
        if (part <= 0) {
            shared_pages_drop(pages);
            return false;
        }
        done += (uint64_t)part;
    }
    return true;
}

/* Maps whole pages, and copies what is before and behind them. */
bool shared_pages_map(const struct shared_pages *pages, uint32_t memory, uint64_t offset)
{
    struct memory *m = &memories[memory];
    uint64_t begin = offset - m->first, end = begin + pages->bytes, origin = begin - pages->phase;  /* of the file's byte 0 */
    uint64_t first = (begin + PAGE - 1) / PAGE * PAGE, last = end / PAGE * PAGE;
    if (begin % PAGE != pages->phase || all_cuts + 2 > CUTS_MOST)
        return false;
    int how = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    if (mmap(m->at + first, last - first, PROT_READ | PROT_WRITE, how, pages->file, (off_t)(first - origin)) == MAP_FAILED) {
        if (mmap(m->at + first, last - first, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            die("cannot map %llu bytes of a simulated memory:", (unsigned long long)(last - first));
        return false;
    }
    cut_add(m, first);
    cut_add(m, last);
    return pread(pages->file, m->at + begin, first - begin, (off_t)pages->phase) == (ssize_t)(first - begin)
           && pread(pages->file, m->at + last, end - last, (off_t)(last - origin)) == (ssize_t)(end - last);
}

void shared_pages_drop(struct shared_pages *pages)
{
    close(pages->file);
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
    for (uint32_t i = 0; memories && i < store_count(); i++) {
        if (memories[i].at)
            munmap(memories[i].at, memories[i].mapped);
        array_free(&memories[i].cuts);
    }
    all_cuts = 0;
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
