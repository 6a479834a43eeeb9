/* address.c: physical addresses. */
#include "address.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t memory_hbm(uint32_t pe)
{
    return pe;
}

uint32_t memory_tcm(uint32_t pe)
{
    return pe_count() + pe;
}

uint32_t memory_sram(uint32_t cube)
{
    return 2 * pe_count() + cube;
}

uint64_t memory_size(uint32_t memory)
{
    if (memory < pe_count())
        return kb_attrs.hbm_slice_bytes;
    return memory < 2 * pe_count() ? kb_attrs.pe_tcm_size_bytes : kb_attrs.sram_bytes;
}

uint64_t memory_address(uint32_t memory, uint64_t offset)
{
    enum space space = memory < pe_count() ? SPACE_HBM : memory < 2 * pe_count() ? SPACE_TCM : SPACE_SRAM;
    uint32_t pe = space == SPACE_SRAM ? 0 : memory % pe_count() % kb_shape.pes;
    uint32_t cube = space == SPACE_SRAM ? memory - 2 * pe_count() : memory % pe_count() / kb_shape.pes;
    return address_make(space, cube / kb_shape.cubes, cube % kb_shape.cubes, pe, offset);
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
    if (pe >= (space == SPACE_SRAM ? 1 : kb_shape.pes))
        return "there is no such PE";
    uint32_t cube_of_all = sip * kb_shape.cubes + cube, pe_of_all = cube_of_all * kb_shape.pes + pe;
    *range = (struct range){.space = space, .pe = pe_of_all, .sip = sip, .cube = cube_of_all, .bytes = bytes,
                            .offset = address & OFFSET_MASK};
    range->memory = space == SPACE_HBM ? memory_hbm(pe_of_all)
                    : space == SPACE_TCM ? memory_tcm(pe_of_all) : memory_sram(cube_of_all);
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
