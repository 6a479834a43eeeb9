/* 1_add.c: z = x + y on one PE, in one piece. */
#include <kb/measure.h>

struct add_args { kb_tensor x, y, z; };

KB_KERNEL(add_one, struct add_args)
{
    struct tl_shard x = tl_load(tl, tl_my_shard(tl, arg->x));      /* HBM -> TCM; blocks until it is there */
    struct tl_shard y = tl_load(tl, tl_my_shard(tl, arg->y));
    tl_add(tl, x, x, y);                                           /* x += y in TCM */
    tl_store(tl, tl_my_shard(tl, arg->z), x);                      /* TCM -> HBM */
}

KB_BENCH(add_one, "z = x + y on one PE", KB_INT(n, 262144, 1, 349525, "elements"))
{
    struct kb_pes pe = kb_pes("sip0.cube0.pe0");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(kb_int(n)), kb_on(KB_HBM, pe));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_1d(kb_int(n)), kb_on(KB_HBM, pe));
    kb_tensor z = kb_tensor_new("z", KB_f16, kb_1d(kb_int(n)), kb_on(KB_HBM, pe));
    kb_fill_uniform(x, -1, 1);
    kb_fill_uniform(y, -1, 1);

    kb_future launch = kb_launch(add_one, pe, &(struct add_args){ x, y, z });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = KB_f16, .math = kb_int(n), .reads = {x, y}, .writes = {z} }, NULL);
    kb_expect_close(z, kb_ref_binary("add", x, y));
}
