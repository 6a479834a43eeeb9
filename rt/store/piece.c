/* piece.c: maps of pieces. */
#include "piece.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fail.h"
#include "kb/arith.h"
#include "store.h"
#include "view.h"

/* ---- sources */

void filled_drop(struct filled *filled)
{
    if (--filled->holders)
        return;
    free((void *)filled->fill.given);
    free(filled);
}

static struct patch *patch_hold(struct patch *patch);

/* Makers by a hash. */
static struct made_by {
    struct made_by *next;                               /* of the same hash */
    struct maker maker;
} *makers[MAKER_CHAINS];

static struct pool maker_pool;

static bool is_like(const struct maker *a, const struct maker *b)
{
    return a->call.line == b->call.line && a->call.file == b->call.file && a->kernel == b->kernel && a->call.name == b->call.name;
}

const struct maker *maker_like(struct maker maker)
{
    struct made_by **made = &makers[(maker.call.line ^ (uintptr_t)maker.call.name >> 4) % MAKER_CHAINS];
    while (*made && !is_like(&(*made)->maker, &maker))
        made = &(*made)->next;
    if (!*made) {
        *made = pool_take(&maker_pool, sizeof **made);
        (*made)->maker = maker;
    }
    return &(*made)->maker;
}

/* With more results than this, pieces and copies, those of one call that lie side by side become one. */
enum { MANY_RESULTS = 1 << 14 };

static uint64_t results;

static void piece_copied(struct interval *copy)
{
    struct piece *piece = (struct piece *)copy;
    enum piece_kind kind = piece_kind(piece);
    if (kind == PIECE_filled)
        piece->filled->holders++;
    else if (kind == PIECE_patched)
        patch_hold(piece->patch);
    results += kind == PIECE_result;
}

static void piece_dropped(struct interval *dropped)
{
    struct piece *piece = (struct piece *)dropped;
    enum piece_kind kind = piece_kind(piece);
    if (kind == PIECE_filled)
        filled_drop(piece->filled);
    else if (kind == PIECE_patched)
        patch_drop(piece->patch);
    results -= kind == PIECE_result;
}

static void piece_advance(struct interval *interval, uint64_t bytes)
{
    struct piece *piece = (struct piece *)interval;
    if (piece_kind(piece) != PIECE_result)
        piece->offset += bytes;
}

/* The bytes of one result have no order of their own: any two are one piece. Where there are very many results, those of one
 * call are like one: the first of them names all. */
static bool piece_continues(const struct interval *low, const struct interval *high)
{
    const struct piece *a = (const struct piece *)low, *b = (const struct piece *)high;
    if (low->tag != high->tag)
        return false;
    if (piece_kind(a) == PIECE_result)
        return a->maker == b->maker && (a->offset == b->offset || results > MANY_RESULTS);
    bool follows = a->offset + (low->end - low->begin) == b->offset;
    return follows && (piece_kind(a) == PIECE_stored || (piece_kind(a) == PIECE_filled ? a->filled == b->filled : a->patch == b->patch));
}

struct interval_kind pieces = {
    .size = sizeof(struct piece), .copied = piece_copied, .dropped = piece_dropped, .advance = piece_advance,
    .continues = piece_continues,
};

/* ---- patches */

enum { FEW_COPIES = 32, MANY_COPIES = 1024, LAYERS = 4, DEEPEST = 32 };

/* A strided copy and the bytes that it copies, or a strided result: as little as says so, in two lines of the host's caches,
 * for there are very many. */
struct patch_copy {
    uint32_t holders;
    enum dtype dtype;
    uint64_t from_offset;                               /* of the first element, in the source; a result's operation */
    uint64_t shape[VIEW_RANK], to_stride[VIEW_RANK], from_stride[VIEW_RANK];
    const struct maker *maker;                          /* NULL: a copy */
    struct interval *source;                            /* the root of its map; NULL: zeros, or a result */
};

_Static_assert(sizeof(struct patch_copy) <= 128, "it is two lines");

/* Sets where it writes, from its place in a patch on, and what it reads. */
static __attribute__((cold, noinline)) void copy_views(const struct patch_copy *copy, struct view *to, struct view *from)
{
    *to = *from = (struct view){.dtype = copy->dtype, .rank = VIEW_RANK};
    from->offset = copy->from_offset;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++) {
        to->shape[axis] = from->shape[axis] = copy->shape[axis];
        to->stride[axis] = copy->to_stride[axis];
        from->stride[axis] = copy->from_stride[axis];
    }
}

static struct interval_map copy_source(const struct patch_copy *copy)
{
    return (struct interval_map){.kind = &pieces, .root = copy->source};
}

static uint64_t copy_bytes(const struct patch_copy *copy)
{
    return copy->shape[0] * copy->shape[1] * copy->shape[2] * copy->shape[3] * dtype_bytes[copy->dtype];
}

struct laid {
    struct patch_copy *copy;
    uint64_t at;                                        /* in the patch */
};

struct patch {
    uint32_t holders, depth;                            /* depth: of patches in it, and 1 */
    uint64_t bytes;
    struct interval_map map;                            /* what the copies are laid over */
    struct ARRAY(struct laid) copies;
    uint64_t copied;                                    /* bytes of all copies */
};

static struct pool patches, copies;

static struct patch *patch_hold(struct patch *patch)
{
    patch->holders++;
    return patch;
}

uint64_t patch_bytes(const struct patch *patch)
{
    return patch->bytes;
}

bool patch_is_single(const struct patch *patch)
{
    return patch->holders == 1;
}

static void copy_drop(struct patch_copy *copy)
{
    if (--copy->holders)
        return;
    struct interval_map source = copy_source(copy);
    interval_clear(&source);
    results -= copy->maker != NULL;
    pool_give_back(&copies, copy);
}

void patch_drop(struct patch *patch)
{
    if (--patch->holders)
        return;
    interval_clear(&patch->map);
    for (size_t i = 0; i < patch->copies.count; i++)
        copy_drop(patch->copies.at[i].copy);
    array_free(&patch->copies);
    pool_give_back(&patches, patch);
}

static void deepen(struct patch *patch, const struct interval_map *map)
{
    piece_for(map, piece, 0, UINT64_MAX)
        if (piece_kind(piece) == PIECE_patched && piece->patch->depth >= patch->depth)
            patch->depth = piece->patch->depth + 1;
}

struct run_copier {
    struct interval_map *to;
    const struct interval_map *from;
    uint64_t at;
};

static void copy_run(uint64_t to, uint64_t from, uint64_t bytes, void *arg)
{
    const struct run_copier *copier = arg;
    interval_copy(copier->to, copier->at + to, copier->from, from, bytes);
}

struct run_maker {
    struct interval_map *to;
    const struct patch_copy *result;
};

static void make_run(uint64_t to, uint64_t bytes, void *arg)
{
    const struct run_maker *made = arg;
    struct piece piece = {.interval = {.begin = to, .end = to + bytes, .tag = piece_tag(PIECE_result, 0)},
                          .offset = made->result->from_offset, .maker = made->result->maker};
    interval_set(made->to, &piece.interval);
}

/* Replaces the pieces of a map that are patches by what those hold. */
static void flatten(struct interval_map *map);

/* Makes the copies: the map holds all, without a patch in it. */
static void patch_apply(struct patch *patch)
{
    for (size_t i = 0; i < patch->copies.count; i++) {
        struct patch_copy *copy = patch->copies.at[i].copy;
        struct interval_map source = copy_source(copy);
        struct view to, from;
        copy_views(copy, &to, &from);
        if (copy->maker) {
            to.offset = patch->copies.at[i].at;
            view_each_run(&to, make_run, &(struct run_maker){&patch->map, copy});
        } else {
            struct run_copier copier = {&patch->map, &source, patch->copies.at[i].at};
            view_each_run_of_two(&to, &from, copy_run, &copier);
        }
        copy_drop(copy);
    }
    array_free(&patch->copies);
    patch->copied = 0;
    if (patch->depth > 1)
        flatten(&patch->map);
    patch->depth = 1;
}

static void flatten(struct interval_map *map)
{
    uint64_t at = 0;
    for (struct piece *piece; (piece = (struct piece *)interval_find(map, at));) {
        at = piece->interval.end;
        if (piece_kind(piece) != PIECE_patched)
            continue;
        struct patch *patch = patch_hold(piece->patch);
        patch_apply(patch);
        interval_copy(map, piece->interval.begin, &patch->map, piece->offset, at - piece->interval.begin);
        patch_drop(patch);
    }
}

static void lay(struct patch *patch, struct patch_copy *copy, uint64_t at)
{
    copy->holders++;
    *array_add(&patch->copies) = (struct laid){copy, at};
    patch->copied += copy_bytes(copy);
}

/* Takes the copies of a patch that lies in this one as a whole, so that they can be replaced one by one. */
static void lift(struct patch *patch, const struct piece *piece)
{
    struct patch *inner = piece->patch;
    uint64_t at = piece->interval.begin;
    if (piece->offset || piece->interval.end - at != inner->bytes
        || patch->copies.count + inner->copies.count > FEW_COPIES)
        return;
    patch_hold(inner);
    for (size_t i = 0; i < inner->copies.count; i++)
        lay(patch, inner->copies.at[i].copy, at + inner->copies.at[i].at);
    interval_copy(&patch->map, at, &inner->map, 0, inner->bytes);
    patch_drop(inner);
}

struct patch *patch_new(const struct interval_map *map, uint64_t offset, uint64_t bytes)
{
    struct patch *patch = pool_take(&patches, sizeof *patch);
    *patch = (struct patch){.holders = 1, .depth = 1, .bytes = bytes, .map = PIECES};
    interval_copy(&patch->map, 0, map, offset, bytes);
    uint64_t at = 0;
    for (struct piece *piece; (piece = (struct piece *)interval_find(&patch->map, at));) {
        at = piece->interval.end;
        if (piece_kind(piece) == PIECE_patched)
            lift(patch, piece);
    }
    deepen(patch, &patch->map);
    for (size_t i = 0; i < patch->copies.count; i++) {
        struct interval_map source = copy_source(patch->copies.at[i].copy);
        deepen(patch, &source);
    }
    return patch;
}

/* What is left to see of a copy that another one lies over: all; nothing; or, along one axis, `count` elements from `first`
 * on. */
struct rest {
    enum { REST_ALL, REST_NONE, REST_PART } kind;
    unsigned axis;
    uint64_t first, count;
};

/* Of the elements [from, from + count) along an axis, [0, over) are hidden: sets which are left. Returns false unless these
 * are some elements at one end. */
static bool one_end(struct rest *rest, int64_t from, int64_t count, int64_t over)
{
    int64_t before = -from, behind = from + count - over;   /* elements before and behind what is hidden, if above 0 */
    if (before >= count || behind >= count || (before > 0) == (behind > 0))
        return false;
    rest->first = before > 0 ? 0 : (uint64_t)(count - behind);
    rest->count = (uint64_t)(before > 0 ? before : behind);
    return true;
}

/* The place of a copy in a view is taken axis by axis, along the axes in their order: where that finds none, all is left. */
static struct rest rest_of(const struct laid *laid, const struct view *view)
{
    const struct patch_copy *copy = laid->copy;
    const struct rest all = {.kind = REST_ALL};
    struct rest rest = {.kind = REST_NONE};
    int64_t size = dtype_bytes[view->dtype], away = (int64_t)(laid->at - view->offset);
    if (copy->dtype != view->dtype || away % size)
        return all;
    away /= size;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++) {
        int64_t count = (int64_t)copy->shape[axis], over = (int64_t)view->shape[axis];
        int64_t stride = (int64_t)(over > 1 ? view->stride[axis] : copy->to_stride[axis]), from = 0;
        if (count > 1 && over > 1 && copy->to_stride[axis] != view->stride[axis])
            return all;
        if (stride && (count > 1 || over > 1))
            from = away / stride - (away % stride < 0);
        away -= from * stride;
        if (from >= 0 && from + count <= over)
            continue;
        if (rest.kind == REST_PART || !one_end(&rest, from, count, over))
            return all;
        rest.kind = REST_PART;
        rest.axis = axis;
    }
    return away ? all : rest;
}

/* A copy that this patch alone holds. */
static struct patch_copy *copy_own(struct patch_copy *copy)
{
    if (copy->holders == 1)
        return copy;
    struct patch_copy *own = pool_reuse(&copies, sizeof *own);
    struct interval_map source = copy_source(copy), of_own = PIECES;
    interval_copy(&of_own, 0, &source, 0, UINT64_MAX);
    *own = *copy;
    own->holders = 1;
    own->source = of_own.root;
    copy->holders--;
    results += own->maker != NULL;
    return own;
}

/* Removes what another copy will hide of each copy. */
static void remove_hidden(struct patch *patch, const struct view *to)
{
    size_t left = 0;
    for (size_t i = 0; i < patch->copies.count; i++) {
        struct laid laid = patch->copies.at[i];
        struct rest rest = rest_of(&laid, to);
        if (rest.kind != REST_ALL)
            patch->copied -= copy_bytes(laid.copy);
        if (rest.kind == REST_NONE) {
            copy_drop(laid.copy);
            continue;
        }
        if (rest.kind == REST_PART) {
            struct patch_copy *copy = laid.copy = copy_own(laid.copy);
            uint64_t size = dtype_bytes[copy->dtype];
            laid.at += rest.first * copy->to_stride[rest.axis] * size;
            copy->from_offset += rest.first * copy->from_stride[rest.axis] * size;
            copy->shape[rest.axis] = rest.count;
            patch->copied += copy_bytes(copy);
        }
        patch->copies.at[left++] = laid;
    }
    patch->copies.count = left;
}

/* Copies that lie beside one another, such as the columns of a matrix, are fewer than the pieces that they would become.
 * Many that hide one another are not. */
static bool has_too_many_copies(const struct patch *patch)
{
    size_t count = patch->copies.count;
    return count >= MANY_COPIES || (count >= FEW_COPIES && patch->copied / LAYERS > patch->bytes);
}

/* Whether two results are like one that is longer along an axis: `higher` begins `away` bytes behind `lower`. Sets the stride
 * of that one. */
static bool is_longer_along(unsigned axis, const struct patch_copy *lower, const struct patch_copy *higher, uint64_t away,
                            uint64_t *stride)
{
    if (lower->maker != higher->maker || lower->dtype != higher->dtype)
        return false;
    for (unsigned i = 0; i < VIEW_RANK; i++) {
        bool has_stride = lower->shape[i] > 1 && higher->shape[i] > 1;
        if ((has_stride && lower->to_stride[i] != higher->to_stride[i]) || (i != axis && lower->shape[i] != higher->shape[i]))
            return false;
    }
    *stride = (lower->shape[axis] > 1 ? lower : higher)->to_stride[axis];
    return away && away == lower->shape[axis] * *stride * dtype_bytes[lower->dtype];
}

/* Adds the elements of another result to one, if both together are like one that is longer along some axis. */
static bool lengthen(struct laid *laid, const struct laid *by)
{
    bool rises = laid->at < by->at;
    const struct laid *lower = rises ? laid : by, *higher = rises ? by : laid;
    uint64_t stride;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++)
        if (is_longer_along(axis, lower->copy, higher->copy, higher->at - lower->at, &stride)) {
            laid->at = lower->at;
            laid->copy->shape[axis] += by->copy->shape[axis];
            laid->copy->to_stride[axis] = stride;
            return true;
        }
    return false;
}

static struct view laid_view(const struct laid *laid)
{
    struct view to, from;
    copy_views(laid->copy, &to, &from);
    to.offset = laid->at;
    return to;
}

/* Whether a result may be laid behind all copies that follow it: none hides an element of it, or they are of its maker too. */
static bool can_be_last(const struct patch *patch, size_t which)
{
    const struct laid *laid = &patch->copies.at[which];
    struct view view = laid_view(laid);
    for (size_t i = which + 1; i < patch->copies.count; i++) {
        struct view later = laid_view(&patch->copies.at[i]);
        if (patch->copies.at[i].copy->maker != laid->copy->maker && view_overlap(&view, &later))
            return false;
    }
    return true;
}

/* Takes the results that continue a new one out of the last copies, into the new one. */
static __attribute__((cold, noinline)) void take_neighbours(struct patch *patch, struct laid *laid)
{
    enum { NEAR = 4 };
    for (size_t i = patch->copies.count; results > MANY_RESULTS && i > 0 && i + NEAR > patch->copies.count;) {
        struct laid *one = &patch->copies.at[--i];
        if (one->copy->maker != laid->copy->maker || !can_be_last(patch, i) || !lengthen(laid, one))
            continue;
        patch->copied -= copy_bytes(one->copy);
        copy_drop(one->copy);
        memmove(one, one + 1, (--patch->copies.count - i) * sizeof *one);
        i = patch->copies.count;
    }
}

/* The result that a map holds and nothing else, or NULL. */
static const struct piece *only_result(const struct interval_map *map, uint64_t bytes)
{
    const struct piece *piece = (const struct piece *)map->root;
    bool only = piece && piece_kind(piece) == PIECE_result && piece->interval.begin == 0 && piece->interval.end == bytes;
    return only ? piece : NULL;
}

void patch_add(struct patch *patch, const struct view *to, const struct view *from, const struct interval_map *source,
               uint64_t offset, uint64_t bytes)
{
    struct patch_copy *copy = pool_reuse(&copies, sizeof *copy);
    struct interval_map copied = PIECES;
    interval_copy(&copied, 0, source, offset, bytes);
    const struct piece *result = only_result(&copied, bytes);
    *copy = (struct patch_copy){.dtype = to->dtype};
    memcpy(copy->shape, to->shape, sizeof copy->shape);
    memcpy(copy->to_stride, to->stride, sizeof copy->to_stride);
    struct laid laid = {copy, to->offset};
    remove_hidden(patch, to);
    if (has_too_many_copies(patch))
        patch_apply(patch);
    if (result) {
        copy->maker = result->maker;
        copy->from_offset = result->offset;
        interval_clear(&copied);
        results++;
        take_neighbours(patch, &laid);
    } else {
        memcpy(copy->from_stride, from->stride, sizeof copy->from_stride);
        copy->from_offset = from->offset - offset;
        copy->source = copied.root;
        deepen(patch, &copied);
    }
    lay(patch, copy, laid.at);
    if (patch->depth > DEEPEST)
        patch_apply(patch);
}

__attribute__((cold)) bool patch_is_result(const struct patch *patch, struct pending *result)
{
    enum { FEW = 4 };
    size_t count = patch->copies.count;
    if (patch->copied != patch->bytes || count > (results > MANY_RESULTS ? FEW : 1))
        return false;
    struct view view[FEW];
    for (size_t i = 0; i < count; i++) {
        view[i] = laid_view(&patch->copies.at[i]);
        if (!patch->copies.at[i].copy->maker)
            return false;
        for (size_t j = 0; j < i; j++)
            if (view_overlap(&view[i], &view[j]))
                return false;
    }
    const struct patch_copy *first = patch->copies.at[0].copy;
    *result = (struct pending){first->maker, first->from_offset, 0};
    return true;
}

/* ---- looking */

static void read_piece(const struct piece *piece, uint64_t from, uint64_t bytes, uint8_t *to)
{
    uint64_t offset = piece->offset + (from - piece->interval.begin);
    enum piece_kind kind = piece_kind(piece);
    uint32_t number = piece_number(piece);
    if (kind == PIECE_result)
        memset(to, 0, bytes);
    else if (kind == PIECE_stored)
        store_read(number, offset, bytes, to);
    else if (kind == PIECE_filled)
        fill_read(&piece->filled->fill, number == NO_SHARD ? NULL : &piece->filled->fill.tensor->shard[number],
                  offset, bytes, to);
    else if (kind == PIECE_patched) {
        patch_apply(piece->patch);
        pieces_read(&piece->patch->map, offset, bytes, to);
    }
}

void pieces_read(const struct interval_map *map, uint64_t offset, uint64_t bytes, void *to)
{
    uint64_t end = offset + bytes, at = offset;
    uint8_t *out = to;
    if (bytes == 0)
        return;
    piece_for(map, piece, offset, end) {
        uint64_t first = kb_max(piece->interval.begin, offset), last = kb_min(piece->interval.end, end);
        memset(out + (at - offset), 0, first - at);
        read_piece(piece, first, last - first, out + (first - offset));
        at = last;
    }
    memset(out + (at - offset), 0, end - at);
}

const void *pieces_given(const struct interval_map *map, uint64_t offset, uint64_t bytes, struct filled **filled)
{
    const struct piece *piece = (const struct piece *)interval_find(map, offset);
    if (!piece || piece->interval.begin > offset || piece->interval.end < offset + bytes || piece_kind(piece) != PIECE_filled
        || piece_number(piece) != NO_SHARD || piece->filled->fill.kind != KB_GIVEN)
        return NULL;
    const char *given = (const char *)piece->filled->fill.given + piece->offset + (offset - piece->interval.begin);
    if ((uintptr_t)given % _Alignof(max_align_t))
        return NULL;
    *filled = piece->filled;
    (*filled)->holders++;
    return given;
}

bool pieces_known_zero(const struct interval_map *map, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    if (bytes == 0)
        return true;
    piece_for(map, piece, offset, end) {
        uint64_t first = kb_max(piece->interval.begin, offset), last = kb_min(piece->interval.end, end);
        if (piece_kind(piece) != PIECE_stored
            || store_range_is_used(piece_number(piece), piece->offset + (first - piece->interval.begin), last - first))
            return false;
    }
    return true;
}

bool pieces_pending(const struct interval_map *map, uint64_t offset, uint64_t bytes, struct pending *first)
{
    uint64_t end = offset + bytes;
    if (bytes == 0)
        return false;
    piece_for(map, piece, offset, end) {
        uint64_t from = kb_max(piece->interval.begin, offset), last = kb_min(piece->interval.end, end);
        *first = (struct pending){piece->maker, piece->offset, from};
        if (piece_kind(piece) == PIECE_result)
            return true;
        if (piece_kind(piece) != PIECE_patched)
            continue;
        uint64_t within = piece->offset + (from - piece->interval.begin);
        patch_apply(piece->patch);
        if (!pieces_pending(&piece->patch->map, within, last - from, first))
            continue;
        first->at = from + (first->at - within);
        return true;
    }
    return false;
}

void pieces_reset(void)
{
    pool_release(&pieces.pool);
    pool_release(&patches);
    pool_release(&copies);
    pool_release(&maker_pool);
    memset(makers, 0, sizeof makers);
}
