/* memory.c: when memories serve, by the built-in models.
 *
 * An HBM slice spreads a request over its pseudo channels, each of which opens rows and moves its share; an sram and a
 * TCM have one channel for reads and one for writes. No refresh, no bank conflicts: row_miss stands for what of a row
 * change interleaving does not hide. */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "channel.h"
#include "emitted.h"
#include "kb/impl.h"
#include "pe.h"
#include "stats.h"
#include "text/diag.h"

struct place range_place(const struct range *range)
{
    switch (range->space) {
    case SPACE_HBM:
        return (struct place){range->sip, range->cube % kb_shape.cubes,
                              cube_hbm_ctrl(&kb_shape, range->pe % kb_shape.pes)};
    case SPACE_SRAM:
        return (struct place){range->sip, range->cube % kb_shape.cubes, cube_sram()};
    default:
        return place_pe(range->pe, NODE_pe_dma);
    }
}

/* The share of pseudo channel number `first_block + i` of a request for [a, a + n): its local first and last byte and
 * how many bytes between them are asked for. */
struct share {
    uint64_t from, to, bytes;
};

static struct share channel_share(uint64_t a, uint64_t n, uint64_t i)
{
    uint64_t piece = kb_attrs.hbm_ctrl_interleave_bytes, pcs = kb_attrs.hbm_ctrl_pcs;
    uint64_t end = a + n - 1, first = a / piece, last = end / piece;
    uint64_t from = first + i, to = from + (last - from) / pcs * pcs;
    uint64_t skip = from == first ? a % piece : 0, drop = to == last ? piece - 1 - end % piece : 0;
    return (struct share){.from = from / pcs * piece + skip, .to = to / pcs * piece + piece - 1 - drop,
                          .bytes = ((to - from) / pcs + 1) * piece - skip - drop};
}

static struct served hbm_serve(uint32_t slice, uint64_t a, uint64_t n, uint64_t t_ps)
{
    uint64_t piece = kb_attrs.hbm_ctrl_interleave_bytes, pcs = kb_attrs.hbm_ctrl_pcs;
    uint64_t first = a / piece, touched = (a + n - 1) / piece - first + 1;
    struct served served = {UINT64_MAX, 0};
    for (uint64_t i = 0; i < (touched < pcs ? touched : pcs); i++) {
        struct pseudo_channel *pc = &kb_pseudo_channels[slice * pcs + (first + i) % pcs];
        struct share share = channel_share(a, n, i);
        uint64_t row = share.from / kb_attrs.hbm_ctrl_row_bytes, row_end = share.to / kb_attrs.hbm_ctrl_row_bytes;
        uint64_t misses = row_end - row + (pc->open_row != row + 1);
        uint64_t length =
            sum(product(misses, kb_attrs.hbm_ctrl_row_miss_ps), move_ps(share.bytes, kb_attrs.hbm_ctrl_pc_bw_bps));
        uint64_t start = reserve(&pc->free_ps, t_ps, length);
        pc->open_row = row_end + 1;
        kb_hbm[slice].busy_ps += length;
        stats.read_busy_ps[SPACE_HBM] += length;
        stats.memory_wait_ps[SPACE_HBM] += start - t_ps;
        if (served.first_ps > start)
            served.first_ps = start;
        if (served.last_ps < pc->free_ps)
            served.last_ps = pc->free_ps;
    }
    return served;
}

/* One channel of an sram or a TCM. */
static struct served port_serve(uint64_t *free_ps, uint64_t t_ps, uint64_t length, enum space space, uint64_t *busy_ps)
{
    uint64_t start = reserve(free_ps, t_ps, length);
    *busy_ps += length;
    stats.memory_wait_ps[space] += start - t_ps;
    return (struct served){start, *free_ps};
}

struct served hbm_read(const struct range *range, uint64_t t_ps)
{
    struct served served = hbm_serve(range->pe, range->offset, range->bytes, t_ps);
    return (struct served){time_after(served.first_ps, kb_attrs.hbm_ctrl_access_ps),
                           time_after(served.last_ps, kb_attrs.hbm_ctrl_access_ps)};
}

struct served hbm_write(const struct range *range, uint64_t t_ps)
{
    return hbm_serve(range->pe, range->offset, range->bytes, t_ps);
}

struct served sram_read(const struct range *range, uint64_t t_ps)
{
    return port_serve(&kb_sram[range->cube].read_free_ps, t_ps, move_ps(range->bytes, kb_attrs.sram_read_bw_bps),
                      SPACE_SRAM, &stats.read_busy_ps[SPACE_SRAM]);
}

struct served sram_write(const struct range *range, uint64_t t_ps)
{
    return port_serve(&kb_sram[range->cube].write_free_ps, t_ps, move_ps(range->bytes, kb_attrs.sram_write_bw_bps),
                      SPACE_SRAM, &stats.write_busy_ps[SPACE_SRAM]);
}

struct served tcm_serve_read(const struct range *range, uint64_t t_ps)
{
    return port_serve(&kb_pe[range->pe].tcm_read_free_ps, time_after(t_ps, kb_attrs.pe_tcm_overhead_ps),
                      move_ps(range->bytes, kb_attrs.pe_tcm_read_bw_bps), SPACE_TCM, &stats.read_busy_ps[SPACE_TCM]);
}

struct served tcm_serve_write(const struct range *range, uint64_t t_ps)
{
    return port_serve(&kb_pe[range->pe].tcm_write_free_ps, time_after(t_ps, kb_attrs.pe_tcm_overhead_ps),
                      move_ps(range->bytes, kb_attrs.pe_tcm_write_bw_bps), SPACE_TCM, &stats.write_busy_ps[SPACE_TCM]);
}

/* ---- models of the user's own */

struct kb_memory_request own_ask(const struct range *range, uint64_t t_ps, bool writes)
{
    uint32_t memory = range->space == SPACE_HBM ? range->pe : range->cube;
    return (struct kb_memory_request){memory, writes, range->offset, range->bytes, t_ps};
}

/* The largest number is what a time that does not fit becomes. */
static void own_check(const char *model, const struct kb_memory_request *ask, const struct kb_served *said)
{
    if (said->first_ps >= ask->at_ps && said->last_ps >= said->first_ps && said->last_ps < UINT64_MAX)
        return;
    fprintf(stderr, "%s: %s of %s: a %s of %" PRIu64 " bytes at offset %" PRIu64 " of memory %" PRIu32 ", asked at %"
            PRIu64 " ps, cannot be served from %" PRIu64 " to %" PRIu64 " ps\n", program_name, model, kb_machine_name,
            ask->writes ? "write" : "read", ask->bytes, ask->offset, ask->memory, ask->at_ps, said->first_ps,
            said->last_ps);
    exit(1);                                            /* it is the run that failed, not the host */
}

struct served own_served(const char *model, enum space space, const struct kb_memory_request *ask,
                         const struct kb_served *said)
{
    own_check(model, ask, said);
    bool hbm = space == SPACE_HBM;
    *(hbm || !ask->writes ? &stats.read_busy_ps[space] : &stats.write_busy_ps[space]) += said->busy_ps;
    stats.memory_wait_ps[space] += said->wait_ps;
    if (hbm)
        kb_hbm[ask->memory].busy_ps += said->busy_ps;
    return (struct served){said->first_ps, said->last_ps};
}

uint64_t memory_write_done_ps(const struct range *range, uint64_t head_ps, uint64_t delivered_ps)
{
    struct served served = memory_write(range, head_ps);
    return served.last_ps > delivered_ps ? served.last_ps : delivered_ps;
}
