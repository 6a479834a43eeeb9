/* store.c: the sparse memory: growth, the two views, pending bytes. The machine here is four large HBM slices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/emitted.h"
#include "store/operation.h"
#include "store/store.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 2, .pes = 2};
const struct attrs kb_attrs = {.hbm_slice_bytes = UINT64_C(64) << 30, .sram_bytes = 1000,
                               .pe_tcm_size_bytes = 4 << 20, .pe_tcm_reserved_bytes = (2 << 20) + 100};

enum { HBM = 0, OTHER = 1, TCM = 4, SRAM = 8 };

static uint8_t *bytes_at(enum image image, uint32_t memory, uint64_t offset, uint64_t bytes)
{
    store_reach(image, memory, offset + bytes);
    return store_at(image, memory, offset);
}

static void put(enum image image, uint32_t memory, uint64_t offset, const char *text)
{
    memcpy(bytes_at(image, memory, offset, strlen(text)), text, strlen(text));
}

static bool holds(enum image image, uint32_t memory, uint64_t offset, const char *text)
{
    return !memcmp(bytes_at(image, memory, offset, strlen(text)), text, strlen(text));
}

static void sparse(void)
{
    expect(*bytes_at(IMAGE_NOW, HBM, 12345, 1) == 0, "memory is 0 at the start");
    put(IMAGE_NOW, HBM, 10, "near");
    put(IMAGE_NOW, HBM, (UINT64_C(1) << 31) - 2, "far!");
    expect(holds(IMAGE_NOW, HBM, 10, "near") && holds(IMAGE_NOW, HBM, (UINT64_C(1) << 31) - 2, "far!"),
           "a memory that grows keeps its bytes");
    put(IMAGE_NOW, TCM, (2 << 20) + 100, "tcm");
    put(IMAGE_NOW, TCM, (4 << 20) - 3, "end");
    put(IMAGE_NOW, SRAM, 997, "end");
    expect(holds(IMAGE_NOW, TCM, (2 << 20) + 100, "tcm") && holds(IMAGE_NOW, TCM, (4 << 20) - 3, "end") &&
           holds(IMAGE_NOW, SRAM, 997, "end") && *bytes_at(IMAGE_NOW, TCM + 1, 3 << 20, 1) == 0,
           "writes to the first and last byte of a TCM touch no neighbour");
}

static void views(void)
{
    put(IMAGE_NOW, HBM, 100, "before");
    expect(holds(IMAGE_BASE, HBM, 100, "before"), "both images are one until a write parts them");
    store_part();
    put(IMAGE_NOW, HBM, 100, "after!");
    put(IMAGE_NOW, HBM, UINT64_C(3) << 30, "grown");
    put(IMAGE_NOW, HBM, 5 << 20, "x");
    expect(holds(IMAGE_BASE, HBM, 100, "before") && holds(IMAGE_NOW, HBM, 100, "after!") &&
           holds(IMAGE_NOW, HBM, UINT64_C(3) << 30, "grown"),
           "a write to the image now leaves base alone, also when the memory grows");
    put(IMAGE_BASE, HBM, 100, "replay");
    expect(holds(IMAGE_NOW, HBM, 100, "after!"), "a write to base leaves a written page of the image now alone");
    store_join();
    expect(holds(IMAGE_NOW, HBM, 100, "replay") && holds(IMAGE_NOW, HBM, UINT64_C(3) << 30, "\0\0\0"),
           "joined images are equal to base");
}

/* Calls whose results are pending; the first is none. */
enum { MAKERS = 4 };
static struct op_ref *maker_of[MAKERS], **makers = maker_of + 1;

static bool is_pending(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    uint64_t first;
    return store_pending(memory, offset, bytes, &first);
}

static void pending(void)
{
    uint64_t first = 0;
    store_mark(HBM, 1003, 10, makers[0]);
    expect(!is_pending(HBM, 0, 1003) && is_pending(HBM, 0, 1004) && is_pending(HBM, 1012, 5) &&
               !is_pending(HBM, 1013, 9999),
           "exactly the marked bytes are pending");
    expect(store_pending(HBM, 990, 100, &first) && first == 1003, "the first pending byte is found");
    store_copy(IMAGE_NOW, OTHER, 77, HBM, 1000, 20);
    expect(!is_pending(OTHER, 0, 80) && is_pending(OTHER, 80, 1) && is_pending(OTHER, 89, 1) &&
               !is_pending(OTHER, 90, 1000),
           "a copy carries pending bytes to another alignment");
    store_copy(IMAGE_NOW, HBM, 1005, HBM, 1000, 20);
    expect(!is_pending(HBM, 1005, 3) && is_pending(HBM, 1008, 1) && is_pending(HBM, 1017, 1) &&
               !is_pending(HBM, 1018, 99) && is_pending(HBM, 1003, 2),
           "a copy carries pending bytes where its ranges overlap");
    store_copy(IMAGE_NOW, HBM, 0, OTHER, 4096, 2000);
    expect(!is_pending(HBM, 0, 4096), "known bytes that are copied over pending ones make them known");
    store_mark(HBM, 5000, 1, makers[0]);
    store_join();
    expect(!is_pending(HBM, 0, 10000) && !is_pending(OTHER, 0, 1000), "after joining no byte is pending");
}

/* Random marks and copies against one byte per byte, which says whose result it is. */
static void random_marks(void)
{
    enum { SIZE = 700 };
    static uint8_t model[2][SIZE], moved[SIZE];
    bool good = true;
    for (int step = 0; step < 20000 && good; step++) {
        uint32_t memory = rand() & 1, from = rand() & 1;
        uint64_t at = (uint64_t)rand() % SIZE, source = (uint64_t)rand() % SIZE;
        uint64_t most = SIZE - (at > source ? at : source), n = (uint64_t)rand() % most + 1, first = 0;
        if (rand() % 2) {
            uint8_t value = rand() % MAKERS;
            memset(model[memory] + at, value, n);
            store_mark(memory, at, n, maker_of[value]);
        } else {
            memcpy(moved, model[from] + source, n);
            memcpy(model[memory] + at, moved, n);
            store_copy(IMAGE_NOW, memory, at, from, source, n);
        }
        at = (uint64_t)rand() % SIZE, n = (uint64_t)rand() % (SIZE - at) + 1;
        uint64_t want = at;
        while (want < at + n && !model[memory][want])
            want++;
        good &= store_pending(memory, at, n, &first) == (want < at + n);
        good &= want == at + n || first == want;
        good &= store_maker(memory, at) == maker_of[model[memory][at]];
    }
    expect(good, "random marks and copies give what a byte at a time gives");
    store_join();
    for (int i = 1; i < MAKERS; i++)
        good &= maker_of[i]->holders == 1;
    expect(good, "a call whose results are all known is released");
}

int main(void)
{
    for (int i = 1; i < MAKERS; i++)
        maker_of[i] = op_ref_new();
    sparse();
    views();
    pending();
    random_marks();
    return tests_end();
}
