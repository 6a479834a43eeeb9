/* touches.c: kernels that touch simplifications of the model, for tests/ledger.t. */
#include <kb/host.h>
#include <kb/tl.h>

#include <string.h>

struct touches_args {
    kb_tensor a, b, c, row;
    uint64_t tile;
};

KB_KERNEL(delay, struct touches_args)
{
    tl_delay(tl, 1000000);
}

KB_KERNEL(loads, struct touches_args)
{
    tl_load(tl, tl_my_shard(tl, arg->a));
}

KB_KERNEL(far, struct touches_args)
{
    tl_load(tl, tl_shard(tl, arg->a, tl_pe(tl) % 2));   /* those of the other cube share links */
}

KB_KERNEL(after, struct touches_args)
{
    struct tl_shard x = tl_alloc(tl, KB_f16, 8, 8);
    tl_after(tl, tl_exp_async(tl, x, x));
    tl_neg(tl, x, x);
}

KB_KERNEL(ring, struct touches_args)
{
    struct tl_shard x = tl_alloc(tl, KB_f16, 8, 8);
    if (tl_pe(tl) == 0)
        tl_send(tl, 1, x);
    else if (tl_pe(tl) == 1)
        tl_recv(tl, 0, x);
}

static void multiply(struct tl *tl, const struct touches_args *arg, bool epilogues)
{
    struct tl_composite gemm = {.op = TL_GEMM, .m = 64, .k = 64, .n = 96, .tile = {32, arg->tile, arg->tile},
                                .a = tl_in(tl_my_shard(tl, arg->a)), .b = tl_in(tl_my_shard(tl, arg->b)),
                                .c = tl_out(tl_my_shard(tl, arg->c)), .epilogues = epilogues ? 3 : 0};
    gemm.epilogue[0] = (struct tl_epilogue){.op = "bias", .operand = tl_in(tl_my_shard(tl, arg->row))};
    gemm.epilogue[1] = (struct tl_epilogue){.op = "add", .operand = tl_in(tl_my_shard(tl, arg->b))};
    gemm.epilogue[1].operand.cols = 96;
    gemm.epilogue[2] = (struct tl_epilogue){.op = "mul", .operand = tl_in(tl_number(2))};
    tl_composite(tl, &gemm);
}

KB_KERNEL(composite, struct touches_args)
{
    multiply(tl, arg, false);
}

KB_KERNEL(epilogue, struct touches_args)
{
    multiply(tl, arg, true);
}

KB_BENCH(touches, "a kernel that touches simplifications", KB_WORD(kernel, "delay loads far after ring composite epilogue", "which"),
         KB_TEXT(pes, "sip0.cube0.pe0", "where"), KB_INT(tile, 32, 1, 96, "of k and n"))
{
    struct kb_pes pes = kb_pes(kb_text(pes));
    struct touches_args arg = {
        .a = kb_tensor_new("a", KB_f16, kb_2d(64, 64), kb_copies(KB_HBM, pes)),
        .b = kb_tensor_new("b", KB_f16, kb_2d(64, 96), kb_copies(KB_HBM, pes)),
        .c = kb_tensor_new("c", KB_f16, kb_2d(64, 96), kb_copies(KB_HBM, pes)),
        .row = kb_tensor_new("row", KB_f16, kb_2d(1, 96), kb_copies(KB_HBM, pes)), .tile = kb_int(tile)};
    const char *kernel = kb_word(kernel);
    kb_future launch = !strcmp(kernel, "delay") ? kb_launch(delay, pes, &arg) : !strcmp(kernel, "loads")
                       ? kb_launch(loads, pes, &arg) : !strcmp(kernel, "after") ? kb_launch(after, pes, &arg)
                       : !strcmp(kernel, "far") ? kb_launch(far, pes, &arg) : !strcmp(kernel, "ring") ? kb_launch(ring, pes, &arg) : !strcmp(kernel, "composite")
                       ? kb_launch(composite, pes, &arg) : kb_launch(epilogue, pes, &arg);
    kb_wait(launch);
}
