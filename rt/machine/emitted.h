/* emitted.h: the names that emitted code defines and the runtime uses.
 *
 * No file of the runtime includes an emitted one. */
#ifndef KB_EMITTED_H
#define KB_EMITTED_H

#include "base/tables.h"
#include "memory.h"
#include "pe.h"

/* Who the machine is. */
extern const char kb_machine_name[];                    /* system.name */
extern const char kb_topology_hash[];                   /* hash of every attribute and count, hexadecimal */
extern const char kb_version[];                         /* of the kbgen that emitted it */

/* Tables, const; besides kb_attrs, of kb/attrs.h, and kb_shape, of machine.h. */
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

extern const bool kb_own_models;                        /* whether a part's model is the user's own */

/* State, zero at the start; rows as in rank order over the whole machine. */
extern struct pe kb_pe[];                               /* sips * cubes * pes */
extern struct server kb_servers[];                      /* PE_SERVERS of each PE, one PE after the other (pe.h) */
extern struct channels kb_sram[];                       /* sips * cubes */
extern struct hbm_slice kb_hbm[];                       /* as kb_pe */
extern struct pseudo_channel kb_pseudo_channels[];      /* pcs of each slice */
extern struct fabric_node kb_nodes[];                   /* by rank */
extern struct fabric_link kb_links[];                   /* directed; fabric.h gives the order */

static inline struct pseudo_channel *slice_channels(uint32_t slice)
{
    return &kb_pseudo_channels[slice * kb_attrs.hbm_ctrl_pcs];
}

void memories_reset(void);                              /* zeroes what memories by models of the user's own keep */

/* Models, specialised for this machine's structure. */
extern const uint32_t kb_pe_servers;                    /* servers of one PE, scheduler and feeder apart */
void pe_issue(struct pe *pe);                           /* one Issue step of a PE: starts all that can start */

/* When services end, each by the model that the topology names; others are declared where they are used:
 * service_start (engine.h), memory_read and memory_write (memory.h). */
uint64_t scheduler_end_ps(const struct command *command, bool feeds, uint64_t tile);    /* or takes the command */

#endif
