/* mistakes.c: kernels and benches that do what cannot be, each in its own way; `what` says which. */
#include <kb/host.h>
#include <kb/tl.h>

#include <math.h>
#include <string.h>

static const char *what;

static bool is(const char *name)
{
    return !strcmp(what, name);
}

struct mistake_args { kb_tensor a, c, far, big; };

static struct tl_composite gemm(struct tl_shard a, struct tl_shard c)
{
    return (struct tl_composite){.op = TL_GEMM, .m = 8, .k = 8, .n = 8, .tile = {8, 8, 8}, .a = tl_in(a), .b = tl_in(a),
                                 .c = tl_out(c)};
}

/* One composite with one thing wrong. */
static void composites(struct tl *tl, struct tl_shard a, struct tl_shard c)
{
    struct tl_composite ask = gemm(a, c);
    struct tl_epilogue bias = {"bias", TL_OUTPUT_TILE, tl_in(tl_part(tl, c, 0, 0, 1))}, odd = {.op = "sum", .scope = TL_OUTPUT_TILE};
    if (is("zero")) ask.k = 0;
    if (is("huge")) ask.m = (uint64_t)1 << 50;
    if (is("tile")) ask.tile[1] = 0;
    if (is("op")) ask.op = (enum tl_op)7;
    if (is("ld")) ask.a.ld = 7;
    if (is("transposed")) ask.c.transposed = true;
    if (is("dtypes")) ask.b.dtype = KB_f32;
    if (is("u8")) ask.a.dtype = ask.b.dtype = KB_u8;
    if (is("no_dtype")) ask.c.dtype = 200;
    if (is("unfit")) ask.a.unfit = true;
    if (is("pinned")) ask.pin_a = true;
    if (is("overlap")) ask.c = ask.a;
    if (is("odd")) ask.a.addr += 1;
    if (is("nowhere")) ask.b.addr = (uint64_t)77 << 48;
    if (is("past")) ask.c.addr |= (uint64_t)0xfffffff00;
    if (is("epilogue")) ask.epilogue[ask.epilogues++] = odd;
    if (is("bias")) bias.operand.dtype = KB_i8, ask.epilogue[ask.epilogues++] = bias;
    if (is("epilogues")) ask.epilogues = 9;
    if (is("tile_size")) {
        ask.a.dtype = ask.b.dtype = KB_i8, ask.c.dtype = KB_i32, ask.c.addr += 32 << 20;
        ask.a.ld = ask.b.ld = ask.c.ld = ask.a.rows = ask.b.rows = ask.c.rows = 0;
        ask.tile[0] = ask.tile[1] = ask.tile[2] = ask.m = ask.k = ask.n = 1200;
    }
    if (is("tile_last")) {                              /* the buffers of the first tile fit, those of the last do not */
        ask.a.dtype = ask.b.dtype = KB_i8, ask.c.dtype = KB_i32, ask.c.addr += 32 << 20;
        ask.a.ld = ask.b.ld = ask.c.ld = ask.a.rows = ask.b.rows = ask.c.rows = 0;
        ask.tile[0] = ask.tile[2] = ask.m = ask.n = 1200, ask.k = 16;
    }
    static struct tl_axes axes = {.row = {{4, 16}, {2, 8}}, .col = {{2, 4}, {4, 1}}};
    struct tl_axes apart = {.row = {{8, 8}}, .col = {{2, 4}, {4, 1}}}, wide = apart, narrow = apart, huge = apart;
    struct tl_axes halves = {.row = {{2, UINT64_C(1) << 62}, {2, UINT64_C(1) << 62}, {2, 0}}, .col = {{8, 0}}};
    struct tl_axes many = {.row = {{1 << 17, 0}, {2, 3}, {2, 1}}, .col = {{1 << 17, 0}, {2, 3}, {2, 1}}};
    wide.row[0].stride = 9, narrow.col[1].size = 3, huge.row[0].stride = huge.col[0].stride = UINT64_MAX / 3;
    if (strstr(what, "axes_") == what) {
        struct tl_shard own = tl_load(tl, a);
        if (is("axes_freed")) tl_free(tl, own);
        apart.row[0] = (struct tl_axis){2, 8}, apart.row[1] = (struct tl_axis){4, 16};
        ask.a = tl_in_axes(own, &apart), ask.pin_a = true;
        if (is("axes_unpinned")) ask.pin_a = false;
        if (is("axes_size")) ask.a.axes = &narrow;
        if (is("axes_reach")) ask.a.axes = &wide;
        if (is("axes_huge")) ask.a.axes = &huge;
        if (is("axes_wrapped"))                         /* 2^64 + 2 bytes */
            ask.a = tl_in_axes((struct tl_shard){own.addr, KB_f16, 1, {2}, {UINT64_C(1) << 63}}, &halves);
        if (is("axes_many")) {                          /* 2^39 bytes */
            ask.a = tl_in_axes(own, &many);
            ask.a.rows = ask.b.rows = ask.c.rows = ask.b.ld = ask.c.ld = 0;
            ask.m = ask.k = UINT64_C(1) << 19;
        }
        if (is("axes_of_c")) ask.c = tl_in_axes(c, &axes);
        if (is("axes_elsewhere")) ask.a = tl_in_axes(a, &axes);
        if (is("axes_overlap")) ask.c = tl_out(own);
        if (is("axes_empty")) ask.a = tl_in_axes((struct tl_shard){.addr = own.addr, .dtype = KB_f16}, &apart);
        if (is("axes_odd")) ask.a.addr++;
        if (is("axes_transposed")) ask.a.transposed = true;
        if (is("axes_ld")) ask.a.ld = 64;
    }
    tl_composite(tl, &ask);
}

KB_KERNEL(mistake, struct mistake_args)
{
    if (is("no_shard")) tl_shard(tl, arg->a, 1);
    if (is("not_mine")) tl_my_shard(tl, arg->far);
    if (is("no_tensor")) tl_my_shard(tl, NULL);
    if (is("no_tensor_shards")) tl_shards(NULL);
    if (is("no_axes")) tl_alloc(tl, KB_f16);
    if (is("no_handle")) tl_wait(tl, NULL);
    struct tl_shard a = tl_my_shard(tl, arg->a), c = tl_my_shard(tl, arg->c);
    if (is("part")) tl_part(tl, a, 0, 5, 4);
    if (is("axis")) tl_part(tl, a, 2, 0, 1);
    if (is("full")) tl_load(tl, tl_my_shard(tl, arg->big));
    if (is("empty")) tl_load(tl, tl_part(tl, a, 0, 0, 0));
    if (is("strided")) tl_load(tl, tl_part(tl, a, 1, 0, 4));
    if (is("data_of_hbm")) tl_data(tl, a);
    if (is("store_of_hbm")) tl_store(tl, c, a);
    struct tl_shard buffer = tl_load(tl, a);
    if (is("store_shape")) tl_store(tl, tl_part(tl, c, 0, 0, 4), buffer);
    if (is("reserved")) a.addr = buffer.addr & ~(uint64_t)0xfffffff, tl_store(tl, a, buffer);
    if (is("pending") || is("pending_copy")) {
        struct tl_composite ask = gemm(a, c);
        tl_wait(tl, tl_composite(tl, &ask));
        struct tl_shard result = tl_load(tl, c);
        tl_store(tl, tl_shard(tl, arg->far, 0), result);
        tl_data(tl, is("pending") ? result : tl_load(tl, tl_shard(tl, arg->far, 0)));
    }
    composites(tl, a, c);
}

KB_BENCH(mistake, "what cannot be",
         KB_WORD(what, "none zero huge tile op ld transposed dtypes u8 no_dtype unfit pinned overlap odd nowhere "
                       "past epilogue bias epilogues tile_size tile_last axes_good axes_freed axes_unpinned axes_size axes_reach "
                       "axes_huge axes_wrapped axes_many axes_of_c axes_elsewhere axes_overlap axes_empty axes_odd axes_transposed axes_ld no_shard not_mine no_tensor "
                       "no_tensor_shards no_axes no_handle part axis "
                       "full empty strided data_of_hbm store_of_hbm store_shape reserved pending pending_copy "
                       "rank_order on_failure busy axes no_elements too_many whole grid pes room peek peek_many array dtype "
                       "ref_shape "
                       "uniform nan inf normal_nan normal_inf uniform_inf too_large far_apart no_bench_parameter peek_off", "which"))
{
    what = kb_word(what);
    struct kb_pes one = kb_pes("sip0.cube0.pe0"), all = kb_pes("*");
    struct kb_place here = kb_on(KB_HBM, one), far = kb_on(KB_HBM, kb_pes("sip0.cube1.pe1"));
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(8, 8), here), c = kb_tensor_new("c", KB_f16, kb_2d(8, 8), here);
    kb_tensor g = kb_tensor_new("far", KB_f16, kb_2d(8, 8), far);
    kb_tensor big = kb_tensor_new("big", KB_i8, kb_1d(3 << 20), here);
    kb_fill(a, 1);
    if (is("axes")) kb_tensor_new("t", KB_f16, ((struct kb_dims){5, {1, 1, 1, 1}}), here);
    if (is("no_elements")) kb_tensor_new("t", KB_f16, kb_2d(4, 0), here);
    if (is("too_many")) kb_tensor_new("t", KB_f16, kb_2d((uint64_t)1 << 40, (uint64_t)1 << 40), here);
    if (is("whole")) kb_tensor_new("t", KB_f16, kb_1d(4), kb_on(KB_HBM, all));
    if (is("rank_order")) {
        uint32_t backwards[] = {1, 0};
        kb_tensor_new("t", KB_f16, kb_1d(4), kb_rows(KB_HBM, ((struct kb_pes){backwards, 2})));
    }
    if (is("grid")) kb_tensor_new("t", KB_f16, kb_2d(4, 4), kb_blocks(KB_HBM, all, 3, 3));
    if (is("room")) kb_tensor_new("t", KB_i8, kb_1d((uint64_t)64 << 20), here);
    if (is("pes")) kb_pes("sip1.*");
    if (is("dtype")) kb_dtype("f64");
    if (is("peek")) kb_peek(a, 64);
    if (is("peek_many")) kb_peek_many(a, 60, 5, (double[5]){0});
    if (is("array")) (void)kb_array(double, 1ull << 61);
    if (is("uniform")) kb_fill_uniform(a, 2, 1);
    if (is("nan")) kb_fill(a, NAN);
    if (is("inf")) kb_fill(a, -INFINITY);
    if (is("normal_nan")) kb_fill_normal(a, NAN, 1);
    if (is("normal_inf")) kb_fill_normal(a, 0, INFINITY);
    if (is("uniform_inf")) kb_fill_uniform(a, -INFINITY, 0);
    if (is("too_large")) kb_fill_uniform(a, 0, 65520);
    if (is("far_apart")) kb_fill_uniform(big, -1e308, 1e308);
    if (is("no_bench_parameter")) (void)kb_int(nothing);
    if (is("on_failure"))
        kb_launch_with(mistake, one, kb_options(.on_failure = 9), &(struct mistake_args){a, c, g, big});
    kb_future first = kb_launch(mistake, one, &(struct mistake_args){a, c, g, big});
    if (is("busy")) kb_launch(mistake, all, &(struct mistake_args){a, c, g, big});
    kb_wait(first);
    if (is("peek_off")) kb_peek(c, 0);
    kb_expect_close(is("ref_shape") ? big : c, kb_ref_gemm(a, a));
}
