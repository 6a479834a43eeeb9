/* demand.h: what commands and requests of the host have asked for, by their plans alone.
 *
 * Statistics (machine/stats.h) count what the parts of the machine do. This counts, from the other side, what they were
 * told to do: a command adds the stages of all its tiles when it is complete, however many of them were simulated. */
#ifndef KB_DEMAND_H
#define KB_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

extern struct demand {
    uint64_t commands;                                  /* that are complete; the rest is of these */
    uint64_t services;                                  /* stages of all tiles */
    uint64_t gemm_flops, gemm_ps, math_ps;              /* ps: by the built-in models */
    double gemm_ops[DTYPES];                            /* of gemms, by dtype */
    uint64_t read_bytes[SPACES], write_bytes[SPACES];   /* of memories */
    bool is_virtual;                                    /* the MMU has chosen memories: these bytes are in the two below */
    uint64_t virtual_read_bytes, virtual_write_bytes;
    uint64_t fabric_bytes;                              /* between a pe_dma and another node, at physical addresses */
    uint64_t transfers;                                 /* runs of bytes that DMA has moved, likewise physical */
    uint64_t messages;                                  /* received */
    uint64_t shared_bytes;                              /* that did not take a first or last link again: of sends to several
                                                           PEs */
    uint64_t blocks, block_rows;                        /* that DMA has moved for composites; their rows if row-major */
    uint64_t fetch_most;                                /* bytes that one FETCH has moved */
    uint64_t operand_bytes;                             /* second operands of epilogues, of command streams */
} demand;

/* Watches all runs. */
extern struct observer demand_observer;

/* Nothing was asked for. */
void demand_reset(void);

#endif
