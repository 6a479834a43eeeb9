/* gemm.c: C = A B, or relu(A B + bias), rows over all PEs; gemm.h has the algorithm. */
#include "gemm.h"

KB_KERNEL(gemm, struct gemm_args)
{
    gemm_on_pe(tl, arg);
}

KB_BENCH(gemm, "C = A B, rows of A and C over all PEs, a copy of B per PE", GEMM_PARAMS(196608, 704, 1024),
         KB_WORD(dtype, "f16 bf16 f32 i8 f8e4m3 f8e5m2", "dtype of A, B and C; with i8, C is i32, with an f8 bf16"),
         KB_BOOL(bias, false, "add a bias, one row, to every row of C"),
         KB_BOOL(relu, false, "apply relu to C"))
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = product_dtype(dtype);
    struct kb_pes pes = kb_pes("*");
    struct gemm_args arg = gemm_new(dtype, out, pes);
    if (kb_bool(bias)) {
        arg.bias = kb_tensor_new("bias", out, kb_1d(kb_int(n)), kb_copies(kb_main_memory(), pes));
        kb_fill_uniform(arg.bias, -1, 1);
    }
    if (kb_bool(relu))
        arg.activation = "relu";
    uint64_t ops = kb_bool(bias) + kb_bool(relu);

    kb_future launch = kb_launch(gemm, pes, &arg);
    kb_wait(launch);
    gemm_roofline(launch, &arg, pes, dtype, out, ops * kb_int(m) * kb_int(n));

    kb_ref expected = kb_ref_gemm(arg.a, kb_ref_transpose(arg.b));
    if (arg.bias)
        kb_ref_bias(expected, arg.bias);
    if (kb_bool(relu))
        kb_ref_relu(expected);
    kb_expect_close(arg.c, expected);
}
