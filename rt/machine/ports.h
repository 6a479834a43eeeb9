/* ports.h: the built-in models of memories that have one channel for reads and one for writes, sram and TCM. Inline, for
 * generated code to call. The payload of a request is that of its range. */
#ifndef KB_PORTS_H
#define KB_PORTS_H

#include "emitted.h"
#include "memory.h"
#include "pe.h"
#include "stats.h"

/* Reserves a channel from t_ps on; `number` is that of the cube, or of the PE. */
static inline struct served port_serve(uint64_t *free_ps, uint64_t t_ps, uint64_t bytes, uint64_t length_ps, enum space space,
                                       bool writes, uint32_t number)
{
    uint64_t start_ps = reserve(free_ps, t_ps, length_ps);
    stats_channel(space, writes, number, bytes, t_ps, start_ps, length_ps, is_observed(MOMENT_reserved));
    return (struct served){start_ps, start_ps + length_ps, .in_order = length_ps > 0};
}

static inline struct served sram_read(const struct range *range, const struct payload *payload, uint64_t t_ps)
{
    return port_serve(&kb_sram[range->cube].read_free_ps, t_ps, range->bytes, payload->sram_read_ps, SPACE_SRAM, false,
                      range->cube);
}

static inline struct served sram_write(const struct range *range, const struct payload *payload, uint64_t t_ps)
{
    return port_serve(&kb_sram[range->cube].write_free_ps, t_ps, range->bytes, payload->sram_write_ps, SPACE_SRAM, true,
                      range->cube);
}

static inline struct served tcm_serve_read(const struct range *range, const struct payload *payload, uint64_t t_ps)
{
    return port_serve(&kb_pe[range->number].tcm.read_free_ps, time_after(t_ps, kb_attrs.pe_tcm_overhead_ps), range->bytes,
                      payload->tcm_read_ps, SPACE_TCM, false, range->number);
}

static inline struct served tcm_serve_write(const struct range *range, const struct payload *payload, uint64_t t_ps)
{
    return port_serve(&kb_pe[range->number].tcm.write_free_ps, time_after(t_ps, kb_attrs.pe_tcm_overhead_ps), range->bytes,
                      payload->tcm_write_ps, SPACE_TCM, true, range->number);
}

#endif
