/* conv2d.c: a convolution of images in NHWC with filters in OHWI, as an implicit GEMM: output rows over all PEs.
 *
 *     C[position, filter] = patches[position, (ky, kx, channel)] x weights[(ky, kx, channel), filter]
 *
 * The matrix of patches is never made. A PE loads the lines of the images that some of its output rows need, a slab, into
 * its TCM, between columns and lines of zeros; the patches are axes of that slab (tl_in_axes), which the composite
 * fetches from where they lie. So each line is read once, or once per panel, apart from the few that two slabs share;
 * lines and columns that no patch needs (kernels of 1, strides above 1) are not read.
 *
 *     x, rows of images over the PEs         a slab in the TCM              y, rows over the PEs
 *       h x w x c  ---- load ---->  images x lines x (w + zeros) x c  --- composite --->  oh x ow x filters
 *                                   weights in the TCM, or two panels of them
 *
 * Several slabs are in the TCM: one is computed while the next ones are loaded. A slab is several whole images or some
 * lines of one, whichever leaves the least of the array idle: images of 14 x 14 have 196 positions, and arrays 128 rows.
 * Every PE has a copy of the weights in its HBM. The array bounds the kernel, or the HBM where kernels are 1 x 1. */
#include "tiles.h"
#include "transfers.h"

/* Buffers; loads of the first panel. Streamed weights add 1 / STREAMED_PART to the estimated time, since their tiles and slabs
 * wait for one another. */
enum { SLABS = 4, WEIGHT_PIECES = 16, STREAMED_PART = 12 };

/* A layer; of images that are one above the other where no patch has positions of two. */
struct conv {
    uint64_t height, width, channels, filters;
    uint64_t kernel_h, kernel_w, stride, pad;
    uint64_t out_h, out_w;
};

struct conv_args {
    kb_tensor x, w, y;                                  /* (batch h) x w x c; filters x (kh kw c); (batch oh) x ow x filters */
    kb_tensor zeros;                                    /* a copy per PE; NULL: without padding */
    struct conv conv;
    struct gemm_tile tile;
    uint64_t panel;                                     /* filters of a panel */
    bool streams;                                       /* weights stream out of the HBM; else those of a panel stay in the
                                                           TCM */
    uint64_t images, lines;                             /* of a slab at most: whole images; else lines of one */
    uint64_t first_images;                              /* of the first one */
    uint32_t buffers;                                   /* for slabs */
};

/* ---- slabs */

/* Output rows of one or several images. */
struct slab {
    uint64_t row, images, lines;
};

/* The slab that begins at an output row of a PE's rows from `first` on, before `end`. */
static struct slab slab_at(const struct conv_args *arg, uint64_t first, uint64_t row, uint64_t end)
{
    uint64_t height = arg->conv.out_h, at = row % height, left = end - row;
    uint64_t images = row == first ? arg->first_images : arg->images;
    if (images && at == 0 && left >= height)
        return (struct slab){row, kb_min(images, left / height), height};
    return (struct slab){row, 1, kb_min(kb_min(arg->lines, height - at), left)};
}

static uint64_t slab_rows(struct slab slab)
{
    return slab.images * slab.lines;
}

/* The lines, or columns, that some outputs need: `count` of them, `step` apart; [first, end) are in the image, the first of
 * these at `at`. Lines that no patch has are not loaded. Such columns are: to leave them out would take a request for each. */
struct window {
    uint64_t count, first, end, at, step;
};

static struct window window_of(const struct conv *conv, uint64_t size, uint64_t kernel, uint64_t step, uint64_t out,
                               uint64_t outs)
{
    struct window w = {.step = step};
    uint64_t base = out * conv->stride;                 /* counted from the first position of the padding */
    w.count = (outs - 1) * (conv->stride / w.step) + kernel;
    w.first = base < conv->pad ? kb_min(kb_ceil_div(conv->pad - base, w.step), w.count) : 0;
    w.end = size + conv->pad > base ? kb_min(kb_ceil_div(size + conv->pad - base, w.step), w.count) : 0;
    w.end = kb_max(w.first, w.end);
    w.at = base + w.first * w.step - conv->pad;
    return w;
}

static struct window window_of_lines(const struct conv *conv, struct slab slab)
{
    uint64_t step = conv->kernel_h == 1 ? conv->stride : 1;
    return window_of(conv, conv->height, conv->kernel_h, step, slab.row % conv->out_h, slab.lines);
}

static struct window window_of_columns(const struct conv *conv)
{
    return window_of(conv, conv->width, conv->kernel_w, 1, 0, conv->out_w);
}

/* ---- on a PE */

/* A buffer of slabs: lines x columns x channels. */
struct slab_buffer {
    struct tl_shard all;
    struct window lines;                                /* those whose lines of zeros it has */
    uint64_t images;
    struct transfers loading, computing;
};

struct conv_pe {
    struct tl *tl;
    const struct conv_args *arg;
    struct slab_buffer buffer[SLABS];
    struct tl_shard y, w, zeros;
    uint64_t first, end, slabs;                         /* output rows; slabs of a panel */
    struct tl_shard weights[2];                         /* panels, by turns */
    tl_handle weights_loading[2][WEIGHT_PIECES];
    struct transfers computing[2];                      /* with them */
};

/* A slab of a panel; `number` counts slabs over all panels. */
struct turn {
    uint64_t filter, number;
    struct slab slab;
};

static bool turn_is_there(const struct conv_pe *pe, const struct turn *turn)
{
    return turn->filter < pe->arg->conv.filters;
}

static void turn_next(const struct conv_pe *pe, struct turn *turn)
{
    uint64_t row = turn->slab.row + slab_rows(turn->slab);
    turn->number++;
    if (row == pe->end) {
        turn->filter += pe->arg->panel;
        row = pe->first;
    }
    turn->slab = slab_at(pe->arg, pe->first, row, pe->end);
}

static struct slab_buffer *buffer_of(struct conv_pe *pe, const struct turn *turn)
{
    bool stay = pe->slabs <= pe->arg->buffers;
    return &pe->buffer[stay ? turn->number % pe->slabs : turn->number % pe->arg->buffers];
}

/* Loads zeros into [first, end) of an axis of a buffer's part of three axes. */
static void load_zeros(struct conv_pe *pe, struct slab_buffer *buffer, struct tl_shard part, uint32_t axis,
                       uint64_t first, uint64_t end)
{
    struct tl *tl = pe->tl;
    if (first == end)
        return;
    part = tl_part(tl, part, axis, first, end - first);
    uint64_t line = part.shape[1] * part.shape[2], most = kb_max(pe->zeros.shape[0] / line, 1);
    for (uint64_t i = 0; i < part.shape[0]; i += most) {
        uint64_t lines = kb_min(most, part.shape[0] - i);
        struct tl_shard from = tl_part(tl, pe->zeros, 0, 0, lines * line);
        transfers_add(tl, &buffer->loading, tl_load_async(tl, tl_part(tl, part, 0, i, lines),
                                                          tl_reshape(tl, from, lines, part.shape[1], part.shape[2])));
    }
}

/* Loads lines of x, the first one at a row of the tensor, from wherever they lie. */
static void load_lines(struct conv_pe *pe, struct slab_buffer *buffer, struct tl_shard to, uint64_t row, uint64_t step,
                       struct window columns)
{
    struct tl *tl = pe->tl;
    kb_tensor x = pe->arg->x;
    for (uint64_t i = 0, lines; i < to.shape[0]; i += lines) {
        struct tl_shard shard = tl_shard(tl, x, shard_of_row(tl, x, row + i * step));
        uint64_t at = row + i * step - shard.first[0];
        lines = kb_min(kb_min(to.shape[0] - i, kb_ceil_div(shard.shape[0] - at, step)), TL_RUNS_MOST);
        struct tl_shard from = tl_every(tl, tl_part(tl, shard, 0, at, (lines - 1) * step + 1), 0, 0, step);
        from = tl_part(tl, from, 1, columns.at, to.shape[1]);
        transfers_add(tl, &buffer->loading, tl_load_async(tl, tl_part(tl, to, 0, i, lines), from));
    }
}

/* Starts to load a slab, once the last one of its buffer is computed. Columns and lines of zeros stay in the buffer. */
static void load_slab(struct conv_pe *pe, const struct turn *turn)
{
    struct tl *tl = pe->tl;
    struct slab_buffer *buffer = buffer_of(pe, turn);
    const struct conv *conv = &pe->arg->conv;
    struct slab slab = turn->slab;
    struct window lines = window_of_lines(conv, slab), columns = window_of_columns(conv);
    if (turn->number >= pe->slabs && pe->slabs <= pe->arg->buffers)
        return;                                         /* all slabs stay in the TCM */
    transfers_wait(tl, &buffer->computing);
    bool zeros = buffer->images < slab.images || buffer->lines.count != lines.count
                 || buffer->lines.first != lines.first || buffer->lines.end != lines.end;
    if (buffer->images == 0) {
        load_zeros(pe, buffer, buffer->all, 1, 0, columns.first);
        load_zeros(pe, buffer, buffer->all, 1, columns.end, columns.count);
    }
    buffer->images = slab.images;
    buffer->lines = lines;
    for (uint64_t i = 0; i < slab.images; i++) {
        struct tl_shard image = tl_part(tl, buffer->all, 0, i * lines.count, lines.count);
        uint64_t row = (slab.row / conv->out_h + i) * conv->height + lines.at;
        if (columns.first == columns.end)
            continue;
        image = tl_part(tl, image, 1, columns.first, columns.end - columns.first);
        if (zeros) {
            load_zeros(pe, buffer, image, 0, 0, lines.first);
            load_zeros(pe, buffer, image, 0, lines.end, lines.count);
        }
        if (lines.first < lines.end)
            load_lines(pe, buffer, tl_part(tl, image, 0, lines.first, lines.end - lines.first), row, lines.step, columns);
    }
}

/* The filters of piece i of a panel's weights, from 0 to panel; the count is 0 where there are no more. */
static uint64_t piece_filters(const struct conv_args *arg, uint64_t filter, uint64_t i, uint64_t *first)
{
    uint64_t count = kb_min(arg->panel, arg->conv.filters - filter), cols = kb_attrs.pe_gemm_cols;
    uint64_t piece = kb_ceil_div(kb_ceil_div(count, WEIGHT_PIECES), cols) * cols;
    *first = kb_min(i * piece, count);
    return kb_min(piece, count - *first);
}

/* Starts to load the weights of a panel, piece by piece, once the panel before the last is computed. */
static void load_weights(struct conv_pe *pe, uint64_t filter)
{
    struct tl *tl = pe->tl;
    uint32_t turn = filter / pe->arg->panel % 2;
    if (pe->arg->streams)
        return;
    transfers_wait(tl, &pe->computing[turn]);
    for (uint64_t i = 0, first, count; i < WEIGHT_PIECES; i++) {
        pe->weights_loading[turn][i] = NULL;
        if ((count = piece_filters(pe->arg, filter, i, &first)))
            pe->weights_loading[turn][i] = tl_load_async(tl, tl_part(tl, pe->weights[turn], 0, first, count),
                                                         tl_part(tl, pe->w, 0, filter + first, count));
    }
}

/* Submits the composite of a slab and some of the filters of its panel. */
static void multiply(struct conv_pe *pe, const struct turn *turn, uint64_t first, uint64_t count)
{
    struct tl *tl = pe->tl;
    const struct conv *conv = &pe->arg->conv;
    struct slab_buffer *buffer = buffer_of(pe, turn);
    uint64_t lines = buffer->lines.count, pixel = conv->channels, line = buffer->all.shape[1] * pixel;
    uint64_t down = conv->stride / buffer->lines.step;
    struct tl_axes patches = {
        .row = {{turn->slab.images, lines * line}, {turn->slab.lines, down * line}, {conv->out_w, conv->stride * pixel}},
        .col = {{conv->kernel_h, line}, {conv->kernel_w * pixel, 1}},
    };
    struct tl_shard slab = tl_part(tl, buffer->all, 0, 0, turn->slab.images * lines);
    uint32_t panel = turn->filter / pe->arg->panel % 2;
    struct tl_shard weights = tl_part(tl, pe->arg->streams ? pe->w : pe->weights[panel], 0, first, count);
    struct tl_shard y = tl_part(tl, pe->y, 0, turn->slab.row - pe->first, slab_rows(turn->slab));
    y = tl_reshape(tl, y, y.shape[0] * y.shape[1], y.shape[2]);
    bool last = !pe->arg->streams && turn->slab.row + slab_rows(turn->slab) == pe->end &&
                turn->filter + pe->arg->panel >= conv->filters;
    uint64_t tile_m = last ? kb_min(pe->arg->tile.m, kb_attrs.pe_gemm_rows) : pe->arg->tile.m;  /* little is left to write */
    struct tl_composite gemm = {
        .op = TL_GEMM, .m = y.shape[0], .k = pe->w.shape[1], .n = count,
        .tile = {tile_m, pe->arg->tile.k, pe->arg->tile.n}, .a = tl_in_axes(slab, &patches), .pin_a = true,
        .b = tl_in(tl_transposed(tl, weights, 0, 1)), .pin_b = !pe->arg->streams,
        .c = tl_out(tl_part(tl, y, 1, turn->filter + first, count)),
    };
    tl_handle done = tl_composite(tl, &gemm);
    transfers_add(tl, &buffer->computing, done);
    transfers_add(tl, &pe->computing[panel], done);
}

/* Multiplies a slab with a panel: the first slab with each piece of the weights as it arrives. */
static void compute_slab(struct conv_pe *pe, const struct turn *turn)
{
    tl_handle *loading = pe->weights_loading[turn->filter / pe->arg->panel % 2];
    transfers_wait(pe->tl, &buffer_of(pe, turn)->loading);
    for (uint64_t i = 0, first, count; i < WEIGHT_PIECES; i++) {
        count = piece_filters(pe->arg, turn->filter, i, &first);
        if (count && loading[i])
            tl_wait(pe->tl, loading[i]);
        if (count && turn->number == 0 && !pe->arg->streams)
            multiply(pe, turn, first, count);
    }
    if (turn->number || pe->arg->streams)
        multiply(pe, turn, 0, kb_min(pe->arg->panel, pe->arg->conv.filters - turn->filter));
}

static void allocate(struct conv_pe *pe)
{
    struct tl *tl = pe->tl;
    const struct conv_args *arg = pe->arg;
    struct window columns = window_of_columns(&arg->conv);
    uint64_t lines = 0;
    for (uint64_t row = pe->first; row < pe->end; pe->slabs++) {
        struct slab slab = slab_at(arg, pe->first, row, pe->end);
        lines = kb_max(lines, slab.images * window_of_lines(&arg->conv, slab).count);
        row += slab_rows(slab);
    }
    for (uint32_t i = 0; i < 2 && i * arg->panel < arg->conv.filters && !arg->streams; i++)
        pe->weights[i] = tl_alloc(tl, pe->w.dtype, arg->panel, pe->w.shape[1]);
    for (uint32_t i = 0; i < arg->buffers && i < pe->slabs; i++)
        pe->buffer[i].all = tl_alloc(tl, pe->w.dtype, lines, columns.count, arg->conv.channels);
}

KB_KERNEL(conv2d, struct conv_args)
{
    struct conv_pe pe = {.tl = tl, .arg = arg, .y = tl_my_shard(tl, arg->y), .w = tl_my_shard(tl, arg->w)};
    pe.first = pe.y.first[0];
    pe.end = pe.first + pe.y.shape[0];
    if (arg->zeros)
        pe.zeros = tl_my_shard(tl, arg->zeros);
    if (pe.first == pe.end)
        return;
    allocate(&pe);
    struct turn turn = {.slab = slab_at(arg, pe.first, pe.first, pe.end)}, ahead = turn;
    load_slab(&pe, &ahead);
    load_weights(&pe, 0);
    for (turn_next(&pe, &ahead); turn_is_there(&pe, &ahead) && ahead.number + 1 < arg->buffers; turn_next(&pe, &ahead))
        load_slab(&pe, &ahead);
    for (; turn_is_there(&pe, &turn); turn_next(&pe, &turn)) {
        compute_slab(&pe, &turn);
        if (turn_is_there(&pe, &ahead)) {
            load_slab(&pe, &ahead);
            turn_next(&pe, &ahead);
        }
        uint64_t next = turn.filter + arg->panel;
        if (turn.slab.row == pe.first && next < arg->conv.filters)
            load_weights(&pe, next);
    }
}

/* ---- the bench: what fits, and what leaves the least idle */

static uint64_t depth_of(const struct conv *conv)
{
    return conv->kernel_h * conv->kernel_w * conv->channels;
}

/* The elements of x that a PE loads of each line. */
static uint64_t line_elements(const struct conv *conv)
{
    struct window columns = window_of_columns(conv);
    return (columns.end - columns.first) * conv->channels;
}

/* The lines of x that a slab loads. */
static uint64_t slab_lines(const struct conv *conv, struct slab slab)
{
    struct window lines = window_of_lines(conv, slab);
    return slab.images * (lines.end - lines.first);
}

/* The elements of x that a PE with these output rows loads, for all panels; *slabs: of a panel. */
static uint64_t loaded_elements(const struct conv_args *arg, uint64_t first, uint64_t end, uint64_t *slabs)
{
    uint64_t lines = 0, panels = kb_ceil_div(arg->conv.filters, arg->panel);
    *slabs = 0;
    for (uint64_t row = first; row < end; ++*slabs) {
        struct slab slab = slab_at(arg, first, row, end);
        lines += slab_lines(&arg->conv, slab);
        row += slab_rows(slab);
    }
    return lines * line_elements(&arg->conv) * (*slabs <= arg->buffers ? 1 : panels);
}

/* An estimate of the time of a PE with `rows` output rows: its loads in their order, each after its buffer is computed, and
 * the array after each load; the memory at least for all that is read and written. If that is most_ps or more, it may
 * be too short, but not less than most_ps. */
static uint64_t estimate(const struct conv_args *arg, enum kb_dtype in, enum kb_dtype out, uint64_t rows, uint64_t most_ps)
{
    const struct conv *conv = &arg->conv;
    uint64_t size = kb_dtype_bytes(in), depth = depth_of(conv), slabs, number = 0, read_ps = 0, array_ps = 0;
    uint64_t read = (loaded_elements(arg, 0, rows, &slabs) + depth * conv->filters) * size, done_ps[SLABS] = {0};
    uint64_t written = rows * conv->out_w * conv->filters * kb_dtype_bytes(out);
    uint64_t fixed_ps = kb_attrs.pe_dma_overhead_ps + kb_attrs.hbm_ctrl_access_ps, line_bytes = line_elements(conv) * size;
    uint64_t memory_ps = kb_memory_ps(kb_main_memory(), read, written);
    for (uint64_t filter = 0; filter < conv->filters && kb_max(memory_ps, array_ps) < most_ps; filter += arg->panel)
        for (uint64_t row = 0; row < rows && array_ps < most_ps; number++) {
            struct slab slab = slab_at(arg, 0, row, rows);
            uint64_t m = slab_rows(slab) * conv->out_w, weights_ps = 0;
            uint64_t *buffer = &done_ps[number % arg->buffers], filters = kb_min(arg->panel, conv->filters - filter);
            if (number < slabs || slabs > arg->buffers)
                read_ps = kb_later(read_ps, *buffer) + slab.images * fixed_ps
                          + kb_memory_ps(kb_main_memory(), slab_lines(conv, slab) * line_bytes, 0);
            if (row == 0 && !arg->streams)
                read_ps += fixed_ps + kb_memory_ps(kb_main_memory(), depth * filters * size, 0);
            if (arg->streams)
                weights_ps = kb_memory_ps(kb_main_memory(), depth * filters * size * kb_ceil_div(m, arg->tile.m), 0);
            array_ps = kb_later(array_ps, read_ps) + kb_max(kb_gemm_tile_ps(in, m, depth, filters), weights_ps);
            read_ps += weights_ps;
            *buffer = array_ps;
            row += slab_rows(slab);
        }
    return kb_max(array_ps, memory_ps);
}

/* The bytes of a buffer for the slabs of a PE with `rows` output rows. */
static uint64_t slab_bytes(const struct conv_args *arg, uint64_t size, uint64_t rows)
{
    const struct conv *conv = &arg->conv;
    uint64_t most = 0;
    for (uint64_t row = 0; row < rows;) {
        struct slab slab = slab_at(arg, 0, row, rows);
        most = kb_max(most, slab.images * window_of_lines(conv, slab).count);
        row += slab_rows(slab);
    }
    return most * window_of_columns(conv).count * conv->channels * size + 64;
}

/* Sets how many buffers of a PE's slabs fit into `room` bytes beside the weights. Returns false if not even two do. */
static bool buffers_fit(struct conv_args *arg, uint64_t size, uint64_t room, uint64_t rows)
{
    uint64_t panels = arg->streams ? 0 : arg->panel < arg->conv.filters ? 2 : 1;
    uint64_t weights = depth_of(&arg->conv) * arg->panel * size * panels;
    arg->buffers = room > weights ? (uint32_t)kb_min((room - weights) / slab_bytes(arg, size, rows), SLABS) : 0;
    return arg->buffers >= 2;
}

/* Chooses the tile for slabs of `rows` output rows, or for all rows of a PE. */
static struct gemm_tile choose_tile(const struct conv_args *arg, enum kb_dtype in, enum kb_dtype out, uint64_t rows)
{
    struct gemm_problem gemm = {rows * arg->conv.out_w, depth_of(&arg->conv), arg->panel, in, out, true, !arg->streams, 0};
    return tile_choose(&gemm);
}

/* Replaces `best` by the arguments with the slabs that are estimated to be the fastest, if they are faster. */
static void choose_slabs(struct conv_args arg, enum kb_dtype in, enum kb_dtype out, uint64_t rows,
                         struct conv_args *best, uint64_t *best_ps)
{
    uint64_t room = tcm_allocatable_bytes(), lines = kb_min(rows, arg.conv.out_h);
    for (arg.images = rows / arg.conv.out_h; arg.images || lines; arg.images = arg.images * 7 / 8) {
        arg.lines = arg.images ? arg.conv.out_h : lines;
        arg.first_images = arg.images;
        if (arg.images == 0)
            lines = lines * 7 / 8;
        if (!buffers_fit(&arg, kb_dtype_bytes(in), room, rows))
            continue;
        if (arg.streams)
            arg.tile = choose_tile(&arg, in, out, slab_rows(slab_at(&arg, 1, 0, rows)));
        for (uint32_t whole = 0; whole < 1 + (arg.images > 1); whole++, arg.first_images = 1) {
            uint64_t ps = estimate(&arg, in, out, rows, *best_ps);
            ps += arg.streams ? ps / STREAMED_PART : 0;
            if (ps < *best_ps) {
                *best = arg;
                *best_ps = ps;
            }
        }
    }
}

/* Chooses panel, slabs and buffers: of those that fit what is estimated to be the fastest; if none does, one buffer for a row
 * of outputs at a time. Refuses the run if not even that fits. */
static void conv_plan(struct conv_args *arg, enum kb_dtype in, enum kb_dtype out, uint64_t rows)
{
    const struct conv *conv = &arg->conv;
    uint64_t cols = kb_attrs.pe_gemm_cols, best_ps = UINT64_MAX;
    struct conv_args best = *arg;
    best.panel = conv->filters;
    best.lines = 1;
    best.buffers = 2;
    best.streams = true;
    choose_slabs(best, in, out, rows, &best, &best_ps);
    for (arg->panel = conv->filters; arg->panel;
         arg->panel = arg->panel > cols ? tile_even(conv->filters, cols, arg->panel / 2) : arg->panel / 2)
        choose_slabs(*arg, in, out, rows, &best, &best_ps);
    uint64_t room = tcm_allocatable_bytes(), size = kb_dtype_bytes(in);
    if (best_ps == UINT64_MAX && !buffers_fit(&best, size, room, rows) && best.buffers == 0)
        needs_tcm(slab_bytes(&best, size, rows), "the lines of x for a row of y", "make c, w or kernel_h smaller");
    *arg = best;
    struct gemm_problem gemm = {rows * conv->out_w, depth_of(conv), arg->panel, in, out, true, !arg->streams, 0};
    arg->tile = tile_params(&gemm, arg->streams && arg->tile.m ? arg->tile : choose_tile(arg, in, out, rows),
                            slab_rows(slab_at(arg, 0, 0, rows)) * conv->out_w);
}

/* The positions of an axis that patches have. */
static uint64_t positions_used(uint64_t size, uint64_t kernel, uint64_t stride, uint64_t pad, uint64_t out)
{
    uint64_t used = 0;
    for (uint64_t i = 0; i < size; i++) {
        uint64_t last = kb_min((i + pad) / stride, out - 1);
        used += i + pad - last * stride < kernel;
    }
    return used;
}

static uint64_t outputs(uint64_t size, uint64_t kernel, uint64_t stride, uint64_t pad)
{
    return (size + 2 * pad - kernel) / stride + 1;
}

/* The zeros that a PE loads at once at most: columns of a line, or lines. */
static kb_tensor zeros_new(const struct conv *conv, enum kb_dtype dtype, struct kb_pes pes)
{
    uint64_t columns = window_of_columns(conv).count;
    return kb_tensor_new("zeros", dtype, kb_1d(columns * conv->channels * kb_max(conv->pad, 1)), kb_copies(kb_main_memory(), pes));
}

/* The elements of x that all PEs load, and of the weights. */
static uint64_t all_loaded(const struct conv_args *arg, struct kb_pes pes, uint64_t rows)
{
    uint64_t elements = 0, slabs;
    for (uint64_t i = 0; i < pes.count; i++) {
        uint64_t first = rows * i / pes.count, end = rows * (i + 1) / pes.count;
        if (first < end)
            elements += loaded_elements(arg, first, end, &slabs) + depth_of(&arg->conv) * arg->conv.filters;
    }
    return elements;
}

KB_BENCH(conv2d, "a convolution of images (NHWC), rows of outputs over all PEs, as an implicit GEMM",
         KB_INT(batch, 1024, 1, 1 << 20, "images"), KB_INT(h, 28, 1, 1 << 20, "height of an image"),
         KB_INT(w, 28, 1, 1 << 20, "width of an image"), KB_INT(c, 128, 1, 1 << 20, "channels of an image"),
         KB_INT(filters, 128, 1, 1 << 20, "channels of the result"),
         KB_INT(kernel_h, 3, 1, 1 << 10, "height of the kernel"), KB_INT(kernel_w, 3, 1, 1 << 10, "width of the kernel"),
         KB_INT(stride, 1, 1, 1 << 10, "stride, in both directions"),
         KB_INT(pad, 1, 0, 1 << 10, "lines and columns of zeros on each side"),
         KB_WORD(dtype, "f16 bf16 f32 i8", "dtype of images, filters and result; with i8, the result is i32"),
         TILE_PARAMS)
{
    enum kb_dtype in = kb_dtype(kb_word(dtype)), out = product_dtype(in);
    uint64_t batch = kb_int(batch), h = kb_int(h), stride = kb_int(stride), pad = kb_int(pad);
    struct kb_pes pes = kb_pes("*");
    struct conv conv = {.height = h, .width = kb_int(w), .channels = kb_int(c), .filters = kb_int(filters),
                        .stride = stride, .pad = pad};
    conv.kernel_h = param_at_most("kernel_h", kb_int(kernel_h), h + 2 * pad, "the height of an image with its zeros");
    conv.kernel_w = param_at_most("kernel_w", kb_int(kernel_w), conv.width + 2 * pad,
                                  "the width of an image with its zeros");
    conv.out_h = outputs(h, conv.kernel_h, stride, pad);
    conv.out_w = outputs(conv.width, conv.kernel_w, stride, pad);
    uint64_t rows = batch * conv.out_h, depth = depth_of(&conv);
    uint64_t used = positions_used(h, conv.kernel_h, stride, pad, conv.out_h) * conv.channels
                    * positions_used(conv.width, conv.kernel_w, stride, pad, conv.out_w);
    double most = in == KB_i8 ? 128 : 1;
    struct conv_args arg = {
        .x = kb_tensor_new("x", in, kb_3d(batch * h, conv.width, conv.channels), kb_rows(kb_main_memory(), pes)),
        .w = kb_tensor_new("w", in, kb_2d(conv.filters, depth), kb_copies(kb_main_memory(), pes)),
        .y = kb_tensor_new("y", out, kb_3d(rows, conv.out_w, conv.filters), kb_rows(kb_main_memory(), pes)),
    };
    if (pad)
        arg.zeros = zeros_new(&conv, in, pes);
    if (kb_has_data()) {
        kb_fill_uniform(arg.x, -most, most);
        kb_fill_uniform(arg.w, -most, most);
    }
    arg.conv = conv;
    if (conv.kernel_h == 1 && pad == 0 && h % stride == 0) {    /* images one above the other are one image */
        arg.conv.height = batch * h;
        arg.conv.out_h = rows;
    }
    conv_plan(&arg, in, out, kb_ceil_div(rows, pes.count));

    kb_future launch = kb_launch(conv2d, pes, &arg);
    kb_wait(launch);
    uint64_t size = kb_dtype_bytes(in);
    kb_roofline(launch, &(struct kb_problem){
        .gemm_dtype = in, .macs = rows * conv.out_w * conv.filters * depth, .reads = {arg.w},
        .read_bytes = batch * used * size, .writes = {arg.y} }, &(struct kb_work){
        .hbm_read = all_loaded(&arg, pes, rows) * size,
        .hbm_written = rows * conv.out_w * conv.filters * kb_dtype_bytes(out) });
    kb_expect_close(arg.y, kb_ref_conv2d(arg.x, arg.w, .height = h, .kernel_h = conv.kernel_h,
                                         .kernel_w = conv.kernel_w, .stride = stride, .pad = pad));
}
