/* tiling.c: plans of gemm and math composites and of simple commands. */
#include "tiling.h"

#include <string.h>

#include "base/address.h"
#include "base/rates.h"
#include "common/arena.h"
#include "plan_generator.h"

static uint64_t edge(uint64_t whole, uint64_t tile, uint64_t i)
{
    uint64_t rest = whole - i * tile;
    return rest < tile ? rest : tile;
}

/* Sets what follows from the tile's position. */
static void tile_fill(const struct command *command, struct tile *tile)
{
    const struct request *ask = &command->ask;
    tile->m = edge(ask->m, ask->tile_m, tile->i_m);
    tile->n = edge(ask->n, ask->tile_n, tile->i_n);
    if (ask->kind == COMMAND_gemm_tiles)
        tile->k = edge(ask->k, ask->tile_k, tile->i_k);
    if (tile->i_k + 1 < command->tiles_k)
        tile->kind = TILE_ADDS;
    else
        tile->kind = tile->id + 1 < command->tiles ? TILE_STORES : TILE_LAST;
}

struct tile tiling_tile(const struct command *command, uint64_t id)
{
    const struct request *ask = &command->ask;
    struct tile tile = {.id = id, .m = ask->m, .k = ask->k, .n = ask->n, .kind = TILE_LAST};
    if (!command_is_composite(command->ask.kind))
        return tile;
    if (command->planned)
        return command->planned[id];
    uint64_t block = id / command->tiles_k;
    tile.i_k = id % command->tiles_k;
    tile.i_n = block % command->tiles_n;
    tile.i_m = block / command->tiles_n;
    tile_fill(command, &tile);
    return tile;
}

void tiling_next(const struct command *command, struct tile *tile)
{
    tile->id++;
    if (command->planned) {
        *tile = command->planned[tile->id];
        return;
    }
    if (++tile->i_k == command->tiles_k) {
        tile->i_k = 0;
        if (++tile->i_n == command->tiles_n) {
            tile->i_n = 0;
            tile->i_m++;
        }
    }
    tile_fill(command, tile);
}

/* ---- stages */

static struct stage simple_stage(const struct command *command, uint32_t index)
{
    static const uint8_t kinds[COMMANDS] = {
#define COMMAND(name, word, stage, ...) [COMMAND_##name] = STAGE_##stage,
#include "kb/commands.def"
#undef COMMAND
    };
    return (struct stage){.kind = index ? STAGE_NONE : kinds[command->ask.kind], .index = index, .op = command->ask.op};
}

static struct stage math_stage(const struct command *command, uint32_t index)
{
    static const enum stage_kind kinds[] = {STAGE_DMA_READ, STAGE_FETCH,     STAGE_MATH,
                                            STAGE_STORE,    STAGE_DMA_WRITE, STAGE_NONE};
    return (struct stage){.kind = kinds[index], .index = index, .op = command->ask.op,
                          .operand = kinds[index] == STAGE_DMA_WRITE ? OPERAND_C : OPERAND_A};
}

/* The MATH stage of a scope's i-th op. */
static struct stage epilogue_stage(const struct command *command, enum scope scope, uint32_t i, uint32_t index)
{
    const struct epilogue *epilogue = command->ask.epilogue;
    for (;; epilogue++)
        if (epilogue->scope == scope && i-- == 0)
            return (struct stage){.kind = STAGE_MATH, .index = index, .op = epilogue->op};
}

/* All tiles: [DMA_READ A] [DMA_READ B] FETCH GEMM, MATH for each op of scope k_tile.
 * Tiles that store: MATH for each op of scope output_tile and, in the last tile, once; STORE DMA_WRITE. */
static struct stage gemm_stage(const struct command *command, enum tile_kind tile, uint32_t index)
{
    uint32_t left = index;
    for (unsigned operand = OPERAND_A; operand <= OPERAND_B; operand++)
        if (!command->ask.pinned[operand] && left-- == 0)
            return (struct stage){.kind = STAGE_DMA_READ, .index = index, .operand = operand};
    if (left < 2)
        return (struct stage){.kind = left ? STAGE_GEMM : STAGE_FETCH, .index = index};
    left -= 2;
    for (enum scope scope = SCOPE_K_TILE; scope < SCOPES; scope++) {
        if ((scope != SCOPE_K_TILE && tile == TILE_ADDS) || (scope == SCOPE_ONCE && tile != TILE_LAST))
            break;
        if (left < command->epilogue_count[scope])
            return epilogue_stage(command, scope, left, index);
        left -= command->epilogue_count[scope];
    }
    if (tile == TILE_ADDS || left > 1)
        return (struct stage){.kind = STAGE_NONE, .index = index};
    return (struct stage){.kind = left ? STAGE_DMA_WRITE : STAGE_STORE, .index = index, .operand = OPERAND_C};
}

static struct stage stage_of(const struct command *command, enum tile_kind tile, uint32_t index)
{
    switch (command->ask.kind) {
    case COMMAND_gemm_tiles:
        return gemm_stage(command, tile, index);
    case COMMAND_math_tiles:
        return math_stage(command, index);
    default:
        return simple_stage(command, index);
    }
}

/* Writes the stages of a kind of tile. Returns the end of what it has written. */
static struct stage *stages_write(const struct command *command, enum tile_kind tile, struct stage *to)
{
    uint32_t index = 0;
    do
        *to = stage_of(command, tile, index++);
    while (to++->kind != STAGE_NONE);
    return to;
}

/* Lists the stages of each kind of tile, and copies the epilogues and the tiles that were planned. Only a gemm's tiles are
 * of several kinds. */
static void list_stages(struct command *command, const struct tile *planned)
{
    enum { STAGES_MOST = 7 };                           /* epilogues apart: two reads, fetch, gemm, store, write, end */
    struct request *ask = &command->ask;
    uint64_t bytes = ask->epilogues * sizeof *ask->epilogue;
    uint64_t stages = TILE_KINDS * (ask->epilogues + STAGES_MOST) * sizeof(struct stage);
    uint64_t tiles = planned ? product(command->tiles, sizeof *planned) : 0;
    uint8_t *plan = command_plan(command, tiles + stages + bytes);
    struct stage *to = (struct stage *)(plan + tiles);
    struct epilogue *epilogues = (struct epilogue *)((uint8_t *)to + stages);
    command->planned = planned ? memcpy(plan, planned, tiles) : NULL;
    if (bytes)
        ask->epilogue = memcpy(epilogues, ask->epilogue, bytes);
    for (int tile = TILE_LAST; tile >= TILE_ADDS; tile--) {
        command->stages[tile] = command->stages[TILE_LAST];
        if (tile != TILE_LAST && ask->kind != COMMAND_gemm_tiles)
            continue;
        command->stages[tile] = to;
        to = stages_write(command, tile, to);
    }
}

void tiling_make(struct command *command)
{
    struct request *ask = &command->ask;
    command->tiles_m = command->tiles_k = command->tiles_n = 1;
    if (command_is_composite(command->ask.kind)) {
        command->tiles_m = ceil_div(ask->m, ask->tile_m);
        command->tiles_n = ceil_div(ask->n, ask->tile_n);
    }
    if (ask->kind == COMMAND_gemm_tiles)
        command->tiles_k = ceil_div(ask->k, ask->tile_k);
    command->tiles = product(product(command->tiles_m, command->tiles_n), command->tiles_k);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        command->epilogue_count[ask->epilogue[i].scope]++;
    const struct kb_plan *generator = command_is_composite(ask->kind) ? plan_generator() : NULL;
    const struct tile *planned = NULL;
    if (generator)
        command->plan_wrong = plan_generate(generator, command, &planned, &command->tiles);
    command->tiles_left = command->tiles;
    list_stages(command, planned);
}

/* ---- blocks */

/* An operand as a grid of blocks, and the block of one tile. */
struct operand_block {
    uint64_t rows, cols, row, col;                      /* of the operand in elements; position of the block */
    uint64_t tile_rows, tile_cols;                      /* of a full block */
    uint64_t height, width;                             /* of this block */
    uint64_t element_bytes;
};

static struct operand_block block_of(const struct command *command, const struct tile *tile, unsigned operand)
{
    const struct request *ask = &command->ask;
    uint64_t tile_m = ask->tile_m, tile_k = ask->tile_k, tile_n = ask->tile_n;
    if (command->planned)                               /* positions are in elements */
        tile_m = tile_k = tile_n = 1;
    uint64_t in = dtype_bytes[ask->dtype], out = dtype_bytes[ask->out_dtype];
    if (ask->kind == COMMAND_gemm_tiles && operand == OPERAND_A)
        return (struct operand_block){ask->m,      ask->k,      tile->i_m, tile->i_k,
                                      tile_m,      tile_k,      tile->m,   tile->k,   in};
    if (ask->kind == COMMAND_gemm_tiles && operand == OPERAND_B)
        return (struct operand_block){ask->k,      ask->n,      tile->i_k, tile->i_n,
                                      tile_k,      tile_n,      tile->k,   tile->n,   in};
    return (struct operand_block){ask->m, ask->n, tile->i_m, tile->i_n, tile_m, tile_n, tile->m, tile->n,
                          operand == OPERAND_C ? out : in};
}

uint64_t tiling_bytes(const struct command *command, const struct tile *tile, unsigned operand)
{
    if (!command_is_composite(command->ask.kind))
        return command->ask.bytes;
    const struct request *ask = &command->ask;
    bool gemm = ask->kind == COMMAND_gemm_tiles;
    uint64_t height = gemm && operand == OPERAND_B ? tile->k : tile->m;
    uint64_t width = gemm && operand == OPERAND_A ? tile->k : tile->n;
    return product(product(height, width), dtype_bytes[operand == OPERAND_C ? ask->out_dtype : ask->dtype]);
}

uint64_t tiling_address(const struct command *command, const struct tile *tile, unsigned operand)
{
    uint64_t address = command->ask.address[operand];
    if (!command_is_composite(command->ask.kind))
        return address;
    /* Offsets wrap at 2^36, so it does not matter if products wrap at 2^64 before. */
    struct operand_block block = block_of(command, tile, operand);
    uint64_t element = block.row * block.tile_rows * block.cols + block.height * block.col * block.tile_cols;
    uint64_t offset = element * block.element_bytes;
    return command->ask.virtual_address[operand] ? address + offset : address_add(address, offset);
}

bool tiling_moves(const struct command *command, unsigned operand)
{
    const struct request *ask = &command->ask;
    return operand == OPERAND_C || (!ask->pinned[operand] && (ask->kind == COMMAND_gemm_tiles || operand == OPERAND_A));
}

uint64_t tiling_extent(const struct command *command, unsigned operand)
{
    struct tile first = tiling_tile(command, 0);
    struct operand_block block = block_of(command, &first, operand);
    return product(product(block.rows, block.cols), block.element_bytes);
}

uint64_t tiling_fetch_bytes(const struct command *command, const struct tile *tile)
{
    uint64_t bytes = tiling_bytes(command, tile, OPERAND_A);
    return command->ask.kind == COMMAND_gemm_tiles ? sum(bytes, tiling_bytes(command, tile, OPERAND_B)) : bytes;
}

static uint64_t rounded(uint64_t bytes)
{
    return product(ceil_div(bytes, 64), 64);
}

uint64_t tiling_buffer_bytes(const struct command *command, const struct tile *tile)
{
    uint64_t bytes = 0;
    if (!command->ask.pinned[OPERAND_A])
        bytes = rounded(tiling_bytes(command, tile, OPERAND_A));
    if (command->ask.kind == COMMAND_gemm_tiles && !command->ask.pinned[OPERAND_B])
        bytes = sum(bytes, rounded(tiling_bytes(command, tile, OPERAND_B)));
    return tile->kind != TILE_ADDS ? sum(bytes, rounded(tiling_bytes(command, tile, OPERAND_C))) : bytes;
}

uint64_t tiling_elements(const struct command *command, const struct tile *tile)
{
    return command->ask.kind == COMMAND_math ? command->ask.n : product(tile->m, tile->n);
}
