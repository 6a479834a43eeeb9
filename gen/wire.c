/* wire.c: the directed links of a cube.
 *
 * Requires: plan.nodes. Leaves: plan.links in the order of their numbers, the links up and down of each node, and
 * plan.router_links. Links outside of cubes need no rows: their numbers follow from their positions. */
#include "plan.h"

#include <assert.h>

#include "../rt/common/arena.h"

static unsigned add(struct plan *plan, enum link_class class, unsigned from, unsigned to, enum side side)
{
    plan->links[plan->link_count] = (struct plan_link){class, from, to, side};
    return plan->link_count++;
}

static void wire_routers(struct plan *plan)
{
    for (unsigned router = 0; router < plan->routers; router++) {
        for (enum side side = SIDE_N; side < SIDES; side++) {
            int next = grid_neighbour(plan->router_grid, router, side);
            plan->router_links[router * SIDES + side] = next < 0 ? NO_LINK
                : add(plan, LINK_noc, plan_router(router), plan_router((unsigned)next), side);
        }
    }
}

static void wire_attached(struct plan *plan)
{
    for (unsigned i = 0; i < plan->node_count; i++) {
        struct plan_node *node = &plan->nodes[i];
        if (node->router == NO_NODE)
            continue;
        node->up = add(plan, LINK_attach, i, node->router, HERE);
        node->down = add(plan, LINK_attach, node->router, i, HERE);
    }
}

/* Adds the links that leave the cube. All cubes are alike, so every side has both rows, used or not. */
static void wire_ports(struct plan *plan)
{
    for (enum side side = SIDE_N; side < SIDES; side++)
        add(plan, LINK_ucie, plan_port(plan, side), NO_NODE, side);
    for (enum side side = SIDE_N; side < SIDES; side++)
        add(plan, LINK_io, plan_port(plan, side), NO_NODE, side);
}

void wire(struct plan *plan)
{
    plan->links = arena_alloc(plan->routers * SIDES + 2 * plan->node_count + 2 * SIDES, sizeof *plan->links);
    plan->router_links = arena_alloc(plan->routers * SIDES, sizeof *plan->router_links);
    wire_routers(plan);
    wire_attached(plan);
    wire_ports(plan);
    assert(plan->link_count < NO_LINK);
}
