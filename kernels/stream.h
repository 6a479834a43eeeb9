/* stream.h: matrices that stream through the TCM in blocks, with multiple buffering: while one block is computed, the
 * next ones are loaded and the previous ones are stored.
 *
 *     struct stream s = stream_of(tl, (struct stream){.load = {x}, .store = {y}, .ops = 1, .cost = 4});
 *     while (stream_next(&s))
 *         tl_exp(tl, s.out[0], s.in[0]);
 *
 * All matrices of a stream have the same shape, except that a matrix to load may be a single row that goes with all
 * rows: it is loaded once. A block is a few whole rows or, where rows are long, a piece of some rows; the pieces of the
 * first columns come first. The size of the blocks follows from the machine. Large blocks spend less on the fixed time
 * of each transfer and command; small blocks spend less on the first load and the last store, which nothing overlaps;
 * and all blocks in flight must fit into the TCM. */
#ifndef STREAM_H
#define STREAM_H

#include "needs.h"
#include "params.h"
#include "transfers.h"
#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <kb/tl.h>

/* STREAM_TAPER: the first and the last block are 1 / STREAM_TAPER of the others, because nothing overlaps the load of
 * the first one and the store of the last one. */
enum { STREAM_OPERANDS = 4, STREAM_BUFFERS = 8, STREAM_TAPER = 4 };

struct stream_block {
    uint64_t row, rows, col, cols;
};

/* The parameters of a bench, STREAM_PARAMS; they go before what the kernel sets. 0: chosen. */
struct stream_params {
    uint32_t buffers;
    uint64_t block_rows, block_cols;
};

struct stream {
    /* Set by the kernel. */
    struct stream_params params;
    struct tl_shard load[STREAM_OPERANDS], store[STREAM_OPERANDS];      /* two axes; the rest all zero */
    bool in_place;                                      /* store[i] is computed in the buffer of load[i]: same dtype */
    bool whole_rows;                                    /* no pieces of rows, unless a row does not fit */
    bool even;                                          /* no smaller blocks at the ends: blocks have many commands */
    uint32_t ops, cost;                                 /* math commands per block; the sum of their ops' costs */
    uint64_t scratch_bytes, row_bytes, col_bytes;       /* kernel's own TCM: per element, row, column of a block */
    uint32_t buffers;                                   /* blocks in flight; 0: 4, or fewer so that whole rows fit */
    uint64_t block_rows, block_cols;                    /* largest block; 0: chosen by stream_of */

    /* The current block: its operands, its results, and its position in the matrices. */
    struct tl_shard in[STREAM_OPERANDS], out[STREAM_OPERANDS];
    struct stream_block at;

    /* Private. */
    struct tl *tl;
    uint64_t all_rows, all_cols;
    struct stream_sum {
        uint32_t count;
        uint64_t bytes;                                 /* of one element of each */
    } loads, row_loads, stores;                         /* row_loads: the single rows that go with all rows */
    struct stream_block ahead;                          /* the block whose load was issued last */
    uint64_t loaded, taken;                             /* blocks whose loads were issued; blocks given to the kernel */
    uint64_t panel;                                     /* number of the columns that `ahead` belongs to */
    struct stream_buffer {
        struct stream_block at;
        uint64_t in[STREAM_OPERANDS], out[STREAM_OPERANDS];     /* addresses */
        tl_handle loading[STREAM_OPERANDS], storing[STREAM_OPERANDS];
        uint64_t panel;                                 /* its single rows are in buffer panel % buffers */
    } buffer[STREAM_BUFFERS];
};

/* ---- block sizes */

static inline bool stream_is_row(const struct stream *s, uint32_t i)
{
    return s->load[i].rank && s->load[i].shape[0] == 1 && s->all_rows > 1;
}

/* Whether blocks have whole rows rather than pieces of rows. */
static inline bool stream_whole(const struct stream *s)
{
    return s->block_cols >= s->all_cols;
}

/* Whether the elements of each block follow one another in memory. */
static inline bool stream_dense(const struct stream *s)
{
    bool dense = stream_whole(s);
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        dense &= !s->load[i].rank || s->load[i].stride[0] == s->all_cols || stream_is_row(s, i);
        dense &= !s->store[i].rank || s->store[i].stride[0] == s->all_cols;
    }
    return dense;
}

/* What it takes that each buffer begins at a multiple of 64. */
static inline uint64_t stream_alignment(uint64_t buffers)
{
    return 128 * STREAM_OPERANDS * (buffers + 1);
}

/* How many rows of `cols` columns a block can have so that all buffers fit into the TCM. */
static inline uint64_t stream_fit(const struct stream *s, uint64_t cols)
{
    uint64_t element = s->loads.bytes + (s->in_place ? 0 : s->stores.bytes), alignment = stream_alignment(s->buffers);
    uint64_t row_loads = s->row_loads.bytes * (cols == s->all_cols ? 1 : s->buffers);
    uint64_t fixed = alignment + (row_loads + s->col_bytes) * cols, room = tl_room_bytes(s->tl);
    uint64_t row = (element * s->buffers + s->scratch_bytes) * cols + s->row_bytes;
    return room > fixed ? (room - fixed) / row : 0;
}

/* How long pe_math is busy with `commands` commands that do all ops of a block on `elements` elements. */
static inline uint64_t stream_math_ps(const struct stream *s, uint64_t commands, uint64_t elements)
{
    uint64_t fill = kb_attrs.pe_math_fill_cycles * UINT64_C(1000000000) / kb_attrs.pe_math_clock_khz;
    return commands * (fill + kb_attrs.pe_scheduler_overhead_ps) + s->cost * kb_math_ps(s->load[0].dtype, elements);
}

/* How long a DMA engine is busy with `transfers` transfers of `bytes` bytes in all. */
static inline uint64_t stream_dma_ps(uint64_t transfers, uint64_t bytes)
{
    return transfers * (kb_attrs.pe_dma_overhead_ps + kb_attrs.hbm_ctrl_access_ps) +
           kb_memory_ps(kb_main_memory(), bytes, 0) + kb_memory_ps(KB_TCM, bytes, 0);
}

/* An estimate of the time of the stream in blocks of `block` elements: the slowest of reading, writing, the HBM, which
 * does both, and computing; the shorter the blocks, the longer that takes. */
static inline uint64_t stream_slowest_ps(const struct stream *s, uint64_t block)
{
    uint64_t all = s->all_rows * s->all_cols, blocks = kb_ceil_div(all, block) + !s->even;
    uint64_t in = s->loads.bytes, out = s->stores.bytes;
    uint64_t slowest = kb_memory_ps(kb_main_memory(), all * in, all * out);
    slowest = kb_max(slowest, stream_dma_ps(blocks * s->loads.count, all * in));
    slowest = kb_max(slowest, stream_dma_ps(blocks * s->stores.count, all * out));
    return kb_max(slowest, stream_math_ps(s, blocks * s->ops, all));
}

/* An estimate of the rest: the first load goes before, the ops and the stores of the last block go after. */
static inline uint64_t stream_ends_ps(const struct stream *s, uint64_t block)
{
    uint64_t last = s->even ? block : block / STREAM_TAPER;
    return stream_dma_ps(1, last * s->loads.bytes) + stream_math_ps(s, s->ops, last) + stream_dma_ps(1, last * s->stores.bytes);
}

/* Sets the number of buffers and the size of blocks where the kernel left them open. */
static inline void stream_choose(struct stream *s)
{
    bool choose_buffers = s->buffers == 0;
    s->buffers = kb_clamp(choose_buffers ? 4 : s->buffers, 2, STREAM_BUFFERS);
    while (choose_buffers && s->whole_rows && s->buffers > 1 && stream_fit(s, s->all_cols) == 0)
        s->buffers--;
    if (s->buffers == 1)                                /* whole rows do not even fit twice: pieces of rows */
        s->buffers = 4;

    uint64_t longest = s->all_cols;
    while (longest > 1 && stream_fit(s, longest) == 0)
        longest -= (longest + 7) / 8;
    uint64_t fit = stream_fit(s, longest), most = longest * kb_clamp(fit, 1, s->all_rows), best = most;
    uint64_t best_ps = UINT64_MAX, slowest_ps;
    for (uint64_t block = most; block >= 64 && (slowest_ps = stream_slowest_ps(s, block)) < best_ps; block -= block / 8) {
        uint64_t ps = slowest_ps + stream_ends_ps(s, block);
        best = ps < best_ps ? block : best;
        best_ps = kb_min(ps, best_ps);
    }

    if (s->block_cols == 0)
        s->block_cols = s->whole_rows && longest == s->all_cols ? longest : best;
    s->block_cols = kb_clamp(s->block_cols, 1, longest);
    if (s->block_rows == 0)
        s->block_rows = best / s->block_cols;
    fit = kb_clamp(stream_fit(s, s->block_cols), 1, stream_dense(s) ? s->all_rows : RUNS_AT_ONCE);
    s->block_rows = kb_clamp(s->block_rows, 1, fit);
}

/* Notes parameters of the bench that the stream cannot have, from one PE for all: the last one, which has rows if any
 * PE has. */
static inline void stream_note(const struct stream *s)
{
    if (tl_pe(s->tl) + 1 < tl_num_pes(s->tl))
        return;
    param_used("buffers", s->params.buffers, s->buffers, "two at least");
    param_used("block_rows", s->params.block_rows, s->block_rows, "the rows of a PE, what fits into the TCM, or of some columns 512");
    param_used("block_cols", s->params.block_cols, s->block_cols, "a whole row or what fits into the TCM");
}

/* Makes a stream and chooses what the kernel left open. The first stream_next allocates the buffers; what the kernel
 * allocates itself in between is what it declared as scratch_bytes, row_bytes and col_bytes. */
static inline struct stream stream_of(struct tl *tl, struct stream s)
{
    const struct tl_shard *shard = s.load[0].rank ? s.load : s.store;
    s.tl = tl;
    s.buffers = s.params.buffers ? s.params.buffers : s.buffers;
    s.block_rows = s.params.block_rows ? s.params.block_rows : s.block_rows;
    s.block_cols = s.params.block_cols ? s.params.block_cols : s.block_cols;
    s.all_rows = shard->shape[0];
    s.all_cols = shard->shape[1];
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        struct stream_sum *sum = stream_is_row(&s, i) ? &s.row_loads : &s.loads;
        sum->count += s.load[i].rank > 0;
        sum->bytes += s.load[i].rank ? kb_dtype_bytes(s.load[i].dtype) : 0;
        s.stores.count += s.store[i].rank > 0;
        s.stores.bytes += s.store[i].rank ? kb_dtype_bytes(s.store[i].dtype) : 0;
    }
    if (s.all_rows && s.all_cols) {
        stream_choose(&s);
        stream_note(&s);
    }
    return s;
}

/* ---- buffers */

/* Whether buffer b holds operand i. A single row that goes with whole rows is in the first buffer only. */
static inline bool stream_holds(const struct stream *s, uint32_t b, uint32_t i)
{
    return s->load[i].rank && !(b > 0 && stream_is_row(s, i) && stream_whole(s));
}

static inline void stream_alloc(struct stream *s)
{
    for (uint32_t b = 0; b < s->buffers; b++)
        for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
            uint64_t size = s->block_cols * (stream_is_row(s, i) ? 1 : s->block_rows);
            if (stream_holds(s, b, i))
                s->buffer[b].in[i] = tl_alloc(s->tl, s->load[i].dtype, size).addr;
            if (s->store[i].rank)
                s->buffer[b].out[i] = s->in_place ? s->buffer[b].in[i]
                                                  : tl_alloc(s->tl, s->store[i].dtype, size).addr;
        }
}

/* The buffer at an address as a matrix. */
static inline struct tl_shard stream_view(const struct stream *s, uint64_t addr, enum kb_dtype dtype, uint64_t rows,
                                          uint64_t cols)
{
    return tl_view(s->tl, (struct tl_shard){.addr = addr, .dtype = dtype, .rank = 2, .shape = {rows, cols}});
}

static inline void stream_free(struct stream *s)
{
    for (uint32_t b = 0; b < s->buffers; b++)
        for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
            if (stream_holds(s, b, i))
                tl_free(s->tl, stream_view(s, s->buffer[b].in[i], s->load[i].dtype,
                                           stream_is_row(s, i) ? 1 : s->block_rows, s->block_cols));
            if (s->store[i].rank && !s->in_place)
                tl_free(s->tl, stream_view(s, s->buffer[b].out[i], s->store[i].dtype, s->block_rows, s->block_cols));
        }
}

/* The front of a kernel's own buffer of one axis, as a matrix of rows x cols. */
static inline struct tl_shard stream_matrix(const struct stream *s, struct tl_shard buffer, uint64_t rows,
                                            uint64_t cols)
{
    return tl_reshape(s->tl, tl_part(s->tl, buffer, 0, 0, rows * cols), rows, cols);
}

/* The part of a matrix at a block's position. Of a single row or column it is the part that goes with the block. */
static inline struct tl_shard stream_part(const struct stream *s, struct tl_shard matrix, struct stream_block at)
{
    if (matrix.shape[0] == s->all_rows)
        matrix = tl_part(s->tl, matrix, 0, at.row, at.rows);
    return matrix.shape[1] == s->all_cols ? tl_part(s->tl, matrix, 1, at.col, at.cols) : matrix;
}

/* ---- the loop */

/* The length of the next block along an axis of which `left` is left: `most`, or less at both ends if it tapers. */
static inline uint64_t stream_length(const struct stream *s, uint64_t left, uint64_t most, bool tapers)
{
    tapers &= !s->even;
    uint64_t least = tapers ? kb_ceil_div(most, STREAM_TAPER) : most;
    if (s->loaded == 0 || left <= least)
        return kb_clamp(least, 1, left);
    uint64_t blocks = kb_ceil_div(left - least, most);
    return tapers ? kb_ceil_div(left - least, blocks) : kb_clamp(most, 1, left);
}

/* Moves `ahead` to the next block to load. Returns false if there is none. */
static inline bool stream_advance(struct stream *s)
{
    struct stream_block *at = &s->ahead;
    bool down = at->row + at->rows < s->all_rows;
    if (!down && s->loaded > 0 && at->col + at->cols == s->all_cols)
        return false;
    if (down && s->loaded > 0) {
        at->row += at->rows;
    } else {
        at->row = 0;
        at->col += at->cols;
        s->panel += s->loaded > 0;
        at->cols = stream_length(s, s->all_cols - at->col, s->block_cols, s->all_rows == 1 && !stream_whole(s));
    }
    at->rows = stream_length(s, s->all_rows - at->row, s->block_rows, stream_whole(s));
    return true;
}

static inline void stream_wait_stored(struct stream *s, struct stream_buffer *buffer)
{
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++)
        if (buffer->storing[i])
            tl_wait(s->tl, buffer->storing[i]);
}

/* Issues the loads of the block `ahead` as soon as its buffer is stored. */
static inline void stream_load_block(struct stream *s)
{
    struct stream_buffer *buffer = &s->buffer[s->loaded++ % s->buffers], *rows = &s->buffer[s->panel % s->buffers];
    buffer->at = s->ahead;
    buffer->panel = s->panel;
    stream_wait_stored(s, buffer);
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        bool is_row = stream_is_row(s, i);
        struct stream_buffer *to = is_row ? rows : buffer;
        if (s->load[i].rank && (!is_row || s->ahead.row == 0))
            to->loading[i] = tl_load_async(
                s->tl, stream_view(s, to->in[i], s->load[i].dtype, is_row ? 1 : s->ahead.rows, s->ahead.cols),
                stream_part(s, s->load[i], s->ahead));
    }
}

/* Waits for the loads of the next block and makes it the current one. */
static inline void stream_take_block(struct stream *s)
{
    struct stream_buffer *buffer = &s->buffer[s->taken++ % s->buffers], *rows = &s->buffer[buffer->panel % s->buffers];
    s->at = buffer->at;
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        bool is_row = stream_is_row(s, i);
        struct stream_buffer *from = is_row ? rows : buffer;
        if (s->load[i].rank) {
            tl_wait(s->tl, from->loading[i]);
            s->in[i] = stream_view(s, from->in[i], s->load[i].dtype, is_row ? 1 : s->at.rows, s->at.cols);
        }
        if (s->store[i].rank)
            s->out[i] = stream_view(s, buffer->out[i], s->store[i].dtype, s->at.rows, s->at.cols);
    }
}

/* Part i of `parts` parts along the longer axis of the current block; a shape of 0 there if it is empty. */
static inline struct tl_shard stream_cut(const struct stream *s, struct tl_shard matrix, uint64_t i, uint64_t parts)
{
    uint32_t axis = s->at.rows < s->at.cols && s->at.rows < parts;
    uint64_t size = axis ? s->at.cols : s->at.rows, first = size * i / parts, end = size * (i + 1) / parts;
    matrix.shape[axis] = first < end ? matrix.shape[axis] : 0;
    return first < end ? tl_part(s->tl, matrix, axis, first, end - first) : matrix;
}

/* Stores the current block, in as many commands as loaded it, so that the write engine has one in flight whenever the
 * read engine is between two. */
static inline void stream_store_block(struct stream *s)
{
    struct stream_buffer *buffer = &s->buffer[(s->taken - 1) % s->buffers];
    uint32_t parts = s->stores.count ? kb_clamp(s->loads.count / s->stores.count, 1, STREAM_OPERANDS) : 0;
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++)
        for (uint32_t part = 0; s->store[i].rank && part < parts; part++) {
            struct tl_shard from = stream_cut(s, s->out[i], part, parts);
            if (from.shape[0] && from.shape[1])
                buffer->storing[i * parts + part] = tl_store_async(
                    s->tl, stream_cut(s, stream_part(s, s->store[i], s->at), part, parts), from);
        }
}

/* Goes to the next block. Its operands are in s->in; the kernel writes its results to s->out before the next call of
 * stream_next. Returns false after the last block, when all is stored and the buffers are freed. */
static inline bool stream_next(struct stream *s)
{
    if (s->all_rows == 0 || s->all_cols == 0)
        return false;
    if (s->taken == 0)
        stream_alloc(s);
    else
        stream_store_block(s);
    uint64_t most = s->taken + s->buffers - (s->stores.count > 0);     /* one buffer is being stored */
    while (s->loaded < most && stream_advance(s))
        stream_load_block(s);
    if (s->taken < s->loaded) {
        stream_take_block(s);
        return true;
    }
    for (uint32_t b = 0; b < s->buffers; b++)
        stream_wait_stored(s, &s->buffer[b]);
    stream_free(s);
    return false;
}

/* Submits a command that depends on the command of `handle` without blocking the kernel; `handle` is then the new one:
 *     tl_handle done = tl_sub_async(tl, x, x, m);
 *     stream_then(tl, done, tl_exp_async(tl, x, x)); */
#define stream_then(tl, handle, call) (tl_after(tl, handle), (void)((handle) = (call)))

/* Turns the mean of a row's squares into the factor that normalises the row, 1 / sqrt(mean + eps). */
static inline tl_handle stream_reciprocal_root(struct tl *tl, tl_handle done, struct tl_shard mean, double eps)
{
    stream_then(tl, done, tl_add_async(tl, mean, mean, tl_number(eps)));
    stream_then(tl, done, tl_rsqrt_async(tl, mean, mean));
    return done;
}

/* ---- in benches */

enum { STREAM_WHOLE = 0 };                              /* pieces_held: there are no pieces */

/* Refuses the run if a TCM has no room for the smallest blocks of a stream: two of a whole row of `cols` columns or, if they
 * take less, four of an element beside pieces_held bytes. With cols = 0 blocks are always such pieces, with STREAM_WHOLE never.
 * Of an element, all matrices together have `element` bytes in each buffer, single rows `row_element`, and a block `scratch`;
 * `held` are the bytes of everything else. Returns the bytes that are left. */
static inline uint64_t stream_needs(uint64_t cols, uint64_t element, uint64_t row_element, uint64_t scratch, uint64_t held,
                                    uint64_t pieces_held)
{
    uint64_t asked = kb_int(buffers), few = asked ? kb_clamp(asked, 2, STREAM_BUFFERS) : 2, more = asked ? few : 4;
    uint64_t whole = stream_alignment(few) + cols * (element * few + row_element + scratch), most = UINT64_MAX;
    uint64_t pieces = stream_alignment(more) + (element + row_element) * more + scratch + pieces_held;
    if (cols && pieces_held)
        most = kb_int(block_cols) ? kb_int(block_cols) : most;
    if (cols == 0 || most < cols || (pieces_held && pieces < whole))
        whole = pieces;
    needs_tcm(whole + held, "blocks of rows", "make rows, cols or buffers smaller");
    return needs_tcm_bytes() - whole - held;
}

#define STREAM_ROW_PARAMS                                                                                              \
    KB_TEXT(pes, "*", "PEs that take part: a pattern of ids such as sip0.*"),                                          \
    KB_INT(buffers, 0, 0, STREAM_BUFFERS, "blocks in flight; 0: chosen"),                                              \
    KB_INT(block_rows, 0, 0, 1 << 30, "rows of a block; 0: chosen")

#define STREAM_PARAMS                                                                                                  \
    STREAM_ROW_PARAMS, KB_INT(block_cols, 0, 0, 1 << 30, "columns of a block; 0: whole rows if they fit")

#endif
