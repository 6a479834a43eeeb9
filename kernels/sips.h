/* sips.h: over how many SIPs a bench spreads its work. The links between SIPs are slower by far than those within one, and
 * all that SIPs send each other passes one switch. So work whose parts exchange much stays in few SIPs. */
#ifndef SIPS_H
#define SIPS_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>

/* The SIPs of the machine. */
static inline uint32_t sips_count(void)
{
    return kb_machine_pes("*").count / kb_machine_pes("sip0.*").count;
}

/* The SIPs that have some of these PEs. */
static inline uint32_t sips_of(struct kb_pes pes)
{
    uint32_t in_sip = kb_machine_pes("sip0.*").count, sips = 0;
    for (uint32_t i = 0; i < pes.count; i++)
        sips += i == 0 || pes.pe[i] / in_sip != pes.pe[i - 1] / in_sip;
    return sips;
}

/* The PEs that a pattern names of the first SIPs. */
static inline struct kb_pes sips_first(const char *pattern, uint32_t sips)
{
    struct kb_pes pes = kb_pes(pattern);
    pes.count = (uint32_t)((uint64_t)pes.count * sips / sips_count());
    return pes;
}

/* The fewest SIPs whose HBM has room for `bytes`; all of them if none has. */
static inline uint32_t sips_least(uint64_t bytes)
{
    uint64_t in_sip = kb_machine_pes("sip0.*").count;
    return (uint32_t)kb_clamp(kb_ceil_div(bytes, kb_product(in_sip, kb_attrs.hbm_slice_bytes)), 1, sips_count());
}

/* The time in which the switch between `sips` SIPs handles `messages` messages; 0 for one SIP, or if chip links join the first
 * two. */
static inline uint64_t switch_ps(uint64_t sips, uint64_t messages)
{
    struct kb_pes all = kb_machine_pes("*");
    uint64_t in_sip = kb_machine_pes("sip0.*").count;
    if (sips == 1 || kb_latency_ps(all.pe[0], all.pe[in_sip]) < 2 * kb_attrs.pcie_latency_ps)
        return 0;
    return kb_product(messages, kb_attrs.switch_overhead_ps);
}

/* How long a SIP takes to get `bytes` from another one, over the links that join two of their PEs, if it waits `rounds`
 * times for a first byte. The machine has two SIPs at least. */
static inline uint64_t sips_exchange_ps(uint64_t bytes, uint64_t rounds)
{
    struct kb_pes pes = kb_machine_pes("*");
    uint32_t from = pes.pe[0], to = pes.pe[pes.count / sips_count()];
    kb_traffic traffic = kb_traffic_new();
    kb_traffic_add(traffic, from, to, bytes);
    return kb_sum(kb_traffic_ps(traffic), kb_product(rounds, kb_latency_ps(from, to)));
}

#endif
