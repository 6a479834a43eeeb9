/* wire.c: the directed links of a cube.
 *
 * Requires: plan.nodes. Leaves: plan.links in the order of their numbers, the links up and down of each node in plane 0,
 * and plan.router_links. Links outside of cubes need no rows: their numbers follow from their positions. */
#include "plan.h"

#include <assert.h>

#include "../rt/common/arena.h"

static unsigned add(struct plan *plan, struct plan_link link)
{
    plan->links[plan->link_count] = link;
    return plan->link_count++;
}

/* Whether a link from a router leads to the other end of its row or column. */
static bool wraps(struct grid grid, unsigned router, enum side side)
{
    return grid_neighbour((struct grid){grid.rows, grid.cols, 0}, router, side) < 0;
}

static void wire_routers(struct plan *plan)
{
    for (unsigned router = 0; router < plan->routers; router++) {
        for (enum side side = SIDE_N; side < SIDES; side++) {
            int next = grid_neighbour(plan->router_grid, router, side);
            enum link_speed wrap = side == SIDE_E || side == SIDE_W ? SPEED_row_wrap : SPEED_col_wrap;
            enum link_speed speed = wraps(plan->router_grid, router, side) ? wrap : (enum link_speed)LINK_noc;
            plan->router_links[router * SIDES + side] = next < 0 ? NO_LINK
                : add(plan, (struct plan_link){LINK_noc, speed, plan_router(plan, router), plan_router(plan, (unsigned)next),
                                               side});
        }
    }
}

static void wire_attached(struct plan *plan)
{
    const enum link_speed speed = (enum link_speed)LINK_attach;
    for (unsigned i = 0; i < plan->node_count; i++) {
        struct plan_node *node = &plan->nodes[i];
        if (node->router == NO_NODE)
            continue;
        node->up = add(plan, (struct plan_link){LINK_attach, speed, i, node->router, HERE});
        node->down = add(plan, (struct plan_link){LINK_attach, speed, node->router, i, HERE});
    }
}

/* The node of a plane that is in the place of one of plane 0. */
static unsigned node_in_plane(const struct plan *plan, unsigned plane, unsigned node)
{
    return plan->nodes[node].kind == NODE_router ? node + plane * plan->routers : node;
}

/* Adds the links of the other planes, in the order of those of plane 0. */
static void wire_planes(struct plan *plan)
{
    for (unsigned plane = 1; plane < plan->planes; plane++) {
        for (unsigned i = 0; i < plan->plane_links; i++) {
            struct plan_link link = plan->links[i];
            link.from = node_in_plane(plan, plane, link.from);
            link.to = node_in_plane(plan, plane, link.to);
            add(plan, link);
        }
    }
}

/* Adds the links that leave the cube. All cubes are alike, so every side has both rows, used or not. */
static void wire_ports(struct plan *plan)
{
    static const enum link_class classes[] = {LINK_ucie, LINK_io};
    for (size_t i = 0; i < COUNT_OF(classes); i++)
        for (enum side side = SIDE_N; side < SIDES; side++)
            add(plan, (struct plan_link){classes[i], (enum link_speed)classes[i], plan_port(plan, side), NO_NODE, side});
}

void wire(struct plan *plan)
{
    plan->links = arena_alloc(plan->planes * (plan->routers * SIDES + 2 * plan->node_count) + 2 * SIDES, sizeof *plan->links);
    plan->router_links = arena_alloc(plan->routers * SIDES, sizeof *plan->router_links);
    wire_routers(plan);
    wire_attached(plan);
    plan->plane_links = plan->link_count;
    wire_planes(plan);
    wire_ports(plan);
    assert(plan->plane_links < NO_LINK);
}
