/* host.c: benches that write, read, map, launch in parts and with options: they print what they see. */
#include <kb/host.h>
#include <kb/tl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VA = 1 << 24 };

/* ---- timed writes and reads */

struct copy_args { kb_tensor from, to; };

KB_KERNEL(copy, struct copy_args)
{
    struct tl_shard from = tl_my_shard(tl, arg->from);
    if (from.shape[0])
        tl_store(tl, tl_my_shard(tl, arg->to), tl_load(tl, from));
}

static void print(const char *what, const int16_t *values, uint32_t count)
{
    printf("%s", what);
    for (uint32_t i = 0; i < count; i++)
        printf(" %d", values[i]);
    printf("\n");
}

KB_BENCH(deploy, "writes, copies by a kernel, reads", KB_WORD(space, "hbm sram tcm", "where"),
         KB_WORD(split, "rows copies", "how"), KB_INT(rows, 5, 1, 100, "rows of 3"))
{
    struct kb_pes all = kb_pes("*");
    enum kb_space space = kb_word(space)[0] == 'h' ? KB_HBM : kb_word(space)[0] == 's' ? KB_SRAM : KB_TCM;
    struct kb_place place = kb_word(split)[0] == 'r' ? kb_rows(space, all) : kb_copies(space, all);
    uint32_t count = 3 * (uint32_t)kb_int(rows);
    kb_tensor from = kb_tensor_new("from", KB_i16, kb_2d(kb_int(rows), 3), place);
    kb_tensor to = kb_tensor_new("to", KB_i16, kb_2d(kb_int(rows), 3), place);
    int16_t data[300], out[300] = {0};
    for (uint32_t i = 0; i < count; i++)
        data[i] = (int16_t)(100 * i - 7);
    kb_write(from, data);
    memset(data, 0, sizeof data);                       /* taken at the call */
    kb_wait(kb_launch(copy, all, &(struct copy_args){from, to}));
    kb_read(to, out);
    print("to", out, count);
    kb_write(to, NULL);
    kb_read(to, NULL);
    kb_read(to, out);
    print("again", out, count);
}

/* ---- data order: what is written before, between and after computes */

struct square_args { kb_tensor a, c; };

KB_KERNEL(square, struct square_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a);
    tl_wait(tl, tl_composite(tl, &(struct tl_composite){.op = TL_GEMM, .m = 2, .k = 2, .n = 2, .tile = {2, 2, 2},
            .a = tl_in(a), .b = tl_in(a), .c = tl_out(tl_my_shard(tl, arg->c))}));
}

KB_BENCH(order, "writes and reads in the order of data", KB_BOOL(read, true, "looks at results in between"))
{
    struct kb_pes one = kb_pes("sip0.cube0.pe0");
    kb_tensor a = kb_tensor_new("a", KB_f32, kb_2d(2, 2), kb_on(KB_HBM, one));
    kb_tensor c = kb_tensor_new("c", KB_f32, kb_2d(2, 2), kb_on(KB_HBM, one));
    float out[4] = {0}, second[] = {1, 1, 1, 1}, over[] = {7, 8, 9, 10};
    kb_write(a, ((float[]){1, 2, 3, 4}));
    kb_wait(kb_launch(square, one, &(struct square_args){a, c}));
    kb_read(c, kb_bool(read) ? out : NULL);
    printf("first %g %g %g %g\n", out[0], out[1], out[2], out[3]);
    kb_write(a, second);
    kb_wait(kb_launch(square, one, &(struct square_args){a, c}));
    kb_write(a, over);
    kb_read(c, kb_bool(read) ? out : NULL);
    printf("second %g %g %g %g\n", out[0], out[1], out[2], out[3]);
    kb_wait(kb_launch(square, one, &(struct square_args){a, c}));
    kb_write(c, over);                                  /* over a pending result: known again */
    kb_read(c, out);
    printf("third %g %g %g %g\n", out[0], out[1], out[2], out[3]);
}

/* ---- virtual addresses */

struct mapped_args { kb_tensor x, y, z; };

/* Copies two pages, of two tensors, in one load and one store, then multiplies through the MMU. */
KB_KERNEL(mapped, struct mapped_args)
{
    struct tl_shard x = tl_my_shard(tl, arg->x), both = x, z = tl_my_shard(tl, arg->z);
    both.shape[0] *= 2;
    struct tl_shard buffer = tl_load(tl, tl_virtual(both, VA));
    tl_store(tl, tl_virtual(both, VA + (1 << 20)), buffer);
    tl_store(tl, tl_part(tl, tl_virtual(z, VA + (1 << 20)), 0, 1, 1), tl_part(tl, buffer, 0, 0, 1));
}

KB_BENCH(maps, "pages of two tensors, side by side", KB_BOOL(remap, false, "and the other way round"))
{
    struct kb_pes all = kb_pes("*");
    uint64_t rows = 128, columns = 256;                 /* a page of 64 KiB on each PE */
    kb_tensor x = kb_tensor_new("x", KB_i16, kb_2d(rows * all.count, columns), kb_rows(KB_HBM, all));
    kb_tensor hole = kb_tensor_new("hole", KB_i16, kb_2d(rows * all.count, columns), kb_rows(KB_HBM, all));
    kb_tensor y = kb_tensor_new("y", KB_i16, kb_2d(rows * all.count, columns), kb_rows(KB_SRAM, all));
    kb_tensor z = kb_tensor_new("z", KB_i16, kb_2d(2 * rows * all.count, columns), kb_rows(KB_HBM, all));
    kb_fill_uniform(x, 0, 100);
    kb_fill_uniform(y, 200, 300);
    kb_map(all, VA, kb_bool(remap) ? hole : x);
    if (kb_bool(remap))
        kb_map(all, VA, x);
    kb_map(all, VA + (64 << 10), y);
    kb_map(all, VA + (1 << 20), z);
    kb_wait(kb_launch(mapped, all, &(struct mapped_args){x, y, z}));
    uint64_t wrong = 0, page = rows * columns;
    for (uint32_t pe = 0; pe < all.count; pe++)
        for (uint64_t i = 0; i < page; i += 37) {
            uint64_t first = i / columns == 1 ? i - columns : i;    /* row 1 is row 0 once more */
            wrong += kb_peek(z, 2 * pe * page + i) != kb_peek(x, pe * page + first);
            wrong += kb_peek(z, (2 * pe + 1) * page + i) != kb_peek(y, pe * page + i);
        }
    double many[3 * 256];                               /* from inside a row on, over the end of a PE's page */
    kb_peek_many(x, page - 300, 3 * columns, many);
    for (uint64_t i = 0; i < 3 * columns; i++)
        wrong += many[i] != kb_peek(x, page - 300 + i);
    printf("wrong %" PRIu64 "\n", wrong);
}

struct multiplied_args { kb_tensor a, b, c; bool torn; };

/* The product twice negated, in pages that lie apart, with gaps between its rows: what stands in those stays. */
static void multiply_torn(struct tl *tl, struct tl_composite gemm, struct tl_shard a, struct tl_shard c)
{
    struct tl_shard torn = tl_virtual(c, 3 * VA), gap, known = tl_load(tl, tl_part(tl, a, 1, 0, 8));
    torn.stride[0] = c.shape[1] + 8;
    gap = tl_virtual(torn, torn.addr + c.shape[1] * 2);
    gap.shape[1] = 8;
    tl_store(tl, tl_virtual(a, VA), tl_load(tl, a));
    tl_store(tl, gap, known);
    gemm.c = tl_out(torn);
    tl_wait(tl, tl_composite(tl, &gemm));
    for (unsigned i = 0; i < 2; i++)
        tl_wait(tl, tl_composite(tl, &(struct tl_composite){.op = TL_MATH, .math = "neg", .m = gemm.m, .n = gemm.n,
                .tile = {32, 32}, .src = tl_in(torn), .dst = tl_out(torn)}));
    if (memcmp(tl_data(tl, known), tl_data(tl, tl_load(tl, gap)), gemm.m * 8 * 2))
        tl_fail(tl, 1, "bytes between rows have changed");
    tl_store(tl, c, tl_load(tl, torn));
}

KB_KERNEL(multiplied, struct multiplied_args)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c);
    struct tl_composite gemm = {.op = TL_GEMM, .m = a.shape[0], .k = a.shape[1], .n = c.shape[1],
            .tile = {32, 32, 32}, .a = tl_in(tl_virtual(a, VA)), .b = tl_in(tl_virtual(b, 2 * VA)),
            .c = tl_out(tl_virtual(c, 3 * VA))};
    if (arg->torn)
        multiply_torn(tl, gemm, a, c);
    else
        tl_wait(tl, tl_composite(tl, &gemm));
}

/* Two pages that do not follow one another: the second one lies before the first. */
static void map_apart(struct kb_pes pes, uint64_t va)
{
    kb_tensor second = kb_tensor_new("second", KB_u8, kb_1d((64 << 10) * pes.count), kb_rows(KB_HBM, pes));
    kb_tensor first = kb_tensor_new("first", KB_u8, kb_1d((64 << 10) * pes.count), kb_rows(KB_HBM, pes));
    kb_map(pes, va, first);
    kb_map(pes, va + (64 << 10), second);
}

KB_BENCH(multiply, "a product through the MMU; b lies with one PE, for all",
         KB_BOOL(torn, false, "a and c of pages apart, in the middle of a row"))
{
    struct kb_pes all = kb_pes("*"), one = kb_pes("sip0.cube0.pe0");
    uint64_t rows = kb_bool(torn) ? 500 : 48, n = kb_bool(torn) ? 72 : 64;
    kb_tensor a = kb_tensor_new("a", KB_f16, kb_2d(rows * all.count, 96), kb_rows(KB_HBM, all));
    kb_tensor b = kb_tensor_new("b", KB_f16, kb_2d(96, n), kb_on(KB_HBM, one));
    kb_tensor b_there = kb_tensor_new("b_there", KB_f16, kb_2d(96, n), kb_copies(KB_HBM, all));
    kb_tensor c = kb_tensor_new("c", KB_f16, kb_2d(rows * all.count, n), kb_rows(KB_HBM, all));
    kb_fill_uniform(a, -1, 1);
    kb_fill_uniform(b, -1, 1);
    kb_map(all, 2 * VA, b);
    if (kb_bool(torn)) {
        map_apart(all, VA);
        map_apart(all, 3 * VA);
    } else {
        kb_map(all, VA, a);
        kb_map(all, 3 * VA, c);
    }
    kb_wait(kb_launch(multiplied, all, &(struct multiplied_args){a, b_there, c, kb_bool(torn)}));
    kb_expect_close(c, kb_ref_gemm(a, b));
}

/* ---- launches */

struct began_args { uint64_t ps; };

KB_KERNEL(early, struct began_args)
{
    printf("early %u of %u at %" PRIu64 "\n", tl_pe(tl), tl_num_pes(tl), tl_now(tl));
    tl_delay(tl, arg->ps);
}

KB_KERNEL(late, struct began_args)
{
    printf("late %u of %u at %" PRIu64 "\n", tl_pe(tl), tl_num_pes(tl), tl_now(tl));
    tl_delay(tl, arg->ps);
}

KB_BENCH(parts, "two kernels under one barrier, in any order of PEs")
{
    uint32_t backwards[] = {3, 0};
    struct kb_pes ends = {backwards, 2}, middle = kb_pes("sip0.cube0.pe1");
    kb_future first = kb_launch_parts(kb_options(.timeout_ns = 100000, .on_failure = KB_FAIL_FAST),
                                      kb_part(early, ends, &(struct began_args){1000}),
                                      kb_part(late, middle, &(struct began_args){2000}));
    kb_future second = kb_launch(late, kb_pes("sip0.cube1.pe0"), &(struct began_args){5});
    kb_wait(second);
    kb_wait(first);
    kb_wait(first);
}

KB_BENCH(crash, "the host's own trap")
{
    volatile uintptr_t nowhere = 16;
    *(volatile int *)nowhere = 1;
}

/* ---- what cannot be */

KB_BENCH(misuse, "what cannot be", KB_WORD(what,
    "both twice none number va page_end unmap_none not_placed no_tensor pending_off timeout", "which"))
{
    const char *what = kb_word(what);
    uint32_t same[] = {1, 1}, far[] = {1, 99};
    struct kb_pes all = kb_pes("*"), one = kb_pes("sip0.cube0.pe0");
    struct began_args args = {1};
    kb_tensor a = kb_tensor_new("a", KB_f32, kb_2d(2, 2), kb_on(KB_HBM, one));
    kb_tensor r = kb_tensor_new("r", KB_f32, kb_2d(2, 2), kb_rows(KB_HBM, one));
    float out[4];
    if (!strcmp(what, "both")) kb_launch_parts(kb_options(0), kb_part(early, all, &args), kb_part(late, one, &args));
    if (!strcmp(what, "twice")) kb_launch(early, ((struct kb_pes){same, 2}), &args);
    if (!strcmp(what, "none")) kb_launch(early, ((struct kb_pes){same, 0}), &args);
    if (!strcmp(what, "number")) kb_launch(early, ((struct kb_pes){far, 2}), &args);
    if (!strcmp(what, "va")) kb_map(one, VA + 4096, a);
    if (!strcmp(what, "page_end")) kb_unmap(one, ~UINT64_C(0xffff), 1 << 20);
    if (!strcmp(what, "unmap_none")) kb_unmap(one, VA, 0);
    if (!strcmp(what, "not_placed")) kb_map(all, VA, r);
    if (!strcmp(what, "no_tensor")) kb_write(NULL, out);
    if (!strcmp(what, "timeout")) kb_launch_with(early, one, kb_options(.timeout_ns = UINT64_MAX), &args);
    kb_tensor c = kb_tensor_new("c", KB_f32, kb_2d(2, 2), kb_on(KB_HBM, one));
    kb_wait(kb_launch(square, one, &(struct square_args){a, c}));
    kb_read(c, NULL);
    kb_read(c, out);
}
