/* gemmini_map.c: a layer on Gemmini by a given mapping: C x R x S inputs to K outputs at N x P x Q places.
 *
 * A mapping such as "L3[WIO] C4 K48 - L2[WI] N1 K16X - L1[O] C48 P16 C16X - L0[W] P8" has, level by level, the loops that
 * run there; X marks those that the array runs at once. Below L3 they make up a tile. The rule, for all mappings, is that
 * of Gemmini's tiled_matmul: an output tile stays in the accumulator until it is complete, so the loops of L3 over inputs
 * (C, R, S) run innermost. For each step the tiles of I and W are loaded, whatever the step before has loaded, into one
 * half of the scratchpad, while the array works on the other half. Then the output tile is stored.
 *
 * The array multiplies 16 channels of one place of the filter at a time; if the inputs have fewer channels, as many places of a
 * filter's row as fit. New weights take as long as 16 places of outputs. The DMA asks for the channels of each place by
 * themselves if they are fewer than 16. Times alone: no data are computed. */
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <stdlib.h>
#include <string.h>

enum dim { P, Q, K, N, C, R, S, DIMS, INPUTS = C, LOOPS = 16, ARRAY = 16 };

static const char letters[] = "PQKNCRS";

struct loop {
    enum dim dim;
    uint64_t count;
};

struct gemmini_args {
    kb_tensor w, i, o;                                  /* R x S x C x K; N x height x width x C; N x P x Q x K */
    uint64_t va[3];
    struct loop loop[LOOPS];                            /* of L3, the outermost first */
    uint32_t loops;
    uint64_t tile[DIMS], stride[2];                     /* stride: of P and of Q */
    const char *wrong;                                  /* with the mapping, or NULL */
};

/* Reads a mapping. Returns false if the text is not one. */
static bool mapping_read(const char *text, struct gemmini_args *arg)
{
    unsigned level = 4;
    for (unsigned d = 0; d < DIMS; d++)
        arg->tile[d] = 1;
    for (char *end; *text; text = end) {
        end = strchr(text, ' ');
        end = end ? end + 1 : strchr(text, 0);
        if (*text == ' ' || *text == '-')
            continue;
        if (*text == 'L') {
            level = (unsigned)(text[1] - '0');
            if (level > 3)
                return false;
            continue;
        }
        const char *letter = strchr(letters, *text);
        uint64_t count = strtoull(text + 1, NULL, 10);
        if (level > 3 || !letter || !count || count > UINT32_MAX || arg->loops == LOOPS)
            return false;
        if (level == 3)
            arg->loop[arg->loops++] = (struct loop){(enum dim)(letter - letters), count};
        else
            arg->tile[letter - letters] *= count;
    }
    return level <= 3;
}

/* Whether tiles and loops make up all of a layer. */
static bool mapping_covers(const struct gemmini_args *arg, const uint64_t layer[DIMS])
{
    uint64_t covered[DIMS];
    memcpy(covered, arg->tile, sizeof covered);
    for (uint32_t l = 0; l < arg->loops; l++)
        covered[arg->loop[l].dim] *= arg->loop[l].count;
    for (unsigned d = 0; d < DIMS; d++)
        if (covered[d] < layer[d])
            return false;
    return true;
}

/* Moves the loops over inputs behind the others. */
static void order_loops(struct gemmini_args *arg)
{
    struct loop sorted[LOOPS];
    uint32_t count = 0;
    for (int inputs = 0; inputs < 2; inputs++)
        for (uint32_t l = 0; l < arg->loops; l++)
            if ((arg->loop[l].dim >= INPUTS) == inputs)
                sorted[count++] = arg->loop[l];
    memcpy(arg->loop, sorted, count * sizeof *sorted);
}

/* The first index of the tile of each dimension at a step of the loops. */
static void first_of_step(const struct gemmini_args *arg, uint64_t step, uint64_t first[DIMS])
{
    uint64_t inner[DIMS];
    memset(first, 0, DIMS * sizeof *first);
    memcpy(inner, arg->tile, sizeof inner);
    for (uint32_t l = arg->loops; l-- > 0; step /= arg->loop[l].count) {
        enum dim d = arg->loop[l].dim;
        first[d] += step % arg->loop[l].count * inner[d];
        inner[d] *= arg->loop[l].count;
    }
}

/* The part of a shard that begins at first[] and has up to count[] elements of each axis. */
static struct tl_shard box(struct tl *tl, struct tl_shard all, const uint64_t first[4], const uint64_t count[4])
{
    for (unsigned axis = 0; axis < 4; axis++)
        all = tl_part(tl, all, axis, first[axis], kb_min(count[axis], all.shape[axis] - first[axis]));
    return all;
}

/* The parts of W, I and O that a step uses. */
struct parts {
    struct tl_shard w, i, o;
};

static struct tl_shard at(struct tl *tl, kb_tensor tensor, uint64_t va)
{
    struct tl_shard shard = tl_my_shard(tl, tensor);
    return tl_virtual(shard, va);
}

static struct parts parts_of(struct tl *tl, const struct gemmini_args *arg, const uint64_t f[DIMS])
{
    const uint64_t *t = arg->tile;
    struct tl_shard w = at(tl, arg->w, arg->va[0]), i = at(tl, arg->i, arg->va[1]), o = at(tl, arg->o, arg->va[2]);
    return (struct parts){
        .w = box(tl, w, (uint64_t[]){f[R], f[S], f[C], f[K]}, (uint64_t[]){t[R], t[S], t[C], t[K]}),
        .i = box(tl, i, (uint64_t[]){f[N], f[P] * arg->stride[0] + f[R], f[Q] * arg->stride[1] + f[S], f[C]},
                 (uint64_t[]){t[N], (t[P] - 1) * arg->stride[0] + t[R], (t[Q] - 1) * arg->stride[1] + t[S], t[C]}),
        .o = box(tl, o, (uint64_t[]){f[N], f[P], f[Q], f[K]}, (uint64_t[]){t[N], t[P], t[Q], t[K]}),
    };
}

/* Moves a part to or from a buffer, in pieces of the rows that a command may have. */
static void move(struct tl *tl, struct tl_shard part, struct tl_shard buffer, bool store, tl_handle *last)
{
    enum { ROWS_MOST = 4096 };
    uint64_t rows = part.shape[1] * part.shape[2], most = kb_max(ROWS_MOST / kb_max(rows, 1), 1);
    for (uint64_t first = 0; first < part.shape[0]; first += most) {
        struct tl_shard piece = tl_part(tl, part, 0, first, kb_min(most, part.shape[0] - first));
        struct tl_shard near = tl_view(tl, (struct tl_shard){.addr = buffer.addr, .dtype = KB_i8, .rank = 4, .shape = {
            piece.shape[0], piece.shape[1], piece.shape[2], piece.shape[3]}});
        *last = store ? tl_store_async(tl, piece, near) : tl_load_async(tl, near, piece);
    }
}

static struct tl_shard matrix(struct tl *tl, uint64_t addr, uint64_t rows, uint64_t cols)
{
    return tl_view(tl, (struct tl_shard){.addr = addr, .dtype = KB_i8, .rank = 2, .shape = {rows, cols}});
}

/* Whether a step is the last one of its output tile. */
static bool completes_output(const struct gemmini_args *arg, struct tl_shard w, const uint64_t f[DIMS])
{
    return f[R] + arg->tile[R] >= w.shape[0] && f[S] + arg->tile[S] >= w.shape[1] && f[C] + arg->tile[C] >= w.shape[2];
}

static void wait_for(struct tl *tl, tl_handle *handle)
{
    if (*handle)
        tl_wait(tl, *handle);
    *handle = NULL;
}

/* The rows of weights of a tile, in whole arrays. */
static uint64_t array_depth(const uint64_t tile[DIMS])
{
    uint64_t at_once = tile[C] < ARRAY ? kb_min(ARRAY / tile[C], tile[S]) : 1;
    return kb_ceil_div(tile[C], ARRAY) * ARRAY * tile[R] * kb_ceil_div(tile[S], at_once);
}

KB_KERNEL(gemmini_map, struct gemmini_args)
{
    if (arg->wrong)
        tl_fail(tl, 1, "%s", arg->wrong);
    tl_data_op_default(tl, false);
    const uint64_t *t = arg->tile;
    uint64_t steps = 1, places = kb_max(t[N] * t[P] * t[Q], ARRAY), deep = array_depth(t), first[DIMS];
    uint64_t inputs = t[N] * ((t[P] - 1) * arg->stride[0] + t[R]) * ((t[Q] - 1) * arg->stride[1] + t[S]) * t[C];
    for (uint32_t l = 0; l < arg->loops; l++)
        steps *= arg->loop[l].count;
    struct tl_shard w[2], i[2], o[2], weights = tl_my_shard(tl, arg->w);
    for (int half = 0; half < 2; half++) {
        w[half] = tl_alloc(tl, KB_i8, kb_max(deep, t[C] * t[R] * t[S]) * t[K]);
        i[half] = tl_alloc(tl, KB_i8, kb_max(inputs, places * deep));
        o[half] = tl_alloc(tl, KB_i8, places * t[K]);
    }
    tl_handle loaded_w[2] = {0}, loaded_i[2] = {0}, stored[2] = {0}, done = NULL;
    struct tl_shard leaves = {0};                       /* the output tile that the step before has completed */
    unsigned half = 0;                                  /* of the accumulator */
    for (uint64_t step = 0; step <= steps; step++) {
        wait_for(tl, &done);
        if (leaves.rank) {
            move(tl, leaves, o[half], true, &stored[half]);
            half = 1 - half;
            wait_for(tl, &stored[half]);
            leaves.rank = 0;
        }
        for (uint64_t next = step ? step + 1 : 0; next <= step + 1 && next < steps; next++) {
            first_of_step(arg, next, first);
            struct parts parts = parts_of(tl, arg, first);
            move(tl, parts.i, i[next % 2], false, &loaded_i[next % 2]);
            move(tl, parts.w, w[next % 2], false, &loaded_w[next % 2]);
        }
        if (step == steps)
            break;
        wait_for(tl, &loaded_i[step % 2]);
        wait_for(tl, &loaded_w[step % 2]);
        done = tl_composite(tl, &(struct tl_composite){
            .op = TL_GEMM, .m = places, .k = deep, .n = t[K], .tile = {places, deep, t[K]},
            .a = tl_in(matrix(tl, i[step % 2].addr, places, deep)), .pin_a = true,
            .b = tl_in(matrix(tl, w[step % 2].addr, deep, t[K])), .pin_b = true,
            .c = tl_out(matrix(tl, o[half].addr, places, t[K])) });
        first_of_step(arg, step, first);
        if (completes_output(arg, weights, first))
            leaves = parts_of(tl, arg, first).o;
    }
    wait_for(tl, &stored[0]);
    wait_for(tl, &stored[1]);
}

KB_BENCH(gemmini_map, "a layer on Gemmini, by a mapping",
         KB_INT(meshX, 16, 16, 16, "columns of the array"), KB_INT(mem1_entries, 256, 1, 1 << 30, "rows of the accumulator"),
         KB_INT(mem2_entries, 110592, 1, 1 << 30, "bytes of the scratchpad"),
         KB_INT(C, 64, 1, 1 << 20, "input channels"), KB_INT(K, 64, 1, 1 << 20, "output channels"), KB_INT(N, 1, 1, 1 << 20, "images"),
         KB_INT(P, 128, 1, 1 << 20, "rows of outputs"), KB_INT(Q, 1, 1, 1 << 20, "columns of outputs"),
         KB_INT(R, 1, 1, 64, "rows of a filter"), KB_INT(S, 1, 1, 64, "columns of a filter"),
         KB_INT(Hstride, 1, 1, 64, "rows of inputs from one output to the next"), KB_INT(Wstride, 1, 1, 64, "columns of inputs likewise"),
         KB_TEXT(mapping, "L3[WIO] N1 - L2[WI] N1 K16X - L1[O] K4 C4 P8 C16X - L0[W] P16", "loops by level"))
{
    struct kb_pes pes = kb_pes("*");
    struct gemmini_args arg = {.stride = {kb_int(Hstride), kb_int(Wstride)}};
    uint64_t height = (kb_int(P) - 1) * kb_int(Hstride) + kb_int(R), width = (kb_int(Q) - 1) * kb_int(Wstride) + kb_int(S);
    const uint64_t layer[] = {kb_int(P), kb_int(Q), kb_int(K), kb_int(N), kb_int(C), kb_int(R), kb_int(S)};
    if (!mapping_read(kb_text(mapping), &arg))
        arg.wrong = "the mapping cannot be read";
    else if (!mapping_covers(&arg, layer))
        arg.wrong = "the mapping's tiles and loops do not make up the layer";
    order_loops(&arg);
    arg.w = kb_tensor_new("w", KB_i8, kb_4d(kb_int(R), kb_int(S), kb_int(C), kb_int(K)), kb_on(KB_HBM, pes));
    arg.i = kb_tensor_new("i", KB_i8, kb_4d(kb_int(N), height, width, kb_max(kb_int(C), ARRAY)), kb_on(KB_HBM, pes));
    arg.o = kb_tensor_new("o", KB_i8, kb_4d(kb_int(N), kb_int(P), kb_int(Q), kb_int(K)), kb_on(KB_HBM, pes));
    kb_tensor all[] = {arg.w, arg.i, arg.o};
    for (int j = 0; j < 3; j++) {
        arg.va[j] = (uint64_t)(j + 1) << 40;
        kb_map(pes, arg.va[j], all[j]);
    }
    kb_future launch = kb_launch(gemmini_map, pes, &arg);
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = KB_i8, .macs = kb_int(N) * kb_int(P) * kb_int(Q) * kb_int(C) * kb_int(K) * kb_int(R) * kb_int(S),
        .read_bytes = kb_int(N) * height * width * kb_int(C), .reads = {arg.w}, .writes = {arg.o} }, NULL);
}
