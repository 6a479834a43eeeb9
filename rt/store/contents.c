/* contents.c: what each memory holds for the kernels that run.
 *
 * Where a memory's map has no piece, the store has the byte. Most runs never look at what their memories hold: copies and
 * results wait until somebody does, or until very many wait. */
#include "contents.h"

#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "common/array.h"
#include "common/fail.h"
#include "compact.h"
#include "kb/arith.h"
#include "piece.h"
#include "store.h"
#include "waiting.h"

static struct interval_map *memories;                   /* NULL before the first use */
static struct ARRAY(struct interval_map) messages;      /* by slot: a copy finds its message among many at once */

static struct interval_map *message_map(uint64_t slot)
{
    while (messages.count <= slot)
        *array_add(&messages) = PIECES;
    return &messages.at[slot];
}

/* The map that has the pieces of an offset of a memory. That of a message is valid until one of another slot is asked
 * for. */
static struct interval_map *map_of(uint32_t memory, uint64_t offset)
{
    if (memory == store_messages())
        return message_map(allocator_message_slot(offset));
    if (!memories) {
        memories = calloc(store_count(), sizeof *memories);
        if (!memories)
            die("no memory for the contents of %u memories:", store_count());
        for (uint32_t i = 0; i < store_count(); i++)
            memories[i] = PIECES;
    }
    return &memories[memory];
}

static void set(struct interval_map *map, uint64_t offset, uint64_t bytes, uint32_t tag, struct piece piece)
{
    piece.interval = (struct interval){.begin = offset, .end = offset + bytes, .tag = tag};
    if (bytes)
        interval_set(map, &piece.interval);
}

static void set_result(struct interval_map *map, uint64_t offset, uint64_t bytes, const struct maker *maker, uint64_t operation)
{
    set(map, offset, bytes, piece_tag(PIECE_result, 0), (struct piece){.offset = operation, .source.maker = maker});
}

/* ---- fills */

static void apply_all(void);

void contents_fill(const struct fill *fill)
{
    apply_all();
    const struct tensor *tensor = fill->tensor;
    uint64_t size = dtype_bytes[tensor->dtype];
    struct filled *filled = malloc(sizeof *filled);
    void *given = fill->given ? malloc(tensor->elements * size) : NULL;
    if (!filled || (fill->given && !given))
        die("no memory for the elements of tensor '%s':", tensor->name);
    *filled = (struct filled){1, *fill};
    if (given)
        filled->fill.given = memcpy(given, fill->given, tensor->elements * size);
    for (uint32_t i = 0; i < tensor->shards; i++) {
        const struct shard *shard = &tensor->shard[i];
        uint64_t bytes = shard->elements * size;
        bool dense = tensor_shard_is_dense(tensor, shard);
        uint64_t first = dense && bytes ? tensor_row(tensor, shard, 0).position * size : 0;
        set(map_of(shard->memory, shard->offset), shard->offset, bytes, piece_tag(PIECE_filled, dense ? NO_SHARD : i),
            (struct piece){.offset = first, .source.filled = filled});
    }
    filled_drop(filled);
}

/* ---- copies and results */

/* Gives the bytes that only the store has a piece each, which can be copied. */
static void name_stored(uint32_t memory, uint64_t begin, uint64_t end)
{
    if (!store_is_used())
        return;
    struct interval_map *map = map_of(memory, begin);
    for (uint64_t at = begin; at < end;) {
        const struct interval *next = interval_find(map, at);
        uint64_t until = next ? kb_min(next->begin, end) : end;
        if (at < until)
            set(map, at, until - at, piece_tag(PIECE_stored, memory), (struct piece){.offset = at});
        next = interval_find(map, at);
        at = next ? next->end : end;
    }
}

/* What is put into a memory: elements of `view`, whose bytes a map holds in [first, first + bytes); of a result, `first` is the
 * operation. */
struct strided {
    struct patch_copy *copy;
    struct view view;
    const struct interval_map *map;
    uint64_t first, bytes;
};

struct pair {
    struct interval_map *to;
    const struct interval_map *from;
};

static void copy_run(uint64_t to_offset, uint64_t from_offset, uint64_t bytes, void *arg)
{
    const struct pair *pair = arg;
    interval_copy(pair->to, to_offset, pair->from, from_offset, bytes);
}

struct result {
    struct interval_map *to;
    const struct maker *maker;
    uint64_t operation;
};

static void result_run(uint64_t offset, uint64_t bytes, void *arg)
{
    const struct result *result = arg;
    set_result(result->to, offset, bytes, result->maker, result->operation);
}

/* Returns whether a range has at most `most` pieces. */
static bool has_few_pieces(const struct interval_map *map, uint64_t begin, uint64_t end, uint64_t most)
{
    piece_for(map, piece, begin, end)
        if (most-- == 0)
            return false;
    return true;
}

static const struct piece *whole_patch_at(const struct interval_map *map, uint64_t at)
{
    const struct piece *piece = (const struct piece *)interval_find(map, at);
    bool found = piece && piece->interval.begin <= at && piece_kind(piece) == PIECE_patched && piece->offset == 0
                 && piece->interval.end - piece->interval.begin == patch_bytes(piece->source.patch);
    return found ? piece : NULL;
}

/* Lays the elements over the range of their target, widened by the patches that begin or end in it. */
static void put_patch(const struct view *to, const struct strided *from)
{
    struct interval_map *map = map_of(to->memory, to->offset), none = PIECES;
    uint64_t begin = to->offset, end = begin + view_span(to);
    bool hides_all = view_is_dense(to);
    const struct piece *left = hides_all ? NULL : whole_patch_at(map, begin);
    const struct piece *right = hides_all ? NULL : whole_patch_at(map, end - 1);
    begin = left ? left->interval.begin : begin;
    end = right ? right->interval.end : end;
    bool reads_itself = from->map == map && from->first < end && from->first + from->bytes > begin;
    struct view within = *to;
    within.offset -= begin;
    bool in_place = left && left == right && patch_is_single(left->source.patch) && !reads_itself;
    struct patch *patch = in_place ? left->source.patch : patch_new(hides_all ? &none : map, begin, end - begin);
    struct pending result;
    if (in_place)
        patch_hold(patch);
    patch_add(patch, from->copy, &within, from->map, from->first, from->bytes);
    uint64_t at;
    struct patch *part = patch_split(patch, &at);
    if (part) {
        set(map, begin, end - begin, piece_tag(PIECE_patched, 0), (struct piece){.source.patch = patch});
        patch_drop(patch);
        patch = part;
        begin += at;
        end = begin + patch_bytes(patch);
    }
    if (patch_is_result(patch, false, &result)) {
        set_result(map, begin, end - begin, result.maker, result.operation);
    } else {
        const struct piece *before = begin ? whole_patch_at(map, begin - 1) : NULL, *behind = whole_patch_at(map, end);
        if (before && before->interval.end == begin && patch_join(patch, before->source.patch, true))
            begin = before->interval.begin;
        if (behind && behind->interval.begin == end && patch_join(patch, behind->source.patch, false))
            end = behind->interval.end;
        set(map, begin, end - begin, piece_tag(PIECE_patched, 0), (struct piece){.source.patch = patch});
    }
    patch_drop(patch);
}

static void put(const struct view *to, const struct strided *from)
{
    enum { FEW = 4 };                                   /* runs that are pieces at once */
    struct interval_map *map = map_of(to->memory, to->offset);
    uint64_t begin = to->offset, end = begin + view_span(to), runs = view_runs_of_two(to, &from->view);
    const struct maker *maker = copy_maker(from->copy);
    bool as_pieces = runs <= FEW;
    if (!as_pieces)
        name_stored(to->memory, begin, end);
    if (!as_pieces && has_few_pieces(map, begin, end, runs)
        && (maker || has_few_pieces(from->map, from->first, from->first + from->bytes, runs)))
        put_patch(to, from);
    else if (maker)
        view_each_run(to, result_run, &(struct result){map, maker, from->first});
    else
        view_each_run_of_two(to, &from->view, copy_run, &(struct pair){map, from->map});
}

/* ---- what waits */

uint64_t contents_most_bytes = 4 << 20;

/* Pieces are made fewer when they take more than MANY_BYTES. Results of different calls become one when they take more than
 * JOINED_BYTES, which happens only where somebody looks or no file has what waits. */
enum { MANY_BYTES = 2 << 20, JOINED_BYTES = 8 << 20 };
static uint64_t many_bytes = MANY_BYTES;

static void compact(void)
{
    bool joins_results = pieces_bytes() > JOINED_BYTES;
    for (uint32_t i = 0; memories && i < store_count(); i++)
        pieces_compact(&memories[i], joins_results);
    many_bytes = kb_max(2 * pieces_bytes(), MANY_BYTES);
}

static void apply_strided(const struct waiting *one)
{
    struct strided from = {.first = one->from};
    struct view to;
    waiting_views(one, &to, &from.view);
    from.copy = copy_new(&to, &from.view, one->maker);
    to.memory = one->to_memory;
    to.offset = one->to;
    if (one->maker) {
        from.view = view_without_gaps(&to);
    } else {
        from.view.memory = one->from_memory;
        from.view.offset = one->from;
        from.bytes = view_span(&from.view);
        name_stored(one->from_memory, from.first, from.first + from.bytes);
        from.map = map_of(one->from_memory, one->from);
    }
    put(&to, &from);
    copy_drop(from.copy);
}

static void apply(const struct waiting *one)
{
    if (one->bytes == 0) {
        apply_strided(one);
    } else if (one->maker) {
        set_result(map_of(one->to_memory, one->to), one->to, one->bytes, one->maker, one->from);
    } else {
        name_stored(one->from_memory, one->from, one->from + one->bytes);
        struct interval_map *to = map_of(one->to_memory, one->to);
        interval_copy(to, one->to, map_of(one->from_memory, one->from), one->from, one->bytes);
    }
    if (pieces_bytes() > many_bytes)
        compact();
}

/* Takes copies and results that wait, the oldest first, and applies them until pieces take more than `bytes`. */
static void apply_while(uint64_t bytes)
{
    for (const struct waiting *one; pieces_bytes() <= bytes && (one = waiting_take());)
        apply(one);
}

static void apply_all(void)
{
    apply_while(UINT64_MAX);
}

/* Makes space in memory for another one that waits. Once some wait in the file, so do all further ones. */
static void make_space(void)
{
    if (!waiting_in_file()) {
        apply_while(contents_most_bytes);
        if (pieces_bytes() > contents_most_bytes) {
            compact();
            apply_while(contents_most_bytes);
        }
    }
    if (!waiting_to_file())
        apply_all();
}

/* Returns a new waiting copy or result, as waiting_new does, which finds space. The caller sets its place and its source. */
static struct waiting *wait_for(const struct view *to, const struct view *from)
{
    struct waiting *one = waiting_new(to, from);
    if (!one) {
        make_space();
        one = waiting_new(to, from);
    }
    return one;
}

void contents_copy(const struct view *to, const struct view *from)
{
    uint64_t runs = view_runs_of_two(to, from);
    if (runs == 0)
        return;
    struct waiting *one = runs == 1 ? wait_for(NULL, NULL) : wait_for(to, from);
    *one = (struct waiting){to->memory, from->memory, to->offset, from->offset, runs == 1 ? view_bytes_of(from) : 0, NULL};
}

void contents_compute(const struct view *view, const struct maker *maker, uint64_t operation)
{
    uint64_t bytes = view_bytes_of(view);
    if (bytes == 0)
        return;
    bool dense = view_is_dense(view);
    struct waiting *one = dense ? wait_for(NULL, NULL) : wait_for(view, view);
    *one = (struct waiting){view->memory, 0, view->offset, operation, dense ? bytes : 0, maker_like(*maker)};
}

/* ---- looking */

bool contents_first_pending(uint32_t memory, uint64_t offset, uint64_t bytes, struct pending *first)
{
    apply_all();
    return pieces_pending(map_of(memory, offset), offset, bytes, first);
}

bool contents_known_zero(uint32_t memory, uint64_t offset, uint64_t bytes)
{
    apply_all();
    return !store_range_is_used(memory, offset, bytes) && pieces_known_zero(map_of(memory, offset), offset, bytes);
}

const void *contents_given(uint32_t memory, uint64_t offset, uint64_t bytes, struct filled **filled)
{
    apply_all();
    return pieces_given(map_of(memory, offset), offset, bytes, filled);
}

void contents_read(uint32_t memory, uint64_t offset, uint64_t bytes, void *to)
{
    apply_all();
    name_stored(memory, offset, offset + bytes);
    pieces_read(map_of(memory, offset), offset, bytes, to);
}

/* ---- intervals */

void contents_begin_interval(void)
{
    waiting_clear();
    for (uint32_t i = 0; memories && i < store_count(); i++)
        interval_clear(&memories[i]);
    for (size_t i = 0; i < messages.count; i++)
        interval_clear(&messages.at[i]);
}

void contents_reset(void)
{
    contents_begin_interval();
    free(memories);
    memories = NULL;
    array_free(&messages);
    waiting_reset();
    many_bytes = MANY_BYTES;
    pieces_reset();
}
