/* stats.h: statistics: what was moved, how long everything was busy, and how long data waited.
 *
 * They always watch, so they are counted in place. The functions below count a reservation inline, and tell the
 * observers of `reserved` if it is watched. */
#ifndef KB_STATS_H
#define KB_STATS_H

#include "base/address.h"
#include "base/tables.h"
#include "emitted.h"
#include "sim/observer.h"

enum engine {
#define ENGINE(name, word, servers) ENGINE_##name,
#include "kb/engines.def"
#undef ENGINE
    ENGINES
};

struct stats {
    uint64_t services;                                  /* stages of tiles that have begun */
    uint64_t busy_ps[ENGINES];                          /* sum over all servers of the kind: services that have ended */
    uint64_t queue_wait_ps[ENGINES];                    /* of these services: from the arrival in a queue to the start */
    uint64_t gemm_flops;                                /* 2 m k n of every GEMM service */
    uint64_t read_bytes[SPACES], write_bytes[SPACES];   /* over the fabric and by the PE's own engines */
    /* Sums over channels, and from requests to the starts of their reservations. HBM: writes count as reads. */
    uint64_t read_busy_ps[SPACES], write_busy_ps[SPACES], read_wait_ps[SPACES], write_wait_ps[SPACES];
    /* Sums over the links of a class, and from the arrival of heads to their starts; the same at all nodes. */
    uint64_t link_bytes[LINK_CLASSES], link_busy_ps[LINK_CLASSES], link_wait_ps[LINK_CLASSES], node_wait_ps;
};

extern struct stats stats;

/* How long the busiest link of a class was occupied. */
uint64_t link_busiest_ps(enum link_class class);

/* How many resources of a kind the machine has. */
uint64_t resource_count(enum resource_kind kind);

void stats_init(void);

/* Counts everything that was counted since `then` some times more. */
void stats_repeat(const struct stats *then, uint64_t times);

/* A service of an engine has ended. */
static inline void stats_service(enum engine engine, uint64_t arrival_ps, uint64_t start_ps)
{
    stats.busy_ps[engine] += now_ps - start_ps;
    stats.queue_wait_ps[engine] += start_ps - arrival_ps;
}

/* A data message has taken a node, or a link, for length_ps. */
static inline void stats_node(uint32_t rank, uint64_t bytes, uint64_t asked_ps, uint64_t start_ps, uint64_t length_ps,
                              bool watched)
{
    stats.node_wait_ps += start_ps - asked_ps;
    if (watched)
        tell_reserved(RESOURCE_NODE, rank, bytes, asked_ps, start_ps, start_ps + length_ps);
}

static inline void stats_link(struct fabric_link *link, enum link_class class, uint64_t bytes, uint64_t asked_ps,
                              uint64_t start_ps, uint64_t length_ps, bool watched)
{
    stats.link_bytes[class] += bytes;
    stats.link_busy_ps[class] += length_ps;
    stats.link_wait_ps[class] += start_ps - asked_ps;
    link->busy_ps += length_ps;
    if (watched)
        tell_reserved(RESOURCE_LINK, link - kb_links, bytes, asked_ps, start_ps, start_ps + length_ps);
}

/* A read has written to its PE's TCM without waiting for the channel; count -1 takes that away again. */
static inline void stats_tcm_write(uint64_t bytes, uint64_t length_ps, int count)
{
    stats.write_bytes[SPACE_TCM] += count * bytes;
    stats.write_busy_ps[SPACE_TCM] += count * length_ps;
}

/* A request has taken the channel of an sram or a TCM for reads, or for writes. */
static inline void stats_channel(enum space space, bool writes, uint32_t number, uint64_t bytes, uint64_t asked_ps,
                                 uint64_t start_ps, uint64_t length_ps, bool watched)
{
    enum resource_kind first = space == SPACE_TCM ? RESOURCE_TCM_READ : RESOURCE_SRAM_READ;
    *(writes ? &stats.write_busy_ps[space] : &stats.read_busy_ps[space]) += length_ps;
    *(writes ? &stats.write_wait_ps[space] : &stats.read_wait_ps[space]) += start_ps - asked_ps;
    if (watched)
        tell_reserved(first + writes, number, bytes, asked_ps, start_ps, start_ps + length_ps);
}

#endif
