/* dot.c: --dump dot: a machine as a graph for graphviz: down to the cubes, and one cube down to its PEs. */
#include "dump.h"

#include "../rt/common/arena.h"

/* One edge for the two directions of a link. */
static void put_edge(FILE *out, const char *a, const char *b, enum link_class class)
{
    fprintf(out, "    \"%s\" -- \"%s\" [class=\"%s\", tooltip=\"%s\"];\n", a, b, link_class_names[class],
            link_class_names[class]);
}

static void put_sip(FILE *out, const struct plan *plan, unsigned sip)
{
    const char *pcie_ep = arena_printf("sip%u.pcie_ep", sip), *io_cpu = arena_printf("sip%u.io_cpu", sip);
    fprintf(out, "  subgraph \"cluster_sip%u\" {\n    label=\"sip%u\";\n", sip, sip);
    put_edge(out, pcie_ep, io_cpu, LINK_io);
    for (unsigned i = 0; i < plan->model->attach_count; i++)
        put_edge(out, io_cpu, arena_printf("sip%u.cube%u", sip, (unsigned)plan->model->attach[i].cube), LINK_io);
    for (unsigned cube = 0; cube < plan->cubes; cube++) {
        const char *name = arena_printf("sip%u.cube%u", sip, cube);
        fprintf(out, "    \"%s\" [shape=box];\n", name);
        for (enum side side = SIDE_E; side <= SIDE_S; side++) {
            int next = grid_neighbour(plan->cube_grid, cube, side);
            if (next >= 0)
                put_edge(out, name, arena_printf("sip%u.cube%d", sip, next), LINK_ucie);
        }
    }
    fprintf(out, "  }\n");
    put_edge(out, "switch", pcie_ep, LINK_pcie);
}

static void put_cube(FILE *out, const struct plan *plan)
{
    fprintf(out, "  subgraph \"cluster_cube\" {\n    label=\"a cube\";\n");
    for (unsigned i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].kind != NODE_router && plan->nodes[i].router != NO_NODE)
            fprintf(out, "    \"%s\" [shape=box];\n", node_name(plan, i));
    for (unsigned i = 0; i < plan->link_count; i++) {
        const struct plan_link *link = &plan->links[i];
        bool back = link->side == SIDE_N || link->side == SIDE_W ||
                    (link->class == LINK_attach && plan->nodes[link->from].kind == NODE_router);
        if (link->to != NO_NODE && !back)
            put_edge(out, node_name(plan, link->from), node_name(plan, link->to), link->class);
    }
    fprintf(out, "  }\n");
}

void dump_dot(FILE *out, const struct plan *plan)
{
    fprintf(out, "graph \"%s\" {\n  node [fontname=\"sans-serif\", fontsize=10];\n", plan->model->name);
    put_edge(out, "host", "switch", LINK_pcie);
    for (unsigned sip = 0; sip < plan->sips; sip++)
        put_sip(out, plan, sip);
    put_cube(out, plan);
    fprintf(out, "}\n");
}
