/* memory.c: the built-in models of memories: when they serve a request.
 *
 * An HBM slice spreads a request over its pseudo channels, each of which opens rows and moves its share. An sram and a
 * TCM have one channel for reads and one for writes. Refresh and bank conflicts are not modelled: row_miss is the part
 * of a row change that interleaving does not hide. */
#include "memory.h"

#include <inttypes.h>

#include "base/rates.h"
#include "common/fail.h"
#include "emitted.h"
#include "hbm.h"
#include "kb/impl.h"
#include "pe.h"
#include "stats.h"

struct place slice_place(uint32_t slice)
{
    uint32_t cube = slice / kb_shape.slices;
    return (struct place){cube / kb_shape.cubes, cube % kb_shape.cubes,
                          cube_hbm_ctrl(&kb_shape, slice % kb_shape.slices)};
}

struct place range_place(const struct range *range)
{
    switch (range->space) {
    case SPACE_HBM:
        return slice_place(range->number);
    case SPACE_SRAM:
        return (struct place){range->sip, range->cube % kb_shape.cubes, cube_sram()};
    default:
        return place_pe(range->number, NODE_pe_dma);
    }
}

bool range_is_own_tcm(const struct range *range, const struct pe *pe)
{
    return range->space == SPACE_TCM && range->number == pe_number(pe);
}

/* ---- HBM */

/* Interleaving; channels of a slice; bytes of a row. */
static struct divisor piece, pcs, row;
struct divisor hbm_stripe, hbm_rows_bytes;

/* The length of a share of a pseudo channel, and its time: most shares are as long as the one before. */
static struct {
    uint64_t bytes, move_ps;
} last_share;

void memory_init(void)
{
    last_share.bytes = last_share.move_ps = 0;
    piece = divisor_of(kb_attrs.hbm_ctrl_interleave_bytes);
    pcs = divisor_of(kb_attrs.hbm_ctrl_pcs);
    row = divisor_of(kb_attrs.hbm_ctrl_row_bytes);
    hbm_stripe = divisor_of(piece.by * pcs.by);
    hbm_rows_bytes = divisor_of(product(row.by, pcs.by));
}

/* The part of a request that one pseudo channel serves. */
struct share {
    uint64_t row, row_end, bytes, move_ps;
};

/* The share of a request for `bytes` of the bytes from `from` to `to` of a pseudo channel. */
static struct share share_of(uint64_t from, uint64_t to, uint64_t bytes)
{
    if (bytes != last_share.bytes) {
        last_share.bytes = bytes;
        last_share.move_ps = move_ps(bytes, kb_attrs.hbm_ctrl_pc_bw_bps);
    }
    return (struct share){quotient(from, row), quotient(to, row), bytes, last_share.move_ps};
}

/* The share of the pseudo channel that has the i-th block of [a, a + n). */
static struct share channel_share(uint64_t a, uint64_t n, uint64_t i)
{
    uint64_t end = a + n - 1, first = quotient(a, piece), last = quotient(end, piece);
    uint64_t from = first + i, more = quotient(last - from, pcs), to = from + more * pcs.by;
    uint64_t skip = from == first ? rest(a, piece) : 0, drop = to == last ? piece.by - 1 - rest(end, piece) : 0;
    return share_of(quotient(from, pcs) * piece.by + skip, quotient(to, pcs) * piece.by + piece.by - 1 - drop,
                    (more + 1) * piece.by - skip - drop);
}

uint64_t hbm_touches(uint64_t a, uint64_t n)
{
    uint64_t blocks = quotient(a + n - 1, piece) - quotient(a, piece) + 1;
    return blocks < pcs.by ? blocks : pcs.by;
}

struct hbm_rows hbm_rows(uint64_t a, uint64_t n, uint64_t i)
{
    struct share share = channel_share(a, n, i);
    return (struct hbm_rows){rest(quotient(a, piece) + i, pcs), share.row, share.row_end};
}

/* Whether all pseudo channels of a slice are occupied until after first_ps, so that they serve nothing up to then. */
static bool are_later(const struct pseudo_channel *channels, uint64_t first_ps)
{
    for (const struct pseudo_channel *pc = channels; pc < channels + pcs.by; pc++)
        if (pc->free_ps <= first_ps)
            return false;
    return true;
}

/* What a request gets that occupies pseudo channels from start_ps to end_ps, and takes access_ps more. */
static inline struct served served_of(uint64_t start_ps, uint64_t end_ps, uint64_t access_ps, bool in_order)
{
    return (struct served){time_after(start_ps, access_ps), time_after(end_ps, access_ps), in_order};
}

/* Serves a request share by share. */
static __attribute__((noinline)) struct served shares_serve(const struct range *range, uint64_t t_ps, uint64_t access_ps)
{
    uint64_t a = range->offset, n = range->bytes, first = quotient(a, piece), at = rest(first, pcs);
    uint64_t touched = hbm_touches(a, n);
    bool watched = is_observed(MOMENT_reserved);
    struct pseudo_channel *channels = slice_channels(range->number);
    uint64_t busy_ps = 0, wait_ps = 0, start_ps = UINT64_MAX, end_ps = 0;
    for (uint64_t i = 0; i < touched; i++, at = at + 1 == pcs.by ? 0 : at + 1) {
        struct pseudo_channel *pc = &channels[at];
        struct share share = channel_share(a, n, i);
        struct hbm_turn turn = hbm_turn_of(pc, share.row, share.row_end, share.move_ps, t_ps);
        hbm_turn_take(pc, &turn);
        if (watched)
            tell_reserved(RESOURCE_PSEUDO_CHANNEL, pc - kb_pseudo_channels, share.bytes, t_ps, turn.start_ps, pc->free_ps);
        busy_ps += turn.length_ps;
        wait_ps += turn.start_ps - t_ps;
        if (start_ps > turn.start_ps)
            start_ps = turn.start_ps;
        if (end_ps < pc->free_ps)
            end_ps = pc->free_ps;
    }
    hbm_count(&kb_hbm[range->number], busy_ps, wait_ps);
    return served_of(start_ps, end_ps, access_ps, are_later(channels, start_ps));
}

bool hbm_are_level(const struct pseudo_channel *channels)
{
    const struct pseudo_channel *first = channels;
    for (const struct pseudo_channel *pc = channels + 1; pc < channels + pcs.by; pc++)
        if (pc->free_ps != first->free_ps || pc->open_row != first->open_row)
            return false;
    return true;
}

static inline struct served hbm_serve(const struct range *range, const struct payload *payload, uint64_t t_ps,
                                      uint64_t access_ps)
{
    struct hbm_slice *slice = &kb_hbm[range->number];
    struct pseudo_channel *first = slice_first_channel(range->number);
    struct hbm_turn turn;
    if (is_observed(MOMENT_reserved) || !hbm_level_turn(slice, first, range->offset, payload, t_ps, &turn))
        return shares_serve(range, t_ps, access_ps);
    hbm_level_take(slice, first, &turn);
    return served_of(turn.start_ps, turn.start_ps + turn.length_ps, access_ps, turn.length_ps > 0);
}

struct served hbm_read(const struct range *range, const struct payload *payload, uint64_t t_ps)
{
    return hbm_serve(range, payload, t_ps, kb_attrs.hbm_ctrl_access_ps);
}

struct served hbm_write(const struct range *range, const struct payload *payload, uint64_t t_ps)
{
    return hbm_serve(range, payload, t_ps, 0);
}

/* ---- models of users */

struct kb_memory_request own_ask(const struct range *range, uint64_t t_ps, bool writes)
{
    return (struct kb_memory_request){range->number, writes, range->offset, range->bytes, t_ps};
}

/* A sum of times that does not fit is UINT64_MAX. */
static void own_check(const char *model, const struct kb_memory_request *ask, const struct kb_served *said)
{
    if (said->first_ps >= ask->at_ps && said->last_ps >= said->first_ps && said->last_ps < UINT64_MAX)
        return;
    run_failed("%s of %s: a %s of %" PRIu64 " bytes at offset %" PRIu64 " of memory %" PRIu32 ", asked at %"
               PRIu64 " ps, cannot be served from %" PRIu64 " to %" PRIu64 " ps", model, kb_machine_name,
               ask->writes ? "write" : "read", ask->bytes, ask->offset, ask->memory, ask->at_ps, said->first_ps,
               said->last_ps);
}

struct served own_served(const char *model, enum space space, const struct kb_memory_request *ask,
                         const struct kb_served *said)
{
    own_check(model, ask, said);
    bool hbm = space == SPACE_HBM, reads = hbm || !ask->writes;
    enum resource_kind resource = hbm ? RESOURCE_HBM_MODEL : space == SPACE_SRAM ? RESOURCE_SRAM_MODEL
                                : ask->writes ? RESOURCE_TCM_WRITE : RESOURCE_TCM_READ;
    uint64_t start_ps = sum(ask->at_ps, said->wait_ps);
    *(reads ? &stats.read_busy_ps[space] : &stats.write_busy_ps[space]) += said->busy_ps;
    *(reads ? &stats.read_wait_ps[space] : &stats.write_wait_ps[space]) += said->wait_ps;
    if (hbm) {
        kb_hbm[ask->memory].busy_ps += said->busy_ps;
        kb_hbm[ask->memory].wait_ps += said->wait_ps;
    }
    observe_reserved(resource, ask->memory, ask->bytes, ask->at_ps, start_ps, sum(start_ps, said->busy_ps));
    return (struct served){said->first_ps, said->last_ps, .in_order = false};
}

uint64_t memory_write_done_ps(const struct range *range, const struct payload *payload, uint64_t head_ps,
                              uint64_t delivered_ps)
{
    struct served served = memory_write(range, payload, head_ps);
    return served.last_ps > delivered_ps ? served.last_ps : delivered_ps;
}
