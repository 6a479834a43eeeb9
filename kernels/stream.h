/* stream.h: matrices streamed through the TCM in blocks: while one is computed, the next ones are loaded and those
 * before it are stored.
 *
 *     struct stream s = stream_of(tl, (struct stream){.load = {x}, .store = {y}, .ops = 1, .cost = 4});
 *     while (stream_next(&s))
 *         tl_exp(tl, s.out[0], s.in[0]);
 *
 * All matrices of a stream have one shape, but that one to load may be a single row which goes with all rows: it is
 * loaded once. A block is a few whole rows, or a piece of one: those of the first columns of all rows come first. Its
 * size follows from the machine: large ones leave less to what each transfer and each command take whatever their size,
 * small ones less to the first load and the last store, which nothing hides; and all that is under way has to fit into
 * the TCM. */
#ifndef STREAM_H
#define STREAM_H

#include <kb/arith.h>
#include <kb/attrs.h>
#include <kb/host.h>
#include <kb/measure.h>
#include <kb/tl.h>

enum { STREAM_OPERANDS = 4, STREAM_BUFFERS = 8, STREAM_RUNS = 4096 };

struct stream_place {
    uint64_t row, rows, col, cols;
};

struct stream {
    /* What the kernel says. */
    struct tl_shard load[STREAM_OPERANDS], store[STREAM_OPERANDS];      /* of two axes; those behind the last: none */
    bool in_place;                                      /* store[i] is computed where load[i] is; they have one dtype */
    bool whole_rows;                                    /* no pieces, unless a row does not fit */
    bool even;                                          /* no smaller blocks at the ends: many commands on each */
    uint32_t ops, cost;                                 /* math commands on a block, and their costs on all of it */
    uint64_t scratch_bytes, row_bytes, col_bytes;       /* the kernel's own for each element, row, column of a block */
    uint32_t buffers;                                   /* blocks under way; 0: 4, or fewer if whole rows fit so */
    uint64_t block_rows, block_cols;                    /* largest block; 0: chosen here */

    /* The block to work on, and where it is in the matrices. */
    struct tl_shard in[STREAM_OPERANDS], out[STREAM_OPERANDS];
    struct stream_place at;

    struct tl *tl;
    uint64_t all_rows, all_cols;
    struct stream_sum {
        uint32_t count;
        uint64_t bytes;                                 /* of an element each */
    } loads, singles, stores;                           /* singles: rows that are loaded and go with all rows */
    struct stream_place ahead;                          /* the block that was loaded last */
    uint64_t loaded, taken;                             /* blocks whose loads have begun; that the kernel was given */
    uint64_t turn;                                      /* pieces of a row so far, this one not */
    struct stream_buffer {
        struct stream_place at;
        uint64_t in[STREAM_OPERANDS], out[STREAM_OPERANDS];     /* addresses */
        tl_handle loading[STREAM_OPERANDS], storing[STREAM_OPERANDS];
        uint64_t turn;                                  /* its single rows are in buffer turn % buffers */
    } buffer[STREAM_BUFFERS];
};

/* ---- sizes */

static inline bool stream_is_row(const struct stream *s, uint32_t i)
{
    return s->load[i].rank && s->load[i].shape[0] == 1 && s->all_rows > 1;
}

/* Adds up what is loaded and stored. */
static inline void stream_count(struct stream *s)
{
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        struct stream_sum *sum = stream_is_row(s, i) ? &s->singles : &s->loads;
        sum->count += s->load[i].rank > 0;
        sum->bytes += s->load[i].rank ? kb_dtype_bytes(s->load[i].dtype) : 0;
        s->stores.count += s->store[i].rank > 0;
        s->stores.bytes += s->store[i].rank ? kb_dtype_bytes(s->store[i].dtype) : 0;
    }
}

/* Rows of so many columns that the TCM has room for. */
static inline uint64_t stream_fit(const struct stream *s, uint64_t cols)
{
    uint64_t element = s->loads.bytes + (s->in_place ? 0 : s->stores.bytes);
    uint64_t ends = 128 * STREAM_OPERANDS * (s->buffers + 1);           /* buffers are aligned to 64 bytes */
    uint64_t singles = s->singles.bytes * (cols == s->all_cols ? 1 : s->buffers);
    uint64_t fixed = ends + (singles + s->col_bytes) * cols, room = tl_room_bytes(s->tl);
    uint64_t row = (element * s->buffers + s->scratch_bytes) * cols + s->row_bytes;
    return room > fixed ? (room - fixed) / row : 0;
}

/* The first block and the last one are this part of the others: nothing hides their load, nothing their store. */
enum { STREAM_TAPER = 4 };

/* How long pe_math is busy with so many commands, of which those on all elements have so much cost together. */
static inline uint64_t stream_math_ps(const struct stream *s, uint64_t commands, uint64_t elements)
{
    uint64_t fill = kb_attrs.pe_math_fill_cycles * UINT64_C(1000000000) / kb_attrs.pe_math_clock_khz;
    return commands * (fill + kb_attrs.pe_scheduler_overhead_ps) + s->cost * kb_math_ps(s->load[0].dtype, elements);
}

/* How long an engine of the DMA is busy with so many transfers of so many bytes in all. */
static inline uint64_t stream_dma_ps(uint64_t transfers, uint64_t bytes)
{
    return transfers * (kb_attrs.pe_dma_overhead_ps + kb_attrs.hbm_ctrl_access_ps) + kb_memory_ps(KB_HBM, bytes, 0) +
           kb_memory_ps(KB_TCM, bytes, 0);
}

/* About how long the stream takes in blocks of so many elements: the slowest of reading, writing, the memory that does
 * both, and computing; before it the first load, behind it the last block. */
static inline uint64_t stream_ps(const struct stream *s, uint64_t block)
{
    uint64_t all = s->all_rows * s->all_cols, last = s->even ? block : block / STREAM_TAPER;
    uint64_t blocks = (all + block - 1) / block + !s->even;
    uint64_t in = s->loads.bytes, out = s->stores.bytes;
    uint64_t slowest = kb_memory_ps(KB_HBM, all * in, all * out);
    slowest = kb_max(slowest, stream_dma_ps(blocks * s->loads.count, all * in));
    slowest = kb_max(slowest, stream_dma_ps(blocks * s->stores.count, all * out));
    slowest = kb_max(slowest, stream_math_ps(s, blocks * s->ops, all));
    return stream_dma_ps(1, last * in) + slowest + stream_math_ps(s, s->ops, last) + stream_dma_ps(1, last * out);
}

/* Elements of the best block, of at most so many. */
static inline uint64_t stream_best(const struct stream *s, uint64_t most)
{
    uint64_t best = most;
    for (uint64_t block = most; block >= 64; block -= block / 8)
        if (stream_ps(s, block) < stream_ps(s, best))
            best = block;
    return best;
}

/* Whether blocks have whole rows, and not pieces of them. */
static inline bool stream_whole(const struct stream *s)
{
    return s->block_cols >= s->all_cols;
}

/* Whether blocks are of bytes that follow one another. */
static inline bool stream_dense(const struct stream *s)
{
    bool dense = stream_whole(s);
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        dense &= !s->load[i].rank || s->load[i].stride[0] == s->all_cols || stream_is_row(s, i);
        dense &= !s->store[i].rank || s->store[i].stride[0] == s->all_cols;
    }
    return dense;
}

static inline void stream_choose(struct stream *s)
{
    uint64_t longest = s->all_cols;
    bool few = s->buffers == 0;
    s->buffers = kb_clamp(few ? 4 : s->buffers, 2, STREAM_BUFFERS);
    while (few && s->whole_rows && s->buffers > 1 && stream_fit(s, longest) == 0)
        s->buffers--;
    if (s->buffers == 1)                                /* not even with two */
        s->buffers = 4;
    while (longest > 1 && stream_fit(s, longest) == 0)
        longest -= (longest + 7) / 8;
    uint64_t fit = stream_fit(s, longest), best = stream_best(s, longest * kb_clamp(fit, 1, s->all_rows));
    if (fit == 0)
        tl_fail(s->tl, 1, "the TCM has no room for %u blocks of a stream", (unsigned)s->buffers);
    if (s->block_cols == 0)
        s->block_cols = s->whole_rows && longest == s->all_cols ? longest : best;
    s->block_cols = kb_clamp(s->block_cols, 1, longest);
    if (s->block_rows == 0)
        s->block_rows = best / s->block_cols;
    fit = kb_clamp(stream_fit(s, s->block_cols), 1, stream_dense(s) ? s->all_rows : STREAM_RUNS);
    s->block_rows = kb_clamp(s->block_rows, 1, fit);
}

/* Chooses what the kernel left open. The buffers are taken from the TCM by the first stream_next: what a kernel
 * allocates between is what it said as scratch_bytes and the like. KERNEL_ERROR: no room. */
static inline struct stream stream_of(struct tl *tl, struct stream s)
{
    const struct tl_shard *shard = s.load[0].rank ? s.load : s.store;
    s.tl = tl;
    s.all_rows = shard->shape[0];
    s.all_cols = shard->shape[1];
    stream_count(&s);
    if (s.all_rows && s.all_cols)
        stream_choose(&s);
    return s;
}

/* ---- blocks */

/* Whether a buffer has bytes for something to load: of single rows that go with all blocks there is one. */
static inline bool stream_holds(const struct stream *s, uint32_t buffer, uint32_t i)
{
    return s->load[i].rank && !(buffer > 0 && stream_is_row(s, i) && stream_whole(s));
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

/* A matrix in a buffer. */
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

/* Of a kernel's own buffer, which has one axis, as much as a block has. */
static inline struct tl_shard stream_matrix(const struct stream *s, struct tl_shard buffer, uint64_t rows,
                                            uint64_t cols)
{
    return tl_reshape(s->tl, tl_part(s->tl, buffer, 0, 0, rows * cols), rows, cols);
}

/* How much of what is left goes into a block. */
static inline uint64_t stream_share(const struct stream *s, uint64_t left, uint64_t most, bool tapers)
{
    tapers &= !s->even;
    uint64_t least = tapers ? (most + STREAM_TAPER - 1) / STREAM_TAPER : most;
    if (s->loaded == 0 || left <= least)
        return kb_clamp(least, 1, left);
    uint64_t blocks = (left - least + most - 1) / most;
    return tapers ? (left - least + blocks - 1) / blocks : kb_clamp(most, 1, left);
}

/* Goes to the next block to load. False: there is none. */
static inline bool stream_step(struct stream *s)
{
    struct stream_place *at = &s->ahead;
    bool down = at->row + at->rows < s->all_rows;
    if (!down && s->loaded > 0 && at->col + at->cols == s->all_cols)
        return false;
    if (down && s->loaded > 0) {
        at->row += at->rows;
    } else {
        at->row = 0;
        at->col += at->cols;
        s->turn += s->loaded > 0;
        at->cols = stream_share(s, s->all_cols - at->col, s->block_cols, s->all_rows == 1 && !stream_whole(s));
    }
    at->rows = stream_share(s, s->all_rows - at->row, s->block_rows, stream_whole(s));
    return true;
}

/* The part of a matrix that a block is, or that goes with it: of a single row, of a single column. */
static inline struct tl_shard stream_part(const struct stream *s, struct tl_shard matrix, struct stream_place at)
{
    if (matrix.shape[0] == s->all_rows)
        matrix = tl_part(s->tl, matrix, 0, at.row, at.rows);
    return matrix.shape[1] == s->all_cols ? tl_part(s->tl, matrix, 1, at.col, at.cols) : matrix;
}

static inline void stream_stored(struct stream *s, struct stream_buffer *buffer)
{
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++)
        if (buffer->storing[i])
            tl_wait(s->tl, buffer->storing[i]);
}

static inline void stream_load_block(struct stream *s)
{
    struct stream_buffer *buffer = &s->buffer[s->loaded++ % s->buffers], *rows = &s->buffer[s->turn % s->buffers];
    buffer->at = s->ahead;
    buffer->turn = s->turn;
    stream_stored(s, buffer);
    for (uint32_t i = 0; i < STREAM_OPERANDS; i++) {
        bool is_row = stream_is_row(s, i);
        struct stream_buffer *to = is_row ? rows : buffer;
        if (s->load[i].rank && (!is_row || s->ahead.row == 0))
            to->loading[i] = tl_load_async(
                s->tl, stream_view(s, to->in[i], s->load[i].dtype, is_row ? 1 : s->ahead.rows, s->ahead.cols),
                stream_part(s, s->load[i], s->ahead));
    }
}

/* Part i of as many along the longer axis; of a shape of 0 there: none. */
static inline struct tl_shard stream_cut(const struct stream *s, struct tl_shard matrix, uint64_t i, uint64_t parts)
{
    uint32_t axis = s->at.rows < s->at.cols && s->at.rows < parts;
    uint64_t size = axis ? s->at.cols : s->at.rows, first = size * i / parts, end = size * (i + 1) / parts;
    matrix.shape[axis] = first < end ? matrix.shape[axis] : 0;
    return first < end ? tl_part(s->tl, matrix, axis, first, end - first) : matrix;
}

/* In as many commands as the block was loaded by: so one is on its way whenever the reading engine is between two. */
static inline void stream_store(struct stream *s)
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

static inline void stream_take(struct stream *s)
{
    struct stream_buffer *buffer = &s->buffer[s->taken++ % s->buffers], *rows = &s->buffer[buffer->turn % s->buffers];
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

/* Goes to the next block: its operands are in s->in, its results are to be in s->out when stream_next is called again.
 * False: that was the last one; all is stored, and the buffers are given back. */
static inline bool stream_next(struct stream *s)
{
    if (s->all_rows == 0 || s->all_cols == 0)
        return false;
    if (s->taken == 0)
        stream_alloc(s);
    else
        stream_store(s);
    uint64_t most = s->taken + s->buffers - (s->stores.count > 0);     /* the one that is being stored not */
    while (s->loaded < most && stream_step(s))
        stream_load_block(s);
    if (s->taken < s->loaded) {
        stream_take(s);
        return true;
    }
    for (uint32_t b = 0; b < s->buffers; b++)
        stream_stored(s, &s->buffer[b]);
    stream_free(s);
    return false;
}

/* A command that works on what that of `handle` makes, without the kernel's waiting in between; `handle` is then its:
 *     tl_handle done = tl_sub_async(tl, x, x, m);
 *     stream_then(tl, done, tl_exp_async(tl, x, x)); */
#define stream_then(tl, handle, call) (tl_after(tl, handle), (void)((handle) = (call)))

/* ---- in benches */

#define STREAM_PARAMS_OF_ROWS                                                                                          \
    KB_TEXT(pes, "*", "which PEs take part: ids like this"),                                                           \
    KB_INT(buffers, 0, 0, STREAM_BUFFERS, "blocks under way; 0: chosen"),                                              \
    KB_INT(block_rows, 0, 0, 1 << 30, "rows of a block; 0: chosen")

#define STREAM_PARAMS                                                                                                  \
    STREAM_PARAMS_OF_ROWS, KB_INT(block_cols, 0, 0, 1 << 30, "columns of a block; 0: whole rows, if they fit")

#endif
