/* multicast.c: messages from one PE to several; `what` says which. Tensors are printed as exact numbers. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>
#include <string.h>

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct multicast_args { kb_tensor from, to; };

/* From PE 0 to all others, in two messages. */
static void to_all(struct tl *tl, struct tl_shard from, struct tl_shard to)
{
    const uint32_t others[] = {3, 1, 2};
    uint64_t half = from.shape[0] / 2;
    struct tl_shard x = tl_alloc(tl, KB_f32, from.shape[0]);
    struct tl_shard part[] = {tl_part(tl, x, 0, 0, half), tl_part(tl, x, 0, half, from.shape[0] - half)};
    if (tl_pe(tl) == 0) {
        tl_load_into(tl, x, from);
        if (is("pending"))
            tl_add(tl, x, x, x);
        if (is("async")) {
            tl_handle first = tl_multicast_async(tl, others, 3, part[0]);
            tl_wait(tl, tl_multicast_async(tl, others, 3, part[1]));
            tl_wait(tl, first);
        } else {
            tl_multicast(tl, others, 3, part[0]);
            tl_multicast(tl, others, 3, part[1]);
        }
    } else {
        tl_recv(tl, 0, part[0]);
        tl_recv(tl, 0, part[1]);
        if (is("pending"))
            tl_add(tl, x, x, x);
    }
    tl_store(tl, to, x);
}

/* PE 0 sends to PEs 1 and 2 by lists that overlap, and to each of them alone. PE 3 gets what PE 1 got. */
static void overlapping(struct tl *tl, struct tl_shard from, struct tl_shard to)
{
    struct tl_shard x = tl_alloc(tl, KB_f32, from.shape[0]);
    if (tl_pe(tl) == 0) {
        tl_load_into(tl, x, from);
        tl_after(tl, tl_multicast_async(tl, (const uint32_t[]){1, 2}, 2, x));
        tl_add(tl, x, x, x);                            /* what was sent stays as it was */
        tl_after(tl, tl_multicast_async(tl, (const uint32_t[]){2}, 1, x));
        tl_add(tl, x, x, x);
        tl_multicast(tl, (const uint32_t[]){2, 1, 3}, 3, x);
    } else {
        for (uint32_t messages = tl_pe(tl) == 2 ? 3 : tl_pe(tl) == 1 ? 2 : 1; messages; messages--)
            tl_recv(tl, 0, x);
    }
    tl_store(tl, to, x);
}

/* PE 2 receives the message to PEs 1 and 2 long after PE 1, which has answered it and got another one. */
static void late(struct tl *tl, struct tl_shard from, struct tl_shard to)
{
    struct tl_shard x = tl_alloc(tl, KB_f32, from.shape[0]), y = tl_alloc(tl, KB_f32, from.shape[0]);
    tl_load_into(tl, x, from);
    if (tl_pe(tl) == 0) {
        tl_multicast(tl, (const uint32_t[]){1, 2}, 2, x);
        tl_recv(tl, 1, y);
        tl_send(tl, 1, y);
    }
    if (tl_pe(tl) == 1) {
        tl_recv(tl, 0, y);
        tl_add(tl, y, y, y);
        tl_send(tl, 0, y);
        tl_recv(tl, 0, x);
    }
    if (tl_pe(tl) == 2) {
        tl_delay(tl, 100000000);
        tl_recv(tl, 0, x);
    }
    tl_store(tl, to, x);
}

static void wrong(struct tl *tl)
{
    struct tl_shard x = tl_alloc(tl, KB_f32, 4), large = tl_alloc(tl, KB_f32, tl_slot_bytes(tl) / 4 + 1);
    if (tl_pe(tl))
        return;
    if (is("nobody")) tl_multicast(tl, (const uint32_t[]){1}, 0, x);
    if (is("nowhere")) tl_multicast(tl, NULL, 2, x);
    if (is("many")) tl_multicast(tl, (const uint32_t[]){1, 2}, UINT32_MAX, x);
    if (is("itself")) tl_multicast(tl, (const uint32_t[]){1, 0, 2}, 3, x);
    if (is("twice")) tl_multicast(tl, (const uint32_t[]){2, 1, 2}, 3, x);
    if (is("no_pe")) tl_multicast(tl, (const uint32_t[]){1, 4}, 2, x);
    if (is("large")) tl_multicast(tl, (const uint32_t[]){1, 2}, 2, large);
}

/* PE 0 writes what others read, or reads what it then writes, in an order that messages make, or in none. */
static void racing(struct tl *tl, struct tl_shard shared)
{
    struct tl_shard x = tl_alloc(tl, KB_f32, 4), y = tl_alloc(tl, KB_f32, 4);
    const uint32_t two[] = {1, 2};
    uint32_t me = tl_pe(tl);
    if (is("told_all") || is("told_on") || is("told_two")) {
        if (me == 0)
            tl_store(tl, shared, x), tl_multicast(tl, two, 2, x);
        if (me == 1 || me == 2)
            tl_recv(tl, 0, y), tl_load(tl, shared);
        if (me == 2 && is("told_on"))
            tl_send(tl, 3, y);
        if (me == 3 && is("told_on"))
            tl_recv(tl, 2, y), tl_load(tl, shared);
        if (me == 3 && is("told_two"))
            tl_load(tl, shared);
    }
    if (is("told_third")) {                             /* PE 0 passes on what it knows of PE 3 */
        if (me == 3)
            tl_store(tl, shared, x), tl_send(tl, 0, x);
        if (me == 0)
            tl_recv(tl, 3, y), tl_multicast(tl, two, 2, y);
        if (me == 2)
            tl_delay(tl, 1000000);
        if (me == 1 || me == 2)
            tl_recv(tl, 0, y), tl_load(tl, shared);
    }
    if (is("echo_first") || is("echo_last") || is("no_echo")) {
        uint32_t echo = is("echo_first") ? 1 : 2;
        if (me == 0) {
            tl_multicast_async(tl, two, 2, x);
            if (!is("no_echo"))
                tl_recv(tl, echo, y);
            tl_load_into(tl, x, shared);
        }
        if (me == 2)
            tl_delay(tl, 1000000);
        if (me == 1 || me == 2)
            tl_recv(tl, 0, y);
        if (me == 1 && is("echo_first"))
            tl_delay(tl, 2000000);                      /* the other has received by then */
        if (me == echo && !is("no_echo"))
            tl_send(tl, 0, y);
    }
}

KB_KERNEL(multicast, struct multicast_args)
{
    struct tl_shard from = tl_shard(tl, arg->from, 0), to = tl_reshape(tl, tl_my_shard(tl, arg->to), from.shape[0]);
    if (is("all") || is("pending") || is("async"))
        to_all(tl, from, to);
    else if (is("overlapping"))
        overlapping(tl, from, to);
    else if (is("late"))
        late(tl, from, to);
    else
        wrong(tl), racing(tl, tl_part(tl, from, 0, 0, 4));
}

KB_BENCH(multicast, "sends to several PEs",
         KB_WORD(what, "all pending async overlapping late nobody nowhere many itself twice no_pe large told_all told_on "
                 "told_two told_third echo_first echo_last no_echo", "which"),
         KB_INT(n, 9, 4, 1 << 20, "elements"))
{
    struct kb_pes pes = kb_pes("*");
    uint64_t n = kb_int(n);
    what = kb_word(what);
    struct multicast_args arg = {kb_tensor_new("from", KB_f32, kb_1d(n), kb_on(KB_HBM, ((struct kb_pes){pes.pe, 1}))),
                                 kb_tensor_new("to", KB_f32, kb_2d(pes.count, n), kb_rows(KB_HBM, pes))};
    kb_fill_uniform(arg.from, -1, 1);
    kb_wait(kb_launch(multicast, pes, &arg));
    for (uint32_t t = 0; t < 2; t++) {
        printf(t ? "to" : "from");
        for (uint64_t i = 0; i < (t ? pes.count * n : n); i++)
            printf(" %a", kb_peek(t ? arg.to : arg.from, i));
        printf("\n");
    }
}
