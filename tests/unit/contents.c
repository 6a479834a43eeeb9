/* contents.c: what memories hold for kernels, against one byte per byte: random copies, results, fills and intervals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unnamed.h"
#include "kb/arith.h"
#include "machine/emitted.h"
#include "store/contents.h"
#include "store/piece.h"
#include "store/places.h"
#include "store/store.h"
#include "open_file.h"
#include "tap.h"

const struct shape kb_shape = {.sips = 1, .cubes = 1, .pes = 4, .slices = 4, .srams = 1};
const struct attrs kb_attrs = {.hbm_slice_bytes = 1 << 20, .sram_bytes = 1 << 20, .pe_tcm_size_bytes = 1 << 20};

enum { MEMORIES = 3, SIZE = 900, MAKERS = 4, STEPS = 20000 };

static struct {
    uint8_t value[SIZE], maker[SIZE];                   /* maker 0: the byte is known */
    uint32_t operation[SIZE];                           /* of the maker */
} model[MEMORIES];

/* Makers differ in one field each. */
static const struct maker maker_of[MAKERS] = {
    {NULL, {NULL, NULL, 0}}, {"kernel", {"exp", "a.c", 3}}, {"kernel", {"add", "a.c", 3}}, {"kernel", {"exp", "a.c", 4}},
};

/* ---- views */

/* A shape of at most SIZE / 2 bytes. */
static struct view any_shape(void)
{
    struct view view = {.dtype = (enum dtype[]){DTYPE_u8, DTYPE_i16, DTYPE_f32}[below(3)], .rank = 1 + below(3),
                        .shape = {1, 1, 1, 1}};
    uint64_t most = SIZE / 2 / 4;
    for (uint32_t axis = 0; axis < view.rank; axis++) {
        uint64_t longest = below(4) ? 12 : 2;
        view.shape[axis] = 1 + below(most < longest ? most : longest);
        most /= view.shape[axis];
    }
    return view;
}

/* Memory 0 mostly holds what fills put there, in few pieces. */
static uint32_t written_memory(void)
{
    return below(40) ? 1 + below(MEMORIES - 1) : 0;
}

static uint32_t read_memory(void)
{
    return below(2) ? below(MEMORIES) : 0;
}

/* Somewhere, its axes in any order, with or without gaps. */
static struct view placed(const struct view *shape, uint32_t memory)
{
    for (;;) {
        struct view view = *shape;
        uint32_t order[] = {0, 1, 2};
        uint64_t next = 1, gap = below(2) ? below(5) : 0, size = dtype_bytes[view.dtype];
        for (uint32_t i = 2; i > 0 && below(2); i--) {
            uint32_t other = below(i + 1), axis = order[i];
            order[i] = order[other];
            order[other] = axis;
        }
        for (uint32_t i = 3; i-- > 0;) {
            uint32_t axis = order[i];
            view.stride[axis] = view.shape[axis] > 1 ? next : 0;
            next = next * view.shape[axis] + (view.shape[axis] > 1 ? gap : 0);
        }
        view.memory = memory;
        if (view_span(&view) > SIZE)
            continue;
        view.offset = below(3) ? below((SIZE - view_span(&view)) / size + 1) * size : below(SIZE - view_span(&view) + 1);
        return view;
    }
}

/* A target as a kernel's loop has it: some rows and columns of one matrix, so that targets hide one another. */
static struct view target(const struct view *shape)
{
    enum { ROW = 18, PLACES = 3, ROWS = 5 };
    if (shape->rank != 2 || below(2))
        return placed(shape, written_memory());
    struct view view = *shape;
    view.memory = MEMORIES - 1;
    view.stride[0] = ROW + 3 * below(2);
    view.stride[1] = 1;
    view.offset = (below(ROWS) * view.stride[0] + below(PLACES)) * dtype_bytes[view.dtype];
    return view.shape[1] > ROW || view.offset + view_span(&view) > SIZE ? placed(shape, written_memory()) : view;
}

/* Sets the offset of each byte of a view, in the order of elements. */
static void each_byte(const struct view *view, uint16_t *at)
{
    uint64_t size = dtype_bytes[view->dtype], count = 0;
    for (uint64_t i = 0; i < view->shape[0]; i++)
        for (uint64_t j = 0; j < view->shape[1]; j++)
            for (uint64_t k = 0; k < view->shape[2]; k++)
                for (uint64_t byte = 0; byte < size; byte++)
                    at[count++] =
                        view->offset + (i * view->stride[0] + j * view->stride[1] + k * view->stride[2]) * size + byte;
}

/* ---- steps */

static void copy_elements(const struct view *to, const struct view *from)
{
    static uint8_t value[SIZE], maker[SIZE];
    static uint32_t operation[SIZE];
    static uint16_t from_at[SIZE], to_at[SIZE];
    contents_copy(to, from);
    each_byte(from, from_at);
    each_byte(to, to_at);
    for (uint64_t i = 0; i < view_bytes_of(to); i++) {
        value[i] = model[from->memory].value[from_at[i]];
        maker[i] = model[from->memory].maker[from_at[i]];
        operation[i] = model[from->memory].operation[from_at[i]];
    }
    for (uint64_t i = 0; i < view_bytes_of(to); i++) {
        model[to->memory].value[to_at[i]] = value[i];
        model[to->memory].maker[to_at[i]] = maker[i];
        model[to->memory].operation[to_at[i]] = operation[i];
    }
}

static void copy(void)
{
    struct view shape = any_shape(), from = placed(&shape, read_memory()), to = target(&shape);
    if (!view_overlap(&to, &from) || view_runs_of_two(&to, &from) == 1)
        copy_elements(&to, &from);
}

/* To some rows and columns of a matrix, or every other column, which hide parts of those before. */
static void copy_window(void)
{
    enum { PITCH = 24 };
    struct view shape = {.dtype = below(5) ? DTYPE_i16 : DTYPE_u8, .rank = 2, .shape = {1 + below(8), 1 + below(8), 1, 1}};
    struct view from = placed(&shape, 0), to = shape;
    to.memory = 1;
    to.stride[0] = PITCH;
    to.stride[1] = below(3) ? 1 : 2;
    to.offset = (below(10) * PITCH + below(9)) * dtype_bytes[to.dtype];
    copy_elements(&to, &from);
}

static void compute_elements(const struct view *to, uint8_t maker)
{
    static uint16_t at[SIZE];
    static uint32_t operation;
    contents_compute(to, &maker_of[maker], ++operation);
    each_byte(to, at);
    for (uint64_t i = 0; i < view_bytes_of(to); i++) {
        model[to->memory].maker[at[i]] = maker;
        model[to->memory].operation[at[i]] = operation;
    }
}

static void compute(void)
{
    struct view shape = any_shape(), to = target(&shape);
    compute_elements(&to, 1 + below(MAKERS - 1));
}

/* A result or a copy of some rows and columns of a matrix, which often continue others along an axis until they cover it, or
 * hide parts of them. A copy is of the same place in memory 0 or 2 or one nearby, or of rows for columns. */
static void set_window(void)
{
    enum { PITCH = 12, ROWS = 5, COLS = 4, GRID = 3 };
    struct view to = {.memory = 1, .dtype = below(9) ? DTYPE_i16 : DTYPE_u8, .rank = 2, .shape = {ROWS, COLS, 1, 1}};
    uint64_t row = below(GRID) * ROWS, col = below(GRID) * COLS;
    if (!below(4))
        to.shape[1] = 1 + below(6);
    if (!below(3)) {
        to.shape[0] = 1 + below(ROWS);
        row += below(2) ? ROWS - to.shape[0] : 0;
    }
    to.stride[0] = below(9) ? PITCH : PITCH - 4;
    to.stride[1] = below(9) ? 1 : 2;
    for (int axis = 0; axis < 2; axis++)
        if (to.shape[axis] == 1)
            to.stride[axis] = below(2);                 /* nothing steps along it */
    to.offset = ((row + !below(9)) * PITCH + col + !below(9)) * dtype_bytes[to.dtype];
    if (below(2)) {
        compute_elements(&to, 1 + !below(3));
        return;
    }
    struct view from = to;
    from.memory = below(2) ? 0 : 2;
    if (!below(6))
        from.offset += dtype_bytes[to.dtype];
    if (!below(6))
        from.stride[0] -= below(PITCH / 2);
    if (!below(3))
        from.stride[0] = 1, from.stride[1] = PITCH;
    copy_elements(&to, &from);
}

/* Makes a tensor of two shards: the left columns and the right ones. It is never freed. */
static struct tensor *tensor_new(enum dtype dtype, uint64_t rows, uint64_t columns)
{
    struct tensor *tensor = calloc(1, sizeof *tensor);
    tensor->dtype = dtype;
    tensor->dims = (struct kb_dims){.rank = 2, .size = {rows, columns, 1, 1}};
    tensor->place.split = KB_COLS;
    tensor->elements = rows * columns;
    tensor->shards = 2;
    tensor->shard = calloc(2, sizeof *tensor->shard);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t first = i ? columns / 2 : 0, width = i ? columns - columns / 2 : columns / 2;
        tensor->shard[i] = (struct shard){
            .memory = read_memory(), .elements = rows * width,
            .view = {.rank = 2, .shape = {rows, width, 1, 1}, .first = {0, first}, .stride = {width, 1}}};
        uint64_t bytes = rows * width * dtype_bytes[dtype];
        tensor->shard[i].offset = below(SIZE - bytes + 1);
    }
    return tensor;
}

/* Its values are those that fill_write puts into other memories of the store; or, if nothing may be put there, those that
 * one fill_read gives. */
static void fill(bool stored)
{
    static struct tensor *tensors[8];
    static uint8_t given[SIZE], values[SIZE];
    struct tensor **tensor = &tensors[below(8)], elsewhere;
    struct shard shards[2];
    if (!*tensor)
        *tensor = tensor_new((enum dtype[]){DTYPE_u8, DTYPE_f16, DTYPE_f32}[below(3)], 1 + below(8), 2 + below(9));
    struct fill fill = {.tensor = *tensor, .kind = below(2) ? KB_UNIFORM : KB_GIVEN, .x = 0, .y = 100, .given = given};
    for (int i = 0; i < SIZE; i++)
        given[i] = (uint8_t)rand();
    contents_fill(&fill);
    elsewhere = **tensor;
    elsewhere.shard = memcpy(shards, elsewhere.shard, sizeof shards);
    for (uint32_t i = 0; i < 2; i++)
        shards[i].memory = MEMORIES + i;
    if (stored)
        fill_write(&(struct fill){&elsewhere, fill.kind, fill.x, fill.y, given});
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t bytes = shards[i].elements * dtype_bytes[elsewhere.dtype], at = shards[i].offset;
        fill_read(&fill, &shards[i], 0, bytes, values);
        uint32_t memory = (*tensor)->shard[i].memory;
        memcpy(model[memory].value + at, stored ? store_at(MEMORIES + i, at) : values, bytes);
        memset(model[memory].maker + at, 0, bytes);
    }
}

/* Gives memory 0 one piece. */
static void fill_all(void)
{
    static struct shard shard = {.elements = SIZE, .view = {.rank = 2, .shape = {1, SIZE, 1, 1}, .stride = {SIZE, 1}}};
    static struct tensor tensor = {.dtype = DTYPE_u8, .dims = {.rank = 2, .size = {1, SIZE, 1, 1}}, .elements = SIZE,
                                   .shard = &shard, .shards = 1};
    for (int i = 0; i < SIZE; i++)
        model[0].value[i] = (uint8_t)rand();
    memset(model[0].maker, 0, SIZE);
    contents_fill(&(struct fill){.tensor = &tensor, .kind = KB_GIVEN, .given = model[0].value});
}

/* The data pass has run: the store has new bytes, and nothing is pending. */
static void interval(void)
{
    for (uint32_t memory = 0; memory < MEMORIES; memory++) {
        store_reach(memory, SIZE);
        for (int i = 0; i < SIZE; i++)
            ((uint8_t *)store_at(memory, 0))[i] = model[memory].value[i] = (uint8_t)rand();
        memset(model[memory].maker, 0, SIZE);
    }
    contents_begin_interval();
}

/* How many pieces there are, if none is a patch. */
static uint64_t pieces_held(void)
{
    return pieces_bytes() / sizeof(struct piece);
}

static bool many;                                       /* so many results are pending that memory may name another one */

static bool look(uint32_t memory, uint64_t at, uint64_t n)
{
    static uint8_t bytes[SIZE];
    struct pending first;
    uint64_t want = at;
    while (want < at + n && !model[memory].maker[want])
        want++;
    bool is_pending = contents_first_pending(memory, at, n, &first);
    bool known_zero = contents_known_zero(memory, at, n), zero = true;
    if (want < at + n)
        return is_pending && first.at == want && !known_zero
               && (many || (first.maker == maker_like(maker_of[model[memory].maker[want]])
                            && first.operation == model[memory].operation[want]));
    contents_read(memory, at, n, bytes);
    for (uint64_t i = 0; i < n; i++)
        zero &= bytes[i] == 0;
    return !is_pending && !memcmp(bytes, model[memory].value + at, n) && (zero || !known_zero);
}

static bool look_somewhere(void)
{
    uint64_t at = below(SIZE);
    return look(below(MEMORIES), at, 1 + below(SIZE - at));
}

static bool look_everywhere(void)
{
    bool good = true;
    for (uint32_t memory = 0; memory < MEMORIES; memory++)
        for (uint64_t at = 0; at < SIZE; at += 10)
            good &= look(memory, at, 10);
    return good;
}

/* Puts `count` results of `bytes` each side by side. `calls` calls make them in turn, whose lines all have the same hash; the
 * operations are 0, 1 and so on. */
static void add_results(uint32_t memory, uint32_t count, uint64_t bytes, uint32_t calls)
{
    for (uint32_t i = 0; i < count; i++) {
        struct view to = view_bytes(memory, bytes * i, bytes);
        contents_compute(&to, &(struct maker){"kernel", {"exp", "a.c", i % calls * MAKER_CHAINS}}, i);
    }
}

/* `eager`: looks at a few bytes after each step, so that little is deferred; otherwise at all of them, but seldom. With
 * or without bytes in the store. */
static void random_steps(bool stored, bool eager, const char *name)
{
    bool good = true;
    memset(model, 0, sizeof model);
    store_reset();
    if (many)
        add_results(MEMORIES, 50000, 8, 2);
    for (int step = 0; step < STEPS && good; step++) {
        uint64_t kind = below(stored ? 200 : 199);
        if (kind < 140)
            copy();
        else if (kind < 180)
            compute();
        else if (kind < 199)
            fill(stored);
        else
            interval();
        good = eager ? look_somewhere() : below(12) > 0 || look_everywhere();
    }
    expect(good && look_everywhere(), name);
}

/* A copy of the whole memory now and then shares its patches. */
static void windows(const char *name)
{
    struct view all = view_bytes(0, 0, SIZE), from = view_bytes(1, 0, SIZE), to = view_bytes(2, 0, SIZE);
    bool good = true;
    memset(model, 0, sizeof model);
    store_reset();
    if (many)
        add_results(MEMORIES, 50000, 8, 2);
    for (int step = 0; step < STEPS && good; step++) {
        if (step % 100 == 0)
            fill_all();
        if (many ? below(8) : below(2))
            set_window();
        else if (below(16))
            copy_window();
        else
            copy_elements(&to, &from);
        if (!below(12)) {
            good = look_everywhere();
            copy_elements(&from, &all);                 /* few pieces again */
        }
    }
    expect(good && look_everywhere(), name);
}

/* A table of one row of bytes, all in memory 0. */
static struct tensor *table_new(uint64_t bytes)
{
    static struct shard shard;
    static struct tensor tensor;
    shard = (struct shard){.elements = bytes, .view = {.rank = 2, .shape = {1, bytes, 1, 1}, .stride = {bytes, 1}}};
    tensor = (struct tensor){.dtype = DTYPE_u8, .dims = {.rank = 2, .size = {1, bytes, 1, 1}}, .elements = bytes, .shard = &shard,
                             .shards = 1};
    return &tensor;
}

/* So many steps between two looks that what waits does not stay in memory. Memories hold some of it at most. */
static void unread(uint64_t most_bytes, const char *name)
{
    enum { LOOKS = 2, UNREAD = 80000 };
    const uint64_t usual = contents_most_bytes;
    bool good = true, filed = true, closed = true;
    memset(model, 0, sizeof model);
    store_reset();
    contents_most_bytes = most_bytes;
    for (int round = 0; round < LOOKS && good; round++) {
        fill_all();
        for (int step = 0; step < UNREAD; step++)
            if (below(3))
                copy();
            else
                compute();
        filed &= file_bytes() > 0;
        good = look_everywhere();
        closed &= file_bytes() < 0;
    }
    expect(good, name);
    expect(filed && closed, "a file has what waits until somebody looks");
    contents_most_bytes = usual;
    contents_reset();
}

/* Copies of rows that all differ would be very many pieces: memories hold some, and the rest waits. */
static void most_bytes(void)
{
    enum { ROWS = 400000, ROW = 16, SPREAD = 1 << 20 };
    uint64_t held = 0;
    store_reset();
    contents_fill(&(struct fill){.tensor = table_new(ROW * SPREAD), .kind = KB_UNIFORM, .x = 0, .y = 100});
    for (uint64_t row = 0; row < ROWS; row++) {
        struct view to = view_bytes(1, 2 * row * ROW, ROW), from = view_bytes(0, below(SPREAD) * ROW, ROW);
        contents_copy(&to, &from);
        held = kb_max(held, pieces_bytes());
    }
    expect(held > contents_most_bytes / 2 && held < contents_most_bytes * 5 / 4, "pieces that nobody looks at take %u bytes",
           (unsigned)held);
    contents_known_zero(1, 0, 1);
    expect(pieces_held() >= ROWS && file_bytes() < 0, "there are %u once somebody looks", (unsigned)pieces_held());
    unnamed_allowed = false;
    for (uint64_t row = 0; row < ROWS / 2; row++) {
        struct view to = view_bytes(2, 2 * row * ROW, ROW), from = view_bytes(1, 2 * row * ROW, ROW);
        contents_copy(&to, &from);
    }
    expect(pieces_held() > ROWS * 5 / 4 && file_bytes() < 0, "all are pieces if there is no file: %u", (unsigned)pieces_held());
    unnamed_allowed = true;
    contents_reset();
    expect(pieces_bytes() == 0, "none is left");
}

/* Places a view without gaps, its axes in any order, in the first SIZE bytes. Returns the axis of the longest stride. */
static uint32_t place_densely(struct view *view)
{
    uint64_t next = 1, first = below(view->rank);
    uint32_t axis = 0;
    for (uint32_t i = 0; i < view->rank; i++) {
        axis = (first + (below(2) ? i : view->rank - i)) % view->rank;
        if (!view->stride[axis]) {
            view->stride[axis] = next;
            next *= view->shape[axis];
        }
    }
    for (uint32_t i = 0; i < view->rank; i++)
        if (!view->stride[i]) {
            view->stride[axis = i] = next;
            next *= view->shape[i];
        }
    view->offset = below(SIZE - view_span(view) + 1);
    return axis;
}

/* Elements of memory 1, some of which lie in the steps of `like`, or nearly so. */
static struct view part_of(const struct view *like)
{
    for (;;) {
        struct view view = {.memory = 1, .dtype = below(6) ? like->dtype : DTYPE_u8, .rank = 1 + below(3), .shape = {1, 1, 1, 1}};
        for (uint32_t i = 0; i < view.rank; i++) {
            view.shape[i] = 1 + below(6);
            view.stride[i] = like->stride[below(like->rank)] * (1 + below(2)) + !below(8);
        }
        view.offset = like->offset + below(like->shape[0] * like->shape[1]) * dtype_bytes[like->dtype] + !below(8);
        if (view.offset + view_span(&view) <= SIZE)
            return view;
    }
}

/* Copies of copies that put elements in another order. The first are often side by side, and continue one another. */
static void orders(void)
{
    struct view all = view_bytes(0, 0, SIZE), ones = view_bytes(1, 0, SIZE);
    bool good = true;
    memset(model, 0, sizeof model);
    store_reset();
    for (int round = 0; round < STEPS / 2 && good; round++) {
        if (round % 8 == 0) {
            fill_all();
            copy_elements(&ones, &all);
        }
        struct view to = any_shape(), from = placed(&to, 0);
        to.memory = 1;
        uint32_t axis = place_densely(&to);
        if (!below(4))
            to = placed(&to, 1);
        copy_elements(&to, &from);
        for (int i = below(3); i > 0; i--) {
            bool before = below(2);
            uint64_t span = view_span(&to), away = from.stride[axis] * from.shape[axis] * dtype_bytes[to.dtype];
            if (!below(6))
                fill_all();
            if (!below(4))
                span -= to.stride[axis] * dtype_bytes[to.dtype];
            to.offset += before ? -span : span;
            from.offset += (before ? -away : away) + !below(8);
            if (to.offset <= SIZE && to.offset + view_span(&to) <= SIZE && from.offset <= SIZE && from.offset + view_span(&from) <= SIZE)
                copy_elements(&to, &from);
        }
        to.offset = to.offset + view_span(&to) <= SIZE && to.offset < SIZE ? to.offset : 0;
        for (int i = 0; i < 3; i++) {
            struct view part = part_of(&to), copy = placed(&part, 2);
            copy_elements(&copy, &part);
        }
        if (!below(3))
            for (uint64_t at = 0; at < SIZE && good; at += 10)
                good = look(2, at, 10) && (below(4) || look(1, at, 10));
    }
    expect(good && look_everywhere(), "copies that order elements anew give what a byte at a time gives");
}

static struct view bytes_at(uint32_t memory, uint64_t offset, uint64_t rows, uint64_t columns, uint64_t row, uint64_t column)
{
    return (struct view){.memory = memory, .dtype = DTYPE_u8, .rank = 2, .offset = offset, .shape = {rows, columns, 1, 1},
                         .stride = {row, column}};
}

static void copy_bytes_of(struct view to, struct view from)
{
    copy_elements(&to, &from);
}

/* Copies that are neighbours and yet hide one another, or have parts of one patch side by side. */
static void neighbours(void)
{
    memset(model, 0, sizeof model);
    store_reset();
    fill_all();
    copy_bytes_of(bytes_at(1, 100, 5, 3, 4, 1), bytes_at(0, 0, 5, 3, 20, 1));
    copy_bytes_of(bytes_at(1, 103, 5, 3, 4, 1), bytes_at(0, 3, 5, 3, 20, 1));
    expect(look_everywhere(), "a copy may hide part of one that it continues");
    copy_bytes_of(bytes_at(1, 300, 5, 1, 12, 0), bytes_at(0, 200, 5, 1, 12, 0));
    copy_bytes_of(bytes_at(1, 301, 5, 1, 12, 1), bytes_at(0, 201, 5, 1, 12, 1));
    expect(look_everywhere(), "columns of one element continue one another");
    copy_bytes_of(bytes_at(1, 400, 8, 8, 8, 1), bytes_at(0, 0, 8, 8, 1, 8));
    copy_bytes_of(bytes_at(2, 200, 1, 32, 0, 1), bytes_at(1, 400, 1, 32, 0, 1));
    copy_bytes_of(bytes_at(2, 192, 5, 2, 8, 1), bytes_at(0, 300, 5, 2, 8, 1));
    copy_bytes_of(bytes_at(2, 226, 1, 38, 0, 1), bytes_at(1, 426, 1, 38, 0, 1));
    copy_bytes_of(bytes_at(2, 219, 5, 1, 11, 0), bytes_at(0, 500, 5, 1, 13, 0));
    expect(look_everywhere(), "parts of a patch that lie side by side, and below others, stay below them");
}

/* Whether no element lies over another one. */
static bool is_apart(const struct view *view)
{
    static uint16_t at[SIZE];
    bool taken[SIZE] = {false}, apart = true;
    each_byte(view, at);
    for (uint64_t i = 0; i < view_bytes_of(view); i++) {
        apart &= !taken[at[i]];
        taken[at[i]] = true;
    }
    return apart;
}

static bool is_within(const struct view *view)
{
    return view->offset < SIZE && view->offset + view_span(view) <= SIZE && view_bytes_of(view) <= SIZE;
}

/* Copies and results of any strides. Most of them begin where the one before ends along an axis, or a few steps from there. */
static void chains(const char *name)
{
    struct view to = {.rank = 0}, from, all = view_bytes(0, 0, SIZE);
    bool good = true;
    memset(model, 0, sizeof model);
    store_reset();
    if (many)
        add_results(MEMORIES, 50000, 8, 2);
    for (int step = 0; step < 3 * STEPS && good; step++) {
        if (!below(25)) {
            fill_all();
            to.rank = 0;
        }
        if (to.rank && below(3)) {
            uint32_t axis = below(to.rank);
            uint64_t size = dtype_bytes[to.dtype], steps = below(4) ? to.shape[axis] : below(6);
            int sign = below(2) ? 1 : -1;
            if (!below(4))
                to.shape[axis] = from.shape[axis] = 1 + below(8);
            to.offset += (uint64_t)sign * steps * to.stride[axis] * size + (below(12) ? 0 : size);
            from.offset += (uint64_t)sign * steps * from.stride[axis] * size + (below(12) ? 0 : size);
        } else {
            to = (struct view){.memory = 1 + below(2), .dtype = below(4) ? DTYPE_u8 : DTYPE_i16, .rank = 1 + below(3),
                               .offset = below(SIZE), .shape = {1, 1, 1, 1}};
            uint64_t next = 1, dense = below(3);
            for (uint32_t axis = to.rank; axis-- > 0; next *= to.shape[axis]) {
                to.shape[axis] = 1 + below(7);
                to.stride[axis] = dense ? next : below(25);
            }
            from = to;
            from.memory = below(3);
            from.offset = below(SIZE);
            for (uint32_t axis = 0; axis < to.rank; axis++)
                from.stride[axis] = below(3) ? to.stride[(axis + dense) % to.rank] : below(25);
        }
        if (!is_within(&to) || !is_within(&from) || !is_apart(&to))
            to.rank = 0;
        else if (!below(5))
            compute_elements(&to, 1 + below(2));
        else if (!view_overlap(&to, &from))
            copy_elements(&to, &from);
        if (!below(60)) {
            good = look_everywhere();
            struct view over = view_bytes(1 + below(2), 0, SIZE);
            copy_elements(&over, &all);
        } else if (!below(30)) {
            good = look_somewhere();
        }
    }
    expect(good && look_everywhere(), name);
}

/* The same strided copies again and again, as a kernel's loop makes them. */
static void loop(void)
{
    struct view to = {.memory = 0, .dtype = DTYPE_f32, .rank = 2, .shape = {10, 3, 1, 1}, .stride = {12, 1}}, from = to;
    bool good = true;
    store_reset();
    from.memory = 1;
    from.stride[0] = 1, from.stride[1] = 10;
    for (int step = 0; step < 200000; step++) {
        to.offset = (step % 4) * 12;
        from.offset = (step % 7) * 4;
        to.shape[0] = 10 - step % 3;
        from.shape[0] = to.shape[0];
        contents_copy(&to, &from);
    }
    uint8_t bytes[480];
    struct view all = view_bytes(1, 0, sizeof bytes), copy = view_bytes(2, 8, sizeof bytes);
    contents_copy(&copy, &all);
    expect(contents_known_zero(1, 0, sizeof bytes) && contents_known_zero(2, 8, sizeof bytes),
           "what nobody has written is known to be 0, and so is a copy of it");
    contents_read(0, 0, sizeof bytes, bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        good &= bytes[i] == 0;
    expect(good, "copies of zeros give zeros, however often they lie over one another");
}

/* A buffer whose columns arrive strip by strip, again and again: of any rows, or of rows that slide. */
static void strips(bool slide)
{
    enum { STRIPS = 8, WIDTH = 4, ROWS = 40, ROUNDS = 500 };
    struct view to = {.memory = 0, .dtype = DTYPE_u8, .rank = 2, .shape = {1, WIDTH, 1, 1}, .stride = {STRIPS * WIDTH, 1}};
    struct view from = {.memory = 1, .dtype = DTYPE_u8, .rank = 2, .shape = {1, WIDTH, 1, 1}, .stride = {WIDTH, 1}};
    struct shard shard = {.memory = 1, .elements = ROWS * WIDTH, .view = {.rank = 2, .shape = {ROWS, WIDTH, 1, 1}, .stride = {WIDTH, 1}}};
    struct tensor tensor = {.dtype = DTYPE_u8, .dims = {.rank = 2, .size = {ROWS, WIDTH, 1, 1}}, .elements = ROWS * WIDTH,
                            .shard = &shard, .shards = 1};
    store_reset();
    contents_fill(&(struct fill){.tensor = &tensor, .kind = KB_UNIFORM, .x = 0, .y = 100});
    uint64_t before = pieces.made;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = below(ROWS / 2), rows = 10 + below(ROWS - 9 - first);
        if (slide)
            first = (uint64_t)round % (ROWS / 2), rows = ROWS / 2;
        for (int strip = 0; strip < STRIPS; strip++) {
            to.offset = first * to.stride[0] + (uint64_t)strip * WIDTH;
            to.shape[0] = from.shape[0] = rows;
            contents_copy(&to, &from);
        }
        contents_known_zero(0, 0, 1);                   /* what waits is done */
    }
    expect(pieces.made - before < (slide ? 3 : 6) * STRIPS * ROUNDS, "strips that %s others do not become pieces: %u of them for each",
           slide ? "slide over" : "hide", (unsigned)((pieces.made - before) / (STRIPS * ROUNDS)));
    contents_reset();
}

/* How many of very many operations memory still names, whose results lie side by side and are made by some calls in turn. */
static uint32_t named_of(uint32_t calls)
{
    enum { RESULTS = 100000 };
    struct pending first;
    uint64_t last = UINT64_MAX;
    uint32_t named = 0;
    store_reset();
    add_results(1, RESULTS, 8, calls);
    for (uint32_t i = 0; i < RESULTS; i++) {
        if (!contents_first_pending(1, 8 * i, 8, &first) || first.at != 8 * i || first.maker->call.line != i % calls * MAKER_CHAINS)
            return UINT32_MAX;
        named += first.operation != last;
        last = first.operation;
    }
    return named;
}

/* Two calls in turn make very many results, which become one where no file has them. In each thousand rows one is known, and
 * nothing has written another one. */
static void most_results(void)
{
    enum { RESULTS = 300000, ROW = 8, EACH = 1000, KNOWN = 700, GAP = 500 };
    static uint8_t table[ROW] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct pending first;
    bool right = true;
    store_reset();
    contents_fill(&(struct fill){.tensor = table_new(ROW), .kind = KB_GIVEN, .given = table});
    for (uint32_t i = 0; i < RESULTS; i++) {
        struct view to = view_bytes(1, ROW * i, ROW), known = view_bytes(0, 0, ROW);
        if (i % EACH == KNOWN)
            contents_copy(&to, &known);
        else if (i % EACH != GAP)
            contents_compute(&to, &(struct maker){"kernel", {"exp", "a.c", i % 2 * MAKER_CHAINS}}, i);
    }
    for (uint32_t i = 0; i < RESULTS; i++)
        right &= contents_first_pending(1, ROW * i, ROW, &first) == (i % EACH != KNOWN && i % EACH != GAP);
    expect(right, "of %u rows, the results of two calls in turn are pending, and no other", (unsigned)RESULTS);
    expect(pieces_held() < RESULTS / 2, "they are %u pieces", (unsigned)pieces_held());
    contents_reset();
}

/* Two calls make the elements of a row in turn. Of every fourth row one call makes every other element, and the others are known.
 * Such rows are patches. There are very many copies of them. */
static void copied_patches(void)
{
    enum { ROWS = 5000, ELEMENTS = 16, ROW = 2 * ELEMENTS, COPIES = 30, SOME = 4 };
    struct view half = {.memory = 1, .dtype = DTYPE_u8, .rank = 1, .shape = {ELEMENTS, 1, 1, 1}, .stride = {2}};
    bool right = true;
    store_reset();
    contents_fill(&(struct fill){.tensor = table_new(1), .kind = KB_GIVEN, .given = "x"});
    for (uint32_t row = 0; row < ROWS; row++) {
        half.offset = row * ROW;
        contents_compute(&half, &maker_of[1], 2 * row);
        half.offset++;
        if (row % SOME)
            contents_compute(&half, &maker_of[2], 2 * row + 1);
        contents_known_zero(0, 0, 1);                   /* what waits is done */
    }
    for (uint32_t i = 0; i < COPIES; i++) {
        struct view to = view_bytes(2, i * ROWS * ROW, ROWS * ROW), from = view_bytes(1, 0, ROWS * ROW);
        contents_copy(&to, &from);
        contents_known_zero(0, 0, 1);
    }
    uint64_t held = pieces_held();
    for (uint32_t row = 0; row < COPIES * ROWS; row++)
        right &= contents_pending(2, row * ROW, 1) && contents_pending(2, row * ROW + 1, 1) == (row % SOME > 0);
    expect(right, "of copies of rows that two calls or one have made, what they have made is pending");
    expect(held < COPIES * ROWS * 9 / 10, "%d copies of %d rows are %u pieces", (int)COPIES, (int)ROWS, (unsigned)held);
    contents_reset();
}

/* Results that are tiles of matrices one behind the other, each of rows whose columns are split: by one call, or by a call
 * for the even ones and another for the odd ones. */
static void tiles(uint32_t calls, uint32_t strips, bool joined)
{
    enum { COLS = 64, ROWS = 8, TILES = 4, STRIP = ROWS * COLS };
    struct view to = {.memory = 1, .dtype = DTYPE_u8, .rank = 2, .shape = {ROWS, COLS / TILES, 1, 1}, .stride = {COLS, 1}};
    struct pending first;
    bool good = true;
    store_reset();
    for (uint32_t strip = 0; strip < strips; strip++)
        for (uint32_t tile = 0; tile < TILES; tile++) {
            to.offset = strip * STRIP + tile * to.shape[1];
            contents_compute(&to, &(struct maker){"kernel", {"exp", "a.c", tile % calls}}, strip * TILES + tile);
        }
    for (uint32_t i = 0; i < strips; i++)
        good &= contents_first_pending(1, i * STRIP + i % STRIP, 1, &first) && first.at == i * STRIP + i % STRIP
                && (joined ? first.maker->call.line < calls : first.maker->call.line == i % COLS / (COLS / TILES) % calls);
    expect(good && !contents_pending(1, (uint64_t)strips * STRIP, 1) && !contents_pending(1, (uint64_t)strips * STRIP * 2, 1),
           "%u tiles of %u calls are pending%s, and nothing else is", (unsigned)(strips * TILES), (unsigned)calls,
           joined ? "" : ", by their call");
    uint32_t named = 0;
    uint64_t last = UINT64_MAX;
    for (uint32_t strip = 0; strip < strips; strip++) {
        contents_first_pending(1, strip * STRIP, 1, &first);
        named += first.operation != last;
        last = first.operation;
    }
    expect(!joined || named < strips / 2, "their operations are not all kept: those of %u strips of %u", (unsigned)named,
           (unsigned)strips);
}

/* Two results that have as many bytes as their range, some of them both. */
static void results_that_meet(void)
{
    struct view pairs = {.memory = 1, .dtype = DTYPE_i16, .rank = 2, .shape = {6, 2, 1, 1}, .stride = {3, 1}};
    struct view bytes = {.memory = 1, .dtype = DTYPE_u8, .rank = 1, .shape = {10, 1, 1, 1}, .stride = {3}};
    store_reset();
    add_results(MEMORIES, 50000, 8, 2);
    contents_compute(&pairs, &maker_of[1], 0);
    contents_compute(&bytes, &maker_of[2], 1);
    expect(view_span(&pairs) == view_bytes_of(&pairs) + view_bytes_of(&bytes) && contents_pending(1, 6, 4)
               && contents_pending(1, 27, 1) && !contents_pending(1, 4, 2),
           "beside very many results, what lies between two that meet is known");
}

/* The second result begins within a row of the first one, and continues it along the other axis. */
static void results_around(void)
{
    struct view first = bytes_at(1, 100, 5, 7, 7, 2), second = bytes_at(1, 114, 5, 2, 7, 2);
    store_reset();
    add_results(MEMORIES, 50000, 8, 2);
    contents_compute(&first, &maker_of[1], 0);
    contents_compute(&second, &maker_of[1], 1);
    expect(contents_pending(1, 100, 1) && contents_pending(1, 144, 1) && !contents_pending(1, 101, 1) && !contents_pending(1, 105, 1),
           "beside very many results, what lies between elements that meet around a row is known");
}

static void many_results(void)
{
    unnamed_allowed = false;                            /* nothing waits in a file: pieces are as few as they can be */
    most_results();
    copied_patches();
    unnamed_allowed = true;
    uint32_t one = named_of(1), two = named_of(2);
    expect(one > 10000 && one < 50000, "of very many results of one call, %u of 100000 operations are kept", (unsigned)one);
    expect(two == 100000, "results of two calls in turn are apart: %u are kept", (unsigned)two);
    tiles(1, 30000, true);
    tiles(2, 8000, false);
    tiles(2, 60000, true);
    results_that_meet();
    results_around();
    store_reset();
}

/* Shards of consecutive rows, copied side by side as an all-gather does, are one piece: a copy of all makes no more. */
static void side_by_side(void)
{
    enum { SHARDS = 64 };
    struct shard shard[SHARDS];
    struct tensor tensor = {.dtype = DTYPE_f32, .dims = {.rank = 2, .size = {SHARDS, 2, 1, 1}}, .elements = 2 * SHARDS,
                            .shard = shard, .shards = SHARDS};
    uint8_t got[SHARDS * 8], want[SHARDS * 8];
    struct view part = {.memory = 1, .dtype = DTYPE_f32, .rank = 1, .shape = {2, 1, 1, 1}, .stride = {1}}, to = part;
    for (uint32_t i = 0; i < SHARDS; i++)
        shard[i] = (struct shard){
            .memory = 1, .elements = 2, .offset = (i * 17 % SHARDS) * 8,
            .view = {.rank = 2, .shape = {1, 2, 1, 1}, .first = {i, 0}, .stride = {2, 1}}};
    struct fill fill = {.tensor = &tensor, .kind = KB_UNIFORM, .x = 0, .y = 100};
    store_reset();
    contents_fill(&fill);
    to.memory = 0;
    for (uint32_t i = 0; i < SHARDS; i++) {
        part.offset = shard[i].offset;
        to.offset = i * 8;
        contents_copy(&to, &part);
        fill_read(&fill, &shard[i], 0, 8, want + i * 8);
    }
    contents_read(0, 0, sizeof got, got);
    uint64_t before = pieces.made;
    struct view all = {.memory = 0, .dtype = DTYPE_f32, .rank = 1, .shape = {SHARDS * 2, 1, 1, 1}, .stride = {1}}, copy = all;
    copy.memory = 2;
    contents_copy(&copy, &all);
    expect(!contents_pending(2, 0, sizeof got), "a copy of what a fill gave is not pending");
    expect(memcmp(got, want, sizeof got) == 0 && pieces.made - before == 1,
           "shards that are copied side by side are one piece: %u", (unsigned)(pieces.made - before));
    contents_reset();
}

static void copy_range(uint8_t (*value)[1 << 19], uint32_t to_memory, uint64_t to, uint32_t from_memory, uint64_t from, uint64_t bytes)
{
    struct view to_bytes = view_bytes(to_memory, to, bytes), from_bytes = view_bytes(from_memory, from, bytes);
    contents_copy(&to_bytes, &from_bytes);
    memmove(value[to_memory] + to, value[from_memory] + from, bytes);
}

/* A memory gets rows of a table side by side, in any order, and a few rows of another memory. They are so many that they become
 * lists. Long lists go to a file if `memory` bytes do not hold all lists. Then parts of the lists are copied over other parts. A
 * fill gave the table, or the store has it. In every other 512 rows all are even ones; in one round all begin at odd bytes. Many
 * rows of a small table follow the one before. */
static void rows(bool stored, uint64_t table, uint64_t memory)
{
    enum { TABLE = 1 << 16, ROW = 4, ROWS = 25000, ROUNDS = 4, MOVES = 500, LONGEST = 500 };
    static uint8_t value[MEMORIES][1 << 19], got[1 << 19];
    bool good = true;
    uint64_t most = 0;
    places_memory_bytes = memory;
    memset(value, 0, sizeof value);
    for (int i = 0; i < TABLE; i++)
        value[0][i] = (uint8_t)rand();
    store_reset();
    if (stored) {
        store_reach(0, TABLE);
        memcpy(store_at(0, 0), value[0], TABLE);
    } else {
        contents_fill(&(struct fill){.tensor = table_new(TABLE), .kind = KB_GIVEN, .given = value[0]});
    }
    for (uint64_t round = 0; round < ROUNDS && good; round++) {
        for (uint64_t row = 0; row < ROWS; row++)
            copy_range(value, 1, (round * ROWS + row) * ROW, below(memory ? 100 : 20000) ? 0 : 2,
                       (below(table - 1) & ~(row >> 9 & 1)) * ROW + (round == 2), ROW);
        contents_pending(1, 0, 1);                      /* what waits is done */
        most = kb_max(most, pieces_held());
        for (int move = 0; move < MOVES; move++) {
            uint32_t to = 1 + below(2), from = below(3);
            uint64_t step = below(3) ? ROW : 1, bytes = (1 + below(LONGEST)) * step, room = (from ? sizeof got : TABLE) - bytes;
            copy_range(value, to, below((sizeof got - bytes) / step) * step, from, below(room / step) * step, bytes);
        }
        for (uint32_t i = 1; i < MEMORIES; i++) {
            contents_read(i, 0, sizeof got, got);
            good &= !memcmp(got, value[i], sizeof got);
        }
    }
    expect(good, "rows of a table %s of %u rows, and copies of parts of them, are what a byte at a time gives%s",
           stored ? "of the store" : "of a fill", (unsigned)table, memory ? "" : ", lists in a file");
    expect(most > ROWS / 2 && most < 2 * ROWS, "%u rows are %u pieces at most", (unsigned)(ROUNDS * ROWS), (unsigned)most);
    if (memory == 0)
        expect(file_bytes() > 0, "a file has some of the lists");
    contents_reset();
    places_memory_bytes = UINT64_MAX;
}

/* A table has five rows, so that many copied rows follow the one before. At first ten of thirty rows are results, which are in no
 * list. */
static void small_table(void)
{
    enum { ROW = 2, ROWS = 200000, MIXED = 36000, OF = 30, RESULTS = 10 };
    static uint8_t table[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, got[ROWS * ROW], want[ROWS * ROW];
    bool pending = true;
    store_reset();
    contents_fill(&(struct fill){.tensor = table_new(sizeof table), .kind = KB_GIVEN, .given = table});
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t from = below(sizeof table / ROW) * ROW;
        struct view to = view_bytes(1, row * ROW, ROW), of = view_bytes(0, from, ROW);
        if (row < MIXED && row % OF < RESULTS) {
            contents_compute(&to, &maker_of[1], row);
        } else {
            contents_copy(&to, &of);
            memcpy(want + row * ROW, table + from, ROW);
        }
    }
    for (uint64_t row = 0; row < MIXED; row++) {
        struct pending first;
        bool is = contents_first_pending(1, row * ROW, ROW, &first);
        pending &= is == (row % OF < RESULTS) && (!is || first.operation == row);
    }
    expect(pending, "results among rows of a small table are pending");
    contents_read(1, 0, sizeof got, got);
    expect(!memcmp(got, want, sizeof got), "the other rows are those of the table");
    expect(pieces_held() < ROWS / 8, "%d rows are %u pieces", (int)ROWS, (unsigned)pieces_held());
    contents_reset();
}

/* Rows of a byte, two of them at 2^32 - 1. */
static void rows_around_32_bits(void)
{
    enum { ROWS = 40000, PAIR = 1000 };
    struct fill fill = {.tensor = table_new(UINT64_C(1) << 33), .kind = KB_UNIFORM, .x = 0, .y = 100};
    static uint8_t got[ROWS], want[ROWS];
    store_reset();
    contents_fill(&fill);
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t from = row == PAIR || row == PAIR + 1 ? UINT32_MAX + row - PAIR : row * 7 % ROWS;
        struct view to = view_bytes(1, row, 1), of = view_bytes(0, from, 1);
        contents_copy(&to, &of);
        fill_read(&fill, NULL, from, 1, want + row);
    }
    contents_read(1, 0, sizeof got, got);
    expect(!memcmp(got, want, sizeof got), "rows around 2^32 are what the table holds there");
    contents_reset();
}

/* Rows that are too far apart for a list. */
static void far_rows(void)
{
    enum { ROW = 4, ROWS = 40000 };
    struct fill fill = {.tensor = table_new(UINT64_C(1) << 40), .kind = KB_UNIFORM, .x = 0, .y = 100};
    static uint8_t got[ROWS * ROW], want[ROWS * ROW];
    store_reset();
    contents_fill(&fill);
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t from = row << 24 | below(1 << 20);
        struct view to = view_bytes(1, row * ROW, ROW), of = view_bytes(0, from, ROW);
        contents_copy(&to, &of);
        fill_read(&fill, NULL, from, ROW, want + row * ROW);
    }
    contents_read(1, 0, sizeof got, got);
    expect(!memcmp(got, want, sizeof got), "rows of a table of 2^40 bytes are what it holds there");
    contents_reset();
}

int main(void)
{
    fill_seed = 1;
    many = true;
    random_steps(false, true, "random steps beside very many results give what a byte at a time gives");
    random_steps(false, false, "they do where copies lie over one another unread");
    windows("so do windows of a matrix, results most of them");
    chains("so do copies and results that continue one another");
    many_results();
    many = false;                                       /* from here on each result is named */
    random_steps(false, true, "random steps in empty memories give what a byte at a time gives");
    random_steps(false, false, "they do where copies lie over one another unread");
    random_steps(true, true, "they do over bytes of the store");
    random_steps(true, false, "they do over bytes of the store, unread");
    windows("windows of a matrix that hide parts of one another give what a byte at a time gives");
    chains("copies and results that continue one another give what a byte at a time gives");
    unread(0, "many steps that nobody looks at give what a byte at a time gives, if memories hold nothing of them");
    unread(4 << 10, "they do if memories hold some of them");
    most_bytes();
    orders();
    neighbours();
    loop();
    side_by_side();
    strips(false);
    strips(true);
    rows(false, 1 << 14, UINT64_MAX);
    rows(true, 1 << 14, UINT64_MAX);
    rows(false, 1 << 14, 0);
    rows(true, 5, 0);
    far_rows();
    small_table();
    rows_around_32_bits();
    store_reset();
    return tests_end();
}
