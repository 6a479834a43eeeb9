/* escapes.c: kernels and benches that try to get out of the simulation. */
#include <stdlib.h>

#include <kb/host.h>
#include <kb/tl.h>

struct none {
    int number;
};

KB_KERNEL(spins, struct none)
{
    for (;;)
        tl_delay(tl, 0);
}

KB_KERNEL(leaves, struct none)
{
    exit(0);
}

KB_KERNEL(acts_as_host, struct none)
{
    kb_barrier();
}

static int depth(struct tl *tl, volatile int *below)
{
    volatile char room[256] = {0};
    return *below ? depth(tl, below) + room[0] : 0;
}

KB_KERNEL(sinks, struct none)
{
    volatile int below = 1;
    tl_log(tl, "at %d", depth(tl, &below));
}

#define ESCAPE(name, kernel, arg) \
    KB_BENCH(name, "how " #kernel " ends") { kb_wait(kb_launch(kernel, kb_pes("sip0.cube0.pe0"), arg)); }

ESCAPE(spin, spins, &(struct none){ 0 })
ESCAPE(leave, leaves, &(struct none){ 0 })
ESCAPE(host_call, acts_as_host, &(struct none){ 0 })
ESCAPE(sink, sinks, &(struct none){ 0 })
ESCAPE(nothing, spins, NULL)

KB_BENCH(leave_bench, "how a bench that exits ends")
{
    exit(0);
}

KB_BENCH(no_reference, "how an expectation without a reference ends")
{
    kb_tensor t = kb_tensor_new("t", KB_f32, kb_1d(4), kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")));
    kb_expect_close(t, NULL);
}
