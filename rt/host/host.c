/* host.c: sets of PEs, memory of benches, ranks and the barrier of a bench per SIP, the early end of a run. */
#include "host.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "bench.h"
#include "common/arena.h"
#include "figure.h"
#include "glob.h"
#include "launch/kernel.h"
#include "launch/launch.h"
#include "machine/emitted.h"
#include "machine/pe.h"
#include "machine/tiling.h"
#include "note.h"
#include "roofline.h"
#include "sim/coroutine.h"
#include "sim/loop.h"
#include "store/tensor.h"
#include "tensor_request.h"

/* What kb_array returned; freed when the run ends. */
struct bench_array {
    struct bench_array *older;
    _Alignas(max_align_t) char bytes[];
};

/* Where a rank waits in kb_barrier. */
struct arrival {
    const char *file;                                   /* NULL: it has not arrived */
    uint32_t line;
    uint64_t since_ps;
};

static struct {
    struct bench_array *arrays;                         /* newest first */
    struct arrival *arrivals;                           /* by rank; NULL before the first kb_barrier */
    uint32_t arrived;
    struct sim_wait barrier;
    struct call_site *calls;                            /* the last one of each rank; NULL before the first call */
} host;

/* ---- what calls have in common */

/* Notes a call of the bench. */
static void host_calls(struct call_site call)
{
    if (!host.calls)
        host.calls = arena_alloc(sim_ranks(), sizeof *host.calls);
    host.calls[sim_rank()] = call;
}

void host_only(struct call_site call)
{
    if (all_kernels.running && coroutine_strayed())        /* it has jumped into the bench, and does not return from here */
        coroutine_suspend(coroutine_current());
    if (all_kernels.running)
        misuse(call.file, call.line, "%s is for the host; a kernel cannot call it", call.name);
    host_calls(call);
}

const char *host_last_call(void)
{
    const struct call_site *call = host.calls ? &host.calls[sim_rank()] : NULL;
    if (!call || !call->name)
        return "before its first call";
    return arena_printf("its last call is %s, at %s:%u", call->name, call->file, (unsigned)call->line);
}

void host_check_pes(struct call_site call, struct kb_pes pes)
{
    uint32_t in_sip = kb_shape.cubes * kb_shape.pes, all = kb_shape.sips * in_sip;
    for (uint32_t i = 0; i < pes.count; i++) {
        if (pes.pe[i] >= all)
            misuse_of(call, "the machine has %u PEs, there is no number %u", (unsigned)all, (unsigned)pes.pe[i]);
        if (bench_current->per_sip && pes.pe[i] / in_sip != sim_rank())
            misuse_of(call, "%s is not in sip%u, the SIP of this rank", pe_name(&kb_pe[pes.pe[i]]),
                      (unsigned)sim_rank());
    }
}

void host_check_launches(struct call_site call)
{
    if (launch_bad())
        host_stop(call, arena_printf("refused: %s", launch_outcome(launch_bad())));
}

void host_stop(struct call_site call, const char *why)
{
    fflush(stdout);
    message("%s:%u: %s: %s\n", call.file, (unsigned)call.line, call.name, why);
    sim_end();
}

void host_reset(void)
{
    while (host.arrays) {
        struct bench_array *older = host.arrays->older;
        free(host.arrays);
        host.arrays = older;
    }
    memset(&host, 0, sizeof host);
    figures_reset();
    notes_reset();
    bench_used_reset();
    rooflines_reset();
    tensor_requests_reset();
    tensors_reset();
}

/* ---- names, sets of PEs, memory */

enum kb_dtype kb_dtype_at(const char *name, const char *file, uint32_t line)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (!strcmp(name, dtype_words[i]))
            return (enum kb_dtype)i;
    misuse(file, line, "kb_dtype: there is no dtype '%s'", name);
}

struct kb_pes kb_pes_at(const char *glob, bool machine, const char *file, uint32_t line)
{
    uint32_t in_sip = kb_shape.cubes * kb_shape.pes, first = 0, end = kb_shape.sips * in_sip, count = 0;
    host_calls((struct call_site){"kb_pes", file, line});
    if (bench_current->per_sip && !machine) {
        first = sim_rank() * in_sip;
        end = first + in_sip;
    }
    uint32_t *pes = arena_alloc(end - first, sizeof *pes);
    bool all = !strcmp(glob, "*");
    for (uint32_t pe = first; pe < end; pe++)
        if (all || glob_matches(glob, pe_name(&kb_pe[pe])))
            pes[count++] = pe;
    if (count == 0)
        misuse(file, line, "kb_pes: no PE matches '%s'; the last one is %s", glob, pe_name(&kb_pe[end - 1]));
    return (struct kb_pes){pes, count};
}

void *kb_array_at(uint64_t count, size_t size, const char *file, uint32_t line)
{
    size_t bytes;
    host_only((struct call_site){"kb_array", file, line});
    struct bench_array *array = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && !__builtin_add_overflow(bytes, sizeof *array, &bytes))
        array = calloc(1, bytes);
    if (!array)
        die("%s:%u: kb_array: no memory for %" PRIu64 " elements of %zu bytes", file, line, count, size);
    array->older = host.arrays;
    host.arrays = array;
    return array->bytes;
}

/* ---- ranks of a bench per SIP */

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
    host_only((struct call_site){"kb_barrier", file, line});
    if (!host.arrivals)
        host.arrivals = arena_alloc(sim_ranks(), sizeof *host.arrivals);
    uint32_t rank = sim_rank();
    host.arrivals[rank] = (struct arrival){file, line, sim_now_ps()};
    if (++host.arrived < sim_ranks()) {
        sim_sleep(&host.barrier);
    } else {
        host.arrived = 0;
        sim_wake(&host.barrier);
        sim_yield();                                    /* so that all go on in rank order */
    }
    host.arrivals[rank].file = NULL;
}

void host_deadlocked(void)
{
    if (!host.arrived)
        return;
    message("deadlock at %" PRIu64 " ps: no event is due, and ranks wait in kb_barrier\n", sim_now_ps());
    for (uint32_t rank = 0; rank < sim_ranks(); rank++) {
        const struct arrival *arrival = &host.arrivals[rank];
        if (arrival->file)
            message("  rank %u waits in kb_barrier since %" PRIu64 " ps, called at %s:%u\n", (unsigned)rank,
                    arrival->since_ps, arrival->file, (unsigned)arrival->line);
        else if (sim_returned(rank))
            message("  rank %u has returned\n", (unsigned)rank);
        else
            message("  rank %u waits elsewhere\n", (unsigned)rank);
    }
}
