/* 7_places.c: C = A B with B in different memories: what the distance to an operand costs. */
#include <string.h>

#include <kb/measure.h>

struct places_args { kb_tensor a, b, c; };

KB_KERNEL(places, struct places_args)
{
    struct tl_shard c = tl_my_shard(tl, arg->c);
    uint32_t shards = tl_shards(arg->b), per_shard = tl_num_pes(tl) / shards;
    if (c.shape[0] == 0)                                /* there are more PEs than rows */
        return;
    struct tl_shard a = tl_load(tl, tl_my_shard(tl, arg->a));
    struct tl_shard b = tl_shard(tl, arg->b, tl_pe(tl) / per_shard);      /* mine, my cube's or the only one */
    tl_composite(tl, &(struct tl_composite){
        .op = TL_GEMM, .m = c.shape[0], .k = a.shape[1], .n = c.shape[1], .tile = {256, 512, 128},
        .a = tl_in(a), .pin_a = true, .b = tl_in(b), .c = tl_out(c) });
}

KB_BENCH(places, "C = A B with B in one of several places", KB_INT(m, 32768, 1, 65536, "rows of A and C"),
         KB_INT(k, 512, 1, 4096, "columns of A, rows of B"), KB_INT(n, 1024, 1, 4096, "columns of B and C"),
         KB_WORD(where, "own_hbm cube_hbm cube_sram one_hbm", "a copy of B per PE, per cube (HBM, sram), or in all"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    struct kb_pes all = kb_pes("*"), first = kb_pes("sip*.cube*.pe0"), one = kb_pes("sip0.cube0.pe0");
    bool own = !strcmp(kb_word(where), "own_hbm"), sram = !strcmp(kb_word(where), "cube_sram");
    struct kb_place at = own ? kb_copies(KB_HBM, all) : sram ? kb_copies(KB_SRAM, first)
                       : !strcmp(kb_word(where), "cube_hbm") ? kb_copies(KB_HBM, first) : kb_on(KB_HBM, one);
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(m, k), kb_rows(KB_HBM, all));
    kb_tensor b = kb_tensor_new("b", KB_f16, kb_2d(k, n), at);
    kb_tensor c = kb_tensor_new("c", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);

    kb_future launch = kb_launch(places, all, &(struct places_args){ a, b, c });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = KB_f16, .macs = m * k * n, .reads = {a, b}, .writes = {c} }, &(struct kb_work){
        .hbm_read = 2 * (m * k + (sram ? 0 : all.count * k * n)), .hbm_written = 2 * m * n,
        .sram_read = sram ? 2 * all.count * k * n : 0 });
    kb_expect_close(c, kb_ref_gemm(a, b));
}
