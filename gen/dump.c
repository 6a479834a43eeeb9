/* dump.c: what --dump prints of a plan: one line a thing, for people, diff and grep; or a graph.
 *
 * Everything is read back from the plan's tables: the ways are walked step by step, as a simulator walks them. */
#include "dump.h"

#include <assert.h>

#include "../rt/common/arena.h"

/* Longer than any node's name, "sip255.cube255.pe63.pe_fetch_store". */
enum { NAME_BYTES = 64 };

/* ---- nodes */

/* The names within a cube, once for all cubes. */
static const char **names_of(const struct plan *plan)
{
    const char **names = arena_alloc(plan->node_count, sizeof *names);
    for (unsigned i = 0; i < plan->node_count; i++)
        names[i] = node_name(plan, i);
    return names;
}

void dump_nodes(FILE *out, const struct plan *plan)
{
    const char **names = names_of(plan);
    unsigned rank = SYSTEM_NODES;
    fprintf(out, "# rank, node, router it hangs on\n0 host\n1 switch\n");
    for (unsigned sip = 0; sip < plan->sips; sip++) {
        fprintf(out, "%u sip%u.pcie_ep\n%u sip%u.io_cpu\n", rank, sip, rank + 1, sip);
        rank += SIP_NODES;
        for (unsigned cube = 0; cube < plan->cubes; cube++) {
            for (unsigned i = 0; i < plan->node_count; i++, rank++) {
                unsigned router = plan->nodes[i].router;
                fprintf(out, "%u sip%u.cube%u.%s%s%s\n", rank, sip, cube, names[i], router == NO_NODE ? "" : " ",
                        router == NO_NODE ? "" : names[router]);
            }
        }
    }
}

/* ---- links */

/* What a line is printed from; the number counts on, whether there is such a link or not. */
struct lister {
    FILE *out;
    const struct plan *plan;
    const char **names;
    uint64_t number;
};

static void put_link(struct lister *l, enum link_class class, const char *from, const char *to)
{
    static const enum attr bw[] = {
#define LINK(name, bw, latency) ATTR_##bw,
#include "../rt/kb/links.def"
#undef LINK
    }, latency[] = {
#define LINK(name, bw, latency) ATTR_##latency,
#include "../rt/kb/links.def"
#undef LINK
    };
    const struct value *attr = l->plan->model->attr;
    fprintf(l->out, "%llu %s %s %s %llu ", (unsigned long long)l->number++, from, to, link_class_names[class],
            (unsigned long long)attr[latency[class]].n);
    if (attr[bw[class]].n)
        fprintf(l->out, "%llu\n", (unsigned long long)attr[bw[class]].n);
    else
        fprintf(l->out, "~\n");
}

static bool attached(const struct model *model, unsigned cube, enum side side)
{
    for (unsigned i = 0; i < model->attach_count; i++)
        if (model->attach[i].cube == cube && model->attach[i].side == side)
            return true;
    return false;
}

/* The name of the far end of a link that leaves a cube; false: this cube has no such link. */
static bool far_end(const struct plan *plan, const struct plan_link *link, unsigned sip, unsigned cube, char *name)
{
    if (link->class == LINK_io) {
        snprintf(name, NAME_BYTES, "sip%u.io_cpu", sip);
        return attached(plan->model, cube, link->side);
    }
    int next = grid_neighbour(plan->cube_grid, cube, link->side);
    snprintf(name, NAME_BYTES, "sip%u.cube%d.port.%c", sip, next, side_letters[(link->side + 2) % SIDES]);
    return next >= 0;
}

static void put_cube_links(struct lister *l, unsigned sip, unsigned cube)
{
    for (unsigned i = 0; i < l->plan->link_count; i++) {
        const struct plan_link *link = &l->plan->links[i];
        char from[NAME_BYTES], to[NAME_BYTES];
        snprintf(from, sizeof from, "sip%u.cube%u.%s", sip, cube, l->names[link->from]);
        if (link->to != NO_NODE)
            snprintf(to, sizeof to, "sip%u.cube%u.%s", sip, cube, l->names[link->to]);
        if (link->to != NO_NODE || far_end(l->plan, link, sip, cube, to))
            put_link(l, link->class, from, to);
        else
            l->number++;
    }
}

static void put_sip_links(struct lister *l, unsigned sip)
{
    const struct model *model = l->plan->model;
    const char *pcie_ep = arena_printf("sip%u.pcie_ep", sip), *io_cpu = arena_printf("sip%u.io_cpu", sip);
    put_link(l, LINK_pcie, "switch", pcie_ep);
    put_link(l, LINK_pcie, pcie_ep, "switch");
    put_link(l, LINK_io, pcie_ep, io_cpu);
    put_link(l, LINK_io, io_cpu, pcie_ep);
    for (unsigned i = 0; i < model->attach_count; i++)
        put_link(l, LINK_io, io_cpu, arena_printf("sip%u.cube%u.port.%c", sip, (unsigned)model->attach[i].cube,
                                                  side_letters[model->attach[i].side]));
}

void dump_links(FILE *out, const struct plan *plan)
{
    struct lister l = {out, plan, names_of(plan), 0};
    fprintf(out, "# number, from, to, class, latency in ps, bandwidth in bytes/s\n");
    put_link(&l, LINK_pcie, "host", "switch");
    put_link(&l, LINK_pcie, "switch", "host");
    for (unsigned sip = 0; sip < plan->sips; sip++) {
        put_sip_links(&l, sip);
        for (unsigned cube = 0; cube < plan->cubes; cube++)
            put_cube_links(&l, sip, cube);
    }
    assert(l.number == plan->all_links);
}

/* ---- routes */

static const char *const direction_names[DIRECTIONS] = {"request", "response"};

/* The steps between two routers of a cube. */
static void walk_routers(FILE *out, const struct plan *plan, enum direction direction, unsigned from, unsigned target)
{
    const unsigned *next = plan->routes + (direction * plan->target_count + target) * plan->routers;
    unsigned steps = 0;
    for (unsigned at = from; at != plan->targets[target];) {
        const struct plan_link *link = &plan->links[next[at]];
        assert(next[at] != NO_LINK && link->from == plan_router(at) && steps++ < plan->routers);
        fprintf(out, " %c", side_letters[link->side]);
        at = plan->nodes[link->to].index;
    }
}

/* The steps between two cubes of a SIP. */
static void walk_cubes(FILE *out, const struct plan *plan, enum direction direction, unsigned from, unsigned to)
{
    const enum side *next = plan->cube_routes + (direction * plan->cubes + to) * plan->cubes;
    unsigned steps = 0;
    for (unsigned at = from; next[at] != HERE;) {
        int beyond = grid_neighbour(plan->cube_grid, at, next[at]);
        assert(beyond >= 0 && steps++ < plan->cubes);
        fprintf(out, " %c", side_letters[next[at]]);
        at = (unsigned)beyond;
    }
}

void dump_routes(FILE *out, const struct plan *plan)
{
    const char **names = names_of(plan);
    fprintf(out, "# in a cube, from router to router; in a SIP, from cube to cube: n e s w\n");
    for (enum direction direction = REQUEST; direction < DIRECTIONS; direction++) {
        for (unsigned from = 0; from < plan->routers; from++) {
            for (unsigned target = 0; target < plan->target_count; target++) {
                fprintf(out, "%s %s %s", direction_names[direction], names[plan_router(from)],
                        names[plan_router(plan->targets[target])]);
                walk_routers(out, plan, direction, from, target);
                fputc('\n', out);
            }
        }
        for (unsigned from = 0; from < plan->cubes; from++) {
            for (unsigned to = 0; to < plan->cubes; to++) {
                fprintf(out, "%s cube%u cube%u", direction_names[direction], from, to);
                walk_cubes(out, plan, direction, from, to);
                fputc('\n', out);
            }
        }
    }
    fprintf(out, "# the port through which a cube reaches the io_cpu\n");
    for (unsigned cube = 0; cube < plan->cubes; cube++) {
        const struct model_attachment *a = &plan->model->attach[plan->nearest[cube]];
        fprintf(out, "io cube%u cube%u.port.%c\n", cube, (unsigned)a->cube, side_letters[a->side]);
    }
}
