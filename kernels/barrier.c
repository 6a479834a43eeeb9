/* barrier.c: no rank goes on before all have come: dissemination.
 *
 * In step k a rank sends a byte to the one 2^k places further on and waits for one from 2^k places behind: after
 * log2(p) steps, rounded up, it has heard of all.
 *
 * The bench has ranks come at different times, each of which leaves a mark before the barrier and looks at the
 * others' after it, at 64 of them if there are more; and it measures barriers one after the other. */
#include "collective.h"

struct marks_args {
    kb_tensor mark, marks, seen;                        /* one; room for it with each rank; a row for others */
    struct kb_order order;
    uint64_t skew_ns;
};

KB_KERNEL(barrier_marks, struct marks_args)
{
    struct ring ring = ring_of(tl, arg->order);
    struct tl_shard mine = flat(tl_my_shard(tl, arg->marks)), seen = flat(tl_my_shard(tl, arg->seen));
    struct tl_shard mark = tl_load(tl, flat(tl_shard(tl, arg->mark, 0)));
    tl_delay(tl, arg->skew_ns * 1000 * (tl_pe(tl) * UINT64_C(7) % ring.count));
    tl_store(tl, mine, mark);
    barrier(tl, &ring);
    for (uint64_t i = 0, looks = seen.shape[0]; i < looks; i++) {
        uint64_t rank = (tl_pe(tl) + 1 + i * ring.count / looks) % ring.count;
        tl_load_into(tl, mark, flat(tl_shard(tl, arg->marks, rank)));
        tl_store(tl, tl_part(tl, seen, 0, i, 1), mark);
    }
}

struct barrier_args {
    struct kb_order order;
    uint64_t count;
};

KB_KERNEL(barriers, struct barrier_args)
{
    struct ring ring = ring_of(tl, arg->order);
    for (uint64_t i = 0; i < arg->count; i++)
        barrier(tl, &ring);
}

/* In each step the ranks wait for a message that has come as far as the shortest of its distance. */
static uint64_t bound_ps(struct kb_pes pes, struct kb_order order)
{
    uint64_t sum_ps = 0;
    for (uint64_t places = 1; places < order.count; places *= 2) {
        uint64_t nearest_ps = UINT64_MAX;
        for (uint32_t at = 0; at < order.count; at++) {
            uint32_t to = order.position[(at + places) % order.count];
            nearest_ps = kb_min(nearest_ps, kb_latency_ps(pes.pe[order.position[at]], pes.pe[to]));
        }
        sum_ps += nearest_ps;
    }
    return sum_ps;
}

KB_BENCH(barrier, "no PE goes on before all have come",
         KB_TEXT(pes, "*", "which PEs take part: ids like this"),
         KB_INT(count, 16, 1, 1 << 20, "barriers that are measured"),
         KB_INT(skew_ns, 10000, 0, 1000000, "by which PEs come later than one another, at the barrier that is checked"))
{
    struct kb_pes pes = kb_pes(kb_text(pes)), first = {pes.pe, 1};
    struct kb_order order = kb_snake(pes);
    uint64_t p = pes.count, looks = kb_min(p, 64);
    kb_tensor mark = kb_tensor_new("mark", KB_i32, kb_2d(1, 1), kb_on(KB_HBM, first));
    kb_tensor marks = kb_tensor_new("marks", KB_i32, kb_2d(p, 1), kb_rows(KB_HBM, pes));
    kb_tensor seen = kb_tensor_new("seen", KB_i32, kb_2d(p, looks), kb_rows(KB_HBM, pes));
    kb_tensor all = kb_tensor_new("all", KB_i32, kb_2d(p, looks), kb_rows(KB_HBM, pes));
    kb_fill(mark, 1);
    kb_fill(all, 1);
    kb_wait(kb_launch(barrier_marks, pes, &(struct marks_args){mark, marks, seen, order, kb_int(skew_ns)}));
    kb_future launch = kb_launch(barriers, pes, &(struct barrier_args){order, kb_int(count)});
    kb_wait(launch);

    uint64_t time_ps = kb_kernels_ps(launch) / kb_int(count), latency_ps = bound_ps(pes, order);
    kb_figure("time", time_ps, KB_PS);                  /* of one barrier */
    kb_figure("latency_bound", latency_ps, KB_PS);
    if (time_ps)
        kb_figure("bound_reached", latency_ps * 1000 / time_ps, KB_PERMILLE);
    kb_expect_close(seen, kb_ref_copy(all));
}
