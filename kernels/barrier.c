/* barrier.c: no rank continues before all ranks have arrived: a dissemination barrier (collective.h), which takes
 * log2(p) steps, rounded up.
 *
 * The first launch checks it: ranks arrive at different times, each leaves a mark before the barrier, and each reads
 * the marks of up to 64 others after it. The second launch measures barriers one after the other. */
#include "collective.h"

struct barrier_marks_args {
    kb_tensor mark, marks, seen;                        /* the mark's value; a mark per rank; what each rank has read */
    struct kb_order order;
    uint64_t skew_ns;
};

KB_KERNEL(barrier_marks, struct barrier_marks_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    struct tl_shard own = flattened(tl_my_shard(tl, arg->marks)), seen = flattened(tl_my_shard(tl, arg->seen));
    struct tl_shard mark = tl_load(tl, flattened(tl_shard(tl, arg->mark, 0)));
    tl_delay(tl, arg->skew_ns * 1000 * (tl_pe(tl) * UINT64_C(7) % ring.count));
    tl_store(tl, own, mark);
    dissemination_barrier(tl, &ring);
    for (uint64_t i = 0, reads = seen.shape[0]; i < reads; i++) {
        uint64_t rank = (tl_pe(tl) + 1 + i * ring.count / reads) % ring.count;
        tl_load_into(tl, mark, flattened(tl_shard(tl, arg->marks, rank)));
        tl_store(tl, tl_part(tl, seen, 0, i, 1), mark);
    }
}

struct barriers_args {
    struct kb_order order;
    uint64_t count;
};

KB_KERNEL(barriers, struct barriers_args)
{
    struct rank_ring ring = ring_of(tl, arg->order);
    for (uint64_t i = 0; i < arg->count; i++)
        dissemination_barrier(tl, &ring);
}

/* The bound of one barrier: each step waits for a message that has come at least the shortest way of that step. */
static uint64_t barrier_bound_ps(struct kb_pes pes, struct kb_order order)
{
    uint64_t sum_ps = 0;
    for (uint64_t distance = 1; distance < order.count; distance *= 2) {
        uint64_t nearest_ps = UINT64_MAX;
        for (uint32_t at = 0; at < order.count; at++) {
            uint32_t to = order.position[(at + distance) % order.count];
            nearest_ps = kb_min(nearest_ps, kb_latency_ps(pes.pe[order.position[at]], pes.pe[to]));
        }
        sum_ps += nearest_ps;
    }
    return sum_ps;
}

KB_BENCH(barrier, "no PE continues before all PEs have arrived",
         KB_TEXT(pes, "*", "PEs that take part: a pattern of ids such as sip0.*"),
         KB_INT(count, 16, 1, 1 << 20, "barriers to measure"),
         KB_INT(skew_ns, 10000, 0, 1000000, "ns between the arrivals of PEs at the barrier that is checked"))
{
    struct kb_pes pes = kb_pes(kb_text(pes)), first = {pes.pe, 1};
    struct kb_order order = kb_snake(pes);
    uint64_t p = pes.count, reads = kb_min(p, 64);
    kb_tensor mark = kb_tensor_new("mark", KB_i32, kb_2d(1, 1), kb_on(KB_HBM, first));
    kb_tensor marks = kb_tensor_new("marks", KB_i32, kb_2d(p, 1), kb_rows(KB_HBM, pes));
    kb_tensor seen = kb_tensor_new("seen", KB_i32, kb_2d(p, reads), kb_rows(KB_HBM, pes));
    kb_tensor all = kb_tensor_new("all", KB_i32, kb_2d(p, reads), kb_rows(KB_HBM, pes));
    kb_fill(mark, 1);
    kb_fill(all, 1);
    kb_wait(kb_launch(barrier_marks, pes, &(struct barrier_marks_args){mark, marks, seen, order, kb_int(skew_ns)}));
    kb_future launch = kb_launch(barriers, pes, &(struct barriers_args){order, kb_int(count)});
    kb_wait(launch);

    uint64_t time_ps = kb_kernels_ps(launch) / kb_int(count), latency_ps = barrier_bound_ps(pes, order);
    kb_roofline(launch, &(struct kb_problem){0}, &(struct kb_work){ .latency_ps = latency_ps * kb_int(count) });
    kb_figure("one_barrier", time_ps, KB_PS);
    kb_expect_close(seen, kb_ref_copy(all));
}
