/* stream_steps.c: reads the steps of a stream's program. */
#include <string.h>

#include "base/ops.h"
#include "machine/tiling.h"
#include "stream.h"
#include "common/arena.h"
#include "common/read.h"

/* A program under way: the ids of its commands, by number. */
struct reading {
    struct program *program;
    const char **ids;
    bool refused;
};

/* ---- values */

static bool dtype_read(const struct node *value, const char *key, uint8_t *out)
{
    unsigned dtype = 0;
    bool good = value && node_choice(value, key, dtype_words, DTYPES, &dtype);
    if (good)
        *out = dtype;
    return good;
}

static void dtypes_read(const struct node *step, struct request *ask)
{
    dtype_read(required(step, "dtype"), "dtype", &ask->dtype);
    ask->out_dtype = ask->dtype;
    dtype_read(node_get(step, "out_dtype"), "out_dtype", &ask->out_dtype);
}

static void op_read(const struct node *step, const char *key, uint16_t *out)
{
    const char *name;
    const struct node *value = required(step, key);
    if (value && node_identifier(value, key, &name))
        *out = op_number(name);
}

/* ---- commands; each reader knows its keys */

static void load_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "from", "to", "bytes", "async"};
    node_check_keys(step, "a load", keys, COUNT_OF(keys));
    out->ask.kind = COMMAND_load;
    address_read(required(step, "from"), "from", true, &out->address[OPERAND_A]);
    number_read(step, "to", 0, &out->ask.tcm);
    number_read(step, "bytes", 1, &out->ask.bytes);
}

static void store_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "from", "to", "bytes", "async"};
    node_check_keys(step, "a store", keys, COUNT_OF(keys));
    out->ask.kind = COMMAND_store;
    address_read(required(step, "to"), "to", true, &out->address[OPERAND_A]);
    number_read(step, "from", 0, &out->ask.tcm);
    number_read(step, "bytes", 1, &out->ask.bytes);
}

static void gemm_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "m", "k", "n", "dtype", "async"};
    node_check_keys(step, "a gemm", keys, COUNT_OF(keys));
    out->ask.kind = COMMAND_gemm;
    number_read(step, "m", 1, &out->ask.m);
    number_read(step, "k", 1, &out->ask.k);
    number_read(step, "n", 1, &out->ask.n);
    dtypes_read(step, &out->ask);
}

static void math_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "op", "elems", "dtype", "async"};
    node_check_keys(step, "a math", keys, COUNT_OF(keys));
    out->ask.kind = COMMAND_math;
    op_read(step, "op", &out->ask.op);
    number_read(step, "elems", 1, &out->ask.n);
    dtypes_read(step, &out->ask);
}

static void peer_read(const struct node *step, const char *key, uint32_t *out)
{
    const char *id;
    const struct node *value = required(step, key);
    if (value && node_string(value, key, &id) && !pe_find(id, out))
        error_at(value->where, "there is no PE '%s'; ids are like sip0.cube0.pe0", id);
}

static void send_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "to", "from", "bytes", "async"};
    node_check_keys(step, "a send", keys, COUNT_OF(keys));
    out->ask.kind = COMMAND_send;
    peer_read(step, "to", &out->ask.peer);
    number_read(step, "from", 0, &out->ask.tcm);
    number_read(step, "bytes", 1, &out->ask.bytes);
}

static void recv_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "from", "to", "async"};
    node_check_keys(step, "a recv", keys, COUNT_OF(keys));
    out->ask.kind = COMMAND_recv;
    peer_read(step, "from", &out->ask.peer);
    number_read(step, "to", 0, &out->ask.tcm);
}

static void tile_read(const struct node *step, size_t count, uint64_t *const sizes[])
{
    const struct node *tile = required(step, "tile");
    for (size_t i = 0; i < count; i++)
        *sizes[i] = 1;
    if (!tile || !node_is(tile, NODE_SEQUENCE, "tile"))
        return;
    if (tile->count != count) {
        error_at(tile->where, "tile must have %zu entries here, it has %zu", count, tile->count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        node_u64(tile->items[i], "a size of tile", 1, UINT64_MAX, sizes[i]);
}

static void pinned_read(const struct node *pinned, struct request *ask)
{
    static const char *const operands[] = {"a", "b"};
    unsigned operand;
    if (!pinned || !node_is(pinned, NODE_SEQUENCE, "pinned"))
        return;
    for (size_t i = 0; i < pinned->count; i++)
        if (node_choice(pinned->items[i], "a pinned operand", operands, COUNT_OF(operands), &operand))
            ask->pinned[operand] = true;
}

static void epilogue_read(const struct node *node, struct request *ask)
{
    static const char *const keys[] = {"op", "scope"};
    static const char *const scopes[] = {
        [SCOPE_K_TILE] = "k_tile", [SCOPE_OUTPUT_TILE] = "output_tile", [SCOPE_ONCE] = "once"};
    unsigned scope = 0;
    if (!node || !node_is(node, NODE_SEQUENCE, "epilogue"))
        return;
    struct epilogue *epilogue = arena_alloc(node->count + 1, sizeof *epilogue);
    for (size_t i = 0; i < node->count; i++) {
        if (!node_is(node->items[i], NODE_MAPPING, "an op of the epilogue"))
            continue;
        node_check_keys(node->items[i], "an op of the epilogue", keys, COUNT_OF(keys));
        op_read(node->items[i], "op", &epilogue[i].op);
        const struct node *name = required(node->items[i], "scope");
        if (name && node_choice(name, "scope", scopes, COUNT_OF(scopes), &scope))
            epilogue[i].scope = scope;
    }
    ask->epilogue = epilogue;
    ask->epilogues = node->count;
}

static void gemm_tiles_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "op", "m", "k", "n", "tile", "dtype", "out_dtype",
                                       "a", "b", "c", "pinned", "epilogue"};
    static const char *const operands[OPERANDS] = {"a", "b", "c"};
    struct request *ask = &out->ask;
    node_check_keys(step, "a gemm composite", keys, COUNT_OF(keys));
    ask->kind = COMMAND_gemm_tiles;
    number_read(step, "m", 1, &ask->m);
    number_read(step, "k", 1, &ask->k);
    number_read(step, "n", 1, &ask->n);
    tile_read(step, 3, (uint64_t *const[]){&ask->tile_m, &ask->tile_k, &ask->tile_n});
    dtypes_read(step, ask);
    pinned_read(node_get(step, "pinned"), ask);
    epilogue_read(node_get(step, "epilogue"), ask);
    for (unsigned i = 0; i < OPERANDS; i++) {
        bool needed = i == OPERAND_C || !ask->pinned[i];
        address_read(needed ? required(step, operands[i]) : node_get(step, operands[i]), operands[i], true,
                     &out->address[i]);
    }
}

static void math_tiles_read(const struct node *step, struct step *out)
{
    static const char *const keys[] = {"do", "id", "op", "fn", "m", "n", "tile", "dtype", "out_dtype", "src", "dst"};
    struct request *ask = &out->ask;
    node_check_keys(step, "a math composite", keys, COUNT_OF(keys));
    ask->kind = COMMAND_math_tiles;
    op_read(step, "fn", &ask->op);
    number_read(step, "m", 1, &ask->m);
    number_read(step, "n", 1, &ask->n);
    tile_read(step, 2, (uint64_t *const[]){&ask->tile_m, &ask->tile_n});
    dtypes_read(step, ask);
    address_read(required(step, "src"), "src", true, &out->address[OPERAND_A]);
    address_read(required(step, "dst"), "dst", true, &out->address[OPERAND_C]);
}

static void composite_read(const struct node *step, struct step *out)
{
    static const char *const ops[] = {"gemm", "math"};
    unsigned op;
    const struct node *name = required(step, "op");
    if (name && node_choice(name, "op", ops, COUNT_OF(ops), &op))
        (op ? math_tiles_read : gemm_tiles_read)(step, out);
}

/* ---- steps */

static void wait_read(const struct node *step, struct step *out, const struct reading *reading)
{
    static const char *const keys[] = {"do", "for"};
    const struct node *ids = required(step, "for");
    const char *id;
    node_check_keys(step, "a wait", keys, COUNT_OF(keys));
    out->kind = STEP_WAIT;
    if (!ids || !node_is(ids, NODE_SEQUENCE, "for"))
        return;
    out->awaited = arena_alloc(ids->count + 1, sizeof *out->awaited);
    for (size_t i = 0; i < ids->count; i++) {
        uint32_t number = 0;
        if (!node_string(ids->items[i], "an id", &id))
            continue;
        while (number < reading->program->commands && !(reading->ids[number] && !strcmp(reading->ids[number], id)))
            number++;
        if (number == reading->program->commands)
            error_at(ids->items[i]->where, "no command above has the id '%s'", id);
        out->awaited[out->awaited_count++] = number;
    }
}

static void delay_read(const struct node *step, struct step *out, const struct reading *reading)
{
    static const char *const keys[] = {"do", "ns"};
    const struct node *ns = required(step, "ns");
    (void)reading;
    node_check_keys(step, "a delay", keys, COUNT_OF(keys));
    out->kind = STEP_DELAY;
    if (ns)
        node_ps(ns, "ns", UINT64_MAX, &out->delay_ps);
}

/* What every command has: an id, and whether it blocks. */
static void command_read(const struct node *step, struct step *out, struct reading *reading)
{
    const struct node *id = node_get(step, "id"), *async = node_get(step, "async");
    const char *name = NULL;
    bool apart = false;
    if (id && node_string(id, "id", &name))
        for (uint32_t i = 0; i < reading->program->commands; i++)
            if (reading->ids[i] && !strcmp(reading->ids[i], name))
                error_at(id->where, "two commands have the id '%s'", name);
    if (async && !command_is_composite(out->ask.kind))
        node_bool(async, "async", &apart);
    out->kind = STEP_COMMAND;
    out->blocks = !command_is_composite(out->ask.kind) && !apart;
    reading->ids[reading->program->commands++] = name;
}

static void step_read(const struct node *step, struct step *out, struct reading *reading)
{
    static const char *const words[] = {"load", "store", "gemm", "math", "composite", "send", "recv", "wait", "delay"};
    static void (*const commands[])(const struct node *, struct step *) = {load_read, store_read, gemm_read, math_read,
                                                                           composite_read, send_read, recv_read};
    static void (*const others[])(const struct node *, struct step *, const struct reading *) = {
        wait_read, delay_read};
    unsigned word;
    if (!node_is(step, NODE_MAPPING, "a step"))
        return;
    const struct node *name = required(step, "do");
    if (!name || !node_choice(name, "do", words, COUNT_OF(words), &word))
        return;
    if (word >= COUNT_OF(commands)) {
        others[word - COUNT_OF(commands)](step, out, reading);
        return;
    }
    commands[word](step, out);
    command_read(step, out, reading);
}

void program_read(const struct node *steps, struct program *program)
{
    struct reading reading = {.program = program};
    if (!node_is(steps, NODE_SEQUENCE, "a program"))
        return;
    program->steps = arena_alloc(steps->count + 1, sizeof *program->steps);
    reading.ids = arena_alloc(steps->count + 1, sizeof *reading.ids);
    for (size_t i = 0; i < steps->count; i++)
        step_read(steps->items[i], &program->steps[program->count++], &reading);
}
