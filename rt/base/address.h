/* address.h: physical addresses, and the memories they name.
 *
 * 64 bits: pe [63:56], sip [55:48], cube [47:40], space [39:36], offset [35:0]. Memories are numbered over the whole
 * machine: the HBM slices of all PEs in rank order, then their TCMs, then the srams of all cubes. */
#ifndef KB_ADDRESS_H
#define KB_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

enum space { SPACE_HBM, SPACE_TCM, SPACE_SRAM, SPACES };

enum { OFFSET_BITS = 36 };
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)

/* A range of a memory. `pe` counts over the machine; for an sram it is the first PE of the cube. */
struct range {
    enum space space;
    uint32_t memory, pe, sip, cube;
    uint64_t offset, bytes;
};

/* Bytes at consecutive addresses. */
struct address_run {
    uint64_t address, bytes;
};

static inline uint64_t address_make(enum space space, uint32_t sip, uint32_t cube, uint32_t pe, uint64_t offset)
{
    return (uint64_t)pe << 56 | (uint64_t)sip << 48 | (uint64_t)cube << 40 | (uint64_t)space << OFFSET_BITS | offset;
}

/* The address `bytes` further on. The offset wraps: nothing carries into the other fields. */
static inline uint64_t address_add(uint64_t address, uint64_t bytes)
{
    return (address & ~OFFSET_MASK) | ((address + bytes) & OFFSET_MASK);
}

/* Decodes [address, address + bytes). Returns NULL, or why the range is wrong: "there is no such cube" ... Any 64 bits
 * and any length are safe. */
const char *address_decode(uint64_t address, uint64_t bytes, struct range *range);

static inline uint32_t memory_count(void)
{
    return 2 * pe_count() + cube_count();
}

uint64_t memory_size(uint32_t memory);
/* The physical address of an offset of a memory. */
uint64_t memory_address(uint32_t memory, uint64_t offset);
uint32_t memory_hbm(uint32_t pe);
uint32_t memory_tcm(uint32_t pe);
uint32_t memory_sram(uint32_t cube);                    /* cube counts over the machine */

/* "sip0.cube3.hbm_ctrl.pe5+0x1000", for messages; valid for three more calls. */
const char *address_name(uint64_t address);

#endif
