/* tiling.h: the plan of a command: its tiles, and the stages of each. Pure: same command, same plan.
 *
 * A gemm's tiles go for m, for n, for k; a math composite's for m, for n; a simple command is one tile of one stage. */
#ifndef KB_PLAN_H
#define KB_PLAN_H

#include "base/dtype.h"
#include "command.h"

/* In the order of the pipeline, upstream first. */
enum stage_kind {
#define STAGE(name, engine) STAGE_##name,
#include "kb/stages.def"
#undef STAGE
    STAGES,
    STAGE_NONE = STAGES
};

/* The part of a PE that serves a stage. */
static inline enum node_kind stage_node(enum stage_kind stage)
{
    static const uint8_t nodes[STAGES] = {
#define STAGE(name, engine) [STAGE_##name] = NODE_##engine,
#include "kb/stages.def"
#undef STAGE
    };
    return nodes[stage];
}

struct tile {
    uint64_t id;
    uint64_t i_m, i_k, i_n;                             /* position in the grid of tiles */
    uint64_t m, k, n;                                   /* elements along each edge; edge tiles have what remains */
    enum tile_kind kind;
};

struct stage {
    uint8_t kind;                                       /* enum stage_kind */
    uint8_t operand;                                    /* DMA_READ, DMA_WRITE: which one moves */
    uint16_t op;                                        /* MATH */
    uint32_t index;                                     /* in the tile's plan */
};

/* Fills in what of a command follows from the rest: counts of tiles, of epilogues, the stages of each kind of tile. */
void plan_command(struct command *command);

struct tile plan_tile(const struct command *command, uint64_t id);

/* Goes to the next tile; the given one is not the last. */
void plan_next_tile(const struct command *command, struct tile *tile);

/* The stage of an index; STAGE_NONE behind the last. */
static inline struct stage plan_stage(const struct command *command, const struct tile *tile, uint32_t index)
{
    return command->stages[tile->kind][index];
}

/* Bytes of an operand's block of a tile. */
uint64_t plan_bytes(const struct command *command, const struct tile *tile, unsigned operand);

/* Address of that block. */
uint64_t plan_address(const struct command *command, const struct tile *tile, unsigned operand);

/* Whether DMA moves an operand of a composite, and how many bytes all its blocks are. */
bool plan_moves(const struct command *command, unsigned operand);
uint64_t plan_extent(const struct command *command, unsigned operand);

/* Bytes that FETCH brings to the register file: the blocks of A and B, pinned ones too. */
uint64_t plan_fetch_bytes(const struct command *command, const struct tile *tile);

/* Bytes of tile buffers: unpinned inputs, and the output of a tile that stores, each rounded up to 64. */
uint64_t plan_buffer_bytes(const struct command *command, const struct tile *tile);

/* Elements that a MATH stage works on. */
uint64_t plan_elements(const struct command *command, const struct tile *tile);

#endif
