/* device.c: kernels that use messages, buffers and math wrongly, each in its own way; `what` says which. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct misused_args { kb_tensor far; };

/* Messages between PE 0 and PE 1. */
static void messages(struct tl *tl, struct tl_shard x, struct tl_shard hbm)
{
    bool first = tl_pe(tl) == 0;
    if (is("peer")) tl_send(tl, 4, x);
    if (is("number")) tl_recv(tl, TL_NUMBER(9), x);
    if (is("place")) tl_place(tl, 77);
    if (is("self")) tl_send(tl, tl_pe(tl), x);
    if (is("self_recv")) tl_recv_async(tl, tl_pe(tl), x);
    if (is("slot")) tl_send(tl, 1, tl_alloc(tl, KB_u8, tl_slot_bytes(tl) + 1));
    if (is("send_hbm")) tl_send(tl, 1, hbm);
    if (is("recv_hbm")) tl_recv(tl, 1, hbm);
    if (is("send_empty")) tl_send(tl, 1, tl_part(tl, x, 0, 0, 0));
    if (is("send_reserved")) x.addr &= ~(uint64_t)0xfffffff, tl_send(tl, 1, x);
    if (is("short") && first) tl_send(tl, 1, tl_part(tl, x, 0, 0, 3));
    if (is("short") && tl_pe(tl) == 1) tl_recv(tl, 0, x);
    if (is("short_async") && first) tl_send(tl, 1, tl_alloc(tl, KB_u8, 33));
    if (is("short_async") && tl_pe(tl) == 1) tl_recv_async(tl, 0, x), tl_delay(tl, 1000000000);
    if (is("never")) tl_recv(tl, first ? 1 : 0, x);
}

/* A transfer that was not waited for. */
static void hasty(struct tl *tl, struct tl_shard x, struct tl_shard hbm)
{
    struct tl_shard y = tl_alloc(tl, KB_f32, 8), part = tl_part(tl, x, 0, 7, 1);
    if (is("look_load")) tl_load_async(tl, x, hbm), tl_delay(tl, 1000000000), tl_data(tl, part);
    if (is("look_beside")) {
        tl_handle other = tl_math_async(tl, "mul", y, y, y);
        tl_load_async(tl, x, hbm), tl_wait(tl, other), tl_delay(tl, 1000000000), tl_data(tl, part);
    }
    if (is("look_between")) {
        tl_load_async(tl, tl_part(tl, x, 0, 0, 1), tl_part(tl, hbm, 0, 0, 1));
        tl_handle other = tl_math_async(tl, "mul", y, y, y);
        tl_load_async(tl, part, tl_part(tl, hbm, 0, 0, 1)), tl_wait(tl, other), tl_data(tl, part);
    }
    if (is("look_recv")) tl_recv_async(tl, 1, x), tl_data(tl, part);
    if (is("use_send")) tl_recv_async(tl, 1, x), tl_send(tl, 1, part);
    if (is("use_store")) tl_recv_async(tl, 1, x), tl_store(tl, hbm, x);
    if (is("use_math")) tl_recv_async(tl, 1, x), tl_add(tl, y, y, x);
    if (is("use_load")) tl_recv_async(tl, 1, x), tl_load_into(tl, x, hbm);
    if (is("use_source")) tl_recv_async(tl, 1, x), tl_load_into(tl, y, x);
    if (is("use_recv")) tl_recv_async(tl, 1, x), tl_recv_async(tl, 1, x);
    if (is("use_touching") || is("use_apart")) {
        const uint64_t at[] = {0, 1, 5};
        for (int i = 0; i < 3; i++)
            tl_recv_async(tl, 1, tl_part(tl, x, 0, at[i], 1));
        for (uint64_t i = is("use_touching") ? 1 : 2; i < 8; i++)
            tl_exp(tl, tl_part(tl, y, 0, i, 1), tl_part(tl, x, 0, i, 1));
    }
    if (is("look_later")) {
        tl_handle first = tl_load_async(tl, tl_part(tl, x, 0, 0, 1), tl_part(tl, hbm, 0, 0, 1));
        for (uint64_t i = 2; i < 8; i += 2)
            tl_load_async(tl, tl_part(tl, x, 0, i, 1), tl_part(tl, hbm, 0, i, 1));
        tl_wait(tl, first), tl_data(tl, tl_part(tl, x, 0, 2, 1));
    }
    if (is("look_first") || is("look_last")) {
        tl_handle far = tl_load_async(tl, tl_part(tl, x, 0, 6, 1), tl_part(tl, hbm, 0, 0, 1));
        tl_handle last = tl_load_async(tl, tl_part(tl, x, 0, is("look_first") ? 0 : 1, 1), tl_part(tl, hbm, 0, 0, 1));
        tl_wait(tl, far);
        for (uint64_t i = 1; i <= 40; i++) {
            tl_handle next = tl_load_async(tl, tl_part(tl, x, 0, 1 + i % 2, 1), tl_part(tl, hbm, 0, 1, 1));
            if (i > 1 || is("look_last"))
                tl_wait(tl, last);
            last = next;
        }
        tl_wait(tl, last);
        tl_data(tl, tl_part(tl, x, 0, 1, 7));
        tl_load_async(tl, tl_part(tl, x, 0, 4, 1), tl_part(tl, hbm, 0, 0, 1));
        tl_data(tl, tl_part(tl, x, 0, 5, 3));
        tl_data(tl, is("look_first") ? tl_part(tl, x, 0, 0, 1) : x);
    }
    if (is("use_gemm")) {
        tl_recv_async(tl, 1, x);
        tl_composite(tl, &(struct tl_composite){.op = TL_GEMM, .m = 1, .k = 8, .n = 1, .tile = {1, 8, 1},
                                                .a = tl_in(x), .b = tl_in(hbm), .c = tl_out(tl_part(tl, y, 0, 0, 1))});
    }
    if (is("free_load")) tl_load_async(tl, x, hbm), tl_free(tl, x);
    if (is("free_recv")) tl_recv_async(tl, 1, x), tl_free(tl, x);
    if (is("free_other")) tl_load_async(tl, x, hbm), tl_free(tl, y);
    if (is("look_math")) tl_math_async(tl, "mul", y, x, x), tl_data(tl, y);
    if (is("look_copy")) tl_add(tl, x, x, y), tl_store(tl, hbm, x), tl_load_into(tl, y, hbm), tl_data(tl, y);
    float copied[8];
    if (is("into_load")) tl_load_async(tl, x, hbm), tl_delay(tl, 1000000000), tl_data_into(tl, copied, part);
    if (is("into_math")) tl_math_async(tl, "mul", y, x, x), tl_data_into(tl, copied, y);
    if (is("into_hbm")) tl_data_into(tl, copied, hbm);
    if (is("into_null")) tl_data_into(tl, NULL, x);
    if (is("wait_late")) tl_wait(tl, tl_load_async(tl, x, hbm)), tl_data(tl, x), tl_free(tl, x);
}

static void math(struct tl *tl, struct tl_shard x, struct tl_shard hbm)
{
    struct tl_shard y = tl_alloc(tl, KB_f32, 8), odd = y, other = tl_alloc(tl, KB_i32, 8), u8 = y;
    u8.dtype = KB_u8;
    odd.addr += 2;
    if (is("op")) tl_math(tl, "exp", y, x, x);
    if (is("no_op")) tl_math(tl, "frobnicate", y, x, x);
    if (is("null_op")) tl_math(tl, NULL, y, x, x);
    if (is("shapes")) tl_add(tl, tl_part(tl, y, 0, 0, 7), x, x);
    if (is("dtypes")) tl_add(tl, y, x, other);
    if (is("over")) tl_add(tl, tl_part(tl, y, 0, 1, 4), tl_part(tl, y, 0, 0, 4), tl_part(tl, x, 0, 0, 4));
    if (is("odd")) tl_add(tl, odd, x, x);
    if (is("math_hbm")) tl_add(tl, y, x, hbm);
    if (is("lanes")) tl_add(tl, u8, u8, u8);
}

static void rooms(struct tl *tl, struct tl_shard x)
{
    struct tl_shard y = tl_alloc(tl, KB_u8, 4096), shard = x;
    if (is("full")) for (unsigned i = 0; i < 3; i++) tl_alloc(tl, KB_u8, 1024);
    if (is("full")) tl_alloc(tl, KB_u8, tl_room_bytes(tl) + 1);
    if (is("full_load")) tl_alloc(tl, KB_u8, tl_room_bytes(tl)), tl_load(tl, shard);
    if (is("last_bytes")) {
        tl_alloc(tl, KB_u8, tl_room_bytes(tl) - 64);
        tl_load_into(tl, tl_part(tl, tl_alloc(tl, KB_f32, 16), 0, 8, 8), x);
    }
    if (is("zero")) tl_alloc(tl, KB_u8, 5, 0);
    if (is("axes")) tl_alloc(tl, KB_u8, 1, 1, 1, 1, 1);
    if (is("dtype")) tl_alloc(tl, (enum kb_dtype)99, 1);
    if (is("huge")) tl_alloc(tl, KB_u8, (uint64_t)1 << 33, (uint64_t)1 << 33);
    if (is("twice")) tl_free(tl, y), tl_free(tl, y);
    if (is("free_part")) tl_free(tl, tl_part(tl, y, 0, 0, 5));
    if (is("free_inside")) tl_free(tl, tl_part(tl, y, 0, 64, 4032));
    if (is("fail")) tl_fail(tl, 42, "no %s", "cheese");
}

KB_KERNEL(misused, struct misused_args)
{
    if (tl_pe(tl) > 1)
        return;
    struct tl_shard hbm = tl_shard(tl, arg->far, 0), x = tl_load(tl, hbm);
    messages(tl, x, hbm);
    if (tl_pe(tl) == 1)
        return;
    hasty(tl, x, hbm);
    math(tl, x, hbm);
    rooms(tl, x);
}

KB_BENCH(misused, "what a kernel must not do",
         KB_WORD(what, "none peer number place self self_recv slot send_hbm recv_hbm send_empty send_reserved short "
                       "short_async never look_load look_beside look_between look_recv use_send use_store use_math "
                       "use_load "
                       "use_source use_recv use_touching use_apart look_later look_first look_last use_gemm free_load free_recv "
                       "free_other look_math look_copy into_load into_math into_hbm into_null wait_late "
                       "op no_op null_op shapes dtypes over odd math_hbm lanes full full_load last_bytes zero axes "
                       "dtype huge twice free_part free_inside fail", ""))
{
    what = kb_word(what);
    kb_tensor far = kb_tensor_new("far", KB_f32, kb_1d(8), kb_on(KB_HBM, kb_pes("sip0.cube1.pe1")));
    kb_tensor_new("held", KB_u8, kb_1d(1000), kb_on(KB_TCM, kb_pes("sip0.cube0.pe0")));
    kb_wait(kb_launch(misused, kb_pes("*"), &(struct misused_args){far}));
}
