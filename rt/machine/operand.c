/* operand.c: the operands of composites, resolved when a composite is submitted. */
#include "operand.h"

#include <string.h>

#include "common/hash.h"
#include "pe.h"
#include "dma_requests.h"

enum { KNOWN_BITS = 10 };

/* Routes that were used last, by a hash of PE and memory. */
static struct {
    uint64_t key;
    struct route *route;
} known[1 << KNOWN_BITS];

struct route *memory_route(const struct pe *pe, const struct range *range, bool reads)
{
    uint64_t plane = reads ? 0 : kb_shape.plane_of_write;
    uint64_t key = plane << 62 | (uint64_t)pe->rank << 32 | range->memory;    /* not 0: the host has rank 0 */
    size_t slot = hash_bits(key, KNOWN_BITS);
    if (known[slot].key != key) {
        known[slot].key = key;
        known[slot].route = route_of(way_of(place_pe(pe_number(pe), NODE_pe_dma), range_place(range), (uint8_t)plane));
    }
    return known[slot].route;
}

/* How far apart the blocks of the first tile and of one next to it are. */
static uint64_t stride(const struct command *command, unsigned operand, struct tile first, uint64_t i_m, uint64_t i_k,
                       uint64_t i_n)
{
    uint64_t address = tiling_address(command, &first, operand);
    first.i_m = i_m;
    first.i_k = i_k;
    first.i_n = i_n;
    return tiling_address(command, &first, operand) - address;
}

/* Returns false if its blocks have to be translated, decoded, or moved within the TCM one by one. */
static bool operand_make(struct operand *operand, const struct command *command, const struct stage *stage)
{
    const struct request *ask = &command->ask;
    struct tile first = tiling_tile(command, 0);
    unsigned number = stage->operand;
    if (ask->virtual_address[number]
        || address_decode(ask->address[number], tiling_extent(command, number), &operand->first)
        || range_is_own_tcm(&operand->first, command->pe))
        return false;
    operand->first.bytes = stage->amount;
    operand->stride_m = stride(command, number, first, 1, 0, 0);
    operand->stride_k = stride(command, number, first, 0, 1, 0);
    operand->stride_n = stride(command, number, first, 0, 0, 1);
    operand->payload = payload_of(operand->first.bytes);
    operand->route = memory_route(command->pe, &operand->first, stage->kind == STAGE_DMA_READ);
    near_read_make(&operand->near, operand);
    return true;
}

void operands_make(struct command *command)
{
    if (!command_is_composite(command->ask.kind) || command->planned)
        return;
    struct operand *operands = command_operands(command);
    struct operand *made[OPERANDS] = {NULL};
    struct tile first = tiling_tile(command, 0);
    for (struct tile_shape *shape = command->shapes; shape < command->shapes + command->shape_count; shape++) {
        if (!shape->stages || shape->m != first.shape->m || shape->k != first.shape->k || shape->n != first.shape->n)
            continue;
        for (struct stage *stage = shape->stages; stage->kind != STAGE_NONE; stage++) {
            unsigned number = stage->operand;
            if ((stage->kind != STAGE_DMA_READ && stage->kind != STAGE_DMA_WRITE) || dma_stage_has_requests(stage))
                continue;
            if (!made[number] && operand_make(&operands[number], command, stage))
                made[number] = &operands[number];
            stage->moves = made[number];
        }
    }
}

void operands_reset(void)
{
    memset(known, 0, sizeof known);
}
