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

struct tile {
    uint64_t id;
    uint64_t i_m, i_k, i_n;                             /* position in the grid of tiles; of a planned one in elements */
    uint64_t m, k, n;                                   /* elements along each edge; less for tiles at the far edges */
    enum tile_kind kind;
};

struct stage {
    uint8_t kind;                                       /* enum stage_kind */
    uint8_t operand;                                    /* of DMA_READ and DMA_WRITE: which one moves */
    uint16_t op;                                        /* of MATH */
    uint32_t index;                                     /* in the tile's plan */
};

/* Makes the command's plan: counts its tiles and epilogues, and lists the stages of each kind of tile. */
void tiling_make(struct command *command);

struct tile tiling_tile(const struct command *command, uint64_t id);

/* Turns a tile into the next one; it must not be the last. */
void tiling_next(const struct command *command, struct tile *tile);

/* The stage of an index; STAGE_NONE after the last. */
static inline struct stage tiling_stage(const struct command *command, const struct tile *tile, uint32_t index)
{
    return command->stages[tile->kind][index];
}

/* The size in bytes and the address of an operand's block of a tile. */
uint64_t tiling_bytes(const struct command *command, const struct tile *tile, unsigned operand);
uint64_t tiling_address(const struct command *command, const struct tile *tile, unsigned operand);

/* Whether DMA moves an operand of a composite, and the bytes of all its blocks. */
bool tiling_moves(const struct command *command, unsigned operand);
uint64_t tiling_extent(const struct command *command, unsigned operand);

/* Bytes that FETCH brings to the register file: the blocks of A and B, pinned ones included. */
uint64_t tiling_fetch_bytes(const struct command *command, const struct tile *tile);

/* Bytes of a tile's buffers: inputs that are not pinned, and the output of a tile that stores, each rounded up to
 * 64. */
uint64_t tiling_buffer_bytes(const struct command *command, const struct tile *tile);

/* Elements that a MATH stage works on. */
uint64_t tiling_elements(const struct command *command, const struct tile *tile);

#endif
