/* plan.c: names of nodes and links, and neighbours on a grid. */
#include "plan.h"

#include "../rt/common/arena.h"

const char *const node_kind_names[NODE_KINDS] = {
#define NODE(kind) #kind,
#include "../rt/kb/kinds.def"
};

const char *const link_class_names[LINK_CLASSES] = {
#define LINK(name, bw, latency) #name,
#include "../rt/kb/links.def"
#undef LINK
};

const char side_letters[] = "nesw";

const char *node_name(const struct plan *plan, unsigned node)
{
    const struct plan_node *n = &plan->nodes[node];
    unsigned cols = plan->router_grid.cols;
    switch (n->kind) {
    case NODE_router:
        return arena_printf("noc.r%uc%u", n->index / cols, n->index % cols);
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
    switch (side) {
    case SIDE_N:
        return row > 0 ? (int)(at - grid.cols) : -1;
    case SIDE_E:
        return col + 1 < grid.cols ? (int)(at + 1) : -1;
    case SIDE_S:
        return row + 1 < grid.rows ? (int)(at + grid.cols) : -1;
    case SIDE_W:
        return col > 0 ? (int)(at - 1) : -1;
    default:
        return -1;
    }
}
