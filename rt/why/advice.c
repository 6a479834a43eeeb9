/* advice.c: the line that takes most of the critical path, what its time goes to, and the key that governs that. */
#include "advice.h"

#include <inttypes.h>
#include <string.h>

#include "base/rates.h"
#include "common/arena.h"
#include "common/array.h"
#include "machine/emitted.h"
#include "machine/route.h"
#include "machine/tiling.h"
#include "sim/observer.h"
#include "sites.h"

enum blame {
#define ADVICE(name, what, change) CAUSE_##name,
#include "advice.def"
    CAUSES
};

static const struct {
    const char *name, *what, *change;
} advices[CAUSES] = {
#define ADVICE(name, what, change) {#name, what, change},
#include "advice.def"
};

#define PART "cube.pe_template.components."

/* What a message costs at a node, by its kind. */
static const char *const overheads[NODE_KINDS] = {
    [NODE_host] = "system.host.overhead_ns",
    [NODE_switch] = "system.switch.overhead_ns",
    [NODE_pcie_ep] = "sip.pcie_ep.overhead_ns",
    [NODE_io_cpu] = "sip.io_cpu.overhead_ns",
    [NODE_m_cpu] = "cube.m_cpu.attrs.overhead_ns",
    [NODE_sram] = "cube.sram.attrs.overhead_ns",
    [NODE_router] = "cube.noc.router.overhead_ns",
    [NODE_port] = "cube.port.overhead_ns",
    [NODE_hbm_ctrl] = "cube.hbm_ctrl.attrs.overhead_ns",
#define SYSTEM_NODE(kind)
#define SIP_NODE(kind)
#define CUBE_NODE(kind)
#define PE_NODE(kind, hangs) [NODE_##kind] = PART #kind ".attrs.overhead_ns",
#include "kb/kinds.def"
};

static const struct {
    const char *latency, *bandwidth;
} links[LINK_CLASSES] = {
    [LINK_pcie] = {"system.pcie.latency_ns", "system.pcie.bw_gbs"},
    [LINK_io] = {"sip.io.latency_ns", "sip.io.bw_gbs"},
    [LINK_ucie] = {"sip.ucie.latency_ns", "sip.ucie.bw_gbs"},
    [LINK_noc] = {"cube.noc.pitch_mm", "cube.noc.link_bw_gbs"},
    [LINK_attach] = {"cube.noc.attach.length_mm", "cube.noc.attach.bw_gbs"},
};

/* What a segment counts as, the key that governs its length, and how much of it does not depend on how much is moved or
 * computed. */
struct cost {
    enum blame cause;
    const char *key;
    uint64_t fixed_ps;
};

static enum node_kind kind_of(const struct segment *segment)
{
    if (place_resource(segment->at) != RESOURCE_NODE)
        return NODE_host;
    struct place place = rank_place((uint32_t)place_number(segment->at));
    return place.cube == OUTSIDE ? place.node : kb_cube_nodes[place.node].kind;
}

/* Whether a model of a user serves what a segment is at: no key governs that. */
static bool is_modelled(const struct segment *segment)
{
    switch (place_resource(segment->at)) {
    case RESOURCE_LINK: return false;
    case RESOURCE_TCM_READ:
    case RESOURCE_TCM_WRITE: return kb_has_model[NODE_pe_tcm];
    case RESOURCE_SRAM_READ:
    case RESOURCE_SRAM_WRITE:
    case RESOURCE_SRAM_MODEL: return kb_has_model[NODE_sram];
    case RESOURCE_PSEUDO_CHANNEL:
    case RESOURCE_HBM_MODEL: return kb_has_model[NODE_hbm_ctrl];
    default: return kb_has_model[kind_of(segment)];
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct cost engine_cost(const struct segment *segment)
{
    enum node_kind kind = kind_of(segment);
    uint64_t ps = length_of(segment);
    switch (kind) {
    case NODE_pe_gemm: {
        uint64_t fill_ps = cycles_ps(kb_attrs.pe_gemm_fill_cycles, kb_attrs.pe_gemm_clock_khz);
        return (struct cost){CAUSE_gemm, PART "pe_gemm.attrs.clock_ghz", least(ps, sum(fill_ps, kb_attrs.pe_gemm_overhead_ps))};
    }
    case NODE_pe_math: {
        uint64_t fill_ps = cycles_ps(kb_attrs.pe_math_fill_cycles, kb_attrs.pe_math_clock_khz);
        return (struct cost){CAUSE_math, PART "pe_math.attrs.clock_ghz", least(ps, sum(fill_ps, kb_attrs.pe_math_overhead_ps))};
    }
    case NODE_pe_fetch_store: return (struct cost){CAUSE_moving, overheads[kind], ps};
    default: return (struct cost){CAUSE_calls, overheads[kind], ps};
    }
}

/* Whether the link to the TCM is what limits a move between the TCM and the register file; 0: no limit. */
static bool is_by_link(const struct segment *segment, uint64_t tcm_bps)
{
    uint64_t link_bps = kb_attrs.links_fetch_store_to_tcm_bw_bps;
    bool moves = segment->who.stage == STAGE_FETCH || segment->who.stage == STAGE_STORE;
    return moves && link_bps && (!tcm_bps || link_bps < tcm_bps);
}

static const char *channel_key(const struct segment *segment)
{
    bool reads = place_resource(segment->at) == RESOURCE_TCM_READ;
    switch (place_resource(segment->at)) {
    case RESOURCE_SRAM_READ: return "cube.sram.attrs.read_bw_gbs";
    case RESOURCE_SRAM_WRITE: return "cube.sram.attrs.write_bw_gbs";
    default:
        return is_by_link(segment, reads ? kb_attrs.pe_tcm_read_bw_bps : kb_attrs.pe_tcm_write_bw_bps)
                   ? "cube.pe_template.links.fetch_store_to_tcm_bw_gbs"
               : reads ? PART "pe_tcm.attrs.read_bw_gbs" : PART "pe_tcm.attrs.write_bw_gbs";
    }
}

/* A translation is one look-up in the TLB, and walks. */
static const char *translation_key(uint64_t ps)
{
    uint64_t look_up_ps = kb_attrs.pe_mmu_tlb_overhead_ps;
    return ps > look_up_ps && ps - look_up_ps >= look_up_ps ? PART "pe_mmu.attrs.walk_ns" : PART "pe_mmu.attrs.tlb_overhead_ns";
}

static struct cost stream_cost(const struct segment *segment)
{
    switch (kind_of(segment)) {
    case NODE_hbm_ctrl: return (struct cost){CAUSE_hbm, "cube.hbm_ctrl.attrs.pc_bw_gbs", 0};
    case NODE_sram: return (struct cost){CAUSE_channel, "cube.sram.attrs.read_bw_gbs", 0};
    default: return (struct cost){CAUSE_channel, PART "pe_tcm.attrs.read_bw_gbs", 0};
    }
}

static struct cost built_in_cost(const struct segment *segment)
{
    uint64_t ps = length_of(segment);
    uint64_t number = place_number(segment->at);
    bool on_link = place_resource(segment->at) == RESOURCE_LINK;
    switch ((enum work)segment->work) {
    case WORK_engine: return engine_cost(segment);
    case WORK_feed: return (struct cost){CAUSE_calls, PART "pe_scheduler.attrs.tile_overhead_ns", ps};
    case WORK_channel: return (struct cost){CAUSE_channel, channel_key(segment), 0};
    case WORK_pseudo_channel: return (struct cost){CAUSE_hbm, "cube.hbm_ctrl.attrs.pc_bw_gbs", 0};
    case WORK_stream: return stream_cost(segment);
    case WORK_row: return (struct cost){CAUSE_rows, "cube.hbm_ctrl.attrs.row_miss_ns", ps};
    case WORK_access: return (struct cost){CAUSE_latency, "cube.hbm_ctrl.attrs.access_ns", ps};
    case WORK_node: return (struct cost){CAUSE_heads, overheads[kind_of(segment)], ps};
    case WORK_wire: return (struct cost){CAUSE_latency, on_link ? links[link_class(number)].latency : NULL, ps};
    case WORK_link: return (struct cost){CAUSE_link, links[link_class(number)].bandwidth, 0};
    case WORK_translation: return (struct cost){CAUSE_latency, translation_key(ps), ps};
    case WORK_delay: return (struct cost){CAUSE_delay, NULL, ps};
    default: return (struct cost){CAUSE_calls, NULL, ps};
    }
}

static struct cost cost_of(const struct segment *segment)
{
    struct cost cost = built_in_cost(segment);
    if (is_modelled(segment))
        cost.key = NULL;
    return cost;
}

/* ---- lines */

struct line {
    uint64_t ps, fixed_ps, waits_ps, cause_ps[CAUSES];
    uint64_t waits;                                     /* commands that it waited for from their calls on */
    uint64_t tiles;                                     /* services of tiles of composites that compute */
};

/* The line that takes most of the path; the one that was seen first on a tie. Index 0 is for what has no line. */
static uint32_t longest_line(const struct path *path, uint32_t *count)
{
    uint32_t most = 0;
    *count = 1;
    for (size_t i = 0; i < path->count; i++)
        if (path->segments[i].who.site >= *count)
            *count = path->segments[i].who.site + 1;
    uint64_t *ps = arena_alloc(*count, sizeof *ps);
    for (size_t i = 0; i < path->count; i++)
        if (path->segments[i].who.kernel)
            ps[path->segments[i].who.site] += length_of(&path->segments[i]);
    for (uint32_t site = 1; site < *count; site++)
        if (!most || ps[site] > ps[most])
            most = ps[site] ? site : most;
    return most;
}

static bool same_command(const struct segment *a, const struct segment *b)
{
    return a->who.kernel == b->who.kernel && a->who.number == b->who.number && a->who.site == b->who.site;
}

/* Whether a segment is the call that submits a command. */
static bool is_call(const struct segment *segment)
{
    return segment->work == WORK_engine && segment->who.kernel && kind_of(segment) == NODE_pe_cpu;
}

/* Adds the commands of a line that the path follows from the call to the end, for which their kernel waited. */
static void add_waits(struct line *line, const struct path *path, uint32_t site)
{
    const struct segment *at = path->segments, *end = at + path->count, *next;
    for (; at < end; at = next) {
        uint64_t ps = 0;
        for (next = at; next < end && same_command(at, next); next++)
            ps += length_of(next);
        if (at->who.site != site || !is_call(at) || next[-1].edge != EDGE_wait || next[-1].held_up.kernel != at->who.kernel)
            continue;
        line->waits++;
        line->waits_ps += ps;
    }
}

static bool computes_tile(const struct segment *segment)
{
    return segment->work == WORK_engine && segment->who.tile != NO_TILE
           && (segment->who.stage == STAGE_GEMM || segment->who.stage == STAGE_MATH || segment->who.stage == STAGE_FETCH);
}

static bool of_composite(const struct path *path, uint32_t site)
{
    for (size_t i = 0; i < path->count; i++) {
        const struct segment *segment = &path->segments[i];
        if (segment->who.site == site && segment->work == WORK_feed)
            return true;
        if (segment->who.site == site && segment->who.tile != NO_TILE && segment->who.tile > 0)
            return true;
    }
    return false;
}

static struct line line_of(const struct path *path, uint32_t site)
{
    struct line line = {0};
    for (size_t i = 0; i < path->count; i++) {
        const struct segment *segment = &path->segments[i];
        if (segment->who.site != site || !segment->who.kernel)
            continue;
        struct cost cost = cost_of(segment);
        line.ps += length_of(segment);
        line.fixed_ps += cost.fixed_ps;
        line.cause_ps[cost.cause] += length_of(segment);
        line.tiles += computes_tile(segment);
    }
    add_waits(&line, path, site);
    return line;
}

/* What most of a line's time goes to. Waits and small tiles explain what the rest only names: they come first if they
 * make up half of it. */
static enum blame cause_of(struct line *line, const struct path *path, uint32_t site)
{
    enum { FEW = 4 };
    enum blame most = 0;
    if (line->waits >= FEW && line->waits_ps >= line->ps / 2 && !of_composite(path, site)) {
        line->cause_ps[CAUSE_waits] = line->waits_ps;
        return CAUSE_waits;
    }
    if (line->fixed_ps >= line->ps / 2 && of_composite(path, site)) {
        line->cause_ps[CAUSE_small_tiles] = line->fixed_ps;
        return CAUSE_small_tiles;
    }
    for (unsigned cause = 1; cause < CAUSES; cause++)
        if (line->cause_ps[cause] > line->cause_ps[most])
            most = cause;
    return most;
}

struct governed {
    const char *key;
    uint64_t ps;                                        /* that it governs */
    const struct segment *longest;                      /* of those */
};

/* The key that governs most of what a line's time goes to, and of that the longest segment. */
static const struct segment *governing(const struct path *path, uint32_t site, enum blame cause)
{
    static struct ARRAY(struct governed) keys;
    size_t most = 0;
    keys.count = 0;
    for (size_t i = 0; i < path->count; i++) {
        const struct segment *segment = &path->segments[i];
        if (segment->who.site != site || !segment->who.kernel)
            continue;
        struct cost cost = cost_of(segment);
        bool counts = cause == CAUSE_waits || (cause == CAUSE_small_tiles ? cost.fixed_ps > 0 : cost.cause == cause);
        size_t at = 0;
        if (!counts || !cost.key)
            continue;
        while (at < keys.count && strcmp(keys.at[at].key, cost.key))
            at++;
        if (at == keys.count)
            *array_add(&keys) = (struct governed){cost.key, 0, segment};
        keys.at[at].ps += cause == CAUSE_small_tiles ? cost.fixed_ps : length_of(segment);
        if (length_of(segment) > length_of(keys.at[at].longest))
            keys.at[at].longest = segment;
        if (keys.at[at].ps > keys.at[most].ps)
            most = at;
    }
    return keys.count ? keys.at[most].longest : NULL;
}

static unsigned percent(uint64_t ps, uint64_t of_ps)
{
    return of_ps ? (unsigned)(100.0 * (double)ps / (double)of_ps + 0.5) : 0;
}

/* The key of a segment; with small tiles, that of the time that is fixed. */
static const char *key_of(const struct segment *segment, enum blame cause)
{
    struct cost cost = cost_of(segment);
    if (cause == CAUSE_small_tiles && cost.cause == CAUSE_gemm)
        return PART "pe_gemm.attrs.fill_cycles";
    if (cause == CAUSE_small_tiles && cost.cause == CAUSE_math)
        return PART "pe_math.attrs.fill_cycles";
    return cost.key;
}

struct advice advice_of(const struct path *path, const char *(*place_of)(const char *key))
{
    uint32_t count, site = longest_line(path, &count);
    struct advice advice = {.site = site};
    if (!site) {
        advice.sentence = "no line of a kernel is on the path: the host and its requests take all of it";
        return advice;
    }
    struct line line = line_of(path, site);
    enum blame cause = cause_of(&line, path, site);
    const struct segment *most = governing(path, site, cause);
    const char *channel;
    advice.cause = advices[cause].name;
    advice.line_ps = line.ps;
    advice.cause_ps = line.cause_ps[cause];
    advice.key = most ? key_of(most, cause) : NULL;
    const char *place = advice.key && place_of ? place_of(advice.key) : NULL;
    advice.sentence = arena_printf(
        "%s takes %u %% of the path, %u %% of that for %s%s%s: %s%s%s%s%s%s", site_name(site), percent(line.ps, path->end_ps),
        percent(advice.cause_ps, line.ps), advices[cause].what, most ? ", most at " : "",
        most ? segment_place(most, &channel) : "", advices[cause].change, advice.key ? "; on the machine's side, " : "",
        advice.key ? advice.key : "", place ? " (" : "", place ? place : "", place ? ")" : "");
    return advice;
}
