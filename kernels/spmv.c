/* spmv.c: y = A x for a sparse matrix A, rows over all PEs, in sliced ELLPACK with sorted rows (SELL-C-sigma).
 *
 * A slice is some rows. Each is padded to the elements of the longest one, and the slice is stored column after column:
 * element j of all its rows, then element j + 1. So a vector unit works on all rows of a slice at once: CSR has a loop
 * over the elements of each row, which are fewer than lanes, and ELL pads all rows of the matrix to the longest one. The
 * rows of a window, which is several slices, are sorted by their lengths, so that those of a slice are nearly as long.
 *
 *     values, columns of a slice  -- load -->  TCM  -- gather: x[column], mul, sum over j -->  sums of its rows
 *     all slices of a window done                   -- gather: sums in the order of rows  -->  rows of y, stored
 *
 * A copy of x lies in each PE's HBM and stays in its TCM; a padded element has the column behind the last one, where the
 * kernel puts a 0. Slices are loaded while others are computed, in pieces of some columns where they do not fit into the
 * TCM. The HBM bounds the kernel where pe_math does three
 * operations on an element in less time than its value and column take to be read. */
#include "collective.h"
#include "transfers.h"
#include <kb/attrs.h>
#include <kb/measure.h>

/* Pieces of slices in the TCM; the part of the TCM that is for the rows of a window, 1 / WINDOW_PART; the bytes of each row: its
 * sum, the sum in its place, that place, and y; how many slices of a PE, whose lengths lie in its TCM, somebody may ask for. */
enum { BUFFERS = 3, WINDOW_PART = 16, WINDOW_ROW_BYTES = 16, SLICES_MOST = 1 << 13 };

struct spmv_args {
    kb_tensor values, columns;                          /* a row for each PE: its slices, one after the other */
    kb_tensor lengths, places;                          /* likewise: of each slice the elements of a row; of each row of y
                                                           where it is among the sorted ones of its window */
    kb_tensor x, y;                                     /* n, a copy per PE; m, split over the PEs */
    uint64_t slice, window;                             /* rows; window: a multiple of slice */
    uint64_t largest;                                   /* elements of a piece of a slice, at most */
    bool pieces;                                        /* some slices have several */
};

/* ---- on a PE */

/* A piece of a slice: `columns` elements of each of its rows, from `column` on; where they begin among all of the PE; the
 * pieces before it. */
struct slice {
    uint64_t number, row, rows, length;
    uint64_t column, columns, first, turn;
};

struct slice_buffer {
    tl_handle loading[2], computed;
    struct tl_shard values, columns;                    /* of one axis */
};

struct spmv_pe {
    struct tl *tl;
    const struct spmv_args *arg;
    struct slice_buffer buffer[BUFFERS];
    struct tl_shard values, columns, x, found, products, sums, more;       /* more: sums of a further piece */
    const int32_t *length;
    uint64_t rows;
    tl_handle last;                                     /* each command of pe_math follows the one before */
};

/* Goes to the next piece of a slice, which ends with its window. Returns false if there is none. */
static bool slice_next(const struct spmv_pe *pe, struct slice *s)
{
    uint64_t window = pe->arg->window, row = s->row + s->rows;
    bool whole = s->column + s->columns == s->length;
    if (whole && row >= pe->rows)
        return false;
    s->first += s->rows * s->columns;
    s->turn += s->rows > 0;
    s->column += s->columns;
    if (whole) {
        s->number += s->rows > 0;
        s->row = row;
        s->rows = kb_min(kb_min(pe->arg->slice, window - row % window), pe->rows - row);
        s->length = (uint64_t)pe->length[s->number];
        s->column = 0;
    }
    s->columns = kb_min(s->length - s->column, pe->arg->largest / s->rows);
    return true;
}

static void load_slice(struct spmv_pe *pe, const struct slice *s)
{
    struct tl *tl = pe->tl;
    struct slice_buffer *buffer = &pe->buffer[s->turn % BUFFERS];
    uint64_t count = s->rows * s->columns;
    if (buffer->computed)
        tl_wait(tl, buffer->computed);
    buffer->loading[0] = buffer->loading[1] = NULL;
    if (count == 0)
        return;
    buffer->loading[0] = tl_load_async(tl, tl_part(tl, buffer->columns, 0, 0, count),
                                       tl_part(tl, pe->columns, 0, s->first, count));
    buffer->loading[1] = tl_load_async(tl, tl_part(tl, buffer->values, 0, 0, count),
                                       tl_part(tl, pe->values, 0, s->first, count));
}

/* Submits a command that follows the last one of pe_math. */
#define then(pe, call) (((pe)->last ? tl_after((pe)->tl, (pe)->last) : (void)0), (void)((pe)->last = (call)))

static struct tl_shard as_slice(struct tl *tl, struct tl_shard buffer, const struct slice *s)
{
    return tl_reshape(tl, tl_part(tl, buffer, 0, 0, s->rows * s->columns), s->columns, s->rows);
}

/* Adds up the products of a piece of a slice, into the places of its rows in the window. */
static void compute_slice(struct spmv_pe *pe, const struct slice *s)
{
    struct tl *tl = pe->tl;
    struct slice_buffer *buffer = &pe->buffer[s->turn % BUFFERS];
    struct tl_shard sums = tl_part(tl, pe->sums, 0, s->row % pe->arg->window, s->rows);
    if (s->length == 0) {
        struct tl_shard zero = tl_part(tl, pe->x, 0, pe->x.shape[0] - 1, 1);
        then(pe, tl_copy_async(tl, sums, zero));
        buffer->computed = pe->last;                    /* it is waited for like others: few are under way */
        return;
    }
    struct tl_shard found = as_slice(tl, pe->found, s), products = as_slice(tl, pe->products, s);
    tl_wait(tl, buffer->loading[0]);
    then(pe, tl_gather_async(tl, found, pe->x, as_slice(tl, buffer->columns, s)));
    tl_wait(tl, buffer->loading[1]);
    then(pe, tl_mul_async(tl, products, found, as_slice(tl, buffer->values, s)));
    buffer->computed = pe->last;
    struct tl_shard to = s->column ? tl_part(tl, pe->more, 0, 0, s->rows) : sums;
    then(pe, tl_sum_async(tl, to, products, 0));
    if (s->column)
        then(pe, tl_add_async(tl, sums, sums, to));
}

/* Stores the rows of a window, in the order of y. */
static void store_window(struct spmv_pe *pe, struct tl_shard y, struct tl_shard places, uint64_t row, uint64_t rows)
{
    struct tl *tl = pe->tl;
    struct tl_shard place = tl_load(tl, tl_part(tl, places, 0, row, rows)), sorted = tl_alloc(tl, KB_f32, rows);
    struct tl_shard out = sorted;
    then(pe, tl_gather_async(tl, sorted, tl_part(tl, pe->sums, 0, 0, rows), place));
    if (y.dtype != KB_f32) {
        out = tl_alloc(tl, y.dtype, rows);
        then(pe, tl_cast_async(tl, out, sorted));
    }
    tl_wait(tl, pe->last);
    tl_store(tl, tl_part(tl, y, 0, row, rows), out);
    if (out.addr != sorted.addr)
        tl_free(tl, out);
    tl_free(tl, sorted);
    tl_free(tl, place);
}

/* This PE's row of a tensor, as one axis. */
static struct tl_shard my_row(struct tl *tl, kb_tensor tensor)
{
    struct tl_shard row = tl_my_shard(tl, tensor);
    return tl_reshape(tl, row, row.shape[1]);
}

KB_KERNEL(spmv, struct spmv_args)
{
    struct tl_shard y = tl_my_shard(tl, arg->y), x = tl_my_shard(tl, arg->x);
    struct spmv_pe pe = {.tl = tl, .arg = arg, .rows = y.shape[0]};
    if (pe.rows == 0)
        return;
    struct tl_shard places = my_row(tl, arg->places), lengths = my_row(tl, arg->lengths);
    pe.length = tl_data(tl, tl_load(tl, lengths));
    pe.values = my_row(tl, arg->values);
    pe.columns = my_row(tl, arg->columns);
    uint64_t n = x.shape[0];
    pe.x = tl_alloc(tl, x.dtype, n + 1);
    tl_handle loading = tl_load_async(tl, tl_part(tl, pe.x, 0, 0, n), x);
    pe.found = tl_alloc(tl, x.dtype, arg->largest);
    pe.products = tl_alloc(tl, KB_f32, arg->largest);
    pe.sums = tl_alloc(tl, KB_f32, kb_min(arg->window, pe.rows));
    if (arg->pieces)
        pe.more = tl_alloc(tl, KB_f32, kb_min(arg->slice, pe.rows));
    struct slice at = {0}, ahead = {0};
    bool more = slice_next(&pe, &ahead);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        pe.buffer[i].values = tl_alloc(tl, x.dtype, arg->largest);
        pe.buffer[i].columns = tl_alloc(tl, KB_i32, arg->largest);
    }
    for (; more && ahead.turn + 1 < BUFFERS; more = slice_next(&pe, &ahead))
        load_slice(&pe, &ahead);
    tl_wait(tl, loading);
    struct tl_shard first = tl_part(tl, pe.x, 0, 0, 1);
    then(&pe, tl_sub_async(tl, tl_part(tl, pe.x, 0, n, 1), first, first));       /* 0, of finite numbers */
    while (slice_next(&pe, &at)) {
        compute_slice(&pe, &at);
        if (more) {
            load_slice(&pe, &ahead);
            more = slice_next(&pe, &ahead);
        }
        uint64_t end = at.row + at.rows, window = at.row / arg->window * arg->window;
        if (at.column + at.columns == at.length && (end % arg->window == 0 || end == pe.rows))
            store_window(&pe, y, places, window, end - window);
    }
}

/* ---- the bench: a random matrix, and its slices */

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 32;
}

/* The lengths of rows, drawn one after the other, as often as somebody goes through the matrix: they are kept for a window. */
struct row_lengths {
    uint64_t state, row, n;
    double mean;
};

/* The elements of the next row: half to one and a half times the mean, and none in every hundredth row or so. The first row
 * has one at least: a result of zeros alone could not be verified. */
static uint64_t next_length(struct row_lengths *lengths)
{
    double share = 0.5 + (double)draw(&lengths->state) / 4294967296.0;
    uint64_t length = draw(&lengths->state) % 100 ? kb_min((uint64_t)(lengths->mean * share + 0.5), lengths->n) : 0;
    return lengths->row++ ? length : kb_max(length, 1);
}

/* A row in a window: its number and its elements. */
struct sorted_row {
    uint64_t row, length;
};

/* A matrix in slices, as the tensors have it. */
struct sliced {
    uint64_t pes, m, n, slice, window;
    uint64_t slices, elements, largest;                 /* of a PE, at most; of a slice */
    uint64_t in_rows, stored;                           /* elements of all rows; of all slices */
    uint64_t longest;                                   /* elements of a row, at most */
    struct row_lengths rows;
    struct sorted_row *drawn, *sorted;                  /* the rows of a window: as they come, in the order of slices */
    uint64_t *begin;                                    /* for sort_window */
    int32_t *lengths, *places, *columns;                /* places, columns: NULL if nothing is computed, times do not depend
                                                           on them */
};

/* A window under way: its rows in those of its PE; slices and elements of the PE before it. */
struct window {
    uint64_t pe, row, rows, slice, at;
    struct indices own;                                 /* the rows of the PE */
    struct row_lengths lengths;
};

/* Sorts rows by their lengths, the longest first: counts those of each length, which tells where they begin. */
static void sort_window(const struct sliced *a, uint64_t rows)
{
    for (uint64_t length = 0; length <= a->longest; length++)
        a->begin[length] = 0;
    for (uint64_t i = 0; i < rows; i++)
        a->begin[a->drawn[i].length]++;
    for (uint64_t length = a->longest + 1, at = 0; length-- > 0;) {
        uint64_t count = a->begin[length];
        a->begin[length] = at;
        at += count;
    }
    for (uint64_t i = 0; i < rows; i++)
        a->sorted[a->begin[a->drawn[i].length]++] = a->drawn[i];
}

static struct window before_windows(const struct sliced *a)
{
    return (struct window){.pe = UINT64_MAX, .lengths = a->rows};
}

/* Goes to the next window of this PE, or to the first one of the next PE that has rows, and puts its rows into a->sorted. Returns
 * false if there is none. */
static bool next_window(const struct sliced *a, struct window *w)
{
    w->row += w->rows;
    while (w->row >= w->own.count) {
        if (++w->pe == a->pes)
            return false;
        w->own = block_range(a->m, a->pes, w->pe);
        w->row = w->slice = w->at = 0;
    }
    w->rows = kb_min(a->window, w->own.count - w->row);
    for (uint64_t i = 0; i < w->rows; i++)
        a->drawn[i] = (struct sorted_row){w->own.first + w->row + i, next_length(&w->lengths)};
    sort_window(a, w->rows);
    return true;
}

/* Finds the sizes of the slices. */
static void measure_slices(struct sliced *a)
{
    for (struct window w = before_windows(a); next_window(a, &w);) {
        for (uint64_t i = 0; i < w.rows; i += a->slice, w.slice++) {
            uint64_t all = kb_min(a->slice, w.rows - i) * a->sorted[i].length;
            w.at += all;
            a->stored += all;
            a->largest = kb_max(a->largest, all);
        }
        a->slices = kb_max(a->slices, w.slice);
        a->elements = kb_max(a->elements, w.at);
    }
}

/* Draws the columns, one in each of as many parts of a row as it has elements, and writes what the kernel reads. */
static void fill_slices(struct sliced *a, uint64_t state)
{
    uint64_t most = block_longest(a->m, a->pes);
    for (struct window w = before_windows(a); next_window(a, &w);)
        for (uint64_t first = 0, rows; first < w.rows; first += rows, w.slice++) {
            const struct sorted_row *sorted = a->sorted + first;
            uint64_t begin = w.pe * a->elements + w.at;
            rows = kb_min(a->slice, w.rows - first);
            a->lengths[w.pe * a->slices + w.slice] = (int32_t)sorted->length;
            for (uint64_t i = 0; a->columns && i < rows; i++) {
                a->places[w.pe * most + sorted[i].row - w.own.first] = (int32_t)(first + i);
                for (uint64_t j = 0, all = sorted[i].length; j < sorted->length; j++) {
                    uint64_t low = j * a->n / kb_max(all, 1), high = (j + 1) * a->n / kb_max(all, 1);
                    a->columns[begin + j * rows + i] = (int32_t)(j < all ? low + draw(&state) % (high - low) : a->n);
                }
            }
            w.at += rows * sorted->length;
        }
}

/* y, by rows. */
static kb_ref expected(const struct sliced *a, kb_tensor values, kb_tensor x)
{
    if (!kb_has_data())
        return kb_ref_given(NULL, kb_1d(a->m));
    double *y = kb_array(double, a->m), *of_x = kb_array(double, a->n + 1), *value = kb_array(double, a->elements);
    kb_peek_many(x, 0, a->n, of_x);
    for (struct window w = before_windows(a); next_window(a, &w);) {
        const int32_t *column = a->columns + w.pe * a->elements;
        if (w.row == 0)
            kb_peek_many(values, w.pe * a->elements, a->elements, value);
        for (uint64_t first = 0, rows; first < w.rows; first += rows) {
            const struct sorted_row *sorted = a->sorted + first;
            rows = kb_min(a->slice, w.rows - first);
            for (uint64_t j = 0; j < sorted->length; j++)
                for (uint64_t i = 0; i < rows; i++, w.at++)
                    y[sorted[i].row] += column[w.at] < (int64_t)a->n ? value[w.at] * of_x[column[w.at]] : 0;
        }
    }
    return kb_ref_given(y, kb_1d(a->m));
}

/* The elements of f32 that pe_math works on in a cycle; 1 if it has none. */
static uint64_t lanes_of_sums(void)
{
    uint64_t many = 1 << 20, many_ps = kb_math_ps(KB_f32, many);
    return many_ps ? kb_max(mul_div(many, kb_math_ps(KB_f32, 1), many_ps), 1) : 1;
}

/* The rows of a window: whole slices, one at least. */
static uint64_t window_of(const struct sliced *a)
{
    uint64_t rows = kb_min(block_longest(a->m, a->pes), tcm_allocatable_bytes() / WINDOW_PART / WINDOW_ROW_BYTES);
    return kb_max(rows / a->slice, 1) * a->slice;
}

/* The elements of a piece for which a TCM has room beside x, lengths, sums and what stores a window; 0: none. */
static uint64_t piece_room(const struct sliced *a, uint64_t size)
{
    uint64_t rows = block_longest(a->m, a->pes), window = kb_min(a->window, rows), each = BUFFERS * (size + 4) + size + 4;
    uint64_t slices = kb_ceil_div(rows, a->window) * kb_ceil_div(window, a->slice);
    uint64_t fixed = tcm_padded((a->n + 1) * size) + tcm_padded(4 * slices) + 3 * tcm_padded(4 * window)
                     + tcm_padded(size * window) + tcm_padded(4 * kb_min(a->slice, rows)) + (2 * BUFFERS + 2) * 64;
    uint64_t room = tcm_allocatable_bytes();
    return room > fixed ? (room - fixed) / each : 0;
}

static kb_tensor written(const char *name, struct kb_pes pes, uint64_t count, const int32_t *data)
{
    kb_tensor tensor = kb_tensor_new(name, KB_i32, kb_2d(pes.count, count), kb_rows(kb_main_memory(), pes));
    kb_write(tensor, data);
    return tensor;
}

KB_BENCH(spmv, "y = A x for a sparse matrix in slices (SELL), rows over all PEs",
         KB_INT(m, 262144, 1, 1 << 26, "rows of A, elements of y"),
         KB_INT(n, 65536, 1, 1 << 26, "columns of A, elements of x"),
         KB_REAL(density, 0.0005, 0, 1, "part of the elements that are not 0, on average"),
         KB_INT(seed, 1, 0, UINT32_MAX, "which random matrix"),
         KB_WORD(dtype, "f32 f16 bf16", "dtype of A, x and y; products are added up in f32"),
         KB_INT(slice, 0, 0, 1 << 20, "rows of a slice; 0: chosen"))
{
    enum kb_dtype dtype = kb_dtype(kb_word(dtype));
    struct kb_pes pes = kb_pes("*");
    if (dtype != KB_f32 && !kb_math_ps(KB_i32, 1))
        kb_refuse("pe_math has no lanes for i32, with which columns of %s are looked up: take dtype=f32, or a machine with "
                  "pe_math.attrs.lanes for i32", kb_word(dtype));
    uint64_t size = kb_dtype_bytes(dtype), room = tcm_allocatable_bytes();
    struct sliced a = {.pes = pes.count, .m = kb_int(m)};
    a.n = param_at_most("n", kb_int(n), kb_max(room / 2 / size, 2) - 1, "what of x fits into half of a TCM");
    uint64_t rows = block_longest(a.m, a.pes);
    a.rows = (struct row_lengths){.state = kb_int(seed), .n = a.n, .mean = kb_real(density) * (double)a.n};
    struct row_lengths all = a.rows;
    while (all.row < a.m) {
        uint64_t length = next_length(&all);
        a.in_rows += length;
        a.longest = kb_max(a.longest, length);
    }
    /* Beside x and the rows of a window, three quarters of what is left hold values, columns, what is found and products. */
    uint64_t left = (room - (a.n + 1) * size - room / WINDOW_PART) / 4 * 3, lanes = lanes_of_sums();
    uint64_t fit = kb_max(left / (BUFFERS * (size + 4) + size + 4) / a.longest, 1);
    uint64_t chosen = kb_clamp(kb_ceil_div(rows / 4, lanes) * lanes, 1, kb_min(fit, rows));
    a.slice = kb_int(slice) ? kb_min(kb_max(kb_int(slice), kb_ceil_div(rows, SLICES_MOST)), kb_min(fit, rows)) : chosen;
    a.window = window_of(&a);
    while (piece_room(&a, size) < kb_min(a.slice, rows) && a.slice > 1) {
        a.slice = kb_ceil_div(a.slice, 2);
        a.window = window_of(&a);
    }
    param_used("slice", kb_int(slice), a.slice, "the rows of a PE, 8192 slices of it, or what fits into the TCM");
    if (piece_room(&a, size) == 0)
        kb_refuse("a TCM, in which kernels have %llu bytes, does not hold x of %llu bytes, and the lengths and sums of a PE's "
                  "%llu rows: make n or m smaller", (unsigned long long)room, (unsigned long long)((a.n + 1) * size),
                  (unsigned long long)rows);
    a.drawn = kb_array(struct sorted_row, kb_min(a.window, rows));
    a.sorted = kb_array(struct sorted_row, kb_min(a.window, rows));
    a.begin = kb_array(uint64_t, a.longest + 1);
    measure_slices(&a);
    a.elements = kb_max(a.elements, 1);
    a.lengths = kb_array(int32_t, a.pes * a.slices);
    if (kb_has_data()) {
        a.places = kb_array(int32_t, a.pes * rows);
        a.columns = kb_array(int32_t, a.pes * a.elements);
    }
    fill_slices(&a, all.state);

    uint64_t most = piece_room(&a, size);
    struct spmv_args arg = {
        .values = kb_tensor_new("values", dtype, kb_2d(a.pes, a.elements), kb_rows(kb_main_memory(), pes)),
        .columns = written("columns", pes, a.elements, a.columns),
        .lengths = written("lengths", pes, a.slices, a.lengths), .places = written("places", pes, rows, a.places),
        .x = kb_tensor_new("x", dtype, kb_1d(a.n), kb_copies(kb_main_memory(), pes)),
        .y = kb_tensor_new("y", dtype, kb_1d(a.m), kb_rows(kb_main_memory(), pes)),
        .slice = a.slice, .window = a.window, .largest = kb_clamp(a.largest, 1, most), .pieces = a.largest > most,
    };
    kb_fill_uniform(arg.values, -1, 1);
    kb_fill_uniform(arg.x, -1, 1);
    kb_ref want = expected(&a, arg.values, arg.x);
    kb_future launch = kb_launch(spmv, pes, &arg);
    kb_wait(launch);
    kb_roofline(launch, &(struct kb_problem){ .reads = {arg.x}, .read_bytes = a.in_rows * (size + 4),
                                             .writes = {arg.y} },
                &(struct kb_work){ .hbm_read = a.stored * (size + 4) + a.m * 4 + kb_min(a.m, pes.count) * a.n * size,
                                   .hbm_written = a.m * size });
    kb_expect_close(arg.y, want);
}
