/* route.h: nodes, their ranks and names, links, and the way from one node to another. */
#ifndef KB_ROUTE_H
#define KB_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tables.h"

enum { OUTSIDE = 0xffff };

/* A node: its SIP, its cube in the SIP, its position in the cube. Outside of cubes, cube is OUTSIDE and node the
 * kind. */
struct place {
    uint16_t sip, cube, node;
};

static inline uint32_t sip_nodes(void)
{
    return SIP_NODES + kb_shape.cubes * kb_shape.cube_nodes;
}

static inline uint32_t node_count(void)
{
    return SYSTEM_NODES + kb_shape.sips * sip_nodes();
}

/* A node's rank: host, switch, then per SIP pcie_ep, io_cpu and the nodes of its cubes. */
static inline uint32_t place_rank(struct place place)
{
    uint32_t sip = SYSTEM_NODES + place.sip * sip_nodes();
    if (place.cube != OUTSIDE)
        return sip + SIP_NODES + place.cube * kb_shape.cube_nodes + place.node;
    return place.node < SYSTEM_NODES ? place.node : sip + (place.node - NODE_pcie_ep);
}

struct place rank_place(uint32_t rank);

/* Writes a part of a name, a word and a number. Returns the end of what it has written. */
char *name_numbered(char *to, const char *word, uint32_t number);

/* "sip0.cube3.pe5.pe_dma": the node's dotted path, in a buffer that the next call overwrites. */
const char *place_name(struct place place);

static inline struct place place_host(void)
{
    return (struct place){0, OUTSIDE, NODE_host};
}

static inline struct place place_io_cpu(uint32_t sip)
{
    return (struct place){sip, OUTSIDE, NODE_io_cpu};
}

static inline struct place place_m_cpu(uint32_t sip, uint32_t cube)
{
    return (struct place){sip, cube, cube_m_cpu()};
}

/* A part of a PE; `pe` counts over the machine. */
struct place place_pe(uint32_t pe, enum node_kind kind);

/* Whether a node is one of a kind in a cube. */
static inline bool place_is_kind(struct place place, enum node_kind kind)
{
    return place.cube != OUTSIDE && kb_cube_nodes[place.node].kind == kind;
}

/* The number of a node's cube over the machine, which is that of its sram. */
static inline uint32_t place_cube(struct place place)
{
    return place.sip * kb_shape.cubes + place.cube;
}

/* The number of the slice of an hbm_ctrl. */
static inline uint32_t place_slice(struct place place)
{
    return place_cube(place) * kb_shape.slices + kb_cube_nodes[place.node].index;
}

/* ---- links: directed, numbered over the machine: kb_links */

uint64_t link_count(void) __attribute__((const));
uint32_t cube_first_link(struct place cube);            /* of those that begin in it, in the order of kb_cube_links */

/* How fast a link is, an enum link_speed or beyond, and the class of links of a speed. Links between chips that are equally
 * fast have one speed. */
enum { CHIP_LINKS_MOST = 256 * 64 / 2 };                /* 256 SIPs of 64 sides without a neighbour */

uint32_t link_speed(uint64_t link);
uint32_t link_speed_count(void);
const struct chip_speed *chip_speed(uint32_t speed);    /* from LINK_SPEEDS on */

/* Finds the speeds of links between chips, at the start of each run. */
void route_init(void);

static inline enum link_class speed_class(uint32_t speed)
{
    return speed < LINK_CLASSES ? (enum link_class)speed : speed < LINK_SPEEDS ? LINK_noc : LINK_chip;
}

static inline enum link_class link_class(uint64_t link)
{
    return speed_class(link_speed(link));
}

/* The nodes that a link leads from and to; the numbers of links that lead nowhere must not be asked for. */
struct link_ends {
    struct place from, to;
};

struct link_ends link_ends(uint64_t link);

/* ---- ways */

/* A way from one node to another, in a plane: of a request, or backwards on that of a request. */
struct way {
    struct place from, to;
    uint16_t direction, plane;                          /* enum direction; below kb_shape.planes */
};

static inline struct way way_of(struct place from, struct place to, uint8_t plane)
{
    return (struct way){from, to, REQUEST, plane};
}

/* The way of what answers a request in a plane: backwards on the way that the request would take in it, or a way of its
 * own. */
static inline struct way way_answer(struct way request, uint8_t plane)
{
    return (struct way){request.to, request.from, kb_shape.own_answers ? REQUEST : RESPONSE, plane};
}

/* A step of a way. */
struct hop {
    uint32_t link, speed;                               /* speed: as link_speed says */
    struct place to;
};

/* Goes along a way:
 *
 *     for (struct traversal along = traversal_of(way); traversal_next(&along);)
 *         along.hop, along.rank ...
 */
struct traversal {
    struct way way;
    struct hop hop;                                     /* the last one; at first its `to` is where the way begins */
    uint32_t rank, end_rank;                            /* of hop.to, of the way's end */
    const struct cube_link *links;                      /* those of a cube in the plane */
    const uint16_t *routes;                             /* the table of the plane and direction, by target and router */
    uint32_t first_link, first_rank;                    /* inside a cube: its first link of the plane, its first rank, */
    uint32_t side;                                      /* by which it goes to the next cube, or HERE, */
    uint32_t goal, goal_down;                           /* its last node on the way, and the link down to that, */
    const uint16_t *route;                              /* and the link to take at each router; NO_LINK: goal_down */
    bool over_chips;                                    /* from SIP to SIP by links between chips: */
    struct attachment chip_exit;                        /* where it leaves this SIP, */
    uint32_t chip_link;                                 /* and by which link, as chip_network.routes has it */
};

struct traversal traversal_of(struct way way);

/* Takes a step that is not inside a cube. It may leave a cube at once by the port that it came in by. */
void traversal_leave(struct traversal *along);

static inline bool traversal_is_inside(const struct traversal *along)
{
    return along->hop.to.cube != OUTSIDE && along->hop.to.node != along->goal;
}

/* Puts a traversal that is inside a cube at another node of that. */
static inline void traversal_set(struct traversal *along, uint32_t node)
{
    along->hop.to.node = (uint16_t)node;
    along->rank = along->first_rank + node;
}

/* Takes the next hop. Returns false if the way has ended. */
static inline bool traversal_next(struct traversal *along)
{
    if (along->rank == along->end_rank)
        return false;
    if (!traversal_is_inside(along)) {
        traversal_leave(along);
        return true;
    }
    const struct cube_node *node = &kb_cube_nodes[along->hop.to.node];
    uint32_t link = node->up != NO_LINK ? node->up : along->route[node->index];
    if (link == NO_LINK)
        link = along->goal_down;
    along->hop.link = along->first_link + link;
    along->hop.speed = along->links[link].speed;
    traversal_set(along, along->links[link].to);
    return true;
}

#endif
