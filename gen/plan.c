/* plan.c: names of nodes and links, and neighbours on a grid. */
#include "plan.h"

#include "../rt/common/arena.h"

const char *const node_kind_names[NODE_KINDS] = {
#define NODE(kind) #kind,
#include "../rt/kb/kinds.def"
};

const char *const link_class_names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name,
#define OWN_LINK(name) #name,
#include "../rt/kb/links.def"
};

const char side_letters[] = "nesw";

const char *node_name(const struct plan *plan, unsigned node)
{
    const struct plan_node *n = &plan->nodes[node];
    unsigned cols = plan->router_grid.cols, plane = n->index / plan->routers, router = n->index % plan->routers;
    switch (n->kind) {
    case NODE_router:
        return arena_printf("noc.%sr%uc%u", plane ? arena_printf("p%u.", plane) : "", router / cols, router % cols);
    case NODE_port:
        return arena_printf("port.%c", side_letters[n->index]);
    case NODE_hbm_ctrl:
        return arena_printf("hbm_ctrl.pe%u", n->index);
    default:
        return n->kind < NODE_router ? node_kind_names[n->kind]
                                     : arena_printf("pe%u.%s", n->index, node_kind_names[n->kind]);
    }
}

int grid_neighbour(struct grid grid, unsigned at, enum side side)
{
    unsigned row = at / grid.cols, col = at % grid.cols;
    bool rows_closed = grid.closed & WRAP_ROWS, cols_closed = grid.closed & WRAP_COLS;
    switch (side) {
    case SIDE_N:
        return row > 0 ? (int)(at - grid.cols) : cols_closed ? (int)((grid.rows - 1) * grid.cols + col) : -1;
    case SIDE_E:
        return col + 1 < grid.cols ? (int)(at + 1) : rows_closed ? (int)(row * grid.cols) : -1;
    case SIDE_S:
        return row + 1 < grid.rows ? (int)(at + grid.cols) : cols_closed ? (int)col : -1;
    case SIDE_W:
        return col > 0 ? (int)(at - 1) : rows_closed ? (int)(at + grid.cols - 1) : -1;
    default:
        return -1;
    }
}

enum side opposite_side(enum side side)
{
    return (side + SIDES / 2) % SIDES;
}
