/* plan.h: a machine laid out: the nodes and links of a cube, and the routing tables.
 *
 * All cubes are alike, so one is described; an instance is a SIP, a cube and a position within the cube. elab.c,
 * wire.c, size.c and route.c fill the plan in this order; this header declares these four passes. */
#ifndef GEN_PLAN_H
#define GEN_PLAN_H

#include "model.h"

enum node_kind {
#define NODE(kind) NODE_##kind,
#include "../rt/kb/kinds.def"
    NODE_KINDS
};

enum link_class {
#define LINK(name, bw, latency) LINK_##name,
#define OWN_LINK(name) LINK_##name,
#include "../rt/kb/links.def"
    LINK_CLASSES
};

/* How fast a link is: as all of its class, or as a wrap link. */
enum link_speed {
    LAST_CLASS_SPEED = LINK_CLASSES - 1,
#define WRAP(name, bw, latency) SPEED_##name,
#include "../rt/kb/links.def"
    LINK_SPEEDS
};

/* A step on a grid of routers or of cubes. HERE: the target is reached. */
enum side { SIDE_N, SIDE_E, SIDE_S, SIDE_W, SIDES, HERE = SIDES };

/* A response that goes backwards on the way of its request needs other tables. */
enum direction { REQUEST, RESPONSE, DIRECTIONS };

enum { NO_TARGET = 0xffff, NO_LINK = 0xffff, NO_NODE = 0xffff, NO_CHIP_LINK = 0xffff };
/* Nodes of the system, of a SIP, and of a PE. */
enum { SYSTEM_NODES = NODE_pcie_ep, SIP_NODES = NODE_m_cpu - NODE_pcie_ep, PE_NODES = NODE_KINDS - NODE_pe_cpu };
_Static_assert(CUBE_SINGLES == NODE_router - NODE_m_cpu, "the nodes that a cube has one of come before its routers");
enum { SYSTEM_LINKS = 2, SIP_LINKS = 4 };               /* directed, without those of attachments and cubes */

/* A node of a cube; its position in plan.nodes is its rank within the cube. */
struct plan_node {
    enum node_kind kind;
    unsigned index;                                     /* among the cube's nodes of this kind; for a part of a PE, the PE */
    unsigned router;                                    /* the node of its router in plane 0, or NO_NODE */
    unsigned target;                                    /* index of that router in plan.targets, or NO_TARGET */
    unsigned up, down;                                  /* links to it and from it, or NO_LINK */
    struct where where;                                 /* the key that placed it; file NULL: a default */
};

/* A directed link that begins in a cube. `to` is NO_NODE where it leaves the cube. */
struct plan_link {
    enum link_class class;
    enum link_speed speed;
    unsigned from, to;
    enum side side;                                     /* its direction; HERE: to or from an attached node */
};

/* A grid of routers or of cubes, row-major. */
struct grid {
    unsigned rows, cols;
    unsigned closed;                                    /* to rings: of enum wrap */
};

struct plan {
    const struct model *model;
    unsigned sips, cubes;                               /* SIPs of the machine, cubes of a SIP */
    unsigned pes, slices, srams, routers;               /* of a cube: PEs, HBM slices, srams (0 or 1), routers of a plane */
    unsigned planes;                                    /* networks of a cube */
    struct grid cube_grid, router_grid;
    struct plan_node *nodes;                            /* elab.c */
    unsigned node_count;

    struct plan_link *links;                            /* wire.c */
    unsigned link_count;
    unsigned plane_links;                               /* the first ones, of plane 0; those of the others follow, alike */
    unsigned *router_links;                             /* [router][side]: the link on that side in plane 0, or NO_LINK */

    uint64_t all_cubes, all_pes, all_slices;            /* size.c: totals of the machine */
    uint64_t all_nodes, all_links;
    uint64_t state_bytes;                               /* bound on a simulator's static state */

    unsigned *targets;                                  /* route.c: the routers with attached nodes, row-major */
    unsigned target_count;
    unsigned *routes;                                   /* [plane][direction][target][router]: next link, as numbered in
                                                           plane 0; NO_LINK: reached */
    enum side *cube_routes;                             /* [direction][to][from] */
    unsigned *nearest;                                  /* [cube]: the attachment that it uses */
    unsigned *chip_routes;                              /* [direction][to][from]: 2 * the next link of model.chip_links, + 1
                                                           from its end b; NO_CHIP_LINK: reached, or not joined */
};

/* Positions within a cube. An sram that does not exist takes none. */
static inline unsigned plan_router(const struct plan *p, unsigned router)
{
    return CUBE_SINGLES - 1 + p->srams + router;
}

static inline unsigned plan_port(const struct plan *p, enum side side)
{
    return plan_router(p, p->planes * p->routers) + side;
}

struct plan *elaborate(const struct model *model);
void wire(struct plan *plan);
void measure(struct plan *plan);
void route(struct plan *plan);

/* A node's name within its cube: "noc.r0c1", "pe5.pe_dma". */
const char *node_name(const struct plan *plan, unsigned node);

extern const char *const node_kind_names[NODE_KINDS], *const link_class_names[LINK_CLASSES];
extern const char side_letters[];                       /* indexed by enum side */

/* The neighbour of a cell on one side, or -1 at the edge of an open grid. */
int grid_neighbour(struct grid grid, unsigned at, enum side side);

/* The side that faces a side. */
enum side opposite_side(enum side side);

#endif
