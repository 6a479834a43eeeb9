/* tables.h: the machine as emitted code describes it: attributes, shape, and tables.
 *
 * All of it is const. Every cube has the same nodes and links, which are described once; an instance is a cube and a
 * position within it. Times are in ps, bandwidths in bytes/s (0: infinite), clocks in kHz, sizes in bytes. */
#ifndef KB_TABLES_H
#define KB_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "kb/attrs.h"
#include "kb/keys.def"

enum dtype {
#define DTYPE(name, bytes, is_float) DTYPE_##name,
#include "kb/dtypes.def"
#undef DTYPE
    DTYPES
};

enum math_op {
#define OP(name, ...) OP_##name,
#include "kb/ops.def"
    KNOWN_OPS
};

enum link_class {
#define LINK(name, bw, latency) LINK_##name,
#define OWN_LINK(name) LINK_##name,
#include "kb/links.def"
    LINK_CLASSES
};

/* How fast a link is, in a list: as all of its class, as a wrap link, or, from LINK_SPEEDS on, as a chip link. */
enum link_speed {
    LAST_CLASS_SPEED = LINK_CLASSES - 1,
#define WRAP(name, bw, latency) SPEED_##name,
#include "kb/links.def"
    LINK_SPEEDS
};

enum node_kind {
#define NODE(kind) NODE_##kind,
#include "kb/kinds.def"
    NODE_KINDS
};

enum side { SIDE_N, SIDE_E, SIDE_S, SIDE_W, SIDES };

enum ring_buffer { PE_IPCQ_BUFFER(CHOICE_NUMBER) };

/* Counts. */
struct shape {
    uint32_t sips, cube_rows, cube_cols, cubes;         /* cubes: of one SIP */
    uint32_t noc_rows, noc_cols, pes;                   /* pes: of one cube, as are slices and srams */
    uint32_t slices, srams;                             /* HBM slices; srams: 0 or 1 */
    uint32_t planes, plane_links;                       /* networks of a cube; links between routers and of attachments of one */
    uint8_t plane_of_read, plane_of_write, plane_of_message;    /* of data; all else is in plane 0 */
    uint32_t attachments, targets; /* of an io_cpu to cubes; distinct routers with something attached */
    uint32_t cube_nodes, cube_links;
    uint32_t ops;                                       /* math ops: the known ones and the topology's own */
    bool accel_shared;                                  /* pe_gemm and pe_math are one server */
    bool own_answers;                                   /* answers have ways of their own, instead of going back */
    bool closed_rows, closed_cols;                      /* rings of cubes */
    const struct chip_network *chips;                   /* links between SIPs; NULL: there are none */
};

extern const struct shape kb_shape;

/* A node of a cube, in rank order. */
struct cube_node {
    uint8_t kind;
    uint16_t index;    /* among the cube's nodes of this kind; PE number for the parts of a PE */
    uint16_t target;   /* its router, as an index of kb_route; NO_TARGET: it has none */
    uint16_t up, down; /* links to its router and back; of a router NO_LINK */
};

/* A directed link that begins in a cube. `to` of a ucie or io link is NO_NODE: it is in another cube, or the io_cpu. */
struct cube_link {
    uint8_t speed;                                      /* enum link_class or enum link_speed */
    uint16_t from, to;                                  /* nodes of the cube */
};

enum { NO_TARGET = 0xffff, NO_LINK = 0xffff, NO_NODE = 0xffff, NO_CHIP_LINK = 0xffff };

/* The order of a cube's links: first, plane by plane and in the same order in each, those between routers and of
 * attachments; then, per side n e s w, the ucie link out of that port; last, per side, the link from that port to the
 * io_cpu. Sides without such a link have a row as well. Tables name the links of all planes by their numbers in plane 0. */
static inline uint32_t cube_link_ucie(const struct shape *s, enum side side)
{
    return s->cube_links - 2 * SIDES + side;
}
static inline uint32_t cube_link_io(const struct shape *s, enum side side) { return s->cube_links - SIDES + side; }

struct attachment {
    uint16_t cube;
    uint8_t side;
};

/* A link between the ports of cubes of two SIPs; its bandwidth in bytes/s and its latency. */
struct chip_link {
    struct chip_end {
        uint16_t sip, cube;
        uint8_t side;
    } end[2];                                           /* a, b */
};

struct chip_speed {
    uint64_t bw_bps, latency_ps;
};

struct chip_network {
    uint32_t count;
    const struct chip_link *links;
    /* The next link from a SIP towards another: [direction][to][from], 2 * its number, + 1 if it is taken from its end b;
     * NO_CHIP_LINK: the SIP is reached, or they are not joined. */
    const uint16_t *routes;
    const struct chip_speed *speeds;
};

/* Where a response goes back on its request's way, it has tables of its own. */
enum direction { REQUEST, RESPONSE, DIRECTIONS };

/* The next step from one cube to another of the same SIP: a side, or HERE. */
enum { HERE = SIDES };

/* Nodes of the system, of a SIP, and of a PE; and those kinds before routers that a cube has one node of. */
enum { SYSTEM_NODES = NODE_pcie_ep, SIP_NODES = NODE_m_cpu - NODE_pcie_ep, PE_NODES = NODE_KINDS - NODE_pe_cpu,
       CUBE_SINGLES = NODE_router - NODE_m_cpu };

/* Positions within a cube; place_rank() of machine/route.h gives their ranks. */
static inline uint32_t cube_m_cpu(void) { return 0; }
static inline uint32_t cube_sram(void) { return NODE_sram - NODE_m_cpu; } /* if the cube has one */
static inline uint32_t cube_router(const struct shape *s, uint32_t router) { return CUBE_SINGLES - 1 + s->srams + router; }
static inline uint32_t cube_port(const struct shape *s, enum side side)
{
    return cube_router(s, s->planes * s->noc_rows * s->noc_cols) + side;
}
static inline uint32_t cube_hbm_ctrl(const struct shape *s, uint32_t slice) { return cube_port(s, SIDES) + slice; }
static inline uint32_t cube_pe_node(const struct shape *s, uint32_t pe, enum node_kind kind)
{
    return cube_hbm_ctrl(s, s->slices) + pe * PE_NODES + (kind - NODE_pe_cpu);
}

/* ---- what emitted code defines, const */

/* Who the machine is. */
extern const char kb_machine_name[];                    /* system.name */
extern const char kb_topology_hash[];                   /* hash of every attribute and count, hexadecimal */
extern const char kb_topology[];                        /* the topology as text (common/renumber.h) */
extern const char kb_version[];                         /* of the kbgen that emitted it */

/* Tables; besides them kb_shape, above, and kb_attrs (kb/attrs.h). */
extern const uint64_t kb_gemm_k_per_cycle[DTYPES];      /* 0: the engine lacks this dtype */
extern const uint64_t kb_math_lanes[DTYPES];            /* 0: the engine lacks this dtype */
/* Math ops, kb_shape.ops: the known ones in their order, then those that the topology names in pe_math's cost. */
extern const char *const kb_op_names[];
extern const uint64_t kb_op_costs[];
/* Of kb_shape.chips, only if that is not NULL. */
extern const struct chip_speed kb_chip_speeds[];
extern const struct cube_node kb_cube_nodes[];          /* kb_shape.cube_nodes */
extern const struct cube_link kb_cube_links[];          /* kb_shape.cube_links */
extern const struct attachment kb_attachments[];        /* kb_shape.attachments */
extern const uint16_t kb_nearest_attachment[];          /* per cube of a SIP */
/* The link from a router towards that of a target: [plane][direction][target][router, row-major]; NO_LINK: it is there. */
extern const uint16_t kb_route[];
/* The next step from a cube towards another: [direction][to][from], a side or HERE. */
extern const uint8_t kb_cube_route[];

/* PEs of the whole machine. */
static inline uint32_t pe_count(void)
{
    return kb_shape.sips * kb_shape.cubes * kb_shape.pes;
}

static inline uint32_t cube_count(void)
{
    return kb_shape.sips * kb_shape.cubes;
}

/* HBM slices and srams of the whole machine. */
static inline uint32_t slice_count(void)
{
    return cube_count() * kb_shape.slices;
}

static inline uint32_t sram_count(void)
{
    return cube_count() * kb_shape.srams;
}

#endif
