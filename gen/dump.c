/* dump.c: what --dump prints: one line for each thing, for people, diff and grep; or a graph.
 *
 * Everything is read back from the plan's tables: routes are walked step by step, as a simulator walks them. */
#include "dump.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "../rt/common/arena.h"
#include "schema.h"

/* More than the longest node name, "sip255.cube255.pe255.pe_fetch_store", needs. */
enum { NAME_BYTES = 64 };

/* ---- nodes */

/* The names of a cube's nodes, which are the same in all cubes. */
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
    fprintf(out, "# rank, node, %s\n0 host\n1 switch\n",
            plan->planes > 1 ? "routers it hangs on, one of each plane" : "router it hangs on");
    for (unsigned sip = 0; sip < plan->sips; sip++) {
        fprintf(out, "%u sip%u.pcie_ep\n%u sip%u.io_cpu\n", rank, sip, rank + 1, sip);
        rank += SIP_NODES;
        for (unsigned cube = 0; cube < plan->cubes; cube++) {
            for (unsigned i = 0; i < plan->node_count; i++, rank++) {
                unsigned router = plan->nodes[i].router;
                fprintf(out, "%u sip%u.cube%u.%s", rank, sip, cube, names[i]);
                for (unsigned plane = 0; router != NO_NODE && plane < plan->planes; plane++)
                    fprintf(out, " %s", names[router + plane * plan->routers]);
                fputc('\n', out);
            }
        }
    }
}

/* ---- links */

/* The state of the listing. Links are numbered whether they exist or not. */
struct lister {
    FILE *out;
    const struct plan *plan;
    const char **names;
    uint64_t number;
};

static void put_numbered(struct lister *l, const char *class, const char *from, const char *to, uint64_t latency_ps,
                         uint64_t bw_bps)
{
    fprintf(l->out, "%llu %s %s %s %llu ", (unsigned long long)l->number++, from, to, class, (unsigned long long)latency_ps);
    if (bw_bps)
        fprintf(l->out, "%llu\n", (unsigned long long)bw_bps);
    else
        fprintf(l->out, "~\n");
}

/* Prints a link as fast as all of its class, or as a wrap link. */
static void put_link(struct lister *l, enum link_class class, enum link_speed speed, const char *from, const char *to)
{
    static const enum attr bw[LINK_SPEEDS] = {
#define LINK(name, bw, latency) [LINK_##name] = ATTR_##bw,
#define WRAP(name, bw, latency) [SPEED_##name] = ATTR_##bw,
#include "../rt/kb/links.def"
    }, latency[LINK_SPEEDS] = {
#define LINK(name, bw, latency) [LINK_##name] = ATTR_##latency,
#define WRAP(name, bw, latency) [SPEED_##name] = ATTR_##latency,
#include "../rt/kb/links.def"
    };
    const struct value *attr = l->plan->model->attr;
    put_numbered(l, link_class_names[class], from, to, attr[latency[speed]].n, attr[bw[speed]].n);
}

static void put_class_link(struct lister *l, enum link_class class, const char *from, const char *to)
{
    put_link(l, class, (enum link_speed)class, from, to);
}

/* ---- links within a PE: tiles travel on a wire, bytes move between a TCM and its fetch_store; a use takes no time that
 * the link has */

static const struct inside_link {
    enum node_kind from, to;
    const char *class;
    enum attr latency, bw;                              /* ATTRS: 0 ps; no limit */
} inside_links[] = {
#define WIRE(from, to) {NODE_pe_##from, NODE_pe_##to, "wire", ATTR_links_##from##_to_##to##_ps, ATTRS},
#include "../rt/kb/wires.def"
#undef WIRE
    {NODE_pe_tcm, NODE_pe_fetch_store, "tcm", ATTRS, ATTR_links_fetch_store_to_tcm_bw_bps},
    {NODE_pe_fetch_store, NODE_pe_tcm, "tcm", ATTRS, ATTR_links_fetch_store_to_tcm_bw_bps},
    {NODE_pe_cpu, NODE_pe_scheduler, "use", ATTRS, ATTRS},      /* commands */
    {NODE_pe_scheduler, NODE_pe_ipcq, "use", ATTRS, ATTRS},     /* receives */
    {NODE_pe_ipcq, NODE_pe_dma, "use", ATTRS, ATTRS},           /* slots of messages */
    {NODE_pe_dma, NODE_pe_mmu, "use", ATTRS, ATTRS},            /* translations */
    {NODE_pe_dma, NODE_pe_tcm, "use", ATTRS, ATTRS},            /* loads */
    {NODE_pe_tcm, NODE_pe_dma, "use", ATTRS, ATTRS},            /* stores and sends */
};

static void put_inside_links(FILE *out, const struct model *model, const char *pe)
{
    for (const struct inside_link *l = inside_links; l < inside_links + COUNT_OF(inside_links); l++) {
        uint64_t bw = l->bw == ATTRS ? 0 : model->attr[l->bw].n;
        fprintf(out, "- %s.%s %s.%s %s %" PRIu64 " %s\n", pe, node_kind_names[l->from], pe, node_kind_names[l->to],
                l->class, l->latency == ATTRS ? 0 : model->attr[l->latency].n, bw ? arena_printf("%" PRIu64, bw) : "~");
    }
}

static bool attached(const struct model *model, unsigned cube, enum side side)
{
    for (unsigned i = 0; i < model->attach_count; i++)
        if (model->attach[i].cube == cube && model->attach[i].side == side)
            return true;
    return false;
}

/* Finds the name of the far end of a link that leaves a cube. Returns false if this cube has no such link. */
static bool far_end(const struct plan *plan, const struct plan_link *link, unsigned sip, unsigned cube, char *name)
{
    if (link->class == LINK_io) {
        snprintf(name, NAME_BYTES, "sip%u.io_cpu", sip);
        return attached(plan->model, cube, link->side);
    }
    int next = grid_neighbour(plan->cube_grid, cube, link->side);
    snprintf(name, NAME_BYTES, "sip%u.cube%d.port.%c", sip, next, side_letters[opposite_side(link->side)]);
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
            put_link(l, link->class, link->speed, from, to);
        else
            l->number++;
    }
}

static void put_sip_links(struct lister *l, unsigned sip)
{
    const struct model *model = l->plan->model;
    const char *pcie_ep = arena_printf("sip%u.pcie_ep", sip), *io_cpu = arena_printf("sip%u.io_cpu", sip);
    put_class_link(l, LINK_pcie, "switch", pcie_ep);
    put_class_link(l, LINK_pcie, pcie_ep, "switch");
    put_class_link(l, LINK_io, pcie_ep, io_cpu);
    put_class_link(l, LINK_io, io_cpu, pcie_ep);
    for (unsigned i = 0; i < model->attach_count; i++)
        put_class_link(l, LINK_io, io_cpu, arena_printf("sip%u.cube%u.port.%c", sip, (unsigned)model->attach[i].cube,
                                                        side_letters[model->attach[i].side]));
}

static const char *chip_end_name(const struct model_chip_end *end)
{
    return arena_printf("sip%u.cube%u.port.%c", (unsigned)end->sip, (unsigned)end->cube, side_letters[end->side]);
}

static void put_chip_links(struct lister *l)
{
    const struct model *model = l->plan->model;
    for (unsigned i = 0; i < model->chip_link_count; i++) {
        const struct model_chip_link *link = &model->chip_links[i];
        const char *a = chip_end_name(&link->end[0]), *b = chip_end_name(&link->end[1]);
        put_numbered(l, link_class_names[LINK_chip], a, b, link->latency.n, link->bw.n);
        put_numbered(l, link_class_names[LINK_chip], b, a, link->latency.n, link->bw.n);
    }
}

void dump_links(FILE *out, const struct plan *plan)
{
    struct lister l = {out, plan, names_of(plan), 0};
    fprintf(out, "# number, from, to, class, latency in ps, bandwidth in bytes/s; links within a PE have no number\n");
    put_class_link(&l, LINK_pcie, "host", "switch");
    put_class_link(&l, LINK_pcie, "switch", "host");
    for (unsigned sip = 0; sip < plan->sips; sip++) {
        put_sip_links(&l, sip);
        for (unsigned cube = 0; cube < plan->cubes; cube++)
            put_cube_links(&l, sip, cube);
    }
    put_chip_links(&l);
    assert(l.number == plan->all_links);
    for (unsigned sip = 0; sip < plan->sips; sip++)
        for (unsigned cube = 0; cube < plan->cubes; cube++)
            for (unsigned pe = 0; pe < plan->pes; pe++)
                put_inside_links(out, plan->model, arena_printf("sip%u.cube%u.pe%u", sip, cube, pe));
}

/* ---- routes */

static const char *const direction_names[DIRECTIONS] = {"request", "response"};

/* Prints the steps between two routers of a cube, in a plane. */
static void walk_routers(FILE *out, const struct plan *plan, unsigned table, unsigned from, unsigned target)
{
    const unsigned *next = plan->routes + (table * plan->target_count + target) * plan->routers;
    unsigned steps = 0;
    for (unsigned at = from; at != plan->targets[target];) {
        const struct plan_link *link = &plan->links[next[at]];
        assert(next[at] != NO_LINK && link->from == plan_router(plan, at) && steps++ < plan->routers);
        fprintf(out, " %c", side_letters[link->side]);
        at = plan->nodes[link->to].index;
    }
}

static void dump_plane_routes(FILE *out, const struct plan *plan, const char **names, unsigned plane,
                              enum direction direction)
{
    unsigned first = plan_router(plan, plane * plan->routers);
    for (unsigned from = 0; from < plan->routers; from++) {
        for (unsigned target = 0; target < plan->target_count; target++) {
            fprintf(out, "%s %s %s", direction_names[direction], names[first + from], names[first + plan->targets[target]]);
            walk_routers(out, plan, plane * DIRECTIONS + direction, from, target);
            fputc('\n', out);
        }
    }
}

/* Prints the steps between two cubes of a SIP. */
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

/* Prints the links between chips from SIP to SIP, by their numbers in the topology. */
static void dump_chip_routes(FILE *out, const struct plan *plan, enum direction direction)
{
    const struct model_chip_link *links = plan->model->chip_links;
    for (unsigned from = 0; from < plan->sips; from++) {
        for (unsigned to = 0; to < plan->sips; to++) {
            const unsigned *next = plan->chip_routes + ((unsigned)direction * plan->sips + to) * plan->sips;
            if (next[from] == NO_CHIP_LINK)
                continue;
            fprintf(out, "%s sip%u sip%u", direction_names[direction], from, to);
            for (unsigned at = from, steps = 0; at != to; at = (unsigned)links[next[at] / 2].end[(next[at] + 1) % 2].sip) {
                assert(next[at] != NO_CHIP_LINK && steps++ < plan->sips);
                fprintf(out, " %u", next[at] / 2);
            }
            fputc('\n', out);
        }
    }
}

void dump_routes(FILE *out, const struct plan *plan)
{
    const char **names = names_of(plan);
    fprintf(out, "# in a cube, from router to router; in a SIP, from cube to cube: n e s w\n");
    for (enum direction direction = REQUEST; direction < DIRECTIONS; direction++) {
        if (direction == RESPONSE && plan->model->response.n)
            continue;                                   /* answers have ways of their own, as requests have */
        for (unsigned plane = 0; plane < plan->planes; plane++)
            dump_plane_routes(out, plan, names, plane, direction);
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
    if (!plan->chip_routes)
        return;
    fprintf(out, "# the links from chip to chip, by their numbers\n");
    dump_chip_routes(out, plan, REQUEST);
    if (!plan->model->response.n)
        dump_chip_routes(out, plan, RESPONSE);
}

/* ---- a graph */

/* Prints one edge for both directions of a link. */
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

static void put_chip_edges(FILE *out, const struct model *model)
{
    for (unsigned i = 0; i < model->chip_link_count; i++) {
        const struct model_chip_link *link = &model->chip_links[i];
        put_edge(out, arena_printf("sip%u.cube%u", (unsigned)link->end[0].sip, (unsigned)link->end[0].cube),
                 arena_printf("sip%u.cube%u", (unsigned)link->end[1].sip, (unsigned)link->end[1].cube), LINK_chip);
    }
}

/* Prints the parts of a PE and the links between them. */
static void put_pe(FILE *out, unsigned pe)
{
    fprintf(out, "    subgraph \"cluster_pe%u\" {\n      label=\"pe%u\";\n", pe, pe);
    for (enum node_kind kind = NODE_pe_cpu; kind < NODE_KINDS; kind++)
        fprintf(out, "      \"pe%u.%s\" [shape=box];\n", pe, node_kind_names[kind]);
    for (const struct inside_link *l = inside_links; l < inside_links + COUNT_OF(inside_links); l++)
        fprintf(out, "      \"pe%u.%s\" -- \"pe%u.%s\" [class=\"%s\", tooltip=\"%s\", dir=forward%s];\n", pe,
                node_kind_names[l->from], pe, node_kind_names[l->to], l->class, l->class,
                strcmp(l->class, "use") ? "" : ", style=dashed");
    fprintf(out, "    }\n");
}

static void put_cube(FILE *out, const struct plan *plan)
{
    fprintf(out, "  subgraph \"cluster_cube\" {\n    label=\"a cube\";\n");
    for (unsigned pe = 0; pe < plan->pes; pe++)
        put_pe(out, pe);
    for (unsigned i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].kind != NODE_router && plan->nodes[i].kind < NODE_pe_cpu)
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
    put_chip_edges(out, plan->model);
    put_cube(out, plan);
    fprintf(out, "}\n");
}

/* ---- the model */

static void row(FILE *out, const char *path, const char *value, struct where where)
{
    const char *place = "default";
    if (where.file)
        place = arena_printf("%s:%u:%u", where.file->path, where.line, where.col);
    fprintf(out, "%-63s %-24s %s\n", path, value, place);
}

static const char *value_text(const struct key *key, uint64_t n)
{
    const char *words[8];
    switch (key->kind) {
    case KIND_time: case KIND_length: return arena_printf("%" PRIu64 " ps", n);
    case KIND_bandwidth: return n ? arena_printf("%" PRIu64 " bytes/s", n) : "no limit";
    case KIND_clock: return arena_printf("%" PRIu64 " kHz", n);
    case KIND_size: return arena_printf("%" PRIu64 " bytes", n);
    case KIND_size_limit: return n ? arena_printf("%" PRIu64 " bytes", n) : "no limit";
    case KIND_count_limit: return n ? arena_printf("%" PRIu64, n) : "no limit";
    case KIND_flag: return n ? "true" : "false";
    case KIND_choice: case KIND_either:
        schema_words(key, words, COUNT_OF(words));
        return words[n];
    default: return arena_printf("%" PRIu64, n);
    }
}

static void dump_values(FILE *out, const struct key *key, const struct value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].key)                              /* the engine lacks the dtype */
            row(out, values[i].key, value_text(key, values[i].n), values[i].where);
}

static void dump_ops(FILE *out, const struct model *model)
{
    for (unsigned i = 0; i < model->ops_count; i++)
        row(out, model->ops[i].cost.key, arena_printf("%" PRIu64, model->ops[i].cost.n), model->ops[i].cost.where);
}

static void dump_router(FILE *out, const struct key *key, const struct router_at *at)
{
    row(out, key->path, arena_printf("[%" PRIu64 ", %" PRIu64 "]", at->row, at->col), at->where);
}

static void dump_attachments(FILE *out, const struct key *key, const struct model *model)
{
    for (unsigned i = 0; i < model->attach_count; i++) {
        const struct model_attachment *at = &model->attach[i];
        row(out, key->path, arena_printf("cube %" PRIu64 ", side %c", at->cube, "nesw"[at->side]), at->where);
    }
}

/* The word of a choice below a key. */
static const char *word_below(const struct key *key, const char *name, uint64_t n)
{
    return value_text(schema_key(key, name), n);
}

static void dump_planes(FILE *out, const struct key *key, const struct model *model)
{
    for (unsigned i = 0; i < model->plane_count; i++) {
        const struct model_plane *plane = &model->planes[i];
        row(out, key->path, arena_printf("%s, %s", word_below(key, "order", plane->y_first),
                                         word_below(key, "direction", plane->direction)), plane->where);
    }
}

static void dump_chip_links(FILE *out, const struct key *key, const struct model *model)
{
    for (unsigned i = 0; i < model->chip_link_count; i++) {
        const struct model_chip_link *link = &model->chip_links[i];
        const char *ends = arena_printf("%s to %s", chip_end_name(&link->end[0]), chip_end_name(&link->end[1]));
        row(out, key->path, arena_printf("%s, %s, %s", ends, value_text(schema_key(key, "bw_gbs"), link->bw.n),
                                         value_text(schema_key(key, "latency_ns"), link->latency.n)), link->where);
    }
    if (!model->chip_link_count)
        row(out, key->path, "none", (struct where){0});
}

static void dump_params(FILE *out, const struct impl_params *params)
{
    for (unsigned i = 0; i < params->count; i++) {
        const struct impl_param *p = &params->list[i];
        const char *value = arena_printf("%" PRIu64 " %s", p->n, p->unit ? p->unit : "");
        if (!p->unit)
            value = arena_printf(p->whole ? "%" PRIu64 : "%" PRIu64 "/%" PRIu64, p->num, p->den);
        row(out, p->key, value, p->where);
    }
}

static void dump_keys(FILE *out, const struct key *keys, const struct model *model);

static void dump_key(FILE *out, const struct key *key, const struct model *model)
{
    const void *target = (const char *)model + key->target;
    const struct text *text = target;
    const struct layout *layout = target;
    switch (key->kind) {
    case KIND_mapping: dump_keys(out, key, model); break;
    case KIND_attachments: dump_attachments(out, key, model); break;
    case KIND_planes: dump_planes(out, key, model); break;
    case KIND_chip_links: dump_chip_links(out, key, model); break;
    case KIND_either:
        if (layout->at)
            dump_keys(out, key, model);
        else
            row(out, key->path, value_text(key, layout->word), layout->where);
        break;
    case KIND_path: case KIND_constant: break;          /* these kinds have no value */
    case KIND_params: dump_params(out, target); break;
    case KIND_ratio: row(out, key->path, arena_printf("%s ns/mm", text->text), text->where); break;
    case KIND_impl: case KIND_name: case KIND_resource:
        row(out, key->path, text->text ? text->text : "none", text->where);
        break;
    case KIND_time: case KIND_length: case KIND_bandwidth: case KIND_clock: case KIND_size:
    case KIND_size_limit: case KIND_count: case KIND_count_limit: case KIND_choice: case KIND_flag: dump_values(out, key, target, 1); break;
    case KIND_router: dump_router(out, key, target); break;
    case KIND_routers:
        for (unsigned i = 0; i < layout->count; i++)
            dump_router(out, key, &layout->at[i]);
        break;
    case KIND_dtypes: dump_values(out, key, target, DTYPES); break;
    case KIND_ops: dump_ops(out, model); break;
    }
}

static void dump_keys(FILE *out, const struct key *keys, const struct model *model)
{
    for (size_t i = 0; i < keys->count; i++)
        dump_key(out, &keys->keys[i], model);
}

void dump_model(FILE *out, const struct model *model)
{
    dump_keys(out, schema(), model);
}
