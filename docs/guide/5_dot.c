/* 5_dot.c: C = A B by one command of the array: rows of A and C over all PEs, a copy of B per PE. */
#include <kb/measure.h>

struct dot_args { kb_tensor a, b, c; };

KB_KERNEL(dot, struct dot_args)
{
    struct tl_shard to = tl_my_shard(tl, arg->c);
    if (to.shape[0] == 0)                               /* there are more PEs than rows */
        return;
    struct tl_shard a = tl_load(tl, tl_my_shard(tl, arg->a));
    struct tl_shard b = tl_load(tl, tl_my_shard(tl, arg->b));
    struct tl_shard c = tl_alloc(tl, KB_f16, to.shape[0], to.shape[1]);
    tl_dot(tl, c, a, b);
    tl_store(tl, to, c);
}

KB_BENCH(dot, "C = A B by one command of the array", KB_INT(m, 512, 1, 4096, "rows of A and C"),
         KB_INT(k, 512, 1, 4096, "columns of A, rows of B"), KB_INT(n, 512, 1, 4096, "columns of B and C"))
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    struct kb_pes all = kb_pes("*");
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(m, k), kb_rows(KB_HBM, all));
    kb_tensor b = kb_tensor_new("b", KB_f16, kb_2d(k, n), kb_copies(KB_HBM, all));
    kb_tensor c = kb_tensor_new("c", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);

    kb_future launch = kb_launch(dot, all, &(struct dot_args){ a, b, c });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = KB_f16, .macs = m * k * n, .reads = {a, b}, .writes = {c} }, &(struct kb_work){
        .hbm_read = 2 * (m * k + all.count * k * n), .hbm_written = 2 * m * n });
    kb_expect_close(c, kb_ref_gemm(a, b));
}
