/* store.c: the sparse memory: growth, copies, reset. The machine here is four large HBM slices. */
#include <stdio.h>
#include <string.h>

#include "machine/emitted.h"
#include "store/store.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 2, .pes = 2, .slices = 2, .srams = 1};
const struct attrs kb_attrs = {.hbm_slice_bytes = UINT64_C(64) << 30, .sram_bytes = 1000,
                               .pe_tcm_size_bytes = 4 << 20, .pe_tcm_reserved_bytes = (2 << 20) + 100};

enum { HBM = 0, OTHER = 1, TCM = 4, SRAM = 8 };

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

int main(void)
{
    expect(!store_is_used(), "a new store is not in use");
    sparse();
    copies();
    expect(store_is_used(), "a store with bytes is in use");
    store_reset();
    expect(!store_is_used() && *bytes_at(HBM, 10, 1) == 0, "a reset store is zero again");
    return tests_end();
}
