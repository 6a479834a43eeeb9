/* gemm_bias_gelu.c: C = gelu(A B + bias), the first half of a feed-forward block, in one pass; gemm.h has the
 * algorithm.
 *
 * The epilogues work on each tile of C before it is stored. Where pe_gemm and pe_math share one slot of the PE, they
 * take turns, and the sum of their times bounds the kernel. */
#include "gemm.h"

KB_KERNEL(gemm_bias_gelu, struct gemm_args)
{
    gemm_on_pe(tl, arg);
}

KB_BENCH(gemm_bias_gelu, "C = gelu(A B + bias), rows of A and C over all PEs", GEMM_PARAMS(98304, 704, 1024),
         KB_WORD(dtype, "f16 bf16 f32 f8e4m3 f8e5m2", "dtype of A and B, and of bias and C; with an f8, those are bf16"))
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = product_dtype(dtype);
    struct kb_pes pes = kb_pes("*");
    struct gemm_args arg = gemm_new(dtype, out, pes);
    arg.bias = kb_tensor_new("bias", out, kb_1d(kb_int(n)), kb_copies(kb_main_memory(), pes));
    arg.activation = "gelu";
    kb_fill_uniform(arg.bias, -1, 1);

    kb_future launch = kb_launch(gemm_bias_gelu, pes, &arg);
    kb_wait(launch);
    gemm_roofline(launch, &arg, pes, dtype, out, 2 * kb_int(m) * kb_int(n));

    kb_ref expected = kb_ref_gemm(arg.a, kb_ref_transpose(arg.b));
    kb_ref_bias(expected, arg.bias);
    kb_ref_unrounded(expected);                         /* the epilogue is of the accumulators */
    kb_expect_close(arg.c, kb_ref_unary("gelu", expected));
}
