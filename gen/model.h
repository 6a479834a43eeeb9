/* model.h: a checked topology: every number in base units, every default filled in, every name resolved.
 *
 * check.c makes it from the YAML nodes; the passes behind it only read it. */
#ifndef GEN_MODEL_H
#define GEN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "../rt/common/diag.h"
#include "load.h"

enum attr {
#define ATTR(name) ATTR_##name,
#include "../rt/kb/attrs.def"
#undef ATTR
    ATTRS
};

enum dtype {
#define DTYPE(name, bytes, is_float) DTYPE_##name,
#include "../rt/kb/dtypes.def"
#undef DTYPE
    DTYPES
};

/* The components of the topology that have an `impl`. */
enum component {
#define COMPONENT(part, doc) COMPONENT_##part,
#include "schema.def"
    COMPONENTS
};

/* The nodes that a cube has one of. */
enum cube_single {
#define CUBE_SINGLE(kind) SINGLE_##kind,
#include "../rt/kb/kinds.def"
    CUBE_SINGLES
};

/* A number and its origin: a place in a file, `--set`, or the schema's default (where.file is NULL). */
struct value {
    uint64_t n;
    struct where where;
    const char *key;                                    /* dotted path in the topology: "cube.noc.link_bw_gbs" */
};

/* A text and its origin, likewise. */
struct text {
    const char *text;                                   /* NULL: ~ */
    struct where where;
    const char *key;
};

struct router_at {
    uint64_t row, col;
    struct where where;
    const char *key;                                    /* "cube.m_cpu.at"; NULL: no key gives it */
};

/* Where the PEs or the HBM slices of a cube are: by a rule, or a router for each. */
struct layout {
    unsigned word;                                      /* the rule: which word of the key's form */
    struct router_at *at;                               /* NULL: by the rule */
    unsigned count;
    struct where where;
};

enum { HBM_LAYOUT_PES, HBM_LAYOUT_CORNERS };            /* the words of cube.hbm_layout */

struct model_attachment {
    uint64_t cube;
    unsigned side;                                      /* 0..3: n e s w */
    struct where where;
    const char *key;                                    /* with its number: sip.io.attach[0] */
};

/* A plane of the networks of a cube. */
struct model_plane {
    bool y_first;
    enum ring_direction { RING_SHORTEST, RING_PLUS, RING_MINUS } direction;    /* along closed rows and columns */
    struct where where;
    const char *key;                                    /* with its number */
};

/* A link between two SIPs. */
struct model_chip_link {
    struct model_chip_end {
        uint64_t sip, cube;
        unsigned side;                                  /* 0..3: n e s w */
    } end[2];                                           /* a, b */
    struct value bw, latency;
    struct where where;
    const char *key;
};

/* What data carry, by which their plane is chosen. */
enum plane_of { PLANE_OF_read, PLANE_OF_write, PLANE_OF_message, PLANES_OF };

/* Which lines of a grid are closed to rings: the words of `wrap`. */
enum wrap { WRAP_ROWS = 1, WRAP_COLS = 2 };

struct model_op {
    const char *name;
    struct value cost;
};

/* A parameter of a user's component model. A number with a unit is rounded to whole base units; a number without one is
 * kept exactly as a ratio, and as `n` if it is whole. */
struct impl_param {
    const char *name;
    const char *unit;                                   /* "ps"; NULL: a number without a unit */
    bool whole;                                         /* `n` is valid */
    uint64_t n, num, den;
    struct where where;
    const char *key;
};

/* A component's `params`. */
struct impl_params {
    struct impl_param *list;
    unsigned count;
    struct where where;                                 /* file NULL: none are given */
    const char *key;
};

/* A component whose impl is no builtin. */
struct impl {
    enum component part;
    const char *name;
    const char *file;                                   /* of the --impl option */
    const struct text *named;                           /* where the topology names it */
    const struct impl_params *params;
};

struct model {
    const char *path;                                   /* of the topology, as given */
    const struct topology_text *text;
    struct layers layers;
    const struct node *top;                             /* the layers, merged: what the model is filled from */
    const char *name;                                   /* system.name */
    struct text system_name;                            /* the same, with its origin */
    struct text ns_per_mm;                              /* system.wire.ns_per_mm as written */
    struct text gemm_resource, math_resource;           /* their shared_resource */
    struct text impl[COMPONENTS];                       /* "builtin.pe_dma" */
    struct impl_params params[COMPONENTS];
    struct value sips, cube_rows, cube_cols, noc_rows, noc_cols, pes, slices;
    struct value noc_wrap, cube_wrap;                   /* of enum wrap */
    struct value response;                              /* 1: own */
    struct value plane_of[PLANES_OF];
    struct model_plane *planes;
    unsigned plane_count;
    struct model_chip_link *chip_links;
    unsigned chip_link_count;
    struct value attr[ATTRS];
    struct value k_per_cycle[DTYPES], lanes[DTYPES];    /* 0: the engine lacks the dtype */
    struct model_op *ops;                               /* those of ops.def in their order, then the topology's own */
    unsigned ops_count;
    bool accel_shared;                                  /* pe_gemm and pe_math name the same shared_resource */
    struct model_attachment *attach;
    unsigned attach_count;
    struct router_at single_at[CUBE_SINGLES];
    struct layout pe_layout, hbm_layout;
    struct impl *impls;                                 /* components that are no builtins, in the order of enum component */
    unsigned impls_count;
};

#endif
