/* failing.c: kernels and benches that fail on the machine, each in its own way; `what` says which. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct failing_args { kb_tensor a; };

enum { VA = 1 << 21, PAGE = 1 << 16 };                  /* where the bench maps a on pe0; the MMU's pages */

/* ---- traps */

static volatile int nothing;
static volatile uintptr_t nowhere = 16;

__attribute__((noinline)) static int deep(int depth)
{
    volatile char frame[200];
    frame[0] = (char)depth;
    return (nowhere ? deep(depth + 1) : 0) + frame[0];
}

/* One frame that is larger than the whole stack and its guard. */
__attribute__((noinline)) static void wide(void)
{
    volatile char frame[400 << 10];
    frame[nothing] = 1;
    nothing = frame[nothing + 300 * 1024];
}

static void traps(void)
{
    if (is("segv")) *(volatile int *)nowhere = 1;
    if (is("call")) ((void (*)(void))nowhere)();
    if (is("fpe")) nothing = 100 / nothing;
    if (is("ill")) __builtin_trap();
    if (is("overflow")) nothing = deep(0);
    if (is("overflow_wide")) wide();
}

/* ---- what waits for ever */

static void sends(struct tl *tl, uint32_t to, struct tl_shard buffer, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tl_send(tl, to, buffer);
}

static void waits(struct tl *tl, struct tl_shard buffer)
{
    uint32_t me = tl_pe(tl), all = tl_num_pes(tl), slots = (uint32_t)tl_slots(tl);
    if (is("no_send") && me == 0) tl_recv(tl, 1, buffer);
    if (is("each_other") && me < 2) tl_recv(tl, 1 - me, buffer);
    if (is("ring")) tl_recv(tl, (me + 1) % all, buffer);
    if (is("no_credit") && me == 0) sends(tl, 1, buffer, slots + 1);
    if (is("for_failed") && me == 1) tl_fail(tl, 7, "gave up");
    if (is("for_failed") && me == 0) tl_recv(tl, 1, buffer);
    if (is("chain") && me + 1 < all) tl_recv(tl, me + 1, buffer);
    if (is("two_cycles")) tl_recv(tl, me ^ 1, buffer);
    if (is("not_launched") && me == 0) tl_recv(tl, TL_NUMBER(3), buffer);
    if (is("async") && me == 0) {
        tl_handle late = tl_recv_async(tl, 1, buffer);
        tl_delay(tl, 5000000);
        tl_wait(tl, late);
    }
    if (is("crossed") && me < 2) {                      /* both send more than the slots hold before they receive */
        sends(tl, 1 - me, buffer, slots + 1);
        tl_recv(tl, 1 - me, buffer);
    }
}

/* ---- what the machine refuses */

static void accesses(struct tl *tl, struct tl_shard a, struct tl_shard buffer)
{
    struct tl_shard far = a, second = tl_part(tl, a, 0, 0, 8);
    far.addr = (uint64_t)9 << 48;
    second.addr |= UINT64_C(0xfffffff00);
    if (is("bad_load")) tl_load_into(tl, buffer, far);
    if (is("bad_store")) tl_store(tl, far, buffer);
    if (is("past_end")) tl_load_into(tl, buffer, second);
    if (is("tcm_side")) buffer.addr = (buffer.addr & ~UINT64_C(0xfffffffff)), tl_store(tl, a, buffer);
    if (is("slot")) tl_send(tl, 1, tl_alloc(tl, KB_i8, tl_slot_bytes(tl) + 1));
    if (is("self")) tl_send(tl, tl_pe(tl), buffer);
    if (is("page_load")) tl_load_into(tl, buffer, tl_virtual(a, VA + (1 << 20)));
    if (is("page_store")) tl_store(tl, tl_virtual(a, VA + (1 << 20)), buffer);
    if (is("page_async")) tl_wait(tl, tl_load_async(tl, buffer, tl_virtual(a, VA + (1 << 20))));
    if (is("page_none")) tl_load_into(tl, buffer, tl_virtual(a, VA));
    if (is("unmapped")) tl_load_into(tl, buffer, tl_virtual(a, VA));
    if (is("unmapped_middle")) {                        /* the pages on both sides are mapped still */
        tl_load_into(tl, buffer, tl_virtual(a, VA));
        tl_load_into(tl, buffer, tl_virtual(a, VA + 2 * PAGE));
        tl_load_into(tl, buffer, tl_virtual(a, VA + PAGE));
    }
    if (is("fail") || is("unwaited") || is("refused")) tl_fail(tl, 42, "the sum is %d", 3);
}

static void composites(struct tl *tl, struct tl_shard a)
{
    struct tl_composite ask = {.op = TL_GEMM, .m = 8, .k = 8, .n = 8, .tile = {8, 8, 8},
                               .a = tl_in(a), .b = tl_in(a), .c = tl_out(tl_part(tl, a, 0, 8, 8))};
    if (is("page_composite")) ask.a = tl_in(tl_virtual(a, VA + (1 << 20)));
    if (is("page_result")) ask.c = tl_out(tl_virtual(a, VA + (1 << 20)));
    if (is("tile")) {
        ask.m = ask.k = ask.n = ask.tile[0] = ask.tile[1] = ask.tile[2] = 700;
        ask.a.ld = ask.b.ld = ask.c.ld = ask.a.rows = ask.b.rows = ask.c.rows = 0;
        ask.c.addr += 8 << 20;
    }
    if (is("page_composite") || is("page_result") || is("tile") || is("behind")) {
        tl_handle done = tl_composite(tl, &ask);
        if (is("behind")) tl_recv(tl, 1, tl_alloc(tl, KB_i8, 64));
        tl_wait(tl, done);
    }
    if (is("pending")) {
        tl_wait(tl, tl_composite(tl, &ask));
        tl_data(tl, tl_load(tl, tl_part(tl, a, 0, 8, 8)));
    }
}

KB_KERNEL(failing, struct failing_args)
{
    if (is("slow")) tl_delay(tl, tl_pe(tl) ? 100000000 : 1000);
    struct tl_shard a = tl_my_shard(tl, arg->a), buffer = tl_load(tl, tl_part(tl, a, 0, 0, 8));
    waits(tl, buffer);
    if (tl_pe(tl) != 0 && !is("all_segv"))
        return;
    traps();
    if (is("all_segv")) *(volatile int *)nowhere = 1;
    if (is("segv_log")) tl_log(tl, "a text: %s", (const char *)nowhere);
    if (is("segv_deep")) nothing = atoi((const char *)nowhere);
    accesses(tl, tl_part(tl, a, 0, 0, 8), buffer);
    composites(tl, a);
    if (is("fail_fast")) tl_fail(tl, 1, "early");
}

KB_KERNEL(fine, struct failing_args)
{
    tl_load(tl, tl_my_shard(tl, arg->a));
}

static void host_side(struct kb_pes all, kb_tensor a, kb_future first)
{
    if (is("unwaited")) return;                         /* the end of the bench waits */
    if (is("refused")) {
        kb_tensor other = kb_tensor_new("other", KB_i8, kb_1d(64), kb_on(KB_HBM, kb_pes("sip0.cube0.pe1")));
        kb_read(other, NULL);                           /* twice is long enough for the answer */
        kb_read(other, NULL);
        kb_launch(fine, all, &(struct failing_args){a});
    }
    kb_wait(first);
    abort();                                            /* never: it failed */
}

KB_BENCH(failing, "what fails on the machine", KB_WORD(what,
    "segv call fpe ill overflow overflow_wide all_segv segv_deep segv_log no_send each_other ring no_credit "
    "for_failed chain two_cycles not_launched async crossed bad_load bad_store past_end tcm_side slot self "
    "page_load page_store page_async page_none unmapped unmapped_middle fail page_composite page_result tile behind pending "
    "slow unwaited refused fail_fast",
    "which"))
{
    what = kb_word(what);
    struct kb_pes all = kb_pes("*"), one = kb_pes("sip0.cube0.pe0"), some = is("not_launched") ? one : all;
    uint64_t rows = is("unmapped_middle") ? 3 * PAGE / 16 : 16;
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(rows * all.count, 8), kb_rows(KB_HBM, all));
    kb_fill(a, 1);
    if (!is("page_none")) kb_map(one, VA, a);
    if (is("unmapped")) kb_unmap(one, VA, 1);
    if (is("unmapped_middle")) kb_unmap(one, VA + PAGE, 1);
    struct kb_options options = {.timeout_ns = is("slow") ? 20000 : 0,
                                 .on_failure = is("fail_fast") ? KB_FAIL_FAST : KB_DRAIN};
    host_side(all, a, kb_launch_with(failing, some, options, &(struct failing_args){a}));
}
