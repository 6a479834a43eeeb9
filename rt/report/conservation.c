/* conservation.c: the laws of laws.def. Each function returns NULL, or what breaks its law. */
#include "conservation.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

/* Bytes that come to a router or a port and leave it, by the busy times of links. */
struct flow {
    double in, out;
};

/* Gathered once for a check, which mostly passes over all links, memories and PEs. */
static struct {
    uint64_t free_ps;                                   /* the end of the last reservation that took time, or now */
    uint64_t links_ps[LINK_CLASSES];                    /* busy times */
    uint64_t link;                                      /* the first that is busy for longer than it exists, or NO_LINK_BUSY */
    double bytes_per_ps[LINK_SPEEDS];                   /* of links, by speed; those between chips are not in it */
    struct ARRAY(struct flow) flows;                    /* of the routers and ports of all cubes, as flow_of has them */
    struct ARRAY(const struct pe *) at_work;            /* PEs that have a tile or a command, in their order */
    uint64_t unread, unread_bytes;                      /* messages that were sent and not received */
    const char *slice;                                  /* that is busy for longer than it exists, or NULL */
    const char *credits, *waits;                        /* of rings: what breaks their law; a receive that waits; or NULL */
    struct host_bytes host;
} at_end;

static const uint64_t NO_LINK_BUSY = UINT64_MAX;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns NULL if so many servers can have been busy for so long in all. */
static const char *longer(const char *what, uint64_t busy_ps, uint64_t servers, uint64_t exists_ps)
{
    return busy_ps <= product(exists_ps, servers) ? NULL
           : arena_printf("%s: %" PRIu64 " ps of %" PRIu64, what, busy_ps, product(exists_ps, servers));
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

/* The routers and ports of a cube follow each other. */
static uint32_t flows_of_cube(void)
{
    return cube_port(&kb_shape, SIDES) - cube_router(&kb_shape, 0);
}

/* The flow of a node of a cube whose flows are given; NULL: it is neither a router nor a port. */
static inline struct flow *flow_in(struct flow *cube, uint32_t node)
{
    uint32_t position = node - cube_router(&kb_shape, 0);
    return position < flows_of_cube() ? &cube[position] : NULL;
}

static struct flow *flow_of(struct place place)
{
    return place.cube == OUTSIDE ? NULL : flow_in(&at_end.flows.at[place_cube(place) * flows_of_cube()], place.node);
}

static double link_bytes(uint64_t number, uint32_t speed)
{
    double per_ps = speed < LINK_SPEEDS ? at_end.bytes_per_ps[speed] : 1e-12 * (double)link_rate(speed)->bw_bps;
    return per_ps * (double)kb_links[number].busy_ps;
}

/* A link that was busy, between nodes of which at least one is mostly a router. */
static inline void gather_link(uint64_t number, uint32_t speed, struct flow *from, struct flow *to)
{
    const struct fabric_link *link = &kb_links[number];
    double bytes = link_bytes(number, speed);
    at_end.free_ps = later(at_end.free_ps, link->free_ps);
    at_end.links_ps[speed_class(speed)] += link->busy_ps;
    if (link->busy_ps > later(now_ps, link->free_ps) && at_end.link == NO_LINK_BUSY)
        at_end.link = number;
    if (from)
        from->out += bytes;
    if (to)
        to->in += bytes;
}

static void gather_links_between(uint64_t first, uint64_t end)
{
    for (uint64_t link = first; link < end; link++) {
        if (!kb_links[link].busy_ps)
            continue;
        struct link_ends ends = link_ends(link);
        gather_link(link, link_speed(link), flow_of(ends.from), flow_of(ends.to));
    }
}

/* All but the last links of a cube lead to its own nodes. */
static void gather_links_of_cube(uint32_t first, struct flow *flows)
{
    uint32_t across = cube_link_ucie(&kb_shape, SIDE_N);
    for (uint32_t i = 0; i < across; i++)
        if (kb_links[first + i].busy_ps)
            gather_link(first + i, kb_cube_links[i].speed, flow_in(flows, kb_cube_links[i].from),
                        flow_in(flows, kb_cube_links[i].to));
    gather_links_between(first + across, first + kb_shape.cube_links);
}

static void gather_links(void)
{
    uint32_t next = 0, flows = flows_of_cube();
    for (uint32_t speed = 0; speed < LINK_SPEEDS; speed++)
        at_end.bytes_per_ps[speed] = 1e-12 * (double)link_rate(speed)->bw_bps;
    array_reserve(&at_end.flows, (size_t)cube_count() * flows);
    memset(at_end.flows.at, 0, (size_t)cube_count() * flows * sizeof *at_end.flows.at);
    for (uint32_t cube = 0; cube < cube_count(); cube++) {
        struct place place = {.sip = cube / kb_shape.cubes, .cube = cube % kb_shape.cubes};
        uint32_t first = cube_first_link(place);
        gather_links_between(next, first);
        gather_links_of_cube(first, &at_end.flows.at[cube * flows]);
        next = first + kb_shape.cube_links;
    }
    gather_links_between(next, link_count());
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

static void gather_slice(uint32_t slice)
{
    uint64_t free_ps = later(now_ps, slice_free_ps(slice));
    at_end.free_ps = later(at_end.free_ps, free_ps);
    if (kb_hbm[slice].busy_ps > free_ps && !at_end.slice)   /* else one pseudo channel can have been */
        at_end.slice = longer("HBM slice", kb_hbm[slice].busy_ps, kb_attrs.hbm_ctrl_pcs, free_ps);
}

static bool serves(const struct pe *pe)
{
    const struct token *token = NULL;
    for (const struct server *server = pe->servers; server < pe->servers + kb_pe_servers; server++)
        token = server->token ? server->token : token;
    return token || pe->dma.servers || pe->compute.servers;
}

static void gather_pe(const struct pe *pe)
{
    at_end.free_ps = later(at_end.free_ps, channels_free_ps(&pe->tcm));
    if (serves(pe) || pe->waiting || pe->travelling || pe->feed || pe->submitted || pe->scheduling || pe->feeding
        || pe->lowest)
        *array_add(&at_end.at_work) = pe;
}

static void gather(void)
{
    at_end.free_ps = now_ps;
    at_end.link = NO_LINK_BUSY;
    at_end.unread = at_end.unread_bytes = at_end.at_work.count = 0;
    at_end.slice = at_end.credits = at_end.waits = NULL;
    at_end.host = (struct host_bytes){0};
    memset(at_end.links_ps, 0, sizeof at_end.links_ps);
    gather_links();
    for (uint32_t slice = 0; slice < slice_count(); slice++)
        gather_slice(slice);
    for (uint32_t pe = 0; pe < pe_count(); pe++)
        gather_pe(&kb_pe[pe]);
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
    uint64_t slices_ps = 0, waits_ps = 0;
    for (uint32_t slice = 0; slice < slice_count(); slice++) {
        slices_ps += kb_hbm[slice].busy_ps;
        waits_ps += kb_hbm[slice].wait_ps;
    }
    const char *broken = unless_equal("busy time of HBM slices", slices_ps, stats.read_busy_ps[SPACE_HBM]);
    if (!broken)
        broken = unless_equal("waits for HBM slices", waits_ps, stats.read_wait_ps[SPACE_HBM]);
    for (unsigned class = 0; class < LINK_CLASSES && !broken; class++)
        if (at_end.links_ps[class] != stats.link_busy_ps[class])
            broken = unless_equal(class_name(class), at_end.links_ps[class], stats.link_busy_ps[class]);
    return broken;
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
    }
    if (!broken && !kb_has_model[NODE_hbm_ctrl])
        broken = at_end.slice;
    if (!broken && at_end.link != NO_LINK_BUSY) {
        const struct fabric_link *link = &kb_links[at_end.link];
        broken = longer(arena_printf("the link behind %s", place_name(link_ends(at_end.link).from)), link->busy_ps, 1,
                        later(now_ps, link->free_ps));
    }
    if (!broken && !kb_has_model[NODE_pe_tcm])
        broken = channels_busy(SPACE_TCM, pe_count());
    return broken || kb_has_model[NODE_sram] ? broken : channels_busy(SPACE_SRAM, sram_count());
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
    if (!broken && !kb_has_model[NODE_hbm_ctrl] && slice_count())
        broken = memory_roofline("HBM", KB_HBM, SPACE_HBM, slice_count());
    if (!broken && !kb_has_model[NODE_sram] && sram_count())
        broken = memory_roofline("srams", KB_SRAM, SPACE_SRAM, sram_count());
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

/* The slots that the tiles of a PE have, by stage; STAGE_NONE has none. */
static void take_slots(uint32_t slots[STAGES + 1], const struct pe *pe)
{
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
}

static const char *slots_of_pe_broken(const struct pe *pe, const uint32_t slots[STAGES + 1])
{
#define STAGE(name, part, engine, busy)                                                                                \
    if (pe->free_slots[STAGE_##name] + slots[STAGE_##name] != kb_attrs.part##_queue_depth)                             \
        return arena_printf("%s, stage %s: %u free and %u taken of %u", pe_name(pe), #name,                            \
                            (unsigned)pe->free_slots[STAGE_##name], (unsigned)slots[STAGE_##name],                     \
                            (unsigned)kb_attrs.part##_queue_depth);
#include "kb/stages.def"
#undef STAGE
    return NULL;
}

static const char *slots_broken(void)
{
    static const uint32_t none[STAGES + 1];
    const char *broken = NULL;
    size_t next = 0;                                    /* of those at work */
    for (const struct pe *pe = kb_pe; pe < kb_pe + pe_count() && !broken; pe++) {
        uint32_t slots[STAGES + 1] = {0};
        bool at_work = next < at_end.at_work.count && at_end.at_work.at[next] == pe;
        next += at_work;
        if (at_work)
            take_slots(slots, pe);
        broken = slots_of_pe_broken(pe, at_work ? slots : none);
        broken = broken && symmetry_sleeps(pe) ? NULL : broken;
    }
    return broken;
}

static const char *buffers_broken(void)
{
    for (size_t i = 0; i < at_end.at_work.count; i++) {
        const struct pe *pe = at_end.at_work.at[i];
        uint64_t end = 0;
        for (const struct buffer *buffer = pe->lowest; buffer && !symmetry_sleeps(pe); buffer = buffer->higher) {
            if (buffer->at < end || buffer->at + buffer->bytes > kb_attrs.pe_tcm_reserved_bytes)
                return arena_printf("%s: %" PRIu64 " bytes at %" PRIu64, pe_name(pe), buffer->bytes, buffer->at);
            end = buffer->at + buffer->bytes;
        }
    }
    return NULL;
}

static const char *credits_broken(void)
{
    return at_end.credits;
}

/* ---- a run that has ended well */

static bool has_data(uint32_t rank)
{
    return kb_nodes[rank].departing || kb_nodes[rank].arriving;
}

static bool cube_has_data(struct place cube, uint32_t *rank)
{
    uint32_t first = place_rank(cube), end = first + cube_pe_node(&kb_shape, 0, NODE_pe_cpu);
    for (*rank = first; *rank < end; ++*rank)
        if (has_data(*rank))
            return true;
    for (uint32_t pe = 0; pe < kb_shape.pes; pe++) {
        *rank = first + cube_pe_node(&kb_shape, pe, NODE_pe_dma);
        if (has_data(*rank))
            return true;
    }
    return false;
}

/* Finds a node that data leave or come to: of a PE, that can only be its pe_dma. */
static bool find_data(uint32_t *rank)
{
    for (*rank = 0; *rank < SYSTEM_NODES; ++*rank)
        if (has_data(*rank))
            return true;
    for (uint32_t sip = 0; sip < kb_shape.sips; sip++)
        for (enum node_kind kind = NODE_pcie_ep; kind < NODE_pcie_ep + SIP_NODES; kind++) {
            *rank = place_rank((struct place){sip, OUTSIDE, kind});
            if (has_data(*rank))
                return true;
        }
    for (uint32_t cube = 0; cube < cube_count(); cube++)
        if (cube_has_data((struct place){.sip = cube / kb_shape.cubes, .cube = cube % kb_shape.cubes}, rank))
            return true;
    return false;
}

static const char *idle_broken(void)
{
    if (at_end.at_work.count) {
        const struct pe *pe = at_end.at_work.at[0];
        const char *what = serves(pe) ? "an engine serves a tile" : pe->waiting ? "a tile waits for an engine"
                           : pe->travelling || pe->feed ? "a tile is between two engines"
                           : pe->submitted || pe->scheduling || pe->feeding ? "a command waits" : "a tile has buffers";
        return arena_printf("%s: %s", pe_name(pe), what);
    }
    uint32_t rank;
    if (!at_end.unread && find_data(&rank))
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

/* ---- ways of data */

/* The most bytes that links move in a ps; 0: some are infinitely fast, so that bytes are not known by busy times. */
static double most_bytes_per_ps(void)
{
    double most_bps = 0;
    for (unsigned class = 0; class < LINK_CLASSES; class++) {
        if (!links_exist(class))
            continue;
        if (link_bw_bps(class) == 0)
            return 0;
        most_bps = fmax(most_bps, (double)link_bw_bps(class));
    }
    return 1e-12 * most_bps;
}

/* The most messages that moved the payload of PEs: a transfer that is split has a piece at each of its ends. */
static double most_messages(void)
{
    uint64_t most_bytes = kb_attrs.pe_dma_max_request_bytes;
    uint64_t pieces = most_bytes ? demand.transfers + demand.fabric_bytes / most_bytes : 0;
    return (double)(demand.transfers + pieces);
}

/* Bytes over the attach links of a port, of all planes. */
static double attached_bytes(struct place port)
{
    const struct cube_node *node = &kb_cube_nodes[port.node];
    double bytes = 0;
    for (uint32_t plane = 0; plane < kb_shape.planes; plane++) {
        uint64_t first = cube_first_link(port) + plane * kb_shape.plane_links;
        bytes += link_bytes(first + node->up, LINK_attach) + link_bytes(first + node->down, LINK_attach);
    }
    return bytes;
}

/* Bytes over attach links that messages have spared at ports at which they went on, without a router. */
static double spared_bytes(void)
{
    double bytes = 0;
    for (uint32_t cube = 0; cube < cube_count(); cube++)
        for (enum side side = 0; side < SIDES; side++) {
            struct place port = {cube / kb_shape.cubes, cube % kb_shape.cubes, cube_port(&kb_shape, side)};
            const struct flow *flow = flow_of(port);
            bytes += flow->in + flow->out - 2 * attached_bytes(port);
        }
    return bytes;
}

/* A message from a PE takes an attach link at each of its ends, and one at each port on its way: two for a ucie link, or a
 * link between chips, one for an io link that leads to or from a cube. Every other io link is followed or preceded by a
 * pcie link. Payload of the host goes to io_cpu over one io link, to m_cpu over one attach link besides those of ports, and
 * on over two. What a send to several PEs takes once is in demand.shared_bytes.
 *
 * Where rows or columns of cubes are closed, messages that come to a cube, or leave it, over an io link or a link between
 * chips may go on at a port. These bytes are known by busy times, if the host has moved none: each message has too many at
 * each cube of its way, by less than those of a ps for each of two links. */
static const char *links_broken(void)
{
    const uint64_t *link = stats.link_bytes, host = at_end.host.all;
    if (demand.is_virtual)                              /* it is not known which of these bytes are in the PE's own TCM */
        return NULL;
    uint64_t ports = 2 * (link[LINK_ucie] + link[LINK_chip]) + link[LINK_io] - (link[LINK_pcie] - host);
    uint64_t expected = 2 * demand.fabric_bytes - demand.shared_bytes + 3 * host, counted = link[LINK_attach] - ports;
    int64_t slack = 0;
    if ((kb_shape.closed_rows || kb_shape.closed_cols) && (link[LINK_io] || link[LINK_chip])) {
        double cubes = (double)kb_shape.sips * (kb_shape.cube_rows + kb_shape.cube_cols), fastest = most_bytes_per_ps();
        if (!fastest || memory_requests)
            return NULL;
        slack = (int64_t)(most_messages() * 2 * cubes * fastest) + 1;
        counted += (uint64_t)llround(spared_bytes());
    }
    int64_t more = (int64_t)(counted - expected), unread = 2 * (int64_t)at_end.unread_bytes;
    return more >= -slack && more <= unread + slack ? NULL : unless_equal("bytes over attach links", counted, expected);
}

/* `copied`: bytes that go on over several links. */
static inline const char *flow_broken(struct place place, const struct flow *flow, double copied, double slack)
{
    double in = flow->in + copied;
    return fabs(in - flow->out) <= slack + 1e-9 * in ? NULL
           : arena_printf("%s: %.0f bytes come, %.0f go", place_name(place), in, flow->out);
}

/* A link is busy for the time of each message rounded up to whole ps: so the bytes of its busy time are too many by less
 * than those of a ps for each message. */
static const char *routers_broken(void)
{
    double fastest = most_bytes_per_ps(), slack = most_messages() * fastest + 1;
    if (!fastest || memory_requests || at_end.unread || demand.is_virtual)
        return NULL;                                    /* bytes are not known by busy times, or not all have arrived */
    for (uint32_t cube = 0; cube < cube_count(); cube++) {
        struct place place = {cube / kb_shape.cubes, cube % kb_shape.cubes, cube_router(&kb_shape, 0)};
        const struct flow *flows = &at_end.flows.at[cube * flows_of_cube()];
        const char *broken = NULL;
        for (uint32_t i = 0, first = place_rank(place); i < flows_of_cube() && !broken; i++, place.node++)
            broken = flow_broken(place, &flows[i], (double)node_copied_bytes(first + i), slack);
        if (broken)
            return broken;
    }
    return NULL;
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
