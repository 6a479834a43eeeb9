/* tiling.h: the plan of a command: its tiles, and the stages of each. A pure function of the command.
 *
 * The tiles of a gemm come in the order of loops over m, n and k; those of a math composite over m and n; unless the
 * simulator has a generator of plans of the user's (plan_generator.h). A simple command is one tile of one stage. */
#ifndef KB_TILING_H
#define KB_TILING_H

#include "base/dtype.h"
#include "command.h"

/* In the order of the pipeline, upstream first. */
enum stage_kind {
#define STAGE(name, part, engine, busy) STAGE_##name,
#include "kb/stages.def"
#undef STAGE
    STAGES,
    STAGE_NONE = STAGES
};

/* The part of a PE that serves a stage. */
static inline enum node_kind stage_node(enum stage_kind stage)
{
    static const uint8_t nodes[STAGES] = {
#define STAGE(name, part, engine, busy) [STAGE_##name] = NODE_##part,
#include "kb/stages.def"
#undef STAGE
    };
    return nodes[stage];
}

enum { OPERANDS_A_B = OPERANDS };                       /* a stage reads both */

struct stage {
    uint8_t kind;                                       /* enum stage_kind */
    uint8_t operand;                                    /* of DMA_READ and DMA_WRITE: which one moves, or OPERANDS_A_B */
    uint16_t op;                                        /* of MATH */
    uint32_t index : 31;                                /* in the tile's plan */
    uint32_t deferrable : 1;                            /* its end needs no event (deferred.h) */
    uint64_t amount;                                    /* bytes that move; GEMM: operations; MATH: elements */
    uint64_t ps;                                        /* by the built-in models of engines (engine.h) */
    uint64_t link_ps;                                   /* over the link to the part that serves the next stage */
    uint64_t order;                                     /* of the events of a tile at the part that serves it */
    struct operand *moves;                              /* DMA of a block that is worked out (operand.h); else NULL */
};

/* What tiles of equal size and stages have in common. A command has few shapes: its tiles differ only at the far edges
 * of m, k and n, and in where they are in the k loop. */
struct tile_shape {
    uint64_t m, k, n;                                   /* elements along each edge */
    enum tile_kind kind;
    uint64_t buffer_bytes;                              /* inputs that are not pinned, and the output of a tile that
                                                           stores, each rounded up to 64 */
    uint64_t buffer[OPERANDS];                          /* the buffers that this takes: all in one, or each its own; those
                                                           of 0 bytes come last */
    struct stage *stages;                               /* STAGE_NONE after the last; NULL: no tile has this shape */
};

/* The plan of a simple command: one tile of one stage, in no buffers of the scheduler. */
struct simple_plan {
    struct tile_shape shape;
    struct stage stage, end;
};

/* What is used of it, for very many wait: of the end, what comes before `amount`. */
enum { SIMPLE_PLAN_BYTES = offsetof(struct simple_plan, end.amount) };

struct tile {
    uint64_t id;
    uint64_t i_m, i_k, i_n;                             /* position in the grid of tiles; of a planned one in elements */
    const struct tile_shape *shape;
};

/* Makes the command's plan: counts its tiles and epilogues, and lists its shapes with the stages of each. Times and
 * orders are left out (engine_times). Returns what is wrong with it, if a user's generator has made it; else NULL. */
const char *tiling_make(struct command *command);

struct tile tiling_tile(const struct command *command, uint64_t id);

/* The slow path of tiling_next. */
void tiling_next_shape(const struct command *command, struct tile *tile);

/* Turns a tile into the next one; it must not be the last. Tiles along k have one shape, apart from the last of them. */
static inline void tiling_next(const struct command *command, struct tile *tile)
{
    tile->id++;
    tile->i_k++;
    if (tile->i_k + 1 >= command->tiles_k || command->planned)
        tiling_next_shape(command, tile);
}

/* How many tiles of a command that no generator has planned have a shape. */
uint64_t tiling_count(const struct command *command, const struct tile_shape *shape);

/* The address of an operand's block of a tile. */
uint64_t tiling_address(const struct command *command, const struct tile *tile, unsigned operand);

/* The bytes of an operand's block of tiles of a shape. */
uint64_t tiling_block_bytes(const struct command *command, const struct tile_shape *shape, unsigned operand);

/* Whether DMA moves an operand of a composite, and the bytes of all its blocks. */
bool tiling_moves(const struct command *command, unsigned operand);
uint64_t tiling_extent(const struct command *command, unsigned operand);

#endif
