/* mmu.h: pe_mmu: a PE's page table and its TLB. */
#ifndef KB_MMU_H
#define KB_MMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

struct pe;

struct translation {
    uint64_t ps;                                        /* tlb_overhead and the walks of missing pages */
    bool unmapped;                                      /* one of the pages is in no map; then there are no runs */
    uint64_t page;                                      /* virtual address of the first such page */
    const struct address_run *runs;                     /* physical, each in one memory; maximal, in order of virtual
                                                           address; until the next translation */
    size_t count;
};

/* Translates virtual runs, in order of address, as one: looks all their pages up, each once, upwards; takes missing
 * ones into the TLB, the least recently used goes. */
struct translation mmu_translate(struct pe *pe, const struct address_run *asked, size_t count);

/* Where the pages of [va, va + bytes) stand now; the TLB is not asked, and it takes no time. */
struct translation mmu_look(struct pe *pe, uint64_t va, uint64_t bytes);

/* Counts the pages of some bytes from va on. Returns NULL, or what is wrong: va is no multiple of the page, or the
 * pages run past the last virtual address. */
const char *map_pages(uint64_t va, uint64_t bytes, uint64_t *pages);

/* Maps the pages from va on (a multiple of the page) to addresses from `address` on, or unmaps them; drops them from
 * the TLB. No effect with the MMU off. */
void mmu_map(struct pe *pe, uint64_t va, uint64_t pages, uint64_t address);
void mmu_unmap(struct pe *pe, uint64_t va, uint64_t pages);

#endif
