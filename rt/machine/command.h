/* command.h: a command of a kernel to its PE, from the call to its completion. */
#ifndef KB_COMMAND_H
#define KB_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tables.h"
#include "runs.h"

struct command;
struct pe;

enum command_kind {
#define COMMAND(name, word) COMMAND_##name,
#include "kb/commands.def"
#undef COMMAND
    COMMANDS
};

enum fault {
#define FAULT(code) FAULT_##code,
#include "kb/faults.def"
#undef FAULT
    FAULTS
};

extern const char *const fault_names[FAULTS];

/* The others are simple: one tile of one stage. */
static inline bool command_is_composite(enum command_kind kind)
{
    return kind == COMMAND_gemm_tiles || kind == COMMAND_math_tiles;
}

/* As results call them. */
extern const char *const command_words[COMMANDS];

enum scope { SCOPE_K_TILE, SCOPE_OUTPUT_TILE, SCOPE_ONCE, SCOPES };

/* Tiles with equal stages: that only add to their output tile; the last k of one, which stores it; the last of all. */
enum tile_kind { TILE_ADDS, TILE_STORES, TILE_LAST, TILE_KINDS };

enum { OPERAND_A, OPERAND_B, OPERAND_C, OPERANDS };    /* of math_tiles: A is the source, C the destination */

struct epilogue {
    uint16_t op;                                        /* of kb_op_names */
    uint8_t scope;
};

/* What is asked. Unused fields are 0. */
struct request {
    uint8_t kind;
    uint8_t dtype, out_dtype;
    bool pinned[2];                                     /* gemm_tiles: A, B stand in TCM */
    uint16_t op;                                        /* math, math_tiles */
    uint64_t address[OPERANDS];                         /* load, store: [OPERAND_A] is the memory side */
    bool virtual_address[OPERANDS];                     /* the MMU translates it */
    uint64_t tcm, bytes;                                /* load, store, send, recv: offset in the own TCM; length */
    struct runs runs;                                   /* load, store: of the memory side; no axes: it is one */
    uint32_t peer;                                      /* send, recv: the other PE, over the machine */
    uint64_t m, k, n;                                   /* gemm, gemm_tiles; math_tiles: m, n; math: n elements */
    uint64_t tile_m, tile_k, tile_n;
    const struct epilogue *epilogue;                    /* those of a scope in their order; the command has a copy */
    uint32_t epilogues;
    const char *file;                                   /* the kernel's call; NULL in a command stream */
    uint32_t line;
    struct op_ref *record;                              /* in the op log, held by the command until it is dropped; NULL:
                                                           it moves no data, or is of a command stream */
};

/* What a PE tells whoever submitted a command to it. */
struct submitter {
    void (*completed)(struct command *command);
    void (*faulted)(const struct command *command, enum fault code, enum node_kind part, const char *message);
};

struct command {
    struct request ask;
    struct pe *pe;
    const struct submitter *submitter;
    const char *kernel;                                 /* name of the kernel that submitted it, for messages */
    struct command *next, *before;                      /* of the same kernel and not complete, by number */
    struct command *waiting;                            /* behind it for the scheduler, then for the feeder */
    uint32_t number;                                    /* from 0 in each launch */
    bool complete;
    uint64_t submitted_ps, complete_ps;
    uint64_t tiles_m, tiles_k, tiles_n, tiles, tiles_left;
    uint32_t epilogue_count[SCOPES];
    void *plan;                                         /* room for its epilogues and stages, */
    uint64_t plan_bytes;                                /* which the next one of the pool has as well */
    uint32_t holders;                                   /* whoever will look at it again; at first the machine */
    const struct stage *stages[TILE_KINDS];             /* of a tile of each kind; STAGE_NONE behind the last */
    struct ring_message *slot;                          /* recv: that it reads */
};

/* A command as asked, of which all else is 0; its holder is the machine, until it is complete. */
struct command *command_new(const struct request *ask);

/* Its room for a plan, of at least so many bytes. */
void *command_plan(struct command *command, uint64_t bytes);

/* One holder more, or less; it goes with the last one. */
void command_hold(struct command *command);
void command_drop(struct command *command);

/* A fault of a command, at a part of its PE: its submitter is told. The message is for people. */
void command_fault(const struct command *command, enum fault code, enum node_kind part, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* There are none. */
void commands_reset(void);

#endif
