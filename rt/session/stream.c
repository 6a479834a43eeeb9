/* stream.c: reads a command stream, which is a YAML file: programs, and a list of what the host does. `mmu`, `memory` and
 * `launches` are short for such a list. */
#include "stream.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/ops.h"
#include "common/arena.h"
#include "common/diag.h"
#include "common/key_table.h"
#include "common/read.h"
#include "common/yaml.h"
#include "host/glob.h"
#include "machine/emitted.h"
#include "machine/mmu.h"
#include "machine/pe.h"
#include "machine/tiling.h"

/* The value of a key that must be given. */
static const struct node *required(const struct node *mapping, const char *key)
{
    const struct node *value = node_get(mapping, key);
    if (!value)
        error_at(mapping->where, "'%s' is missing", key);
    return value;
}

static void read_bytes(const struct node *mapping, uint64_t *out)
{
    const struct node *value = required(mapping, "bytes");
    if (value)
        node_u64(value, "bytes", 1, UINT64_MAX, out);
}

/* ---- addresses */

static void read_own(const struct node *address, const char *key, int *out)
{
    uint64_t number;
    const struct node *value = node_get(address, key);
    *out = OWN;
    if (value && !(value->type == NODE_SCALAR && !strcmp(value->text, "own")) && node_u64(value, key, 0, 255, &number))
        *out = number;
}

/* Reads an address. A virtual one is {va: ...}. */
static void read_address(const struct node *address, const char *what, bool may_be_virtual, struct stream_address *out)
{
    static const char *const keys[] = {"space", "sip", "cube", "pe", "offset"}, *const virtual_keys[] = {"va"};
    static const char *const spaces[] = {[SPACE_HBM] = "hbm", [SPACE_TCM] = "tcm", [SPACE_SRAM] = "sram"};
    unsigned space = 0;
    if (!address || !node_is(address, NODE_MAPPING, what))
        return;
    if (may_be_virtual && node_get(address, "va")) {
        node_check_keys(address, "a virtual address", virtual_keys, COUNT_OF(virtual_keys));
        out->is_va = true;
        node_u64(node_get(address, "va"), "va", 0, UINT64_MAX, &out->va);
        return;
    }
    node_check_keys(address, "an address", keys, COUNT_OF(keys));
    const struct node *name = required(address, "space"), *offset = node_get(address, "offset");
    if (name && node_choice(name, "space", spaces, COUNT_OF(spaces), &space))
        out->space = space;
    read_own(address, "sip", &out->sip);
    read_own(address, "cube", &out->cube);
    read_own(address, "pe", &out->pe);
    if (offset)
        node_u64(offset, "offset", 0, OFFSET_MASK, &out->offset);
}

/* Reads the address of a memory request: sip, cube and pe are 0 if they are missing, and the first two must exist. */
static void read_host_address(const struct node *node, const char *what, struct stream_address *out)
{
    int *fields[] = {&out->sip, &out->cube, &out->pe};
    read_address(node, what, false, out);
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (*fields[i] == OWN)
            *fields[i] = 0;
    if ((uint32_t)out->sip >= kb_shape.sips)
        error_at(node->where, "there is no SIP %d", out->sip);
    if ((uint32_t)out->cube >= kb_shape.cubes)
        error_at(node->where, "there is no cube %d in a SIP", out->cube);
}

/* ---- ids */

/* The ids of the commands or of the steps above. */
struct ids {
    uint32_t count;                                     /* commands or steps, those without an id included */
    struct key_table table;                             /* of struct id */
    const char *things, *thing;                         /* "commands", "command" */
};

struct id {
    struct key_link link;                               /* by a hash of the text; the texts of one hash are a list: */
    struct id *next;
    const char *text;
    uint32_t number;
};

/* The id of a text; NULL if it is unknown. */
static const struct id *id_find(const struct ids *ids, const char *text)
{
    const struct id *id = key_table_find(&ids->table, hash_bytes(0, text, strlen(text)));
    while (id && strcmp(id->text, text))
        id = id->next;
    return id;
}

/* Adds one more, with an id or, NULL, without. */
static void id_add(struct ids *ids, const struct node *value)
{
    const char *text;
    uint32_t number = ids->count++;
    if (!value || !node_string(value, "id", &text))
        return;
    if (id_find(ids, text)) {
        error_at(value->where, "two %s have the id '%s'", ids->things, text);
        return;
    }
    uint64_t hash = hash_bytes(0, text, strlen(text));
    struct id *id = arena_alloc(1, sizeof *id), *same = key_table_find(&ids->table, hash);
    *id = (struct id){.text = text, .number = number};
    if (same) {
        id->next = same->next;
        same->next = id;
    } else {
        key_table_add(&ids->table, &id->link, hash);
    }
}

/* What a wait waits for. */
static void read_awaited(const struct node *wait, const struct ids *ids, uint32_t **awaited, uint32_t *count)
{
    const struct node *names = required(wait, "for");
    const char *id;
    if (!names || !node_is(names, NODE_SEQUENCE, "for"))
        return;
    *awaited = arena_alloc(names->count + 1, sizeof **awaited);
    for (size_t i = 0; i < names->count; i++) {
        if (!node_string(names->items[i], "an id", &id))
            continue;
        const struct id *found = id_find(ids, id);
        if (!found)
            error_at(names->items[i]->where, "no %s above has the id '%s'", ids->thing, id);
        else
            (*awaited)[(*count)++] = found->number;
    }
}

/* ---- commands of a program */

static void read_peer(const struct node *value, const char *key, uint32_t *out)
{
    const char *id;
    if (node_string(value, key, &id) && !pe_numbered(id, out))
        error_at(value->where, "there is no PE '%s'; ids are like sip0.cube0.pe0", id);
}

/* Reads the PE, or the list of PEs, that a send goes to. */
static void read_peers(const struct node *value, const char *key, struct stream_step *out)
{
    if (value->type != NODE_SEQUENCE) {
        read_peer(value, key, &out->ask.peer);
        return;
    }
    if (!value->count) {
        error_at(value->where, "'%s' must name at least one PE", key);
        return;
    }
    out->peers = arena_alloc(value->count, sizeof *out->peers);
    out->peer_count = (uint32_t)value->count;
    for (size_t i = 0; i < value->count; i++)
        read_peer(value->items[i], "a PE", &out->peers[i]);
}

static void read_op(const struct node *value, const char *key, uint16_t *out)
{
    const char *name;
    if (node_identifier(value, key, &name))
        *out = op_number(name);
}

static void read_dtype(const struct node *value, const char *key, uint8_t *out)
{
    unsigned dtype = 0;
    if (node_choice(value, key, dtype_words, DTYPES, &dtype))
        *out = dtype;
}

static void read_tile(const struct node *tile, size_t count, struct request *ask)
{
    uint64_t *const sizes_gemm[] = {&ask->tile_m, &ask->tile_k, &ask->tile_n};
    uint64_t *const sizes_math[] = {&ask->tile_m, &ask->tile_n}, *const *sizes = count == 3 ? sizes_gemm : sizes_math;
    for (size_t i = 0; i < count; i++)
        *sizes[i] = 1;
    if (!node_is(tile, NODE_SEQUENCE, "tile"))
        return;
    if (tile->count != count) {
        error_at(tile->where, "tile must have %zu entries here, it has %zu", count, tile->count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        node_u64(tile->items[i], "a size of tile", 1, UINT64_MAX, sizes[i]);
}

static void read_pinned(const struct node *pinned, struct request *ask)
{
    static const char *const operands[] = {"a", "b"};
    unsigned operand;
    if (!node_is(pinned, NODE_SEQUENCE, "pinned"))
        return;
    for (size_t i = 0; i < pinned->count; i++)
        if (node_choice(pinned->items[i], "a pinned operand", operands, COUNT_OF(operands), &operand))
            ask->pinned[operand] = true;
}

static void read_epilogue(const struct node *node, struct request *ask)
{
    static const char *const keys[] = {"op", "scope"};
    static const char *const scopes[] = {
#define SCOPE(name, word) [SCOPE_##name] = word,
#include "kb/scopes.def"
#undef SCOPE
        "per_k_tile", "per_output_tile",                /* other words for the first two */
    };
    if (!node_is(node, NODE_SEQUENCE, "epilogue"))
        return;
    struct epilogue *epilogue = arena_alloc(node->count + 1, sizeof *epilogue);
    for (size_t i = 0; i < node->count; i++) {
        const struct node *item = node->items[i];
        if (!node_is(item, NODE_MAPPING, "an op of the epilogue"))
            continue;
        node_check_keys(item, "an op of the epilogue", keys, COUNT_OF(keys));
        const struct node *op = required(item, "op"), *name = node_get(item, "scope");
        unsigned scope = SCOPE_OUTPUT_TILE;
        if (op)
            read_op(op, "op", &epilogue[i].op);
        if (!name || node_choice(name, "scope", scopes, COUNT_OF(scopes), &scope))
            epilogue[i].scope = (uint8_t)(scope % SCOPES);
    }
    ask->epilogue = epilogue;
    ask->epilogues = node->count;
}

/* What a key of a command is read as, and where it goes. */
enum field_type {
    FIELD_ADDRESS,                                      /* `to`: the operand; a pinned one may be missing */
    FIELD_OFFSET, FIELD_COUNT, FIELD_PEER, FIELD_OP,    /* `to`: offset in the request; a count is at least 1 */
    FIELD_PEERS,                                        /* one PE, or a list */
    FIELD_DTYPE,                                        /* of operands and, without out_dtype, of the result */
    FIELD_OUT_DTYPE, FIELD_PINNED, FIELD_EPILOGUE,      /* may be missing */
    FIELD_TILE,                                         /* `to`: how many sizes */
};

#define IN(field) offsetof(struct request, field)

static const struct command_form {
    const char *word, *what;
    enum command_kind kind;
    struct command_field {
        const char *key;
        enum field_type type;
        size_t to;
    } fields[12];
} forms[] = {
    {"load", "a load", COMMAND_load,
     {{"from", FIELD_ADDRESS, OPERAND_A}, {"to", FIELD_OFFSET, IN(tcm)}, {"bytes", FIELD_COUNT, IN(bytes)}}},
    {"store", "a store", COMMAND_store,
     {{"to", FIELD_ADDRESS, OPERAND_A}, {"from", FIELD_OFFSET, IN(tcm)}, {"bytes", FIELD_COUNT, IN(bytes)}}},
    {"gemm", "a gemm", COMMAND_gemm,
     {{"m", FIELD_COUNT, IN(m)}, {"k", FIELD_COUNT, IN(k)}, {"n", FIELD_COUNT, IN(n)}, {"dtype", FIELD_DTYPE, 0}}},
    {"math", "a math", COMMAND_math,
     {{"op", FIELD_OP, IN(op)}, {"elems", FIELD_COUNT, IN(n)}, {"dtype", FIELD_DTYPE, 0}}},
    {"send", "a send", COMMAND_send,
     {{"to", FIELD_PEERS, 0}, {"from", FIELD_OFFSET, IN(tcm)}, {"bytes", FIELD_COUNT, IN(bytes)}}},
    {"recv", "a recv", COMMAND_recv, {{"from", FIELD_PEER, IN(peer)}, {"to", FIELD_OFFSET, IN(tcm)}}},
};

/* `do: composite`, by its `op`. */
static const struct command_form composites[] = {
    {"gemm", "a gemm composite", COMMAND_gemm_tiles,
     {{"m", FIELD_COUNT, IN(m)}, {"k", FIELD_COUNT, IN(k)}, {"n", FIELD_COUNT, IN(n)}, {"tile", FIELD_TILE, 3},
      {"dtype", FIELD_DTYPE, 0}, {"out_dtype", FIELD_OUT_DTYPE, 0}, {"pinned", FIELD_PINNED, 0},
      {"epilogue", FIELD_EPILOGUE, 0}, {"a", FIELD_ADDRESS, OPERAND_A}, {"b", FIELD_ADDRESS, OPERAND_B},
      {"c", FIELD_ADDRESS, OPERAND_C}}},
    {"math", "a math composite", COMMAND_math_tiles,
     {{"fn", FIELD_OP, IN(op)}, {"m", FIELD_COUNT, IN(m)}, {"n", FIELD_COUNT, IN(n)}, {"tile", FIELD_TILE, 2},
      {"dtype", FIELD_DTYPE, 0}, {"out_dtype", FIELD_OUT_DTYPE, 0}, {"src", FIELD_ADDRESS, OPERAND_A},
      {"dst", FIELD_ADDRESS, OPERAND_C}}},
};

static bool may_be_missing(const struct command_field *field, const struct request *ask)
{
    if (field->type == FIELD_ADDRESS)
        return field->to < COUNT_OF(ask->pinned) && ask->pinned[field->to];
    return field->type == FIELD_OUT_DTYPE || field->type == FIELD_PINNED || field->type == FIELD_EPILOGUE;
}

static void read_field(const struct node *step, const struct command_field *field, struct stream_step *out)
{
    struct request *ask = &out->ask;
    const char *key = field->key;
    const struct node *value = may_be_missing(field, ask) ? node_get(step, key) : required(step, key);
    void *to = (char *)ask + field->to;
    if (!value)
        return;
    switch (field->type) {
    case FIELD_ADDRESS: read_address(value, key, true, &out->address[field->to]); break;
    case FIELD_OFFSET: node_u64(value, key, 0, UINT64_MAX, to); break;
    case FIELD_COUNT: node_u64(value, key, 1, UINT64_MAX, to); break;
    case FIELD_PEER: read_peer(value, key, to); break;
    case FIELD_PEERS: read_peers(value, key, out); break;
    case FIELD_OP: read_op(value, key, to); break;
    case FIELD_DTYPE:
        read_dtype(value, key, &ask->dtype);
        ask->out_dtype = ask->dtype;
        break;
    case FIELD_OUT_DTYPE: read_dtype(value, key, &ask->out_dtype); break;
    case FIELD_PINNED: read_pinned(value, ask); break;
    case FIELD_EPILOGUE: read_epilogue(value, ask); break;
    case FIELD_TILE: read_tile(value, field->to, ask); break;
    }
}

/* ---- programs */

static void read_command(const struct node *step, const struct command_form *form, struct stream_step *out,
                         struct ids *ids)
{
    bool composite = command_is_composite(form->kind), async = false;
    const char *keys[COUNT_OF(form->fields) + 3] = {"do", "id"};
    size_t count = 2;
    if (composite)
        keys[count++] = "op";
    for (const struct command_field *field = form->fields; field->key; field++)
        keys[count++] = field->key;
    if (!composite)
        keys[count++] = "async";
    node_check_keys(step, form->what, keys, count);
    out->ask.kind = form->kind;
    for (const struct command_field *field = form->fields; field->key; field++)
        read_field(step, field, out);
    id_add(ids, node_get(step, "id"));
    const struct node *word = composite ? NULL : node_get(step, "async");
    if (word)
        node_bool(word, "async", &async);
    out->kind = STEP_COMMAND;
    out->blocks = !composite && !async;
}

static void read_wait(const struct node *step, struct stream_step *out, const struct ids *ids)
{
    static const char *const keys[] = {"do", "for"};
    node_check_keys(step, "a wait", keys, COUNT_OF(keys));
    out->kind = STEP_WAIT;
    read_awaited(step, ids, &out->awaited, &out->awaited_count);
}

static void read_delay(const struct node *step, struct stream_step *out)
{
    static const char *const keys[] = {"do", "ns"};
    const struct node *ns = required(step, "ns");
    node_check_keys(step, "a delay", keys, COUNT_OF(keys));
    out->kind = STEP_DELAY;
    if (ns)
        node_ps(ns, "ns", UINT64_MAX, &out->delay_ps);
}

static void read_step(const struct node *step, struct stream_step *out, struct ids *ids)
{
    enum { COMPOSITE = COUNT_OF(forms), WAIT, DELAY, WORDS };
    const char *words[WORDS] = {[COMPOSITE] = "composite", [WAIT] = "wait", [DELAY] = "delay"};
    const char *const ops[] = {composites[0].word, composites[1].word};
    unsigned word, op;
    if (!node_is(step, NODE_MAPPING, "a step"))
        return;
    const struct node *name = required(step, "do");
    out->line = step->where.line;
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        words[i] = forms[i].word;
    if (!name || !node_choice(name, "do", words, WORDS, &word))
        return;
    if (word == WAIT) {
        read_wait(step, out, ids);
    } else if (word == DELAY) {
        read_delay(step, out);
    } else if (word < COUNT_OF(forms)) {
        read_command(step, &forms[word], out, ids);
    } else {
        name = required(step, "op");
        if (name && node_choice(name, "op", ops, COUNT_OF(ops), &op))
            read_command(step, &composites[op], out, ids);
    }
}

static void read_program(const struct node *steps, struct stream_program *program)
{
    struct ids ids = {.things = "commands", .thing = "command"};
    if (!node_is(steps, NODE_SEQUENCE, "a program"))
        return;
    program->steps = arena_alloc(steps->count + 1, sizeof *program->steps);
    for (size_t i = 0; i < steps->count; i++)
        read_step(steps->items[i], &program->steps[program->count++], &ids);
    program->commands = ids.count;
    program->ids = ids.table;
}

struct ids *stream_ids(void)
{
    struct ids *ids = arena_alloc(1, sizeof *ids);
    *ids = (struct ids){.things = "commands", .thing = "command"};
    return ids;
}

const struct stream_step *stream_step_of(const struct source *text, struct ids *ids)
{
    struct stream_step *step = arena_alloc(1, sizeof *step);
    unsigned before = error_count();
    const struct node *node = yaml_document(text);
    if (node)
        read_step(node, step, ids);
    return node && error_count() == before ? step : NULL;
}

/* ---- PEs */

/* Reads globs over the ids of PEs. `taken`: by PE, the part of this launch that has it, from 1 on. */
static void read_targets(const struct node *node, uint32_t part, uint32_t *taken, uint32_t **pes, uint32_t *count)
{
    const char *glob;
    if (!node_is(node, NODE_SEQUENCE, "targets"))
        return;
    if (!node->count)
        error_at(node->where, "targets must name at least one PE");
    for (size_t i = 0; i < node->count; i++) {
        bool matched = false;
        if (!node_string(node->items[i], "a target", &glob))
            continue;
        for (uint32_t pe = 0; pe < pe_count(); pe++) {
            const char *id = pe_name(&kb_pe[pe]);
            if (!glob_matches(glob, id))
                continue;
            matched = true;
            if (taken[pe] && taken[pe] != part)
                error_at(node->items[i]->where, "%s is in two parts of the launch", id);
            else
                taken[pe] = part;
        }
        if (!matched)
            error_at(node->items[i]->where, "no PE matches '%s'; ids are like sip0.cube0.pe0", glob);
    }
    *pes = arena_alloc(pe_count(), sizeof **pes);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        if (taken[pe] == part)
            (*pes)[(*count)++] = pe;
}

/* ---- launches */

static const struct stream_program *find_program(const struct node *node, const struct command_stream *stream)
{
    const char *name, **names = arena_alloc(stream->program_count + 1, sizeof *names);
    if (!node_string(node, "program", &name))
        return NULL;
    for (uint32_t i = 0; i < stream->program_count; i++) {
        names[i] = stream->programs[i].name;
        if (!strcmp(names[i], name))
            return &stream->programs[i];
    }
    const char *near = nearest_name(name, names, stream->program_count);
    error_at(node->where, "there is no program '%s'", name);
    if (near)
        note_at(node->where, "did you mean '%s'?", near);
    return NULL;
}

static void read_part(const struct node *node, const struct command_stream *stream, uint32_t part, uint32_t *taken,
                      struct stream_part *out)
{
    const struct node *program = required(node, "program"), *targets = required(node, "targets");
    if (program)
        out->program = find_program(program, stream);
    if (targets)
        read_targets(targets, part, taken, &out->pes, &out->count);
}

static void read_launch(const struct node *node, const struct command_stream *stream, struct stream_launch *launch)
{
    static const char *const part_keys[] = {"program", "targets"}, *const policies[] = {"drain", "fail_fast"};
    static const char *const starts[] = {
        [START_BARRIER] = "barrier", [START_CUBE] = "cube", [START_FREE] = "free"};
    const struct node *policy = node_get(node, "on_failure"), *timeout = node_get(node, "timeout_ns");
    const struct node *start = node_get(node, "start"), *parts = node_get(node, "parts");
    unsigned chosen = 0;
    if (policy && node_choice(policy, "on_failure", policies, COUNT_OF(policies), &chosen))
        launch->options.fail_fast = chosen;
    if (start && node_choice(start, "start", starts, COUNT_OF(starts), &chosen))
        launch->options.start = chosen;
    if (timeout)
        launch->options.timed = node_ps(timeout, "timeout_ns", UINT64_MAX, &launch->options.timeout_ps);
    launch->options.line = node->where.line;
    uint32_t *taken = arena_alloc(pe_count(), sizeof *taken);
    if (!parts) {
        launch->parts = arena_alloc(1, sizeof *launch->parts);
        launch->count = 1;
        read_part(node, stream, 1, taken, launch->parts);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(part_keys); i++)
        if (node_get(node, part_keys[i]))
            error_at(node_get(node, part_keys[i])->where, "'%s' is given beside 'parts'; it belongs in one of them",
                     part_keys[i]);
    if (!node_is(parts, NODE_SEQUENCE, "parts"))
        return;
    if (!parts->count)
        error_at(parts->where, "parts must have at least one entry");
    launch->parts = arena_alloc(parts->count + 1, sizeof *launch->parts);
    for (size_t i = 0; i < parts->count; i++) {
        if (!node_is(parts->items[i], NODE_MAPPING, "a part"))
            continue;
        node_check_keys(parts->items[i], "a part", part_keys, COUNT_OF(part_keys));
        read_part(parts->items[i], stream, i + 1, taken, &launch->parts[launch->count++]);
    }
}

/* ---- maps and memory requests */

static void read_map(const struct node *node, bool unmaps, struct stream_map *map)
{
    uint64_t bytes = 1;
    map->unmaps = unmaps;
    const struct node *va = required(node, "va"), *targets = node_get(node, "targets");
    if (va)
        node_u64(va, "va", 0, UINT64_MAX, &map->va);
    read_bytes(node, &bytes);
    if (!unmaps)
        read_address(required(node, "to"), "to", false, &map->to);
    if (targets)
        read_targets(targets, 1, arena_alloc(pe_count(), sizeof(uint32_t)), &map->pes, &map->count);
    const char *wrong = map_pages(map->va, bytes, &map->pages);
    if (va && wrong)
        error_at(va->where, "%s", wrong);
}

static void read_memory_request(const struct node *node, bool writes, struct stream_memory *request)
{
    const char *side = writes ? "to" : "from";
    request->writes = writes;
    read_bytes(node, &request->bytes);
    const struct node *addresses = required(node, side);
    if (!addresses || !node_is(addresses, NODE_SEQUENCE, side))
        return;
    if (!addresses->count)
        error_at(addresses->where, "'%s' must name at least one address", side);
    request->addresses = arena_alloc(addresses->count + 1, sizeof *request->addresses);
    for (size_t i = 0; i < addresses->count; i++)
        read_host_address(addresses->items[i], side, &request->addresses[request->count++]);
}

/* ---- steps of the host */

/* A list of what the host does that is being read. */
struct host_reader {
    struct command_stream *stream;
    const struct node **nodes;                          /* by step */
    struct ids ids;
};

/* Whether a step is a request, which can be asynchronous and waited for. */
static bool is_request(const struct host_step *step)
{
    return step->kind != HOST_WAIT && step->kind != HOST_DELAY;
}

/* The forms of a step: its word and the keys besides `do`; a request has `id` and `async` too. */
static const struct host_form {
    const char *word, *what;
    enum host_step_kind kind;
    const char *keys[8];
} host_forms[] = {
    {"map", "a map", HOST_MAP, {"va", "bytes", "to", "targets"}},
    {"unmap", "an unmap", HOST_MAP, {"va", "bytes", "targets"}},
    {"read", "a memory request", HOST_MEMORY, {"from", "bytes"}},
    {"write", "a memory request", HOST_MEMORY, {"to", "bytes"}},
    {"launch", "a launch", HOST_LAUNCH, {"program", "targets", "parts", "timeout_ns", "on_failure", "start"}},
    {"wait", "a wait", HOST_WAIT, {"for"}},
    {"delay", "a delay", HOST_DELAY, {"ns"}},
};

enum { FORM_MAP, FORM_UNMAP, FORM_READ, FORM_WRITE, FORM_LAUNCH, HOST_FORMS = COUNT_OF(host_forms) };

/* Reads a step of a form; `listed`: in a `host` list, with the keys that only steps of such a list have. */
static void read_host_step(const struct node *node, unsigned form, bool listed, struct host_reader *reader)
{
    const struct host_form *host_form = &host_forms[form];
    struct host_step *step = &reader->stream->steps[reader->stream->count];
    const char *keys[COUNT_OF(host_form->keys) + 3];
    size_t count = 0;
    *step = (struct host_step){.kind = host_form->kind, .line = node->where.line};
    if (listed || step->kind == HOST_MEMORY)
        keys[count++] = "do";
    for (const char *const *key = host_form->keys; *key; key++)
        if (listed || step->kind != HOST_MAP || strcmp(*key, "targets"))
            keys[count++] = *key;
    if (listed && is_request(step)) {
        keys[count++] = "id";
        keys[count++] = "async";
    }
    node_check_keys(node, host_form->what, keys, count);
    id_add(&reader->ids, listed && is_request(step) ? node_get(node, "id") : NULL);
    const struct node *async = listed && is_request(step) ? node_get(node, "async") : NULL;
    if (async)
        node_bool(async, "async", &step->async);
    switch (step->kind) {
    case HOST_MAP: read_map(node, form == FORM_UNMAP, &step->map); break;
    case HOST_MEMORY: read_memory_request(node, form == FORM_WRITE, &step->memory); break;
    case HOST_LAUNCH: read_launch(node, reader->stream, &step->launch); break;
    case HOST_WAIT: read_awaited(node, &reader->ids, &step->awaited, &step->awaited_count); break;
    case HOST_DELAY: {
        const struct node *ns = required(node, "ns");
        if (ns)
            node_ps(ns, "ns", UINT64_MAX, &step->delay_ps);
    }
    }
    reader->nodes[reader->stream->count++] = node;
}

/* Reads a step that says what it is: `do`, one of the forms from `first` to `last`. */
static void read_word_step(const struct node *node, const char *what, unsigned first, unsigned last, bool listed,
                           struct host_reader *reader)
{
    const char *words[HOST_FORMS];
    unsigned word;
    if (!node_is(node, NODE_MAPPING, what))
        return;
    const struct node *name = required(node, "do");
    for (unsigned i = first; i <= last; i++)
        words[i - first] = host_forms[i].word;
    if (name && node_choice(name, "do", words, last - first + 1, &word))
        read_host_step(node, first + word, listed, reader);
}

/* ---- what is in flight at once */

/* The PEs that some launch targets, in rank order. */
static uint32_t *all_targets(const struct command_stream *stream, uint32_t *count)
{
    bool *targeted = arena_alloc(pe_count(), sizeof *targeted);
    uint32_t *out = arena_alloc(pe_count(), sizeof *out);
    for (const struct host_step *step = stream->steps; step < stream->steps + stream->count; step++)
        for (uint32_t p = 0; p < step->launch.count; p++)
            for (uint32_t i = 0; i < step->launch.parts[p].count; i++)
                targeted[step->launch.parts[p].pes[i]] = true;
    *count = 0;
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        if (targeted[pe])
            out[(*count)++] = pe;
    return out;
}

/* What is in flight on a PE. */
struct pe_use {
    uint32_t launch, last_map;                          /* position of the step + 1; 0: none */
    uint32_t maps;
};

static void use_pe(const struct host_reader *reader, struct pe_use *use, uint32_t pe, uint32_t at, bool *reported)
{
    const struct host_step *step = &reader->stream->steps[at];
    bool launches = step->kind == HOST_LAUNCH;
    uint32_t other = use->launch ? use->launch : launches && use->maps ? use->last_map : 0;
    if (other && !*reported) {
        const struct host_step *flying = &reader->stream->steps[other - 1];
        error_at(reader->nodes[at]->where, "%s is still in flight on %s: wait for it first",
                 flying->kind == HOST_LAUNCH ? "a launch" : "a map or an unmap", pe_name(&kb_pe[pe]));
        note_at(reader->nodes[other - 1]->where, "this one");
        *reported = true;
    }
    if (launches)
        use->launch = at + 1;
    else
        use->last_map = at + 1;
    use->maps += !launches;
}

static void free_pe(struct pe_use *use, bool launches)
{
    if (launches)
        use->launch = 0;
    else
        use->maps--;
}

/* Puts a step in flight on its PEs, or takes it out again. */
static void step_flies(const struct host_reader *reader, struct pe_use *uses, uint32_t at, bool begins)
{
    const struct host_step *step = &reader->stream->steps[at];
    bool reported = false;
    for (uint32_t p = 0; p < step->launch.count; p++)
        for (uint32_t i = 0; i < step->launch.parts[p].count; i++) {
            uint32_t pe = step->launch.parts[p].pes[i];
            if (begins)
                use_pe(reader, &uses[pe], pe, at, &reported);
            else
                free_pe(&uses[pe], true);
        }
    for (uint32_t i = 0; i < step->map.count; i++)
        if (begins)
            use_pe(reader, &uses[step->map.pes[i]], step->map.pes[i], at, &reported);
        else
            free_pe(&uses[step->map.pes[i]], false);
}

/* Checks that no launch is in flight on a PE beside another launch, a map or an unmap. An asynchronous step is in flight
 * up to the first wait that names it. */
static void check_in_flight(const struct host_reader *reader)
{
    struct pe_use *uses = arena_alloc(pe_count(), sizeof *uses);
    bool *flies = arena_alloc(reader->stream->count + 1, sizeof *flies);
    for (uint32_t at = 0; at < reader->stream->count; at++) {
        const struct host_step *step = &reader->stream->steps[at];
        step_flies(reader, uses, at, true);
        flies[at] = step->async;
        if (!step->async)
            step_flies(reader, uses, at, false);
        for (uint32_t i = 0; i < step->awaited_count; i++)
            if (flies[step->awaited[i]]) {
                flies[step->awaited[i]] = false;
                step_flies(reader, uses, step->awaited[i], false);
            }
    }
}

/* ---- parts of a stream that come from elsewhere */

static const struct command_field *find_field(const struct command_form *form, const char *key)
{
    for (const struct command_field *field = form->fields; field->key; field++)
        if (!strcmp(field->key, key))
            return field;
    return NULL;
}

static enum stream_key kind_of_field(const struct command_field *field)
{
    switch (field->type) {
    case FIELD_ADDRESS: return STREAM_KEY_ADDRESS;
    case FIELD_PEER: return STREAM_KEY_PE;
    case FIELD_PEERS: return STREAM_KEY_PES;
    case FIELD_PINNED: return STREAM_KEY_WORDS;
    case FIELD_TILE: return STREAM_KEY_SIZES;
    default: return STREAM_KEY_VALUE;
    }
}

enum stream_key stream_key(const char *word, const char *op, const char *key)
{
    enum stream_key kind = NO_STREAM_KEY;
    const struct command_field *field;
    for (size_t i = 0; i < COUNT_OF(forms) + COUNT_OF(composites); i++) {
        bool composite = i >= COUNT_OF(forms);
        const struct command_form *form = composite ? &composites[i - COUNT_OF(forms)] : &forms[i];
        bool meant = !word || (composite ? !strcmp(word, "composite") && op && !strcmp(op, form->word) : !strcmp(word, form->word));
        if (meant && (field = find_field(form, key)))
            kind = kind_of_field(field);
    }
    for (const struct host_form *form = host_forms; !kind && form < host_forms + HOST_FORMS; form++)
        for (const char *const *name = form->keys; *name && (!word || !strcmp(word, form->word)); name++)
            if (!strcmp(*name, key))
                kind = STREAM_KEY_VALUE;
    return kind ? kind : (!word || !strcmp(word, "composite")) && !strcmp(key, "op") ? STREAM_KEY_VALUE : NO_STREAM_KEY;
}

size_t stream_keys(const char **names)
{
    size_t count = 0;
    names[count++] = "op";
    for (size_t i = 0; i < COUNT_OF(forms) + COUNT_OF(composites); i++) {
        const struct command_form *form = i < COUNT_OF(forms) ? &forms[i] : &composites[i - COUNT_OF(forms)];
        for (const struct command_field *field = form->fields; field->key && count < STREAM_KEYS_MOST; field++)
            names[count++] = field->key;
    }
    for (const struct host_form *form = host_forms; form < host_forms + HOST_FORMS; form++)
        for (const char *const *name = form->keys; *name && count < STREAM_KEYS_MOST; name++)
            names[count++] = *name;
    return count;
}

bool stream_host_word(const char *word)
{
    for (unsigned form = 0; form < FORM_LAUNCH; form++)
        if (!strcmp(word, host_forms[form].word))
            return true;
    return false;
}

bool stream_step_check(const struct node *step)
{
    struct ids ids = {.things = "commands", .thing = "command"};
    struct stream_step read = {0};
    unsigned before = error_count();
    read_step(step, &read, &ids);
    return error_count() == before;
}

bool stream_host_check(const struct node *step)
{
    struct host_step steps[1];
    const struct node *nodes[1];
    struct command_stream stream = {.steps = steps};
    struct host_reader reader = {.stream = &stream, .nodes = nodes};
    unsigned before = error_count();
    read_word_step(step, "a step of the host", 0, FORM_LAUNCH - 1, true, &reader);
    return error_count() == before;
}

uint32_t stream_command_number(const struct stream_program *program, const char *id)
{
    const struct id *found = id_find(&(struct ids){.table = program->ids}, id);
    return found ? found->number : program->commands;
}

/* ---- the file */

/* The number of items of a sequence; 0 if it is missing or something else. */
static size_t item_count(const struct node *node, const char *what)
{
    return node && node_is(node, NODE_SEQUENCE, what) ? node->count : 0;
}

static void read_programs(const struct node *programs, struct command_stream *stream)
{
    if (!programs || !node_is(programs, NODE_MAPPING, "programs"))
        return;
    stream->programs = arena_alloc(programs->count + 1, sizeof *stream->programs);
    for (size_t i = 0; i < programs->count; i++) {
        struct stream_program *program = &stream->programs[stream->program_count++];
        program->name = programs->entries[i].key->text;
        read_program(programs->entries[i].value, program);
    }
}

static void read_lists(const struct node *root, struct host_reader *reader)
{
    static const char *const short_keys[] = {"mmu", "memory", "launches"};
    const struct node *host = node_get(root, "host"), *maps = node_get(root, "mmu"), *memory = node_get(root, "memory");
    for (size_t i = 0; host && i < COUNT_OF(short_keys); i++)
        if (node_get(root, short_keys[i]))
            error_at(node_get(root, short_keys[i])->where, "'%s' is given beside 'host'; it belongs in that list",
                     short_keys[i]);
    const struct node *launches = host ? NULL : required(root, "launches");
    size_t listed = item_count(host, "host"), mapped = item_count(maps, "mmu"), requested = item_count(memory, "memory");
    size_t launched = item_count(launches, "launches"), all = listed + mapped + requested + launched;
    reader->stream->steps = arena_alloc(all + 1, sizeof *reader->stream->steps);
    reader->nodes = arena_alloc(all + 1, sizeof *reader->nodes);
    reader->ids = (struct ids){.things = "steps of the host", .thing = "step"};
    for (size_t i = 0; i < listed; i++)
        read_word_step(host->items[i], "a step of the host", 0, HOST_FORMS - 1, true, reader);
    for (size_t i = 0; i < mapped; i++)
        if (node_is(maps->items[i], NODE_MAPPING, "a map"))
            read_host_step(maps->items[i], FORM_MAP, false, reader);
    for (size_t i = 0; i < requested; i++)
        read_word_step(memory->items[i], "a memory request", FORM_READ, FORM_WRITE, false, reader);
    for (size_t i = 0; i < launched; i++)
        if (node_is(launches->items[i], NODE_MAPPING, "a launch"))
            read_host_step(launches->items[i], FORM_LAUNCH, false, reader);
}

const struct command_stream *stream_of(const struct source *text)
{
    static const char *const keys[] = {"name", "host", "mmu", "memory", "launches", "programs"};
    struct command_stream *stream = arena_alloc(1, sizeof *stream);
    struct host_reader reader = {.stream = stream};
    unsigned before = error_count();
    const struct node *root = yaml_document(text);
    if (!root || !node_is(root, NODE_MAPPING, "a command stream"))
        return NULL;
    node_check_keys(root, "a command stream", keys, COUNT_OF(keys));
    const char *name;
    if (node_get(root, "name"))
        node_string(node_get(root, "name"), "name", &name);
    read_programs(node_get(root, "host") ? node_get(root, "programs") : required(root, "programs"), stream);
    read_lists(root, &reader);
    uint32_t count, *targets = all_targets(stream, &count);
    for (struct host_step *step = stream->steps; step < stream->steps + stream->count; step++)
        if (step->kind == HOST_MAP && !step->map.pes) {
            step->map.pes = targets;
            step->map.count = count;
        }
    check_in_flight(&reader);
    return error_count() == before ? stream : NULL;
}

const struct command_stream *stream_read(const char *path)
{
    const struct command_stream *stream = stream_of(source_given(path));
    errors_end();
    return stream;
}
