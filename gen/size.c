/* size.c: totals over the whole machine.
 *
 * Requires: plan.nodes and plan.links. Leaves: the totals of the plan. A simulator keeps its state in static arrays,
 * which the default code model can address up to 2 GiB; larger machines are refused. */
#include "plan.h"

#include "../rt/common/arena.h"

enum {
    OTHER_SERVERS = 5,                                  /* of a PE, besides those of pe_dma for reads and writes, at most */
#define STATE_SIZE(name, bytes) SIZE_##name = bytes,
#include "../rt/kb/state_sizes.def"
};

static const uint64_t state_most_bytes = UINT64_C(3) << 29;

/* The place to report: the first of the counts that make a machine large which the user has given. */
static struct where blame(const struct model *model)
{
    const struct value *counts[] = {&model->sips, &model->cube_rows, &model->cube_cols, &model->pes,
                                   &model->slices, &model->noc_rows};
    size_t i = 0;
    while (i < COUNT_OF(counts) - 1 && !counts[i]->where.file)
        i++;
    return counts[i]->where;
}

void measure(struct plan *plan)
{
    const struct value *attr = plan->model->attr;
    uint64_t engines = attr[ATTR_pe_dma_rd_engines].n + attr[ATTR_pe_dma_wr_engines].n;
    plan->all_cubes = (uint64_t)plan->sips * plan->cubes;
    plan->all_pes = plan->all_cubes * plan->pes;
    plan->all_slices = plan->all_cubes * plan->slices;
    plan->all_nodes = SYSTEM_NODES + plan->sips * (uint64_t)SIP_NODES + plan->all_cubes * plan->node_count;
    plan->all_links = SYSTEM_LINKS + plan->sips * (uint64_t)(SIP_LINKS + plan->model->attach_count)
                    + plan->all_cubes * plan->link_count + 2 * (uint64_t)plan->model->chip_link_count;
    uint64_t pe_bytes = SIZE_pe + (engines + OTHER_SERVERS) * SIZE_server;
    uint64_t slice_bytes = SIZE_hbm_slice + attr[ATTR_hbm_ctrl_pcs].n * SIZE_pseudo_channel;
    plan->state_bytes = plan->all_nodes * SIZE_fabric_node + plan->all_links * SIZE_fabric_link
                      + plan->all_cubes * SIZE_channels + plan->all_pes * pe_bytes + (plan->all_slices ? plan->all_slices : 1) * slice_bytes;
    if (plan->state_bytes > state_most_bytes)
        error_at(blame(plan->model), "%u SIPs of %u cubes of %u nodes need %llu MiB of state; a simulator holds %llu",
                 plan->sips, plan->cubes, plan->node_count, (unsigned long long)plan->state_bytes >> 20,
                 (unsigned long long)state_most_bytes >> 20);
}
