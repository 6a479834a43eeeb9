/* store.c: the bytes of all memories, and of the messages under way, as ranges of one sparse file without a name.
 *
 * `base` maps the file shared, `now` maps the same range privately: the operating system copies on write, and joining
 * the two images is an munmap. Before store_part, `now` is `base` itself. A memory is mapped when it is first touched;
 * the mapping grows by mremap, which keeps the private pages. */
#define _GNU_SOURCE                                     /* memfd_create, mremap */
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocator.h"
#include "base/address.h"
#include "base/tables.h"
#include "common/fail.h"
#include "operation.h"
#include "pending.h"
#include "view.h"

enum { FIRST_BYTES = 64 << 10 };

static const uint64_t hidden_bytes = UINT64_C(1) << 40; /* of a memory that no address names */

struct mapping {
    uint8_t *at;
    uint64_t bytes;
};

struct memory {
    struct mapping base, now;
    struct pending pending;
    uint64_t first;                                     /* offset of the first mapped byte */
    uint64_t file_offset, bytes;                        /* from there on, a whole number of FIRST_BYTES */
};

static struct {
    struct memory *memories;                            /* NULL before the first use */
    int file;
    bool parted;
} store;

/* What the scheduler reserves at the beginning of a TCM has no addresses. */
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

static int memories_file(uint64_t bytes)
{
    int file = memfd_create("memories", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes))
        die("cannot make a sparse file of %llu bytes for the simulated memories:", (unsigned long long)bytes);
    return file;
}

static void store_open(void)
{
    uint32_t count = store_count();
    store.memories = calloc(count, sizeof *store.memories);
    if (!store.memories)
        die("out of memory for the table of %u memories:", count);
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        store.memories[i].file_offset = end;
        store.memories[i].first = first_offset(i);
        uint64_t size = store_bytes(i);
        store.memories[i].bytes = (size - first_offset(i) + FIRST_BYTES - 1) / FIRST_BYTES * FIRST_BYTES;
        end += store.memories[i].bytes;
    }
    store.file = memories_file(end);
}

static struct memory *memory_of(uint32_t memory)
{
    if (!store.memories)
        store_open();
    return &store.memories[memory];
}

/* Grows a mapping to a power of two that holds `bytes`, or to the whole memory. */
static void mapping_grow(const struct memory *m, struct mapping *mapping, uint64_t bytes, int flags)
{
    if (bytes <= mapping->bytes)
        return;
    uint64_t size = FIRST_BYTES;
    while (size < bytes)
        size *= 2;
    size = size < m->bytes ? size : m->bytes;
    void *at = mapping->at ? mremap(mapping->at, mapping->bytes, size, MREMAP_MAYMOVE)
                       : mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, store.file,
                              (off_t)m->file_offset);
    if (at == MAP_FAILED)
        die("cannot map %llu bytes of a simulated memory (a limit on address space?):", (unsigned long long)size);
    *mapping = (struct mapping){at, size};
}

static void mapping_drop(struct mapping *mapping)
{
    if (mapping->at)
        munmap(mapping->at, mapping->bytes);
    *mapping = (struct mapping){NULL, 0};
}

void store_part(void)
{
    store.parted = true;
}

void store_join(void)
{
    for (uint32_t i = 0; store.memories && i < store_count(); i++) {
        mapping_drop(&store.memories[i].now);
        pending_clear(&store.memories[i].pending);
    }
    store.parted = false;
}

void store_reach(enum image image, uint32_t memory, uint64_t end)
{
    struct memory *m = memory_of(memory);
    if (image == IMAGE_NOW && store.parted)
        mapping_grow(m, &m->now, end - m->first, MAP_PRIVATE);
    else
        mapping_grow(m, &m->base, end - m->first, MAP_SHARED);
}

/* Where the system cannot, pages are made as they are touched. */
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
    return (image == IMAGE_NOW && store.parted ? m->now.at : m->base.at) + (offset - m->first);
}

/* ---- pending bytes */

void store_mark(uint32_t memory, uint64_t offset, uint64_t bytes, struct op_ref *maker)
{
    pending_set(&memory_of(memory)->pending, offset, bytes, maker);
}

void store_mark_view(const struct view *view, struct op_ref *maker)
{
    pending_set_view(&memory_of(view->memory)->pending, view, maker);
}

bool store_pending(uint32_t memory, uint64_t offset, uint64_t bytes, uint64_t *first)
{
    return pending_find(&memory_of(memory)->pending, offset, bytes, first);
}

struct op_ref *store_maker(uint32_t memory, uint64_t offset)
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
        pending_copy(&store.memories[to].pending, to_offset, &store.memories[from].pending, from_offset, bytes);
}

/* ---- a forked process */

static void copy_bytes(int to, const uint8_t *bytes, uint64_t count, uint64_t place)
{
    while (count > 0) {
        ssize_t wrote = pwrite(to, bytes, count, (off_t)place);
        if (wrote <= 0)
            die("cannot copy the simulated memories:");
        bytes += wrote, place += (uint64_t)wrote, count -= (uint64_t)wrote;
    }
}

/* Copies the parts of a mapping that hold something, and maps the copy in its place. */
static void mapping_copy(const struct memory *m, const struct mapping *mapping, int to)
{
    off_t end = (off_t)(m->file_offset + mapping->bytes), next;
    for (off_t at = (off_t)m->file_offset; (at = lseek(store.file, at, SEEK_DATA)) >= 0 && at < end; at = next) {
        next = lseek(store.file, at, SEEK_HOLE);
        next = next < 0 || next > end ? end : next;
        copy_bytes(to, mapping->at + (at - (off_t)m->file_offset), (uint64_t)(next - at), (uint64_t)at);
    }
    if (mmap(mapping->at, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, to,
             (off_t)m->file_offset) == MAP_FAILED)
        die("cannot map %llu bytes of a simulated memory:", (unsigned long long)mapping->bytes);
}

void store_forked(void)
{
    if (!store.memories)
        return;
    const struct memory *last = &store.memories[store_count() - 1];
    int file = memories_file(last->file_offset + last->bytes);
    for (const struct memory *m = store.memories; m <= last; m++)
        if (m->base.at)
            mapping_copy(m, &m->base, file);
    close(store.file);
    store.file = file;
}

static void memories_forget(void)
{
    if (!store.memories)
        return;
    store_join();
    for (uint32_t i = 0; i < store_count(); i++)
        mapping_drop(&store.memories[i].base);
    pending_reset();
    free(store.memories);
    store.memories = NULL;
    close(store.file);
}

void store_reset(void)
{
    memories_forget();
    allocator_reset();
    op_refs_reset();
}
