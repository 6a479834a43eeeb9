/* dequant_gemm.c: C = scale * (A B) of i8, accumulated exactly in i32, with a scale for each column of B; gemm.h has
 * the algorithm.
 *
 * The array multiplies i8 faster than floats, and A and B have half the bytes of f16; C costs the same. */
#include "gemm.h"

KB_KERNEL(dequant_gemm, struct gemm_args)
{
    gemm_on_pe(tl, arg);
}

KB_BENCH(dequant_gemm, "C = scale * (A B) of i8, rows of A and C over all PEs", GEMM_PARAMS(98304, 1408, 1024),
         KB_WORD(dtype, "f16 bf16 f32", "dtype of C"))
{
    enum kb_dtype out = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes("*");
    struct gemm_args arg = gemm_new(KB_i8, out, pes);
    arg.scale = kb_tensor_new("scale", KB_f32, kb_1d(kb_int(n)), kb_copies(kb_main_memory(), pes));
    kb_fill_uniform(arg.scale, 1e-5, 1e-4);

    kb_future launch = kb_launch(dequant_gemm, pes, &arg);
    kb_wait(launch);
    gemm_roofline(launch, &arg, pes, KB_i8, out, kb_int(m) * kb_int(n));

    kb_ref sums = kb_ref_gemm(arg.a, kb_ref_transpose(arg.b));
    kb_expect_close(arg.c, kb_ref_binary("dequant", sums, arg.scale));
}
