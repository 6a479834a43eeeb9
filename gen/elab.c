/* elab.c: the nodes of a cube, each at its router.
 *
 * Requires: a checked model. Leaves: a plan with its counts and with plan.nodes in rank order. */
#include "plan.h"

#include <assert.h>

#include "../rt/common/arena.h"

enum corner { NW, NE, SW, SE, CORNERS };

/* The quadrant of a corner: its rows and columns (a middle one belongs to both halves) and the order of its routers. */
struct quadrant {
    unsigned rows, cols;
    bool south, east;
};

static struct quadrant quadrant_of(struct grid grid, enum corner corner)
{
    return (struct quadrant){
        .rows = (grid.rows + 1) / 2,
        .cols = (grid.cols + 1) / 2,
        .south = corner == SW || corner == SE,
        .east = corner == NE || corner == SE,
    };
}

/* Lists a quadrant's routers by distance from the corner, then by row. Returns their number. A row has at most one
 * router at each distance, so columns never decide. */
static unsigned list_quadrant(struct grid grid, struct quadrant q, unsigned *routers)
{
    unsigned count = 0, top = q.south ? grid.rows - q.rows : 0;
    for (unsigned distance = 0; distance < q.rows + q.cols - 1; distance++) {
        for (unsigned row = top; row < top + q.rows; row++) {
            unsigned down = q.south ? grid.rows - 1 - row : row;
            if (down > distance || distance - down >= q.cols)
                continue;
            unsigned along = distance - down;
            routers[count++] = row * grid.cols + (q.east ? grid.cols - 1 - along : along);
        }
    }
    return count;
}

/* Places the PEs in the layout `corners`: each corner gets an equal share. */
static void place_in_corners(struct grid grid, unsigned pes, unsigned *router_of_pe)
{
    unsigned *routers = arena_alloc(grid.rows * grid.cols, sizeof *routers);
    unsigned pe = 0;
    for (enum corner corner = NW; corner < CORNERS; corner++) {
        unsigned count = list_quadrant(grid, quadrant_of(grid, corner), routers);
        for (unsigned i = 0; pe < pes && 4 * pe / pes == corner; i++)
            router_of_pe[pe++] = routers[i % count];
    }
    assert(pe == pes);
}

static unsigned *place_pes(const struct model *model, struct grid grid, unsigned pes)
{
    unsigned *router_of_pe = arena_alloc(pes, sizeof *router_of_pe);
    if (!model->pe_at) {
        place_in_corners(grid, pes, router_of_pe);
        return router_of_pe;
    }
    for (unsigned pe = 0; pe < pes; pe++)
        router_of_pe[pe] = (unsigned)(model->pe_at[pe].row * grid.cols + model->pe_at[pe].col);
    return router_of_pe;
}

/* The router of a port: the middle one of the edge. */
static unsigned router_of_port(struct grid grid, enum side side)
{
    unsigned row = side == SIDE_N ? 0 : side == SIDE_S ? grid.rows - 1 : grid.rows / 2;
    unsigned col = side == SIDE_W ? 0 : side == SIDE_E ? grid.cols - 1 : grid.cols / 2;
    return row * grid.cols + col;
}

static void add(struct plan *plan, enum node_kind kind, unsigned index, unsigned router, struct where where)
{
    plan->nodes[plan->node_count++] = (struct plan_node){
        .kind = kind, .index = index, .where = where,
        .router = router == NO_NODE ? NO_NODE : plan_router(router),
        .target = NO_TARGET, .up = NO_LINK, .down = NO_LINK,
    };
}

/* A node that names its router. */
static void add_single(struct plan *plan, enum node_kind kind, const struct router_at *at)
{
    assert(at->key);                                    /* schema.def has it */
    add(plan, kind, 0, (unsigned)(at->row * plan->router_grid.cols + at->col), at->where);
}

static bool hangs_on_router(enum node_kind kind)
{
    enum { INSIDE, ROUTER };
    static const bool hangs_on[NODE_KINDS] = {
#define PE_NODE(kind, hangs) [NODE_##kind] = hangs == ROUTER,
#include "../rt/kb/kinds.def"
    };
    return hangs_on[kind];
}

static void add_pe(struct plan *plan, unsigned pe, unsigned router, struct where where)
{
    for (enum node_kind kind = NODE_pe_cpu; kind < NODE_KINDS; kind++)
        add(plan, kind, pe, hangs_on_router(kind) ? router : NO_NODE, where);
}

/* Lists the nodes of a cube in rank order; `router_of_pe` has the router of each PE. */
static void add_nodes(struct plan *plan, const unsigned *router_of_pe)
{
    const struct model *m = plan->model;
    struct where nowhere = {0};
#define CUBE_SINGLE(kind) add_single(plan, NODE_##kind, &m->single_at[SINGLE_##kind]);
#include "../rt/kb/kinds.def"
    for (unsigned i = 0; i < plan->routers; i++)
        add(plan, NODE_router, i, NO_NODE, nowhere);
    for (enum side side = SIDE_N; side < SIDES; side++)
        add(plan, NODE_port, side, router_of_port(plan->router_grid, side), nowhere);
    for (unsigned pe = 0; pe < plan->pes; pe++)
        add(plan, NODE_hbm_ctrl, pe, router_of_pe[pe], m->pe_at ? m->pe_at[pe].where : nowhere);
    for (unsigned pe = 0; pe < plan->pes; pe++)
        add_pe(plan, pe, router_of_pe[pe], m->pe_at ? m->pe_at[pe].where : nowhere);
}

struct plan *elaborate(const struct model *model)
{
    struct plan *plan = arena_alloc(1, sizeof *plan);
    plan->model = model;
    plan->sips = (unsigned)model->sips.n;
    plan->cube_grid = (struct grid){(unsigned)model->cube_rows.n, (unsigned)model->cube_cols.n};
    plan->router_grid = (struct grid){(unsigned)model->noc_rows.n, (unsigned)model->noc_cols.n};
    plan->cubes = plan->cube_grid.rows * plan->cube_grid.cols;
    plan->routers = plan->router_grid.rows * plan->router_grid.cols;
    plan->pes = (unsigned)model->pes.n;
    plan->nodes = arena_alloc(CUBE_SINGLES + plan->routers + SIDES + plan->pes * (1 + PE_NODES), sizeof *plan->nodes);
    add_nodes(plan, place_pes(model, plan->router_grid, plan->pes));
    return plan;
}
