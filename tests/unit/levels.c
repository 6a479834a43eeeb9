/* levels.c: random operations on overlapping views: their levels against a level kept for every byte, and what the
 * data pass makes of them, with 1 to 4 threads, against one operation after another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapass/blas.h"
#include "machine/command.h"
#include "datapass/schedule.h"
#include "datapass/gemm.h"
#include "datapass/gemm_blocks.h"
#include "datapass/math.h"
#include "machine/tiling.h"
#include "reference/recheck.h"
#include "base/threads.h"
#include "names.h"
#include "sim/event.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1, .ops = 256};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

enum { MEMORIES = 3, BYTES = 1 << 15, OPS = 200, MOST_OPS = 2000 };

/* ---- random operations */

static struct view view_of(enum dtype dtype, uint64_t rows, uint64_t columns)
{
    uint64_t ld = columns + below(2) * below(40), size = dtype_bytes[dtype];
    uint64_t room = BYTES - ((rows - 1) * ld + columns) * size;
    return view_matrix((uint32_t)below(MEMORIES), dtype, below(room / size + 1) * size, rows, columns, ld);
}

static struct op a_copy(void)
{
    uint64_t rows = 1 + below(20), columns = 1 + below(60);
    return (struct op){.kind = OPKIND_memory, .copy = {view_of(DTYPE_u8, rows, columns),
                                                       view_of(DTYPE_u8, rows, columns)}};
}

static struct op a_math(void)
{
    static const uint16_t ops[] = {OP_add, OP_mul, OP_min, OP_max};
    enum dtype dtype = below(2) ? DTYPE_i8 : DTYPE_i32;
    uint64_t rows = 1 + below(20), columns = 1 + below(60);
    struct math math = {.op = ops[below(4)], .operands = 2, .axis = NO_AXIS, .to = view_of(dtype, rows, columns)};
    math.operand[0] = below(2) ? math.to : view_of(dtype, rows, columns);
    math.operand[1] = view_of(dtype, rows, columns);
    return (struct op){.kind = OPKIND_math, .math = math};
}

static struct op a_gemm(void)
{
    uint64_t m = 1 + below(20), k = 1 + below(20), n = 1 + below(20);
    struct gemm gemm = {.tile_m = m, .tile_k = k, .tile_n = n, .a = view_of(DTYPE_i8, m, k),
                        .b = view_of(DTYPE_i8, k, n), .c = view_of(below(2) ? DTYPE_i8 : DTYPE_i32, m, n)};
    return (struct op){.kind = OPKIND_gemm, .gemm = gemm};
}

static struct op ops[MOST_OPS];
static uint64_t count;

static void add(struct op op)
{
    op.id = count;
    op.name = "random";
    op.pe = (int64_t)below(4);
    ops[count++] = op;
}

static void random_program(void)
{
    for (count = 0; count < OPS;)
        add(below(3) == 0 ? a_copy() : below(2) ? a_math() : a_gemm());
}

/* ---- levels */

static uint16_t written[MEMORIES][BYTES], accessed[MEMORIES][BYTES];

struct asking {
    const struct view *view;
    bool writes, raises;
    uint16_t level;
};

static void each_byte(uint64_t offset, uint64_t bytes, void *arg)
{
    struct asking *asking = arg;
    uint32_t memory = asking->view->memory;
    for (uint64_t i = offset; i < offset + bytes; i++) {
        uint16_t before = asking->writes ? accessed[memory][i] : written[memory][i];
        if (!asking->raises)
            asking->level = before >= asking->level ? before + 1 : asking->level;
        else if (asking->writes)
            written[memory][i] = accessed[memory][i] = asking->level;
        else if (accessed[memory][i] < asking->level)
            accessed[memory][i] = asking->level;
    }
}

static void each_view(const struct view *view, bool writes, void *arg)
{
    struct asking *asking = arg;
    asking->view = view;
    asking->writes = writes;
    view_each_run(view, each_byte, asking);
}

static bool levels_are_exact(void)
{
    memset(written, 0, sizeof written);
    memset(accessed, 0, sizeof accessed);
    schedule_begin();
    for (uint64_t i = 0; i < count; i++) {
        struct asking asking = {.level = 1};
        op_each_view(&ops[i], each_view, &asking);
        asking.raises = true;
        op_each_view(&ops[i], each_view, &asking);
        if (schedule_level(&ops[i]) != asking.level)
            return false;
    }
    return true;
}

/* An operation that names another comes after it, and so does what is behind a fill. */
static void named(void)
{
    uint32_t after[] = {6, 7, 99};
    struct op op = {.kind = OPKIND_memory, .copy = {view_bytes(0, 0, 4), view_bytes(1, 0, 4)}};
    struct op other = {.id = 1, .serial = 3, .command = 7, .kind = OPKIND_memory,
                       .copy = {view_bytes(1, 0, 4), view_bytes(2, 0, 4)}};
    struct op third = {.id = 2, .serial = 3, .command = 8, .kind = OPKIND_memory, .after = after, .afters = 3,
                       .copy = {view_bytes(0, 64, 4), view_bytes(1, 64, 4)}};
    struct op fill = {.id = 3, .kind = OPKIND_memory, .pe = OP_OF_HOST};
    struct op fourth = third, elsewhere = third;
    fourth.id = 4;
    fourth.afters = 0;
    elsewhere.serial = 4;                               /* another kernel's command 7 is not meant */
    schedule_begin();
    bool good = schedule_level(&op) == 1 && schedule_level(&other) == 2 && schedule_level(&third) == 3;
    expect(good && schedule_level(&fill) == 4 && schedule_level(&fourth) == 5,
           "an operation is after those that tl_after names, and after fills");
    schedule_begin();
    expect(schedule_level(&op) == 1 && schedule_level(&other) == 2 && schedule_level(&elsewhere) == 1,
           "tl_after names operations of its own kernel");
}

/* ---- the data pass */

static uint8_t *bytes_of(uint32_t memory)
{
    store_reach(memory, BYTES);
    return store_at(memory, 0);
}

static void seed(void)
{
    srand(7);
    for (uint32_t i = 0; i < MEMORIES; i++)
        for (uint64_t j = 0; j < BYTES; j++)
            bytes_of(i)[j] = (uint8_t)rand();
}

static void one_by_one(void *scratch)
{
    for (uint64_t i = 0; i < count; i++)
        if (ops[i].kind == OPKIND_gemm)
            gemm_run(&ops[i].gemm, scratch);
        else if (ops[i].kind == OPKIND_math)
            math_run(&ops[i].math);
        else
            view_copy(&ops[i].copy.to, &ops[i].copy.from);
}

static uint8_t wanted[MEMORIES][BYTES];

static void keep(void)
{
    for (uint32_t i = 0; i < MEMORIES; i++)
        memcpy(wanted[i], bytes_of(i), BYTES);
}

static bool same(void)
{
    for (uint32_t i = 0; i < MEMORIES; i++)
        if (memcmp(wanted[i], bytes_of(i), BYTES))
            return false;
    return true;
}

/* With so many threads; checks of every operation wake all of them, however little there is to do. */
static void data_pass(unsigned threads)
{
    thread_count = threads;
    exec_check = &recheck;
    for (uint64_t i = 0; i < count; i++) {
        now_ps++;
        oplog_add(&ops[i]);
    }
    exec_data_pass();
    datapass_reset();
}

static void random_programs(void *scratch)
{
    bool levels = true, equal = true;
    for (unsigned i = 0; i < 8; i++) {
        srand(i);
        random_program();
        levels &= levels_are_exact();
        seed();
        one_by_one(scratch);
        keep();
        for (unsigned threads = 1; threads <= 4; threads++) {
            seed();
            data_pass(threads);
            equal &= same();
        }
    }
    expect(levels, "levels follow from the bytes that operations share");
    expect(equal, "1 to 4 threads give what one operation after another gives");
}

/* ---- grids */

/* C of every combination of rows of A with columns of B, but for some; whole numbers, whose sums are exact in any
 * order, or not. */
static void tiles(bool whole)
{
    enum { M = 7, K = 500, N = 9, ROWS = 30, COLUMNS = 40 };
    for (uint32_t memory = 0; memory < 2; memory++) {
        store_reach(memory, ROWS * M * K * 4 + COLUMNS * N * K * 4);
        float *at = store_at(memory, 0);
        for (uint64_t i = 0; i < ROWS * M * K || i < COLUMNS * N * K; i++)
            at[i] = whole ? (float)below(200) - 100 : (float)below(2001) / 1000 - 1;
    }
    count = 0;
    for (uint64_t step = 0; step < COLUMNS; step++)
        for (uint64_t row = 0; row < ROWS; row++) {
            uint64_t column = (row + step) % COLUMNS;
            struct gemm g = {.tile_m = M, .tile_k = K, .tile_n = N};
            g.a = view_matrix(0, DTYPE_f32, row * M * K * 4, M, K, K);
            g.b = view_matrix(1, DTYPE_f32, column * N * K * 4, K, N, N);
            g.c = view_matrix(2, DTYPE_f32, (row * M * COLUMNS + column) * N * 4, M, N, COLUMNS * N);
            if (below(10))
                add((struct op){.kind = OPKIND_gemm, .gemm = g});
        }
}

static void *sums(uint64_t bytes)
{
    store_reach(2, bytes);
    return store_at(2, 0);
}

static void grids(void *scratch)
{
    enum { SIZE = 30 * 7 * 40 * 9 * 4 };
    static uint8_t want[SIZE];
    bool exact = true, equal = true;
    tiles(true);
    memset(sums(SIZE), 0, SIZE);
    one_by_one(scratch);
    memcpy(want, sums(SIZE), SIZE);
    for (unsigned threads = 1; threads <= 4; threads++) {
        memset(sums(SIZE), 0, SIZE);
        data_pass(threads);
        exact &= !memcmp(want, sums(SIZE), SIZE);
    }
    tiles(false);
    for (unsigned threads = 1; threads <= 4; threads++) {
        memset(sums(SIZE), 0, SIZE);
        data_pass(threads);
        if (threads == 1)
            memcpy(want, sums(SIZE), SIZE);
        equal &= !memcmp(want, sums(SIZE), SIZE);
    }
    expect(exact, "gemms that share operands give what each gives by itself");
    expect(equal, "gemms that share operands have the same bits with 1 to 4 threads");
}

/* A gemm of several blocks and slices, by itself. */
static void blocks(void)
{
    enum { M = 1500, K = 900, N = 2300 };
    static float want[M * N];
    bool equal = true;
    store_reach(0, M * K * 4);
    store_reach(1, K * N * 4);
    float *a = store_at(0, 0), *b = store_at(1, 0);
    for (uint64_t i = 0; i < M * K || i < K * N; i++) {
        a[i < M * K ? i : 0] = (float)below(2001) / 1000 - 1;
        b[i < K * N ? i : 0] = (float)below(2001) / 1000 - 1;
    }
    struct gemm g = {.tile_m = M, .tile_k = K, .tile_n = N, .a = view_matrix(0, DTYPE_f32, 0, M, K, K),
                     .b = view_matrix(1, DTYPE_f32, 0, K, N, N), .c = view_matrix(2, DTYPE_f32, 0, M, N, N)};
    count = 0;
    add((struct op){.kind = OPKIND_gemm, .gemm = g});
    for (unsigned threads = 1; threads <= 3; threads++) {
        data_pass(threads);
        if (threads == 1)
            memcpy(want, sums(sizeof want), sizeof want);
        equal &= !memcmp(want, sums(sizeof want), sizeof want);
    }
    expect(equal, "a large gemm has the same bits with 1 to 3 threads");
}

int main(void)
{
    oplog_on = true;
    void *scratch = aligned_alloc(64, gemm_scratch_bytes);
    blas_open();
    named();
    random_programs(scratch);
    grids(scratch);
    blocks();
    free(scratch);
    return tests_end();
}
