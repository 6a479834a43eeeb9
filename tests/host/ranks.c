/* ranks.c: a program per SIP: who acts when, what they send each other, how they end. */
#include <kb/host.h>
#include <kb/tl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct waiting_args { uint64_t ps; };

KB_KERNEL(waiting, struct waiting_args)
{
    tl_delay(tl, arg->ps);
}

KB_BENCH(alone, "a bench has rank 0 of 1")
{
    printf("rank %u of %u, %u PEs\n", kb_rank(), kb_ranks(), kb_pes("*").count);
    kb_barrier();
}

KB_BENCH_PER_SIP(ranks, "programs meet, and act in rank order")
{
    struct kb_pes own = kb_pes("*");
    printf("rank %u of %u: %u of %u PEs, from number %u on\n", kb_rank(), kb_ranks(), own.count,
           kb_machine_pes("*").count, own.pe[0]);
    for (uint32_t round = 0; round < 3; round++) {
        /* the last rank is the first to be done, then the first */
        uint64_t ps = (round % 2 ? kb_rank() : kb_ranks() - kb_rank()) * 1000000;
        kb_wait(kb_launch(waiting, own, &(struct waiting_args){ps}));
        kb_barrier();
        printf("round %u: rank %u\n", round, kb_rank());
        kb_barrier();
    }
}

struct exchange_args { kb_tensor mine; uint32_t other; };

KB_KERNEL(exchange, struct exchange_args)
{
    struct tl_shard mine = tl_my_shard(tl, arg->mine), out = tl_load(tl, mine), in = tl_alloc(tl, KB_i32, 8);
    tl_send(tl, TL_NUMBER(arg->other + tl_pe(tl)), out);
    tl_recv(tl, TL_NUMBER(arg->other + tl_pe(tl)), in);
    tl_store(tl, mine, in);
}

KB_BENCH_PER_SIP(swap, "each SIP sends what it has to the next one's PEs")
{
    struct kb_pes own = kb_pes("*"), all = kb_machine_pes("*");
    kb_tensor mine = kb_tensor_new("mine", KB_i32, kb_1d(8 * own.count), kb_rows(KB_HBM, own));
    kb_fill(mine, 10 * (kb_rank() + 1));
    kb_wait(kb_launch(exchange, own, &(struct exchange_args){mine, all.pe[(1 - kb_rank()) * own.count]}));
    printf("rank %u has %g\n", kb_rank(), kb_peek(mine, 5));
}

KB_BENCH_PER_SIP(shared, "both wait for what rank 0 launched")
{
    static kb_future launched;
    if (kb_rank() == 0)
        launched = kb_launch(waiting, kb_pes("*"), &(struct waiting_args){1000000});
    kb_barrier();
    kb_wait(launched);
    printf("rank %u goes on\n", kb_rank());
}

KB_KERNEL(fails, struct waiting_args)
{
    tl_delay(tl, arg->ps);
    tl_fail(tl, 5, "at %" PRIu64, arg->ps);
}

KB_KERNEL(receives, struct exchange_args)
{
    tl_recv(tl, TL_NUMBER(arg->other), tl_alloc(tl, KB_i32, 8));
}

KB_BENCH_PER_SIP(end, "how programs end", KB_WORD(how, "fail gone elsewhere foreign write_foreign deadlock", "which"))
{
    const char *how = kb_word(how);
    struct kb_pes own = kb_pes("*");
    static kb_tensor shared;
    if (kb_rank() == 0)
        shared = kb_tensor_new("shared", KB_i32, kb_1d(8), kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")));
    if (!strcmp(how, "fail") && kb_rank() == 1)
        kb_wait(kb_launch(fails, own, &(struct waiting_args){1000000}));
    if (!strcmp(how, "fail") && kb_rank() == 0) {
        kb_wait(kb_launch(waiting, own, &(struct waiting_args){90000000}));
        printf("never said\n");
    }
    if (!strcmp(how, "gone") && kb_rank() == 1)
        return;
    if (!strcmp(how, "elsewhere") && kb_rank() == 1)
        kb_wait(kb_launch(receives, own, &(struct exchange_args){NULL, 0}));
    if (!strcmp(how, "foreign") && kb_rank() == 1)
        kb_launch(waiting, kb_machine_pes("sip0.*"), &(struct waiting_args){1});
    if (!strcmp(how, "write_foreign") && kb_rank() == 1)
        kb_write(shared, NULL);
    if (!strcmp(how, "deadlock"))
        kb_wait(kb_launch(receives, own, &(struct exchange_args){NULL, kb_machine_pes("*").pe[0] +
                                                                 (1 - kb_rank()) * own.count}));
    kb_barrier();
    printf("past the barrier\n");
}

KB_BENCH_PER_SIP(both_write, "each program writes, then all run kernels")
{
    struct kb_pes own = kb_pes("*");
    kb_tensor mine = kb_tensor_new("mine", KB_i32, kb_1d(256 * own.count), kb_rows(KB_HBM, own));
    kb_write(mine, NULL);
    kb_barrier();
    kb_wait(kb_launch(waiting, own, &(struct waiting_args){1000}));
}
