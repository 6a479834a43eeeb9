/* many.c: as many operations as one likes, of every kind, in a small space. */
#include <kb/host.h>
#include <kb/tl.h>

struct many_args { kb_tensor x, y; uint64_t rounds; };

/* Loads, computes, stores, and passes messages on to the right; nothing is waited for twice, some of it late. */
KB_KERNEL(many, struct many_args)
{
    uint32_t pes = tl_num_pes(tl), right = (tl_pe(tl) + 1) % pes, left = (tl_pe(tl) + pes - 1) % pes;
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    struct tl_shard a = tl_alloc(tl, x.dtype, 8, 8), b = tl_alloc(tl, x.dtype, 8, 8);
    tl_handle last = NULL;
    for (uint64_t i = 0; i < arg->rounds; i++) {
        if (last)
            tl_after(tl, last);
        tl_handle load = tl_load_async(tl, a, x);
        if (last)
            tl_wait(tl, last);
        tl_wait(tl, load);
        tl_send(tl, right, a);
        tl_recv(tl, left, b);
        tl_math(tl, "max", a, a, b);
        tl_store(tl, y, a);
        last = tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = 8, .k = 8, .n = 8, .tile = {8, 8, 8}, .a = tl_in(a), .pin_a = true, .b = tl_in(b),
            .pin_b = true, .c = tl_out(y), .epilogue = {{"relu", TL_OUTPUT_TILE}}, .epilogues = 1 });
    }
    tl_wait(tl, last);
}

KB_BENCH(many, "operations of every kind", KB_INT(rounds, 10, 1, 1 << 30, "of six operations on each PE"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    _Float16 ones[8 * 8 * 256];
    for (uint64_t i = 0; i < 64 * all.count; i++)
        ones[i] = (_Float16)(i % 7);
    kb_fill_normal(y, 0, 1);
    kb_write(x, ones);
    kb_wait(kb_launch(many, all, &(struct many_args){x, y, kb_int(rounds)}));
    _Float16 first[64 * 256];
    kb_read(y, first);
    kb_fill(x, 2);
    kb_wait(kb_launch(many, all, &(struct many_args){x, y, 1}));
}

/* The same without a look at what it computes. */
KB_BENCH(looped, "many operations", KB_INT(rounds, 10, 1, 1 << 30, "of six operations on each PE"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_fill(x, 1);
    kb_wait(kb_launch(many, all, &(struct many_args){x, y, kb_int(rounds)}));
}

/* A receive comes after a load that is complete; a store after that load, and after the receive, which is not. */
KB_KERNEL(named, struct many_args)
{
    uint32_t pes = tl_num_pes(tl), right = (tl_pe(tl) + 1) % pes, left = (tl_pe(tl) + pes - 1) % pes;
    struct tl_shard x = tl_my_shard(tl, arg->x), a = tl_alloc(tl, x.dtype, 8, 8), b = tl_alloc(tl, x.dtype, 8, 8);
    tl_handle load = tl_load_async(tl, a, x);
    tl_wait(tl, load);
    tl_after(tl, load);
    tl_handle message = tl_recv_async(tl, left, b);
    tl_after(tl, message);
    tl_after(tl, load);
    tl_store(tl, tl_my_shard(tl, arg->y), a);
    tl_send(tl, right, a);
    tl_wait(tl, message);
}

KB_BENCH(named, "what tl_after names")
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_fill(x, 1);
    for (int i = 0; i < 3; i++)
        kb_wait(kb_launch(named, all, &(struct many_args){x, y, 0}));
    kb_expect_close(y, kb_ref_copy(x));
}

struct quiet_args { kb_tensor x, y; uint64_t keep; };

/* y = 2 x. Bits of `keep` keep commands out of the op log: 0 the load, 1 the sum, 2 the first store, 3 all but the sum,
 * which is forced in, 4 messages, in vain. */
KB_KERNEL(quiet, struct quiet_args)
{
    uint32_t pes = tl_num_pes(tl), right = (tl_pe(tl) + 1) % pes, left = (tl_pe(tl) + pes - 1) % pes;
    struct tl_shard a = tl_alloc(tl, KB_f16, 8, 8);
    tl_data_op_default(tl, !(arg->keep >> 3 & 1));
    if (arg->keep & 1)
        tl_data_op(tl, false);
    tl_handle load = tl_load_async(tl, a, tl_my_shard(tl, arg->x));
    tl_wait(tl, load);
    if (arg->keep & 2)
        tl_data_op(tl, false);
    if (arg->keep >> 3 & 1)
        tl_data_op(tl, true);
    tl_after(tl, load);
    tl_add(tl, a, a, a);
    if (arg->keep >> 2 & 1)
        tl_data_op(tl, false);
    tl_store(tl, tl_my_shard(tl, arg->y), a);
    tl_data_op(tl, !(arg->keep >> 4 & 1));
    tl_send(tl, right, a);
    tl_data_op(tl, !(arg->keep >> 4 & 1));
    tl_recv(tl, left, a);
    tl_store(tl, tl_my_shard(tl, arg->x), a);
}

KB_BENCH(quiet, "commands that are kept out of the op log", KB_INT(keep, 0, 0, 31, "bits, see quiet"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_fill_uniform(x, 1, 2);
    kb_ref given = kb_ref_copy(x);
    kb_wait(kb_launch(quiet, all, &(struct quiet_args){x, y, (uint64_t)kb_int(keep)}));
    kb_expect_close(y, kb_ref_binary("add", given, given));
}

/* One PE waits for a message that never comes. */
KB_KERNEL(waits, struct many_args)
{
    struct tl_shard x = tl_load(tl, tl_my_shard(tl, arg->x));
    if (tl_pe(tl) == 1)
        tl_recv(tl, 0, x);
}

KB_BENCH(stuck, "a run that ends in a deadlock")
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(8 * all.count, 8), kb_rows(KB_HBM, all));
    kb_fill(x, 1);
    kb_wait(kb_launch(waits, all, &(struct many_args){x, x, 1}));
}
