/* stream_host.c: reads addresses, and what a stream's host does before the launches: maps and memory requests. */
#include <string.h>

#include "machine/emitted.h"
#include "machine/mmu.h"
#include "stream.h"
#include "common/arena.h"
#include "common/read.h"

/* ---- addresses */

static void field_read(const struct node *address, const char *key, int *out)
{
    uint64_t number;
    const struct node *value = node_get(address, key);
    *out = OWN;
    if (!value || (value->type == NODE_SCALAR && !strcmp(value->text, "own")))
        return;
    if (node_u64(value, key, 0, 255, &number))
        *out = number;
}

static void va_read(const struct node *address, struct stream_address *out)
{
    static const char *const keys[] = {"va"};
    node_check_keys(address, "a virtual address", keys, COUNT_OF(keys));
    out->is_va = true;
    node_u64(node_get(address, "va"), "va", 0, UINT64_MAX, &out->value);
}

void address_read(const struct node *address, const char *what, bool virtual, struct stream_address *out)
{
    static const char *const keys[] = {"space", "sip", "cube", "pe", "offset"};
    static const char *const spaces[] = {[SPACE_HBM] = "hbm", [SPACE_TCM] = "tcm", [SPACE_SRAM] = "sram"};
    unsigned space = 0;
    if (!address || !node_is(address, NODE_MAPPING, what))
        return;
    if (virtual && node_get(address, "va")) {
        va_read(address, out);
        return;
    }
    node_check_keys(address, "an address", keys, COUNT_OF(keys));
    const struct node *name = required(address, "space"), *offset = node_get(address, "offset");
    if (name && node_choice(name, "space", spaces, COUNT_OF(spaces), &space))
        out->space = space;
    field_read(address, "sip", &out->sip);
    field_read(address, "cube", &out->cube);
    field_read(address, "pe", &out->pe);
    if (offset)
        node_u64(offset, "offset", 0, OFFSET_MASK, &out->offset);
}

/* ---- maps */

static void map_read(const struct node *node, struct stream_map *map)
{
    static const char *const keys[] = {"va", "bytes", "to"};
    uint64_t bytes = 1;
    if (!node_is(node, NODE_MAPPING, "a map"))
        return;
    node_check_keys(node, "a map", keys, COUNT_OF(keys));
    number_read(node, "va", 0, &map->va);
    number_read(node, "bytes", 1, &bytes);
    address_read(required(node, "to"), "to", false, &map->to);
    const char *wrong = map_pages(map->va, bytes, &map->pages);
    if (wrong)
        error_at(node_get(node, "va")->where, "%s", wrong);
}

void maps_read(const struct node *maps, struct stream *stream)
{
    if (!node_is(maps, NODE_SEQUENCE, "mmu"))
        return;
    stream->maps = arena_alloc(maps->count + 1, sizeof *stream->maps);
    for (size_t i = 0; i < maps->count; i++)
        map_read(maps->items[i], &stream->maps[stream->map_count++]);
}

/* ---- memory requests */

/* Physical; a missing sip, cube or pe is 0, and sip and cube must exist. */
static void physical_read(const struct node *node, const char *what, struct stream_address *out)
{
    int *fields[] = {&out->sip, &out->cube, &out->pe};
    address_read(node, what, false, out);
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (*fields[i] == OWN)
            *fields[i] = 0;
    if ((uint32_t)out->sip >= kb_shape.sips)
        error_at(node->where, "there is no SIP %d", out->sip);
    if ((uint32_t)out->cube >= kb_shape.cubes)
        error_at(node->where, "there is no cube %d in a SIP", out->cube);
}

static void memory_request_read(const struct node *node, struct stream_memory *request)
{
    static const char *const words[] = {"read", "write"}, *const sides[] = {"from", "to"};
    const char *keys[] = {"do", NULL, "bytes"};
    unsigned word = 0;
    if (!node_is(node, NODE_MAPPING, "a memory request"))
        return;
    const struct node *name = required(node, "do");
    if (!name || !node_choice(name, "do", words, COUNT_OF(words), &word))
        return;
    request->writes = word;
    keys[1] = sides[word];
    node_check_keys(node, "a memory request", keys, COUNT_OF(keys));
    number_read(node, "bytes", 1, &request->bytes);
    const struct node *addresses = required(node, sides[word]);
    if (!addresses || !node_is(addresses, NODE_SEQUENCE, sides[word]))
        return;
    if (!addresses->count)
        error_at(addresses->where, "'%s' must name at least one address", sides[word]);
    request->addresses = arena_alloc(addresses->count + 1, sizeof *request->addresses);
    for (size_t i = 0; i < addresses->count; i++)
        physical_read(addresses->items[i], sides[word], &request->addresses[request->count++]);
}

void memory_read_all(const struct node *memory, struct stream *stream)
{
    if (!node_is(memory, NODE_SEQUENCE, "memory"))
        return;
    stream->memory = arena_alloc(memory->count + 1, sizeof *stream->memory);
    for (size_t i = 0; i < memory->count; i++)
        memory_request_read(memory->items[i], &stream->memory[stream->memory_count++]);
}
