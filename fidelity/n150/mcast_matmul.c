/* mcast_matmul.c: C = A B as tt-metal's matmul with 2-D multicast does it, on 8 x 8 cores.
 *
 * A core has a block of C. For each step of k, a block of A goes along each row of cores, from the core that has it in its
 * L1 or, if A lies in DRAM, from the first core of the row, which reads it; a block of B goes down each column, from the
 * first core of the column, which reads it from DRAM. Blocks have two buffers each: one is on its way while the other one is
 * multiplied. DRAM is interleaved over its banks.
 *
 * The rule for block sizes, in tiles of 32: a step is as deep as an eighth of k, at most 16 tiles, or a half or a quarter of that; a
 * core's C is one block, or 2 x 2, 4 x 4, ... of them. Of these, the largest block (deep x high x wide) whose buffers fit into L1 is
 * taken, of equal ones the deepest. tt-metal's benchmark has the same blocks in 44 of its 45 cases. A subblock of C is
 * the first of tt-metal's list that divides the block; if C lies in L1, it is one tile high.
 * Sizes are rounded up to whole tiles of every core. Times alone: no data are computed. */
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <string.h>

enum { GRID = 8, BANKS = 12, TILE = 32, L1_BYTES = 1310 << 10, BANK_BYTES = 16 << 20, DEEPEST = 16, BF16_BYTES = 2 };

struct matmul_args {
    kb_tensor dram;
    uint64_t tile_bytes, m, k, n;                       /* tiles, of a core's C and of k */
    uint64_t block_m, block_k, block_n, sub_m, sub_n;   /* tiles */
    uint8_t dtype;
    bool in_l1;                                         /* A and C */
};

/* ---- DRAM */

struct dram_access {
    tl_handle handle[BANKS];
};

/* Reads or writes as many bytes as the buffer has, a share in each bank. */
static void dram_begin(struct tl *tl, const struct matmul_args *arg, struct tl_shard buffer, bool write, struct dram_access *access)
{
    uint64_t bytes = buffer.shape[0], share = kb_ceil_div(kb_ceil_div(bytes, arg->tile_bytes), BANKS) * arg->tile_bytes;
    memset(access, 0, sizeof *access);
    for (uint64_t i = 0, at = 0; at < bytes; i++, at += share) {
        struct tl_shard bank = tl_shard(tl, arg->dram, (uint32_t)((i + tl_pe(tl)) % BANKS));
        uint64_t count = kb_min(share, bytes - at);
        struct tl_shard far = tl_part(tl, bank, 0, 0, count), near = tl_part(tl, buffer, 0, at, count);
        access->handle[i] = write ? tl_store_async(tl, far, near) : tl_load_async(tl, near, far);
    }
}

static void dram_end(struct tl *tl, struct dram_access *access)
{
    for (unsigned i = 0; i < BANKS; i++)
        if (access->handle[i])
            tl_wait(tl, access->handle[i]);
    memset(access, 0, sizeof *access);
}

/* ---- blocks of A and of B on their way */

struct input {
    struct tl_shard buffer[2];
    struct dram_access read[2];
    tl_handle received[2];
};

/* The core that sends the block of a step to a core's row (A) or column (B). */
static uint32_t sender_of(const struct matmul_args *arg, uint32_t core, bool is_b, uint64_t step)
{
    uint32_t row = core / GRID, col = core % GRID;
    if (is_b)
        return col;
    return row * GRID + (arg->in_l1 ? (uint32_t)(step * arg->block_k * GRID / arg->k) : 0);
}

/* Begins a step: the sender reads from DRAM, the others receive. */
static void input_begin(struct tl *tl, const struct matmul_args *arg, struct input *input, bool is_b, uint64_t step, unsigned half)
{
    uint32_t sender = sender_of(arg, tl_pe(tl), is_b, step);
    if (sender != tl_pe(tl))
        input->received[half] = tl_recv_async(tl, sender, input->buffer[half]);
    else if (is_b || !arg->in_l1)
        dram_begin(tl, arg, input->buffer[half], false, &input->read[half]);
}

/* Sends the block, if this core has it. */
static void input_send(struct tl *tl, const struct matmul_args *arg, struct input *input, bool is_b, uint64_t step, unsigned half)
{
    uint32_t peers[GRID], count = 0, me = tl_pe(tl);
    if (sender_of(arg, me, is_b, step) != me)
        return;
    for (uint32_t i = 0; i < GRID; i++) {
        uint32_t peer = is_b ? i * GRID + me % GRID : me / GRID * GRID + i;
        if (peer != me)
            peers[count++] = peer;
    }
    dram_end(tl, &input->read[half]);
    tl_multicast_async(tl, peers, count, input->buffer[half]);
}

static void input_end(struct tl *tl, struct input *input, unsigned half)
{
    if (input->received[half])
        tl_wait(tl, input->received[half]);
    input->received[half] = NULL;
}

static struct tl_shard matrix(struct tl *tl, struct tl_shard buffer, uint8_t dtype, uint64_t rows, uint64_t cols)
{
    return tl_view(tl, (struct tl_shard){.addr = buffer.addr, .dtype = dtype, .rank = 2, .shape = {rows * TILE, cols * TILE}});
}

KB_KERNEL(mcast_matmul, struct matmul_args)
{
    tl_data_op_default(tl, false);
    struct input input[2];
    uint64_t bytes[] = {arg->block_m * arg->block_k * arg->tile_bytes, arg->block_k * arg->block_n * arg->tile_bytes};
    uint64_t room[] = {arg->block_m * arg->block_k, arg->block_k * arg->block_n};
    uint64_t element = kb_dtype_bytes(arg->dtype) * TILE * TILE;      /* bytes of a tile as it is stored here */
    memset(input, 0, sizeof input);
    for (int j = 0; j < 2; j++)
        for (int half = 0; half < 2; half++)
            input[j].buffer[half] = tl_part(tl, tl_alloc(tl, KB_i8, room[j] * kb_max(element, arg->tile_bytes)), 0, 0, bytes[j]);
    struct tl_shard c = tl_alloc(tl, KB_i8, arg->block_m * arg->block_n * kb_max(element, arg->tile_bytes));
    struct tl_shard out = tl_part(tl, c, 0, 0, arg->block_m * arg->block_n * arg->tile_bytes);
    uint64_t steps = arg->k / arg->block_k, blocks = arg->m / arg->block_m * (arg->n / arg->block_n), all = steps * blocks;
    struct dram_access written = {0};
    tl_handle done[2] = {0};
    for (uint64_t i = 0; i <= all; i++) {
        unsigned half = i % 2;
        if (i < all) {                                  /* begin a step, when the array has left its buffers */
            if (done[half])
                tl_wait(tl, done[half]);
            for (int j = 0; j < 2; j++)
                input_begin(tl, arg, &input[j], j, i % steps, half);
        }
        if (i > 0) {                                    /* multiply the step before */
            uint64_t step = (i - 1) % steps;
            half = 1 - half;
            for (int j = 0; j < 2; j++)
                input_end(tl, &input[j], half);
            if (step == 0)
                dram_end(tl, &written);
            done[half] = tl_composite(tl, &(struct tl_composite){
                .op = TL_GEMM, .m = arg->block_m * TILE, .k = arg->block_k * TILE, .n = arg->block_n * TILE,
                .tile = {arg->sub_m * TILE, arg->block_k * TILE, arg->sub_n * TILE},
                .a = tl_in(matrix(tl, input[0].buffer[half], arg->dtype, arg->block_m, arg->block_k)), .pin_a = true,
                .b = tl_in(matrix(tl, input[1].buffer[half], arg->dtype, arg->block_k, arg->block_n)), .pin_b = true,
                .c = tl_out(matrix(tl, c, arg->dtype, arg->block_m, arg->block_n)) });
            if (step == steps - 1 && !arg->in_l1) {
                tl_wait(tl, done[half]);
                dram_begin(tl, arg, out, true, &written);
            }
        }
        if (i < all)
            for (int j = 0; j < 2; j++)
                input_send(tl, arg, &input[j], j, i % steps, i % 2);
    }
    dram_end(tl, &written);
}

/* ---- block sizes */

/* Whether the buffers of a core fit: shards of A and of two Cs, this one and that of the run before; a block of C, with its partial
 * sums in bf16; two blocks of A and of B each. */
static bool fits(const struct matmul_args *arg)
{
    uint64_t block = arg->block_m * arg->block_n, element = TILE * TILE * BF16_BYTES;
    uint64_t outputs = arg->in_l1 ? arg->m * arg->k / GRID + 2 * arg->m * arg->n : block;
    uint64_t tiles = outputs + 2 * arg->block_k * (arg->block_m + arg->block_n);
    return tiles * arg->tile_bytes + (arg->tile_bytes == element ? 0 : block * element) <= L1_BYTES;
}

static void choose_blocks(struct matmul_args *arg)
{
    uint64_t deepest = kb_max(arg->k / GRID, 1), largest = 0;
    struct matmul_args best = *arg;
    while (deepest > DEEPEST && deepest % 2 == 0)
        deepest /= 2;
    for (uint64_t parts = 1; arg->m % parts == 0 && arg->n % parts == 0; parts *= 2) {
        arg->block_m = arg->m / parts;
        arg->block_n = arg->n / parts;
        for (uint64_t cut = 1; cut <= 4 && deepest % cut == 0; cut *= 2) {
            arg->block_k = deepest / cut;
            uint64_t size = arg->block_k * arg->block_m * arg->block_n;
            if (fits(arg) && (size > largest || (size == largest && arg->block_k > best.block_k))) {
                largest = size;
                best = *arg;
            }
        }
    }
    *arg = best;
}

static void choose_subblock(struct matmul_args *arg)
{
    static const uint8_t list[][2] = {{4, 2}, {2, 4}, {8, 1}, {1, 8}, {7, 1}, {1, 7}, {3, 2}, {2, 3}, {6, 1}, {1, 6}, {5, 1}, {1, 5},
                                      {2, 2}, {4, 1}, {1, 4}, {3, 1}, {1, 3}, {2, 1}, {1, 2}, {1, 1}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        arg->sub_m = list[i][0];
        arg->sub_n = list[i][1];
        if (arg->block_m % arg->sub_m == 0 && arg->block_n % arg->sub_n == 0 && (arg->sub_m == 1 || !arg->in_l1))
            return;
    }
}

KB_BENCH(mcast_matmul, "C = A B by multicast along rows and columns of cores, as tt-metal does it",
         KB_INT(m, 1024, 1, 1 << 20, "rows of A and C"), KB_INT(k, 1024, 1, 1 << 20, "columns of A, rows of B"),
         KB_INT(n, 1024, 1, 1 << 20, "columns of B and C"),
         KB_WORD(dtype, "BFLOAT16 BFLOAT8_B BFLOAT4_B", "format of A, B and C"),
         KB_WORD(fidelity, "HiFi2 LoFi HiFi4", "passes of the matrix unit: --set k_per_cycle has them"),
         KB_WORD(in0, "L1 DRAM", "where A and C lie"))
{
    static uint32_t firsts[BANKS];
    static const uint32_t tile_bytes[] = {2048, 1088, 576};
    static const enum kb_dtype dtypes[] = {KB_bf16, KB_f8e4m3, KB_i8};
    unsigned format = !strcmp(kb_word(dtype), "BFLOAT16") ? 0 : !strcmp(kb_word(dtype), "BFLOAT8_B") ? 1 : 2;
    struct kb_pes pes = kb_pes("*");
    for (uint32_t bank = 0; bank < BANKS; bank++)       /* the first PE whose own slice it is */
        firsts[bank] = (bank * pes.count + BANKS - 1) / BANKS;
    struct matmul_args arg = {
        .dram = kb_tensor_new("dram", KB_i8, kb_1d((uint64_t)BANKS * BANK_BYTES), kb_rows(KB_HBM, ((struct kb_pes){firsts, BANKS}))),
        .tile_bytes = tile_bytes[format], .dtype = dtypes[format], .in_l1 = !strcmp(kb_word(in0), "L1"),
        .m = kb_ceil_div(kb_int(m), GRID * TILE), .k = kb_ceil_div(kb_int(k), GRID * TILE) * GRID, .n = kb_ceil_div(kb_int(n), GRID * TILE),
    };
    choose_blocks(&arg);
    choose_subblock(&arg);
    kb_note("blocks of %u x %u x %u tiles, subblocks of %u x %u", (unsigned)arg.block_m, (unsigned)arg.block_k, (unsigned)arg.block_n,
            (unsigned)arg.sub_m, (unsigned)arg.sub_n);
    kb_future launch = kb_launch(mcast_matmul, pes, &arg);
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = arg.dtype, .macs = kb_int(m) * kb_int(k) * kb_int(n),
        .read_bytes = (arg.k * arg.n + (arg.in_l1 ? 0 : arg.k * arg.m)) * GRID * arg.tile_bytes }, NULL);
}
