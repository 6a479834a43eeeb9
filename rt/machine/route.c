/* route.c: nodes, their ranks and names, and the way from one to another by the emitted routing tables.
 *
 * A way takes hops: inside a cube by kb_route; from cube to cube by kb_cube_route; from SIP to SIP by kb_shape.chips if
 * the way goes over these, else out of a SIP by the attachment nearest to the cube where the way begins, and into a SIP by
 * the one nearest to the cube where it ends. */
#define _GNU_SOURCE                                     /* mempcpy, stpcpy */
#include "route.h"

#include <string.h>

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

/* A pattern of targets is held against the names of all PEs, once for each target of each launch, and a timeline names all nodes
 * and links: printf would take ten times as long. */
char *name_numbered(char *to, const char *word, uint32_t number)
{
    char digits[12], *first = digits + sizeof digits;
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    return mempcpy(stpcpy(to, word), first, (size_t)(digits + sizeof digits - first));
}

/* Returns the end of the name, behind which there is no 0. */
static char *name_in_cube(char *to, const struct cube_node *node)
{
    uint32_t routers = kb_shape.noc_rows * kb_shape.noc_cols, router = node->index % routers;
    switch (node->kind) {
    case NODE_router:
        to = node->index >= routers ? name_numbered(to, "noc.p", node->index / routers) : stpcpy(to, "noc");
        return name_numbered(name_numbered(to, ".r", router / kb_shape.noc_cols), "c", router % kb_shape.noc_cols);
    case NODE_port:
        to = stpcpy(to, "port.");
        *to = "nesw"[node->index];
        return to + 1;
    case NODE_hbm_ctrl:
        return name_numbered(to, "hbm_ctrl.pe", node->index);
    default:
        if (node->kind > NODE_router)
            to = stpcpy(name_numbered(to, "pe", node->index), ".");
        return stpcpy(to, kind_name(node->kind));
    }
}

__attribute__((cold)) const char *place_name(struct place place)
{
    static char name[96];
    char *end = name;
    if (place.cube != OUTSIDE)
        end = stpcpy(name_numbered(name_numbered(end, "sip", place.sip), ".cube", place.cube), ".");
    else if (place.node >= SYSTEM_NODES)
        end = stpcpy(name_numbered(end, "sip", place.sip), ".");
    end = place.cube != OUTSIDE ? name_in_cube(end, &kb_cube_nodes[place.node]) : stpcpy(end, kind_name(place.node));
    *end = 0;
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

uint32_t cube_first_link(struct place cube)
{
    return cube_link(cube, 0);
}

/* The first of the links between chips: those of link i are 2 * i, from its end a, and 2 * i + 1. */
static uint64_t first_chip_link(void)
{
    return SYSTEM_LINKS + (uint64_t)kb_shape.sips * sip_link_count();
}

uint64_t link_count(void)
{
    return first_chip_link() + (kb_shape.chips ? 2 * (uint64_t)kb_shape.chips->count : 0);
}

static struct {
    uint16_t of_link[CHIP_LINKS_MOST];
    const struct chip_speed *at[CHIP_LINKS_MOST];       /* of the first link that has it */
    uint32_t count;
} chip_speeds;

static uint16_t chip_speed_find(const struct chip_speed *of_link)
{
    uint32_t i = 0;
    while (i < chip_speeds.count && memcmp(chip_speeds.at[i], of_link, sizeof *of_link))
        i++;
    if (i == chip_speeds.count)
        chip_speeds.at[chip_speeds.count++] = of_link;
    return (uint16_t)(LINK_SPEEDS + i);
}

void route_init(void)
{
    const struct chip_network *chips = kb_shape.chips;
    chip_speeds.count = 0;
    for (uint32_t link = 0; chips && link < chips->count; link++)
        chip_speeds.of_link[link] = chip_speed_find(&chips->speeds[link]);
}

uint32_t link_speed_count(void)
{
    return LINK_SPEEDS + chip_speeds.count;
}

const struct chip_speed *chip_speed(uint32_t speed)
{
    return chip_speeds.at[speed - LINK_SPEEDS];
}

uint32_t link_speed(uint64_t link)
{
    if (link < SYSTEM_LINKS)
        return LINK_pcie;
    if (link >= first_chip_link())
        return chip_speeds.of_link[(link - first_chip_link()) / 2];
    uint64_t in_sip = (link - SYSTEM_LINKS) % sip_link_count(), first = SIP_LINKS + kb_shape.attachments;
    if (in_sip < first)
        return in_sip < LINK_DOWN_IO_CPU ? LINK_pcie : LINK_io;
    return kb_cube_links[(in_sip - first) % kb_shape.cube_links].speed;
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

/* The neighbour of a cube on a side, at the far end of its row or column if that is closed. */
static inline uint32_t cube_across(uint32_t cube, enum side side)
{
    uint32_t cols = kb_shape.cube_cols, cubes = kb_shape.cubes;
    switch (side) {
    case SIDE_N: return cube < cols ? cube + cubes - cols : cube - cols;
    case SIDE_S: return cube + cols < cubes ? cube + cols : cube + cols - cubes;
    case SIDE_E: return (cube + 1) % cols ? cube + 1 : cube + 1 - cols;
    default: return cube % cols ? cube - 1 : cube + cols - 1;
    }
}

/* The step from the port of a side to the facing port of the neighbouring cube. */
static inline struct hop next_across(struct place at, enum side side)
{
    static const enum side opposite[SIDES] = {SIDE_S, SIDE_W, SIDE_N, SIDE_E};
    return (struct hop){cube_link(at, cube_link_ucie(&kb_shape, side)), LINK_ucie,
                        {at.sip, cube_across(at.cube, side), cube_port(&kb_shape, opposite[side])}};
}

static struct place chip_port(const struct chip_end *end)
{
    return (struct place){end->sip, end->cube, cube_port(&kb_shape, end->side)};
}

/* The ends of a link between chips; `directed`: as chip_network.routes has it. */
static const struct chip_end *chip_from(uint32_t directed)
{
    return &kb_shape.chips->links[directed / 2].end[directed % 2];
}

static const struct chip_end *chip_to(uint32_t directed)
{
    return chip_from(directed ^ 1);
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
    if (link >= first_chip_link()) {
        uint32_t directed = (uint32_t)(link - first_chip_link());
        return (struct link_ends){chip_port(chip_from(directed)), chip_port(chip_to(directed))};
    }
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

/* ---- out of a SIP */

/* Whether a node is an end of ways over links between chips: a pe_dma, or a memory of a cube. */
static bool is_on_chip(struct place place)
{
    return place_is_kind(place, NODE_pe_dma) || place_is_kind(place, NODE_hbm_ctrl) || place_is_kind(place, NODE_sram);
}

/* The next link between chips from a SIP on a way; NO_CHIP_LINK: the way ends there, or the SIPs are not joined. */
static uint32_t next_chip_link(const struct way *way, uint32_t sip)
{
    return kb_shape.chips->routes[((uint32_t)way->direction * kb_shape.sips + way->to.sip) * kb_shape.sips + sip];
}

static bool goes_over_chips(const struct way *way)
{
    return kb_shape.chips && way->from.sip != way->to.sip && is_on_chip(way->from) && is_on_chip(way->to)
           && next_chip_link(way, way->from.sip) != NO_CHIP_LINK;
}

/* Finds out where a way over links between chips leaves the SIP that it has come to, unless it ends there. */
static __attribute__((cold, noinline)) void chips_enter(struct traversal *along, uint32_t sip)
{
    uint32_t link = next_chip_link(&along->way, sip);
    if (link == NO_CHIP_LINK)
        return;
    along->chip_link = link;
    along->chip_exit = (struct attachment){chip_from(link)->cube, chip_from(link)->side};
}

/* The side of a cube by which a way leaves a SIP; NULL: it ends in it. */
static const struct attachment *way_exit(const struct traversal *along, uint32_t sip)
{
    const struct way *way = &along->way;
    if (inside_sip(way->to, sip) && way->to.cube != OUTSIDE)
        return NULL;
    return along->over_chips ? &along->chip_exit : &kb_attachments[kb_nearest_attachment[way->from.cube]];
}

/* The side by which a way leaves a cube for the next one; HERE: it ends in the cube or leaves the SIP from it. */
static enum side way_side(const struct way *way, const struct attachment *exit, uint32_t cube)
{
    uint32_t last = exit ? exit->cube : way->to.cube;
    return kb_cube_route[((uint32_t)way->direction * kb_shape.cubes + last) * kb_shape.cubes + cube];
}

/* Sets the side by which a way leaves a cube, and its last node there. */
static void cube_enter(struct traversal *along, struct place at)
{
    const struct attachment *exit = way_exit(along, at.sip);
    along->side = way_side(&along->way, exit, at.cube);
    along->goal = along->side != HERE ? cube_port(&kb_shape, along->side)
                  : exit              ? cube_port(&kb_shape, (enum side)exit->side)
                                      : along->way.to.node;
}

/* The step from chip to chip. */
static __attribute__((cold, noinline)) struct hop next_chip(const struct traversal *along)
{
    return (struct hop){(uint32_t)first_chip_link() + along->chip_link, chip_speeds.of_link[along->chip_link / 2],
                        chip_port(chip_to(along->chip_link))};
}

/* The step out of a cube, from its last node on the way. */
static struct hop next_cube(const struct traversal *along, struct place at)
{
    if (along->side != HERE)
        return next_across(at, along->side);
    if (along->over_chips)
        return next_chip(along);
    return (struct hop){cube_link(at, cube_link_io(&kb_shape, way_exit(along, at.sip)->side)), LINK_io, place_io_cpu(at.sip)};
}

/* Sets where a traversal has come to, and, if that is the first node in a cube, what its way through the cube needs. */
static void traversal_enter(struct traversal *along, struct hop hop)
{
    along->hop = hop;
    along->rank = place_rank(hop.to);
    if (hop.to.cube == OUTSIDE)
        return;
    if (along->over_chips)
        chips_enter(along, hop.to.sip);
    along->first_rank = along->rank - hop.to.node;
    along->first_link = cube_link(hop.to, (uint32_t)(along->links - kb_cube_links));
    cube_enter(along, hop.to);
    const struct cube_node *goal = &kb_cube_nodes[along->goal];
    along->goal_down = goal->down;
    along->route = along->routes + goal->target * kb_shape.noc_rows * kb_shape.noc_cols;
}

/* The table of routes of a plane and direction. Routers are numbered over all planes, so it begins where those of
 * plane 0 would be. */
static const uint16_t *routes_of(const struct way *way)
{
    uint32_t before = ((uint32_t)way->plane * DIRECTIONS + way->direction) * kb_shape.targets - way->plane;
    return &kb_route[before * kb_shape.noc_rows * kb_shape.noc_cols];
}

struct traversal traversal_of(struct way way)
{
    struct traversal along = {.way = way, .end_rank = place_rank(way.to), .over_chips = goes_over_chips(&way),
                              .links = kb_cube_links + way.plane * kb_shape.plane_links, .routes = routes_of(&way)};
    traversal_enter(&along, (struct hop){.to = way.from});
    return along;
}

void traversal_leave(struct traversal *along)
{
    struct place at = along->hop.to;
    traversal_enter(along, at.cube == OUTSIDE ? next_outside(&along->way, at) : next_cube(along, at));
}
