/* tiling.c: plans of gemm and math composites and of simple commands. */
#include "tiling.h"

#include <string.h>

#include "base/address.h"
#include "base/rates.h"
#include "common/array.h"
#include "plan_generator.h"

enum { PE_TCM_BUFFERS(CHOICE_NUMBER) };
enum { PE_DMA_READS(CHOICE_NUMBER) };

/* ---- shapes and tiles */

/* Whether the last tile along an axis is smaller: its position, or UINT64_MAX. */
static uint64_t edge_of(uint64_t whole, uint64_t tile, uint64_t tiles)
{
    return whole % tile ? tiles - 1 : UINT64_MAX;
}

static uint64_t edge(uint64_t whole, uint64_t tile, uint64_t i)
{
    uint64_t rest = whole - i * tile;
    return rest < tile ? rest : tile;
}

static enum tile_kind kind_at(const struct command *command, const struct tile *tile)
{
    if (tile->i_k + 1 < command->tiles_k)
        return TILE_ADDS;
    return tile->id + 1 < command->tiles ? TILE_STORES : TILE_LAST;
}

/* The shapes of a command that was not planned: that of the last tile, those of tiles that store, those of tiles that add,
 * one for each size. One tile has the first alone, and one tile along k none that add. */
enum { SIZES = 4, FIRST_STORES = 1, FIRST_ADDS = FIRST_STORES + SIZES, SHAPES_MOST = FIRST_ADDS + SIZES };

static uint64_t shapes_most(const struct command *command)
{
    return command->tiles == 1 ? FIRST_STORES : command->tiles_k == 1 ? FIRST_ADDS : SHAPES_MOST;
}

/* The shape of a tile that was not planned; of one that is not the last along k, k is a full one. */
static struct tile_shape *shape_at(const struct command *command, const struct tile *tile)
{
    bool edge_m = tile->i_m == command->edge_row, edge_n = tile->i_n == command->edge_column;
    enum tile_kind kind = kind_at(command, tile);
    if (kind == TILE_LAST)
        return command->shapes;
    return &command->shapes[(kind == TILE_ADDS ? FIRST_ADDS : FIRST_STORES) + edge_m * 2 + edge_n];
}

struct tile tiling_tile(const struct command *command, uint64_t id)
{
    struct tile tile = {.id = id, .shape = command->shapes};
    if (!command_is_composite(command->ask.kind))
        return tile;
    if (command->planned)
        return command->planned[id];
    uint64_t block = id / command->tiles_k;
    tile.i_k = id % command->tiles_k;
    tile.i_n = block % command->tiles_n;
    tile.i_m = block / command->tiles_n;
    tile.shape = shape_at(command, &tile);
    return tile;
}

void tiling_next_shape(const struct command *command, struct tile *tile)
{
    if (command->planned) {
        *tile = command->planned[tile->id];
        return;
    }
    if (tile->i_k == command->tiles_k) {
        tile->i_k = 0;
        if (++tile->i_n == command->tiles_n) {
            tile->i_n = 0;
            tile->i_m++;
        }
    }
    tile->shape = shape_at(command, tile);
}

uint64_t tiling_count(const struct command *command, const struct tile_shape *shape)
{
    if (!command_is_composite(command->ask.kind))
        return 1;
    unsigned number = shape - command->shapes, size = (number - FIRST_STORES) % SIZES;
    if (number < FIRST_STORES)
        return 1;
    bool edge_m = size & 2, edge_n = size & 1, has_edge_m = command->edge_row != UINT64_MAX,
         has_edge_n = command->edge_column != UINT64_MAX;
    uint64_t rows = edge_m ? has_edge_m : command->tiles_m - has_edge_m;
    uint64_t columns = edge_n ? has_edge_n : command->tiles_n - has_edge_n, blocks = rows * columns;
    bool has_last = edge_m == has_edge_m && edge_n == has_edge_n;
    return number < FIRST_ADDS ? blocks - has_last : blocks * (command->tiles_k - 1);
}

/* ---- stages */

/* The stage of a simple command. */
static const uint8_t simple_stages[COMMANDS] = {
#define COMMAND(name, word, stage, ...) [COMMAND_##name] = STAGE_##stage,
#include "kb/commands.def"
#undef COMMAND
};

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

/* Whether a gemm's tiles read both operands in one stage. */
static bool is_paired(const struct command *command)
{
    return kb_attrs.pe_dma_reads == READS_paired && !command->ask.pinned[OPERAND_A] && !command->ask.pinned[OPERAND_B];
}

/* All tiles: [DMA_READ A] [DMA_READ B], or DMA_READ of both; FETCH GEMM, MATH for each op of scope k_tile.
 * Tiles that store: MATH for each op of scope output_tile and, in the last tile, once; STORE DMA_WRITE. */
static struct stage gemm_stage(const struct command *command, enum tile_kind tile, uint32_t index)
{
    uint32_t left = index;
    if (is_paired(command) && left-- == 0)
        return (struct stage){.kind = STAGE_DMA_READ, .index = index, .operand = OPERANDS_A_B};
    for (unsigned operand = OPERAND_A; operand <= OPERAND_B; operand++)
        if (!is_paired(command) && !command->ask.pinned[operand] && left-- == 0)
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
    return command->ask.kind == COMMAND_gemm_tiles ? gemm_stage(command, tile, index) : math_stage(command, index);
}

/* ---- what the stages of a shape work on */

uint64_t tiling_block_bytes(const struct command *command, const struct tile_shape *shape, unsigned operand)
{
    const struct request *ask = &command->ask;
    bool gemm = ask->kind == COMMAND_gemm_tiles;
    uint64_t height = gemm && operand == OPERAND_B ? shape->k : shape->m;
    uint64_t width = gemm && operand == OPERAND_A ? shape->k : shape->n;
    return product(product(height, width), dtype_bytes[operand == OPERAND_C ? ask->out_dtype : ask->dtype]);
}

/* FETCH brings the blocks of A and B to the register file, pinned ones included. */
static uint64_t fetch_bytes(const struct command *command, const struct tile_shape *shape)
{
    uint64_t bytes = tiling_block_bytes(command, shape, OPERAND_A);
    return command->ask.kind == COMMAND_gemm_tiles ? sum(bytes, tiling_block_bytes(command, shape, OPERAND_B)) : bytes;
}

static uint64_t amount_of(const struct command *command, const struct tile_shape *shape, const struct stage *stage)
{
    const struct request *ask = &command->ask;
    switch ((enum stage_kind)stage->kind) {
    case STAGE_COMM:
        return ask->bytes;
    case STAGE_DMA_READ:
    case STAGE_DMA_WRITE:
        if (!command_is_composite(ask->kind))
            return ask->bytes;
        if (stage->operand != OPERANDS_A_B)
            return tiling_block_bytes(command, shape, stage->operand);
        return sum(tiling_block_bytes(command, shape, OPERAND_A), tiling_block_bytes(command, shape, OPERAND_B));
    case STAGE_FETCH:
        return fetch_bytes(command, shape);
    case STAGE_STORE:
        return tiling_block_bytes(command, shape, OPERAND_C);
    case STAGE_GEMM:
        return product(2, product(product(shape->m, shape->k), shape->n));
    case STAGE_MATH:
        return ask->kind == COMMAND_math ? ask->n : product(shape->m, shape->n);
    case STAGE_NONE:
        break;
    }
    return 0;
}

static uint64_t rounded(uint64_t bytes)
{
    return product(ceil_div(bytes, 64), 64);
}

/* Lists the buffers of a shape: its inputs that are not pinned, and the output of a tile that stores. */
static void buffers_make(const struct command *command, struct tile_shape *shape)
{
    unsigned own = 0;
    for (unsigned operand = OPERAND_A; operand < OPERANDS; operand++) {
        if (!tiling_moves(command, operand) || (operand == OPERAND_C && shape->kind == TILE_ADDS))
            continue;
        uint64_t bytes = rounded(tiling_block_bytes(command, shape, operand));
        shape->buffer_bytes = sum(shape->buffer_bytes, bytes);
        if (bytes && kb_attrs.pe_tcm_buffers == BUFFERS_operands)
            shape->buffer[own++] = bytes;
    }
    if (kb_attrs.pe_tcm_buffers == BUFFERS_block)
        shape->buffer[0] = shape->buffer_bytes;
}

/* ---- the plan of a command: its shapes, the stages of each, epilogues, and the tiles that were planned, in one block
 * of memory */

enum { STAGES_MOST = 7 };                               /* epilogues apart: two reads, fetch, gemm, store, write, end */

/* Lists the stages of a shape whose size is known. Returns the end of what it has written. */
static struct stage *shape_make(const struct command *command, struct tile_shape *shape, struct stage *to)
{
    uint32_t index = 0;
    buffers_make(command, shape);
    shape->stages = to;
    do {
        *to = stage_of(command, shape->kind, index++);
        to->amount = amount_of(command, shape, to);
    } while (to++->kind != STAGE_NONE);
    return to;
}

/* Makes the shapes of tiles that were not planned. Each shape is that of a tile at a corner: first or last along m, k
 * and n. */
static void corners_make(struct command *command, struct stage *to)
{
    const struct request *ask = &command->ask;
    for (unsigned corner = 0; corner < 8; corner++) {
        struct tile tile = {.i_m = corner & 4 ? command->tiles_m - 1 : 0, .i_n = corner & 2 ? command->tiles_n - 1 : 0,
                            .i_k = corner & 1 ? command->tiles_k - 1 : 0};
        tile.id = (tile.i_m * command->tiles_n + tile.i_n) * command->tiles_k + tile.i_k;
        struct tile_shape *shape = shape_at(command, &tile);
        if (shape->stages)
            continue;
        shape->m = edge(ask->m, ask->tile_m, tile.i_m);
        shape->n = edge(ask->n, ask->tile_n, tile.i_n);
        shape->k = ask->kind == COMMAND_gemm_tiles ? edge(ask->k, ask->tile_k, tile.i_k) : ask->k;
        shape->kind = kind_at(command, &tile);
        to = shape_make(command, shape, to);
    }
}

/* Sizes and kinds of the tiles that were planned, each once; the search goes only through the newest, so some may come
 * again. */
static struct ARRAY(struct tile_shape) found;

static uint32_t shape_find(const struct planned_tile *tile)
{
    enum { NEWEST = 8 };
    for (size_t i = found.count; i > 0 && i + NEWEST > found.count; i--) {
        const struct tile_shape *shape = &found.at[i - 1];
        if (shape->m == tile->m && shape->k == tile->k && shape->n == tile->n && shape->kind == tile->kind)
            return i - 1;
    }
    *array_add(&found) = (struct tile_shape){.m = tile->m, .k = tile->k, .n = tile->n, .kind = tile->kind};
    return found.count - 1;
}

static uint64_t shapes_count(const struct planned_tile *planned, uint64_t tiles)
{
    found.count = 0;
    for (uint64_t i = 0; i < tiles; i++)
        shape_find(&planned[i]);
    return found.count;
}

static void planned_make(struct command *command, const struct planned_tile *planned, struct tile *tiles, struct stage *to)
{
    found.count = 0;
    for (uint64_t i = 0; i < command->tiles; i++) {
        const struct planned_tile *tile = &planned[i];
        tiles[i] = (struct tile){tile->id, tile->i_m, tile->i_k, tile->i_n, &command->shapes[shape_find(tile)]};
    }
    for (size_t i = 0; i < found.count; i++) {
        command->shapes[i] = found.at[i];
        to = shape_make(command, &command->shapes[i], to);
    }
    command->planned = tiles;
}

/* How many shapes the corners have, at most: one for each size of tiles that add, one for each size of those that store,
 * and the last tile's. */
static uint64_t corner_shapes_most(const struct command *command)
{
    if (command->tiles == 1)
        return 1;
    uint64_t sizes = (1 + (command->edge_row != UINT64_MAX)) * (1 + (command->edge_column != UINT64_MAX));
    return sizes * (1 + (command->tiles_k > 1)) + 1;
}

/* Lists the shapes, and copies the epilogues and the tiles that were planned. Only a gemm's tiles are of several kinds. */
static void list_shapes(struct command *command, const struct planned_tile *planned)
{
    struct request *ask = &command->ask;
    uint64_t epilogues = ask->epilogues * sizeof *ask->epilogue, tiles = planned ? command->tiles : 0;
    uint64_t shapes = planned ? shapes_count(planned, tiles) : shapes_most(command);
    uint64_t stages = (planned ? shapes : corner_shapes_most(command)) * (ask->epilogues + STAGES_MOST);
    struct tile *tile = command_plan(command, tiles * sizeof *tile + shapes * sizeof *command->shapes
                                                  + stages * sizeof(struct stage) + epilogues);
    command->shapes = (struct tile_shape *)(tile + tiles);
    command->shape_count = shapes;
    command->first_stage = stage_of(command, TILE_LAST, 0).kind;
    struct stage *stage = (struct stage *)(command->shapes + shapes);
    memset(command->shapes, 0, shapes * sizeof *command->shapes);
    if (epilogues)
        ask->epilogue = memcpy(stage + stages, ask->epilogue, epilogues);
    if (planned)
        planned_make(command, planned, tile, stage);
    else
        corners_make(command, stage);
}

static void simple_make(struct command *command)
{
    const struct request *ask = &command->ask;
    struct simple_plan *plan = command_plan(command, SIMPLE_PLAN_BYTES);
    plan->shape = (struct tile_shape){.m = ask->m, .k = ask->k, .n = ask->n, .kind = TILE_LAST, .stages = &plan->stage};
    plan->stage = (struct stage){.kind = simple_stages[ask->kind], .op = ask->op};
    plan->stage.amount = amount_of(command, &plan->shape, &plan->stage);
    plan->end.kind = STAGE_NONE;
    command->shapes = &plan->shape;
    command->first_stage = plan->stage.kind;
    command->tiles_k = command->tiles = command->tiles_left = 1;
}

const char *tiling_make(struct command *command)
{
    struct request *ask = &command->ask;
    if (!command_is_composite(ask->kind)) {
        simple_make(command);
        return NULL;
    }
    command->tiles_m = ceil_div(ask->m, ask->tile_m);
    command->tiles_k = ask->kind == COMMAND_gemm_tiles ? ceil_div(ask->k, ask->tile_k) : 1;
    command->tiles_n = ceil_div(ask->n, ask->tile_n);
    command->edge_row = edge_of(ask->m, ask->tile_m, command->tiles_m);
    command->edge_column = edge_of(ask->n, ask->tile_n, command->tiles_n);
    command->tiles = product(product(command->tiles_m, command->tiles_n), command->tiles_k);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        command->epilogue_count[ask->epilogue[i].scope]++;
    const struct kb_plan *generator = plan_generator();
    const struct planned_tile *planned = NULL;
    const char *wrong = NULL;
    if (generator)
        wrong = plan_generate(generator, command, &planned, &command->tiles);
    command->tiles_left = command->tiles;
    list_shapes(command, planned);
    return wrong;
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
    const struct tile_shape *shape = tile->shape;
    uint64_t tile_m = ask->tile_m, tile_k = ask->tile_k, tile_n = ask->tile_n;
    if (command->planned)                               /* positions are in elements */
        tile_m = tile_k = tile_n = 1;
    uint64_t in = dtype_bytes[ask->dtype], out = dtype_bytes[ask->out_dtype];
    if (ask->kind == COMMAND_gemm_tiles && operand == OPERAND_A)
        return (struct operand_block){ask->m,      ask->k,      tile->i_m, tile->i_k,
                                      tile_m,      tile_k,      shape->m,  shape->k,  in};
    if (ask->kind == COMMAND_gemm_tiles && operand == OPERAND_B)
        return (struct operand_block){ask->k,      ask->n,      tile->i_k, tile->i_n,
                                      tile_k,      tile_n,      shape->k,  shape->n,  in};
    return (struct operand_block){ask->m, ask->n, tile->i_m, tile->i_n, tile_m, tile_n, shape->m, shape->n,
                          operand == OPERAND_C ? out : in};
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
