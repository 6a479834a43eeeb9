/* conservation.c: the laws of laws.def. Each function returns NULL, or what breaks its law. */
#include "conservation.h"

#include <inttypes.h>
#include <math.h>

#include "base/rates.h"
#include "base/stopwatch.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/fail.h"
#include "demand.h"
#include "fastforward/symmetry.h"
#include "host/bounds.h"
#include "kb/measure.h"
#include "launch/host_request.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/ipcq.h"
#include "machine/stats.h"
#include "sim/loop.h"
#include "summary.h"

/* ---- what the laws have in common */

/* What the host has moved: payload, and bytes of each kind of memory. */
struct host_bytes {
    uint64_t all, read[SPACES], written[SPACES];
};

struct busy_link {
    uint32_t number;
    enum link_class class;
};

/* Gathered once for a check: most of its time would go into passes over all links and rings. */
static struct {
    uint64_t free_ps;                                   /* the end of the last reservation, or now */
    uint64_t unread, unread_bytes;                      /* messages that were sent and not received */
    const char *credits, *waits;                        /* of rings: what breaks their law; a receive that waits; or NULL */
    struct host_bytes host;
    struct ARRAY(struct busy_link) links;               /* that were busy */
} at_end;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void gather_ring(const struct ring_counts *ring, void *arg)
{
    (void)arg;
    at_end.unread += ring->sent - ring->received;
    at_end.unread_bytes += ring->unread_bytes;
    if (ring->received > ring->sent || ring->returned > ring->received
        || ring->credits + ring->sent - ring->returned != kb_attrs.pe_ipcq_slots)
        at_end.credits = arena_printf(
            "from %s to %s: %" PRIu64 " credits, %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " freed, of %" PRIu64
            " slots", pe_name(&kb_pe[ring->source]), pe_name(&kb_pe[ring->destination]), ring->credits, ring->sent,
            ring->received, ring->returned, (uint64_t)kb_attrs.pe_ipcq_slots);
    if (ring->waits)
        at_end.waits = arena_printf("a receive of %s from %s waits", pe_name(&kb_pe[ring->destination]),
                                    pe_name(&kb_pe[ring->source]));
}

static void gather_link(uint32_t link)
{
    at_end.free_ps = later(at_end.free_ps, kb_links[link].free_ps);
    if (kb_links[link].busy_ps)
        *array_add(&at_end.links) = (struct busy_link){link, link_class(link)};
}

static void gather_request(const struct memory_request *request)
{
    for (uint32_t i = 0; i < request->count; i++) {
        struct range range;
        address_decode(request->addresses[i], request->bytes, &range);
        *(request->writes ? &at_end.host.written[range.space] : &at_end.host.read[range.space]) += request->bytes;
        at_end.host.all += request->bytes;
    }
}

static uint64_t channels_free_ps(const struct channels *channels)
{
    return later(channels->read_free_ps, channels->write_free_ps);
}

static uint64_t slice_free_ps(uint32_t slice)
{
    uint64_t free_ps = now_ps;
    for (uint64_t i = 0; i < kb_attrs.hbm_ctrl_pcs; i++)
        free_ps = later(free_ps, slice_channels(slice)[i].free_ps);
    return free_ps;
}

static void gather(void)
{
    at_end.free_ps = now_ps;
    at_end.unread = at_end.unread_bytes = at_end.links.count = 0;
    at_end.credits = at_end.waits = NULL;
    at_end.host = (struct host_bytes){0};
    for (uint32_t link = 0, links = (uint32_t)link_count(); link < links; link++)
        gather_link(link);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        at_end.free_ps = later(at_end.free_ps, later(slice_free_ps(pe), channels_free_ps(&kb_pe[pe].tcm)));
    for (uint32_t cube = 0; cube < cube_count(); cube++)
        at_end.free_ps = later(at_end.free_ps, channels_free_ps(&kb_sram[cube]));
    ipcq_visit(gather_ring, NULL);
    for (const struct memory_request *request = memory_requests; request; request = request->next)
        if (!request->failure.set)
            gather_request(request);
}

static const char *class_name(enum link_class class)
{
    return arena_printf("%s links", link_class_names[class]);
}

/* Returns NULL if two figures are equal. */
static const char *unless_equal(const char *what, uint64_t counted, uint64_t expected)
{
    return counted == expected ? NULL
           : arena_printf("%s: %" PRIu64 " instead of %" PRIu64, what, counted, expected);
}

/* ---- times */

static const char *launches_broken(void)
{
    for (const struct launch *launch = launches; launch; launch = launch->next) {
        if (launch->status == LAUNCH_SKIPPED)
            continue;
        bool ended = launch->status == LAUNCH_OK;
        if (launch->submitted_ps > now_ps || (launch->begun && launch->start_ps < launch->submitted_ps)
            || (ended && (launch->done_ps > now_ps || launch->done_ps < launch->start_ps)))
            return arena_printf("%s: submitted at %" PRIu64 ", begun at %" PRIu64 ", done at %" PRIu64 " of %" PRIu64
                                " ps", launch->program, launch->submitted_ps, launch->start_ps, launch->done_ps, now_ps);
        for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++) {
            uint64_t end_ps = run->ended ? run->end_ps : now_ps;
            if (run->started && (run->start_ps < launch->start_ps || end_ps < run->start_ps
                                 || end_ps > (ended ? launch->done_ps : now_ps)))
                return arena_printf("kernel %s on %s, from %" PRIu64 " to %" PRIu64 " ps", run->tl.name,
                                    pe_name(run->tl.pe), run->start_ps, end_ps);
        }
    }
    return NULL;
}

/* ---- sums and lengths */

static const char *sums_broken(void)
{
    uint64_t slices_ps = 0, waits_ps = 0, links_ps[LINK_CLASSES] = {0};
    for (uint32_t slice = 0; slice < pe_count(); slice++) {
        slices_ps += kb_hbm[slice].busy_ps;
        waits_ps += kb_hbm[slice].wait_ps;
    }
    const char *broken = unless_equal("busy time of HBM slices", slices_ps, stats.read_busy_ps[SPACE_HBM]);
    if (!broken)
        broken = unless_equal("waits for HBM slices", waits_ps, stats.read_wait_ps[SPACE_HBM]);
    for (size_t i = 0; i < at_end.links.count; i++)
        links_ps[at_end.links.at[i].class] += kb_links[at_end.links.at[i].number].busy_ps;
    for (unsigned class = 0; class < LINK_CLASSES && !broken; class++)
        broken = unless_equal(class_name(class), links_ps[class], stats.link_busy_ps[class]);
    return broken;
}

static const char *longer(const char *what, uint64_t busy_ps, uint64_t servers, uint64_t exists_ps)
{
    return busy_ps <= product(exists_ps, servers) ? NULL
           : arena_printf("%s: %" PRIu64 " ps of %" PRIu64, what, busy_ps, product(exists_ps, servers));
}

/* Of all channels for reads or writes of a kind of memory. */
static const char *channels_busy(enum space space, uint64_t memories)
{
    const char *broken = longer(space == SPACE_TCM ? "TCMs, reading" : "srams, reading", stats.read_busy_ps[space],
                                memories, at_end.free_ps);
    return broken ? broken : longer(space == SPACE_TCM ? "TCMs, writing" : "srams, writing", stats.write_busy_ps[space],
                                    memories, at_end.free_ps);
}

static const char *busy_broken(void)
{
    const char *broken = NULL;
    for (unsigned engine = 0; engine < ENGINES && !broken; engine++)
        broken = longer(engine_names[engine], stats.busy_ps[engine], pe_count() * engine_servers(engine), now_ps);
    for (uint32_t pe = 0; pe < pe_count() && !broken; pe++) {
        uint64_t most_ps = later(busy_total_ps(&kb_pe[pe].dma, now_ps), busy_total_ps(&kb_pe[pe].compute, now_ps));
        if (most_ps > now_ps)
            broken = longer(pe_name(&kb_pe[pe]), most_ps, 1, now_ps);
        if (!broken && !kb_has_model[NODE_hbm_ctrl])
            broken = longer("HBM slice", kb_hbm[pe].busy_ps, kb_attrs.hbm_ctrl_pcs, slice_free_ps(pe));
    }
    for (size_t i = 0; i < at_end.links.count && !broken; i++) {
        uint32_t link = at_end.links.at[i].number;
        if (kb_links[link].busy_ps > later(now_ps, kb_links[link].free_ps))
            broken = longer(arena_printf("the link behind %s", place_name(link_ends(link).from)), kb_links[link].busy_ps,
                            1, later(now_ps, kb_links[link].free_ps));
    }
    if (!broken && !kb_has_model[NODE_pe_tcm])
        broken = channels_busy(SPACE_TCM, pe_count());
    return broken || kb_has_model[NODE_sram] ? broken : channels_busy(SPACE_SRAM, cube_count());
}

static const char *sooner(const char *what, uint64_t needs_ps)
{
    return needs_ps <= at_end.free_ps ? NULL
           : arena_printf("%s: %" PRIu64 " ps instead of at least %" PRIu64, what, at_end.free_ps, needs_ps);
}

static const char *memory_roofline(const char *what, enum kb_space as, enum space space, uint64_t memories)
{
    return sooner(what, kb_memory_ps(as, ceil_div(stats.read_bytes[space], memories),
                                     ceil_div(stats.write_bytes[space], memories)));
}

static const char *roofline_broken(void)
{
    const char *broken = NULL;
    for (unsigned class = 0; class < LINK_CLASSES && !broken; class++)
        if (stats.link_bytes[class])
            broken = sooner(class_name(class),
                            move_ps(ceil_div(stats.link_bytes[class], peak_links(class)), link_bw_bps(class)));
    if (!broken && !kb_has_model[NODE_hbm_ctrl])
        broken = memory_roofline("HBM", KB_HBM, SPACE_HBM, pe_count());
    if (!broken && !kb_has_model[NODE_sram])
        broken = memory_roofline("srams", KB_SRAM, SPACE_SRAM, cube_count());
    if (!broken && !kb_has_model[NODE_pe_tcm] && !kb_has_model[NODE_pe_fetch_store])
        broken = memory_roofline("TCMs", KB_TCM, SPACE_TCM, pe_count());
    return broken;
}

/* By the dtype that the arrays are fastest with. */
static const char *peak_broken(void)
{
    uint64_t least_ps = UINT64_MAX, macs = ceil_div(stats.gemm_flops / 2, pe_count());
    for (unsigned dtype = 0; dtype < DTYPES; dtype++)
        if (kb_gemm_k_per_cycle[dtype])
            least_ps = kb_min(least_ps, kb_gemm_ps((enum kb_dtype)dtype, macs));
    bool bounded = least_ps < UINT64_MAX && !kb_has_model[NODE_pe_gemm];
    return bounded && least_ps > now_ps ? sooner("operations", least_ps) : NULL;
}

/* ---- slots, buffers and credits. PEs that sleep have the state in which they fell asleep, without tiles. */

static void take_slot(uint32_t slots[STAGES + 1], const struct token *token, unsigned stage)
{
    if (token && !token->direct)
        slots[stage]++;
}

static const char *slots_broken(void)
{
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        uint32_t slots[STAGES + 1] = {0};               /* that tiles have; STAGE_NONE has none */
        if (symmetry_sleeps(pe))
            continue;
        for (unsigned stage = 0; stage < STAGES; stage++)
            for (const struct token *token = pe->queue[stage].head; token; token = token->next)
                take_slot(slots, token, stage);
        for (const struct token *token = pe->travelling; token; token = token->next)
            take_slot(slots, token, token->stage->kind);
        for (const struct server *server = pe->servers; server < pe->servers + kb_pe_servers; server++)
            if (server->token)
                take_slot(slots, server->token, server->token->stage[1].kind);
        if (pe->feed)
            take_slot(slots, pe->feed, pe->feed->stage->kind);
#define STAGE(name, part, engine, busy)                                                                                \
        if (pe->free_slots[STAGE_##name] + slots[STAGE_##name] != kb_attrs.part##_queue_depth)                         \
            return arena_printf("%s, stage %s: %u free and %u taken of %u", pe_name(pe), #name,                        \
                                (unsigned)pe->free_slots[STAGE_##name], (unsigned)slots[STAGE_##name],                 \
                                (unsigned)kb_attrs.part##_queue_depth);
#include "kb/stages.def"
#undef STAGE
    }
    return NULL;
}

static const char *buffers_broken(void)
{
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        uint64_t end = 0;
        for (const struct token *token = pe->lowest; token && !symmetry_sleeps(pe); token = token->higher) {
            if (token->block < end || token->block + token->block_bytes > kb_attrs.pe_tcm_reserved_bytes)
                return arena_printf("%s, tile %" PRIu64 ": %" PRIu64 " bytes at %" PRIu64, pe_name(pe), token->tile.id,
                                    token->block_bytes, token->block);
            end = token->block + token->block_bytes;
        }
    }
    return NULL;
}

static const char *credits_broken(void)
{
    return at_end.credits;
}

/* ---- a run that has ended well */

static const char *idle_broken(void)
{
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count(); pe++) {
        bool serves = pe->dma.servers || pe->compute.servers;
        for (const struct server *server = pe->servers; server < pe->servers + kb_pe_servers; server++)
            serves |= server->token != NULL;
        const char *what = serves ? "an engine serves a tile" : pe->waiting ? "a tile waits for an engine"
                           : pe->travelling || pe->feed ? "a tile is between two engines"
                           : pe->submitted || pe->scheduling || pe->feeding ? "a command waits"
                           : pe->lowest ? "a tile has buffers" : NULL;
        if (what)
            return arena_printf("%s: %s", pe_name(pe), what);
    }
    for (uint32_t rank = 0; rank < node_count() && !at_end.unread; rank++)
        if (kb_nodes[rank].departing || kb_nodes[rank].arriving)
            return arena_printf("data leave %s, or come to it", place_name(rank_place(rank)));
    return at_end.waits;
}

static const char *commands_broken(void)
{
    uint64_t submitted = 0;
    for (const struct launch *launch = launches; launch; launch = launch->next)
        for (const struct kernel_run *run = launch->runs; run < launch->runs + launch->count; run++)
            submitted += run->tl.commands;
    return unless_equal("complete commands", demand.commands, submitted);
}

static const char *work_broken(void)
{
    const char *broken = unless_equal("services", stats.services, demand.services);
    if (!broken)
        broken = unless_equal("operations of pe_gemm", stats.gemm_flops, demand.gemm_flops);
    if (!broken && !kb_has_model[NODE_pe_gemm])
        broken = unless_equal("busy time of pe_gemm", stats.busy_ps[ENGINE_GEMM], demand.gemm_ps);
    if (!broken && !kb_has_model[NODE_pe_math])
        broken = unless_equal("busy time of pe_math", stats.busy_ps[ENGINE_MATH], demand.math_ps);
    return broken;
}

/* Messages that were not received are in the counts of memories and links, and not in those of commands: `most_unread`
 * bytes of them at most. */
static const char *unless_counted(const char *what, uint64_t counted, uint64_t expected, uint64_t most_unread)
{
    bool is_unread = counted > expected && counted - expected <= most_unread;
    return is_unread ? NULL : unless_equal(what, counted, expected);
}

static const char *memories_broken(void)
{
    static const char *const reads[SPACES] = {
        [SPACE_HBM] = "bytes read from HBM", [SPACE_TCM] = "bytes read from TCMs", [SPACE_SRAM] = "bytes read from srams"};
    static const char *const writes[SPACES] = {
        [SPACE_HBM] = "bytes written to HBM", [SPACE_TCM] = "bytes written to TCMs", [SPACE_SRAM] = "bytes written to srams"};
    uint64_t read = 0, written = 0, reads_asked = demand.virtual_read_bytes, writes_asked = demand.virtual_write_bytes;
    const char *broken = NULL;
    for (unsigned space = 0; space < SPACES && !broken; space++) {
        uint64_t read_asked = demand.read_bytes[space] + at_end.host.read[space];
        uint64_t write_asked = demand.write_bytes[space] + at_end.host.written[space];
        read += stats.read_bytes[space];
        written += stats.write_bytes[space];
        reads_asked += read_asked;
        writes_asked += write_asked;
        if (!demand.is_virtual)
            broken = unless_counted(reads[space], stats.read_bytes[space], read_asked, at_end.unread_bytes);
        if (!demand.is_virtual && !broken)
            broken = unless_counted(writes[space], stats.write_bytes[space], write_asked, at_end.unread_bytes);
    }
    if (!broken)
        broken = unless_counted("bytes read from memories", read, reads_asked, at_end.unread_bytes);
    return broken ? broken : unless_counted("bytes written to memories", written, writes_asked, at_end.unread_bytes);
}

/* A message from a PE takes an attach link at each of its ends, and one at each port on its way: two for a ucie link,
 * one for an io link that leads to or from a cube. Every other io link is followed or preceded by a pcie link. Payload of
 * the host goes to io_cpu over one io link, to m_cpu over one attach link besides those of ports, and on over two. */
static const char *links_broken(void)
{
    const uint64_t *link = stats.link_bytes, host = at_end.host.all;
    if (demand.is_virtual)                              /* it is not known which of these bytes are in the PE's own TCM */
        return NULL;
    uint64_t ports = 2 * link[LINK_ucie] + link[LINK_io] - (link[LINK_pcie] - host);
    return unless_counted("bytes over attach links", link[LINK_attach] - ports, 2 * demand.fabric_bytes + 3 * host,
                          2 * at_end.unread_bytes);
}

/* Bytes that come to a node and leave it, over links. */
struct flow {
    double in, out;
};

static const char *flow_broken(struct place place, const struct flow *flow)
{
    bool passes_on = place_is_kind(place, NODE_router) || place_is_kind(place, NODE_port);
    return passes_on ? arena_printf("%s: %.0f bytes come, %.0f go", place_name(place), flow->in, flow->out) : NULL;
}

/* A link is busy for the time of each message rounded up to whole ps: so the bytes of its busy time are too many by less
 * than those of a ps for each message. */
static const char *routers_broken(void)
{
    double most_bps = 0;
    for (unsigned class = 0; class < LINK_CLASSES; class++) {
        if (link_bw_bps(class) == 0 || memory_requests || at_end.unread || demand.is_virtual)
            return NULL;                                /* bytes are not known by busy times, or not all have arrived */
        most_bps = fmax(most_bps, (double)link_bw_bps(class));
    }
    double slack = (double)demand.transfers * most_bps * 1e-12 + 1;
    struct flow *flows = array_zeros(node_count(), sizeof *flows);
    const char *broken = NULL;
    for (size_t i = 0; i < at_end.links.count; i++) {
        struct busy_link link = at_end.links.at[i];
        struct link_ends ends = link_ends(link.number);
        double bytes = (double)kb_links[link.number].busy_ps * 1e-12 * (double)link_bw_bps(link.class);
        flows[place_rank(ends.from)].out += bytes;
        flows[place_rank(ends.to)].in += bytes;
    }
    for (uint32_t rank = 0; rank < node_count() && !broken; rank++)
        if (fabs(flows[rank].in - flows[rank].out) > slack + 1e-9 * flows[rank].in)
            broken = flow_broken(rank_place(rank), &flows[rank]);
    array_freed(flows);
    return broken;
}

/* ---- all of them */

static const char *laws_broken(bool ended_well)
{
    enum { ALWAYS, GOOD };
    static const struct {
        const char *name, *law;
        int when;
        const char *(*broken)(void);
    } laws[] = {
#define LAW(name, when, law) {#name, law, when, name##_broken},
#include "laws.def"
    };
    gather();
    for (size_t i = 0; i < COUNT_OF(laws); i++) {
        const char *what = laws[i].when == ALWAYS || ended_well ? laws[i].broken() : NULL;
        if (what)
            return arena_printf("internal error: law %s does not hold: %s: %s; this is a bug of kbgen, and the result is "
                                "not to be trusted", laws[i].name, laws[i].law, what);
    }
    return NULL;
}

const char *conservation_check(bool ended_well)
{
    if (sim_failed())
        return NULL;
    unsigned phase = phase_enter(PHASE_checks);
    const char *broken = laws_broken(ended_well);
    phase_leave(phase);
    if (broken)
        message("%s: %s\n", program_name, broken);
    return broken;
}
