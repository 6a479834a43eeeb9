/* demand.c: adds up the plans of commands that are complete. */
#include "demand.h"

#include "base/dtype.h"
#include "base/rates.h"
#include "datapass/math.h"
#include "machine/emitted.h"
#include "machine/ipcq.h"
#include "machine/pe.h"
#include "machine/peers.h"
#include "machine/tiling.h"
#include "sim/observer.h"

struct demand demand;

/* A block's rows follow each other in a row-major operand if it is as wide as that. */
static void add_blocks(const struct command *command, const struct tile_shape *shape, unsigned operand, uint64_t tiles)
{
    bool is_a = command->ask.kind == COMMAND_gemm_tiles && operand == OPERAND_A;
    bool is_b = command->ask.kind == COMMAND_gemm_tiles && operand == OPERAND_B;
    bool is_whole = is_a ? shape->k == command->ask.k : shape->n == command->ask.n;
    demand.blocks += tiles;
    demand.block_rows += is_whole ? tiles : product(tiles, is_b ? shape->k : shape->m);
}

/* Bytes between a memory and the PE's TCM, in some transfers. */
static void add_run(const struct command *command, uint64_t address, bool reads, uint64_t bytes, uint64_t transfers)
{
    struct range range;
    address_decode(address, 0, &range);
    *(reads ? &demand.read_bytes[range.space] : &demand.write_bytes[range.space]) += bytes;
    if (range_is_own_tcm(&range, command->pe))
        return;
    demand.fabric_bytes += bytes;
    demand.transfers += transfers;
}

/* A DMA stage moves bytes between the memory of an operand, or those of its list, and the PE's TCM. */
static void add_dma(const struct command *command, unsigned operand, bool reads, uint64_t bytes, uint64_t tiles)
{
    const struct request *ask = &command->ask;
    *(reads ? &demand.write_bytes[SPACE_TCM] : &demand.read_bytes[SPACE_TCM]) += bytes;
    if (ask->virtual_address[operand]) {
        demand.is_virtual = true;
        *(reads ? &demand.virtual_read_bytes : &demand.virtual_write_bytes) += bytes;
        return;
    }
    for (uint32_t i = 0; i < ask->listed; i++)
        add_run(command, ask->list[i].address, reads, ask->list[i].bytes, 1);
    if (!ask->listed)
        add_run(command, ask->address[operand], reads, bytes, ask->runs ? runs_number(ask->runs) : tiles);
}

/* A send to several PEs puts one message on the first link of their ways, and one on the last link to each memory. */
static __attribute__((cold, noinline)) void add_multicast(const struct command *send)
{
    uint32_t messages = peers_of(&send->ask).count;
    demand.shared_bytes += (2 * messages - 1 - ipcq_ends(send)) * send->ask.bytes;
}

static void add_dma_stage(const struct command *command, const struct tile_shape *shape, const struct stage *stage,
                          uint64_t tiles)
{
    bool reads = stage->kind == STAGE_DMA_READ, both = stage->operand == OPERANDS_A_B;
    if (!command_is_composite(command->ask.kind)) {
        add_dma(command, stage->operand, reads, product(stage->amount, tiles), tiles);
        return;
    }
    for (unsigned operand = both ? OPERAND_A : stage->operand; operand <= (both ? OPERAND_B : stage->operand); operand++) {
        add_blocks(command, shape, operand, tiles);
        add_dma(command, operand, reads, product(tiling_block_bytes(command, shape, operand), tiles), tiles);
    }
}

static void add_stage(const struct command *command, const struct tile_shape *shape, const struct stage *stage,
                      uint64_t tiles)
{
    uint64_t amount = product(stage->amount, tiles);
    if (stage->kind == STAGE_FETCH && demand.fetch_most < stage->amount)
        demand.fetch_most = stage->amount;
    demand.services += tiles;
    switch ((enum stage_kind)stage->kind) {
    case STAGE_COMM:
        if (command->multicast)
            add_multicast(command);
        demand.read_bytes[SPACE_TCM] += amount;
        break;
    case STAGE_FETCH: demand.read_bytes[SPACE_TCM] += amount; break;
    case STAGE_STORE: demand.write_bytes[SPACE_TCM] += amount; break;
    case STAGE_DMA_READ:
    case STAGE_DMA_WRITE: add_dma_stage(command, shape, stage, tiles); break;
    case STAGE_GEMM:
        demand.gemm_flops = sum(demand.gemm_flops, amount);
        demand.gemm_ps += product(stage->ps, tiles);
        break;
    case STAGE_MATH: demand.math_ps += product(stage->ps, tiles); break;
    case STAGE_NONE: break;
    }
}

static void add_shape(const struct command *command, const struct tile_shape *shape, uint64_t tiles)
{
    for (const struct stage *stage = tiles ? shape->stages : NULL; stage && stage->kind != STAGE_NONE; stage++)
        add_stage(command, shape, stage, tiles);
}

/* A message counts when it is received, as the write of its slot; its read of the sender's TCM with the send. */
static void add_message(const struct command *receive)
{
    demand.write_bytes[ring_space()] += receive->ask.bytes;
    demand.fabric_bytes += receive->ask.bytes;
    demand.transfers++;
    demand.messages++;
}

/* A command stream names ops without operands: these have the usual shape of the op. */
static void add_epilogue(const struct request *ask, uint16_t op)
{
    struct op_traits traits = op_traits(op);
    uint64_t elements = traits.second == SECOND_ROW ? ask->n : traits.second == SECOND_SCALE ? 1 : product(ask->m, ask->n);
    if (traits.operands == 2)
        demand.operand_bytes = sum(demand.operand_bytes, product(elements, dtype_bytes[ask->out_dtype]));
}

static void command_completed(const struct command *command)
{
    const struct request *ask = &command->ask;
    demand.commands++;
    if (ask->kind == COMMAND_gemm || ask->kind == COMMAND_gemm_tiles)
        demand.gemm_ops[ask->dtype] += 2.0 * (double)ask->m * (double)ask->k * (double)ask->n;
    for (uint32_t i = 0; i < ask->epilogues && !ask->file; i++)
        add_epilogue(ask, ask->epilogue[i].op);
    if (ask->kind == COMMAND_recv) {
        add_message(command);
        if (ring_space() == SPACE_TCM)                  /* the slot is the receiver's buffer: no stage reads it */
            return;
    }
    if (!command_is_composite(ask->kind))
        add_stage(command, command->shapes, command->shapes->stages, 1);
    else if (command->planned)
        for (uint64_t tile = 0; tile < command->tiles; tile++)
            add_shape(command, command->planned[tile].shape, 1);
    else
        for (uint32_t i = 0; i < command->shape_count; i++)
            add_shape(command, &command->shapes[i], tiling_count(command, &command->shapes[i]));
}

void demand_reset(void)
{
    demand = (struct demand){0};
}

struct observer demand_observer = {.name = "demand", .command_completed = command_completed};
