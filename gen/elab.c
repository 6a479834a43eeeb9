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

/* Places PEs or HBM slices in the layout `corners`: each corner gets an equal share. */
static void place_in_corners(struct grid grid, unsigned all, unsigned *router_of)
{
    unsigned *routers = arena_alloc(grid.rows * grid.cols, sizeof *routers);
    unsigned placed = 0;
    for (enum corner corner = NW; corner < CORNERS; corner++) {
        unsigned count = list_quadrant(grid, quadrant_of(grid, corner), routers);
        for (unsigned i = 0; placed < all && 4 * placed / all == corner; i++)
            router_of[placed++] = routers[i % count];
    }
    assert(placed == all);
}

/* The router of a PE or an HBM slice, and the place of the key that names it. */
struct site {
    unsigned router;
    struct where where;
};

/* Places all PEs, or all HBM slices, in the corners or where the layout says. */
static struct site *place(const struct layout *layout, struct grid grid, unsigned all)
{
    struct site *sites = arena_alloc(all + 1, sizeof *sites);
    unsigned *router_of = arena_alloc(all + 1, sizeof *router_of);
    if (!layout->at)
        place_in_corners(grid, all, router_of);
    for (unsigned i = 0; i < all; i++)
        sites[i] = layout->at ? (struct site){(unsigned)(layout->at[i].row * grid.cols + layout->at[i].col),
                                              layout->at[i].where}
                              : (struct site){.router = router_of[i]};
    return sites;
}

/* Places the HBM slices; by the layout `pes`, each is at the router of the PE of its number. */
static const struct site *place_slices(const struct plan *plan, const struct site *pes)
{
    const struct layout *layout = &plan->model->hbm_layout;
    bool with_pes = !layout->at && layout->word == HBM_LAYOUT_PES;
    return with_pes ? pes : place(layout, plan->router_grid, plan->slices);
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
        .router = router == NO_NODE ? NO_NODE : plan_router(plan, router),
        .target = NO_TARGET, .up = NO_LINK, .down = NO_LINK,
    };
}

/* A node that names its router, if the cube has one. */
static void add_single(struct plan *plan, enum node_kind kind, const struct router_at *at)
{
    assert(at->key);                                    /* schema.def has it */
    if (kind == NODE_sram && !plan->srams)
        return;
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

static void add_pe(struct plan *plan, unsigned pe, struct site at)
{
    for (enum node_kind kind = NODE_pe_cpu; kind < NODE_KINDS; kind++)
        add(plan, kind, pe, hangs_on_router(kind) ? at.router : NO_NODE, at.where);
}

/* Lists the nodes of a cube in rank order, with the sites of its PEs and of its HBM slices. */
static void add_nodes(struct plan *plan, const struct site *pes, const struct site *slices)
{
    const struct model *m = plan->model;
    struct where nowhere = {0};
#define CUBE_SINGLE(kind) add_single(plan, NODE_##kind, &m->single_at[SINGLE_##kind]);
#include "../rt/kb/kinds.def"
    for (unsigned i = 0; i < plan->planes * plan->routers; i++)
        add(plan, NODE_router, i, NO_NODE, nowhere);
    for (enum side side = SIDE_N; side < SIDES; side++)
        add(plan, NODE_port, side, router_of_port(plan->router_grid, side), nowhere);
    for (unsigned slice = 0; slice < plan->slices; slice++)
        add(plan, NODE_hbm_ctrl, slice, slices[slice].router, slices[slice].where);
    for (unsigned pe = 0; pe < plan->pes; pe++)
        add_pe(plan, pe, pes[pe]);
}

struct plan *elaborate(const struct model *model)
{
    struct plan *plan = arena_alloc(1, sizeof *plan);
    plan->model = model;
    plan->sips = (unsigned)model->sips.n;
    plan->cube_grid = (struct grid){(unsigned)model->cube_rows.n, (unsigned)model->cube_cols.n, (unsigned)model->cube_wrap.n};
    plan->router_grid = (struct grid){(unsigned)model->noc_rows.n, (unsigned)model->noc_cols.n, (unsigned)model->noc_wrap.n};
    plan->cubes = plan->cube_grid.rows * plan->cube_grid.cols;
    plan->routers = plan->router_grid.rows * plan->router_grid.cols;
    plan->planes = model->plane_count;
    plan->pes = (unsigned)model->pes.n;
    plan->slices = (unsigned)model->slices.n;
    plan->srams = model->attr[ATTR_sram_bytes].n > 0;
    plan->nodes = arena_alloc(CUBE_SINGLES + plan->planes * plan->routers + SIDES + plan->slices
                                  + plan->pes * PE_NODES, sizeof *plan->nodes);
    const struct site *pes = place(&model->pe_layout, plan->router_grid, plan->pes);
    add_nodes(plan, pes, place_slices(plan, pes));
    return plan;
}
