/* stats.c: the statistics of a run. */
#include "stats.h"

#include "base/rates.h"
#include "fabric.h"

struct stats stats;

void stats_init(void)
{
    stats = (struct stats){0};
}

void stats_repeat(const struct stats *then, uint64_t times)
{
    _Static_assert(sizeof stats % sizeof(uint64_t) == 0, "statistics are numbers of 64 bits and nothing else");
    uint64_t *count = (uint64_t *)&stats;
    const uint64_t *before = (const uint64_t *)then;
    for (size_t i = 0; i < sizeof stats / sizeof *count; i++)
        count[i] = sum(count[i], product(count[i] - before[i], times));
}

uint64_t resource_count(enum resource_kind kind)
{
    switch (kind) {
    case RESOURCE_NODE: return node_count();
    case RESOURCE_LINK: return link_count();
    case RESOURCE_PSEUDO_CHANNEL: return slice_count() * kb_attrs.hbm_ctrl_pcs;
    case RESOURCE_HBM_MODEL: return slice_count();
    case RESOURCE_SRAM_READ:
    case RESOURCE_SRAM_WRITE:
    case RESOURCE_SRAM_MODEL: return sram_count();
    default: return pe_count();
    }
}

uint64_t link_busiest_ps(enum link_class class)
{
    uint64_t most = 0;
    for (uint64_t link = 0; link < link_count(); link++)
        if (kb_links[link].busy_ps > most && link_class(link) == class)
            most = kb_links[link].busy_ps;
    return most;
}
