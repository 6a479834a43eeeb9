/* mmu.c: pe_mmu: page table and TLB of a PE.
 *
 * The table is an interval map from page numbers to physical addresses; a later map replaces what it covers. The TLB is
 * fully associative with least-recently-used replacement: a hash table of page numbers, whose entries form a circular
 * list by last use. It holds page numbers only, since only time depends on it. */
#include "mmu.h"

#include <inttypes.h>

#include "base/address.h"
#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/interval_map.h"
#include "emitted.h"
#include "kb/impl.h"
#include "pe.h"
#include "sim/observer.h"
#include "state_fields.h"

/* Pages that are mapped to consecutive addresses. */
struct stretch {
    struct interval interval;                           /* first page, page after the last */
    uint64_t address;
};

static void stretch_advance(struct interval *interval, uint64_t pages)
{
    struct stretch *stretch = (struct stretch *)interval;
    stretch->address = address_add(stretch->address, pages * kb_attrs.pe_mmu_page_bytes);
}

static struct interval_kind stretches = {.size = sizeof(struct stretch), .advance = stretch_advance};

struct tlb_entry {
    uint64_t page;
    uint32_t newer, older;                              /* neighbours in the circular list */
    uint32_t next;                                      /* in the chain of its hash */
    bool valid;
};

struct mmu {
    struct interval_map table;
    struct tlb_entry *entries;                          /* from 1 on; entry 0 is between the newest and the oldest */
    uint32_t *buckets, mask;                            /* heads of chains; their number - 1 */
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

/* Moves an entry to the newest end of the list, or to the oldest. */
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

/* Removes an entry from its hash chain: its page is not in the TLB any more. */
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

/* The MMU of a PE, which is made at its first use. */
static struct mmu *mmu_of(struct pe *pe)
{
    if (pe->mmu)
        return pe->mmu;
    struct mmu *mmu = arena_alloc(1, sizeof *mmu);
    uint32_t entries = kb_attrs.pe_mmu_tlb_entries, buckets = 1;
    mmu->table.kind = &stretches;
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

/* The mapped stretch that a page is in; NULL: it is not mapped. */
static const struct stretch *stretch_of(const struct mmu *mmu, uint64_t page)
{
    const struct interval *interval = interval_find(&mmu->table, page);
    return interval && interval->begin <= page ? (const struct stretch *)interval : NULL;
}

/* Removes pages [first, end) from the table and from the TLB. */
static void pages_clear(struct mmu *mmu, uint64_t first, uint64_t end)
{
    interval_erase(&mmu->table, first, end);
    if (end - first <= kb_attrs.pe_mmu_tlb_entries) {   /* whichever is shorter: the pages, or the TLB */
        for (uint64_t page = first; page < end; page++)
            tlb_drop(mmu, page);
        return;
    }
    for (uint32_t i = 1; i <= kb_attrs.pe_mmu_tlb_entries; i++)
        if (mmu->entries[i].valid && mmu->entries[i].page >= first && mmu->entries[i].page < end)
            tlb_drop(mmu, mmu->entries[i].page);
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

/* Tells the model of a user that pages are mapped or unmapped. */
static void model_drops(const struct pe *pe, uint64_t page, uint64_t pages)
{
    if (kb_has_model[NODE_pe_mmu])
        pe_mmu_page_ps(&(struct kb_page_request){pe_number(pe), .drops = true, .page = page, .pages = pages,
                                                 .at_ps = now_ps});
}

void mmu_map(struct pe *pe, uint64_t va, uint64_t pages, uint64_t address)
{
    if (!kb_attrs.pe_mmu_enabled || !pages)
        return;
    uint64_t first = va / kb_attrs.pe_mmu_page_bytes;
    struct mmu *mmu = mmu_of(pe);
    pages_clear(mmu, first, first + pages);
    model_drops(pe, first, pages);
    interval_set(&mmu->table, &(struct stretch){{.begin = first, .end = first + pages}, address}.interval);
}

void mmu_unmap(struct pe *pe, uint64_t va, uint64_t pages)
{
    uint64_t first = va / kb_attrs.pe_mmu_page_bytes;
    if (!kb_attrs.pe_mmu_enabled)
        return;
    pages_clear(mmu_of(pe), first, first + pages);
    model_drops(pe, first, pages);
}

/* ---- translation */

static struct ARRAY(struct address_run) runs;           /* of the last translation */

static void run_add(uint64_t address, uint64_t bytes)
{
    struct address_run *last = runs.count ? &runs.at[runs.count - 1] : NULL;
    if (last && last->address + last->bytes == address && last->address >> OFFSET_BITS == address >> OFFSET_BITS)
        last->bytes += bytes;
    else
        *array_add(&runs) = (struct address_run){address, bytes};
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

/* Translates one virtual run. `looked_up` is 1 + the page that was looked up last, which takes no time again. */
static void translate_run(struct mmu *mmu, const struct address_run *asked, bool timed, uint64_t *looked_up,
                          struct translation *t)
{
    uint64_t size = kb_attrs.pe_mmu_page_bytes;
    for (uint64_t done = 0, here; done < asked->bytes; done += here) {
        uint64_t va = asked->address + done, page = va / size, within = va % size;
        here = size - within < asked->bytes - done ? size - within : asked->bytes - done;
        const struct stretch *stretch = stretch_of(mmu, page);
        if (timed && *looked_up != page + 1)
            page_look_up(mmu, page, stretch, t);
        *looked_up = page + 1;
        if (stretch) {
            run_add(address_add(stretch->address, (page - stretch->interval.begin) * size + within), here);
            continue;
        }
        if (!t->unmapped)
            t->page = page * size;
        t->unmapped = true;
    }
    t->runs = runs.at;
    t->count = runs.count;
}

/* Translates virtual runs without taking time. */
static struct translation translate(struct pe *pe, const struct address_run *asked, size_t count)
{
    struct translation t = {.ps = 0};
    uint64_t looked_up = 0;
    runs.count = 0;
    for (size_t i = 0; i < count; i++)
        translate_run(mmu_of(pe), &asked[i], false, &looked_up, &t);
    return t;
}

/* The time that the model of a user takes to look up the pages of virtual runs, each once. */
static __attribute__((cold)) uint64_t model_looks_up_ps(struct pe *pe, const struct address_run *asked, size_t count)
{
    uint64_t ps = 0, size = kb_attrs.pe_mmu_page_bytes, looked_up = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        for (uint64_t page = asked[i].address / size; page <= (asked[i].address + asked[i].bytes - 1) / size; page++) {
            if (page == looked_up)
                continue;
            bool first = looked_up == UINT64_MAX;
            looked_up = page;
            ps = sum(ps, pe_mmu_page_ps(&(struct kb_page_request){pe_number(pe), false, first,
                                                                  stretch_of(mmu_of(pe), page), page, 1, now_ps}));
        }
    return ps;
}

struct translation mmu_translate(struct pe *pe, const struct address_run *asked, size_t count, uint64_t from_ps)
{
    if (kb_has_model[NODE_pe_mmu]) {
        uint64_t ps = model_looks_up_ps(pe, asked, count);
        struct translation t = translate(pe, asked, count);
        t.ps = ps;
        observe_translated(pe, from_ps, t.ps);
        return t;
    }
    struct mmu *mmu = mmu_of(pe);
    struct translation t = {.ps = kb_attrs.pe_mmu_tlb_overhead_ps};
    uint64_t looked_up = 0;
    runs.count = 0;
    for (size_t i = 0; i < count; i++)
        translate_run(mmu, &asked[i], true, &looked_up, &t);
    observe_translated(pe, from_ps, t.ps);
    return t;
}

struct translation mmu_look(struct pe *pe, uint64_t va, uint64_t bytes)
{
    return translate(pe, &(struct address_run){va, bytes}, 1);
}

/* ---- reset, save and restore */

void mmu_reset(void)
{
    pool_release(&stretches.pool);
}

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

static void carry_stretch(struct state_image *image, struct stretch *stretch)
{
    state_carry(image, &stretch->interval.begin, sizeof stretch->interval.begin);
    state_carry(image, &stretch->interval.end, sizeof stretch->interval.end);
    state_carry(image, &stretch->address, sizeof stretch->address);
}

static void carry_table(struct interval_map *table, struct state_image *image)
{
    uint64_t count = 0;
    interval_for(table, i, 0, UINT64_MAX)
        count++;
    state_carry(image, &count, sizeof count);
    if (!image->restores) {
        interval_for(table, i, 0, UINT64_MAX)
            carry_stretch(image, (struct stretch *)i);
        return;
    }
    interval_clear(table);
    for (uint64_t n = 0; n < count; n++) {
        struct stretch stretch = {0};
        carry_stretch(image, &stretch);
        interval_set(table, &stretch.interval);
    }
}

void mmu_carry(struct pe *pe, struct state_image *image)
{
    bool used = pe->mmu;
    state_carry(image, &used, sizeof used);
    if (!used) {
        pe->mmu = NULL;
        return;
    }
    struct mmu *mmu = mmu_of(pe);
    carry_table(&mmu->table, image);
    state_carry(image, mmu->entries, (kb_attrs.pe_mmu_tlb_entries + 1) * sizeof *mmu->entries);
    state_carry(image, mmu->buckets, (mmu->mask + UINT64_C(1)) * sizeof *mmu->buckets);
}
