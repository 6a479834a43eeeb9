/* store.c: the sparse memory: growth, copies, reset. The machine here is four large HBM slices. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/emitted.h"
#include "store/store.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 2, .pes = 2, .slices = 2, .srams = 1};
const struct attrs kb_attrs = {.hbm_slice_bytes = UINT64_C(64) << 30, .sram_bytes = 1000,
                               .pe_tcm_size_bytes = 4 << 20, .pe_tcm_reserved_bytes = (2 << 20) + 100};

enum { HBM = 0, OTHER = 1, TCM = 4, SRAM = 8 };

/* Before Linux 6.17 mremap takes bytes of one mapping alone. */
static bool spans_mappings;

void *mremap(void *from, size_t bytes, size_t new_bytes, int flags, ...)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t at = (uintptr_t)from, begin, end;
    bool inside = false;
    while (maps && !inside && fscanf(maps, "%" SCNxPTR "-%" SCNxPTR "%*[^\n]", &begin, &end) == 2)
        inside = begin <= at && at + bytes <= end;
    if (maps)
        fclose(maps);
    spans_mappings |= !inside;
    va_list rest;
    va_start(rest, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    return (void *)syscall(SYS_mremap, from, bytes, new_bytes, flags, to);
}

static uint8_t *bytes_at(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    store_reach(memory, offset + bytes);
    return store_at(memory, offset);
}

static void put(uint32_t memory, uint64_t offset, const char *text)
{
    memcpy(bytes_at(memory, offset, strlen(text)), text, strlen(text));
}

static bool holds(uint32_t memory, uint64_t offset, const char *text)
{
    return !memcmp(bytes_at(memory, offset, strlen(text)), text, strlen(text));
}

static void sparse(void)
{
    expect(*bytes_at(HBM, 12345, 1) == 0, "memory is 0 at the start");
    put(HBM, 10, "near");
    put(HBM, (UINT64_C(1) << 31) - 2, "far!");
    expect(holds(HBM, 10, "near") && holds(HBM, (UINT64_C(1) << 31) - 2, "far!"),
           "a memory that grows keeps its bytes");
    put(TCM, (2 << 20) + 100, "tcm");
    put(TCM, (4 << 20) - 3, "end");
    put(SRAM, 997, "end");
    expect(holds(TCM, (2 << 20) + 100, "tcm") && holds(TCM, (4 << 20) - 3, "end") &&
           holds(SRAM, 997, "end") && *bytes_at(TCM + 1, 3 << 20, 1) == 0,
           "writes to the first and last byte of a TCM touch no neighbour");
}

static void copies(void)
{
    char text[12];
    store_copy(OTHER, 77, HBM, 8, 8);
    store_read(OTHER, 79, 4, text);
    expect(!memcmp(text, "near", 4), "bytes are copied between memories");
    store_copy(HBM, 12, HBM, 10, 4);
    expect(holds(HBM, 10, "nenear"), "a copy's ranges may overlap");
    store_read(SRAM, 900, 3, text);
    store_read(OTHER + 1, UINT64_C(40) << 30, 3, text + 3);
    expect(!memcmp(text, "\0\0\0\0\0", 6), "bytes that nothing has touched are read as zero");
}

enum { SHARED = 1 << 20 };

static bool is_copy(uint32_t memory, uint64_t offset)
{
    const uint8_t *at = bytes_at(memory, offset, SHARED);
    for (uint64_t i = 0; i < SHARED; i++)
        if (at[i] != (uint8_t)(i * i >> 7))
            return false;
    return true;
}

static void shared_copies(void)
{
    enum { AT = 5000, APART = 3 << 20 };
    struct shared_pages pages;
    store_reach(SRAM + 1, 1000);
    expect(!shared_pages_make(&pages, SRAM + 1, 0, 1000), "a short copy shares nothing");
    uint8_t *original = bytes_at(HBM, AT, SHARED);
    for (uint64_t i = 0; i < SHARED; i++)
        original[i] = (uint8_t)(i * i >> 7);
    store_reach(OTHER, AT + APART + SHARED);
    store_reach(OTHER + 1, AT + SHARED);
    put(OTHER, AT - 6, "before");
    put(OTHER, AT + SHARED, "behind");
    put(OTHER, 300, "as it was");
    bool made = shared_pages_make(&pages, HBM, AT, SHARED);
    expect(made && !shared_pages_map(&pages, OTHER, AT + 64), "pages that lie otherwise in memory are not shared");
    expect(holds(OTHER, 300, "as it was"), "and nothing is written");
    expect(made && shared_pages_map(&pages, OTHER, AT) && shared_pages_map(&pages, OTHER, AT + APART)
           && shared_pages_map(&pages, OTHER + 1, AT) && is_copy(OTHER, AT) && is_copy(OTHER, AT + APART) && is_copy(OTHER + 1, AT)
           && holds(OTHER, AT - 6, "before") && holds(OTHER, AT + SHARED, "behind"),
           "copies that share pages are what the range was, and nothing beside them changes");
    shared_pages_drop(&pages);
    original[SHARED / 2] ^= 1;
    bytes_at(OTHER + 1, AT, SHARED)[SHARED / 3] ^= 1;
    expect(is_copy(OTHER, AT) && !is_copy(HBM, AT) && !is_copy(OTHER + 1, AT), "what is written to one copy is in no other");
    for (uint64_t far = 8 << 20; far < UINT64_C(64) << 30; far *= 2)
        put(OTHER, far + 8, "far");
    bool all = is_copy(OTHER, AT) && is_copy(OTHER, AT + APART) && holds(OTHER, AT + SHARED, "behind");
    for (uint64_t far = 8 << 20; far < UINT64_C(64) << 30; far *= 2)
        all &= holds(OTHER, far + 8, "far");
    expect(all, "a memory with shared pages grows again and again and keeps its bytes");
    expect(!spans_mappings, "one mapping at a time");
}

int main(void)
{
    expect(!store_is_used(), "a new store is not in use");
    sparse();
    copies();
    shared_copies();
    expect(store_is_used(), "a store with bytes is in use");
    store_reset();
    expect(!store_is_used() && *bytes_at(HBM, 10, 1) == 0, "a reset store is zero again");
    return tests_end();
}
