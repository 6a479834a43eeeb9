/* piece.c: maps of pieces. */
#include "piece.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "compact.h"
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

static uint64_t results, held, taken;                   /* held: pieces; taken: bytes of copies and patches */

uint64_t pieces_bytes(void)
{
    return held * sizeof(struct piece) + taken;
}

void origin_hold(uint32_t tag, union origin source)
{
    enum piece_kind kind = tag_kind(tag);
    if (kind == PIECE_filled)
        source.filled->holders++;
    else if (kind == PIECE_patched)
        patch_hold(source.patch);
    else if (kind == PIECE_listed)
        listed_hold(source.listed);
}

void origin_drop(uint32_t tag, union origin source)
{
    enum piece_kind kind = tag_kind(tag);
    if (kind == PIECE_filled)
        filled_drop(source.filled);
    else if (kind == PIECE_patched)
        patch_drop(source.patch);
    else if (kind == PIECE_listed)
        listed_drop(source.listed);
}

static void piece_copied(struct interval *copy)
{
    origin_hold(copy->tag, ((struct piece *)copy)->source);
    held++;
    results += tag_kind(copy->tag) == PIECE_result;
}

static void piece_dropped(struct interval *dropped)
{
    origin_drop(dropped->tag, ((struct piece *)dropped)->source);
    held--;
    results -= tag_kind(dropped->tag) == PIECE_result;
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
    if (piece_kind(a) != PIECE_stored && a->source.any != b->source.any)
        return false;
    if (piece_kind(a) == PIECE_result)
        return a->offset == b->offset || results > MANY_RESULTS;
    return a->offset + (low->end - low->begin) == b->offset;
}

struct interval_kind pieces = {
    .size = sizeof(struct piece), .copied = piece_copied, .dropped = piece_dropped, .advance = piece_advance,
    .continues = piece_continues,
};

/* ---- copies */

/* Elements of one piece's source, a result among them, or of several pieces: as little as says so, for there are very many. */
struct patch_copy {
    uint32_t holders;
    uint32_t tag;                                       /* of the piece; unless it copies several */
    uint8_t dtype, rank;
    bool several;                                       /* pieces, or none */
    uint64_t from;                                      /* where its first element is: as a piece's offset; of several: in them */
    union origin source;
    struct {
        uint64_t elements, to_stride, from_stride;
    } axis[];                                           /* `rank` of them */
};

static struct pool copies[VIEW_RANK];                   /* by rank - 1 */

static uint64_t copy_size(uint32_t rank)
{
    return sizeof(struct patch_copy) + rank * sizeof ((struct patch_copy *)NULL)->axis[0];
}

static struct patch_copy *copy_take(uint32_t rank)
{
    taken += copy_size(rank);
    return pool_reuse(&copies[rank - 1], copy_size(rank));
}

struct patch_copy *copy_new(const struct view *to, const struct view *from, const struct maker *maker)
{
    struct patch_copy *copy = copy_take(to->rank);
    *copy = (struct patch_copy){.holders = 1, .dtype = to->dtype, .rank = to->rank, .source.maker = maker,
                                .tag = piece_tag(maker ? PIECE_result : PIECE_stored, 0)};
    for (uint32_t i = 0; i < to->rank; i++) {
        copy->axis[i].elements = to->shape[i];
        copy->axis[i].to_stride = to->stride[i];
        copy->axis[i].from_stride = from->stride[i];
    }
    return copy;
}

static void copy_source_drop(struct patch_copy *copy)
{
    struct interval_map several = {.kind = &pieces, .root = copy->source.several};
    if (copy->several)
        interval_clear(&several);
    else
        origin_drop(copy->tag, copy->source);
}

void copy_drop(struct patch_copy *copy)
{
    if (--copy->holders)
        return;
    copy_source_drop(copy);
    taken -= copy_size(copy->rank);
    pool_give_back(&copies[copy->rank - 1], copy);
}

const struct maker *copy_maker(const struct patch_copy *copy)
{
    return tag_kind(copy->tag) == PIECE_result ? copy->source.maker : NULL;
}

/* Sets both views, with offsets of 0. */
static void copy_views(const struct patch_copy *copy, struct view *to, struct view *from)
{
    *to = *from = (struct view){.dtype = copy->dtype, .rank = copy->rank, .shape = {1, 1, 1, 1}};
    for (uint32_t i = 0; i < copy->rank; i++) {
        to->shape[i] = from->shape[i] = copy->axis[i].elements;
        to->stride[i] = copy->axis[i].to_stride;
        from->stride[i] = copy->axis[i].from_stride;
    }
}

static uint64_t copy_bytes(const struct patch_copy *copy)
{
    uint64_t bytes = dtype_bytes[copy->dtype];
    for (uint32_t i = 0; i < copy->rank; i++)
        bytes *= copy->axis[i].elements;
    return bytes;
}

/* ---- patches */

enum { FEW_COPIES = 32, MANY_COPIES = 1024, LAYERS = 4, DEEPEST = 32 };

/* A patch is taken apart as a whole: those that are larger together stay two. */
enum { JOINED_MOST = 1 << 20 };

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

static struct pool patches;

void patch_hold(struct patch *patch)
{
    patch->holders++;
}

uint64_t patch_bytes(const struct patch *patch)
{
    return patch->bytes;
}

bool patch_is_single(const struct patch *patch)
{
    return patch->holders == 1;
}

static void lay(struct patch *patch, struct patch_copy *copy, uint64_t at)
{
    copy->holders++;
    results += copy_maker(copy) != NULL;
    patch->copied += copy_bytes(copy);
    *array_add(&patch->copies) = (struct laid){copy, at};
    taken += sizeof(struct laid);
}

/* Gives up a copy of a patch, whose bytes no longer count. */
static void laid_drop(const struct laid *laid)
{
    results -= copy_maker(laid->copy) != NULL;
    taken -= sizeof *laid;
    copy_drop(laid->copy);
}

void patch_drop(struct patch *patch)
{
    if (--patch->holders)
        return;
    interval_clear(&patch->map);
    for (size_t i = 0; i < patch->copies.count; i++)
        laid_drop(&patch->copies.at[i]);
    array_free(&patch->copies);
    taken -= sizeof *patch;
    pool_give_back(&patches, patch);
}

static void deepen(struct patch *patch, uint32_t tag, union origin source)
{
    if (tag_kind(tag) == PIECE_patched && source.patch->depth >= patch->depth)
        patch->depth = source.patch->depth + 1;
}

static void deepen_by_all(struct patch *patch, const struct interval_map *map)
{
    piece_for(map, piece, 0, UINT64_MAX)
        deepen(patch, piece->interval.tag, piece->source);
}

static void deepen_by_copy(struct patch *patch, const struct patch_copy *copy)
{
    if (copy->several)
        deepen_by_all(patch, &(struct interval_map){.kind = &pieces, .root = copy->source.several});
    else
        deepen(patch, copy->tag, copy->source);
}

/* A copy that is made. */
struct making {
    struct interval_map *map;
    const struct laid *laid;
};

static void make_run(uint64_t to, uint64_t from, uint64_t bytes, void *arg)
{
    const struct making *making = arg;
    const struct patch_copy *copy = making->laid->copy;
    uint64_t begin = making->laid->at + to;
    if (copy->several) {
        struct interval_map several = {.kind = &pieces, .root = copy->source.several};
        interval_copy(making->map, begin, &several, copy->from + from, bytes);
        return;
    }
    struct piece piece = {.interval = {.begin = begin, .end = begin + bytes, .tag = copy->tag},
                          .offset = copy->from + (copy_maker(copy) ? 0 : from), .source = copy->source};
    interval_set(making->map, &piece.interval);
}

/* The copy that covers a patch alone, or NULL. No element of a copy lies over another one of it. */
static const struct laid *only_copy(const struct patch *patch)
{
    return patch->copies.count == 1 && patch->copied == patch->bytes ? patch->copies.at : NULL;
}

/* Makes a copy of a patch one of what that copies itself, if one copy covers it and each axis steps along one of that copy's. */
static void look_through(struct patch_copy *copy, const struct patch *patch)
{
    const struct laid *only = only_copy(patch);
    uint64_t size = dtype_bytes[copy->dtype], place = copy->from / size, from = 0, last[VIEW_RANK] = {0}, stride[VIEW_RANK] = {0};
    if (!only || copy->from % size)
        return;
    const struct patch_copy *inner = only->copy;
    if (inner->several || copy_maker(inner) || dtype_bytes[inner->dtype] != size)
        return;
    for (uint32_t d = 0; d < inner->rank; d++)
        if (inner->axis[d].elements > 1) {
            last[d] = place / inner->axis[d].to_stride % inner->axis[d].elements;
            from += last[d] * inner->axis[d].from_stride;
        }
    for (uint32_t i = 0; i < copy->rank; i++) {
        uint64_t steps = copy->axis[i].elements - 1, by = copy->axis[i].from_stride;
        uint32_t d = 0;
        if (steps == 0 || by == 0)
            continue;
        while (d < inner->rank && (inner->axis[d].elements == 1 || by % inner->axis[d].to_stride
                                   || by / inner->axis[d].to_stride >= inner->axis[d].elements))
            d++;
        if (d == inner->rank)
            return;
        by /= inner->axis[d].to_stride;
        last[d] += steps * by;
        stride[i] = by * inner->axis[d].from_stride;
    }
    for (uint32_t d = 0; d < inner->rank; d++)
        if (last[d] >= inner->axis[d].elements)
            return;
    for (uint32_t i = 0; i < copy->rank; i++)
        copy->axis[i].from_stride = stride[i];
    copy->tag = inner->tag;
    copy->from = inner->from + from * size;
    copy->source = inner->source;
}

/* Sets the source of a new copy: what a map holds from its first element on, which is at `first`. */
static void copy_set_source(struct patch_copy *copy, const struct interval_map *map, uint64_t first, uint64_t bytes)
{
    const struct piece *piece = (const struct piece *)interval_find(map, first);
    copy->several = !piece || piece->interval.begin > first || piece->interval.end < first + bytes;
    if (copy->several) {
        struct interval_map several = PIECES;
        interval_copy(&several, 0, map, first, bytes);
        copy->source.several = several.root;
        return;
    }
    bool is_result = piece_kind(piece) == PIECE_result;
    copy->tag = piece->interval.tag;
    copy->from = piece->offset + (is_result ? 0 : first - piece->interval.begin);
    copy->source = piece->source;
    if (piece_kind(piece) == PIECE_patched)
        look_through(copy, piece->source.patch);
    origin_hold(copy->tag, copy->source);
}

/* Replaces the pieces of a map that are patches by what those hold. */
static void flatten(struct interval_map *map);

/* Makes the copies: the map holds all, without a patch in it. */
static void patch_apply(struct patch *patch)
{
    for (size_t i = 0; i < patch->copies.count; i++) {
        const struct laid *laid = &patch->copies.at[i];
        struct view to, from;
        copy_views(laid->copy, &to, &from);
        if (copy_maker(laid->copy))
            from = view_without_gaps(&to);
        view_each_run_of_two(&to, &from, make_run, &(struct making){&patch->map, laid});
        laid_drop(laid);
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
        struct patch *patch = piece->source.patch;
        patch_hold(patch);
        patch_apply(patch);
        interval_copy(map, piece->interval.begin, &patch->map, piece->offset, at - piece->interval.begin);
        patch_drop(patch);
    }
}

/* Takes the copies of a patch that lies in this one as a whole, so that they can be replaced one by one. */
static void lift(struct patch *patch, const struct piece *piece)
{
    struct patch *inner = piece->source.patch;
    uint64_t at = piece->interval.begin;
    if (piece->offset || piece->interval.end - at != inner->bytes
        || patch->copies.count + inner->copies.count > MANY_COPIES)
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
    taken += sizeof *patch;
    *patch = (struct patch){.holders = 1, .depth = 1, .bytes = bytes, .map = PIECES};
    interval_copy(&patch->map, 0, map, offset, bytes);
    uint64_t at = 0;
    for (struct piece *piece; (piece = (struct piece *)interval_find(&patch->map, at));) {
        bool is_whole = piece->interval.begin >= at;
        at = piece->interval.end;
        if (is_whole && piece_kind(piece) == PIECE_patched)
            lift(patch, piece);
    }
    deepen_by_all(patch, &patch->map);
    for (size_t i = 0; i < patch->copies.count; i++)
        deepen_by_copy(patch, patch->copies.at[i].copy);
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
    const struct rest all = {.kind = REST_ALL};
    struct view copy, unused;
    copy_views(laid->copy, &copy, &unused);
    struct rest rest = {.kind = REST_NONE};
    int64_t size = dtype_bytes[view->dtype], away = (int64_t)(laid->at - view->offset);
    if (copy.dtype != view->dtype || away % size)
        return all;
    away /= size;
    for (unsigned axis = 0; axis < VIEW_RANK; axis++) {
        int64_t count = (int64_t)copy.shape[axis], over = (int64_t)view->shape[axis];
        int64_t stride = (int64_t)(over > 1 ? view->stride[axis] : copy.stride[axis]), from = 0;
        if (count > 1 && over > 1 && copy.stride[axis] != view->stride[axis])
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
    struct patch_copy *own = memcpy(copy_take(copy->rank), copy, copy_size(copy->rank));
    own->holders = 1;
    copy->holders--;
    if (copy->several) {
        struct interval_map several = {.kind = &pieces, .root = copy->source.several}, of_own = PIECES;
        interval_copy(&of_own, 0, &several, 0, UINT64_MAX);
        own->source.several = of_own.root;
    } else {
        origin_hold(own->tag, own->source);
    }
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
            laid_drop(&laid);
            continue;
        }
        if (rest.kind == REST_PART) {
            struct patch_copy *copy = laid.copy = copy_own(laid.copy);
            uint64_t size = dtype_bytes[copy->dtype];
            laid.at += rest.first * copy->axis[rest.axis].to_stride * size;
            if (!copy_maker(copy))
                copy->from += rest.first * copy->axis[rest.axis].from_stride * size;
            copy->axis[rest.axis].elements = rest.count;
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

static struct view laid_view(const struct laid *laid)
{
    struct view to, from;
    copy_views(laid->copy, &to, &from);
    to.offset = laid->at;
    return to;
}

/* Whether two copies are of one source; results, if there are very many. */
static bool is_of_one_source(const struct patch_copy *a, const struct patch_copy *b)
{
    if (a->several || b->several || a->tag != b->tag)
        return false;
    return tag_kind(a->tag) == PIECE_stored || (a->source.any == b->source.any && (!copy_maker(a) || results > MANY_RESULTS));
}

/* What the elements of two copies of one source step by along an axis, as one copy: as those of either one do. Columns of one
 * element each are at the distance of their elements. */
struct step {
    uint64_t to, from;
};

static struct step step_along(uint32_t axis, const struct patch_copy *lower, const struct patch_copy *higher)
{
    const struct patch_copy *along = lower->axis[axis].elements > 1 ? lower : higher;
    if (along->axis[axis].elements > 1)
        return (struct step){along->axis[axis].to_stride, along->axis[axis].from_stride};
    return (struct step){1, higher->from > lower->from ? (higher->from - lower->from) / dtype_bytes[lower->dtype] : 0};
}

/* Whether two copies of one source are like one that is longer along an axis. It does not matter which element of a result
 * comes where. */
static bool is_longer_along(uint32_t axis, const struct laid *lower, const struct laid *higher)
{
    const struct patch_copy *a = lower->copy, *b = higher->copy;
    bool copies = !copy_maker(a);
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        bool steps = a->axis[i].elements > 1 && b->axis[i].elements > 1;
        if (steps && a->axis[i].to_stride != b->axis[i].to_stride)
            return false;
        if (steps && copies && a->axis[i].from_stride != b->axis[i].from_stride)
            return false;
        if (i != axis && a->axis[i].elements != b->axis[i].elements)
            return false;
    }
    struct step step = step_along(axis, a, b);
    uint64_t bytes = a->axis[axis].elements * dtype_bytes[a->dtype], away = higher->at - lower->at;
    return away && away == bytes * step.to && (!copies || b->from - a->from == bytes * step.from);
}

/* Finds the axis along which two copies of one source continue one another. Returns the rank of the first if there is none. */
static uint32_t axis_to_lengthen(const struct laid *a, const struct laid *b)
{
    bool rises = a->at < b->at;
    uint32_t axis = 0;
    while (axis < a->copy->rank && !is_longer_along(axis, rises ? a : b, rises ? b : a))
        axis++;
    return axis;
}

/* Adds the elements of another copy of its source to one, if there is such an axis. */
static bool lengthen(struct laid *laid, const struct laid *by)
{
    bool rises = laid->at < by->at;
    const struct laid lower = rises ? *laid : *by, higher = rises ? *by : *laid;
    struct patch_copy *copy = laid->copy;
    uint32_t axis = axis_to_lengthen(laid, by);
    if (axis == copy->rank)
        return false;
    struct step step = step_along(axis, lower.copy, higher.copy);
    copy->axis[axis].to_stride = step.to;
    copy->axis[axis].from_stride = step.from;
    copy->axis[axis].elements += by->copy->axis[axis].elements;
    copy->from = lower.copy->from;
    laid->at = lower.at;
    return true;
}

/* Whether a copy may be part of a new one, which is laid behind all that follow it: they hide no element of it, unless they are
 * results of its maker, and the new one hides none. */
static bool can_be_part(const struct patch *patch, size_t which, const struct laid *of)
{
    const struct laid *laid = &patch->copies.at[which];
    const struct maker *maker = copy_maker(laid->copy);
    struct view view = laid_view(laid), made = laid_view(of);
    if (view_overlap(&view, &made))
        return false;
    for (size_t i = which + 1; i < patch->copies.count; i++) {
        struct view later = laid_view(&patch->copies.at[i]);
        if ((!maker || copy_maker(patch->copies.at[i].copy) != maker) && view_overlap(&view, &later))
            return false;
    }
    return true;
}

/* Takes what continues a new copy out of the others, into the new one, and removes what that hides then. */
static void take_neighbours(struct patch *patch, struct laid *laid)
{
    size_t before = patch->copies.count;
    for (size_t i = patch->copies.count; i > 0;) {
        struct laid *one = &patch->copies.at[--i];
        if (!is_of_one_source(laid->copy, one->copy) || axis_to_lengthen(laid, one) == laid->copy->rank || !can_be_part(patch, i, laid))
            continue;
        lengthen(laid, one);
        patch->copied -= copy_bytes(one->copy);
        laid_drop(one);
        memmove(one, one + 1, (--patch->copies.count - i) * sizeof *one);
        i = patch->copies.count;
    }
    if (patch->copies.count < before) {
        struct view view = laid_view(laid);
        remove_hidden(patch, &view);
    }
}

void patch_add(struct patch *patch, struct patch_copy *copy, const struct view *to, const struct interval_map *source, uint64_t first,
               uint64_t bytes)
{
    if (copy_maker(copy))
        copy->from = first;
    else
        copy_set_source(copy, source, first, bytes);
    remove_hidden(patch, to);
    if (has_too_many_copies(patch))
        patch_apply(patch);
    struct laid laid = {copy, to->offset};
    take_neighbours(patch, &laid);
    lay(patch, copy, laid.at);
    if (only_copy(patch)) {
        interval_clear(&patch->map);                    /* hidden */
        patch->depth = 1;
    }
    deepen_by_copy(patch, copy);
    if (patch->depth > DEEPEST)
        patch_apply(patch);
}

struct patch *patch_split(struct patch *patch, uint64_t *at)
{
    struct laid *last = patch->copies.count ? &patch->copies.at[patch->copies.count - 1] : NULL;
    if (!last || only_copy(patch))
        return NULL;
    struct view view = laid_view(last);
    if (!view_is_dense(&view))
        return NULL;
    struct patch *made = patch_new(&PIECES, 0, view_bytes_of(&view));
    *at = last->at;
    lay(made, last->copy, 0);
    deepen_by_copy(made, last->copy);
    patch->copied -= made->bytes;
    patch->copies.count--;
    laid_drop(last);
    return made;
}

bool patch_join(struct patch *patch, const struct patch *other, bool before)
{
    const struct laid *mine = only_copy(patch), *others = only_copy(other);
    if (patch->bytes + other->bytes > JOINED_MOST || !mine || !others || !is_of_one_source(mine->copy, others->copy))
        return false;
    struct laid laid = {mine->copy, before ? other->bytes : 0};
    if (!lengthen(&laid, &(struct laid){others->copy, before ? 0 : patch->bytes}))
        return false;
    patch->bytes += other->bytes;
    patch->copied = patch->bytes;
    interval_clear(&patch->map);                        /* hidden */
    return true;
}

__attribute__((cold)) bool patch_is_result(const struct patch *patch, bool several, struct pending *result)
{
    enum { FEW = 4 };
    size_t count = patch->copies.count;
    if (patch->copied != patch->bytes || count > (several || results > MANY_RESULTS ? FEW : 1))
        return false;
    struct view view[FEW];
    for (size_t i = 0; i < count; i++) {
        view[i] = laid_view(&patch->copies.at[i]);
        const struct maker *maker = copy_maker(patch->copies.at[i].copy);
        if (!maker || (!several && maker != copy_maker(patch->copies.at[0].copy)))
            return false;
        for (size_t j = 0; j < i; j++)
            if (view_overlap(&view[i], &view[j]))
                return false;
    }
    const struct patch_copy *first = patch->copies.at[0].copy;
    *result = (struct pending){first->source.maker, first->from, 0};
    return true;
}

/* ---- looking */

void piece_read(const struct piece *piece, uint64_t from, uint64_t bytes, uint8_t *to)
{
    uint64_t offset = piece->offset + (from - piece->interval.begin);
    enum piece_kind kind = piece_kind(piece);
    uint32_t number = piece_number(piece);
    if (kind == PIECE_result)
        memset(to, 0, bytes);
    else if (kind == PIECE_stored)
        store_read(number, offset, bytes, to);
    else if (kind == PIECE_filled)
        fill_read(&piece->source.filled->fill, number == NO_SHARD ? NULL : &piece->source.filled->fill.tensor->shard[number],
                  offset, bytes, to);
    else if (kind == PIECE_patched) {
        patch_apply(piece->source.patch);
        pieces_read(&piece->source.patch->map, offset, bytes, to);
    } else {
        listed_read(piece->source.listed, offset, bytes, to);
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
        piece_read(piece, first, last - first, out + (first - offset));
        at = last;
    }
    memset(out + (at - offset), 0, end - at);
}

const void *pieces_given(const struct interval_map *map, uint64_t offset, uint64_t bytes, struct filled **filled)
{
    const struct piece *piece = (const struct piece *)interval_find(map, offset);
    if (!piece || piece->interval.begin > offset || piece->interval.end < offset + bytes || piece_kind(piece) != PIECE_filled
        || piece_number(piece) != NO_SHARD || piece->source.filled->fill.kind != KB_GIVEN)
        return NULL;
    const char *given = (const char *)piece->source.filled->fill.given + piece->offset + (offset - piece->interval.begin);
    if ((uintptr_t)given % _Alignof(max_align_t))
        return NULL;
    *filled = piece->source.filled;
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
        *first = (struct pending){piece->source.maker, piece->offset, from};
        if (piece_kind(piece) == PIECE_result)
            return true;
        if (piece_kind(piece) != PIECE_patched)
            continue;
        uint64_t within = piece->offset + (from - piece->interval.begin);
        patch_apply(piece->source.patch);
        if (!pieces_pending(&piece->source.patch->map, within, last - from, first))
            continue;
        first->at = from + (first->at - within);
        return true;
    }
    return false;
}

void pieces_reset(void)
{
    pool_release(&pieces.pool);
    lists_reset();
    pool_release(&patches);
    for (uint32_t i = 0; i < VIEW_RANK; i++)
        pool_release(&copies[i]);
    pool_release(&maker_pool);
    assert(results == 0 && held == 0 && taken == 0);
    memset(makers, 0, sizeof makers);
}
