/* emitted.h: the state and the models that emitted code defines; base/tables.h has its tables.
 *
 * No file of the runtime includes an emitted one. */
#ifndef KB_EMITTED_H
#define KB_EMITTED_H

#include "base/tables.h"
#include "memory.h"
#include "pe.h"

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
