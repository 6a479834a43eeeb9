/* npy.c: tensors from and to files of NumPy's, before, between and after computes. */
#include <kb/host.h>
#include <kb/tl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "2x3x4" */
static struct kb_dims dims_of(const char *text)
{
    struct kb_dims dims = {0};
    for (char *end; *text; text = *end ? end + 1 : end)
        dims.size[dims.rank++] = strtoull(text, &end, 10);
    return dims;
}

static struct kb_place place_of(const char *split, struct kb_dims dims)
{
    struct kb_pes all = kb_pes("*");
    if (!strcmp(split, "on"))
        return kb_on(KB_SRAM, kb_pes("sip0.cube0.pe1"));
    if (!strcmp(split, "blocks") && dims.rank == 2)
        return kb_blocks(KB_HBM, all, 2, all.count / 2);
    return !strcmp(split, "rows") ? kb_rows(KB_TCM, all) : !strcmp(split, "cols") ? kb_cols(KB_HBM, all)
                                                                                   : kb_copies(KB_HBM, all);
}

struct pass_args { kb_tensor x, y; };

KB_KERNEL(pass, struct pass_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x);
    if (x.shape[0] && x.shape[1] && x.shape[2] && x.shape[3])
        tl_store(tl, tl_my_shard(tl, arg->y), tl_load(tl, x));
}

KB_BENCH(pass, "a file through the machine to another one", KB_TEXT(in, "", "file"), KB_TEXT(out, "", "file"),
         KB_TEXT(dtype, "f32", "of the tensor"), KB_TEXT(shape, "2x3", "of the tensor"),
         KB_WORD(split, "rows cols blocks copies", "how it lies"))
{
    struct kb_dims dims = dims_of(kb_text(shape));
    kb_tensor x = kb_tensor_new("x", kb_dtype(kb_text(dtype)), dims, place_of(kb_word(split), dims));
    kb_tensor y = kb_tensor_new("y", kb_dtype(kb_text(dtype)), dims, place_of(kb_word(split), dims));
    kb_load_npy(x, kb_text(in));
    kb_wait(kb_launch(pass, kb_pes("*"), &(struct pass_args){x, y}));
    kb_save_npy(y, kb_text(out));
}

struct product_args { kb_tensor a, c; };

KB_KERNEL(product, struct product_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a);
    tl_wait(tl, tl_composite(tl, &(struct tl_composite){.op = TL_GEMM, .m = 2, .k = 2, .n = 2, .tile = {2, 2, 2},
            .a = tl_in(a), .b = tl_in(a), .c = tl_out(tl_my_shard(tl, arg->c))}));
}

KB_BENCH(npy_results, "what is pending is computed, what is loaded over it is not", KB_TEXT(in, "", "file"),
         KB_TEXT(out, "", "file"), KB_BOOL(ask, false, "whether there are results, before they are saved"))
{
    struct kb_pes one = kb_pes("sip0.cube0.pe0");
    kb_tensor a = kb_tensor_new("a", KB_f32, kb_2d(2, 2), kb_on(KB_HBM, one));
    kb_tensor c = kb_tensor_new("c", KB_f32, kb_2d(2, 2), kb_on(KB_HBM, one));
    kb_load_npy(a, kb_text(in));
    kb_wait(kb_launch(product, one, &(struct product_args){a, c}));
    kb_load_npy(a, kb_text(in));
    if (!kb_bool(ask) || kb_has_data())
        kb_save_npy(c, kb_text(out));
    kb_load_npy(c, kb_text(in));
    printf("%g %g %g %g\n", kb_peek(c, 0), kb_peek(c, 1), kb_peek(c, 2), kb_peek(c, 3));
}
