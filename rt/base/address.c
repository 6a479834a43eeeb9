/* address.c: physical addresses. */
#include "address.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t memory_hbm(uint32_t slice)
{
    return slice;
}

uint32_t memory_tcm(uint32_t pe)
{
    return slice_count() + pe;
}

uint32_t memory_sram(uint32_t cube)
{
    return slice_count() + pe_count() + cube;
}

/* The memories of a space in a cube, and the first one of the machine. */
static inline uint32_t in_cube(enum space space)
{
    return space == SPACE_HBM ? kb_shape.slices : space == SPACE_TCM ? kb_shape.pes : kb_shape.srams;
}

static inline uint32_t first_memory(enum space space)
{
    return space == SPACE_HBM ? memory_hbm(0) : space == SPACE_TCM ? memory_tcm(0) : memory_sram(0);
}

enum space memory_space(uint32_t memory)
{
    return memory < memory_tcm(0) ? SPACE_HBM : memory < memory_sram(0) ? SPACE_TCM : SPACE_SRAM;
}

uint64_t memory_size(uint32_t memory)
{
    enum space space = memory_space(memory);
    return space == SPACE_HBM ? kb_attrs.hbm_slice_bytes : space == SPACE_TCM ? kb_attrs.pe_tcm_size_bytes : kb_attrs.sram_bytes;
}

uint64_t memory_address(uint32_t memory, uint64_t offset)
{
    enum space space = memory_space(memory);
    uint32_t number = memory - first_memory(space), cube = number / in_cube(space);
    return address_make(space, cube / kb_shape.cubes, cube % kb_shape.cubes, number % in_cube(space), offset);
}

uint32_t own_slice(uint32_t pe)
{
    return pe / kb_shape.pes * kb_shape.slices + pe % kb_shape.pes * kb_shape.slices / kb_shape.pes;
}

bool space_exists(enum space space)
{
    return in_cube(space) > 0;
}

enum space ring_space(void)
{
    static const enum space spaces[] = {[BUFFER_tcm] = SPACE_TCM, [BUFFER_sram] = SPACE_SRAM, [BUFFER_hbm] = SPACE_HBM};
    return spaces[kb_attrs.pe_ipcq_buffer];
}

uint32_t own_memory(enum space space, uint32_t pe)
{
    return space == SPACE_HBM ? memory_hbm(own_slice(pe)) : space == SPACE_TCM ? memory_tcm(pe)
         : memory_sram(pe / kb_shape.pes);
}

static const char *none_such(enum space space)
{
    if (!space_exists(space))
        return space == SPACE_HBM ? "the machine has no HBM" : "the machine has no sram";
    return space == SPACE_HBM ? "there is no such HBM slice" : "there is no such PE";
}

static const char *decode_range(struct range *range)
{
    uint64_t size = memory_size(range->memory);
    if (range->offset > size || range->bytes > size - range->offset)
        return "it runs past the end of the memory";
    if (range->space == SPACE_TCM && range->offset < kb_attrs.pe_tcm_reserved_bytes)
        return "it touches the region of the TCM that the scheduler reserves";
    return NULL;
}

const char *address_decode(uint64_t address, uint64_t bytes, struct range *range)
{
    uint32_t pe = address >> 56, sip = address >> 48 & 0xff, cube = address >> 40 & 0xff;
    uint32_t space = address >> OFFSET_BITS & 0xf;
    if (sip >= kb_shape.sips)
        return "there is no such SIP";
    if (cube >= kb_shape.cubes)
        return "there is no such cube";
    if (space >= SPACES)
        return "there is no such space";
    if (pe >= in_cube(space))
        return none_such(space);
    uint32_t cube_of_all = sip * kb_shape.cubes + cube, number = cube_of_all * in_cube(space) + pe;
    *range = (struct range){.space = space, .memory = first_memory(space) + number, .number = number, .sip = sip,
                            .cube = cube_of_all, .offset = address & OFFSET_MASK, .bytes = bytes};
    return decode_range(range);
}

const char *address_name(uint64_t address)
{
    static char name[4][96];
    static unsigned turn;
    char *out = name[turn++ % 4];
    unsigned pe = address >> 56, sip = address >> 48 & 0xff, cube = address >> 40 & 0xff;
    uint64_t offset = address & OFFSET_MASK;
    switch (address >> OFFSET_BITS & 0xf) {
    case SPACE_HBM:
        snprintf(out, sizeof name[0], "sip%u.cube%u.hbm_ctrl.pe%u+0x%" PRIx64, sip, cube, pe, offset);
        break;
    case SPACE_TCM:
        snprintf(out, sizeof name[0], "sip%u.cube%u.pe%u.pe_tcm+0x%" PRIx64, sip, cube, pe, offset);
        break;
    case SPACE_SRAM:
        snprintf(out, sizeof name[0], "sip%u.cube%u.sram+0x%" PRIx64, sip, cube, offset);
        break;
    default:
        snprintf(out, sizeof name[0], "0x%" PRIx64, address);
    }
    return out;
}
