/* racing.c: pairs of operations on the same bytes, in a sure order or in none; `what` says which. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct racing_args { kb_tensor shared; };

/* On one PE. */
static void alone(struct tl *tl, struct tl_shard far, struct tl_shard x, struct tl_shard y)
{
    struct tl_shard other = tl_part(tl, far, 0, 4, 4);
    far = tl_part(tl, far, 0, 0, 4);
    if (is("load_use")) tl_load_async(tl, x, far), tl_add(tl, y, x, x);
    if (is("load_wait")) tl_wait(tl, tl_load_async(tl, x, far)), tl_add(tl, y, x, x);
    if (is("math_store")) tl_math_async(tl, "add", x, y, y), tl_store(tl, far, x);
    if (is("math_wait")) tl_wait(tl, tl_math_async(tl, "add", x, y, y)), tl_store(tl, far, x);
    if (is("reuse")) tl_store_async(tl, far, x), tl_load_into(tl, x, other);
    if (is("reuse_wait")) tl_wait(tl, tl_store_async(tl, far, x)), tl_load_into(tl, x, other);
    if (is("late_wait")) {
        tl_handle load = tl_load_async(tl, x, far);
        tl_delay(tl, 1000000000);                       /* it is complete, but who knows */
        tl_store(tl, other, x), tl_wait(tl, load);
    }
    if (is("stores")) tl_store_async(tl, far, x), tl_store_async(tl, far, y);
    if (is("loads")) tl_load_async(tl, x, far), tl_load_async(tl, y, far);
    if (is("columns")) {
        tl_store_async(tl, tl_part(tl, far, 1, 0, 3), tl_part(tl, x, 1, 0, 3));
        tl_store_async(tl, tl_part(tl, far, 1, 3, 5), tl_part(tl, y, 1, 3, 5));
    }
    if (is("shared_column")) {
        tl_store_async(tl, tl_part(tl, far, 1, 0, 3), tl_part(tl, x, 1, 0, 3));
        tl_store_async(tl, tl_part(tl, far, 1, 2, 5), tl_part(tl, y, 1, 2, 5));
    }
    if (is("gemm_store")) {
        tl_composite(tl, &(struct tl_composite){.op = TL_GEMM, .m = 4, .k = 4, .n = 4, .tile = {4, 4, 4},
                                                .a = tl_in(tl_part(tl, x, 1, 0, 4)), .b = tl_in(tl_part(tl, y, 1, 0, 4)),
                                                .c = tl_out(tl_part(tl, far, 1, 0, 4))});
        tl_load(tl, tl_part(tl, far, 1, 3, 2));
    }
    if (is("gemm_apart")) {
        tl_composite(tl, &(struct tl_composite){.op = TL_GEMM, .m = 4, .k = 4, .n = 4, .tile = {4, 4, 4},
                                                .a = tl_in(tl_part(tl, x, 1, 0, 4)), .b = tl_in(tl_part(tl, y, 1, 0, 4)),
                                                .c = tl_out(tl_part(tl, far, 1, 0, 4))});
        tl_load(tl, tl_part(tl, far, 1, 4, 2));
    }
    if (is("after")) tl_after(tl, tl_load_async(tl, x, far)), tl_add(tl, y, x, x);
    if (is("after_two")) {
        tl_handle load = tl_load_async(tl, x, far), second = tl_load_async(tl, y, other);
        tl_after(tl, load), tl_after(tl, second), tl_add(tl, y, x, y);
    }
    if (is("after_one")) {
        tl_handle load = tl_load_async(tl, x, far), second = tl_load_async(tl, y, other);
        tl_wait(tl, load), tl_after(tl, load), tl_add(tl, y, x, y), tl_wait(tl, second);
    }
    if (is("after_fork")) {                             /* two after one; what comes after the second reads the first's */
        struct tl_shard z = tl_alloc(tl, KB_f32, 4, 8), w = tl_alloc(tl, KB_f32, 4, 8);
        tl_handle load = tl_load_async(tl, x, far);
        tl_after(tl, load);
        tl_handle one = tl_math_async(tl, "add", y, x, x);
        tl_after(tl, load);
        tl_handle two = tl_math_async(tl, "add", z, x, x);
        tl_after(tl, one), tl_math_async(tl, "add", w, x, x);
        tl_after(tl, two), tl_store_async(tl, other, y);
    }
    if (is("after_chain")) {
        tl_handle load = tl_load_async(tl, x, far);
        tl_after(tl, load);
        tl_handle sum = tl_math_async(tl, "add", y, x, x);
        tl_after(tl, sum);
        tl_store(tl, far, y);                           /* behind the load, by way of the sum */
        tl_load_into(tl, x, other);
    }
}

/* PEs 0 to 2, which share a tensor. */
static void among(struct tl *tl, struct tl_shard far, struct tl_shard x, struct tl_shard y)
{
    uint32_t pe = tl_pe(tl);
    struct tl_shard flag = tl_alloc(tl, KB_u8, 1), token = tl_alloc(tl, KB_u8, 1);
    far = tl_part(tl, far, 0, 0, 4);
    if (is("both_store")) tl_delay(tl, 1000000 * pe), tl_store(tl, tl_part(tl, far, 0, 1, 1), tl_part(tl, x, 0, 1, 1));
    if (is("both_load")) tl_load(tl, far);
    if (is("own_rows")) tl_store(tl, tl_part(tl, far, 0, pe, 1), tl_part(tl, x, 0, pe, 1));
    if (is("store_load") && pe == 0) tl_store(tl, far, x);
    if (is("store_load") && pe == 1) tl_delay(tl, 1000000000), tl_load(tl, far);
    if (is("told") && pe == 0) tl_store(tl, far, x), tl_send(tl, 1, flag);
    if (is("told") && pe == 1) tl_recv(tl, 0, token), tl_load(tl, far);
    if (is("told_one") && pe == 0) tl_store(tl, far, x), tl_send(tl, 1, flag);
    if (is("told_one") && pe == 1) tl_recv(tl, 0, token), tl_load(tl, far);
    if (is("told_one") && pe == 2) tl_delay(tl, 1000000000), tl_load(tl, far);
    if (is("told_early") && pe == 0) tl_store_async(tl, far, x), tl_send(tl, 1, flag);
    if (is("told_early") && pe == 1) tl_recv(tl, 0, token), tl_load(tl, far);
    if (is("heard_late") && pe == 0) tl_store(tl, far, x), tl_send(tl, 1, flag);
    if (is("heard_late") && pe == 1) tl_recv_async(tl, 0, token), tl_delay(tl, 1000000000), tl_load(tl, far);
    if (is("told_on") && pe == 0) tl_store(tl, far, x), tl_send(tl, 1, flag);
    if (is("told_on") && pe == 1) tl_recv(tl, 0, token), tl_send(tl, 2, flag);
    if (is("told_on") && pe == 2) tl_recv(tl, 1, token), tl_store(tl, far, x);
    if (is("reply") && pe == 0) tl_send_async(tl, 1, x), tl_recv(tl, 1, token), tl_load_into(tl, x, far);
    if (is("reply") && pe == 1) tl_recv(tl, 0, x), tl_send(tl, 0, flag);
    if (is("no_reply") && pe == 0) tl_send_async(tl, 1, x), tl_load_into(tl, x, far);
    if (is("no_reply") && pe == 1) tl_recv(tl, 0, x);
    if (is("behind") && pe == 0) tl_load_into(tl, y, tl_view(tl, (struct tl_shard){.addr = x.addr + ((uint64_t)1 << 56),
                                     .dtype = KB_f32, .rank = 2, .shape = {4, 8}})), tl_send(tl, 1, y);
    if (is("behind") && pe == 1) tl_recv_async(tl, 0, x), tl_delay(tl, 1000000000);
    if (is("behind_after") && pe == 0) {
        struct tl_shard there = {.addr = x.addr + ((uint64_t)1 << 56), .dtype = KB_f32, .rank = 2, .shape = {4, 8}};
        tl_after(tl, tl_load_async(tl, y, tl_view(tl, there))), tl_send(tl, 1, y);
    }
    if (is("behind_after") && pe == 1) tl_recv_async(tl, 0, x), tl_delay(tl, 1000000000);
    if (is("beside") && pe == 0) tl_send(tl, 1, y), tl_load_into(tl, y, tl_view(tl, (struct tl_shard){
                                     .addr = x.addr + ((uint64_t)1 << 56), .dtype = KB_f32, .rank = 2, .shape = {4, 8}}));
    if (is("beside") && pe == 1) tl_recv(tl, 0, x);
    if (is("told_after") && pe == 0) tl_after(tl, tl_store_async(tl, far, x)), tl_send(tl, 1, flag);
    if (is("told_after") && pe == 1) tl_recv(tl, 0, token), tl_load(tl, far);
    if (is("told_other") && pe == 0) tl_send_async(tl, 1, x), tl_send(tl, 2, flag);
    if (is("told_other") && pe == 0) tl_recv(tl, 2, token), tl_load_into(tl, x, far);
    if (is("told_other") && pe == 1) tl_recv(tl, 0, x);
    if (is("told_other") && pe == 2) tl_recv(tl, 0, token), tl_send(tl, 0, flag);
    if (is("sent_before") && pe == 0) tl_store(tl, far, x), tl_send(tl, 1, flag);
    if (is("sent_before") && pe == 1) tl_recv(tl, 2, token), tl_send(tl, 2, flag), tl_recv(tl, 0, token);
    if (is("sent_before") && pe == 2) tl_send(tl, 1, flag), tl_delay(tl, 1000000000);
    if (is("sent_before") && pe == 2) tl_recv(tl, 1, token), tl_load(tl, far);
    if (is("after_recv") && pe == 0) tl_delay(tl, 1000000000), tl_store(tl, far, x), tl_send(tl, 1, flag);
    if (is("after_recv") && pe == 1) {
        tl_after(tl, tl_recv_async(tl, 0, token));      /* not waited for: it says nothing */
        tl_wait(tl, tl_load_async(tl, y, far));
    }
    if (is("often"))
        for (int i = 0; i < 2000; i++) {
            if (pe == 0) tl_store(tl, far, x), tl_send(tl, 1, flag), tl_recv(tl, 1, token);
            if (pe == 1) tl_recv(tl, 0, token), tl_load_into(tl, y, far), tl_send(tl, 0, flag);
        }
}

KB_KERNEL(racing, struct racing_args)
{
    struct tl_shard x = tl_alloc(tl, KB_f32, 4, 8), y = tl_alloc(tl, KB_f32, 4, 8), far = tl_shard(tl, arg->shared, 0);
    among(tl, far, x, y);
    if (tl_pe(tl) == 0)
        alone(tl, far, x, y);
}

KB_KERNEL(racing_store, struct racing_args)
{
    struct tl_shard far = tl_part(tl, tl_shard(tl, arg->shared, 0), 0, 0, 4);
    tl_delay(tl, 1000000 * tl_sip(tl));
    tl_store(tl, far, tl_alloc(tl, KB_f32, 4, 8));
}

KB_BENCH(racing, "operations in some order or none",
         KB_WORD(what, "none load_use load_wait math_store math_wait reuse reuse_wait late_wait stores loads columns "
                       "shared_column gemm_store gemm_apart after after_two after_one after_fork after_chain "
                       "both_store both_load "
                       "own_rows store_load told told_early told_one heard_late told_on reply no_reply behind "
                       "behind_after beside often "
                       "told_after told_other sent_before after_recv at_once in_turn", ""))
{
    what = kb_word(what);
    struct kb_pes pes = kb_pes("*"), one = kb_pes("sip0.cube0.pe0"), other = kb_pes("sip0.cube1.pe1");
    struct racing_args args = {kb_tensor_new("shared", KB_f32, kb_2d(8, 8), kb_on(KB_HBM, one))};
    if (is("at_once") || is("in_turn")) {
        kb_future first = kb_launch(racing_store, one, &args);
        if (is("in_turn"))
            kb_wait(first);
        kb_wait(kb_launch(racing_store, other, &args));
    } else {
        kb_wait(kb_launch(racing, pes, &args));
        kb_wait(kb_launch(racing, pes, &args));
    }
}
