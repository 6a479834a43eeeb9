/* mmu.c: pe_mmu: page table and TLB of a PE.
 *
 * The table is a sorted list of mapped stretches; a later map replaces what it covers. The TLB is fully associative and
 * forgets the least recently used page: a hash of page numbers whose entries are chained by last use. It holds numbers
 * alone, since only time depends on it. */
#include "mmu.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/rates.h"
#include "emitted.h"
#include "pe.h"
#include "state.h"
#include "common/arena.h"
#include "common/diag.h"

/* Pages [first, end) stand at consecutive addresses from `address` on. */
struct stretch {
    uint64_t first, end, address;
};

struct tlb_entry {
    uint64_t page;
    uint32_t newer, older, next;                        /* by last use, in a ring; in the chain of its hash */
    bool valid;
};

struct mmu {
    struct stretch *stretches;
    size_t count, room;
    struct tlb_entry *entries; /* from 1 on; entry 0 stands between the newest and the oldest */
    uint32_t *buckets, mask;
};

/* ---- TLB */

static uint32_t *bucket_of(struct mmu *mmu, uint64_t page)
{
    return &mmu->buckets[(page * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mmu->mask];
}

static uint32_t tlb_find(struct mmu *mmu, uint64_t page)
{
    uint32_t i = *bucket_of(mmu, page);
    while (i && mmu->entries[i].page != page)
        i = mmu->entries[i].next;
    return i;
}

/* Moves an entry to the newest end of the ring, or to the oldest. */
static void tlb_move(struct tlb_entry *entries, uint32_t i, bool newest)
{
    entries[entries[i].newer].older = entries[i].older;
    entries[entries[i].older].newer = entries[i].newer;
    uint32_t newer = newest ? 0 : entries[0].newer, older = newest ? entries[0].older : 0;
    entries[i].newer = newer;
    entries[i].older = older;
    entries[newer].older = i;
    entries[older].newer = i;
}

/* Takes an entry out of its hash chain: its page is no longer in the TLB. */
static void tlb_unchain(struct mmu *mmu, uint32_t i)
{
    uint32_t *link = bucket_of(mmu, mmu->entries[i].page);
    while (*link != i)
        link = &mmu->entries[*link].next;
    *link = mmu->entries[i].next;
    mmu->entries[i].valid = false;
}

static void tlb_take_in(struct mmu *mmu, uint64_t page)
{
    uint32_t oldest = mmu->entries[0].newer;
    if (mmu->entries[oldest].valid)
        tlb_unchain(mmu, oldest);
    mmu->entries[oldest].page = page;
    mmu->entries[oldest].valid = true;
    mmu->entries[oldest].next = *bucket_of(mmu, page);
    *bucket_of(mmu, page) = oldest;
    tlb_move(mmu->entries, oldest, true);
}

static void tlb_drop(struct mmu *mmu, uint64_t page)
{
    uint32_t i = tlb_find(mmu, page);
    if (!i)
        return;
    tlb_unchain(mmu, i);
    tlb_move(mmu->entries, i, false);
}

static struct mmu *mmu_of(struct pe *pe)
{
    if (pe->mmu)
        return pe->mmu;
    struct mmu *mmu = arena_alloc(1, sizeof *mmu);
    uint32_t entries = kb_attrs.pe_mmu_tlb_entries, buckets = 1;
    while (buckets < 2 * entries)
        buckets *= 2;
    mmu->mask = buckets - 1;
    mmu->buckets = arena_alloc(buckets, sizeof *mmu->buckets);
    mmu->entries = arena_alloc(entries + 1, sizeof *mmu->entries);
    for (uint32_t i = 1; i <= entries; i++) {
        mmu->entries[i].newer = mmu->entries[i].older = i;
        tlb_move(mmu->entries, i, true);
    }
    return pe->mmu = mmu;
}

/* ---- page table */

/* The first stretch that ends behind a page. */
static size_t stretch_from(const struct mmu *mmu, uint64_t page)
{
    size_t low = 0, high = mmu->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mmu->stretches[middle].end > page)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void stretch_insert(struct mmu *mmu, size_t at, struct stretch stretch)
{
    if (mmu->count == mmu->room) {
        mmu->room = mmu->room ? 2 * mmu->room : 8;
        struct stretch *larger = arena_alloc(mmu->room, sizeof *larger);
        if (mmu->count)
            memcpy(larger, mmu->stretches, mmu->count * sizeof *larger);
        mmu->stretches = larger;
    }
    memmove(&mmu->stretches[at + 1], &mmu->stretches[at], (mmu->count++ - at) * sizeof stretch);
    mmu->stretches[at] = stretch;
}

static uint64_t stretch_address(const struct stretch *stretch, uint64_t page)
{
    return address_add(stretch->address, (page - stretch->first) * kb_attrs.pe_mmu_page_bytes);
}

/* Leaves none of the pages [first, end) mapped; what a stretch has around them stays. Returns where they would stand.
 */
static size_t stretches_cut(struct mmu *mmu, uint64_t first, uint64_t end)
{
    if (mmu->count == 0)
        return 0;
    size_t at = stretch_from(mmu, first);
    if (at < mmu->count && mmu->stretches[at].first < first) {
        struct stretch rest = mmu->stretches[at];
        rest.address = stretch_address(&rest, first);
        rest.first = first;
        mmu->stretches[at].end = first;
        stretch_insert(mmu, ++at, rest);
    }
    size_t behind = at;
    while (behind < mmu->count && mmu->stretches[behind].end <= end)
        behind++;
    if (behind < mmu->count && mmu->stretches[behind].first < end) {
        mmu->stretches[behind].address = stretch_address(&mmu->stretches[behind], end);
        mmu->stretches[behind].first = end;
    }
    memmove(&mmu->stretches[at], &mmu->stretches[behind], (mmu->count - behind) * sizeof *mmu->stretches);
    mmu->count -= behind - at;
    return at;
}

static size_t pages_clear(struct mmu *mmu, uint64_t first, uint64_t end)
{
    /* Whichever is shorter: the pages, or what the TLB may hold of them. */
    if (end - first <= kb_attrs.pe_mmu_tlb_entries)
        for (uint64_t page = first; page < end; page++)
            tlb_drop(mmu, page);
    else
        for (uint32_t i = 1; i <= kb_attrs.pe_mmu_tlb_entries; i++)
            if (mmu->entries[i].valid && mmu->entries[i].page >= first && mmu->entries[i].page < end)
                tlb_drop(mmu, mmu->entries[i].page);
    return stretches_cut(mmu, first, end);
}

const char *map_pages(uint64_t va, uint64_t bytes, uint64_t *pages)
{
    uint64_t page = kb_attrs.pe_mmu_page_bytes;
    *pages = bytes / page + (bytes % page != 0);
    if (va % page)
        return arena_printf("virtual address 0x%" PRIx64 " is no multiple of the page, %" PRIu64 " bytes", va, page);
    if (*pages && *pages - 1 > (UINT64_MAX - va) / page)
        return arena_printf("the pages from 0x%" PRIx64 " on run past the last virtual address", va);
    return NULL;
}

void mmu_map(struct pe *pe, uint64_t va, uint64_t pages, uint64_t address)
{
    if (!kb_attrs.pe_mmu_enabled)
        return;
    uint64_t first = va / kb_attrs.pe_mmu_page_bytes;
    struct mmu *mmu = mmu_of(pe);
    size_t at = pages_clear(mmu, first, first + pages);
    stretch_insert(mmu, at, (struct stretch){first, first + pages, address});
}

void mmu_unmap(struct pe *pe, uint64_t va, uint64_t pages)
{
    uint64_t first = va / kb_attrs.pe_mmu_page_bytes;
    if (kb_attrs.pe_mmu_enabled)
        pages_clear(mmu_of(pe), first, first + pages);
}

/* ---- translation */

static struct address_run *runs;
static size_t runs_room;

static void run_add(struct translation *t, uint64_t address, uint64_t bytes)
{
    struct address_run *last = t->count ? &runs[t->count - 1] : NULL;
    if (last && last->address + last->bytes == address && last->address >> OFFSET_BITS == address >> OFFSET_BITS) {
        last->bytes += bytes;
        return;
    }
    if (t->count == runs_room) {
        runs_room = runs_room ? 2 * runs_room : 64;
        runs = realloc(runs, runs_room * sizeof *runs);
        if (!runs)
            die("no memory for the runs of a transfer");
    }
    runs[t->count++] = (struct address_run){address, bytes};
}

static void page_look_up(struct mmu *mmu, uint64_t page, bool mapped, struct translation *t)
{
    uint32_t entry = tlb_find(mmu, page);
    if (entry) {
        tlb_move(mmu->entries, entry, true);
        return;
    }
    t->ps = sum(t->ps, kb_attrs.pe_mmu_walk_ps);
    if (mapped)
        tlb_take_in(mmu, page);
}

/* The pages of one virtual run; `looked_up` is 1 + the one before it, whose time is paid. */
static void translate_run(struct mmu *mmu, const struct address_run *asked, bool timed, uint64_t *looked_up,
                          struct translation *t)
{
    uint64_t size = kb_attrs.pe_mmu_page_bytes;
    for (uint64_t done = 0; done < asked->bytes;) {
        uint64_t va = asked->address + done, page = va / size, within = va % size;
        uint64_t here = size - within < asked->bytes - done ? size - within : asked->bytes - done;
        size_t at = stretch_from(mmu, page);
        bool mapped = at < mmu->count && mmu->stretches[at].first <= page;
        if (timed && *looked_up != page + 1)
            page_look_up(mmu, page, mapped, t);
        *looked_up = page + 1;
        if (mapped)
            run_add(t, address_add(stretch_address(&mmu->stretches[at], page), within), here);
        else if (!t->unmapped)
            t->page = page * size;
        t->unmapped |= !mapped;
        done += here;
    }
}

struct translation mmu_translate(struct pe *pe, const struct address_run *asked, size_t count)
{
    struct mmu *mmu = mmu_of(pe);
    struct translation t = {.ps = kb_attrs.pe_mmu_tlb_overhead_ps};
    uint64_t looked_up = 0;
    for (size_t i = 0; i < count; i++)
        translate_run(mmu, &asked[i], true, &looked_up, &t);
    t.runs = runs;
    return t;
}

struct translation mmu_look(struct pe *pe, uint64_t va, uint64_t bytes)
{
    struct translation t = {.ps = 0};
    uint64_t looked_up = 0;
    translate_run(mmu_of(pe), &(struct address_run){va, bytes}, false, &looked_up, &t);
    t.runs = runs;
    return t;
}

/* ---- save and restore */

STATE_LISTED(mmu)
#define MMU STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(stretch)
#define STRETCH STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END
STATE_LISTED(tlb_entry)
#define TLB_ENTRY STATE_LISTED_FIELD
#include "state.def"
STATE_LISTED_END

void mmu_carry(struct pe *pe, struct state_image *image)
{
    bool used = pe->mmu;
    state_carry(image, &used, sizeof used);
    if (!used) {
        pe->mmu = NULL;
        return;
    }
    struct mmu *mmu = mmu_of(pe);
#define MMU(field, kind, when) STATE_CARRY(MMU, mmu, field, kind)
#include "state.def"
    if (mmu->room < mmu->count) {
        mmu->room = mmu->count;
        mmu->stretches = arena_alloc(mmu->room, sizeof *mmu->stretches);
    }
    state_carry(image, mmu->stretches, mmu->count * sizeof *mmu->stretches);
    state_carry(image, mmu->entries, (kb_attrs.pe_mmu_tlb_entries + 1) * sizeof *mmu->entries);
    state_carry(image, mmu->buckets, (mmu->mask + UINT64_C(1)) * sizeof *mmu->buckets);
}
