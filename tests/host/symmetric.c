/* symmetric.c: long composites of every PE in its own slice: PEs are in equal states until a fault or a timeout. */
#include <kb/host.h>
#include <kb/tl.h>

struct symmetric_args { kb_tensor x, w, y; bool fault; };

KB_KERNEL(symmetric, struct symmetric_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y);
    for (int i = 0; i < 2; i++) {
        struct tl_shard w = tl_my_shard(tl, arg->w);
        if (arg->fault && i && tl_pe(tl) == 3)
            w.addr += (uint64_t)1 << 35;                /* beyond its slice */
        tl_wait(tl, tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = x.shape[0], .k = x.shape[1], .n = w.shape[1], .tile = {16, 16, 16},
            .a = tl_in(x), .b = tl_in(w), .c = tl_out(y) }));
        tl_delay(tl, 0);
    }
}

KB_BENCH(symmetric, "a composite of each PE in its own memory", KB_INT(rows, 64, 16, 4096, "of each PE"), KB_BOOL(fault, false, "of a PE"),
         KB_INT(timeout_ns, 0, 0, 1000000, "of each launch; 0: none"), KB_INT(launches, 1, 1, 4, "one after the other"))
{
    struct kb_pes all = kb_pes("*");
    uint64_t rows = all.count * kb_int(rows);
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(rows, 256), kb_rows(KB_HBM, all));
    kb_tensor w = kb_tensor_new("w", KB_f16, kb_2d(256, 64), kb_copies(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(rows, 64), kb_rows(KB_HBM, all));
    for (uint64_t i = 0; i < (uint64_t)kb_int(launches); i++)
        kb_wait(kb_launch_with(symmetric, all, kb_options(.timeout_ns = kb_int(timeout_ns), .on_failure = KB_FAIL_FAST),
                               &(struct symmetric_args){x, w, y, kb_bool(fault)}));
}
