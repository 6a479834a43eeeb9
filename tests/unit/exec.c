/* exec.c: the op log and the data pass: gemms against plain loops, data order, intervals, what is pending. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapass/blas.h"
#include "machine/command.h"
#include "base/dtype.h"
#include "datapass/gemm.h"
#include "datapass/gemm_blocks.h"
#include "machine/tiling.h"
#include "reference/recheck.h"
#include "names.h"
#include "sim/event.h"
#include "store/contents.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 30, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

static void *scratch;

/* ---- gemm */

static uint8_t *element(const struct view *m, uint64_t i, uint64_t j)
{
    store_reach(m->memory, UINT64_C(8) << 20);
    return (uint8_t *)store_at(m->memory, m->offset) + (i * m->stride[0] + j) * dtype_bytes[m->dtype];
}

static double at(const struct view *m, uint64_t i, uint64_t j)
{
    return dtype_value(m->dtype, element(m, i, j));
}

static struct view matrix(uint32_t memory, enum dtype dtype, uint64_t rows, uint64_t columns)
{
    struct view m = view_matrix(memory, dtype, 64 * below(4), rows, columns, columns + below(5));
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++) {
            double value = dtype_is_float(dtype) ? (double)below(2001) / 1000 - 1 : (double)below(256) - 128;
            dtype_from_f64(dtype, &value, element(&m, i, j), 1);
        }
    return m;
}

/* What the epilogues of a scope make of the sum of element (i, j), by their definition. */
static double epilogue(const struct gemm *g, enum scope scope, uint64_t i, uint64_t j, double sum)
{
    bool last = i / g->tile_m == (g->c.shape[0] - 1) / g->tile_m && j / g->tile_n == (g->c.shape[1] - 1) / g->tile_n;
    for (uint32_t e = 0; e < g->epilogues; e++)
        if (g->epilogue[e].scope == scope && (scope != SCOPE_ONCE || last))
            sum = g->epilogue[e].op == OP_relu ? fmax(sum, 0) : sum + at(&g->epilogue[e].operand, 0, j);
    return sum;
}

static double expected(const struct gemm *g, uint64_t i, uint64_t j)
{
    double sum = 0;
    for (uint64_t k = 0; k < g->a.shape[1]; k++) {
        sum += at(&g->a, i, k) * at(&g->b, k, j);
        if ((k + 1) % g->tile_k == 0 || k + 1 == g->a.shape[1])
            sum = epilogue(g, SCOPE_K_TILE, i, j, sum);
    }
    return epilogue(g, SCOPE_ONCE, i, j, epilogue(g, SCOPE_OUTPUT_TILE, i, j, sum));
}

static bool right(const struct gemm *g)
{
    static const double by_dtype[DTYPES] = {[DTYPE_f32] = 1e-5, [DTYPE_f16] = 1e-3, [DTYPE_bf16] = 1e-2,
                                            [DTYPE_f8e4m3] = 0.0625, [DTYPE_f8e5m2] = 0.125};
    double tolerance = by_dtype[g->c.dtype];
    for (uint64_t i = 0; i < g->c.shape[0]; i++)
        for (uint64_t j = 0; j < g->c.shape[1]; j++) {
            double want = expected(g, i, j), got = at(&g->c, i, j);
            if (g->c.dtype == DTYPE_i8)
                want = fmin(127, fmax(-128, want));
            if (g->c.dtype == DTYPE_f8e4m3)
                want = fmin(448, fmax(-448, want));
            if (fabs(got - want) > tolerance * (sqrt((double)g->a.shape[1]) + fabs(want))) {
                printf("# dtypes %d and %d [%lu, %lu] of %lu x %lu x %lu: got %g, want %g\n", (int)g->a.dtype,
                       (int)g->c.dtype, i, j, g->c.shape[0], g->a.shape[1], g->c.shape[1], got, want);
                return false;
            }
        }
    for (uint64_t i = 0; i + 1 < g->c.shape[0] && g->c.stride[0] > g->c.shape[1]; i++)
        if (at(&g->c, i, g->c.shape[1]) != 96)           /* between the rows nothing is written */
            return false;
    return true;
}

/* The check of every operation finds nothing, and then what is made wrong. */
static bool rechecked(const struct gemm *g)
{
    struct op op = {.kind = OPKIND_gemm, .gemm = *g};
    if (recheck.gemm(&op).op)
        return false;
    uint64_t row = below(g->c.shape[0]), column = below(g->c.shape[1]);
    double wrong = at(&g->c, row, column) > 0 ? -96 : 96;
    dtype_from_f64(g->c.dtype, &wrong, element(&g->c, row, column), 1);
    struct difference found = recheck.gemm(&op);
    return found.op == &op && found.index[0] == row && found.index[1] == column && found.got == wrong;
}

static bool gemms(enum dtype in, enum dtype out, uint64_t m, uint64_t k, uint64_t n, int times)
{
    bool good = true;
    for (int i = 0; i < times && good; i++) {
        enum dtype row = dtype_is_float(in) ? DTYPE_f32 : DTYPE_i32;
        struct gemm_epilogue epilogues[3];
        struct gemm g = {.tile_m = 1 + below(m), .tile_k = 1 + below(k), .tile_n = 1 + below(n), .epilogue = epilogues,
                         .epilogues = (uint32_t)below(4)};
        uint64_t rows = 1 + below(m), depth = 1 + below(k), columns = 1 + below(n);
        g.a = matrix(0, in, rows, depth);
        g.b = matrix(1, in, depth, columns);
        struct view bias = matrix(3, row, 1, columns);
        bias.shape[0] = rows;
        bias.stride[0] = 0;
        for (uint32_t e = 0; e < g.epilogues; e++) {
            bool adds = below(2);
            epilogues[e] = (struct gemm_epilogue){.op = adds ? OP_bias : OP_relu, .scope = (uint8_t)below(SCOPES),
                                                  .has_operand = adds, .operand = bias};
        }
        g.c = view_matrix(2, out, 64, rows, columns, columns + 1);
        for (uint64_t j = 0; j < rows; j++)
            memset(element(&g.c, j, columns), 0, 4);
        double guard = 96;
        for (uint64_t j = 0; j < rows; j++)
            dtype_from_f64(out, &guard, element(&g.c, j, columns), 1);
        gemm_run(&g, scratch);
        good = right(&g) && rechecked(&g);
    }
    return good;
}

static void all_gemms(void)
{
    expect(gemms(DTYPE_f32, DTYPE_f32, 40, 60, 50, 60), "f32 gemms with epilogues of every scope are right");
    expect(gemms(DTYPE_f16, DTYPE_f16, 40, 60, 50, 60), "f16 gemms are right");
    expect(gemms(DTYPE_bf16, DTYPE_bf16, 40, 60, 50, 60), "bf16 gemms are right");
    expect(gemms(DTYPE_f8e4m3, DTYPE_f8e4m3, 40, 60, 50, 60), "f8e4m3 gemms are right");
    expect(gemms(DTYPE_f8e5m2, DTYPE_f32, 40, 60, 50, 60), "f8e5m2 gemms to f32 are right: they accumulate in f32");
    expect(gemms(DTYPE_f16, DTYPE_f32, 40, 60, 50, 20), "f16 gemms with results in f32 are right");
    expect(gemms(DTYPE_i8, DTYPE_i32, 40, 60, 50, 60), "i8 gemms are exact");
    expect(gemms(DTYPE_i8, DTYPE_i8, 20, 10, 20, 20), "i8 gemms saturate in i8");
    expect(gemms(DTYPE_i8, DTYPE_i32, 3, 5000, 3, 6), "i8 gemms are exact for more depth than f32 can count");
    expect(gemms(DTYPE_f32, DTYPE_f32, 1100, 40, 1100, 1), "a gemm of several blocks is right");
}

/* The largest sums that i8 gives, and beyond 2^31. */
static void wraps(void)
{
    enum { K = 140000 };
    struct gemm g = {.tile_m = 1, .tile_k = K, .tile_n = 1};
    g.a = view_matrix(0, DTYPE_i8, 0, 1, K, K);
    g.b = view_matrix(1, DTYPE_i8, 0, K, 1, 1);
    g.c = view_matrix(2, DTYPE_i32, 0, 1, 1, 1);
    memset(element(&g.a, 0, 0), 0x80, K);
    memset(element(&g.b, 0, 0), 0x80, K);
    gemm_run(&g, scratch);
    int32_t want = (int32_t)(uint32_t)(UINT64_C(16384) * K);
    expect(at(&g.c, 0, 0) == want, "i32 sums wrap");
}

/* ---- the log */

static struct op copy(int64_t pe, uint32_t from, uint64_t from_offset, uint32_t to, uint64_t to_offset)
{
    return (struct op){.kind = OPKIND_memory, .name = "copy", .pe = pe,
                       .copy = {view_bytes(from, from_offset, 4), view_bytes(to, to_offset, 4)}};
}

static float *word(uint32_t memory, uint64_t offset)
{
    store_reach(memory, offset + 4);
    return store_at(memory, offset);
}

/* What a kernel would read. */
static float seen(uint32_t memory, uint64_t offset)
{
    float value;
    contents_read(memory, offset, 4, &value);
    return value;
}

/* The PE of an operation of the interval. */
static int64_t pe_of(uint64_t i)
{
    struct oplog_reader reader;
    int64_t pe = OP_OF_HOST;
    oplog_read(&reader);
    for (struct op *op; (op = oplog_next(&reader)); i--, free(op))
        pe = i == 0 ? op->pe : pe;
    return pe;
}

/* Memory 0 holds 1 at 0 and 2 at 4. In one instant PE 2 moves 4 to 8, then PE 1 moves 0 to 4: data order is the other
 * way round, in pass 1 and in the data pass. */
static void data_order(void)
{
    oplog_restart();
    *word(0, 0) = 1;
    *word(0, 4) = 2;
    struct op later = copy(2, 0, 4, 0, 8), earlier = copy(1, 0, 0, 0, 4), read = copy(0, 0, 8, 3, 1 << 20);
    now_ps = 100;
    oplog_add(&later);
    oplog_add(&earlier);
    now_ps = 101;
    oplog_add(&read);
    oplog_settle(true, OP_OF_HOST);
    expect(seen(3, 1 << 20) == 1 && *word(3, 1 << 20) == 0, "pass 1 copies in data order, and leaves the store alone");
    expect(oplog_count() == 3 && pe_of(0) == 1 && pe_of(1) == 2, "calls of one instant are in the order of PEs");
    exec_data_pass();
    expect(*word(3, 1 << 20) == 1 && seen(3, 1 << 20) == 1 && oplog_count() == 0,
           "the data pass computes the bytes of the store and empties the log");
}

static void results_are_pending(void)
{
    struct pending first;
    struct op gemm = {
        .kind = OPKIND_gemm, .name = "gemm_f32", .pe = 1, .gemm = { .tile_m = 1, .tile_k = 1, .tile_n = 1 }
    };
    gemm.gemm.a = view_matrix(0, DTYPE_f32, 0, 1, 1, 1);
    gemm.gemm.b = view_matrix(0, DTYPE_f32, 4, 1, 1, 1);
    gemm.gemm.c = view_matrix(1, DTYPE_f32, 16, 1, 1, 1);
    *word(0, 0) = 3;
    *word(0, 4) = 5;
    struct op on = copy(1, 1, 16, 2, 0), over = copy(1, 0, 4, 1, 16);
    now_ps = 200;
    oplog_add(&gemm);
    oplog_add(&on);
    oplog_add(&over);
    oplog_settle(true, OP_OF_HOST);
    expect(contents_pending(2, 0, 4) && !contents_pending(1, 0, 64),
           "a copy of a result is pending, bytes written over it are not");
    struct oplog_reader reader;
    oplog_read(&reader);
    struct op *made = oplog_next(&reader);
    expect(contents_first_pending(2, 3, 1, &first) && first.maker->call.name == gemm.name && first.at == 3
           && made->kind == OPKIND_gemm && first.operation == made->id,
           "the operation that makes pending bytes is found through a copy");
    for (; made; made = oplog_next(&reader))
        free(made);
    exec_data_pass();
    expect(*word(2, 0) == 15 && *word(1, 16) == 5 && !contents_pending(2, 0, 4),
           "after the data pass a result is known");
    now_ps = 300;
    *word(0, 0) = 7;
    oplog_add(&gemm);
    exec_data_pass();
    expect(*word(1, 16) == 35, "the next interval begins with the bytes that the one before left");
}

int main(void)
{
    oplog_on = true;
    blas_open();
    scratch = aligned_alloc(64, gemm_scratch_bytes);
    all_gemms();
    wraps();
    data_order();
    results_are_pending();
    free(scratch);
    return tests_end();
}
