/* chain.c: results that are inputs again: in one kernel by way of the TCM, and from launch to launch. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>

enum { N = 24 };

struct chain_args { kb_tensor a, b, c; };

static tl_handle product(struct tl *tl, struct tl_shard a, struct tl_shard b, struct tl_shard c, bool pinned)
{
    struct tl_composite gemm = {.op = TL_GEMM, .m = N, .k = N, .n = N, .tile = {N, 8, N}, .a = tl_in(a), .b = tl_in(b),
                                .c = tl_out(c), .pin_a = pinned, .pin_b = pinned};
    return tl_composite(tl, &gemm);
}

/* C = (A B) B, with A, B and A B in the TCM: what is stored is the pending result of a pending result. */
KB_KERNEL(chain, struct chain_args)
{
    struct tl_shard b = tl_load(tl, tl_my_shard(tl, arg->b)), a = tl_load(tl, tl_my_shard(tl, arg->a));
    struct tl_shard ab = tl_load(tl, tl_my_shard(tl, arg->c)), c = tl_load(tl, tl_my_shard(tl, arg->c));
    tl_wait(tl, product(tl, a, b, ab, true));
    tl_wait(tl, product(tl, ab, b, c, true));
    tl_store(tl, tl_my_shard(tl, arg->c), c);
}

KB_KERNEL(once, struct chain_args)
{
    product(tl, tl_my_shard(tl, arg->a), tl_my_shard(tl, arg->b), tl_my_shard(tl, arg->c), false);
}

static kb_tensor matrix(const char *name, struct kb_place place)
{
    return kb_tensor_new(name, KB_f32, kb_2d(N, N), place);
}

KB_BENCH(chain, "products of products", KB_BOOL(peek, false, "look at results in between: the data pass runs then"))
{
    struct kb_place left = kb_on(KB_HBM, kb_pes("sip0.cube0.pe0")), right = kb_on(KB_HBM, kb_pes("sip0.cube1.pe1"));
    kb_tensor a = matrix("a", left), b = matrix("b", left), c = matrix("c", left), ab = matrix("ab", left);
    kb_tensor x = matrix("x", right), y = matrix("y", right), z = matrix("z", right);
    kb_fill_normal(a, 0, 1);
    kb_fill_normal(b, 0, 1);
    kb_fill_uniform(x, 0, 1);
    kb_fill(y, 0.5);
    kb_tensor half = matrix("half", left);
    kb_fill(half, 0.5);
    kb_future here = kb_launch(chain, left.pes, &(struct chain_args){a, b, c});
    kb_future there = kb_launch(once, right.pes, &(struct chain_args){x, y, z});
    kb_wait(there);
    if (kb_bool(peek))
        printf("z[0] = %g while the other launch runs\n", kb_peek(z, 0));
    kb_wait(here);
    kb_expect_close(z, kb_ref_gemm(x, y));
    kb_wait(kb_launch(once, left.pes, &(struct chain_args){a, b, ab}));
    kb_expect_close(c, kb_ref_gemm(ab, b));
    kb_fill(a, 0.5);                                    /* after the launches that read it, before this one */
    kb_wait(kb_launch(once, left.pes, &(struct chain_args){a, b, ab}));
    kb_fill(a, 1);
    if (kb_bool(peek))
        printf("ab[5] = %g\n", kb_peek(ab, 5));
    kb_expect_close(ab, kb_ref_gemm(half, b));
    kb_launch(once, right.pes, &(struct chain_args){x, z, y});
}

/* A defect that changes the result makes it wait without end. */
KB_BENCH(patient, "waits until its result is right")
{
    struct kb_place place = kb_on(KB_HBM, kb_pes("sip0.cube0.pe0"));
    kb_tensor a = matrix("a", place), b = matrix("b", place), c = matrix("c", place);
    kb_fill(a, 1);
    kb_fill(b, 0.5);
    kb_wait(kb_launch(once, place.pes, &(struct chain_args){a, b, c}));
    while (kb_peek(c, 0) != 0.5 * N)
        ;
}
