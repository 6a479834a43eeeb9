/* mmu.h: pe_mmu: a PE's page table and its TLB. */
#ifndef KB_MMU_H
#define KB_MMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

struct pe;

struct translation {
    uint64_t ps;                                        /* tlb_overhead and the walks for missing pages */
    bool unmapped;                                      /* a page is not mapped; then there are no runs */
    uint64_t page;                                      /* virtual address of the first such page */
    const struct address_run *runs;                     /* physical, of one memory each, as long as possible, by virtual
                                                           address; valid until the next translation */
    size_t count;
};

/* Translates virtual runs, in the order of their addresses, for one DMA, whose translation takes time from from_ps on: looks
 * up each page once, now, in that order; a miss walks the table and replaces the least recently used entry of the TLB. */
struct translation mmu_translate(struct pe *pe, const struct address_run *asked, size_t count, uint64_t from_ps);

/* Translates [va, va + bytes) without taking time and without using the TLB. */
struct translation mmu_look(struct pe *pe, uint64_t va, uint64_t bytes);

/* Counts the pages of `bytes` bytes from va on. Returns NULL, or what is wrong: va is no multiple of the page size, or
 * the pages run past the last virtual address. */
const char *map_pages(uint64_t va, uint64_t bytes, uint64_t *pages);

/* Maps pages from va on, a multiple of the page size, to the bytes from `address` on; or unmaps them. Drops them from
 * the TLB. Does nothing if the MMU is off. */
void mmu_map(struct pe *pe, uint64_t va, uint64_t pages, uint64_t address);
void mmu_unmap(struct pe *pe, uint64_t va, uint64_t pages);

/* Forgets all page tables. */
void mmu_reset(void);

/* Saves or restores a PE's table and TLB (state_fields.h). */
struct state_image;
void mmu_carry(struct pe *pe, struct state_image *image);

#endif
