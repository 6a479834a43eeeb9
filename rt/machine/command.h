/* command.h: a command of a kernel to its PE, from the call to its completion. */
#ifndef KB_COMMAND_H
#define KB_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tables.h"
#include "runs.h"
#include "sim/observer.h"

struct command;
struct pe;
struct tile;
struct tile_shape;

enum command_kind {
#define COMMAND(name, ...) COMMAND_##name,
#include "kb/commands.def"
#undef COMMAND
    COMMANDS
};

/* As results call them. */
extern const char *const command_words[COMMANDS];

enum fault {
#define FAULT(code) FAULT_##code,
#include "kb/faults.def"
#undef FAULT
    FAULTS
};

extern const char *const fault_names[FAULTS];

/* Whether a command is a composite. Other commands are simple: one tile of one stage. */
static inline bool command_is_composite(enum command_kind kind)
{
    switch (kind) {
#define COMMAND(...)
#define COMPOSITE(name, ...) case COMMAND_##name:
#include "kb/commands.def"
#undef COMMAND
        return true;
    default:
        return false;
    }
}

enum scope {
#define SCOPE(name, word) SCOPE_##name,
#include "kb/scopes.def"
#undef SCOPE
    SCOPES
};

extern const char *const scope_words[SCOPES];

/* Tiles of one kind have the same stages: those that only add to their output tile; the last k of an output tile, which
 * stores it; the last tile of all. */
enum tile_kind { TILE_ADDS, TILE_STORES, TILE_LAST };

enum { OPERAND_A, OPERAND_B, OPERAND_C, OPERANDS };     /* of math_tiles: A is the source, C the destination */

struct epilogue {
    uint16_t op;                                        /* index of kb_op_names */
    uint8_t scope;
};

/* What a command asks for. Unused fields are 0. */
struct request {
    uint8_t kind;
    uint8_t dtype, out_dtype;
    bool pinned[2];                                     /* gemm_tiles: A, B are in the TCM */
    bool virtual_address[OPERANDS];                     /* the MMU translates it */
    uint32_t serial;                                    /* of the kernel, over the run */
    uint32_t peer;                                      /* send, recv: the other PE, over the machine; of a list the
                                                           first */
    uint64_t address[OPERANDS];                         /* load, store: [OPERAND_A] is the memory side */
    uint64_t tcm, bytes;                                /* load, store, send, recv: offset in the own TCM; length, 0
                                                           for a recv of a stream, which takes any */
    const struct runs *runs;                            /* load, store: of the memory side; NULL: one run. The command has a
                                                           copy */
    const struct address_run *list;                     /* load, store: in place of `runs`. The command has a copy */
    uint32_t listed;                                    /* how many; 0: no list */
    uint32_t peers;                                     /* send: number of the list of PEs it goes to (peers.h); 0: one */
    uint64_t m, k, n;                                   /* gemm, gemm_tiles; math_tiles: m, n; math: n elements */
    uint64_t tile_m, tile_k, tile_n;
    const struct epilogue *epilogue;                    /* in order within each scope; the command has a copy */
    uint32_t epilogues;
    uint16_t op;                                        /* math, math_tiles */
    const char *file;                                   /* the kernel's call; NULL in a command stream */
    uint32_t line;                                      /* of the stream, if file is NULL */
    struct op_ref *record;                              /* in the op log, held by the command until it is dropped; NULL:
                                                           it moves no data, or is of a command stream */
};

/* How a PE answers the submitter of a command. */
struct submitter {
    void (*completed)(struct command *command);
    void (*faulted)(const struct command *command, enum fault code, enum node_kind part, const char *message);
};

/* What each tile needs comes first, together with the first fields of `ask`: a line of the host's caches. */
struct command {
    struct pe *pe;
    uint32_t number;                                    /* from 0 in each launch */
    bool complete;
    uint8_t first_stage;                                /* of every tile, an enum stage_kind */
    uint64_t tiles_left, tiles, tiles_k;
    uint64_t link_ps;                                   /* over the link from the scheduler to the part that serves it */
    struct request ask;
    const struct submitter *submitter;
    const char *kernel;                                 /* name of the kernel that submitted it, for messages */
    struct command *next, *before;                      /* of the same kernel and not complete, by number */
    struct command *waiting;                            /* behind it for the scheduler, then for the feeder */
    uint64_t submitted_ps, complete_ps;
    uint32_t holders;                                   /* how many hold it; at first the machine does */
    uint32_t multicast;                                 /* send to several PEs: what it uses (ipcq.c); else 0 */
    struct tile_shape *shapes;                          /* of its tiles (tiling.h) */
    struct ring *ring;                                  /* send, recv: that it uses (ipcq.c); NULL: several */
    struct ipcq_message *slot;                          /* recv: the slot that it reads */
    /* The next command at this place in the pool keeps these. */
    void *plan;                                         /* memory for its stages, and for its epilogues or list */
    uint64_t plan_bytes;
    /* Very many simple commands wait at a time: they have no memory for the rest. */
    const struct tile *planned;                         /* its tiles, if a user's generator has planned it; else NULL */
    uint64_t tiles_m, tiles_n;
    uint64_t edge_row, edge_column;                     /* of tiles: the last, if it is smaller; UINT64_MAX: none is */
    struct operand *operands;                           /* those that are worked out (operand.h), or NULL */
    uint32_t epilogue_count[SCOPES];
    uint32_t shape_count;
};

enum { SIMPLE_COMMAND_BYTES = offsetof(struct command, planned) };

_Static_assert(offsetof(struct command, ask) + offsetof(struct request, peer) + sizeof(uint32_t) == 64, "it is one line");

/* What is done for the command. */
static inline struct cause command_cause(const struct command *command)
{
    return (struct cause){command->ask.serial, command->number};
}

/* What is known of the command that sent a message and may be gone: fields of it, and of what it asked for. Its record is held for
 * each receiver. */
struct sender {
    struct pe *pe;
    struct cause cause;
    const char *kernel, *file;
    struct op_ref *record;
    uint32_t line;
};

/* Returns a command with a copy of *ask, and all else 0. The machine holds it until it is complete. */
struct command *command_new(const struct request *ask);

/* Returns the command's memory for its plan, of at least `bytes` bytes. It keeps what it has if it has that many: the list of
 * a simple command, which lies behind its plan (tiling.h). */
void *command_plan(struct command *command, uint64_t bytes);

/* Returns memory for the operands of the command, which has none yet: OPERANDS of them. */
struct operand *command_operands(struct command *command);

/* Adds or removes a holder; the command is freed with the last. */
void command_hold(struct command *command);
void command_drop(struct command *command);

/* Tells the submitter of a fault at a part of the PE. The message is for people. */
void command_fault(const struct command *command, enum fault code, enum node_kind part, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Forgets all commands. */
void commands_reset(void);

#endif
