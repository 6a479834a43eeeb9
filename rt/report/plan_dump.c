/* plan_dump.c: the plans of composites, as JSON lines on standard output. They are asked of tiling.c, as the feeder and
 * the engines do. */
#include "plan_dump.h"

#include <stdio.h>

#include "base/dtype.h"
#include "base/ops.h"
#include "base/tables.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/json.h"
#include "machine/pe.h"
#include "machine/plan_generator.h"

/* The composites whose plans are printed: without what a plan does not depend on. */
static struct ARRAY(struct request) printed;

static struct request shape_of(const struct request *ask)
{
    struct request shape = {.kind = ask->kind, .dtype = ask->dtype, .out_dtype = ask->out_dtype, .op = ask->op,
                            .pinned = {ask->pinned[0], ask->pinned[1]}, .m = ask->m, .k = ask->k, .n = ask->n,
                            .tile_m = ask->tile_m, .tile_k = ask->tile_k, .tile_n = ask->tile_n,
                            .epilogue = ask->epilogue, .epilogues = ask->epilogues};
    return shape;
}

static bool same_shape(const struct request *a, const struct request *b)
{
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->out_dtype == b->out_dtype && a->op == b->op
                && a->pinned[0] == b->pinned[0] && a->pinned[1] == b->pinned[1] && a->m == b->m && a->k == b->k
                && a->n == b->n && a->tile_m == b->tile_m && a->tile_k == b->tile_k && a->tile_n == b->tile_n
                && a->epilogues == b->epilogues;
    for (uint32_t i = 0; same && i < a->epilogues; i++)
        same = a->epilogue[i].op == b->epilogue[i].op && a->epilogue[i].scope == b->epilogue[i].scope;
    return same;
}

static bool is_printed(const struct request *ask)
{
    for (size_t i = 0; i < printed.count; i++)
        if (same_shape(&printed.at[i], ask))
            return true;
    struct request shape = shape_of(ask);
    struct epilogue *copy = arena_alloc(ask->epilogues + 1, sizeof *copy);
    for (uint32_t i = 0; i < ask->epilogues; i++)
        copy[i] = ask->epilogue[i];
    shape.epilogue = copy;
    *array_add(&printed) = shape;
    return false;
}

static struct json line_begin(void)
{
    struct json json;
    json_open(&json, stdout);
    json.one_line = true;
    json_object(&json, NULL);
    return json;
}

static void line_end(struct json *json)
{
    json_object_end(json);
    json_close(json);
}

static void print_command(const struct command *command)
{
    const struct request *ask = &command->ask;
    const struct kb_plan *generator = plan_generator();
    bool gemm = ask->kind == COMMAND_gemm_tiles;
    uint64_t size[] = {ask->m, gemm ? ask->k : ask->n, ask->n}, tile[] = {ask->tile_m, gemm ? ask->tile_k : ask->tile_n,
                                                                         ask->tile_n};
    struct json json = line_begin();
    json_string(&json, "composite", gemm ? "gemm" : op_name(ask->op));
    json_u64_array(&json, "size", size, gemm ? 3 : 2);
    json_u64_array(&json, "tile", tile, gemm ? 3 : 2);
    json_string(&json, "dtype", dtype_words[ask->dtype]);
    json_string(&json, "out_dtype", dtype_words[ask->out_dtype]);
    json_u64(&json, "tiles", command->tiles);
    json_string(&json, "generator", generator ? generator->name : "builtin");
    json_string(&json, "pe", pe_name(command->pe));
    json_u64(&json, "cmd", command->number);
    json_string(&json, "file", ask->file);
    json_u64(&json, "line", ask->line);
    line_end(&json);
}

static void write_stage(struct json *json, const struct command *command, const struct stage *stage)
{
    static const char *const names[STAGES] = {
#define STAGE(name, part, engine, busy) #name,
#include "kb/stages.def"
#undef STAGE
    };
    static const char *const parts[STAGES] = {
#define STAGE(name, part, engine, busy) #part,
#include "kb/stages.def"
#undef STAGE
    };
    static const char *const operands[2][OPERANDS_A_B + 1] = {{"src", NULL, "dst", NULL}, {"a", "b", "c", "ab"}};
    bool gemm = command->ask.kind == COMMAND_gemm_tiles;
    json_object(json, NULL);
    json_string(json, "stage", names[stage->kind]);
    json_string(json, "part", parts[stage->kind]);
    switch ((enum stage_kind)stage->kind) {
    case STAGE_DMA_READ:
    case STAGE_DMA_WRITE:
        json_string(json, "operand", operands[gemm][stage->operand]);
        json_u64(json, "bytes", stage->amount);
        break;
    case STAGE_FETCH:
    case STAGE_STORE: json_u64(json, "bytes", stage->amount); break;
    case STAGE_MATH:
        json_string(json, "op", op_name(stage->op));
        json_u64(json, "elements", stage->amount);
        break;
    default: break;
    }
    json_object_end(json);
}

/* Prints a tile: its first element and its size along each axis. */
static void print_tile(const struct command *command, const struct tile *tile)
{
    const struct request *ask = &command->ask;
    bool gemm = ask->kind == COMMAND_gemm_tiles, planned = command->planned;
    uint64_t m = tile->i_m * (planned ? 1 : ask->tile_m), n = tile->i_n * (planned ? 1 : ask->tile_n);
    uint64_t k = tile->i_k * (planned ? 1 : ask->tile_k);
    struct json json = line_begin();
    json_u64(&json, "tile", tile->id);
    json_u64_array(&json, "m", (uint64_t[]){m, tile->shape->m}, 2);
    if (gemm)
        json_u64_array(&json, "k", (uint64_t[]){k, tile->shape->k}, 2);
    json_u64_array(&json, "n", (uint64_t[]){n, tile->shape->n}, 2);
    json_u64(&json, "buffer_bytes", tile->shape->buffer_bytes);
    json_array(&json, "stages");
    for (const struct stage *stage = tile->shape->stages; stage->kind != STAGE_NONE; stage++)
        write_stage(&json, command, stage);
    json_array_end(&json);
    line_end(&json);
}

static void command_submitted(const struct command *command)
{
    if (!command_is_composite(command->ask.kind) || is_printed(&command->ask))
        return;
    print_command(command);
    struct tile tile = tiling_tile(command, 0);
    for (;;) {
        print_tile(command, &tile);
        if (tile.id + 1 == command->tiles)
            return;
        tiling_next(command, &tile);
    }
}

struct observer plan_observer = {
    .name = "plans",
    .command_submitted = command_submitted,
};
