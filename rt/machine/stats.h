/* stats.h: what was moved and how long everything was busy, counted where it happens. */
#ifndef KB_STATS_H
#define KB_STATS_H

#include "base/address.h"
#include "base/tables.h"

enum engine {
    ENGINE_DMA_READ,
    ENGINE_DMA_WRITE,
    ENGINE_COMM,
    ENGINE_FETCH_STORE,
    ENGINE_GEMM,
    ENGINE_MATH,
    ENGINE_SCHEDULER,
    ENGINES
};

struct stats {
    uint64_t services;                                  /* stages of tiles that were begun */
    uint64_t busy_ps[ENGINES];                          /* sum over all servers of the kind */
    uint64_t gemm_flops;                                /* 2 m k n of every GEMM service */
    uint64_t read_bytes[SPACES], write_bytes[SPACES];   /* over the fabric and by the PE's own engines */
    uint64_t read_busy_ps[SPACES], write_busy_ps[SPACES]; /* sum over channels; HBM: reads and writes in read_busy_ps */
    uint64_t link_bytes[LINK_CLASSES], link_busy_ps[LINK_CLASSES];  /* sum over the links of a class */
    uint64_t wait_ps[LINK_CLASSES], node_wait_ps, memory_wait_ps[SPACES];   /* queueing of data messages */
};

extern struct stats stats;

#endif
