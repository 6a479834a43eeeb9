/* perils.c: a bench whose points end in all the ways in which a point of a search can end. */
#include <kb/host.h>
#include <kb/tl.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how;
static volatile unsigned turns;
static volatile uintptr_t nowhere = 16;

static int is(const char *name)
{
    return !strcmp(how, name);
}

struct perils_args { uint64_t ns; };

KB_KERNEL(perils, struct perils_args)
{
    tl_delay(tl, 1000 * arg->ns);
    if (tl_pe(tl))
        return;
    if (is("fault"))
        tl_fail(tl, 1, "as asked");
    if (is("deadlock"))
        tl_recv(tl, 1, tl_alloc(tl, KB_i8, 64));
    while (is("loop"))
        turns++;
    while (is("heap"))
        memset(malloc(1 << 20), 1, 1 << 20);
    if (is("kill"))
        kill(getpid(), SIGKILL);
    if (is("stop"))
        kill(getpid(), SIGSTOP);
    if (is("segv"))
        *(volatile int *)nowhere = 1;
}

KB_BENCH(perils, "points that end as they are asked to",
         KB_WORD(how, "good fault deadlock loop heap kill stop segv refused wrong", "how"),
         KB_INT(ns, 10, 1, 1000000, "ns of simulated time"), KB_INT(us, 0, 0, 10000000, "us of host time"))
{
    how = kb_word(how);
    struct kb_pes all = kb_pes("*");
    if (is("refused"))
        kb_pes("sip9.*");
    usleep((unsigned)kb_int(us));
    kb_wait(kb_launch(perils, all, &(struct perils_args){kb_int(ns)}));
    if (!is("wrong"))
        return;
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(8, 8), kb_rows(KB_HBM, kb_pes("sip0.cube0.pe0")));
    kb_tensor b = kb_tensor_new("b", KB_f16, kb_2d(8, 8), kb_rows(KB_HBM, kb_pes("sip0.cube0.pe0")));
    kb_fill(a, 1);
    kb_fill(b, 2);
    kb_expect_close(a, kb_ref_copy(b));
}
