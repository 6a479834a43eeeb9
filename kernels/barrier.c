/* barrier.c: no rank continues before all ranks have arrived: a dissemination barrier (collective.h), which takes
 * log2(p) steps, rounded up; or one in levels (levels.h), in which the PEs of a cube wait for its first one, those for the
 * first one of the SIP, and those for the first of all. It sends 2 (p - 1) messages, and few between SIPs.
 *
 * The first launch checks it: ranks arrive at different times, each leaves a mark before the barrier, and each reads
 * the marks of up to 64 others after it. The second launch measures barriers one after the other. */
#include "levels.h"

/* The barrier that the host has chosen. */
struct barrier_kind {
    struct kb_order order;
    struct levels levels;
    bool in_levels;
};

static void barrier_of(struct tl *tl, const struct barrier_kind *kind, const struct rank_ring *ring,
                       struct notices *notices)
{
    if (kind->in_levels)
        levels_barrier(tl, notices, &kind->levels);
    else
        dissemination_barrier(tl, ring);
}

struct barrier_marks_args {
    kb_tensor mark, marks, seen;                        /* the mark's value; a mark per rank; what each rank has read */
    struct barrier_kind kind;
    uint64_t skew_ns;
};

KB_KERNEL(barrier_marks, struct barrier_marks_args)
{
    struct rank_ring ring = ring_of(tl, arg->kind.order);
    struct notices notices = notices_open(tl);
    struct tl_shard own = flattened(tl_my_shard(tl, arg->marks)), seen = flattened(tl_my_shard(tl, arg->seen));
    struct tl_shard mark = tl_load(tl, flattened(tl_shard(tl, arg->mark, 0)));
    tl_delay(tl, arg->skew_ns * 1000 * (tl_pe(tl) * UINT64_C(7) % ring.count));
    tl_store(tl, own, mark);
    barrier_of(tl, &arg->kind, &ring, &notices);
    for (uint64_t i = 0, reads = seen.shape[0]; i < reads; i++) {
        uint64_t rank = (tl_pe(tl) + 1 + i * ring.count / reads) % ring.count;
        tl_load_into(tl, mark, flattened(tl_shard(tl, arg->marks, rank)));
        tl_store(tl, tl_part(tl, seen, 0, i, 1), mark);
    }
}

struct barriers_args {
    struct barrier_kind kind;
    uint64_t count;
};

KB_KERNEL(barriers, struct barriers_args)
{
    struct rank_ring ring = ring_of(tl, arg->kind.order);
    struct notices notices = notices_open(tl);
    for (uint64_t i = 0; i < arg->count; i++)
        barrier_of(tl, &arg->kind, &ring, &notices);
}

/* What a notice costs the PE that sends or awaits it. */
static uint64_t notice_ps(void)
{
    return kb_attrs.pe_cpu_overhead_ps + kb_attrs.pe_scheduler_overhead_ps;
}

/* A barrier's bound, and an estimate of its time. */
struct barrier_times {
    uint64_t bound_ps, estimate_ps;
};

/* The bound of one dissemination barrier: each step waits for a message that has come at least the shortest way of that
 * step. By the estimate, messages take their ways, or as long as the switch between SIPs takes for all that pass it. */
static struct barrier_times dissemination_times(struct kb_pes pes, struct kb_order order)
{
    uint64_t sips = sips_of(pes), in_sip = kb_machine_pes("sip0.*").count, switched_ps = 0;
    uint64_t *arrived_ps = kb_array(uint64_t, order.count), *next_ps = kb_array(uint64_t, order.count);
    struct barrier_times times = {0, 0};
    for (uint64_t distance = 1; distance < order.count; distance *= 2) {
        uint64_t nearest_ps = UINT64_MAX;
        for (uint32_t at = 0; at < order.count; at++) {
            uint64_t ahead = (at + distance) % order.count;
            uint32_t from = pes.pe[order.position[at]], to = pes.pe[order.position[ahead]];
            uint64_t way_ps = kb_latency_ps(from, to);
            nearest_ps = kb_min(nearest_ps, way_ps);
            next_ps[ahead] = kb_max(arrived_ps[ahead], arrived_ps[at] + notice_ps() + way_ps);
            switched_ps += from / in_sip != to / in_sip ? switch_ps(sips, 1) : 0;
        }
        for (uint32_t at = 0; at < order.count; at++)
            arrived_ps[at] = next_ps[at];
        times.bound_ps += nearest_ps;
    }
    for (uint32_t at = 0; at < order.count; at++)
        times.estimate_ps = kb_max(times.estimate_ps, arrived_ps[at]);
    times.estimate_ps = kb_max(times.estimate_ps, switched_ps);
    return times;
}

/* The bound of one level: the longest way between the first of all and any of its peers, there and back. By the estimate the
 * notices that the first one gathers pass it `gather_ps` apart, and it sends others `release_ps` apart. */
static struct barrier_times level_times(struct kb_pes pes, uint32_t stride, uint32_t count, uint64_t gather_ps,
                                        uint64_t release_ps)
{
    struct barrier_times times = {0, 0};
    for (uint64_t i = 1; i < count; i++)
        times.bound_ps = kb_max(times.bound_ps, kb_latency_ps(pes.pe[i * stride], pes.pe[0]) +
                                                    kb_latency_ps(pes.pe[0], pes.pe[i * stride]));
    for (uint64_t at = 0; at * LEVELS_FAN + 1 < count; at = at * LEVELS_FAN + 1) {
        uint64_t first = at * LEVELS_FAN + 1, end = kb_min(first + LEVELS_FAN, count), gathered_ps = 0, released_ps = 0;
        for (uint64_t i = first; i < end; i++) {
            uint64_t way_ps = kb_latency_ps(pes.pe[i * stride], pes.pe[at * stride]), later = 0;
            for (uint64_t j = first; j < end; j++)
                later += kb_latency_ps(pes.pe[j * stride], pes.pe[at * stride]) > way_ps;
            gathered_ps = kb_max(gathered_ps, way_ps + later * gather_ps);
            released_ps = kb_max(released_ps, (i - first) * release_ps + kb_latency_ps(pes.pe[at * stride], pes.pe[i * stride]));
        }
        times.estimate_ps += notice_ps() + gathered_ps + notice_ps() + released_ps;
    }
    return times;
}

static struct barrier_times levels_times(struct kb_pes pes, const struct levels *l)
{
    uint64_t gather_ps = kb_max(notice_ps(), kb_attrs.pe_dma_overhead_ps), passes_ps = switch_ps(l->sips, 1);
    struct barrier_times all[LEVELS] = {
        [LEVEL_CUBE] = level_times(pes, 1, l->pes, gather_ps, notice_ps()),
        [LEVEL_SIP] = level_times(pes, l->pes, l->cubes, gather_ps, notice_ps()),
        [LEVEL_SYSTEM] = level_times(pes, l->pes * l->cubes, l->sips, kb_max(gather_ps, passes_ps),
                                     kb_max(notice_ps(), passes_ps))};
    struct barrier_times sum = {0, 0};
    for (uint32_t level = 0; level < LEVELS; level++) {
        sum.bound_ps += all[level].bound_ps;
        sum.estimate_ps += all[level].estimate_ps;
    }
    return sum;
}

enum algorithm { DISSEMINATION, IN_LEVELS, ALGORITHMS };

KB_BENCH(barrier, "no PE continues before all PEs have arrived",
         KB_TEXT(pes, "*", "PEs that take part: a pattern of ids such as sip0.*"),
         KB_INT(count, 16, 1, 1 << 20, "barriers to measure"),
         KB_INT(skew_ns, 10000, 0, 1000000, "ns between the arrivals of PEs at the barrier that is checked"),
         KB_WORD(algorithm, "auto dissemination levels",
                 "in log2(p) steps; cubes, SIPs and the system in turn; or the shorter of both"))
{
    struct kb_pes pes = kb_pes(kb_text(pes)), first = {pes.pe, 1};
    struct barrier_kind kind = {kb_snake(pes), levels_of(pes), false};
    uint64_t p = pes.count, reads = kb_min(p, 64);
    needs_tcm(3 * 64 + tcm_padded(4 * reads), "notices and what a PE sees", "take fewer PEs");
    kb_tensor mark = kb_tensor_new("mark", KB_i32, kb_2d(1, 1), kb_on(kb_main_memory(), first));
    kb_tensor marks = kb_tensor_new("marks", KB_i32, kb_2d(p, 1), kb_rows(kb_main_memory(), pes));
    kb_tensor seen = kb_tensor_new("seen", KB_i32, kb_2d(p, reads), kb_rows(kb_main_memory(), pes));
    kb_tensor all = kb_tensor_new("all", KB_i32, kb_2d(p, reads), kb_rows(kb_main_memory(), pes));
    static const char *const names[] = {[DISSEMINATION] = "dissemination", [IN_LEVELS] = "levels"};
    struct barrier_times times[ALGORITHMS] = {
        [DISSEMINATION] = dissemination_times(pes, kind.order), [IN_LEVELS] = levels_times(pes, &kind.levels)};
    enum algorithm algorithm = algorithm_used(names, ALGORITHMS, (const uint64_t[]){
        [DISSEMINATION] = times[DISSEMINATION].estimate_ps, [IN_LEVELS] = times[IN_LEVELS].estimate_ps});
    kind.in_levels = algorithm == IN_LEVELS;
    kb_fill(mark, 1);
    kb_fill(all, 1);
    kb_wait(kb_launch(barrier_marks, pes, &(struct barrier_marks_args){mark, marks, seen, kind, kb_int(skew_ns)}));
    kb_future launch = kb_launch(barriers, pes, &(struct barriers_args){kind, kb_int(count)});
    kb_wait(launch);

    uint64_t time_ps = kb_kernels_ps(launch) / kb_int(count);
    kb_roofline(launch, &(struct kb_problem){0}, &(struct kb_work){ .latency_ps = times[algorithm].bound_ps * kb_int(count) });
    kb_figure("one_barrier", time_ps, KB_PS);
    kb_expect_close(seen, kb_ref_copy(all));
}
