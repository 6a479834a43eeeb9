/* address.h: physical addresses, and the memories they name.
 *
 * 64 bits: pe [63:56], sip [55:48], cube [47:40], space [39:36], offset [35:0]; of an hbm address, pe is the slice.
 * Memories are numbered over the whole machine, each kind in rank order: HBM slices, TCMs, srams. */
#ifndef KB_ADDRESS_H
#define KB_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

enum space { SPACE_HBM, SPACE_TCM, SPACE_SRAM, SPACES };

enum { OFFSET_BITS = 36 };
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)

/* A range of a memory. `number` is that of the HBM slice, of the TCM's PE or of the sram's cube; it and `cube` count over
 * the machine. */
struct range {
    uint64_t offset, bytes;
    enum space space;
    uint32_t memory, number;
    uint16_t sip, cube;
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
    return slice_count() + pe_count() + sram_count();
}

enum space memory_space(uint32_t memory);
uint64_t memory_size(uint32_t memory);
/* The physical address of an offset of a memory. */
uint64_t memory_address(uint32_t memory, uint64_t offset);
/* Slice, PE and cube count over the machine. */
uint32_t memory_hbm(uint32_t slice);
uint32_t memory_tcm(uint32_t pe);
uint32_t memory_sram(uint32_t cube);

/* The HBM slice that a PE calls its own, both over the machine. The cube must have slices. */
uint32_t own_slice(uint32_t pe);

/* Where rings of pe_ipcq are. */
enum space ring_space(void);

/* Whether the machine has memories of a space. */
bool space_exists(enum space space);
/* The memory of a space that a PE calls its own: its slice, its TCM, its cube's sram. It must exist. */
uint32_t own_memory(enum space space, uint32_t pe);

/* "sip0.cube3.hbm_ctrl.pe5+0x1000", for messages; valid for three more calls. */
const char *address_name(uint64_t address);

#endif
