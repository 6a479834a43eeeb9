/* route.c: nodes, their ranks and names, and the way from one to another by the emitted routing tables.
 *
 * A way takes hops: inside a cube by kb_route; from cube to cube by kb_cube_route; out of a SIP by the attachment
 * nearest to the cube where the way begins, into a SIP by the one nearest to the cube where it ends. */
#include "route.h"

#include <stdio.h>

struct place rank_place(uint32_t rank)
{
    if (rank < SYSTEM_NODES)
        return (struct place){0, OUTSIDE, NODE_host + rank};
    uint32_t sip = (rank - SYSTEM_NODES) / sip_nodes(), in_sip = (rank - SYSTEM_NODES) % sip_nodes();
    if (in_sip < SIP_NODES)
        return (struct place){sip, OUTSIDE, NODE_pcie_ep + in_sip};
    uint32_t in_cubes = in_sip - SIP_NODES;
    return (struct place){sip, in_cubes / kb_shape.cube_nodes, in_cubes % kb_shape.cube_nodes};
}

struct place place_pe(uint32_t pe, enum node_kind kind)
{
    uint32_t cube = pe / kb_shape.pes;
    return (struct place){cube / kb_shape.cubes, cube % kb_shape.cubes,
                          cube_pe_node(&kb_shape, pe % kb_shape.pes, kind)};
}

static const char *kind_name(enum node_kind kind)
{
    static const char *const names[] = {
#define NODE(kind) #kind,
#include "kb/kinds.def"
    };
    return names[kind];
}

static void name_in_cube(char *out, size_t room, const struct cube_node *node)
{
    switch (node->kind) {
    case NODE_router:
        snprintf(out, room, "noc.r%uc%u", node->index / kb_shape.noc_cols, node->index % kb_shape.noc_cols);
        break;
    case NODE_port:
        snprintf(out, room, "port.%c", "nesw"[node->index]);
        break;
    case NODE_hbm_ctrl:
        snprintf(out, room, "hbm_ctrl.pe%u", node->index);
        break;
    default:
        if (node->kind < NODE_router)
            snprintf(out, room, "%s", kind_name(node->kind));
        else
            snprintf(out, room, "pe%u.%s", node->index, kind_name(node->kind));
    }
}

const char *place_name(struct place place)
{
    static char name[96];
    char part[64];
    if (place.cube != OUTSIDE) {
        name_in_cube(part, sizeof part, &kb_cube_nodes[place.node]);
        snprintf(name, sizeof name, "sip%u.cube%u.%s", place.sip, place.cube, part);
    } else if (place.node < SYSTEM_NODES) {
        snprintf(name, sizeof name, "%s", kind_name(place.node));
    } else {
        snprintf(name, sizeof name, "sip%u.%s", place.sip, kind_name(place.node));
    }
    return name;
}

/* ---- links */

enum { LINK_UP_HOST = 1, SYSTEM_LINKS = 2 };
enum { LINK_DOWN_EP, LINK_UP_SWITCH, LINK_DOWN_IO_CPU, LINK_UP_EP, SIP_LINKS };

static uint32_t sip_link_count(void)
{
    return SIP_LINKS + kb_shape.attachments + kb_shape.cubes * kb_shape.cube_links;
}

static uint32_t sip_link(uint32_t sip, uint32_t link)
{
    return SYSTEM_LINKS + sip * sip_link_count() + link;
}

static uint32_t cube_link(struct place at, uint32_t link)
{
    return sip_link(at.sip, SIP_LINKS + kb_shape.attachments + at.cube * kb_shape.cube_links + link);
}

uint64_t link_count(void)
{
    return SYSTEM_LINKS + (uint64_t)kb_shape.sips * sip_link_count();
}

enum link_class link_class(uint64_t link)
{
    if (link < SYSTEM_LINKS)
        return LINK_pcie;
    uint64_t in_sip = (link - SYSTEM_LINKS) % sip_link_count(), first = SIP_LINKS + kb_shape.attachments;
    if (in_sip < first)
        return in_sip < LINK_DOWN_IO_CPU ? LINK_pcie : LINK_io;
    return kb_cube_links[(in_sip - first) % kb_shape.cube_links].class;
}

/* ---- hops */

static bool inside_sip(struct place place, uint32_t sip)
{
    return place.sip == sip && (place.cube != OUTSIDE || place.node == NODE_io_cpu);
}

static struct hop next_outside(const struct way *way, struct place at)
{
    struct place to = way->to;
    bool down = inside_sip(to, at.sip);
    uint32_t attachment;
    switch (at.node) {
    case NODE_host:
        return (struct hop){0, LINK_pcie, {0, OUTSIDE, NODE_switch}};
    case NODE_switch:
        if (to.cube == OUTSIDE && to.node == NODE_host)
            return (struct hop){LINK_UP_HOST, LINK_pcie, place_host()};
        return (struct hop){sip_link(to.sip, LINK_DOWN_EP), LINK_pcie, {to.sip, OUTSIDE, NODE_pcie_ep}};
    case NODE_pcie_ep:
        if (down)
            return (struct hop){sip_link(at.sip, LINK_DOWN_IO_CPU), LINK_io, place_io_cpu(at.sip)};
        return (struct hop){sip_link(at.sip, LINK_UP_SWITCH), LINK_pcie, {0, OUTSIDE, NODE_switch}};
    default:
        if (!down)
            return (struct hop){sip_link(at.sip, LINK_UP_EP), LINK_io, {at.sip, OUTSIDE, NODE_pcie_ep}};
        attachment = kb_nearest_attachment[to.cube];
        const struct attachment *port = &kb_attachments[attachment];
        return (struct hop){sip_link(at.sip, SIP_LINKS + attachment), LINK_io,
                            {at.sip, port->cube, cube_port(&kb_shape, port->side)}};
    }
}

/* The step from the port of a side to the facing port of the neighbouring cube. */
static inline struct hop next_across(struct place at, enum side side)
{
    static const enum side opposite[SIDES] = {SIDE_S, SIDE_W, SIDE_N, SIDE_E};
    int cube = at.cube;
    switch (side) {
    case SIDE_N:
        cube -= kb_shape.cube_cols;
        break;
    case SIDE_S:
        cube += kb_shape.cube_cols;
        break;
    case SIDE_E:
        cube++;
        break;
    default:
        cube--;
    }
    return (struct hop){cube_link(at, cube_link_ucie(&kb_shape, side)), LINK_ucie,
                        {at.sip, cube, cube_port(&kb_shape, opposite[side])}};
}

static struct link_ends cube_link_ends(struct place cube, uint32_t number)
{
    uint32_t first_ucie = cube_link_ucie(&kb_shape, SIDE_N), first_io = cube_link_io(&kb_shape, SIDE_N);
    const struct cube_link *link = &kb_cube_links[number];
    struct place from = {cube.sip, cube.cube, link->from};
    if (number >= first_io)
        return (struct link_ends){from, place_io_cpu(cube.sip)};
    if (number >= first_ucie)
        return (struct link_ends){from, next_across(from, number - first_ucie).to};
    return (struct link_ends){from, {cube.sip, cube.cube, link->to}};
}

struct link_ends link_ends(uint64_t link)
{
    struct place the_switch = {0, OUTSIDE, NODE_switch};
    if (link < SYSTEM_LINKS)
        return link == LINK_UP_HOST ? (struct link_ends){the_switch, place_host()}
                                    : (struct link_ends){place_host(), the_switch};
    uint32_t sip = (link - SYSTEM_LINKS) / sip_link_count(), in_sip = (link - SYSTEM_LINKS) % sip_link_count();
    struct place pcie_ep = {sip, OUTSIDE, NODE_pcie_ep};
    switch (in_sip) {
    case LINK_DOWN_EP: return (struct link_ends){the_switch, pcie_ep};
    case LINK_UP_SWITCH: return (struct link_ends){pcie_ep, the_switch};
    case LINK_DOWN_IO_CPU: return (struct link_ends){pcie_ep, place_io_cpu(sip)};
    case LINK_UP_EP: return (struct link_ends){place_io_cpu(sip), pcie_ep};
    }
    in_sip -= SIP_LINKS;
    if (in_sip < kb_shape.attachments) {
        const struct attachment *port = &kb_attachments[in_sip];
        return (struct link_ends){place_io_cpu(sip), {sip, port->cube, cube_port(&kb_shape, port->side)}};
    }
    in_sip -= kb_shape.attachments;
    return cube_link_ends((struct place){sip, in_sip / kb_shape.cube_links, 0}, in_sip % kb_shape.cube_links);
}

/* The attachment by which a way leaves a SIP; NULL: it ends in it. */
static const struct attachment *way_exit(const struct way *way, uint32_t sip)
{
    if (inside_sip(way->to, sip) && way->to.cube != OUTSIDE)
        return NULL;
    return &kb_attachments[kb_nearest_attachment[way->from.cube]];
}

/* The side by which a way leaves a cube for the next one; HERE: it ends in the cube or leaves the SIP from it. */
static enum side way_side(const struct way *way, const struct attachment *exit, uint32_t cube)
{
    uint32_t last = exit ? exit->cube : way->to.cube;
    return kb_cube_route[((uint32_t)way->direction * kb_shape.cubes + last) * kb_shape.cubes + cube];
}

/* The last node of a cube on a way. */
static uint32_t cube_goal(const struct way *way, struct place at)
{
    const struct attachment *exit = way_exit(way, at.sip);
    uint32_t side = way_side(way, exit, at.cube);
    if (side != HERE || exit)
        return cube_port(&kb_shape, side != HERE ? side : (enum side)exit->side);
    return way->to.node;
}

/* The step out of a cube, from its last node on the way. */
static struct hop next_cube(const struct way *way, struct place at)
{
    const struct attachment *exit = way_exit(way, at.sip);
    uint32_t side = way_side(way, exit, at.cube);
    if (side != HERE)
        return next_across(at, side);
    return (struct hop){cube_link(at, cube_link_io(&kb_shape, exit->side)), LINK_io, place_io_cpu(at.sip)};
}

/* Sets where a traversal has come to, and, if that is the first node in a cube, what its way through the cube needs. */
static void traversal_enter(struct traversal *along, struct hop hop)
{
    along->hop = hop;
    along->rank = place_rank(hop.to);
    if (hop.to.cube == OUTSIDE)
        return;
    along->first_rank = along->rank - hop.to.node;
    along->first_link = cube_link(hop.to, 0);
    along->goal = cube_goal(&along->way, hop.to);
    const struct cube_node *goal = &kb_cube_nodes[along->goal];
    along->goal_down = goal->down;
    along->route = &kb_route[((uint32_t)along->way.direction * kb_shape.targets + goal->target)
                             * (kb_shape.noc_rows * kb_shape.noc_cols)];
}

struct traversal traversal_of(struct way way)
{
    struct traversal along = {.way = way, .end_rank = place_rank(way.to)};
    traversal_enter(&along, (struct hop){.to = way.from});
    return along;
}

void traversal_leave(struct traversal *along)
{
    struct place at = along->hop.to;
    traversal_enter(along, at.cube == OUTSIDE ? next_outside(&along->way, at) : next_cube(&along->way, at));
}
