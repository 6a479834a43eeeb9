/* operand.h: the operands of a composite that DMA moves: what is the same for most of their blocks. */
#ifndef KB_OPERAND_H
#define KB_OPERAND_H

#include "near_read.h"
#include "tiling.h"

/* An operand that lies in one memory, at physical addresses. */
struct operand {
    struct range first;                                 /* the first tile's block */
    uint64_t stride_m, stride_k, stride_n;              /* bytes from a block to that of the next tile along an edge */
    const struct payload *payload;                      /* of a block */
    struct route *route;                                /* from the PE to the memory */
    struct near_read near;
};

/* Works out the operands of a command that has a plan, if it is a composite and its plan the built-in one. Stages of
 * tiles that are as large as the first one, which is as large as any, then refer to them. */
void operands_make(struct command *command);

/* Forgets all routes of PEs. */
void operands_reset(void);

/* Where the block of a tile begins in the operand's memory. */
static inline uint64_t operand_offset(const struct operand *operand, const struct tile *tile)
{
    return operand->first.offset + tile->i_m * operand->stride_m + tile->i_k * operand->stride_k
           + tile->i_n * operand->stride_n;
}

/* The route of a PE's requests to read a range, or of the data that it writes to it. */
struct route *memory_route(const struct pe *pe, const struct range *range, bool reads);

#endif
