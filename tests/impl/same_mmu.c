/* same_mmu.c: a pe_mmu like the built-in one: a fully associative TLB that replaces the page that was used least recently.
 * With `hit`, a page that the TLB has takes that time. */
#include <kb/impl.h>

#ifndef same_mmu_hit
#define same_mmu_hit 0
#endif

enum { ENTRIES_MOST = 256 };

struct same_mmu {
    uint64_t uses;
    struct entry {
        uint64_t page, used;                            /* 0: empty */
    } entry[ENTRIES_MOST];
};

KB_STATE(same_mmu);

static uint64_t entries(void)
{
    return kb_min(kb_attrs.pe_mmu_tlb_entries, ENTRIES_MOST);
}

static void drop(struct same_mmu *state, uint64_t first, uint64_t pages)
{
    for (uint64_t i = 0; i < entries(); i++)
        if (state->entry[i].page - first < pages)
            state->entry[i].used = 0;
}

/* Whether the TLB has a page. If not, a page that is mapped replaces another one. */
static bool look_up(struct same_mmu *state, uint64_t page, bool mapped)
{
    struct entry *oldest = &state->entry[0];
    for (struct entry *entry = state->entry; entry < state->entry + entries(); entry++) {
        if (entry->used && entry->page == page) {
            entry->used = ++state->uses;
            return true;
        }
        if (entry->used < oldest->used)
            oldest = entry;
    }
    if (mapped)
        *oldest = (struct entry){page, ++state->uses};
    return false;
}

uint64_t same_mmu_service(struct same_mmu *state, const struct kb_page_request *ask)
{
    if (ask->drops) {
        drop(state, ask->page, ask->pages);
        return 0;
    }
    uint64_t ps = ask->first ? kb_attrs.pe_mmu_tlb_overhead_ps : 0;
    return ps + (look_up(state, ask->page, ask->mapped) ? same_mmu_hit : kb_attrs.pe_mmu_walk_ps);
}
