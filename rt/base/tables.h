/* tables.h: the machine as emitted code describes it: attributes, shape, and tables.
 *
 * All of it is const. Every cube has the same nodes and links, which are described once; an instance is a cube and a
 * position within it. Times are in ps, bandwidths in bytes/s (0: infinite), clocks in kHz, sizes in bytes. */
#ifndef KB_TABLES_H
#define KB_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "kb/attrs.h"

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
#include "kb/links.def"
#undef LINK
    LINK_CLASSES
};

enum node_kind {
#define NODE(kind) NODE_##kind,
#include "kb/kinds.def"
    NODE_KINDS
};

enum side { SIDE_N, SIDE_E, SIDE_S, SIDE_W, SIDES };

enum ring_buffer { BUFFER_TCM, BUFFER_SRAM, BUFFER_HBM };

/* Counts. */
struct shape {
    uint32_t sips, cube_rows, cube_cols, cubes;         /* cubes: of one SIP */
    uint32_t noc_rows, noc_cols, pes;                   /* pes: of one cube */
    uint32_t attachments, targets; /* of an io_cpu to cubes; distinct routers with something attached */
    uint32_t cube_nodes, cube_links;
    uint32_t ops;                                       /* math ops: the known ones and the topology's own */
    bool accel_shared;                                  /* pe_gemm and pe_math are one server */
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
    uint8_t class;
    uint16_t from, to;                                  /* nodes of the cube */
};

enum { NO_TARGET = 0xffff, NO_LINK = 0xffff, NO_NODE = 0xffff };

/* The order of a cube's links: first those between routers and of attachments, in any order; then, per side n e s w, the
 * ucie link out of that port; last, per side, the link from that port to the io_cpu. Sides without such a link have a row
 * as well. */
static inline uint32_t cube_link_ucie(const struct shape *s, enum side side)
{
    return s->cube_links - 2 * SIDES + side;
}
static inline uint32_t cube_link_io(const struct shape *s, enum side side) { return s->cube_links - SIDES + side; }

struct attachment {
    uint16_t cube;
    uint8_t side;
};

/* A request goes X first; its response takes the same way back, so it goes Y first. */
enum direction { REQUEST, RESPONSE, DIRECTIONS };

/* The next step from one cube to another of the same SIP: a side, or HERE. */
enum { HERE = SIDES };

/* Nodes of the system, of a SIP, and of a PE; and those kinds before routers that a cube has one node of. */
enum { SYSTEM_NODES = NODE_pcie_ep, SIP_NODES = NODE_m_cpu - NODE_pcie_ep, PE_NODES = NODE_KINDS - NODE_pe_cpu,
       CUBE_SINGLES = NODE_router - NODE_m_cpu };

/* Positions within a cube; place_rank() of machine/route.h gives their ranks. */
static inline uint32_t cube_m_cpu(void) { return 0; }
static inline uint32_t cube_sram(void) { return NODE_sram - NODE_m_cpu; }
static inline uint32_t cube_port(const struct shape *s, enum side side)
{
    return CUBE_SINGLES + s->noc_rows * s->noc_cols + side;
}
static inline uint32_t cube_hbm_ctrl(const struct shape *s, uint32_t pe) { return cube_port(s, SIDES) + pe; }
static inline uint32_t cube_pe_node(const struct shape *s, uint32_t pe, enum node_kind kind)
{
    return cube_hbm_ctrl(s, s->pes) + pe * PE_NODES + (kind - NODE_pe_cpu);
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
extern const struct cube_node kb_cube_nodes[];          /* kb_shape.cube_nodes */
extern const struct cube_link kb_cube_links[];          /* kb_shape.cube_links */
extern const struct attachment kb_attachments[];        /* kb_shape.attachments */
extern const uint16_t kb_nearest_attachment[];          /* per cube of a SIP */
/* The link from a router towards that of a target: [direction][target][router, row-major]; NO_LINK: it is there. */
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

#endif
