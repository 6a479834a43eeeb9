/* 2_chunks.c: z = x + y on all PEs. Each PE works on its part in chunks, so the part may be larger than its TCM. */
#include <kb/measure.h>

struct add_args { kb_tensor x, y, z; uint64_t chunk; };

KB_KERNEL(add_chunks, struct add_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), y = tl_my_shard(tl, arg->y), z = tl_my_shard(tl, arg->z);
    for (uint64_t first = 0; first < x.shape[0]; first += arg->chunk) {
        uint64_t count = x.shape[0] - first < arg->chunk ? x.shape[0] - first : arg->chunk;
        struct tl_shard a = tl_load(tl, tl_part(tl, x, 0, first, count));
        struct tl_shard b = tl_load(tl, tl_part(tl, y, 0, first, count));
        tl_add(tl, a, a, b);
        tl_store(tl, tl_part(tl, z, 0, first, count), a);
        tl_free(tl, a);
        tl_free(tl, b);
    }
}

KB_BENCH(add_chunks, "z = x + y on all PEs, chunk by chunk",
         KB_INT(n, 2097152, 1, 1 << 30, "elements"), KB_INT(chunk, 8192, 1, 524288, "elements per load"))
{
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_1d(kb_int(n)), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_1d(kb_int(n)), kb_rows(KB_HBM, all));
    kb_tensor z = kb_tensor_new("z", KB_f16, kb_1d(kb_int(n)), kb_rows(KB_HBM, all));
    kb_fill_uniform(x, -1, 1);
    kb_fill_uniform(y, -1, 1);

    kb_future launch = kb_launch(add_chunks, all, &(struct add_args){ x, y, z, kb_int(chunk) });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .math_dtype = KB_f16, .math = kb_int(n), .reads = {x, y}, .writes = {z} }, NULL);
    kb_expect_close(z, kb_ref_binary("add", x, y));
}
