/* route.c: the routing tables.
 *
 * Requires: plan.nodes and plan.links. Leaves: plan.targets, the tables of routers and of cubes for both directions,
 * and the attachment that each cube uses. A table holds next steps only, so one row serves every source. */
#include "plan.h"

#include <stdlib.h>

#include "../rt/common/arena.h"

/* The next step towards another cell: X before Y for a request. A response returns along its request's route, which
 * moved along Y last, so it moves along Y first. */
static enum side next_step(struct grid grid, enum direction direction, unsigned from, unsigned to)
{
    unsigned row = from / grid.cols, col = from % grid.cols, to_row = to / grid.cols, to_col = to % grid.cols;
    enum side along_x = col < to_col ? SIDE_E : col > to_col ? SIDE_W : HERE;
    enum side along_y = row < to_row ? SIDE_S : row > to_row ? SIDE_N : HERE;
    if (direction == REQUEST)
        return along_x != HERE ? along_x : along_y;
    return along_y != HERE ? along_y : along_x;
}

static unsigned hops(struct grid grid, unsigned a, unsigned b)
{
    int rows = (int)(a / grid.cols) - (int)(b / grid.cols), cols = (int)(a % grid.cols) - (int)(b % grid.cols);
    return (unsigned)(abs(rows) + abs(cols));
}

/* Numbers the routers that have attached nodes, row-major, and stores the number in those nodes. */
static void find_targets(struct plan *plan)
{
    unsigned *target_of = arena_alloc(plan->node_count, sizeof *target_of);
    for (unsigned i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].router != NO_NODE)
            target_of[plan->nodes[i].router] = 1;
    plan->targets = arena_alloc(plan->routers, sizeof *plan->targets);
    for (unsigned i = 0; i < plan->routers; i++) {
        if (!target_of[plan_router(i)])
            continue;
        target_of[plan_router(i)] = plan->target_count;
        plan->targets[plan->target_count++] = i;
    }
    for (unsigned i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].router != NO_NODE)
            plan->nodes[i].target = target_of[plan->nodes[i].router];
}

static void route_routers(struct plan *plan)
{
    unsigned *next = plan->routes = arena_alloc(DIRECTIONS * plan->target_count * plan->routers, sizeof *next);
    for (enum direction direction = REQUEST; direction < DIRECTIONS; direction++) {
        for (unsigned target = 0; target < plan->target_count; target++) {
            for (unsigned router = 0; router < plan->routers; router++) {
                enum side step = next_step(plan->router_grid, direction, router, plan->targets[target]);
                *next++ = step == HERE ? NO_LINK : plan->router_links[router * SIDES + step];
            }
        }
    }
}

static void route_cubes(struct plan *plan)
{
    enum side *next = plan->cube_routes = arena_alloc(DIRECTIONS * plan->cubes * plan->cubes, sizeof *next);
    for (enum direction direction = REQUEST; direction < DIRECTIONS; direction++)
        for (unsigned to = 0; to < plan->cubes; to++)
            for (unsigned from = 0; from < plan->cubes; from++)
                *next++ = next_step(plan->cube_grid, direction, from, to);
}

/* Chooses the attachment with the fewest hops; among equals the lowest cube, then the first listed. */
static bool nearer(const struct plan *plan, unsigned cube, unsigned a, unsigned b)
{
    unsigned cube_a = (unsigned)plan->model->attach[a].cube, cube_b = (unsigned)plan->model->attach[b].cube;
    unsigned hops_a = hops(plan->cube_grid, cube, cube_a), hops_b = hops(plan->cube_grid, cube, cube_b);
    return hops_a != hops_b ? hops_a < hops_b : cube_a < cube_b;
}

static void find_nearest(struct plan *plan)
{
    plan->nearest = arena_alloc(plan->cubes, sizeof *plan->nearest);
    for (unsigned cube = 0; cube < plan->cubes; cube++)
        for (unsigned i = 1; i < plan->model->attach_count; i++)
            if (nearer(plan, cube, i, plan->nearest[cube]))
                plan->nearest[cube] = i;
}

void route(struct plan *plan)
{
    find_targets(plan);
    route_routers(plan);
    route_cubes(plan);
    find_nearest(plan);
}
