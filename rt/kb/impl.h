/* impl.h: user component models: how long a part of the machine takes.
 *
 * `impl: NAME` of a part in the topology and `kbgen --impl NAME.c` replace the built-in model by NAME.c. It defines one
 * function, NAME_service, whose signature depends on the part:
 *
 *     pe_gemm, pe_math, pe_scheduler   uint64_t NAME_service(const struct kb_..._request *ask)
 *     pe_fetch_store                   struct kb_moved NAME_service(const struct kb_move_request *ask)
 *     sram, hbm_ctrl                   struct kb_served NAME_service(struct NAME *state,
 *                                                                    const struct kb_memory_request *ask)
 *
 * A model decides times, never data. The same calls must give the same answers: use no clock, no random numbers, and no
 * static variables, which a sweep (`run --points`) would carry from one run to the next. Times are in ps. A time that
 * does not fit into 64 bits, or lies before the request, stops the run with a message.
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

/* Defines the states: one `struct NAME` for each memory of the kind, at most 1 GiB in all, set to 0 at the start of
 * each run. Use it once in NAME.c, after the struct. */
#define KB_STATE(name)                                                                                                 \
    static struct name name##_states[name##_memories];                                                                 \
    struct name *name##_state(uint32_t memory)                                                                         \
    {                                                                                                                  \
        return &name##_states[memory];                                                                                 \
    }                                                                                                                  \
    void name##_reset(void)                                                                                            \
    {                                                                                                                  \
        __builtin_memset(name##_states, 0, sizeof name##_states);                                                      \
    }                                                                                                                  \
    uint64_t name##_bytes(void)                                                                                        \
    {                                                                                                                  \
        return sizeof name##_states;                                                                                   \
    }                                                                                                                  \
    _Static_assert(sizeof(struct name) <= (1u << 30) / name##_memories, "all states fit into 1 GiB")

#endif
