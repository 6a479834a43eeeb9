/* impl.h: a component model of your own: how long a part of the machine takes.
 *
 * `impl: NAME` of a part in the topology and `kbgen --impl NAME.c` put NAME.c in the place of the built-in model. It
 * defines one function, NAME_service, whose signature follows from the part:
 *
 *     pe_gemm, pe_math, pe_scheduler   uint64_t NAME_service(const struct kb_..._request *ask)
 *     pe_fetch_store                   struct kb_moved NAME_service(const struct kb_move_request *ask)
 *     sram, hbm_ctrl                   struct kb_served NAME_service(struct NAME *state,
 *                                                                    const struct kb_memory_request *ask)
 *
 * It says when, never what: data stay as they are. The same calls must get the same answers: no clock, no random
 * numbers, no variables of the file's own, which a sweep (`run --points`) would carry from one run to the next. Times
 * are ps. One that does not fit into 64 bits, or lies before the request, stops the run with a message.
 *
 * Attributes are in kb_attrs. The topology's `params: { tRCD: 19.4 ns }` are there as macros, NAME_tRCD, before the
 * file's first line: constants of type uint64_t in base units (ps, bytes, bytes/s, kHz, um), rounded once as attributes
 * are. A number without a unit has an exact form besides, NAME_x_num / NAME_x_den; one that is not whole has only that.
 * `#ifndef NAME_tRCD` is the way to a default. */
#ifndef KB_IMPL_H
#define KB_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/tl.h>

/* ---- pe_gemm, pe_math: the time of one service, from its start on, overhead included */

struct kb_gemm_request {
    uint32_t pe;                                        /* over the machine, in rank order */
    enum kb_dtype dtype;                                /* of the operands */
    uint64_t m, k, n;
    uint64_t k_per_cycle;                               /* the attribute, of that dtype */
};

struct kb_math_request {
    uint32_t pe;
    enum kb_dtype dtype;
    const char *op;                                     /* "exp" */
    uint64_t elements;
    uint64_t lanes, cost;                               /* the attributes, of that dtype and of that op */
};

/* ---- pe_fetch_store: a tile between the TCM and the register file */

struct kb_move_request {
    uint32_t pe;
    bool stores;                                        /* STORE; else FETCH */
    uint64_t bytes;
};

/* Both parts one after the other; what else uses the TCM's read channel (FETCH) or write channel (STORE) waits for the
 * end of the first part, and that part for what came before it. */
struct kb_moved {
    uint64_t channel_ps, after_ps;
};

/* ---- pe_scheduler: the time to take a command, or to feed a tile of a composite */

enum kb_command {
#define COMMAND(name, word) KB_COMMAND_##name,
#include <kb/commands.def>
#undef COMMAND
    KB_COMMANDS
};

struct kb_schedule_request {
    uint32_t pe;
    enum kb_command command;
    bool feeds;                                         /* feeds the tile of this number; else takes the command */
    uint64_t tile, tiles;                               /* of the command; a simple one has one tile */
};

/* ---- sram, hbm_ctrl: requests come in the order in which they reach the memory. A write's head that is still held up
 * at its node lies in the future, so the next request may be there before it. */

struct kb_memory_request {
    uint32_t memory;                                    /* number of the slice or the sram over the machine */
    bool writes;
    uint64_t offset, bytes;                             /* within the memory; at least one byte */
    uint64_t at_ps;                                     /* when it is there: of a write, its head */
};

/* A read's response leaves at first_ps and is fed until last_ps; a write is done at last_ps, or when all of it has been
 * delivered if that is later. Neither lies before at_ps. The other two are for the report's eyes and may stay 0. */
struct kb_served {
    uint64_t first_ps, last_ps;
    uint64_t busy_ps;                                   /* that its channels move data for it, summed */
    uint64_t wait_ps;                                   /* that it waited for others, likewise */
};

/* Makes a memory's state: one `struct NAME` for each memory of the kind, all zero at the start of each run, at most
 * 1 GiB together. Stands once in NAME.c, behind the struct. */
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
    _Static_assert(sizeof(struct name) <= (1u << 30) / name##_memories, "all states fit into 1 GiB")

#endif
