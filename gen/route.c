/* route.c: the routing tables.
 *
 * Requires: plan.nodes and plan.links. Leaves: plan.targets, the tables of routers, of cubes and of SIPs for both
 * directions, and the attachment that each cube uses. A table holds next steps only, so one row serves every source. */
#include "plan.h"

#include <limits.h>

#include "../rt/common/arena.h"

/* How a grid is crossed. */
struct crossing {
    bool y_first;
    enum ring_direction direction;                      /* along closed rows and columns */
};

/* A row, or a column, of cells: the sides of the next one and of the one before. */
struct line {
    unsigned cells;
    bool closed;
    enum side next, previous;
};

/* The side on which the next cell is towards another one; HERE: it is there. */
static enum side step_along(struct line line, enum ring_direction direction, unsigned from, unsigned to)
{
    unsigned ahead = (to + line.cells - from) % line.cells;
    if (from == to)
        return HERE;
    if (!line.closed)
        return from < to ? line.next : line.previous;
    if (direction == RING_SHORTEST)
        return 2 * ahead <= line.cells ? line.next : line.previous;
    return direction == RING_PLUS ? line.next : line.previous;
}

/* The sides of the steps that begin a way along each of its dimensions, in the order in which they are crossed. */
struct steps {
    enum side first, last;
};

static struct steps steps_between(struct grid grid, struct crossing crossing, unsigned from, unsigned to)
{
    struct line row = {grid.cols, grid.closed & WRAP_ROWS, SIDE_E, SIDE_W};
    struct line column = {grid.rows, grid.closed & WRAP_COLS, SIDE_S, SIDE_N};
    enum side along_x = step_along(row, crossing.direction, from % grid.cols, to % grid.cols);
    enum side along_y = step_along(column, crossing.direction, from / grid.cols, to / grid.cols);
    return crossing.y_first ? (struct steps){along_y, along_x} : (struct steps){along_x, along_y};
}

/* The next step towards another cell. A response goes back the last step of the request's way from there to here; that way
 * is a part of each request's way that leads on from here. */
static enum side next_step(struct grid grid, struct crossing crossing, enum direction direction, unsigned from, unsigned to)
{
    if (direction == REQUEST) {
        struct steps steps = steps_between(grid, crossing, from, to);
        return steps.first != HERE ? steps.first : steps.last;
    }
    struct steps steps = steps_between(grid, crossing, to, from);
    enum side last = steps.last != HERE ? steps.last : steps.first;
    return last == HERE ? HERE : opposite_side(last);
}

static unsigned distance(unsigned a, unsigned b, unsigned cells, bool closed)
{
    unsigned apart = a > b ? a - b : b - a;
    return closed && cells - apart < apart ? cells - apart : apart;
}

static unsigned hops(struct grid grid, unsigned a, unsigned b)
{
    return distance(a / grid.cols, b / grid.cols, grid.rows, grid.closed & WRAP_COLS)
         + distance(a % grid.cols, b % grid.cols, grid.cols, grid.closed & WRAP_ROWS);
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
        if (!target_of[plan_router(plan, i)])
            continue;
        target_of[plan_router(plan, i)] = plan->target_count;
        plan->targets[plan->target_count++] = i;
    }
    for (unsigned i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].router != NO_NODE)
            plan->nodes[i].target = target_of[plan->nodes[i].router];
}

static void route_routers(struct plan *plan)
{
    unsigned rows = plan->planes * DIRECTIONS * plan->target_count;
    unsigned *next = plan->routes = arena_alloc(rows * plan->routers, sizeof *next);
    for (unsigned row = 0; row < rows; row++) {
        const struct model_plane *plane = &plan->model->planes[row / plan->target_count / DIRECTIONS];
        enum direction direction = row / plan->target_count % DIRECTIONS;
        unsigned target = plan->targets[row % plan->target_count];
        for (unsigned router = 0; router < plan->routers; router++) {
            enum side step = next_step(plan->router_grid, (struct crossing){plane->y_first, plane->direction}, direction,
                                       router, target);
            *next++ = step == HERE ? NO_LINK : plan->router_links[router * SIDES + step];
        }
    }
}

static void route_cubes(struct plan *plan)
{
    const struct crossing x_first = {false, RING_SHORTEST};
    enum side *next = plan->cube_routes = arena_alloc(DIRECTIONS * plan->cubes * plan->cubes, sizeof *next);
    for (enum direction direction = REQUEST; direction < DIRECTIONS; direction++)
        for (unsigned to = 0; to < plan->cubes; to++)
            for (unsigned from = 0; from < plan->cubes; from++)
                *next++ = next_step(plan->cube_grid, x_first, direction, from, to);
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

/* ---- from SIP to SIP, over links between chips */

/* The end of a directed link, numbered as in plan.chip_routes, where it begins (0) or ends (1). */
static const struct model_chip_end *chip_end(const struct plan *plan, unsigned directed, unsigned which)
{
    return &plan->model->chip_links[directed / 2].end[(directed + which) % 2];
}

static unsigned *chip_route(const struct plan *plan, enum direction direction, unsigned to, unsigned from)
{
    return &plan->chip_routes[((unsigned)direction * plan->sips + to) * plan->sips + from];
}

/* The directed links that begin at each SIP, in lists, and what a breadth-first search over them has found. */
struct chip_search {
    unsigned *first, *next;                             /* by SIP, by link; NO_CHIP_LINK: the end of the list */
    unsigned *away, *queue;                             /* of SIPs; away: links between it and the start; UINT_MAX: not joined */
};

static struct chip_search new_chip_search(const struct plan *plan)
{
    unsigned links = 2 * plan->model->chip_link_count;
    struct chip_search search = { .first = arena_alloc(plan->sips, sizeof(unsigned)), .next = arena_alloc(links, sizeof(unsigned)),
                                  .away = arena_alloc(plan->sips, sizeof(unsigned)),
                                  .queue = arena_alloc(plan->sips, sizeof(unsigned)) };
    for (unsigned sip = 0; sip < plan->sips; sip++)
        search.first[sip] = NO_CHIP_LINK;
    for (unsigned link = 0; link < links; link++) {
        unsigned *first = &search.first[chip_end(plan, link, 0)->sip];
        search.next[link] = *first;
        *first = link;
    }
    return search;
}

/* Finds out how many chip links each SIP is from another one. */
static void count_chip_links(const struct plan *plan, const struct chip_search *search, unsigned to)
{
    unsigned found = 0;
    for (unsigned sip = 0; sip < plan->sips; sip++)
        search->away[sip] = UINT_MAX;
    search->away[to] = 0;
    search->queue[found++] = to;
    for (unsigned *at = search->queue; at < search->queue + found; at++) {
        for (unsigned link = search->first[*at]; link != NO_CHIP_LINK; link = search->next[link]) {
            unsigned sip = (unsigned)chip_end(plan, link, 1)->sip;
            if (search->away[sip] != UINT_MAX)
                continue;
            search->away[sip] = search->away[*at] + 1;
            search->queue[found++] = sip;
        }
    }
}

/* Of the links that lead nearer to a SIP, the one to the SIP of the lowest number goes first, then the one listed first. */
static void route_chips_to(const struct plan *plan, unsigned to, const unsigned *away)
{
    for (unsigned i = 0; i < 2 * plan->model->chip_link_count; i++) {
        uint64_t from = chip_end(plan, i, 0)->sip, over = chip_end(plan, i, 1)->sip;
        unsigned *next = chip_route(plan, REQUEST, to, (unsigned)from);
        if (away[from] == UINT_MAX || away[from] != away[over] + 1)
            continue;
        if (*next == NO_CHIP_LINK || over < chip_end(plan, *next, 1)->sip)
            *next = i;
    }
}

/* A response goes back the last link of the request's way from there to here. */
static void route_chips_back(const struct plan *plan, unsigned to, unsigned from)
{
    unsigned last = NO_CHIP_LINK;
    for (unsigned at = to; at != from && *chip_route(plan, REQUEST, from, at) != NO_CHIP_LINK;) {
        last = *chip_route(plan, REQUEST, from, at);
        at = (unsigned)chip_end(plan, last, 1)->sip;
    }
    *chip_route(plan, RESPONSE, to, from) = last == NO_CHIP_LINK ? last : last ^ 1;
}

static void route_chips(struct plan *plan)
{
    if (!plan->model->chip_link_count)
        return;
    struct chip_search search = new_chip_search(plan);
    plan->chip_routes = arena_alloc(DIRECTIONS * plan->sips * plan->sips, sizeof *plan->chip_routes);
    for (unsigned i = 0; i < DIRECTIONS * plan->sips * plan->sips; i++)
        plan->chip_routes[i] = NO_CHIP_LINK;
    for (unsigned to = 0; to < plan->sips; to++) {
        count_chip_links(plan, &search, to);
        route_chips_to(plan, to, search.away);
    }
    for (unsigned to = 0; to < plan->sips; to++)
        for (unsigned from = 0; from < plan->sips; from++)
            route_chips_back(plan, to, from);
}

void route(struct plan *plan)
{
    find_targets(plan);
    route_routers(plan);
    route_cubes(plan);
    find_nearest(plan);
    route_chips(plan);
}
