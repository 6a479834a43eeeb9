/* gemm_split_k.c: C = A B with few rows and a deep k: the PEs of a cube share columns of C, and each takes a part of k
 * (split-K).
 *
 * All of B is read once, from the HBM slices beside the PEs. That bounds the kernel: with few rows there is little else
 * to do. Each PE leaves its partial sums in its TCM, in f32. A reduce-scatter within the cube then adds them up: each
 * PE receives the others' partial sums of its part of C, one message at a time, and stores their sum. */
#include "tiles.h"
#include <kb/host.h>
#include <kb/measure.h>

struct split_k_args {
    kb_tensor a, b, c;                                  /* m x k, a copy per PE; n x k; m x n, columns over cubes */
    struct gemm_tile tile;
    uint64_t message;                                   /* elements of a message of partial sums */
    uint32_t split;                                     /* PEs that share columns of C: those of a cube */
};

/* Elements [base, base + most) of part i of a buffer that is split evenly over the cube; a shape of 0 if there are
 * none. */
static struct tl_shard part_of_pe(struct tl *tl, const struct split_k_args *arg, struct tl_shard all, uint32_t i,
                                  uint64_t base, uint64_t most)
{
    uint64_t first = all.shape[0] * i / arg->split + base, end = all.shape[0] * (i + 1) / arg->split;
    struct tl_shard none = {0};
    return first < end ? tl_part(tl, all, 0, first, kb_min(most, end - first)) : none;
}

/* Reduce-scatter: adds up all PEs' partial sums of this PE's part of the elements, and stores it. */
static void add_partial_sums(struct tl *tl, const struct split_k_args *arg, struct tl_shard sums, struct tl_shard c)
{
    uint32_t me = tl_pe(tl) % arg->split, base = tl_pe(tl) - me;
    uint64_t longest = kb_ceil_div(sums.shape[0], arg->split), most = kb_min(arg->message, longest);
    struct tl_shard got = tl_alloc(tl, KB_f32, most), rounded = tl_alloc(tl, c.dtype, most);
    for (uint64_t at = 0; at < longest; at += most) {
        struct tl_shard own = part_of_pe(tl, arg, sums, me, at, most), to = part_of_pe(tl, arg, c, me, at, most);
        for (uint32_t i = 1; i < arg->split; i++) {
            struct tl_shard part = part_of_pe(tl, arg, sums, (me + i) % arg->split, at, most);
            if (part.shape[0])
                tl_send(tl, base + (me + i) % arg->split, part);
        }
        for (uint32_t i = 1; i < arg->split && own.shape[0]; i++) {
            struct tl_shard part = tl_part(tl, got, 0, 0, own.shape[0]);
            tl_recv(tl, base + (me + arg->split - i) % arg->split, part);
            tl_add(tl, own, own, part);
        }
        if (own.shape[0]) {
            tl_cast(tl, tl_part(tl, rounded, 0, 0, own.shape[0]), own);
            tl_store(tl, to, tl_part(tl, rounded, 0, 0, own.shape[0]));
        }
    }
    tl_free(tl, got);
    tl_free(tl, rounded);
}

KB_KERNEL(gemm_split_k, struct split_k_args)
{
    struct tl_shard b = tl_my_shard(tl, arg->b), c = tl_shard(tl, arg->c, tl_pe(tl) / arg->split);
    uint64_t m = c.shape[0], n = c.shape[1];
    if (n == 0)                                         /* there are more cubes than columns */
        return;
    uint64_t rows = kb_min(m, tl_room_bytes(tl) / 2 / (n * 4));
    struct tl_shard sums = tl_alloc(tl, KB_f32, rows, n);
    for (uint64_t first = 0; first < m; first += rows) {
        uint64_t count = kb_min(rows, m - first);
        struct tl_shard part = tl_part(tl, sums, 0, 0, count), to = tl_part(tl, c, 0, first, count);
        if (b.shape[1] == 0)                            /* there are more PEs than rows of B */
            tl_sub(tl, part, part, part);
        else {
            struct tl_shard a = tl_part(tl, tl_my_shard(tl, arg->a), 1, b.first[1], b.shape[1]);
            tl_wait(tl, tl_composite(tl, &(struct tl_composite){
                .op = TL_GEMM, .m = count, .k = b.shape[1], .n = n, .tile = {arg->tile.m, arg->tile.k, arg->tile.n},
                .a = tl_in(tl_part(tl, a, 0, first, count)), .b = tl_in(tl_transposed(tl, b, 0, 1)),
                .c = tl_out(part) }));
        }
        add_partial_sums(tl, arg, tl_reshape(tl, part, count * n), tl_reshape(tl, to, count * n));
    }
}

/* The partial sums that the PEs of each cube send to each other, of `bytes` bytes a PE. */
static kb_traffic sums_traffic(struct kb_pes pes, uint32_t split, uint64_t bytes)
{
    kb_traffic traffic = kb_traffic_new();
    for (uint32_t from = 0; from < pes.count; from++)
        for (uint32_t i = 1; i < split; i++)
            kb_traffic_add(traffic, pes.pe[from], pes.pe[from / split * split + (from + i) % split], bytes / split);
    return traffic;
}

KB_BENCH(gemm_split_k, "C = A B, columns of C over the cubes, k over the PEs of a cube",
         KB_INT(m, 16, 1, 1 << 24, "rows of A and C"), KB_INT(k, 16384, 1, 1 << 24, "columns of A, rows of B"),
         KB_INT(n, 8192, 1, 1 << 24, "columns of B and C"),
         KB_WORD(dtype, "f16 bf16 f32 f8e4m3 f8e5m2", "dtype of A, B and C; with an f8, C is bf16"),
         TILE_PARAMS)
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    enum kb_dtype dtype = kb_dtype(kb_word(dtype)), out = product_dtype(dtype);
    struct kb_pes pes = kb_pes("*"), firsts = kb_pes("*.pe0");
    uint32_t split = pes.count / firsts.count;
    kb_tensor a = kb_tensor_new("a", dtype, kb_2d(m, k), kb_copies(kb_main_memory(), pes));
    kb_tensor b = kb_tensor_new("b", dtype, kb_2d(n, k), kb_blocks(kb_main_memory(), pes, firsts.count, split));
    kb_tensor c = kb_tensor_new("c", out, kb_2d(m, n), kb_cols(kb_main_memory(), firsts));
    if (kb_has_data()) {                                /* times do not depend on the values */
        kb_fill_uniform(a, -1, 1);
        kb_fill_uniform(b, -1, 1);
    }

    uint64_t deep = kb_ceil_div(k, split), wide = kb_ceil_div(n, firsts.count);
    needs_tcm(2 * 4 * wide, "a row of partial sums, in half of a TCM", "make n smaller");
    struct gemm_problem part = {m, deep, wide, dtype, KB_f32, false, false, 0};
    struct gemm_tile tile = tile_choose(&part);
    tile.k = kb_min(tile.k, kb_ceil_div(deep, 4));      /* so that the array ends soon after the last read */
    uint64_t message = kb_max(kb_min(kb_attrs.pe_ipcq_slot_bytes, tcm_allocatable_bytes() / 8) / 4, 1);    /* half holds sums */
    needs_message(split > 1 ? 4 : 0);
    tile = tile_params(&part, tile, m);
    kb_future launch = kb_launch(gemm_split_k, pes, &(struct split_k_args){a, b, c, tile, message, split});
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = dtype, .macs = m * k * n, .reads = {a, b}, .writes = {c} }, &(struct kb_work){
        .math_f32 = m * n * (split - 1), .hbm_read = (m * firsts.count + n) * k * kb_dtype_bytes(dtype),
        .hbm_written = m * n * kb_dtype_bytes(out), .traffic = sums_traffic(pes, split, m * n / firsts.count * 4) });
    kb_ref expected = kb_ref_gemm(b, kb_ref_transpose(a));
    kb_ref_unrounded(expected);                         /* sums are rounded once, to C */
    kb_expect_close(c, kb_ref_transpose(expected));
}
