/* gemm.h: C = A B over a set of PEs: each PE has rows of A and C, and a panel of B in its TCM.
 *
 * Each PE also has a copy of B in its HBM, column after column, as the weights of a layer are kept. The columns of a
 * panel stay in the TCM while rows of A stream past them, tile by tile. If B is more than one panel, the next panel is
 * loaded while one is in use; where B is so deep that a panel would be narrow, A and B both stream tile by tile.
 *
 * The PEs of a cube load a panel together, as an all-gather around a ring: each PE loads some of the columns from HBM
 * and passes on, as messages, what it has loaded or received, because the HBM is what everything else needs. The first
 * rows of A, the head, are loaded at the same time and stay in the TCM until the panel is complete: the parts of both
 * that have arrived are multiplied at once. What a PE loads is several parts where it is much wider than the array.
 * Nothing overlaps the load of the first panel if there is no room for a head: then it is a narrow one.
 *
 *             step 0   1   2   3 ...      columns in the order of arrival: own ones, then the neighbour's, ...
 *     rows 0     0     1   2   3          the step in which this part of C is computed
 *     rows 1     1     1   2   3
 *     rows 2     2     2   2   3
 *     others: a stream of tiles once the panel is complete
 *
 * The last rows are cut into narrower tiles, so that little is left to write when the array is done. The array bounds
 * the kernel or, where k or n is small, the PE's slice of HBM. */
#ifndef GEMM_H
#define GEMM_H

#include "tiles.h"
#include <kb/host.h>
#include <kb/measure.h>

struct gemm_args {
    kb_tensor a, b, c;                                  /* m x k; n x k; m x n */
    kb_tensor scale, bias;                              /* rows of n, a copy per PE; NULL: none */
    const char *activation;                             /* the last op, of one operand; NULL: none */
    struct gemm_tile tile;
    uint64_t panel, head;                               /* columns of B, rows of A in the TCM; 0: none */
    uint64_t first;                                     /* columns of the first panel */
    uint32_t ring, pieces;                              /* PEs that load a panel together; parts of what each loads */
};

/* ---- in kernels */

static inline void gemm_epilogue(struct tl *tl, struct tl_composite *gemm, const char *op, kb_tensor row,
                                 struct tl_shard c)
{
    struct tl_epilogue *epilogue = &gemm->epilogue[gemm->epilogues++];
    *epilogue = (struct tl_epilogue){.op = op, .scope = TL_OUTPUT_TILE};
    if (row)
        epilogue->operand = tl_in(tl_part(tl, tl_my_shard(tl, row), 0, c.first[1], c.shape[1]));
}

/* One composite: rows of A times columns of B give a block of C. A and B may lie in the TCM (pinned). */
static inline tl_handle gemm_block(struct tl *tl, const struct gemm_args *arg, struct gemm_tile tile, struct tl_shard a,
                                   bool pin_a, struct tl_shard b, bool pin_b, struct tl_shard c)
{
    struct tl_composite gemm = {
        .op = TL_GEMM, .m = c.shape[0], .k = a.shape[1], .n = c.shape[1], .tile = {tile.m, tile.k, tile.n},
        .a = tl_in(a), .pin_a = pin_a, .b = tl_in(tl_transposed(tl, b, 0, 1)), .pin_b = pin_b, .c = tl_out(c),
    };
    if (arg->scale)
        gemm_epilogue(tl, &gemm, "dequant", arg->scale, c);
    if (arg->bias)
        gemm_epilogue(tl, &gemm, "bias", arg->bias, c);
    if (arg->activation)
        gemm_epilogue(tl, &gemm, arg->activation, NULL, c);
    return tl_composite(tl, &gemm);
}

/* A panel that is being loaded, and the rows that are multiplied with it. */
struct gemm_panel {
    struct tl_shard from, b;                            /* its columns in HBM and in the TCM */
    struct tl_shard a, head, c;                         /* all rows of A; the first ones in the TCM; their block of C */
};

/* The steps in which a panel arrives: the pieces of each PE in turn. */
static inline uint32_t gemm_steps(const struct gemm_args *arg)
{
    return arg->ring * arg->pieces;
}

/* The columns that arrive in step i, as a part of `all` columns, which are along `axis`; a shape of 0 if none do. */
static inline struct tl_shard gemm_step(struct tl *tl, const struct gemm_args *arg, struct tl_shard all, uint32_t axis,
                                        uint32_t i)
{
    uint64_t n = all.shape[axis], cols = kb_attrs.pe_gemm_cols;
    uint64_t step = kb_ceil_div(kb_ceil_div(n, gemm_steps(arg)), cols) * cols;
    uint64_t owner = (tl_pe(tl) + arg->ring - i / arg->pieces) % arg->ring;
    uint64_t first = (owner * arg->pieces + i % arg->pieces) * step;
    struct tl_shard none = all;
    none.shape[axis] = 0;
    return first < n ? tl_part(tl, all, axis, first, kb_min(step, n - first)) : none;
}

/* Starts to load the columns of step i if they are this PE's own. Returns NULL if they are not. */
static inline tl_handle gemm_own(struct tl *tl, const struct gemm_args *arg, const struct gemm_panel *p, uint32_t i)
{
    struct tl_shard columns = gemm_step(tl, arg, p->b, 0, i);
    return i < arg->pieces && columns.shape[0] ? tl_load_async(tl, columns, gemm_step(tl, arg, p->from, 0, i)) : NULL;
}

/* Waits for the columns of step i, which this PE has loaded (`own`) or its neighbour sends, and sends them on. */
static inline void gemm_columns(struct tl *tl, const struct gemm_args *arg, const struct gemm_panel *p, uint32_t i,
                                tl_handle own)
{
    uint32_t ring = arg->ring, at = tl_pe(tl) % ring, base = tl_pe(tl) - at, hop = i / arg->pieces;
    struct tl_shard columns = gemm_step(tl, arg, p->b, 0, i);
    uint64_t elements = columns.shape[0] * columns.shape[1], slot = tl_slot_bytes(tl) / kb_dtype_bytes(columns.dtype);
    if (elements == 0)
        return;
    if (own)
        tl_wait(tl, own);
    columns = tl_reshape(tl, columns, elements);
    for (uint64_t j = 0; ring > 1 && j < elements; j += slot) {
        struct tl_shard message = tl_part(tl, columns, 0, j, kb_min(slot, elements - j));
        if (hop > 0)
            tl_recv(tl, base + (at + ring - 1) % ring, message);
        if (hop + 1 < ring)
            tl_send_async(tl, base + (at + 1) % ring, message);
    }
}

/* Multiplies rows [first, end) of the head with the columns of step i. */
static inline void gemm_corner(struct tl *tl, const struct gemm_args *arg, const struct gemm_panel *p, uint64_t first,
                               uint64_t end, uint32_t i)
{
    struct tl_shard columns = gemm_step(tl, arg, p->b, 0, i), c = gemm_step(tl, arg, p->c, 1, i);
    uint64_t count = kb_min(end, p->head.shape[0]) - first;
    if (columns.shape[0])
        gemm_block(tl, arg, arg->tile, tl_part(tl, p->head, 0, first, count), true, columns, true,
                   tl_part(tl, c, 0, first, count));
}

/* Starts to load the rows of the head for step i. Returns NULL if the head has no more rows. */
static inline tl_handle gemm_head(struct tl *tl, const struct gemm_args *arg, const struct gemm_panel *p, uint32_t i)
{
    uint64_t first = i * arg->tile.m, rows = p->head.shape[0];
    if (first >= rows)
        return NULL;
    uint64_t count = kb_min(arg->tile.m, rows - first);
    return tl_load_async(tl, tl_part(tl, p->head, 0, first, count), tl_part(tl, p->a, 0, first, count));
}

/* The PE multiplies the head with a panel, step by step, and meanwhile loads its next columns and the next rows. */
static inline void gemm_gather(struct tl *tl, const struct gemm_args *arg, const struct gemm_panel *p)
{
    uint64_t rows = p->head.shape[0];
    tl_handle own = gemm_own(tl, arg, p, 0), next = gemm_head(tl, arg, p, 0);
    for (uint32_t i = 0; i < gemm_steps(arg); i++) {
        tl_handle ahead = gemm_own(tl, arg, p, i + 1);
        gemm_columns(tl, arg, p, i, own);
        own = ahead;
        if (next) {
            tl_wait(tl, next);
            next = gemm_head(tl, arg, p, i + 1);
            for (uint32_t j = 0; j < i; j++)
                gemm_corner(tl, arg, p, i * arg->tile.m, (i + 1) * arg->tile.m, j);
        }
        if (rows)
            gemm_corner(tl, arg, p, 0, (i + 1) * arg->tile.m, i);
    }
}

/* Multiplies the rows after the head with a panel. If this is the last panel, the last rows have narrower tiles. */
static inline tl_handle gemm_stream(struct tl *tl, const struct gemm_args *arg, const struct gemm_panel *p,
                                    bool last_panel)
{
    uint64_t rows = p->c.shape[0], first = p->head.shape[0];
    uint64_t last = last_panel ? rows - kb_min(arg->tile.m, rows - first) : first;
    struct gemm_tile narrow = arg->tile;
    if (last_panel)
        narrow.n = kb_ceil_div(narrow.n, 2);
    if (first < last)
        gemm_block(tl, arg, arg->tile, tl_part(tl, p->a, 0, first, last - first), false, p->b, true,
                   tl_part(tl, p->c, 0, first, last - first));
    return gemm_block(tl, arg, narrow, tl_part(tl, p->a, 0, last, rows - last), false, p->b, true,
                      tl_part(tl, p->c, 0, last, rows - last));
}

/* This PE's rows of C. Panels alternate between two buffers. */
static inline void gemm_on_pe(struct tl *tl, const struct gemm_args *arg)
{
    struct tl_shard a = tl_my_shard(tl, arg->a), b = tl_my_shard(tl, arg->b), c = tl_my_shard(tl, arg->c), kept[2];
    uint64_t rows = c.shape[0], n = c.shape[1];
    if (arg->panel == 0 && rows)
        gemm_block(tl, arg, arg->tile, a, false, b, false, c);
    if (arg->panel == 0)
        return;
    tl_handle done[2] = {0};
    struct tl_shard head = a;
    head.shape[0] = kb_min(kb_min(arg->head, rows / 2), gemm_steps(arg) * arg->tile.m);
    if (head.shape[0])
        head = tl_alloc(tl, a.dtype, head.shape[0], head.shape[1]);
    for (uint64_t first = 0, count = arg->first, i = 0; first < n; first += count, i++, head.shape[0] = 0) {
        count = kb_min(i ? arg->panel : count, n - first);
        if (i < 2)
            kept[i] = tl_alloc(tl, b.dtype, kb_min(arg->panel, n), b.shape[1]);
        if (done[i % 2])
            tl_wait(tl, done[i % 2]);
        struct gemm_panel panel = {.from = tl_part(tl, b, 0, first, count), .b = tl_part(tl, kept[i % 2], 0, 0, count),
                                   .a = a, .head = head, .c = tl_part(tl, c, 1, first, count)};
        gemm_gather(tl, arg, &panel);
        if (rows)
            done[i % 2] = gemm_stream(tl, arg, &panel, first + count == n);
    }
}

/* ---- in benches */

#define GEMM_PARAMS(m_, k_, n_)                                                                                        \
    KB_INT(m, m_, 1, 1 << 24, "rows of A and C"), KB_INT(k, k_, 1, 1 << 24, "columns of A, rows of B"),                \
    KB_INT(n, n_, 1, 1 << 24, "columns of B and C"), TILE_PARAMS

enum { GEMM_STEPS = 8 };                                /* the steps in which a panel arrives, at least, if it is wide */

/* The columns of the first of several panels: no more than keep the array busy while a PE loads the next panel. */
static inline uint64_t gemm_first_panel(const struct gemm_args *arg, const struct gemm_problem *gemm)
{
    uint64_t loaded = (gemm->m + kb_ceil_div(arg->panel, arg->ring)) * gemm->k * kb_dtype_bytes(gemm->in);
    uint64_t step = kb_attrs.pe_gemm_cols, cols = step, load_ps = kb_memory_ps(kb_main_memory(), loaded, 0);
    while (cols < arg->panel && kb_gemm_ps(gemm->in, gemm->m * gemm->k * cols) < load_ps)
        cols += step;
    return kb_min(cols, arg->panel);
}

/* Chooses what stays in the TCMs, and the tiles. */
static inline void gemm_plan(struct gemm_args *arg, struct gemm_problem gemm)
{
    uint64_t depth = gemm.k * kb_dtype_bytes(gemm.in), array = kb_attrs.pe_gemm_rows;
    uint64_t room = tcm_allocatable_bytes();
    arg->panel = tile_panel(&gemm, room);
    arg->ring = kb_pes("sip0.cube0.*").count;
    arg->pieces = (uint32_t)kb_ceil_div(GEMM_STEPS, arg->ring);
    arg->first = arg->panel;
    if (arg->panel == gemm.n)
        arg->head = (room - gemm.n * depth) / depth / array * array;
    else if (arg->panel)
        arg->first = gemm_first_panel(arg, &gemm);
    if (arg->panel) {
        needs_message(arg->ring > 1 ? kb_dtype_bytes(gemm.in) : 0);
        gemm.pin_b = true;
        gemm.n = arg->panel;
    }
    arg->tile = tile_params(&gemm, tile_choose(&gemm), gemm.m);
}

/* Makes the arguments of a gemm of random tensors from the parameters above. */
static inline struct gemm_args gemm_new(enum kb_dtype in, enum kb_dtype out, struct kb_pes pes)
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n);
    double most = in == KB_i8 ? 128 : 1;
    struct gemm_args arg = {
        .a = kb_tensor_new("a", in, kb_2d(m, k), kb_rows(kb_main_memory(), pes)),
        .b = kb_tensor_new("b", in, kb_2d(n, k), kb_copies(kb_main_memory(), pes)),
        .c = kb_tensor_new("c", out, kb_2d(m, n), kb_rows(kb_main_memory(), pes)),
    };
    if (kb_has_data()) {                                /* times do not depend on the values */
        kb_fill_uniform(arg.a, -most, most);
        kb_fill_uniform(arg.b, -most, most);
    }
    gemm_plan(&arg, (struct gemm_problem){kb_ceil_div(m, pes.count), k, n, in, out, false, false, 0});
    return arg;
}

/* Reports the roofline. The problem is the same wherever A, B and C lie: A and B are read once, C is written once. Of
 * this algorithm, each ring, or each PE without one, reads B. `math` is the number of elements of all epilogues. */
static inline void gemm_roofline(kb_future launch, const struct gemm_args *arg, struct kb_pes pes, enum kb_dtype in,
                                 enum kb_dtype out, uint64_t math)
{
    uint64_t m = kb_int(m), k = kb_int(k), n = kb_int(n), copies = arg->panel ? pes.count / arg->ring : pes.count;
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = in, .macs = m * k * n, .math_dtype = out, .math = math, .reads = {arg->a, arg->b},
        .writes = {arg->c} }, &(struct kb_work){
        .hbm_read = (m + n * copies) * k * kb_dtype_bytes(in), .hbm_written = m * n * kb_dtype_bytes(out) });
}

#endif
