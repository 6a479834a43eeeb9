/* emitted.h: the state and the models that emitted code defines; base/tables.h has its tables. No file of the runtime
 * includes an emitted one. */
#ifndef KB_EMITTED_H
#define KB_EMITTED_H

#include "base/tables.h"
#include "memory.h"
#include "pe.h"

extern const bool kb_own_models;                        /* some component has a model of a user */
extern const bool kb_has_model[NODE_KINDS];             /* which have */
extern const uint32_t kb_pe_servers;                    /* servers of one PE, scheduler and feeder excepted */

/* ---- state, all 0 at the start, in the order of ranks over the whole machine */

extern struct pe kb_pe[];                               /* sips * cubes * pes */
extern struct server kb_servers[];                      /* kb_pe_servers of each PE, one PE after the other */
extern struct channels kb_sram[];                       /* sips * cubes */
extern struct hbm_slice kb_hbm[];                       /* sips * cubes * slices */
extern struct pseudo_channel kb_pseudo_channels[];      /* pcs of each slice */
extern struct fabric_node kb_nodes[];                   /* by rank */
extern struct fabric_link kb_links[];                   /* directed; route.c numbers them */
struct state_image;

/* Saves or restores the state of models of users (state_fields.h); sets it to 0. */
void models_carry(struct state_image *image);
void models_reset(void);

/* The first of the pseudo channels of a slice, which only memory.c reads without slice_channels, and slice_free_ps. */
static inline struct pseudo_channel *slice_first_channel(uint32_t slice)
{
    return &kb_pseudo_channels[slice * kb_attrs.hbm_ctrl_pcs];
}

/* The pseudo channels of a slice, each in its state. */
static inline struct pseudo_channel *slice_channels(uint32_t slice)
{
    struct pseudo_channel *first = slice_first_channel(slice);
    if (kb_hbm[slice].level)
        for (struct pseudo_channel *pc = first + 1; pc < first + kb_attrs.hbm_ctrl_pcs; pc++)
            *pc = *first;
    kb_hbm[slice].level = false;
    return first;
}

/* When all pseudo channels of a slice are free. */
static inline uint64_t slice_free_ps(uint32_t slice)
{
    const struct pseudo_channel *first = slice_first_channel(slice);
    uint64_t free_ps = first->free_ps;
    for (uint64_t i = 1; i < kb_attrs.hbm_ctrl_pcs && !kb_hbm[slice].level; i++)
        free_ps = first[i].free_ps > free_ps ? first[i].free_ps : free_ps;
    return free_ps;
}

/* ---- models, specialised for this machine's structure */

/* One Issue step of a PE: starts everything that can start. */
void pe_issue(struct pe *pe);

/* The deferred ends of services before a time take place, and what those before past_ps let start starts (deferred.h). */
void pe_end_deferred(struct pe *pe, uint64_t before_ps, uint64_t past_ps);

/* Starts the service of a token's stage, which is out of its queue: service_ended follows, in place or by an event. */
void service_start(struct token *token);

/* Returns when the scheduler will have taken a command or, if it feeds, begun a tile. */
uint64_t scheduler_end_ps(const struct command *command, bool feeds, uint64_t tile);

/* Serves a read that reaches its memory at t_ps: the response leaves at first_ps, and is supplied until last_ps. */
struct served memory_read(const struct range *range, const struct payload *payload, uint64_t t_ps);

/* Serves a write whose head is handled at t_ps: the memory has taken all of it at last_ps, if it is delivered by then. */
struct served memory_write(const struct range *range, const struct payload *payload, uint64_t t_ps);

/* ---- models of users (kb/impl.h); the runtime itself serves a part for which kb_has_model returns false */

struct kb_dma_queue;
struct kb_dma_request;
struct kb_head_queue;
struct kb_head_request;
struct kb_page_request;
struct kb_ring_request;
struct kb_tcm_request;

/* Of the nodes of a kind that messages pass through; all NULL: the built-in model. */
struct fabric_model {
    const char *name;
    struct kb_handled (*handle)(const struct kb_head_request *ask);
    uint32_t (*choose)(const struct kb_head_queue *ask);
};

extern const struct fabric_model kb_fabric_models[NODE_KINDS];

/* Returns for how long a kernel's call submits a command. */
uint64_t pe_cpu_issue_ps(const struct pe *pe, enum command_kind kind);

/* The following are called only if the part has a model of a user. */
struct served pe_tcm_serve(const struct kb_tcm_request *ask);
uint64_t pe_mmu_page_ps(const struct kb_page_request *ask);
uint64_t pe_ipcq_delay_ps(const struct kb_ring_request *ask);
uint64_t pe_dma_prepare_ps(const struct kb_dma_request *ask);
uint32_t pe_dma_choose(const struct kb_dma_queue *ask);

#endif
