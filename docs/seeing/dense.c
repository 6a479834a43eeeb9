/* dense.c: y = relu(x w), rows of x and y over all PEs, a strip of rows at a time. Its parameters are the steps of
 * docs/seeing.md: as it is by default, it is slow. */
#include <kb/measure.h>

struct dense_args { kb_tensor x, w, y; uint64_t strip; bool copies, ahead; };

enum { STRIPS = 2 };                                    /* in the TCM at a time */

struct strip { struct tl_shard x, y; tl_handle loaded, stored; };

/* Starts to load strip i, once the strip that was there before is stored. */
static void load(struct tl *tl, const struct dense_args *arg, struct strip strips[STRIPS], uint64_t i)
{
    struct strip *strip = &strips[i % STRIPS];
    if (strip->stored)
        tl_wait(tl, strip->stored);
    strip->loaded = tl_load_async(tl, strip->x, tl_part(tl, tl_my_shard(tl, arg->x), 0, i * arg->strip, arg->strip));
}

KB_KERNEL(dense, struct dense_args)
{
    struct tl_shard to = tl_my_shard(tl, arg->y);
    struct tl_shard w = tl_load(tl, arg->copies ? tl_my_shard(tl, arg->w) : tl_shard(tl, arg->w, 0));
    struct strip strips[STRIPS] = {0};
    for (unsigned i = 0; i < STRIPS; i++) {
        strips[i].x = tl_alloc(tl, KB_f16, arg->strip, w.shape[0]);
        strips[i].y = tl_alloc(tl, KB_f16, arg->strip, w.shape[1]);
    }
    uint64_t count = to.shape[0] / arg->strip;
    if (arg->ahead)
        load(tl, arg, strips, 0);
    for (uint64_t i = 0; i < count; i++) {
        struct strip *strip = &strips[i % STRIPS];
        if (!arg->ahead)
            load(tl, arg, strips, i);
        else if (i + 1 < count)
            load(tl, arg, strips, i + 1);               /* while this one is multiplied */
        tl_wait(tl, strip->loaded);
        tl_dot(tl, strip->y, strip->x, w);
        tl_relu(tl, strip->y, strip->y);
        strip->stored = tl_store_async(tl, tl_part(tl, to, 0, i * arg->strip, arg->strip), strip->y);
    }
}

KB_BENCH(dense, "y = relu(x w), a strip of rows at a time", KB_INT(rows, 65536, 128, 1 << 20, "rows of x and y"),
         KB_INT(strip, 16, 1, 256, "rows that are multiplied at a time; divides the rows of a PE"),
         KB_BOOL(copies, false, "each PE has a copy of w in its own HBM, else there is one in that of the first PE"),
         KB_BOOL(ahead, false, "the next strip is loaded while this one is multiplied"))
{
    uint64_t m = kb_int(rows), k = 512, n = 512;
    struct kb_pes all = kb_pes("*");
    kb_tensor x = kb_tensor_new("x", KB_f16, kb_2d(m, k), kb_rows(KB_HBM, all));
    struct kb_pes first = kb_pes("sip0.cube0.pe0");
    kb_tensor w = kb_tensor_new("w", KB_f16, kb_2d(k, n), kb_bool(copies) ? kb_copies(KB_HBM, all) : kb_on(KB_HBM, first));
    kb_tensor y = kb_tensor_new("y", KB_f16, kb_2d(m, n), kb_rows(KB_HBM, all));
    kb_fill_uniform(x, -1, 1);
    kb_fill_normal(w, 0, 0.1);

    kb_future launch = kb_launch(dense, all, &(struct dense_args){ x, w, y, kb_int(strip), kb_bool(copies), kb_bool(ahead) });
    kb_wait(launch);

    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = KB_f16, .macs = m * k * n, .reads = {x, w}, .writes = {y} }, &(struct kb_work){
        .hbm_read = 2 * (m * k + all.count * k * n), .hbm_written = 2 * m * n });
    kb_ref expected = kb_ref_gemm(x, w);
    kb_ref_relu(expected);
    kb_expect_close(y, expected);
}
