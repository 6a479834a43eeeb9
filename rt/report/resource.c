/* resource.c: names of what is reserved. */
#include "resource.h"

#include <inttypes.h>
#include <stdio.h>

#include "machine/emitted.h"
#include "machine/memory.h"
#include "machine/route.h"

static struct place place_sram(uint64_t cube)
{
    return (struct place){cube / kb_shape.cubes, cube % kb_shape.cubes, cube_sram()};
}

static struct place node_of(enum resource_kind kind, uint64_t number)
{
    switch (kind) {
    case RESOURCE_NODE: return rank_place(number);
    case RESOURCE_LINK: return link_ends(number).from;
    case RESOURCE_PSEUDO_CHANNEL: return slice_place(number / kb_attrs.hbm_ctrl_pcs);
    case RESOURCE_HBM_MODEL: return slice_place(number);
    case RESOURCE_SRAM_READ:
    case RESOURCE_SRAM_WRITE:
    case RESOURCE_SRAM_MODEL: return place_sram(number);
    default: return place_pe(number, NODE_pe_tcm);
    }
}

void resource_write(struct json *json, const char *key, enum resource_kind kind, uint64_t number)
{
    static const char *const channels[RESOURCE_KINDS] = {
        [RESOURCE_TCM_READ] = "read",    [RESOURCE_TCM_WRITE] = "write",  [RESOURCE_SRAM_READ] = "read",
        [RESOURCE_SRAM_WRITE] = "write", [RESOURCE_HBM_MODEL] = "model", [RESOURCE_SRAM_MODEL] = "model",
    };
    char channel[24];
    json_string(json, key, place_name(node_of(kind, number)));
    if (kind == RESOURCE_LINK)
        json_string(json, "to", place_name(link_ends(number).to));
    if (kind == RESOURCE_PSEUDO_CHANNEL) {
        snprintf(channel, sizeof channel, "%" PRIu64, number % kb_attrs.hbm_ctrl_pcs);
        json_string(json, "channel", channel);
    } else if (channels[kind]) {
        json_string(json, "channel", channels[kind]);
    }
}
