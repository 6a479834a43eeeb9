/* impl.h: user component models: how long a part of the machine takes, and which of those that wait is next.
 *
 * `impl: NAME` of a part in the topology and `kbgen --impl NAME.c` replace the built-in model by NAME.c. It defines
 * functions whose types depend on the part. `struct NAME` is the model's state: each node of the kind has one.
 *
 *     part                          function
 *     pe_gemm, pe_math,
 *     pe_scheduler, pe_fetch_store  RESULT NAME_service(const REQUEST *ask)
 *     sram, hbm_ctrl, pe_cpu,
 *     pe_tcm, pe_mmu, pe_ipcq       RESULT NAME_service(struct NAME *state, const REQUEST *ask)
 *     pe_dma, host, switch,
 *     pcie_ep, io_cpu, m_cpu,
 *     router, port                  the same, and uint32_t NAME_next(struct NAME *state, const QUEUE *ask)
 *
 * A model decides times and the order of those that wait, never data. The same calls must give the same answers: use no
 * clock, no random numbers, and no static variables, which a sweep (`run --points`) would carry from one run to the
 * next. Times are in ps. A time that does not fit into 64 bits or lies before the request, and a choice of what may not
 * go, stop the run with a message.
 *
 * The machine's attributes are in kb_attrs. The topology's `params: { tRCD: 19.4 ns }` are macros, NAME_tRCD, which are
 * defined before the file's first line: constants of type uint64_t in base units (ps, bytes, bytes/s, kHz, um), rounded
 * once as attributes are. A number without a unit also has an exact form, NAME_x_num / NAME_x_den; one that is not
 * whole has only this form. Use `#ifndef NAME_tRCD` for a default. */
#ifndef KB_IMPL_H
#define KB_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/tl.h>

/* ---- pe_gemm, pe_math: returns the time of one service from its start to its end, overhead included */

struct kb_gemm_request {
    uint32_t pe;                                        /* its number over the machine */
    enum kb_dtype dtype;                                /* of the operands */
    uint64_t m, k, n;
    uint64_t k_per_cycle;                               /* the attribute for that dtype */
};

struct kb_math_request {
    uint32_t pe;
    enum kb_dtype dtype;
    const char *op;                                     /* "exp" */
    uint64_t elements;
    uint64_t lanes, cost;                               /* the attributes for that dtype and that op */
};

/* ---- pe_fetch_store: a tile between the TCM and the register file */

struct kb_move_request {
    uint32_t pe;
    bool stores;                                        /* the stage: STORE, else FETCH */
    uint64_t bytes;
};

/* The service takes channel_ps, then after_ps. During channel_ps it occupies the TCM's read channel (FETCH) or write
 * channel (STORE): it waits until the channel is free, and later users wait for its end. */
struct kb_moved {
    uint64_t channel_ps, after_ps;
};

/* ---- pe_scheduler: returns the time to take a command, or to feed a tile of a composite */

enum kb_command {
#define COMMAND(name, ...) KB_COMMAND_##name,
#include <kb/commands.def>
#undef COMMAND
    KB_COMMANDS
};

struct kb_schedule_request {
    uint32_t pe;
    enum kb_command command;
    bool feeds;                                         /* feeds tile number `tile`; else takes the command */
    uint64_t tile, tiles;                               /* of the command; a simple command has one tile */
};

/* A model of pe_scheduler may also have a generator of plans, KB_PLAN: <kb/plan.h>. */
#include <kb/plan.h>

/* ---- sram, hbm_ctrl: requests come in the order in which they reach the memory. at_ps may lie in the future for the
 * head of a write that its node still delays, so the next request may have an earlier at_ps. */

struct kb_memory_request {
    uint32_t memory;                                    /* the number of the slice or sram over the machine */
    bool writes;
    uint64_t offset, bytes;                             /* within the memory; at least one byte */
    uint64_t at_ps;                                     /* when it arrives; for a write, its head */
};

/* The response of a read leaves at first_ps and is fed until last_ps. A write is complete at last_ps, or when all of it
 * has been delivered if that is later. Neither lies before at_ps. busy_ps and wait_ps are only reported and may be
 * 0. */
struct kb_served {
    uint64_t first_ps, last_ps;
    uint64_t busy_ps;                                   /* how long its channels move data for it, summed */
    uint64_t wait_ps;                                   /* how long it waited for other requests, summed */
};

/* ---- host, switch, pcie_ep, io_cpu, m_cpu, router, port: messages
 *
 * The head of a message reaches a node, is handled by it, and takes the next link. A control message needs no link: its
 * latency is known when it is sent, so the answers must depend on the request alone. The state is then one of zeros,
 * which is forgotten. */

struct kb_head_request {
    uint32_t node;                                      /* its number among the nodes of the kind, over the machine */
    uint32_t source, destination;                       /* ranks of the nodes where the message begins and ends; while it
                                                           goes to several ends, the first of them */
    uint64_t bytes;                                     /* of its payload; 0: a control message */
    uint64_t at_ps;                                     /* when the head arrives; 0 for a control message */
};

/* The node has handled the head at ready_ps, which is not before at_ps. wait_ps is only reported and may be 0. */
struct kb_handled {
    uint64_t ready_ps;
    uint64_t wait_ps;                                   /* how long the head waited for others */
};

/* NAME_next: several heads wait for one link of the node, which is free now, or, with KB_READS and KB_WRITES, requests
 * of the host that wait at an m_cpu until the one before is complete. Returns the position of the one to go next. */
enum kb_head_queue_kind { KB_LINK, KB_READS, KB_WRITES };

struct kb_waiting_head {
    uint32_t source, destination;                       /* as above; of a request, both are the rank of the m_cpu */
    uint64_t bytes;                                     /* of a request, those of its cube */
    uint64_t arrived_ps;                                /* at the node */
    uint64_t ready_ps;                                  /* handled by the node; it does not leave before that */
};

struct kb_head_queue {
    enum kb_head_queue_kind kind;
    uint32_t node;                                      /* as above */
    uint64_t at_ps;
    uint32_t count;                                     /* at least 2 */
    const struct kb_waiting_head *waiting;              /* in the order of arrival */
};

/* ---- pe_cpu: returns the time that a call takes to submit its command */

struct kb_issue_request {
    uint32_t pe;
    enum kb_command command;
    uint64_t at_ps;
};

/* ---- pe_dma: returns how long a DMA engine prepares a transfer before it translates the address, or before the TCM is
 * read for a send */

enum kb_channel { KB_DMA_READ, KB_DMA_WRITE, KB_SEND };

struct kb_dma_request {
    uint32_t pe;
    enum kb_channel channel;
    uint32_t command;                                   /* the command's number in its PE's kernel, from 0 on */
    uint64_t tile;                                      /* of a composite, else 0 */
    uint64_t bytes;
    uint64_t at_ps;
};

/* NAME_next: an engine of a channel is idle, and transfers wait for it. Returns the position of a ready one, or KB_NONE;
 * it is asked again when something in the PE has changed. Tiles of one command, and messages to one PE, become ready in
 * their order only. */
struct kb_waiting_transfer {
    uint32_t command;
    uint64_t tile, bytes;
    bool composite;
    bool first;                                         /* of the queue of composites' tiles, or of that of others */
    bool ready;                                         /* it may go: the next stage, or the ring, has a slot for it */
    uint64_t arrived_ps;
};

struct kb_dma_queue {
    uint32_t pe;
    enum kb_channel channel;
    uint64_t at_ps;
    uint32_t count;                                     /* at least 1 */
    const struct kb_waiting_transfer *waiting;          /* composites' tiles, then others, each by (arrived_ps, command,
                                                           tile) */
};

#define KB_NONE UINT32_MAX

/* ---- pe_tcm: like a memory. Requests come in the order of events; at_ps may lie in the future. */

enum kb_tcm_user { KB_TCM_FETCH_STORE, KB_TCM_DMA, KB_TCM_OUTSIDE };

struct kb_tcm_request {
    uint32_t pe;
    enum kb_tcm_user user;                              /* OUTSIDE: a message from another PE or the host */
    bool writes;
    uint64_t bytes;
    uint64_t length_ps;                                 /* at the bandwidth of the channel; of a FETCH or STORE, what
                                                           pe_fetch_store says */
    uint64_t at_ps;
};

/* ---- pe_mmu: a DMA has the addresses of pages translated. Returns the time for one page, which adds to that of the
 * pages before it; the time of a drop is ignored. */

struct kb_page_request {
    uint32_t pe;
    bool drops;                                         /* a map or unmap: no entry of the pages may remain */
    bool first;                                         /* the first page of a translation */
    bool mapped;                                        /* the page table has the page */
    uint64_t page, pages;                               /* number of the first page; how many, 1 unless it drops */
    uint64_t at_ps;                                     /* when the translation began */
};

/* ---- pe_ipcq: returns a delay of a message between two PEs */

enum kb_ring_event {
    KB_RING_SEND,                                       /* before the sender's TCM is read; of a send to several PEs each
                                                           ring is asked, and the longest delay counts */
    KB_RING_RECEIVE,                                    /* before a receive, for which the slot is full, takes it */
    KB_RING_CREDIT                                      /* before the credit for a free slot leaves */
};

struct kb_ring_request {
    uint32_t pe, peer;                                  /* SEND: the sender is `pe`; else the receiver is */
    enum kb_ring_event event;
    uint64_t bytes;                                     /* of the message */
    uint64_t credits;                                   /* free slots of the ring that the sender knows of */
    uint64_t at_ps;
};

/* Defines the states: one `struct NAME` for each node of the kind, at most 1 GiB in all, set to 0 at the start of each
 * run. Use it once in NAME.c, after the struct. */
#define KB_STATE(name)                                                                                                 \
    static struct name name##_states[name##_nodes + 1];                                                                \
    struct name *name##_state(uint32_t node)                                                                           \
    {                                                                                                                  \
        return &name##_states[node];                                                                                   \
    }                                                                                                                  \
    struct name *name##_blank(void)                                                                                    \
    {                                                                                                                  \
        return __builtin_memset(&name##_states[name##_nodes], 0, sizeof(struct name));                                 \
    }                                                                                                                  \
    void name##_reset(void)                                                                                            \
    {                                                                                                                  \
        __builtin_memset(name##_states, 0, sizeof name##_states);                                                      \
    }                                                                                                                  \
    uint64_t name##_bytes(void)                                                                                        \
    {                                                                                                                  \
        return sizeof name##_states;                                                                                   \
    }                                                                                                                  \
    _Static_assert(UINT64_C(1) * sizeof(struct name) * name##_nodes <= 1u << 30, "all states fit into 1 GiB")

#endif
