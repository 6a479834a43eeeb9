/* host_program.c: the bodies of a bench as programs of the host: ranks, the barrier, the end of all. */
#include "host_program.h"

#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "figure.h"
#include "machine/emitted.h"
#include "launch/kernel.h"
#include "common/fail.h"
#include "machine/pe.h"
#include "sim/loop.h"
#include "store/array.h"
#include "store/tensor.h"
#include "common/arena.h"

/* Who waits in kb_barrier, and where; by rank. */
static struct waiting {
    const char *file;                                   /* NULL: it is not there */
    uint32_t line;
    uint64_t since_ps;
} *waiting;
static uint32_t met;
static struct sim_wait barrier;

uint32_t kb_rank(void)
{
    return sim_rank();
}

uint32_t kb_ranks(void)
{
    return sim_ranks();
}

void kb_barrier_at(const char *file, uint32_t line)
{
    host_only("kb_barrier", file, line);
    if (!waiting)
        waiting = arena_alloc(sim_ranks(), sizeof *waiting);
    uint32_t rank = sim_rank();
    waiting[rank] = (struct waiting){file, line, sim_now_ps()};
    if (++met < sim_ranks()) {
        sim_sleep(&barrier);
    } else {
        met = 0;
        sim_wake(&barrier);
        sim_yield();                                    /* so that all go on in rank order */
    }
    waiting[rank].file = NULL;
}

void program_ends(const char *call, const char *why, const char *file, uint32_t line)
{
    fflush(stdout);
    fprintf(stderr, "%s:%u: %s: %s\n", file, (unsigned)line, call, why);
    sim_end();
}

void host_only(const char *call, const char *file, uint32_t line)
{
    if (kernel_running())
        misuse(file, line, "%s is for the host; a kernel cannot call it", call);
}

void program_check_pes(const char *call, struct kb_pes pes, const char *file, uint32_t line)
{
    uint32_t in_sip = kb_shape.cubes * kb_shape.pes, all = kb_shape.sips * in_sip;
    for (uint32_t i = 0; i < pes.count; i++) {
        if (pes.pe[i] >= all)
            misuse(file, line, "%s: the machine has %u PEs, there is no number %u", call, (unsigned)all,
                   (unsigned)pes.pe[i]);
        if (bench_current->per_sip && pes.pe[i] / in_sip != sim_rank())
            misuse(file, line, "%s: %s is not of sip%u, the SIP of this rank", call, pe_name(&kb_pe[pes.pe[i]]),
                   (unsigned)sim_rank());
    }
}

void programs_deadlocked(void)
{
    if (!met)
        return;
    fprintf(stderr, "deadlock at %" PRIu64 " ps: nothing is due any more, and kb_barrier waits\n", sim_now_ps());
    for (uint32_t rank = 0; rank < sim_ranks(); rank++) {
        if (waiting[rank].file)
            fprintf(stderr, "  rank %u is there since %" PRIu64 " ps, called at %s:%u\n", (unsigned)rank,
                    waiting[rank].since_ps, waiting[rank].file, (unsigned)waiting[rank].line);
        else if (sim_returned(rank))
            fprintf(stderr, "  rank %u has returned and never comes\n", (unsigned)rank);
        else
            fprintf(stderr, "  rank %u waits elsewhere\n", (unsigned)rank);
    }
}

void host_reset(void)
{
    host_launch_reset();
    figures_reset();
    arrays_reset();
    tensors_reset();
    waiting = NULL;
    barrier.sleepers = NULL;
    met = 0;
}
